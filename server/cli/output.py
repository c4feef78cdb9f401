"""Lines, tables and short numbers for people; JSON for scripts; commands in messages as people here type them.

Text that comes from data or from a server is shown without control characters: a terminal would obey them.
"""

from __future__ import annotations

import functools
import json
import os
import re
import shlex
import sys
import threading
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

__all__ = ["CHECKOUT", "Json", "as_commands", "as_typed", "painted", "print_json", "printable", "program", "progress",
           "say", "short", "table", "use_home"]  # fmt: skip

CHECKOUT = Path(__file__).resolve().parents[2]
"""Where the program is; of an installed package the folder of all packages."""

Json = dict[str, Any]
"""An object of JSON, as it was read or is printed."""

_GROUPS = "dataset|key|budget"
_COMMAND = re.compile(
    rf"(?<![\w./-])noisegate ((?:{_GROUPS})(?: [a-z]+)?|up|serve|migrate|init|query|estimate|datasets|describe"
    r"|backup|restore|completion|audit|doctor)\b"
)
_NO_HOME = frozenset(("init", "dataset check", "dataset upgrade", "completion", *_GROUPS.split("|")))
"""Commands that read files only, or are not a command yet: advice names no home with them."""

_home_in_use = ""


def say(text: str = "", *, error: bool = False, verbatim: bool = False) -> None:
    """A message to standard output, or to standard error.

    Commands in it are written so that they can be copied; `verbatim` is for text that holds data.
    """
    stream = sys.stderr if error else sys.stdout
    stream.write((text if verbatim else as_typed(text)) + "\n")
    stream.flush()


def print_json(value: object) -> None:
    """One line of JSON on standard output."""
    say(json.dumps(value, ensure_ascii=False, allow_nan=False), verbatim=True)


def painted(text: str, style: str, *, error: bool = False) -> str:
    """The text in a style ("bad" or "careful") where the stream is a terminal that shows colours and nobody minds."""
    stream = sys.stderr if error else sys.stdout
    if not stream.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM", "dumb") == "dumb":
        return text
    first, newline, rest = text.partition("\n")
    return f"\x1b[{_STYLES[style]}m{first}\x1b[0m{newline}{rest}"


_STYLES = {"bad": "1;31", "careful": "33"}


def use_home(option: str) -> None:
    """The option with which commands in messages find the home in use; empty for the usual one."""
    global _home_in_use
    _home_in_use = option


def as_typed(text: str) -> str:
    """The text with its commands as people here type them."""
    return _COMMAND.sub(_as_typed, text)


def _as_typed(match: re.Match[str]) -> str:
    """A command of a message as people here type it: how this program is started, and its home."""
    rest = match.string[match.end() :].partition("\n")[0]
    home = "" if match[1] in _NO_HOME or "--home" in rest else _home_in_use
    return f"{program()} {match[1]}{home}"


@functools.cache
def program() -> str:
    """How this program is started here: a command for people to type."""
    if os.path.basename(sys.argv[0]) == "noisegate":
        return "noisegate"
    script = CHECKOUT / "noisegate"
    if not script.is_file():
        return "python3 -m server.cli"
    return "./noisegate" if script.parent == Path.cwd() else shlex.quote(str(script))


@contextmanager
def progress(what: str, *, first_seconds: float = 2.0, next_seconds: float = 10.0) -> Iterator[None]:
    """Says on standard error after a while what is being done, and from then on how long it has taken."""
    done = threading.Event()
    started = time.monotonic()

    def watch() -> None:
        pause = first_seconds
        while not done.wait(pause):
            say(f"  {what} ... {time.monotonic() - started:.0f} s", error=True, verbatim=True)
            pause = next_seconds

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()


def printable(text: object) -> str:
    """The text on one line, without characters that a terminal obeys."""
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in str(text))


def table(head: Sequence[object], rows: Iterable[Sequence[object]], *, right: Collection[int] = ()) -> str:
    """Columns of equal width under their names; `right` are the columns whose values are aligned to the right."""
    names, *cells = [[printable(cell) for cell in row] for row in (head, *rows)]
    widths = [max(map(len, column)) for column in zip(names, *cells, strict=True)]
    lines = []
    for row in (names, ["-" * width for width in widths], *cells):
        places = enumerate(zip(row, widths, strict=True))
        parts = [text.rjust(width) if index in right else text.ljust(width) for index, (text, width) in places]
        lines.append("  " + "  ".join(parts).rstrip())
    return "\n".join(lines)


def short(amount: str) -> str:
    """Decimal text with at most six significant digits, for people; the exact text is in the JSON."""
    try:
        value = float(amount)
    except ValueError:
        return amount
    return amount if len(amount) <= 10 else f"{value:.6g}"


# Advice of a server, which speaks of routes, headers and fields

_SHOWN_BY = {
    "GET /v1/budgets": "noisegate budget show",
    "GET /v1/capabilities": "docs/sql.md",
    "GET /v1/datasets": "noisegate datasets",
    "GET /v1/datasets/{dataset}": "noisegate describe DATASET",
    "GET /v1/datasets/{name}": "noisegate describe DATASET",
    "GET /v1/models": "noisegate model list",
    "GET /v1/monitors": "noisegate monitor list",
    "GET /v1/queries": "noisegate queries",
    "GET /v1/streams": "noisegate stream list",
    "GET /v1/synthetic": "noisegate synthetic list",
    "GET /v1/webhooks": "noisegate webhook list",
    "POST /v1/estimates": "noisegate estimate",
    "POST /v1/queries": "noisegate query",
}
"""What shows on a command line what a route shows. Advice about other routes is left out there."""

_ROUTE = re.compile(r"\b(?:GET|HEAD|POST|PUT|PATCH|DELETE) /v1[\w/{}.]*(?<!\.)")

_REWRITTEN: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), words)
    for pattern, words in (
        # Advice that names both ways keeps the one that is of use here.
        (r'^"\w+": .+?(?: in the request)?, or (?=--)', ""),
        (r'"\w+": [^()]+ \(or (--[^()]+)\)', r"\1"),
        (r" on a command line\b", ""),
        (r'\b[A-Z]+ /v1\S* \(or "(noisegate [a-z ]+)"\)', r"\1"),
        (r"\b[A-Z]+ /v1\S*, or (?:on the server: )?(?=noisegate )", ""),
        (r"^Check the address and the identifier;.*", "See what there is: noisegate datasets"),
        (r"^Send the header Authorization:.*", "Set NOISEGATE_KEY, or use --key-file FILE."),
        (r"^Send a smaller body\..*", "Ask a shorter statement."),
        (r"^Wait for the seconds of the header Retry-After\b.*", "Wait a moment, then ask again."),
        (r"^Try again after the seconds of the header Retry-After\.", "Try again in a moment."),
        (r"^Send the query again with a new Idempotency-Key\.", "Ask again."),
        (r"^Send the same body with\b", "Ask again with"),
        (r"\bIdempotency-Key\b", "--idempotency-key"),
        (r"\bthe field budget\b", "--budget"),
        (r"^See /docs\b.*", "See the options with --help."),
    )
)


def as_commands(advice: str) -> str:
    """A line of a server's advice with commands and options in place of routes and fields.

    Empty where it speaks of a route that no command of this program asks.
    """
    for pattern, words in _REWRITTEN:
        advice = pattern.sub(words, advice)
    if any(route not in _SHOWN_BY for route in _ROUTE.findall(advice)):
        return ""
    return _ROUTE.sub(lambda match: _SHOWN_BY[match[0]], advice)
