"""What can go wrong, as one clear message: what, why, and what to do instead.

    Exception
      CommandFailed      the message; everything else that goes wrong is turned into it
      └── UsageError     the command was written wrongly

Exit codes: 0 done, 1 the command failed, 2 wrong usage, 130 interrupted. No text of a database or of a foreign
exception is passed on: it may hold an address with a password, or a value of a row.
"""

from __future__ import annotations

from privacy.refusal import Finding

__all__ = ["EXIT_FAILED", "EXIT_INTERRUPTED", "CommandFailed", "UsageError"]

EXIT_FAILED = 1
EXIT_INTERRUPTED = 130


class CommandFailed(Exception):
    """A command did not do what was asked.

    The message has a line for what happened, one for why, and then a line for each thing to do instead. Where a reason
    has several lines, or comes from elsewhere, a finding is given in its place.
    """

    exit_code = EXIT_FAILED

    def __init__(self, message: str | Finding) -> None:
        if isinstance(message, str):
            what, why, *instead = map(str.strip, message.split("\n"))
            message = Finding("command_failed", what, why, tuple(filter(None, instead)))
        super().__init__(message.what)
        self.finding = message

    def __str__(self) -> str:
        lines, label = [f"noisegate: {self.finding.what}"], "What to do: "
        if self.finding.why:
            lines.append(f"  Why: {self.finding.why}")
        for line in self.finding.instead:
            lines.append(f"  {label}{line}")
            label = " " * len(label)
        return "\n".join(line.replace("\n", "\n    ") for line in lines)


class UsageError(CommandFailed):
    """A failure that is the caller's."""

    exit_code = 2
