"""`noisegate init` and `noisegate dataset`: describing data, checking the description, attaching it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from server.cli.explaining import explained
from server.cli.failure import CommandFailed, usage_error
from server.cli.home import Home, check_schema, lost_failure, lost_snapshots
from server.cli.options import (
    Here,
    absolute,
    argument,
    flag,
    operator,
    option,
)
from server.cli.output import print_json, printable, program, progress, say, table
from server.files import write_whole

if TYPE_CHECKING:
    from engines.stored import SnapshotReport
    from privacy.refusal import Finding
    from server.settings import Settings
    from server.store.versions import DatasetVersion

__all__ = ["add", "check_file", "init", "list_datasets", "remove", "upgrade_file"]

_NOTICED_SECONDS = 15.0


def init(
    *,
    file: Path = argument("FILE", "A CSV, Parquet or DuckDB file."),
    unit: str | None = option("--unit COLUMN", "The column that says whose row it is: a person, a household."),
    output: Path | None = option("--output -o YAML", "Write it there. Default: standard output."),
    dataset: str | None = option("--dataset NAME", "Name of the dataset."),
    unit_table: str | None = option("--table NAME", "The table with one row per unit, if several have it."),
    each_row: bool = flag("--each-row", "Each row is one unit, a person with one row; no column names them."),
    force: bool = flag("--force", "Replace a file that exists."),
    here: Here,
) -> None:
    """Propose a dataset file from a data file.

    From its names and types. Bounds of numbers and lists of groups are asked for in the text and never read from rows:
    what is read from rows tells about people.

    \b
    examples
      noisegate init people.csv --unit person_id -o people.yaml
      noisegate init clinic.duckdb --unit patient_id --table patients > clinic.yaml
      noisegate init survey.csv --each-row -o survey.yaml
    """
    from server.cli.own_data import inspect, proposing, renamed_lines
    from server.datasets import propose
    from server.datasets.inspecting import stem

    here.place()  # what the advice names
    if each_row and unit is not None:
        raise usage_error(
            "--unit and --each-row exclude each other",
            why="Either a column names the unit, or each row is one.",
            instead="Keep --unit where one person may have several rows.",
        )
    if output is not None and output.exists() and not force:
        raise usage_error(
            f'"{output}" exists',
            why="It may hold what you wrote.",
            instead=("Choose another name with -o,", "or replace it with --force."),
        )
    folder = Path.cwd() if output is None else absolute(output).parent
    with progress("reading the data"):
        found = inspect(file)
    with proposing(found, unit):
        text = propose(
            [replace(item, file=_relative(Path(item.file), folder)) if item.file else item for item in found],
            unit=unit,
            file=_relative(absolute(file), folder),
            dataset=dataset or stem(file),
            unit_table=unit_table,
            rows_are_units=each_row,
        )
    text = text.replace("noisegate dataset check THIS_FILE", f"{program()} dataset check THIS_FILE", 1)
    if output is not None:
        with explained():
            write_whole(output, text)
    if here.as_json:
        print_json({"file": None if output is None else str(absolute(output)), "text": text})
    elif output is None:
        say(text.rstrip("\n"), verbatim=True)
    else:
        for line in renamed_lines(found):
            say(line[:1].upper() + line[1:], verbatim=True)
        say(f'Wrote "{output}". Fill in what it asks for, then:')
        say(f"  noisegate dataset check {output}\n  noisegate dataset add {output}")


def _relative(file: Path, folder: Path) -> str:
    """The file as a dataset file in that folder names it: relative when it is inside, else absolute."""
    return (file.relative_to(folder) if file.is_relative_to(folder) else file).as_posix()


def check_file(*, file: Path = argument("FILE", "A dataset file (YAML)."), here: Here) -> None:
    """Report every finding in a dataset file at once; exit code 1 when there is an error.

    Of data files it looks at the kind and the names of the columns, not at rows.

    \b
    examples
      noisegate dataset check people.yaml
      noisegate dataset check people.yaml --json
    """
    from engines.inspect import source_columns
    from server.datasets import check, is_error

    here.place()  # what the advice names
    with explained(), progress("reading the heads of the data files"):
        findings = check(file, headers=source_columns)
    errors = [finding for finding in findings if is_error(finding)]
    warnings = f" ({_count(len(findings) - len(errors), 'warning')})" if len(findings) > len(errors) else ""
    if here.as_json:
        print_json({"ok": not errors, "findings": [_finding_body(finding) for finding in findings]})
    else:
        _print_findings(findings, error=False)
        say(
            f'"{file}" has {_count(len(errors), "error")}{warnings}.'
            if errors
            else f'"{file}" is in order{warnings}. Attach it with: noisegate dataset add {file}'
        )
    if errors:
        raise typer.Exit(1)


def upgrade_file(
    *,
    file: Path = argument("FILE", "A dataset file (YAML)."),
    check: bool = flag("--check", "Change nothing; exit code 1 when the file is of an older version."),
    here: Here,
) -> None:
    """Rewrite a dataset file for the format of today, with the same meaning.

    Comments and order stay. Where they cannot, the file is left as it is and a new one is written beside it.

    \b
    examples
      noisegate dataset upgrade people.yaml
      noisegate dataset upgrade people.yaml --check
    """
    from server.datasets import DatasetFileRefused, upgrade
    from server.datasets.model import VERSION
    from server.datasets.reading import SIZE_MAX

    here.place()  # what the advice names
    with explained(), file.open("rb") as stream:
        content = stream.read(SIZE_MAX + 1)
    try:
        done = upgrade(content.decode("utf-8-sig", "surrogateescape"))
    except DatasetFileRefused as refused:
        _print_findings(refused.errors, error=True)
        raise CommandFailed(
            f'could not upgrade "{file}": it has errors',
            why="Only a file without errors has a meaning that can be kept. The file stays as it is.",
            instead=f"Correct them, then see: noisegate dataset check {file}",
        ) from None
    target = file if done.kept else file.with_name(f"{file.stem}.v{VERSION}{file.suffix}")
    if target != file and target.exists():
        raise CommandFailed(
            f'"{target}" exists',
            why=f'The new text of "{file}" would be written there, because its style could not be kept.',
            instead="Move it away, then run the command again.",
        )
    changed = bool(done.changes) and not check
    if changed:
        with explained():
            write_whole(target, done.text)
    if here.as_json:
        print_json({"version": VERSION, "changed": changed, "file": str(target), "changes": list(done.changes)})
    else:
        for change in done.changes:
            say(f"  {printable(change)}", verbatim=True)
        if not done.changes:
            say(f'"{file}" is of version {VERSION} already.', verbatim=True)
        elif check:
            say(f'"{file}" is of an older version. Rewrite it with: noisegate dataset upgrade {file}')
        elif target == file:
            say(f'"{file}" is of version {VERSION} now.', verbatim=True)
        else:
            kept = f'the way in which "{file}" is written could not be kept. It stays as it is.'
            say(f'Wrote "{target}", without comments: {kept}', verbatim=True)
    if check and done.changes:
        raise typer.Exit(1)


def add(*, file: Path = argument("FILE", "A dataset file (YAML)."), here: Here) -> None:
    """Attach the data that a dataset file describes, or a new version of it.

    Everything that the file declares is verified on every row, and an immutable snapshot is made. What is served stays
    as it was when anything is refused. A running server serves the new version at once.

    \b
    examples
      noisegate dataset add people.yaml
      noisegate dataset add people.yaml --home /srv/noisegate --json
    """
    from server.datasets import DatasetFileRefused, load

    place = here.place()
    settings = place.settings()
    place.require(settings)
    with explained(place.path):
        try:
            name = load(file).dataset
        except DatasetFileRefused as refused:
            _print_findings(refused.findings, error=True)
            raise CommandFailed(
                f'could not attach "{file}": it has {_count(len(refused.errors), "error")}',
                why="A dataset is attached when its file has no errors. What is served stays as it was.",
                instead=f"Correct them, then see: noisegate dataset check {file}",
            ) from None
    with progress(f"reading and verifying the data of {name}"):
        result = attach(place, settings, file)
    if here.as_json:
        print_json(result)
        return
    say(f"Dataset {name} is attached: policy version {result['policy_version']}, "
        f"data version {result['data_version']}.")  # fmt: skip
    for part in result["left_out"]:
        what = f"texts of column {part['column']} were cut" if "column" in part else "rows were left out"
        say(f"In table {part['table']}, {part['rows']:,} {what}: see {part['limit']} in docs/datasets.md.")
    if result["served"] is False:
        say(_NOT_NOTICED)
    with place.opened() as (_, ledger, _):
        if ledger.accounts(dataset=name):
            return
    say("Whoever asks needs a budget for it:")
    say(f"  noisegate budget set --dataset {name} --epsilon 20 --delta 0.00001")
    say(f"  noisegate budget set --dataset {name} --principal NAME --epsilon 5 --delta 0.000001")


def attach(place: Home, settings: Settings, file: Path) -> dict[str, Any]:
    """Attaches a dataset file. A server of this home notices it by itself. Errors: CommandFailed."""
    from engines.stored import open_snapshot
    from server.administration import datasets as administration
    from server.administration.registered import RegisteredDatasets
    from server.build import open_catalogue
    from server.datasets import load

    with explained(place.path), place.registry(settings) as registry:
        check_schema(registry)
        name = load(file).dataset
        registered = RegisteredDatasets(registry)
        for lost in lost_snapshots(settings, registry):
            if lost != name:
                raise lost_failure(lost)
            # It is made again now; until then nothing could be read from it.
            administration.remove(registered, name, served=registered.names, actor=operator())
        # A version that somebody else attaches from here on is not replaced.
        wanted = administration.AttachDataset(administration.LocalFile(file.resolve()), replaces=registered.tag(name))
        catalogue = open_catalogue(settings, registry)
        dataset = administration.attach(catalogue, wanted, actor=operator())
        snapshot = open_snapshot(catalogue.snapshot(dataset))
    version: list[int | str] = [dataset.policy_version, dataset.data_version]
    return {
        "dataset": dataset.name,
        "policy_version": dataset.policy_version,
        "data_version": dataset.data_version,
        "served": _wait_served(place, lambda served: served.get(name) == version),
        "left_out": [] if snapshot is None else _left_out(snapshot.report),
    }


def _left_out(report: SnapshotReport) -> list[dict[str, Any]]:
    """What the limits of rows and texts left out, true counts: for whoever attaches the data."""
    found: list[dict[str, Any]] = []
    for stored in report.tables:
        if stored.rows_beyond:
            found.append({"table": stored.name, "limit": "rows_stored_per_unit", "rows": stored.rows_beyond})
        for column, count in stored.texts_cut:
            found.append({"table": stored.name, "limit": "length_max", "column": column, "rows": count})
    return found


def _wait_served(place: Home, done: Callable[[dict[str, Any]], bool]) -> bool | None:
    """Whether the server of this home has noticed; None when none serves it."""
    deadline = time.monotonic() + _NOTICED_SECONDS
    while (record := place.serving()) is not None:
        served = record.get("datasets")
        if isinstance(served, dict) and done(served):
            return True
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return None


_NOT_NOTICED = "The running server has not noticed yet. Several processes do within seconds; else see its log."


def list_datasets(here: Here) -> None:
    """List the datasets that are served, with their versions.

    \b
    examples
      noisegate dataset list
      noisegate dataset list --json
    """
    with here.place().opened() as (_, _, registry):
        versions = registry.datasets()
    if here.as_json:
        print_json(
            [
                {
                    "dataset": version.name,
                    "tables": _tables(version),
                    "policy_version": version.policy_version,
                    "data_version": version.data_version,
                    "attached": version.created,
                    "by": version.actor,
                }
                for version in versions
            ]
        )
        return
    if not versions:
        say("No dataset is attached yet. Describe your data, then attach it:")
        say("  noisegate init people.csv --unit person_id -o people.yaml")
        say("  noisegate dataset add people.yaml")
        return
    rows = [
        [
            version.name,
            printable(", ".join(_tables(version)) or "(cannot be read: noisegate doctor)"),
            str(version.policy_version),
            version.data_version[:16],
            version.created[:10],
        ]
        for version in versions
    ]
    say(table(["dataset", "tables", "policy", "data", "attached"], rows, right=(2,)), verbatim=True)


def _tables(version: DatasetVersion) -> list[str]:
    """The tables of a stored dataset; none where its description cannot be read."""
    tables = (version.document or {}).get("tables")
    return [str(name) for name in tables] if isinstance(tables, dict) else []


def remove(*, name: str = argument("NAME", "The dataset."), here: Here) -> None:
    """Stop serving a dataset. Its budgets, entries and releases stay: attached again, it finds what was spent.

    \b
    examples
      noisegate dataset remove clinic
    """
    from server.administration import datasets as administration
    from server.administration.registered import RegisteredDatasets

    place = here.place()
    with place.opened() as (_, _, registry):
        registered = RegisteredDatasets(registry)
        administration.remove(registered, name, served=registered.names, actor=operator())
    noticed = _wait_served(place, lambda served: name not in served)
    if here.as_json:
        print_json({"dataset": name, "result": "removed", "served": None if noticed is None else not noticed})
        return
    say(f"Dataset {name} is not served any more. What was spent on it stays in the ledger.")
    if noticed is False:
        say(_NOT_NOTICED)


# Words


def _finding_body(finding: Finding) -> dict[str, Any]:
    from server.datasets import severity

    at = finding.position
    return {
        "severity": severity(finding),
        "place": finding.field or "",
        "line": None if at is None else at.line,
        "column": None if at is None else at.column,
        "what": finding.what,
        "why": finding.why,
        "instead": " ".join(finding.instead),
    }


def _print_findings(findings: Sequence[Finding], *, error: bool) -> None:
    from server.datasets import paragraph

    for finding in findings:
        say("\n".join(printable(line) for line in paragraph(finding).splitlines()), error=error)


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"
