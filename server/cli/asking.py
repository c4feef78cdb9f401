"""What an analyst does over HTTP: `noisegate query`, `estimate`, `datasets` and `describe`."""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import quote

from privacy.bounds import BOUND_MAX
from server.cli import answers
from server.cli.client import Remote
from server.cli.failure import UsageError
from server.cli.listing import show_list
from server.cli.options import Here, amount, one_of, option
from server.cli.output import Json, print_json, say, short

__all__ = ["datasets", "describe", "estimate", "query", "read_sql", "sharpen"]

_SQL_READ_MAX = 65_537
"""One more than the limit of the server, which refuses it in words."""

_SPENDS = ("epsilon", "own_epsilon")
_PRICES = (*_SPENDS, "half_width", "relative")
_ACCURACY = ("half_width", "relative", "at_most", "confidence")
_bound = functools.partial(option, min=1, max=BOUND_MAX)
_BOUNDS = ("rows_per_unit", "groups_per_unit", "rows_per_unit_and_group")


def _family(text: str) -> str:
    """A family of noise, or the server's choice. The list of families is slow to load, and loaded when one is named."""
    from mechanisms.families import NoiseFamily

    return one_of(("auto", *(family.value for family in NoiseFamily)), text)


@dataclass(frozen=True, slots=True)
class Question:
    """A question with all its options: what `query` and `estimate` have in common."""

    sql: str | None = option("[SQL]", 'One SELECT statement; "-", or nothing in a pipe, reads it from the input.')
    file: Path | None = option("--file -f FILE", 'Read the statement from this file; "-" is the input.')
    dataset: str | None = option("--dataset NAME", "The dataset. Default: the only one you may ask.")
    epsilon: str | None = option("--epsilon E", "What of your account the answer may cost. Default: the dataset's.")
    own_epsilon: str | None = option("--own-epsilon E", "What the answer may promise by itself, in any account.")
    half_width: str | None = option("--half-width W", "How exact: ± of the widest interval; sets the price.")
    relative: str | None = option("--relative R", "The same as a part of the smallest number, where that is known.")
    merge: bool = option("--merge", "With --relative: merge public groups that are less exact; sets no price.", False)
    at_most: str | None = option("--at-most E", "The greatest part of your account that such a ± may cost.")
    confidence: str | None = option("--confidence C", "Confidence of the intervals. Default: 0.95.")
    noise: str | None = option("--noise FAMILY", "The only family of noise that may answer.", parser=_family)
    mechanism: Literal["exponential", "smooth", "sample_and_aggregate"] | None = option(
        "--mechanism", "By which mechanism MEDIAN and quantiles are drawn. Default: the server's choice."
    )
    delta: str | None = option("--delta D", "Delta of showing groups that are not public. Default: the dataset's.")
    contribution: Literal["auto"] | None = option(
        "--contribution", "Let the question choose how much of a unit counts."
    )
    rows_per_unit: int | None = _bound("--rows-per-unit N", "Rows of one unit that count. Default: the dataset's.")
    groups_per_unit: int | None = _bound("--groups-per-unit N", "Groups in which one unit counts.")
    rows_per_unit_and_group: int | None = _bound("--rows-per-unit-and-group N", "Rows of it that count in one group.")
    accept_noise: bool = option("--accept-noise", "Pay also for an average or a sum that is surely noise alone.", False)
    nonempty: bool = option("--nonempty", "Leave out public groups whose noisy count may be that of nobody.", False)
    nonnegative: bool = option("--nonnegative", "Show no negative counts: the nearest ones with the same sum.", False)
    with_cut: bool = option("--with-cut", "Give intervals with what the norm cuts, too: in JSON.", False)
    parameter: list[str] | None = option("--parameter -p NAME=VALUE", "Value of $NAME in the statement; repeatable.")
    reuse: Literal["any", "own", "none"] | None = option("--reuse", "Which stored releases may answer.")
    budget: str | None = option("--budget ID", "The account that pays, if you have several.")
    max_cost: str | None = option("--max-cost E", "The most that all charges may take of your account.")

    def body(self) -> Json:
        """The body of the request. Amounts are checked here, so that a typo needs no server. Errors: CommandFailed."""
        if self.merge and self.relative is None:
            raise UsageError("""--merge needs --relative
                It merges groups whose ± is wider than such a part of their number.
                Give --relative 0.1, say, and --epsilon for the price.""")
        _one_price({name: getattr(self, name) for name in _PRICES if not (self.merge and name == "relative")})
        bounds = {name: bound for name in _BOUNDS if (bound := getattr(self, name)) is not None}
        if bounds and self.contribution is not None:
            raise UsageError(f"""--contribution and {_named(next(iter(bounds)))} exclude each other
                Either the question chooses how much of one unit counts, or you name it.
                Give one of them, or none for what the dataset declares.""")
        wishes = {
            "parameters": _parameters(self.parameter or []),
            "spend": self._amounts(*_SPENDS),
            "accuracy": {**self._amounts(*_ACCURACY), **({"merge": True} if self.merge else {})},
            "contribution": self.contribution or bounds,
            **self._amounts("delta", "max_cost"),
            **{
                name: getattr(self, name)
                for name in (
                    "noise",
                    "mechanism",
                    "reuse",
                    "budget",
                    "nonempty",
                    "accept_noise",
                    "with_cut",
                    "nonnegative",
                )
            },
        }
        asked = {"dataset": self.dataset, "sql": read_sql(self.sql, self.file)}
        return asked | {name: wish for name, wish in wishes.items() if wish not in (None, False, {})}

    def _amounts(self, *names: str) -> dict[str, str]:
        """The amounts that were given, as they were typed."""
        return _amounts({name: getattr(self, name) for name in names})


