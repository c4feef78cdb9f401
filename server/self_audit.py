"""The ledger audited by the server that spends from it: since the last checkpoint at the start, wholly while it serves.

What an audit rejects is not spent from: every step that writes is refused, `/readyz` fails, and the next start refuses
as well until a whole audit finds nothing. The audit reads a connection on which the database refuses to write.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from accountant.audit import AuditReport
from accountant.checkpoint import CheckpointFile
from accountant.errors import LedgerError
from accountant.ledger import Ledger
from accountant.reader import LedgerReader
from server.files import write_whole
from server.log import logger, where

__all__ = ["SelfAudit"]

EVERY_SECONDS = 24 * 3600.0
"""How long after a whole audit the next one begins."""

_JOIN_SECONDS = 5.0
_REST_MAX = 0.2


class _Stopped(Exception):
    """The server ends."""


@dataclass(slots=True)
class SelfAudit:
    """The audits of one server. `open` opens the ledger for reading; `file` is where the checkpoint is kept.

    `found_before` is what is held against the ledger already: a whole audit that finds nothing takes it back.
    """

    ledger: Ledger
    open: Callable[[], LedgerReader]
    file: Path
    found_before: str | None = None
    _stopping: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def at_start(self) -> None:
        """Audits what came after the last checkpoint, and every balance, before anything is spent.

        A ledger without a checkpoint, or with one of another history, is left to the whole audit. Errors: LedgerError.
        """
        try:
            known = CheckpointFile.read(self.file.read_text("ascii"))
        except FileNotFoundError:
            return
        except (OSError, ValueError):
            logger().warning("checkpoint_unreadable")
            return
        if known.rejected is not None:
            self._reject(known.rejected)
        elif known.checkpoint is not None:
            report = self.ledger.audit_since(known.checkpoint)
            if report is not None and not report.ok:
                self._reject(_said(report))

    def start(self) -> None:
        """Begins to audit the whole ledger, at once and then once a day, on a thread of its own."""
        self._thread = threading.Thread(target=self._run, name="audit", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Ends the thread; an audit under way is left."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(timeout=_JOIN_SECONDS)

    def whole(self) -> AuditReport:
        """Audits the whole ledger, and keeps what it knew, or that it found something. Errors: LedgerError, OSError."""
        reader = self.open()
        try:
            report = reader.audit(rest=_Rest(self._stopping))
        finally:
            reader.close()
        if report.ok:
            kept = CheckpointFile(checkpoint=report.checkpoint)
            # Not what was found while it was served: that may be younger than what was read here.
            if self.ledger.rejected is not None and self.ledger.rejected == self.found_before:
                self.ledger.accept()
        else:
            kept = CheckpointFile(rejected=_said(report))
            self._reject(_said(report))
        write_whole(self.file, kept.text(), mode=0o600)
        return report

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self.whole()
            except _Stopped:
                return
            except (LedgerError, OSError, ValueError) as error:
                logger().warning("audit_failed", exception=type(error).__name__, where=where(error))
            self._stopping.wait(EVERY_SECONDS)

    def _reject(self, what: str) -> None:
        self.ledger.reject(what)
        logger().error("ledger_rejected", code=what)


def _said(report: AuditReport) -> str:
    """The first findings, by code and subject, which hold no values."""
    first = ", ".join(f"{finding.code} {finding.subject}" for finding in report.findings[:3])
    more = len(report.findings) - 3
    return f"{first} and {more} more" if more > 0 else first


class _Rest:
    """Gives others as much of the processor as the audit takes, and ends the audit with the server."""

    def __init__(self, stopping: threading.Event) -> None:
        self._stopping = stopping
        self._worked_since = time.monotonic()

    def __call__(self) -> None:
        worked = time.monotonic() - self._worked_since
        if self._stopping.wait(min(worked, _REST_MAX)):
            raise _Stopped
        self._worked_since = time.monotonic()
