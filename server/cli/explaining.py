"""Errors of the ledger, the registry, datasets, settings and the system, and refused acts, as messages of a command."""

from __future__ import annotations

import errno
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from privacy.refusal import Finding
from server.cli.failure import CommandFailed, UsageError

if TYPE_CHECKING:
    from server.administration.refusal import Refusal

__all__ = ["explained", "failure_of"]


@contextmanager
def explained(home: Path | None = None) -> Iterator[None]:
    """Turns the errors of the ledger, the registry, datasets, settings and the system into `CommandFailed`."""
    try:
        yield
    except (CommandFailed, BrokenPipeError):
        raise
    except OSError as error:
        raise _of_system(error, home) from None
    except Exception as error:
        known = _of_program(error)
        if known is None:
            raise
        raise known from None


_IN_THE_WAY = (errno.ENOTDIR, errno.EEXIST, errno.EISDIR)
_SYSTEM: dict[tuple[int, ...], str] = {
    (errno.ENOSPC, errno.EDQUOT): """could not write {about}: the disk is full
        No space is left on the device{where}. Everything that was stored before is still there.
        Make room, or choose a folder on another disk with --home, and run the same command again.""",
    (errno.EACCES, errno.EPERM, errno.EROFS): """could not use {about}: {reason}
        This command needs to read and write there{where}. Nothing was changed by the refused step.
        Choose a folder that you may write with --home DIR (or NOISEGATE_HOME), or fix its permissions.""",
    _IN_THE_WAY: """could not use {about}: a file stands where a folder is needed, or the other way round
        The system says: {said}{where}.
        Choose another path, or move what is there away.""",
    (errno.ENOENT,): """could not find {about}
        There is no such file or folder.
        Check the path.""",
}
_SYSTEM_OTHER = """could not use {about}
    The system says: {said}{where}.
    Fix that, and run the same command again: nothing that was stored is lost."""


def _of_system(error: OSError, home: Path | None) -> CommandFailed:
    place = error.filename.decode(errors="replace") if isinstance(error.filename, bytes) else error.filename
    words = next((words for numbers, words in _SYSTEM.items() if error.errno in numbers), _SYSTEM_OTHER)
    inside = place is None or (isinstance(place, str) and home is not None and Path(place).is_relative_to(home))
    return _failure(
        words,
        about=f'"{place}"' if isinstance(place, str) else "a file",
        where=f' (the home is "{home}")' if home is not None and inside else "",
        said=error.strerror or type(error).__name__,
        reason="the file system is read-only" if error.errno == errno.EROFS else "permission was denied",
    )


def _failure(words: str, **known: object) -> CommandFailed:
    """A message with the fields in braces filled in; each may have several lines."""
    what, why, *instead = (line.strip().format(**known) for line in words.split("\n"))
    advice = (line for text in instead for line in text.splitlines())
    return CommandFailed(Finding("command_failed", what, why, tuple(advice)))


# By the full name of the class, so that no module is loaded for it; the first of its bases that is here is taken.
_PROGRAM: dict[str, str] = {
    "accountant.errors.SchemaTooNew": """cannot use this ledger: it was written by a newer version of Noisegate
        An older program could misread what has been spent, so it does not touch it. Nothing was changed.
        Start the newer version on this home,
        or choose another home with --home DIR.""",
    "accountant.errors.NotMigrated": """cannot start: the ledger is missing or has an older schema
        The schema is changed only when somebody asks for it.
        Run: noisegate migrate
        or start with: noisegate serve --migrate""",
    "accountant.errors.WeakDurability": """cannot use this database: it may lose what it has confirmed
        {error}. A charge that is forgotten would let an analyst spend it twice.
        SQLite: keep the home on a local disk (not on a network share).
        PostgreSQL: switch fsync, full_page_writes and synchronous_commit on.""",
    "accountant.errors.LedgerBehind": """cannot write: the ledger is older than its high-water mark
        A backup was put back, the file was edited, or the mark is lost: charges were made that are missing now.
        Put the newest ledger and the mark back if you have them.
        Otherwise accept it, and lower the limits then by what you know was spent:
        noisegate audit --acknowledge-restore --actor YOU --reason "why"
        """,
    "accountant.errors.LedgerUnavailable": """could not reach the ledger's database
        It did not answer in time, is busy, damaged, or cannot be written. Nothing that was stored is lost.
        Try again in a moment.
        If it stays: noisegate doctor""",
    "accountant.errors.UnknownAccount": """there is no account "{error.account}"
        No account of the ledger has this identifier.
        See: noisegate budget show""",
    "accountant.errors.LedgerError": """the ledger refused the step
        {error}.
        See: noisegate audit""",
    "server.home.NoLedger": """there is no ledger in "{error}"
        Nothing was set up in this home yet, or it is somewhere else.
        Start everything with: noisegate up
        or name the right folder with --home DIR (or NOISEGATE_HOME),
        or make an empty ledger with: noisegate migrate""",
    "server.settings.SettingsRefused": """cannot start with these settings
        {findings}
        Change the option, the environment variable NOISEGATE_..., or the settings file: docs/settings.md.""",
    "server.store.errors.RegistryError": """the registry refused the step
        {error}.
        See: noisegate key list""",
    "engines.snapshot_findings.SnapshotRefused": """could not use the data file
        {findings}
        Check that the file is what its name says (.csv, .parquet, .duckdb) and that it is complete.""",
}

