"""`noisegate query` and `noisegate estimate`: asking over HTTP, as an analyst does."""

from __future__ import annotations

import json
import sys
import time
import uuid
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from server.cli.failure import CommandFailed, explained, usage_error
from server.cli.home import Home
from server.cli.options import HomeOption, JsonOption, KeyFileOption, KeyOption, UrlOption, amount, default_home
from server.cli.output import (
    answer_table,
    price_lines,
    print_json,
    print_raw,
    printable,
    say,
    short,
    table,
    warning_lines,
)
from server.cli.prices import family_lines, own_words, part_words

if TYPE_CHECKING:
    from server.cli.client import Client

__all__ = ["ask", "estimate", "query"]

_PATIENCE_SECONDS = 3600.0


class Reuse(StrEnum):
    """Which stored releases may answer."""

    any = "any"
    own = "own"
    none = "none"


class Noise(StrEnum):
    """Which kind of noise may answer."""

    auto = "auto"
    laplace = "laplace"
    gaussian = "gaussian"


class Format(StrEnum):
    """How an answer is printed."""

    table = "table"
    json = "json"
    csv = "csv"


SqlArgument = Annotated[
    str | None,
    typer.Argument(metavar="[SQL]", help='One SELECT statement; "-", or nothing in a pipe, reads it from the input.'),
]
FileOption = Annotated[
    Path | None, typer.Option("--file", "-f", metavar="FILE", help="Read the statement from this file.")
]
FormatOption = Annotated[
    Format | None, typer.Option("--format", help="How the answer is printed. Default: table; --json means json.")
]
DatasetOption = Annotated[
    str | None, typer.Option("--dataset", metavar="NAME", help="The dataset. Default: the only one you may ask.")
]
EpsilonOption = Annotated[
    str | None,
    typer.Option("--epsilon", metavar="E", help="What of your account the answer may cost. Default: the dataset's."),
]
OwnEpsilonOption = Annotated[
    str | None,
    typer.Option("--own-epsilon", metavar="E", help="What the answer may promise by itself, whatever your account is."),
]
NoiseOption = Annotated[
    Noise | None, typer.Option("--noise", help="The only kind of noise that may answer. Default: the server's choice.")
]
DeltaOption = Annotated[
    str | None,
    typer.Option("--delta", metavar="D", help="Delta of showing groups that are not public. Default: the dataset's."),
]
HalfWidthOption = Annotated[
    str | None,
    typer.Option("--half-width", metavar="W", help="How exact it shall be: ± of the widest interval; sets the price."),
]
ConfidenceOption = Annotated[
    str | None, typer.Option("--confidence", metavar="C", help="Confidence of the intervals. Default: 0.95.")
]
RowsPerUnitOption = Annotated[
    int | None,
    typer.Option("--rows-per-unit", metavar="N", help="Rows of one unit that count here. Default: the dataset's."),
]
GroupsPerUnitOption = Annotated[
    int | None, typer.Option("--groups-per-unit", metavar="N", help="Groups in which one unit counts here.")
]
RowsPerGroupOption = Annotated[
    int | None,
    typer.Option("--rows-per-unit-and-group", metavar="N", help="Rows of one unit that count here in one group."),
]
AcceptNoiseOption = Annotated[
    bool, typer.Option("--accept-noise", help="Pay also for an average or a sum that would surely be noise alone.")
]
NonemptyOption = Annotated[
    bool, typer.Option("--nonempty", help="Leave out public groups whose noisy count may be that of nobody.")
]
ParameterOption = Annotated[
    list[str] | None,
    typer.Option("--parameter", "-p", metavar="NAME=VALUE", help="Value of $NAME in the statement; repeatable."),
]
ReuseOption = Annotated[
    Reuse | None, typer.Option("--reuse", help="Which stored releases may answer. Default: the dataset's rule.")
]
BudgetOption = Annotated[
    str | None, typer.Option("--budget", metavar="ID", help="The account that pays, if you have several.")
]


