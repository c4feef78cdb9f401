"""Registered statistics over HTTP: `noisegate statistic list` and `ask`."""

from __future__ import annotations

from fractions import Fraction
from urllib.parse import quote

from server.cli.client import Remote
from server.cli.failure import UsageError
from server.cli.options import Here, amount, option
from server.cli.output import Json, printable, table

__all__ = ["ask", "list_statistics"]


def list_statistics(
    *,
    dataset: str | None = option("--dataset NAME", "The dataset. Default: the only one you may ask."),
    remote: Remote,
    here: Here,
) -> None:
    """List the statistics that the owner registered and you may ask."""
    with remote.connect(here.place()) as client:
        name = dataset or client.only_dataset("Name one with --dataset NAME.")
        found = client.get(f"/v1/datasets/{quote(name, safe='')}/statistics")["statistics"]
    rows = [[one["name"], one["kind"] or "refused", _step(one), one["sql"]] for one in found]
    shown = table(["statistic", "kind", "least width", "of"], [[printable(str(cell)) for cell in row] for row in rows])
    here.show(found, [shown] if found else ["No statistic is registered for you."], verbatim=True)


def ask(
    *,
    statistic: str = option("NAME", "The statistic, as `noisegate statistic list` names it."),
    width: str | None = option(
        "--width W", "The proposal: by how much one person moves it at most. Quantiles need it."
    ),
    dataset: str | None = option("--dataset NAME", "The dataset. Default: the only one you may ask."),
    own_epsilon: str | None = option("--own-epsilon E", "What the outcome may promise by itself, in any account."),
    epsilon: str | None = option("--epsilon E", "What of your account it may cost."),
    budget: str | None = option("--budget ID", "The account that pays, if you have several."),
    price_only: bool = option("--estimate", "Report price, test and interval, for free, and ask nothing.", False),
    idempotency_key: str | None = option("--idempotency-key TEXT", "Another text draws, and pays, anew."),
    remote: Remote,
    here: Here,
) -> None:
    """Ask a registered statistic: test the proposal, and release the answer where the test passes."""
    if (own_epsilon is None) == (epsilon is None):
        raise UsageError("""the price is not named once
            A statistic is charged whichever way its test ends, so its price is yours to say.
            Give --own-epsilon, for instance 1, or --epsilon.""")
    amounts = {"width": width, "epsilon": epsilon, "own_epsilon": own_epsilon}
    given = {name: text.strip() for name, text in amounts.items() if text is not None}
    for name, text in given.items():
        most = Fraction(10**15) if name == "width" else Fraction(10**6)
        amount(text, option=f"--{name.replace('_', '-')}", maximum=most, unit=Fraction(1, 10**12))
    body: Json = {"statistic": statistic, **({"width": given.pop("width")} if "width" in given else {}), "spend": given}
    if budget is not None:
        body["budget"] = budget
    with remote.connect(here.place()) as client:
        body["dataset"] = dataset or client.only_dataset("Name one with --dataset NAME.")
        if price_only:
            answer = client.price_of("/v1/statistics", body)
            here.show(answer, _price_lines(answer), verbatim=True)
            return
        answer = client.ask_statistic(body, idempotency_key=idempotency_key)
    here.show(answer, _lines(answer), verbatim=True)


def _step(one: Json) -> str:
    return "" if one["step"] is None else f"{one['step']:g}"


def _price_lines(answer: Json) -> list[str]:
    """What an estimate says."""
    price, test = answer["price"], answer["test"]
    lines = [
        f"{answer['verdict']}: epsilon {price['epsilon']} of the account, whichever way the test ends",
        f"by itself the outcome promises epsilon {price['own']['epsilon']}, delta {price['own']['delta']}",
        _test_line(test),
    ]
    if answer["half_width"] is not None:
        lines.append(f"an answer would lie within {answer['half_width']:g}, for a proposal of {answer['width']}")
    return [printable(line) for line in lines]


def _test_line(test: Json) -> str:
    """When the test passes: of a most frequent value by its lead, which may be looked up, else by people."""
    if test.get("lead_mostly_from") is not None:
        return (
            f"the test passes in 19 of 20 cases from a lead of {test['lead_mostly_from']} rows over the second value "
            f"on, and in 1 of 20 at most up to {test['lead_rarely_to']}"
        )
    return (
        f"the test passes mostly where {test['passes_mostly_from']} people would have to come or go before the answer "
        f"were unstable, and rarely below {test['passes_rarely_below']}"
    )


def _lines(answer: Json) -> list[str]:
    """An outcome for people."""
    if answer["outcome"] == "no_answer":
        lines = [f"{answer['statistic']}: no answer. The test did not pass, which is an outcome with the same price."]
    elif answer["interval"] is None:
        lines = [f"{answer['statistic']}: {answer['value']}"]
    else:
        low, high = answer["interval"]
        lines = [f"{answer['statistic']}: {answer['value']:g}  [{low:g}, {high:g}]"]
    if answer["accounting"].get("reused"):
        price = "charged nothing: the same question was asked before, and this is its stored outcome"
    else:
        price = f"charged {', '.join(part['epsilon'] for part in answer['accounting']['charged'])} of the account"
    return [printable(line) for line in [*lines, f"{price}; {answer['id']}"]]
