"""Notices as files: one RFC 5322 message for each, in a folder from which the machine's own mailer takes them.

This server speaks no SMTP. A message appears whole under its final name, which is the delivery's, or not at all: one
that is there already was written by an attempt whose end nobody knows, and is not written again. A mailer that had
taken it gets the same Message-ID, by which mail systems tell that they have it.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime
from pathlib import Path

__all__ = ["NO_MAIL", "SCHEME", "Mailbox", "read_mail_address", "read_mail_entry"]

SCHEME = "mailto:"
_LOCAL = r"[A-Za-z0-9_+-](?:[A-Za-z0-9_.+-]{0,62}[A-Za-z0-9_+-])?"
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_ADDRESS = re.compile(rf"(?P<local>{_LOCAL})@(?P<domain>(?:{_LABEL}\.){{0,20}}{_LABEL})", re.ASCII)
_ENTRY = re.compile(rf"(?P<local>\*|{_LOCAL})@(?P<domain>(?:{_LABEL}\.){{0,20}}{_LABEL})", re.ASCII)
_LENGTH_MAX = 254

_SUBJECTS = {
    "budget.running_out": "a budget is running out",
    "request.waiting": "a request for a budget waits",
    "request.decided": "a request for a budget was decided",
    "incident": "an incident",
    "webhook.test": "a test",
}
_OTHER_SUBJECT = "an outcome of a monitor"


def _read(pattern: re.Pattern[str], text: str, what: str) -> tuple[str, str]:
    found = pattern.fullmatch(text) if len(text) <= _LENGTH_MAX else None
    if found is None or ".." in found["local"]:
        raise ValueError(what)
    return found["local"], found["domain"].lower()


def read_mail_address(text: str) -> tuple[str, str]:
    """Both parts of an address, of plain characters. Errors: ValueError, with a sentence without the text."""
    return _read(_ADDRESS, text, "it is no address such as mailto:ann@example.com, in plain characters")


def read_mail_entry(text: str) -> tuple[str, str]:
    """An entry of the setting: an address, or `*@` and a domain. Errors: ValueError, as `read_mail_address`."""
    return _read(_ENTRY, text, "it is no address such as ann@example.com, and not *@ with a domain")


@dataclass(frozen=True, slots=True)
class Mailbox:
    """The folder, the address that messages come from, and whom they may go to. Without a folder there is no mail."""

    folder: Path | None
    sender: str
    allowed: tuple[tuple[str, str], ...]

    def allows(self, address: str) -> bool:
        """Whether an address is within what the administrator allows. Errors: ValueError for what is none."""
        local, domain = read_mail_address(address)
        return self.folder is not None and any(of == domain and name in ("*", local) for name, of in self.allowed)

    def put(self, address: str, body: bytes, headers: Mapping[str, str]) -> None:
        """Writes one message; one that is there stays. `headers` are those of the delivery. Errors: OSError."""
        assert self.folder is not None
        delivery = headers["webhook-id"]
        whole = self.folder / f"{delivery}.eml"
        if whole.exists():
            return
        part = self.folder / f".{delivery}.part"
        # Left by a process that died in it.
        part.unlink(missing_ok=True)
        handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0), 0o640)
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(self._message(address, body, headers).as_bytes(policy=SMTP))
                stream.flush()
                os.fsync(stream.fileno())
            part.rename(whole)
        except BaseException:
            part.unlink(missing_ok=True)
            raise
        _sync(self.folder)

    def _message(self, address: str, body: bytes, headers: Mapping[str, str]) -> EmailMessage:
        told = json.loads(body)
        message = EmailMessage(policy=SMTP)
        message["From"], message["To"] = self.sender, address
        message["Subject"] = f"Noisegate: {_SUBJECTS.get(told['type'], _OTHER_SUBJECT)}"
        message["Date"] = format_datetime(datetime.datetime.fromisoformat(told["timestamp"]))
        message["Message-ID"] = f"<{headers['webhook-id']}@{self.sender.rpartition('@')[2]}>"
        message["Auto-Submitted"] = "auto-generated"
        for name, value in headers.items():
            message[name] = value
        lines = [f"{told['type']} at {told['timestamp']}", "", *_lines(told["data"])]
        message.set_content("\n".join(lines) + "\n")
        # The bytes that are signed.
        message.add_attachment(body, maintype="application", subtype="json", filename="notice.json")
        return message


NO_MAIL = Mailbox(None, "", ())
"""Of a server that writes no mail."""


def _lines(data: Mapping[str, object], above: str = "") -> list[str]:
    found: list[str] = []
    for name, value in data.items():
        if isinstance(value, dict):
            found += _lines(value, f"{above}{name} ")
        elif value is not None:
            found.append(f"{above}{name}: {value}")
    return found


def _sync(folder: Path) -> None:
    """Makes the name durable, where the file system can."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