def query(
    sql: SqlArgument = None,
    file: FileOption = None,
    dataset: DatasetOption = None,
    epsilon: EpsilonOption = None,
    own_epsilon: OwnEpsilonOption = None,
    half_width: HalfWidthOption = None,
    confidence: ConfidenceOption = None,
    noise: NoiseOption = None,
    delta: DeltaOption = None,
    rows_per_unit: RowsPerUnitOption = None,
    groups_per_unit: GroupsPerUnitOption = None,
    rows_per_unit_and_group: RowsPerGroupOption = None,
    accept_noise: AcceptNoiseOption = False,
    nonempty: NonemptyOption = False,
    parameter: ParameterOption = None,
    reuse: ReuseOption = None,
    budget: BudgetOption = None,
    idempotency_key: Annotated[
        str | None,
        typer.Option("--idempotency-key", metavar="TEXT", help="The same text never pays twice. Default: a new one."),
    ] = None,
    url: UrlOption = None,
    key: KeyOption = None,
    key_file: KeyFileOption = None,
    home: HomeOption = None,
    form: FormatOption = None,
    as_json: JsonOption = False,
) -> None:
    """Ask a question, pay for it, and show the noisy answer with its error bars.

    On the machine of `noisegate up` address and key are found by themselves.

    \b
    examples
      noisegate query "SELECT COUNT(*) AS n FROM patients" --dataset demo
      noisegate query "SELECT sex, AVG(age) AS age FROM patients GROUP BY sex" --dataset demo --epsilon 0.5
      noisegate query 'SELECT COUNT(*) AS n FROM patients WHERE age >= $age' -p age=65 --half-width 20
      noisegate query -f question.sql --dataset demo --format csv > answer.csv
      NOISEGATE_URL=https://stats.example NOISEGATE_KEY=ngk_... noisegate query --json < question.sql
    """
    place, body = _prepare(_sql(sql, file), dataset, epsilon, half_width, confidence, parameter, reuse, budget, home)
    _price_wishes(body, own_epsilon=own_epsilon, noise=noise, delta=delta)
    _bound_wishes(
        body,
        rows_per_unit=rows_per_unit,
        groups_per_unit=groups_per_unit,
        rows_per_unit_and_group=rows_per_unit_and_group,
    )
    _agreements(body, nonempty=nonempty, accept_noise=accept_noise)
    shown = _format(form, as_json=as_json)
    with _client(place, url, key, key_file) as client:
        _choose_dataset(client, body)
        answer = ask(client, body, idempotency_key=idempotency_key or str(uuid.uuid4()))
        if shown is Format.csv:
            print_raw(client.text(f"/v1/queries/{answer['id']}", accept="text/csv"))
            # CSV has no room for these, and a file of counts that lack a third of their rows looks like any other.
            for line in warning_lines(answer, error=True):
                say(line, error=True, verbatim=True)
            for line in price_lines(answer):
                say(line, error=True)
            return
    if shown is Format.json:
        print_json(answer)
        return
    say(answer_table(answer), verbatim=True)
    say()
    for line in warning_lines(answer):
        say(line, verbatim=True)
    for line in price_lines(answer):
        say(line)


