"""`noisegate backup` and `noisegate restore`: one file that holds a home, made while it is served, and put back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from server.cli.options import Here, absolute, option
from server.cli.output import printable, progress
from server.cli.serving import take_home

if TYPE_CHECKING:
    from accountant.audit import AuditReport
    from server.backups import Made, Restored

__all__ = ["audit_words", "backup", "bring_back"]


def backup(
    *,
    file: Path = option("FILE", "Where the backup goes: a file that does not exist yet, best on another disk."),
    without_data: bool = option("--without-data", "Leave the copies of the data out; they are attached again.", False),
    here: Here,
) -> None:
    """Make a backup of everything, also while a server runs, and verify it."""
    from server.backups import make_backup

    place = here.place()
    settings = place.settings()
    place.require(settings)
    with progress("making the backup"):
        made = make_backup(settings, absolute(file), data=not without_data)
    ok = made.audit is not None and made.audit.ok and not made.missing
    audited = None if made.audit is None else {"ok": made.audit.ok, "findings": list(map(asdict, made.audit.findings))}
    body = {"ok": ok, "file": str(absolute(file)), "bytes": made.bytes, **asdict(made.contents), "audit": audited}
    here.show({**body, "missing": made.missing}, _made_lines(file, made), failed=not ok)


def _made_lines(file: Path, made: Made) -> Iterator[str]:
    contents = made.contents
    held = f"ledger of {contents.sequence:,} entries, {_datasets(contents.datasets)}"
    left = "" if not contents.left_out else ", without the copies of the data"
    yield f'Wrote "{file}" ({_size(made.bytes)}): {held}{left}, and the secrets of this home.'
    if made.audit is None:
        yield "It was not audited: the ledger has the schema of an older version. See: noisegate migrate --rehearse"
    else:
        yield audit_words(made.audit)
    for snapshot in made.missing:
        yield f'It lacks the copy of data "{printable(snapshot)}", which is not there. See: noisegate doctor'
    yield "Keep it where nobody else can read it: it holds secrets" + ("." if contents.left_out else " and true data.")
    yield "Keep the high-water mark elsewhere, outside all backups: it tells what a restored one has forgotten."


def audit_words(report: AuditReport) -> str:
    """What an audit of a copy came to."""
    if report.ok:
        return f"Audited: every balance follows from its {report.entries:,} entries."
    return f"Audited, and {len(report.findings):,} things do not agree. See: noisegate audit"


def bring_back(*, file: Path = option("FILE", "A backup."), here: Here) -> None:
    """Put a backup into an empty home, where nothing is spent until somebody says what it has forgotten."""
    from server.backups import restore

    place = here.place()
    settings = place.settings()
    place.create()
    with take_home(place, settings), progress("reading the backup"):
        done = restore(settings, absolute(file))
    body = {"home": str(place.path), "newest": done.newest, "older_schema": done.older_schema, **asdict(done.contents)}
    here.show(body, _restored_lines(place.path, done))


def _restored_lines(home: Path, done: Restored) -> Iterator[str]:
    contents = done.contents
    yield f'Restored into "{home}": the ledger as it was {contents.made}, {_datasets(contents.datasets)}.'
    if contents.left_out:
        yield "The copies of the data were left out of this backup. Attach the data: noisegate dataset add FILE"
    if done.older_schema:
        yield "It has the schema of an older version. Bring it to this one: noisegate migrate"
    if done.newest:
        yield "The high-water mark knows of no later charge: nothing was forgotten."
        return
    yield "What was charged after that is forgotten, so nothing is spent until somebody accepts it:"
    yield '  noisegate audit --acknowledge-restore --actor YOU --reason "why"'
    yield "Then lower the limits by what you know was spent: noisegate budget set"


def _datasets(names: tuple[str, ...]) -> str:
    shown = ", ".join(map(printable, names[:5])) + (", ..." if len(names) > 5 else "")
    return f"{len(names)} dataset{'' if len(names) == 1 else 's'}{f' ({shown})' if names else ''}"


def _size(number: int) -> str:
    return f"{number / 2**20:,.1f} MB" if number >= 2**20 else f"{number / 2**10:,.0f} kB"
