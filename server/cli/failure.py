"""What can go wrong, as one clear message: what, why, and what to do instead.

    Exception
      CommandFailed      the message and the exit code; everything else is turned into it
      Interrupted        a signal came while the command was working

Exit codes: 0 done, 1 the command failed, 2 wrong usage, 130 interrupted. No text of a database or of a foreign
exception is passed on: it may hold an address with a password, or a value of a row.
"""

from __future__ import annotations

from collections.abc import Sequence

from privacy.refusal import Finding

__all__ = ["EXIT_FAILED", "EXIT_INTERRUPTED", "EXIT_USAGE", "CommandFailed", "Interrupted", "usage_error"]

EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_INTERRUPTED = 130


class CommandFailed(Exception):
    """A command did not do what was asked: `what` happened, `why`, and what to do `instead` (one entry per line)."""

    def __init__(self, what: str, *, why: str, instead: str | Sequence[str] = (), exit_code: int = EXIT_FAILED) -> None:
        super().__init__(what)
        advice = (instead,) if isinstance(instead, str) else tuple(instead)
        self.finding = Finding("command_failed", what, why, advice)
        self.exit_code = exit_code

    def __str__(self) -> str:
        lines = [f"noisegate: {self.finding.what}"]
        if self.finding.why:
            lines.append(f"  Why: {_indented(self.finding.why)}")
        label = "What to do: "
        for line in self.finding.instead:
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
