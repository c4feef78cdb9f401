"""Batches over HTTP: `noisegate batch`."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

from server.cli.asking import read_sql
from server.cli.client import Remote
from server.cli.failure import CommandFailed, UsageError
from server.cli.options import Here, amount, option
from server.cli.output import Json, printable

__all__ = ["batch"]


def batch(
    *,
    file: Path = option("FILE", 'One counting query in each line; "-" is the input.'),
    dataset: str | None = option("--dataset NAME", "The dataset. Default: the only one you may ask."),
    own_epsilon: str | None = option("--own-epsilon E", "What all answers together may promise, in any account."),
    epsilon: str | None = option("--epsilon E", "What of your account all of them may cost. Default: the dataset's."),
    rows_per_unit: int | None = option("--rows-per-unit N", "Rows of one unit that count.", min=1),
    budget: str | None = option("--budget ID", "The account that pays, if you have several."),
    price_only: bool = option("--estimate", "Report the ways to answer it, for free, and ask nothing.", False),
    idempotency_key: str | None = option("--idempotency-key TEXT", "The same text pays once. Default: a new one."),
    remote: Remote,
    here: Here,
) -> None:
    """Answer counting queries together, at one price."""
    if own_epsilon is not None and epsilon is not None:
        raise UsageError("""the price is named twice
            One batch has one price.
            Give --own-epsilon or --epsilon, or neither for the dataset's default.""")
    given = {
        name: text.strip() for name, text in (("epsilon", epsilon), ("own_epsilon", own_epsilon)) if text is not None
    }
    for name, text in given.items():
        amount(text, option=f"--{name.replace('_', '-')}", maximum=Fraction(10**6), unit=Fraction(1, 10**12))
    lines = [line.strip().rstrip(";") for line in read_sql(None, file).splitlines()]
    queries = [line for line in lines if line and not line.startswith("--")]
    if not queries:
        raise UsageError("""the file has no queries
            There is nothing to ask.
            Write one SELECT COUNT(*) FROM ... WHERE ... in each line.""")
    body: Json = {"queries": queries, **({"spend": given} if given else {})}
    if budget is not None:
        body["budget"] = budget
    if rows_per_unit is not None:
        bounds = ("rows_per_unit", "groups_per_unit", "rows_per_unit_and_group")
        body["contribution"] = dict.fromkeys(bounds, rows_per_unit)
    with remote.connect(here.place()) as client:
        body["dataset"] = dataset or client.only_dataset("Name one with --dataset NAME.")
        if price_only:
            told = client.price_of("/v1/batches", body)
            here.show(told, [printable(line) for line in _ways(told)], verbatim=True)
            return
        answer = client.make("/v1/batches", body, idempotency_key=idempotency_key)
    if answer["rows"] is None:
        raise CommandFailed(f"""the batch failed
            It was charged: {printable(answer["status"])}. What went wrong is not said, for it may depend on rows.
            See: noisegate query --help, to ask its queries one by one""")
    here.show(answer, [printable(line) for line in _counts(answer)], verbatim=True)


def _ways(told: Json) -> list[str]:
    """The ways to answer a batch, as an estimate has them."""
    price = f"epsilon {told['price']['epsilon']}"
    if not float(told["price"]["epsilon"]):
        price = "free: what is stored answers it, and nothing new is measured"
    lines = [f"{told['different']} different queries: {told['strategy']}, {price}"]
    for way in told["strategies"]:
        if way["error"] is None:
            lines.append(f"  {way['strategy']:<11} refused: {way['refused'][0]['why']}")
        else:
            ratio = "" if way["price_ratio"] is None else f", {way['price_ratio']:.3g} times the price for the same"
            lines.append(f"  {way['strategy']:<11} standard error {way['error']:.4g}{ratio}")
    return [*lines, *_cut_lines(told, "The standard errors do")]


def _cut_lines(told: Json, what: str) -> list[str]:
    """What bounds leave out of every count, and that the numbers beside it do not show it."""
    cut = list(dict.fromkeys(told.get("cut", [])))
    return [*cut, f"{what} not show what the bounds leave out."] if cut else []


def _counts(answer: Json) -> list[str]:
    """The counts, each before its query."""
    rows = [(f"{row['value']:.10g}", f"[{row['low']:.10g}, {row['high']:.10g}]", row["sql"]) for row in answer["rows"]]
    wide, ends = (max(len(row[place]) for row in rows) for place in (0, 1))
    lines = [f"{value:>{wide}}  {interval:<{ends}}  {sql}" for value, interval, sql in rows]
    lines += [f"warning: {warning['what']}" for warning in answer["warnings"]]
    lines += _cut_lines(answer, "The intervals do")
    charged = ", ".join(part["epsilon"] for part in (answer["accounting"] or {}).get("charged", []))
    return [*lines, f"{answer['strategy']}, charged {charged or 'nothing'}"]
