"""What can go wrong, as one clear message: what, why, and what to do instead.

    Exception
      CommandFailed      the message and the exit code; everything else is turned into it
      Interrupted        a signal came while the command was working

Exit codes: 0 done, 1 the command failed, 2 wrong usage, 130 interrupted. No text of a database or of a foreign
exception is passed on: it may hold an address with a password, or a value of a row.
"""

from __future__ import annotations

import errno
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

__all__ = ["EXIT_FAILED", "EXIT_INTERRUPTED", "EXIT_USAGE", "CommandFailed", "Interrupted", "explained", "usage_error"]

EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_INTERRUPTED = 130


class CommandFailed(Exception):
    """A command did not do what was asked: `what` happened, `why`, and what to do `instead` (one entry per line)."""

    def __init__(self, what: str, *, why: str, instead: str | Sequence[str] = (), exit_code: int = EXIT_FAILED) -> None:
        super().__init__(what)
        self.what = what
        self.why = why
        self.instead = (instead,) if isinstance(instead, str) else tuple(instead)
        self.exit_code = exit_code

    def __str__(self) -> str:
        lines = [f"noisegate: {self.what}"]
        if self.why:
            lines.append(f"  Why: {_indented(self.why)}")
        label = "What to do: "
        for line in self.instead:
            lines.append(f"  {label}{_indented(line)}")
            label = " " * len(label)
        return "\n".join(lines)


class Interrupted(BaseException):
    """SIGTERM or SIGINT while a command worked. Not an Exception, so that nothing on the way takes it for a failure."""


def _indented(text: str) -> str:
    return text.replace("\n", "\n    ")


def usage_error(what: str, *, why: str, instead: str | Sequence[str] = ()) -> CommandFailed:
    """A failure that is the caller's: exit code 2."""
    return CommandFailed(what, why=why, instead=instead, exit_code=EXIT_USAGE)


@contextmanager
def explained(home: Path | None = None) -> Iterator[None]:
    """Turns the errors of the ledger, the registry, datasets, settings and the system into `CommandFailed`."""
    try:
        yield
    except (CommandFailed, Interrupted):
        raise
    except OSError as error:
        raise _of_system(error, home) from None
    except Exception as error:
        known = _of_program(error, home)
        if known is None:
            raise
        raise known from None


def _of_system(error: OSError, home: Path | None) -> CommandFailed:
    place = error.filename if isinstance(error.filename, str | bytes) else None
    name = place.decode(errors="replace") if isinstance(place, bytes) else place
    about = f'"{name}"' if name else "a file"
    where = f' (the home is "{home}")' if home is not None else ""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return CommandFailed(
            f"could not write {about}: the disk is full",
            why=f"No space is left on the device{where}. Everything that was stored before is still there.",
            instead="Make room, or choose a folder on another disk with --home, and run the same command again.",
        )
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        reason = "the file system is read-only" if error.errno == errno.EROFS else "permission was denied"
        return CommandFailed(
            f"could not use {about}: {reason}",
            why=f"This command needs to read and write there{where}. Nothing was changed by the refused step.",
            instead="Choose a folder that you may write with --home DIR (or NOISEGATE_HOME), or mend its permissions.",
        )
    if error.errno in (errno.ENOTDIR, errno.EEXIST, errno.EISDIR):
        return CommandFailed(
            f"could not use {about}: a file stands where a folder is needed, or the other way round",
            why=f"The system says: {error.strerror}{where}.",
            instead="Choose another path, or move what stands there away.",
        )
    if error.errno == errno.ENOENT:
        return CommandFailed(
            f"could not find {about}",
            why="There is no such file or folder.",
            instead="Check the path.",
        )
    return CommandFailed(
        f"could not use {about}",
        why=f"The system says: {error.strerror or type(error).__name__}{where}.",
        instead="Mend that, and run the same command again: nothing that was stored is lost.",
    )


def _of_program(error: Exception, home: Path | None) -> CommandFailed | None:
    """The message for an error of this program. The classes are looked up only when their modules are loaded."""
    for module, translate in (
        ("server.administration.refusal", _of_act),
        ("accountant.errors", _of_ledger),
        ("server.settings", _of_settings),
        ("server.store.registry", _of_registry),
        ("server.datasets", _of_dataset),
        ("engines.snapshot", _of_snapshot),
        ("sqlalchemy.exc", _of_database),
    ):
        if module in sys.modules:
            found = translate(error, home)
            if found is not None:
                return found
    return None


def _of_act(error: Exception, home: Path | None) -> CommandFailed | None:
    from server.administration.refusal import ActRefused
    from server.cli.refusals import failure_of_act

    return failure_of_act(error.refusal) if isinstance(error, ActRefused) else None