def estimate(
    sql: SqlArgument = None,
    file: FileOption = None,
    dataset: DatasetOption = None,
    epsilon: EpsilonOption = None,
    own_epsilon: OwnEpsilonOption = None,
    half_width: HalfWidthOption = None,
    confidence: ConfidenceOption = None,
    noise: NoiseOption = None,
    delta: DeltaOption = None,
    rows_per_unit: RowsPerUnitOption = None,
    groups_per_unit: GroupsPerUnitOption = None,
    rows_per_unit_and_group: RowsPerGroupOption = None,
    accept_noise: AcceptNoiseOption = False,
    nonempty: NonemptyOption = False,
    parameter: ParameterOption = None,
    reuse: ReuseOption = None,
    budget: BudgetOption = None,
    url: UrlOption = None,
    key: KeyOption = None,
    key_file: KeyFileOption = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Tell what a question would cost and how exact its answer would be. Free: no row is touched.

    \b
    examples
      noisegate estimate "SELECT sex, COUNT(*) AS n FROM patients GROUP BY sex" --dataset demo
      noisegate estimate "SELECT AVG(income) AS income FROM patients" --dataset demo --half-width 500
    """
    place, body = _prepare(_sql(sql, file), dataset, epsilon, half_width, confidence, parameter, reuse, budget, home)
    _price_wishes(body, own_epsilon=own_epsilon, noise=noise, delta=delta)
    _bound_wishes(
        body,
        rows_per_unit=rows_per_unit,
        groups_per_unit=groups_per_unit,
        rows_per_unit_and_group=rows_per_unit_and_group,
    )
    _agreements(body, nonempty=nonempty, accept_noise=accept_noise)
    with _client(place, url, key, key_file) as client:
        _choose_dataset(client, body)
        _, answer = client.call("POST", "/v1/estimates", body)
    if as_json:
        print_json(answer)
    else:
        _show_estimate(answer)


def ask(client: Client, body: dict[str, Any], *, idempotency_key: str) -> dict[str, Any]:
    """The settled answer of a query: waits as long as it runs. Errors: CommandFailed."""
    status, answer = client.call("POST", "/v1/queries", body, idempotency_key=idempotency_key)
    deadline = time.monotonic() + _PATIENCE_SECONDS
    pause = 0.2
    while status == 202:
        if time.monotonic() > deadline:
            raise CommandFailed(
                "the answer did not come in an hour",
                why="The query still runs. It was charged once.",
                instead=f"Fetch it later: GET {client.url}/v1/queries/{printable(str(answer.get('id')))}",
            )
        time.sleep(pause)
        pause = min(pause * 1.5, 5.0)
        status, answer = client.call("GET", f"/v1/queries/{answer['id']}")
    return answer


# Steps


def _prepare(
    sql: str,
    dataset: str | None,
    epsilon: str | None,
    half_width: str | None,
    confidence: str | None,
    parameter: list[str] | None,
    reuse: Reuse | None,
    budget: str | None,
    home: Path | None,
) -> tuple[Home, dict[str, Any]]:
    """The home, and the body of the request. Amounts are checked here too, so that a typo needs no server."""
    if epsilon is not None and half_width is not None:
        raise usage_error(
            "--epsilon and --half-width are both given",
            why="They are two ways to set one price.",
            instead="Give one of them, or neither for the dataset's default.",
        )
    body: dict[str, Any] = {"dataset": dataset, "sql": sql}
    if parameter:
        body["parameters"] = _parameters(parameter)
    if epsilon is not None:
        body["spend"] = {"epsilon": _decimal(epsilon, "--epsilon")}
    accuracy = {}
    if half_width is not None:
        accuracy["half_width"] = _decimal(half_width, "--half-width")
    if confidence is not None:
        accuracy["confidence"] = _decimal(confidence, "--confidence", maximum=1)
    if accuracy:
        body["accuracy"] = accuracy
    if reuse is not None:
        body["reuse"] = reuse.value
    if budget is not None:
        body["budget"] = budget
    return Home(default_home(home)), body


def _agreements(body: dict[str, Any], *, nonempty: bool, accept_noise: bool) -> None:
    """What the request agrees to; what it does not is left out."""
    body.update({name: True for name, wanted in (("nonempty", nonempty), ("accept_noise", accept_noise)) if wanted})


def _bound_wishes(body: dict[str, Any], **bounds: int | None) -> None:
    """Adds the contribution bounds that the question names for itself."""
    from privacy.bounds import BOUND_MAX

    named = {name: bound for name, bound in bounds.items() if bound is not None}
    for name, bound in named.items():
        if not 1 <= bound <= BOUND_MAX:
            raise usage_error(
                f"--{name.replace('_', '-')} is not accepted",
                why=f"It is a whole number from 1 to {BOUND_MAX:,}.",
                instead="Leave it out for the dataset's bound.",
            )
    if named:
        body["contribution"] = named


def _price_wishes(body: dict[str, Any], *, own_epsilon: str | None, noise: Noise | None, delta: str | None) -> None:
    """Adds the rest of what decides the price. Amounts are checked here too."""
    from fractions import Fraction

    from privacy.numbers import ATTO

    if own_epsilon is not None:
        if "spend" in body or "half_width" in body.get("accuracy", {}):
            raise usage_error(
                "--own-epsilon and another price are both given",
                why="--epsilon, --own-epsilon and --half-width are three ways to set one price.",
                instead="Give one of them, or none for the dataset's default.",
            )
        body["spend"] = {"own_epsilon": _decimal(own_epsilon, "--own-epsilon")}
    if noise is not None:
        body["noise"] = noise.value
    if delta is not None:
        amount(delta, option="--delta", maximum=Fraction(1, 100), unit=ATTO)
        body["delta"] = delta.strip()


def _decimal(text: str, option: str, *, maximum: int = 10**18) -> str:
    from fractions import Fraction

    from privacy.numbers import PICO

    amount(text, option=option, maximum=Fraction(maximum), unit=PICO)
    return text.strip()


def _format(form: Format | None, *, as_json: bool) -> Format:
    if as_json and form not in (None, Format.json):
        raise usage_error(
            "--json and --format are both given",
            why="They are two answers to one question.",
            instead="Give one of them.",
        )
    return Format.json if as_json else form or Format.table


_SQL_READ_MAX = 65_537
"""One more than the limit of the server, which refuses it in words."""


def _sql(text: str | None, file: Path | None) -> str:
    """The statement: typed, from a file, or from the input. Errors: CommandFailed."""
    if file is not None and text is not None:
        raise usage_error(
            "a statement and --file are both given", why="One statement is asked.", instead="Give one of them."
        )
    if file is not None:
        with explained(), file.open("rb") as stream:
            content = stream.read(_SQL_READ_MAX)
        try:
            text = content.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise usage_error(
                f'could not read "{file}"', why="It is not text in UTF-8.", instead="Save it as UTF-8, and ask again."
            ) from None
    elif text == "-" or (text is None and not sys.stdin.isatty()):
        text = sys.stdin.read(_SQL_READ_MAX)
    if text is None or not text.strip():
        raise usage_error(
            "the statement is missing" if text is None else "the statement is empty", why="There is nothing to ask.",
            instead='For instance: noisegate query "SELECT COUNT(*) AS n FROM patients" --dataset demo',
        )  # fmt: skip
    return text


def _parameters(given: list[str]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for item in given:
        name, sign, text = item.partition("=")
        name = name.removeprefix("$")
        if not sign or not name.isidentifier() or name in values:
            raise usage_error(
                "--parameter is not accepted",
                why="It is NAME=VALUE, and each name comes once.",
                instead="For instance: -p age=65 -p region=North (quotes make a number a text: -p 'code=\"7\"')",
            )
        try:
            value = json.loads(text, parse_constant=_no_constant)
        except ValueError:
            value = text
        values[name] = text if isinstance(value, dict | list) else value
    return values


def _no_constant(name: str) -> Any:
    raise ValueError(name)


def _client(place: Home, url: str | None, key: str | None, key_file: Path | None) -> Client:
    from server.cli.remote import connect

    return connect(place.path, url, key, key_file)


def _choose_dataset(client: Client, body: dict[str, Any]) -> None:
    """Fills in the dataset when the caller may ask exactly one."""
    if body["dataset"] is not None:
        return
    from server.cli.remote import one_dataset

    body["dataset"] = one_dataset(client, "Name one with --dataset NAME.")


_VERDICTS = {
    "affordable": "It would be answered.",
    "free": "It would be answered from stored releases, for nothing.",
    "rejected_budget": "It would be refused: the budget does not cover it.",
}


_WIDTHS = ("half_width", "standard_error")


def _show_estimate(answer: dict[str, Any]) -> None:
    price, remaining, after = answer["price"], answer["remaining"], answer["remaining_after"]
    verdict = str(answer["verdict"])
    say(_VERDICTS.get(verdict, printable(verdict)))
    for line in warning_lines(answer):
        say(line, verbatim=True)
    refusal = answer.get("refusal")
    if refusal is not None:
        say(f"  {printable(str(refusal['why']))}", verbatim=True)
        for instead in refusal["instead"]:
            say(f"  - {printable(str(instead))}", verbatim=True)
    delta = f", delta {float(price['delta']):g}" if float(price["delta"]) else ""
    say(f"Price: {part_words(price['epsilon'], price)}{delta}. Remains: {short(remaining['epsilon'])} now, "
        f"{short(after['epsilon'])} afterwards.")  # fmt: skip
    if price.get("raised"):
        say("It is the least price of an answer that reads rows: the answer is more exact than was asked for.")
    own = own_words(price.get("own"))
    if own is not None:
        say(own)
    noisy = [column for column in answer["columns"] if column["kind"] != "key"]
    if noisy:
        say()
        rows = [
            [
                printable(str(column["name"])),
                *(["by rows, below"] * 2 if column.get("by_rows") else map(_known, (column[k] for k in _WIDTHS))),
            ]
            for column in noisy
        ]
        say(table(["column", "± half width", "standard error"], rows, right=frozenset({1, 2})))
        ratios = [column for column in noisy if column.get("by_rows")]
        if any(column["half_width"] is None for column in noisy if column not in ratios):
            say("  (unknown: it is computed from other noisy numbers; the answer has it)")
        if ratios:
            _show_ratios(ratios)
    for item in answer.get("contribution", []):
        if item.get("cut"):
            say(f"{printable(str(item['table']))}: {printable(str(item['cut']))}")
        if item.get("keys") == "thresholded":
            say("Groups with few units are not shown, because the list of groups is not public.")
    curve = answer.get("curve") or []
    names = list(dict.fromkeys(name for point in curve for name in point["standard_errors"]))
    if len(curve) > 1 and len(names) <= 6:
        say("\nPrice and standard errors:")
        rows = [
            [
                short(point["epsilon"]) + ("" if point.get("affordable", True) else " *"),
                *(_at_price(point, name) for name in names),
            ]
            for point in curve
        ]
        ratio = {name for point in curve for name in point.get("by_rows", {})}
        heads = [printable(name) + (f" of {_CURVE_ROWS:,} rows" if name in ratio else "") for name in names]
        say(table(["epsilon", *heads], rows, right=frozenset(range(len(names) + 1))))
        if not all(point.get("affordable", True) for point in curve):
            say("  (* more than the budget covers now)")

    for line in family_lines(answer.get("families") or []):
        say(line, verbatim=True)


_CURVE_ROWS = 1_000


def _at_price(point: dict[str, Any], name: str) -> str:
    sizes = point.get("by_rows", {}).get(name, [])
    of_rows = next((size["standard_error"] for size in sizes if size["rows"] == _CURVE_ROWS), None)
    return _known(point["standard_errors"].get(name) if not sizes else of_rows)


def _show_ratios(ratios: list[dict[str, Any]]) -> None:
    """Averages and the like are the more exact the more rows a group has: the table says how much."""
    sizes = [int(size["rows"]) for size in ratios[0]["by_rows"]]
    rows = [
        [
            printable(str(column["name"])),
            *(f"{_known(size['half_width'])} ({_known(size['standard_error'])})" for size in column["by_rows"]),
        ]
        for column in ratios
    ]
    say("\n± half width (standard error) in a group of so many rows:")
    say(table(["column", *(f"{size:,}" for size in sizes)], rows, right=frozenset(range(1, len(sizes) + 1))))
    worst = [
        f"{printable(str(column['name']))} {_known(column['by_rows'][-1]['standard_error_at_most'])}"
        for column in ratios
    ]
    say(
        "  (if the values are spread evenly over their bounds; whatever they are, the standard error in "
        f"{sizes[-1]:,} rows is at most: {', '.join(worst)})"
    )


def _known(value: Any) -> str:
    """A number with four digits, thousands apart; of large ones the rest are zeros."""
    if value is None:
        return "unknown"
    rounded = float(f"{float(value):.4g}")
    return f"{rounded:,.0f}" if 1_000 <= abs(rounded) < 1e15 else f"{rounded:.4g}"
