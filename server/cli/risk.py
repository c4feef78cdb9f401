"""`noisegate dataset risk`: what the owner's own machine counts about how easily people could be told apart."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from server.cli.failure import CommandFailed, UsageError
from server.cli.options import Here, option
from server.cli.output import printable, progress, table

if TYPE_CHECKING:
    from privacy.policy import Dataset, Table
    from server.administration.risk import Classes, Risk

__all__ = ["risk"]


def risk(
    *,
    name: str = option("NAME", "The dataset."),
    columns: str = option("--columns LIST", "What others may know of a person, with commas: age,sex,town.", ...),
    table_name: str | None = option("--table TABLE", "The table that has them. Default: the privacy unit's."),
    k: int = option("--k K", "How many people each class shall have, for the coarser columns.", 5, min=2),
    here: Here,
) -> None:
    """Count how easily people could be told apart by what others know. True counts, for the owner alone."""
    from server.administration import risk as risks
    from server.build import open_catalogue

    with here.place().opened() as (settings, _, registry):
        catalogue = open_catalogue(settings, registry)
        dataset = catalogue.get(name)
        if dataset is None:
            known = ", ".join(item.name for item in catalogue.all()) or "none"
            raise CommandFailed(f"""there is no dataset "{name}"
                Attached are: {known}.
                Attach one with: noisegate dataset add""")
        found = _table(dataset, table_name)
        chosen = _columns(dataset, found, columns)
        with progress(f"counting classes in {name}"):
            report = risks.measure(catalogue.snapshot(dataset), dataset, found, chosen, k=k)
    here.show(_body(report), _lines(report), verbatim=True)


def _table(dataset: Dataset, name: str | None) -> Table:
    found = dataset.table(name or dataset.unit.table)
    if found is None or not found.protected:
        people = ", ".join(item.name for item in dataset.tables if item.protected)
        raise UsageError(f"""--table names no table of people: "{name}"
            Tables of people: {people}.
            Name one of them.""")
    return found


def _columns(dataset: Dataset, found: Table, text: str) -> list[str]:
    from server.administration.risk import COLUMNS_MAX, suitable

    known = {name.lower(): name for name in suitable(dataset, found)}
    wanted = list(dict.fromkeys(part.strip().lower() for part in text.split(",") if part.strip()))
    absent = [part for part in wanted if part not in known]
    if absent or not 0 < len(wanted) <= COLUMNS_MAX:
        wrong = f'"{absent[0]}" is not among them' if absent else f"name 1 to {COLUMNS_MAX} of them"
        raise UsageError(f"""--columns is not accepted: {wrong}
            Columns of {found.name} that say something of a person: {", ".join(known.values()) or "none"}.
            For instance --columns {",".join(list(known.values())[:3])}""")
    return [known[part] for part in wanted]


def _lines(report: Risk) -> list[str]:
    classes = report.classes
    if not classes.units:
        return [f"{report.table} has no rows of people."]
    by = " and ".join(report.columns) if len(report.columns) < 3 else ", ".join(report.columns)
    shown = [
        [f"{low}" if high == low else f"{low} to {high}" if high else f"{low} and more", f"{units:,}", f"{share:.1%}"]
        for low, high, units, share in classes.buckets()
    ]
    lines = [
        f"True counts, without noise: for the owner of the data alone. {report.table}, by {printable(by)}:",
        table(["people who agree", "people", "share"], shown, right=(1, 2)),
        f"k: {classes.least}. Found for certain: {classes.certain:.1%}. Guessed rightly: {classes.guessed:.1%}.",
    ]
    if len(report.columns) > 1:
        alone = zip(report.columns, report.alone, strict=True)
        rows = [[printable(name), one.least, f"{one.certain:.1%}", f"{one.guessed:.1%}"] for name, one in alone]
        lines += [table(["alone", "k", "certain", "guessed"], rows, right=(1, 2, 3))]
    coarse = report.generalised
    if coarse is None:
        lines += ["Even without these columns a class has fewer people than --k asks for."]
    else:
        kept = [sql or f"{column.column} left out" for column, sql in coarse.columns]
        lines += [f"Classes of at least {coarse.k}: {printable(', '.join(kept))} (then k is {coarse.classes.least})."]
    attack = report.differencing
    lines += [
        "Two exact counts, with and without one person, tell for certain. "
        f"With noise at epsilon {attack.epsilon}: right in {attack.noisy:.1%} of trials; "
        f"no attack on them passes {attack.limit:.1%} (50 % is a coin)."
    ]
    return lines


def _body(report: Risk) -> dict[str, object]:
    coarse = report.generalised
    return {
        "table": report.table,
        "columns": list(report.columns),
        "classes": _classes(report.classes),
        "alone": {name: _classes(one) for name, one in zip(report.columns, report.alone, strict=True)},
        "generalised": None
        if coarse is None
        else {
            "k": coarse.k,
            "columns": [{**asdict(column), "sql": sql} for column, sql in coarse.columns],
            "classes": _classes(coarse.classes),
        },
        "differencing": {
            "epsilon": str(report.differencing.epsilon),
            "exact": report.differencing.exact,
            "noisy": report.differencing.noisy,
            "limit": report.differencing.limit,
        },
    }


def _classes(classes: Classes) -> dict[str, object]:
    return {
        "units": classes.units,
        "k": classes.least,
        "certain": classes.certain,
        "guessed": classes.guessed,
        "sizes": [list(pair) for pair in classes.sizes],
    }
