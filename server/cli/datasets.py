"""`noisegate init` and `noisegate dataset`: describing data, checking the description, attaching it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

from server.cli.answers import left_out_lines, profile_lines
from server.cli.failure import CommandFailed, UsageError
from server.cli.options import Here, absolute, amount, operator, option
from server.cli.output import as_typed, printable, program, progress, say, table
from server.cli.own_data import About, inspect, renamed_lines
from server.files import write_whole

if TYPE_CHECKING:
    from privacy.refusal import Finding
    from server.home import Home

__all__ = ["add", "check_file", "init", "list_datasets", "profile", "remove", "upgrade_file"]

_NOTICED_SECONDS = 15.0


def init(
    *,
    file: Path = option("FILE", "A CSV, Parquet or DuckDB file."),
    about: About,
    output: Path | None = option("--output -o YAML", "Write it there. Default: standard output."),
    force: bool = option("--force", "Replace a file that exists.", False),
    here: Here,
) -> None:
    """Propose a dataset file from a data file."""
    from server.datasets.inspecting import stem

    about.require_one_unit()
    if output is not None and output.exists() and not force:
        raise UsageError(f"""cannot write "{output}": it exists
            It may hold what you wrote.
            Choose another name with -o,
            or replace it with --force.""")
    folder = Path.cwd() if output is None else absolute(output).parent
    with progress("reading the data"):
        found = inspect(file)
    tables = [replace(item, file=_relative(Path(item.file), folder)) if item.file else item for item in found]
    named = replace(about, dataset=about.dataset or stem(file))
    text = named.proposal(tables, _relative(absolute(file), folder))
    text = text.replace("noisegate dataset check THIS_FILE", f"{program()} dataset check THIS_FILE", 1).rstrip("\n")
    text = "\n".join([text, *(f"# {printable(line)}" for line in _advised(here.place(), named.dataset or "")), ""])
    lines = [text.rstrip("\n")]
    if output is not None:
        write_whole(output, text)
        lines = [line[:1].upper() + line[1:] for line in renamed_lines(found)]
        lines += about.guessed(found)
        lines += [f'Wrote "{output}". Fill in what it asks for, then:']
        lines += [as_typed(f"  noisegate dataset check {output}\n  noisegate dataset add {output}")]
    here.show({"file": None if output is None else str(absolute(output)), "text": text}, lines, verbatim=True)


def _relative(file: Path, folder: Path) -> str:
    """The file as a dataset file in that folder names it: relative when it is inside, else absolute."""
    return (file.relative_to(folder) if file.is_relative_to(folder) else file).as_posix()


def check_file(*, file: Path = option("FILE", "A dataset file (YAML)."), here: Here) -> None:
    """Report every finding in a dataset file at once; exit code 1 when there is an error."""
    from engines.inspect import source_columns
    from server.datasets import check, is_error, listed, load

    with progress("reading the heads of the data files"):
        findings = check(file, headers=source_columns)
    if not any(map(is_error, findings)):
        findings += _statistics(file)
    errors = [finding for finding in findings if is_error(finding)]
    warnings = _count(len(findings) - len(errors), "warning") if len(findings) > len(errors) else ""
    beside = f", with {warnings}" if warnings else ""
    verdict = (
        f'"{file}" is in order{beside}: what it declares, and the names of columns in its data files. '
        f"Rows are checked when it is attached: noisegate dataset add {file}"
    )
    if not errors and _statistics_wait(file):
        verdict += "\nIts statistics are checked then too, because keys of public tables are read by then."
    if errors:
        verdict = f'"{file}" has {_count(len(errors), "error")}{f" and {warnings}" if warnings else ""}.'
    advised = [] if errors else _advised(here.place(), load(file).dataset, file)
    body = {"ok": not errors, "findings": [listed(finding) for finding in findings], "profile": advised}
    here.show(body, [*map(_paragraph, findings), *map(printable, advised), verdict], failed=bool(errors))


def _statistics(file: Path) -> list[Finding]:
    """Why registered statistics cannot be answered; of tables that take keys from rows, attaching them says it."""
    from server.datasets import load, to_dataset
    from server.datasets.own_statistics import judge_statistics

    declared = load(file)
    if not declared.statistics or _statistics_wait(file):
        return []
    return judge_statistics(to_dataset(declared, policy_version=1, data_version="draft", public_values=None))


def _statistics_wait(file: Path) -> bool:
    """Whether statistics cannot be judged yet, because keys are those of a public table, whose rows are not read."""
    from server.datasets import load, public_columns

    declared = load(file)
    return bool(declared.statistics and public_columns(declared))


def _advised(place: Home, name: str, file: Path | None = None) -> list[str]:
    """What the profile that this home has published of a dataset advises about its file; nothing without a home."""
    from server.datasets import load
    from server.datasets.profiled import profile_advice
    from server.published import Published

    if not place.path.is_dir() or not place.has_ledger(place.settings()):
        return []
    with place.opened() as (_, ledger, registry):
        served = [version for version in registry.datasets() if version.name == name]
        profile = Published(ledger).find(name, served[0].data_version) if served else None
    return [] if profile is None else profile_advice(profile, None if file is None else load(file))


@contextlib.contextmanager
def _shown(file: Path, *, refused: str, why: str) -> Iterator[None]:
    """Shows every finding of a dataset file that has errors. Errors: CommandFailed."""
    from server.datasets import DatasetFileRefused

    try:
        yield
    except DatasetFileRefused as error:
        say("\n".join(map(_paragraph, error.findings)), error=True)
        raise CommandFailed(f"""could not {refused} "{file}": it has {"errors" if len(error.errors) > 1 else "an error"}
            {why}
            Correct what is listed above, then see: noisegate dataset check {file}""") from None


def upgrade_file(
    *,
    file: Path = option("FILE", "A dataset file (YAML)."),
    check: bool = option("--check", "Change nothing; exit code 1 when the file is of an older version.", False),
    here: Here,
) -> None:
    """Rewrite a dataset file in the current format, with the same meaning."""
    from server.datasets import upgrade
    from server.datasets.model import VERSION
    from server.datasets.reading import SIZE_MAX

    with file.open("rb") as stream:
        content = stream.read(SIZE_MAX + 1)
    with _shown(file, refused="upgrade", why="Only a file without errors has a meaning to keep. It stays as it is."):
        done = upgrade(content.decode("utf-8-sig", "surrogateescape"))
    target = file if done.kept else file.with_name(f"{file.stem}.v{VERSION}{file.suffix}")
    if target != file and target.exists():
        raise CommandFailed(f"""cannot write "{target}": it exists
            The new text of "{file}" would be written there, because its style could not be kept.
            Move it away, then run the command again.""")
    changed = bool(done.changes) and not check
    if changed:
        write_whole(target, done.text)
    lines = [f"  {printable(change)}" for change in done.changes]
    if not done.changes:
        lines += [f'"{file}" is of version {VERSION} already.']
    elif check:
        lines += [as_typed(f'"{file}" is of an older version. Rewrite it with: noisegate dataset upgrade {file}')]
    elif target == file:
        lines += [f'"{file}" is of version {VERSION} now.']
    else:
        kept = f'the way in which "{file}" is written could not be kept. It stays as it is.'
        lines += [f'Wrote "{target}", without comments: {kept}']
    body = {"version": VERSION, "changed": changed, "file": str(target), "changes": list(done.changes)}
    here.show(body, lines, verbatim=True, failed=check and bool(done.changes))


def add(*, file: Path = option("FILE", "A dataset file (YAML)."), here: Here) -> None:
    """Attach the data that a dataset file describes, or a new version of it."""
    from engines.stored import open_snapshot
    from server.administration.datasets import AttachDataset, LocalFile, attach
    from server.administration.registered import RegisteredDatasets
    from server.build import open_catalogue
    from server.datasets import load

    place = here.place()
    with place.opened() as (settings, ledger, registry):
        with _shown(file, refused="attach", why="A file with errors describes nothing. What is served stays."):
            name = load(file).dataset
        with progress(f"reading and verifying the data of {name}"):
            # A version that somebody else attaches from here on is not replaced.
            wanted = AttachDataset(LocalFile(file.resolve()), replaces=RegisteredDatasets(registry).tag(name))
            catalogue = open_catalogue(settings, registry, ledger)
            dataset = attach(catalogue, wanted, actor=operator())
            snapshot = open_snapshot(catalogue.snapshot(dataset))
        without_budget = not ledger.accounts(dataset=name)
        shared = [account.dataset for account in ledger.accounts(space=dataset.space) if account.dataset != name]
    version = {"policy_version": dataset.policy_version, "data_version": dataset.data_version}
    noticed = place.wait_served(lambda served: served.get(name) == [*version.values()], seconds=_NOTICED_SECONDS)
    left_out = [] if snapshot is None else list(snapshot.report.left_out())
    versions = f"policy version {dataset.policy_version}, data version {dataset.data_version}"
    lines = [f"Dataset {name} is attached: {versions}.", *left_out_lines(snapshot)]
    lines += [_NOT_NOTICED] * (noticed is False)
    if shared:
        beside = ", ".join(sorted(set(shared)))
        lines += [f"Its budgets share the root of unit space {dataset.space}, with those of {beside}."]
    if without_budget:
        lines += ["Whoever asks needs a budget for it:"]
        if not shared:
            lines += [f"  noisegate budget set --dataset {name} --epsilon 20 --delta 0.00001"]
        lines += [f"  noisegate budget set --dataset {name} --principal NAME --epsilon 5 --delta 0.000001"]
    here.show({"dataset": name, **version, "served": noticed, "left_out": left_out}, lines)


_NOT_NOTICED = "The running server has not noticed yet. Several processes do within seconds; else see its log."


def list_datasets(here: Here) -> None:
    """List the datasets that are served, with their versions."""
    with here.place().opened() as (_, _, registry):
        versions = registry.datasets()
    body, rows = [], []
    for version in versions:
        parts = {"policy_version": version.policy_version, "data_version": version.data_version}
        by = {"attached": version.created, "by": version.actor}
        body.append({"dataset": version.name, "tables": list(version.tables), **parts, **by})
        tables = ", ".join(version.tables) or "(cannot be read: noisegate doctor)"
        rows.append([version.name, tables, version.policy_version, version.data_version[:16], version.created[:10]])
    shown = table(["dataset", "tables", "policy", "data", "attached"], rows, right=(2,))
    here.show(body, [shown if versions else as_typed(_NO_DATASET)], verbatim=True)


_NO_DATASET = """No dataset is attached yet. Describe your data, then attach it:
  noisegate init people.csv --unit person_id -o people.yaml
  noisegate dataset add people.yaml"""


def remove(*, name: str = option("NAME", "The dataset."), here: Here) -> None:
    """Stop serving a dataset. Its budgets, entries and releases stay: attached again, it finds what was spent."""
    from server.administration import datasets as administration
    from server.administration.registered import RegisteredDatasets

    place = here.place()
    with place.opened() as (_, _, registry):
        registered = RegisteredDatasets(registry)
        administration.remove(registered, name, served=registered.names, actor=operator())
    noticed = place.wait_served(lambda served: name not in served, seconds=_NOTICED_SECONDS)
    lines = [f"Dataset {name} is not served any more. What was spent on it stays in the ledger."]
    body = {"dataset": name, "result": "removed", "served": None if noticed is None else not noticed}
    here.show(body, lines + [_NOT_NOTICED] * (noticed is False))


def profile(
    *,
    name: str = option("NAME", "The dataset."),
    epsilon: str = option("--epsilon E", "What it takes of the dataset's root account.", ...),
    here: Here,
) -> None:
    """Make a private profile of the data, and publish it to those who may ask."""
    from privacy.numbers import PICO
    from server.administration.profiles import ProfileDataset
    from server.build import open_profiles

    wanted = ProfileDataset(name, amount(epsilon, option="--epsilon", maximum=Fraction(10**6), unit=PICO))
    place = here.place()
    with (
        place.opened() as (settings, ledger, registry),
        open_profiles(settings, ledger, registry) as profiles,
        progress(f"profiling the data of {name}"),
    ):
        made = dict(profiles.make(wanted, actor=operator()))
    lines = [*profile_lines(made), f"Published: noisegate describe {name} shows it to everyone who may ask."]
    here.show({"dataset": name, "profile": made}, lines, verbatim=True)


def _paragraph(finding: Finding) -> str:
    from server.datasets import paragraph

    return "\n".join(printable(line) for line in paragraph(finding).splitlines())


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"