def _of_ledger(error: Exception, home: Path | None) -> CommandFailed | None:
    from accountant import errors

    if isinstance(error, errors.SchemaTooNew):
        return CommandFailed(
            "cannot use this ledger: it was written by a newer version of Noisegate",
            why="An older program could misread what has been spent, so it does not touch it. Nothing was changed.",
            instead=("Start the newer version on this home,", "or choose another home with --home DIR."),
        )
    if isinstance(error, errors.NotMigrated):
        return CommandFailed(
            "cannot start: the ledger is missing or has an older schema",
            why="The schema is changed only when somebody asks for it.",
            instead=("Run: noisegate migrate", "or start with: noisegate serve --migrate"),
        )
    if isinstance(error, errors.WeakDurability):
        return CommandFailed(
            "cannot use this database: it may lose what it has confirmed",
            why=f"{error}. A charge that is forgotten would let an analyst spend it twice.",
            instead=(
                "SQLite: keep the home on a local disk (not on a network share).",
                "PostgreSQL: switch fsync, full_page_writes and synchronous_commit on.",
            ),
        )
    if isinstance(error, errors.LedgerBehind):
        return CommandFailed(
            "cannot write: the ledger is older than its high-water mark",
            why="A backup was put back, or the file was edited: charges are missing that people have answers for.",
            instead=(
                "Put the newest ledger back if you have it. Otherwise, after lowering the limits if you know better:",
                'noisegate audit --acknowledge-restore --actor YOU --reason "why"',
            ),
        )
    if isinstance(error, errors.LedgerUnavailable):
        return CommandFailed(
            "could not reach the ledger's database",
            why="It did not answer in time, is busy, damaged, or cannot be written. Nothing that was stored is lost.",
            instead=("Try again in a moment.", "If it stays: noisegate doctor"),
        )
    if isinstance(error, errors.UnknownAccount):
        return CommandFailed(
            f'there is no account "{error.account}"',
            why="No account of the ledger has this identifier.",
            instead="See: noisegate budget show",
        )
    if isinstance(error, errors.LedgerError):
        return CommandFailed("the ledger refused the step", why=f"{error}.", instead="See: noisegate audit")
    return None


def _of_settings(error: Exception, home: Path | None) -> CommandFailed | None:
    from server.settings import SettingsRefused

    if not isinstance(error, SettingsRefused):
        return None
    return CommandFailed(
        "cannot start with these settings",
        why="\n".join(f"{finding}." for finding in error.findings),
        instead="Change the option, the environment variable NOISEGATE_..., or the settings file: docs/settings.md.",
    )


def _of_registry(error: Exception, home: Path | None) -> CommandFailed | None:
    from server.store import registry

    if isinstance(error, registry.RegistryError):
        return CommandFailed("the registry refused the step", why=f"{error}.", instead="See: noisegate key list")
    return None


def _of_dataset(error: Exception, home: Path | None) -> CommandFailed | None:
    from server.cli.refusals import findings_failure
    from server.datasets import DatasetFileRefused

    if not isinstance(error, DatasetFileRefused):
        return None
    faults = [problem for problem in error.problems if problem.severity == "error"]
    return findings_failure([(fault.what, fault.why, (fault.instead,), fault.place) for fault in faults])


def _of_snapshot(error: Exception, home: Path | None) -> CommandFailed | None:
    from engines.snapshot import SnapshotRefused

    if not isinstance(error, SnapshotRefused):
        return None
    return CommandFailed(
        "could not use the data file",
        why="\n".join(finding.text for finding in error.findings),
        instead="Check that the file is what its name says (.csv, .parquet, .duckdb) and that it is complete.",
    )


def _of_database(error: Exception, home: Path | None) -> CommandFailed | None:
    from sqlalchemy import exc

    if not isinstance(error, exc.SQLAlchemyError):
        return None
    # The texts of drivers repeat statements, parameters and addresses, so only known words are looked for in them.
    text = str(getattr(error, "orig", "")).lower()
    if "not a database" in text or "malformed" in text:
        return CommandFailed(
            "cannot read the ledger: the file is damaged, or is no ledger",
            why="It is not a database of SQLite, or a part of it was overwritten. It was not changed.",
            instead="Put your newest backup back, or choose another home with --home DIR.",
        )
    if "disk is full" in text or "disk i/o" in text:
        return CommandFailed(
            "could not write the ledger: the disk is full or faulty",
            why="The database could not store the step, so it was not made. What was stored before is still there.",
            instead="Make room, or mend the disk, and run the same command again.",
        )
    if "readonly" in text or "unable to open" in text:
        return CommandFailed(
            "could not open the ledger for writing",
            why="The file or its folder is read-only, or belongs to somebody else.",
            instead="Mend the permissions of the home, or choose another one with --home DIR.",
        )
    return CommandFailed(
        "could not use the ledger's database",
        why=f"The database refused or was not reached ({type(error).__name__}). Nothing that was stored is lost.",
        instead=("Check database_url and that the database runs.", "See: noisegate doctor"),
    )