_REFUSALS = frozenset(
    (
        "server.administration.refusal.ActRefused",
        "server.backups.archive.BackupRefused",
        "server.datasets.finding.DatasetFileRefused",
        "server.datasets.inspecting.DataRefused",
    )
)
_ANY_DATABASE = "sqlalchemy.exc.SQLAlchemyError"

# The texts of drivers repeat statements, parameters and addresses, so only known words are looked for in them.
_DATABASE: dict[tuple[str, ...], str] = {
    ("not a database", "malformed"): """cannot read the ledger: the file is damaged, or is no ledger
        It is not a database of SQLite, or a part of it was overwritten. It was not changed.
        Put your newest backup back, or choose another home with --home DIR.""",
    ("disk is full", "disk i/o"): """could not write the ledger: the disk is full or faulty
        The database could not store the step, so it was not made. What was stored before is still there.
        Make room, or repair the disk, and run the same command again.""",
    ("readonly", "unable to open"): """could not open the ledger for writing
        The file or its folder is read-only, or belongs to somebody else.
        Fix the permissions of the home, or choose another one with --home DIR.""",
    ("",): """could not use the ledger's database
        The database refused or was not reached ({kind}). Nothing that was stored is lost.
        Check database_url and that the database runs.
        See: noisegate doctor""",
}


def _of_program(error: Exception) -> CommandFailed | None:
    names = [f"{kind.__module__}.{kind.__qualname__}" for kind in type(error).__mro__]
    if not _REFUSALS.isdisjoint(names):
        return failure_of(error)
    if _ANY_DATABASE in names:
        text = str(getattr(error, "orig", "")).lower()
        words = next(words for signs, words in _DATABASE.items() if any(sign in text for sign in signs))
        return _failure(words, kind=type(error).__name__)
    known = next((_PROGRAM[name] for name in names if name in _PROGRAM), None)
    findings: Iterable[object] = getattr(error, "findings", ())
    listed = "\n".join(getattr(finding, "text", f"{finding}.") for finding in findings)
    return None if known is None else _failure(known, error=error, findings=listed)


# Refused acts

_COMMANDS = {
    "account": "--account",
    "approximate": "--filter approximate",
    "attach": "noisegate dataset add FILE",
    "adjust": "noisegate budget adjust {it.account}",
    "budgets": "noisegate budget show",
    "proposals": "noisegate proposal list",
    "budgets_of": "noisegate budget show --dataset {it.dataset}",
    "change_account": "--account {it.account}",
    "windows": "noisegate budget window --help",
    "change_other": "noisegate budget set without --account",
    "change_root": "noisegate budget set without --principal and --parent",
    "change_root_of": "noisegate budget set --dataset {it.dataset} --epsilon MORE --delta D --reason WHY",
    "create_admin": "noisegate key create NAME --role admin",
    "create_key": "noisegate key create {it.name} --role analyst",
    "delta": "--delta",
    "describe": "noisegate describe {it.dataset}",
    "delta_shares": "--delta-shares",
    "filter": "--filter",
    "idempotency_key": "--idempotency-key",
    "keys": "noisegate key list",
    "new_key": "noisegate key create NAME",
    "less": "--epsilon",
    "open_root_of": "noisegate budget set --dataset {it.dataset} --epsilon 20 --delta 0.00001",
    "open_below": "noisegate budget set --parent {it.account}",
    "open_root": "noisegate budget set --dataset {it.dataset} --epsilon {it.epsilon} --delta {it.delta}",
    "pure": "--filter pure",
    "reason": '--reason "why it changes"',
    "replace_dataset": "See: noisegate dataset list, and repeat the command to replace it",
    "request": "command",
    "reread_account": "See: noisegate budget show, and repeat the command if it is still meant",
    "reread_dataset": "See: noisegate dataset list, and repeat the command if it is still meant",
    "role": "--role",
    "small_delta": "--delta 0.000001",
}
"""What the words of refusals call options and commands."""


def failure_of(refused: Exception | Refusal) -> CommandFailed:
    """The message of a refused act, or of a data or dataset file that is not usable. Nothing was changed."""
    from server.administration.profile_refusals import UnpricedProfile
    from server.administration.refusal import ActRefused, FaultyDataset, Refusal
    from server.backups.archive import BackupRefused
    from server.datasets import DatasetFileRefused
    from server.datasets.inspecting import DataRefused

    if isinstance(refused, DataRefused | BackupRefused):
        return CommandFailed(refused.finding)
    if isinstance(refused, DatasetFileRefused):
        return _findings_failure(refused.errors)
    refusal = refused.refusal if isinstance(refused, ActRefused) else refused
    if isinstance(refusal, FaultyDataset):
        return _findings_failure(refusal.findings)
    if isinstance(refusal, UnpricedProfile):
        return CommandFailed(refusal.findings[0])
    assert isinstance(refusal, Refusal)
    return (UsageError if refusal.usage else CommandFailed)(refusal.finding(_COMMANDS))


def _findings_failure(findings: Sequence[Finding]) -> CommandFailed:
    """The message about a dataset that is not attached."""
    count = "1 finding" if len(findings) == 1 else f"{len(findings)} findings"
    reasons = [
        f"{found.what}{f' ({found.field})' if found.field and found.field not in found.what else ''}: {found.why}"
        for found in findings
    ]
    advice = dict.fromkeys(line for found in findings for line in found.instead)
    advised = (*advice, "What is served stays as it was.")
    return CommandFailed(
        Finding(findings[0].code, f"the dataset is not attached: {count}", "\n".join(reasons), advised)
    )