def _amounts(values: Mapping[str, str | None]) -> dict[str, str]:
    """The amounts that were given, by their field, as they were typed. Errors: CommandFailed."""
    from fractions import Fraction

    from privacy.numbers import ATTO, PICO

    limits = {"delta": (Fraction(1, 100), ATTO), "confidence": (Fraction(1), PICO), "relative": (Fraction(1), PICO)}
    given = {name: str(text).strip() for name, text in values.items() if text is not None}
    for name, text in given.items():
        maximum, unit = limits.get(name, (Fraction(10**18), PICO))
        amount(text, option=_named(name), maximum=maximum, unit=unit, zero_allowed=name == "max_cost")
    return given


def _one_price(values: Mapping[str, str | None]) -> list[str]:
    """The option that sets the price, if one is given. Errors: UsageError for more than one."""
    prices = [_named(name) for name in _PRICES if values.get(name) is not None]
    if len(prices) > 1:
        raise UsageError(f"""{prices[0]} and {prices[1]} are both given
            --epsilon, --own-epsilon, --half-width and --relative are four ways to set one price.
            Give one of them, or none for the dataset's default.""")
    return prices


def query(
    *,
    question: Question,
    idempotency_key: str | None = option("--idempotency-key TEXT", "The same text pays once. Default: a new one."),
    remote: Remote,
    form: Literal["table", "json", "csv"] | None = option("--format", "Default: table; --json means json."),
    here: Here,
) -> None:
    """Ask a question, pay, and show the noisy answer."""
    body = question.body()
    if here.as_json and form not in (None, "json"):
        raise UsageError("""--json and --format are both given
            They are two answers to one question.
            Give one of them.""")
    csv = form == "csv"
    with remote.connect(here.place()) as client:
        body["dataset"] = body["dataset"] or client.only_dataset("Name one with --dataset NAME.")
        answer = client.ask(body, idempotency_key=idempotency_key)
        if csv:
            say(client.text(f"/v1/queries/{answer['id']}", accept="text/csv").removesuffix("\n"), verbatim=True)
    if here.as_json or form == "json":
        print_json(answer)
    else:
        _show(answer, csv=csv)


def _show(answer: Json, *, csv: bool = False) -> None:
    """The table of an answer, unless it was written as CSV, with what to know beside it."""
    if not csv:
        say(f"{answers.answer_table(answer)}\n", verbatim=True)
    # CSV has no room for these, and a file of counts that lack a third of their rows looks like any other.
    for line in [*answers.warning_lines(answer, error=csv), *answers.price_lines(answer)]:
        say(line, error=csv, verbatim=True)


def sharpen(
    *,
    query: str = option("QUERY", "The identifier of an answer, as `id` of its JSON: q_..."),
    epsilon: str | None = option(
        "--epsilon E", "What of your account the answer may cost in whole, before it and now."
    ),
    own_epsilon: str | None = option("--own-epsilon E", "What the answer may promise by itself, in any account."),
    half_width: str | None = option("--half-width W", "How exact: ± of the widest interval; sets the price."),
    relative: str | None = option("--relative R", "The same as a part of the smallest number, where that is known."),
    at_most: str | None = option("--at-most E", "The greatest part of your account that such a ± may cost."),
    confidence: str | None = option("--confidence C", "Confidence of the intervals. Default: that of the answer."),
    max_cost: str | None = option("--max-cost E", "The most that this may take of your account."),
    idempotency_key: str | None = option("--idempotency-key TEXT", "The same text pays once. Default: a new one."),
    remote: Remote,
    here: Here,
) -> None:
    """Make an earlier answer more precise, and pay for what is missing."""
    prices = {"epsilon": epsilon, "own_epsilon": own_epsilon, "half_width": half_width, "relative": relative}
    if not _one_price(prices):
        raise UsageError("""the better wish is missing
            An answer is made more precise by the whole spend or the accuracy that it shall have.
            For instance: noisegate sharpen q_7d1f --epsilon 1 --max-cost 0.5""")
    wishes = {
        "spend": _amounts({name: prices[name] for name in _SPENDS}),
        "accuracy": _amounts(
            {"half_width": half_width, "relative": relative, "at_most": at_most, "confidence": confidence}
        ),
        **_amounts({"max_cost": max_cost}),
    }
    with remote.connect(here.place()) as client:
        body = {name: wish for name, wish in wishes.items() if wish}
        answer = client.sharpen(query, body, idempotency_key=idempotency_key)
    if here.as_json:
        print_json(answer)
    else:
        _show(answer)


