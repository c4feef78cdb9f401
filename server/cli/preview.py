"""`noisegate dataset preview`: questions tried on invented rows, before anybody may ask them of people's."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

from server.cli.failure import CommandFailed, UsageError
from server.cli.options import Here, amount, option
from server.cli.output import printable, progress, table

if TYPE_CHECKING:
    from privacy.policy import Dataset
    from server.administration.preview import Tried
    from server.store.registry import Registry
    from server.store.resources import SyntheticRow

__all__ = ["preview"]

_EPSILONS = "0.1,0.5,1"
_QUESTIONS_MAX = 100
_EPSILONS_MAX = 10


def preview(
    *,
    name: str = option("NAME", "The dataset."),
    questions: Path = option("--questions FILE", "The questions, separated by empty lines.", ...),
    epsilons: str = option("--epsilons LIST", "What an answer promises by itself, with commas.", _EPSILONS),
    units: int | None = option("--units N", "How many people are invented. Default: 5000.", min=10, max=100_000),
    runs: int = option("--runs N", "How often each question is answered at each epsilon.", 10, min=1, max=200),
    budget: str = option("--budget E", "The limit of an account that asks.", "10"),
    delta: str = option("--delta D", "Its delta; 0 for an account of pure epsilon.", "0.000001"),
    synthetic: str | None = option("--synthetic ID", "Take the rows of its table from this synthetic table."),
    here: Here,
) -> None:
    """Try questions on invented rows: the expected error of each at several epsilons. Reads no row of people."""
    from accountant.account import Limit
    from server.administration.preview import questions_of, try_question
    from server.build import open_catalogue, open_preview
    from server.datasets.invented import UNITS_DEFAULT, invent
    from server.services import DatasetRefused

    asked = questions_of(questions.read_text("utf-8"))
    if not 0 < len(asked) <= _QUESTIONS_MAX:
        raise UsageError(f"""--questions is not accepted: "{questions}" has {len(asked)} questions
            It needs 1 to {_QUESTIONS_MAX}, separated by empty lines.
            For instance SELECT COUNT(*) FROM people""")
    prices = _prices(epsilons)
    none = delta.strip() == "0"
    share = (
        Fraction(0) if none else amount(delta, option="--delta", maximum=Fraction(1, 1000), unit=Fraction(1, 10**15))
    )
    limit = Limit(amount(budget, option="--budget", maximum=Fraction(1000), unit=Fraction(1, 10**6)), share)
    with here.place().opened() as (settings, _, registry):
        catalogue = open_catalogue(settings, registry)
        dataset = catalogue.get(name)
        version = next((one for one in registry.datasets() if one.name == name), None)
        if dataset is None or version is None or version.document is None:
            known = ", ".join(item.name for item in catalogue.all()) or "none"
            raise CommandFailed(f"""there is no dataset "{name}"
                Attached are: {known}.
                Attach one with: noisegate dataset add""")
        drawn = {} if synthetic is None else _drawn(registry, dataset, synthetic)
    invented = invent(dataset, units=UNITS_DEFAULT if units is None else units, drawn=drawn)
    tried: list[Tried] = []
    try:
        with contextlib.ExitStack() as stack:
            stack.enter_context(progress(f"trying {len(asked)} questions at {len(prices)} prices, {runs} times each"))
            bench = stack.enter_context(open_preview(dataset, version.document, invented, limit))
            for sql in asked:
                tried += try_question(bench, sql, prices, runs=runs)
    except DatasetRefused as refused:
        raise CommandFailed(f"""could not invent rows of "{name}"
            {refused.findings[0].what}: {refused.findings[0].why}
            Try it with --synthetic, or declare what the rows of that table are like.""") from None
    sizes = {made.table.name: made.rows for made in invented.tables}
    body = {"rows": sizes, "assumed": list(invented.assumed), "questions": [_body(one) for one in tried]}
    here.show(body, _lines(tried, sizes, invented.assumed, asked), verbatim=True)


def _prices(text: str) -> list[Fraction]:
    parts = list(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    if not 0 < len(parts) <= _EPSILONS_MAX:
        raise UsageError(f"""--epsilons is not accepted: {len(parts)} of them
            Name 1 to {_EPSILONS_MAX}.
            For instance --epsilons {_EPSILONS}""")
    return [amount(part, option="--epsilons", maximum=Fraction(1000), unit=Fraction(1, 10**12)) for part in parts]


def _drawn(registry: Registry, dataset: Dataset, table_id: str) -> Mapping[str, Mapping[str, Sequence[object]]]:
    """The columns of a synthetic table, as those of the table that it stands for. Errors: CommandFailed."""
    from server.store.resources import SYNTHETICS
    from server.synthetic.content import unpacked

    row: SyntheticRow | None = registry.resource(SYNTHETICS, table_id)
    content = None if row is None else registry.synthetic_content(table_id)
    if row is None or row.dataset != dataset.name or content is None:
        raise CommandFailed(f"""there is no synthetic table "{table_id}" of {dataset.name}
            Its rows are gone, or it was made of another dataset.
            List those that are there with: noisegate synthetic list""")
    made = unpacked("drawn", content)
    return {str(json.loads(row.terms)["table"]): {column.name: column.values for column in made.columns}}


def _lines(tried: Sequence[Tried], sizes: Mapping[str, int], assumed: Sequence[str], asked: Sequence[str]) -> list[str]:
    made = ", ".join(f"{name} {rows:,}" for name, rows in sizes.items())
    lines = [f"Invented rows, from declarations: {made}. No row of people was read, and nothing was charged."]
    if assumed:
        lines.append(f"Nothing is declared of {', '.join(map(printable, assumed))}: what they hold is a guess.")
    for sql in dict.fromkeys(asked):
        lines += ["", printable(" ".join(sql.split()))]
        rows = []
        for one in (one for one in tried if one.sql == sql):
            epsilon = f"{float(one.epsilon):g}"
            if one.refused is not None:
                lines.append(printable(f"  epsilon {epsilon}: no answer. {one.refused}"))
            shown = "" if one.shown is None else f"{one.shown:.0%}"
            for column in one.columns:
                part = "" if column.relative is None else f"{column.relative:.1%}"
                stated = "" if column.stated is None else f"{column.stated:.4g}"
                right = "" if column.right is None else f"{column.right:.0%}"
                value, error = ("" if number is None else f"{number:.4g}" for number in (column.value, column.error))
                error = f"{error} {column.unit}".strip()
                named = printable(column.name)
                rows.append([epsilon, named, "" if column.unit == "days" else value, error, part, stated, right, shown])
            if not one.columns and one.refused is None:
                rows.append([epsilon, "", "", "", "", "", "", shown])
        if rows:
            heads = ["epsilon", "column", "value", "error", "of value", "stated", "right", "rows shown"]
            lines.append(table(heads, rows, right=(0, 2, 3, 4, 5, 6, 7)))
    return lines


def _body(one: Tried) -> dict[str, object]:
    return {
        "sql": one.sql,
        "epsilon": str(float(one.epsilon)),
        "refused": one.refused,
        "shown": one.shown,
        "columns": [
            {
                "name": column.name,
                "value": column.value,
                "error": column.error,
                "relative": column.relative,
                "stated": column.stated,
                "unit": column.unit,
                "right": column.right,
            }
            for column in one.columns
        ],
    }