def estimate(
    *,
    question: Question,
    plan: bool = option(
        "--plan", "The whole report: plan, bounds, noise, cheaper forms, prices and accuracies.", False
    ),
    remote: Remote,
    here: Here,
) -> None:
    """Report what a question would cost, for free."""
    body = question.body() | ({"detail": "plan"} if plan else {})
    with remote.connect(here.place()) as client:
        body["dataset"] = body["dataset"] or client.only_dataset("Name one with --dataset NAME.")
        answer = client.estimate(body)
    here.show(answer, answers.plan_lines(answer) if plan else answers.estimate_lines(answer), verbatim=True)


def queries(remote: Remote, here: Here) -> None:
    """List your queries, the newest first: identifier, when, dataset, state, and what each was charged."""
    show_list(remote, here, "queries", _query_line, none="no queries")


def _query_line(query: Json) -> str:
    taken = ", ".join(f"epsilon {short(part['epsilon'])}" for part in query["charged"]) or "free"
    return f"{query['id']}  {query['created']}  {query['dataset']}  {query['status']}  {taken}"


def datasets(remote: Remote, here: Here) -> None:
    """List the datasets that you may ask."""
    with remote.connect(here.place()) as client:
        answer = client.get("/v1/datasets")
    here.show(answer["datasets"], answers.datasets_lines(answer), verbatim=True)


def describe(
    remote: Remote,
    here: Here,
    dataset: str | None = option("[DATASET]", "Default: the only one that you may ask."),
    of: str | None = option("[TABLE]", "Of this table only."),
) -> None:
    """Show what a dataset declares: columns, types, bounds."""
    with remote.connect(here.place()) as client:
        path = f"/v1/datasets/{quote(dataset or client.only_dataset('Name it: noisegate describe DATASET'), safe='')}"
        body = client.get(path)
        if of is not None:
            body["tables"] = [client.get(f"{path}/tables/{quote(of, safe='')}")]
    here.show(body if of is None else body["tables"][0], answers.dataset_lines(body), verbatim=True)


def _named(name: str) -> str:
    """The option of that field."""
    return f"--{name.replace('_', '-')}"


def read_sql(text: str | None, file: Path | None) -> str:
    """The statement: typed, from a file, or from the input. Errors: CommandFailed."""
    if file is not None and text is not None:
        raise UsageError("""a statement and --file are both given
            One statement is asked.
            Give one of them.""")
    if file == Path("-"):
        text = "-"
    elif file is not None:
        with file.open("rb") as stream:
            content = stream.read(_SQL_READ_MAX)
        try:
            text = content.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise UsageError(f"""could not read "{file}"
                It is not text in UTF-8.
                Save it as UTF-8, and ask again.""") from None
    if text == "-" or (text is None and not sys.stdin.isatty()):
        text = sys.stdin.read(_SQL_READ_MAX)
    if text is None or not text.strip():
        raise UsageError(f"""the statement is {"missing" if text is None else "empty"}
            There is nothing to ask.
            For instance: noisegate query "SELECT COUNT(*) AS n FROM patients" --dataset demo""")
    return text


def _parameters(given: list[str]) -> Json:
    values: Json = {}
    for item in given:
        name, sign, text = item.partition("=")
        name = name.removeprefix("$")
        if not sign or not name.isidentifier() or name in values:
            raise UsageError("""--parameter is not accepted
                It is NAME=VALUE, and each name comes once.
                For instance: -p age=65 -p region=North (quotes make a number a text: -p 'code="7"')""")
        try:
            value = text if text in ("NaN", "Infinity", "-Infinity") else json.loads(text)
        except ValueError:
            value = text
        values[name] = text if isinstance(value, dict | list) else value
    return values
