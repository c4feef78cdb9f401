"""Lines, tables and numbers for people; JSON for scripts.

Text that comes from data or from a server is shown without control characters: a terminal would obey them.
"""

from __future__ import annotations

import functools
import json
import math
import os
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

__all__ = [
    "ROWS_SHOWN",
    "answer_table",
    "painted",
    "price_lines",
    "print_json",
    "print_raw",
    "printable",
    "program",
    "say",
    "short",
    "table",
    "use_home",
    "warning_lines",
]

ROWS_SHOWN = 50

_GROUPS = "dataset|key|budget"
_COMMAND = re.compile(
    rf"(?<![\w./-])noisegate ((?:{_GROUPS})(?: [a-z]+)?|up|serve|migrate|init|query|estimate|datasets|describe"
    r"|completion|audit|doctor)\b"
)
_NO_HOME = frozenset(("init", "dataset check", "dataset upgrade", "completion", *_GROUPS.split("|")))
"""Commands that read files only, or are no command yet: advice names no home with them."""

_home_in_use = ""


def say(text: str = "", *, error: bool = False, verbatim: bool = False) -> None:
    """A message to standard output, or to standard error.

    Commands in it are written so that they can be copied; `verbatim` is for text that holds data.
    """
    _write(text if verbatim else _COMMAND.sub(_as_typed, text), error=error)


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


def _as_typed(match: re.Match[str]) -> str:
    """A command of a message as people here type it: how this program is started, and its home."""
    rest = match.string[match.end() :].partition("\n")[0]
    home = "" if match[1] in _NO_HOME or "--home" in rest else _home_in_use
    return f"{program()} {match[1]}{home}"


def print_json(value: Any) -> None:
    """One line of JSON on standard output."""
    _write(json.dumps(value, ensure_ascii=False, allow_nan=False), error=False)


def print_raw(text: str) -> None:
    """A document as it is on standard output: for files and other programs."""
    sys.stdout.write(text)
    sys.stdout.flush()


def _write(text: str, *, error: bool) -> None:
    stream = sys.stderr if error else sys.stdout
    stream.write(text + "\n")
    stream.flush()


@functools.cache
def program() -> str:
    """How this program is started here: a command for people to type."""
    if os.path.basename(sys.argv[0]) == "noisegate":
        return "noisegate"
    script = Path(__file__).resolve().parents[2] / "noisegate"
    if not script.is_file():
        return "python3 -m server.cli"
    return "./noisegate" if script.parent == Path.cwd() else shlex.quote(str(script))


def printable(text: str) -> str:
    """The text on one line, without characters that a terminal obeys."""
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text)


def table(head: Sequence[str], rows: Sequence[Sequence[str]], *, right: frozenset[int] = frozenset()) -> str:
    """Columns of equal width under their names; `right` are the columns whose values stand on the right."""
    cells = [list(head), *[list(row) for row in rows]]
    widths = [max(len(row[index]) for row in cells) for index in range(len(head))]
    lines = []
    for row in cells:
        parts = [
            text.rjust(widths[index]) if index in right else text.ljust(widths[index]) for index, text in enumerate(row)
        ]
        lines.append("  " + "  ".join(parts).rstrip())
    lines.insert(1, "  " + "  ".join("-" * width for width in widths))
    return "\n".join(lines)


def short(amount: str) -> str:
    """Decimal text with at most six significant digits, for people; the exact text is in the JSON."""
    try:
        value = float(amount)
    except ValueError:
        return amount
    return amount if len(amount) <= 10 else f"{value:.6g}"


def answer_table(answer: Mapping[str, Any]) -> str:
    """The rows of a server's answer: keys as they are, noisy values with the half width of their interval."""
    columns = answer["columns"]
    rows = []
    for index, values in enumerate(answer["rows"][:ROWS_SHOWN]):
        rows.append(
            [
                _cell(
                    value,
                    answer["lows"][index][place],
                    answer["highs"][index][place],
                    key=columns[place]["kind"] == "key",
                    derived=columns[place]["kind"] == "derived",
                )
                for place, value in enumerate(values)
            ]
        )
    right = frozenset(place for place, column in enumerate(columns) if column["kind"] != "key")
    lines = [table([printable(str(column["name"])) for column in columns], rows, right=right)]
    left = len(answer["rows"]) - len(rows)
    if left > 0:
        lines.append(f"  ... and {left:,} more rows (--json shows all)")
    if not answer["rows"]:
        lines.append("  (no group is large enough to be shown)")
    for reason in answer.get("interval_reasons", []):
        name = printable(str(columns[reason["column"]]["name"]))
        some = "" if reason["rows"] is None else f" in {len(reason['rows']):,} of {len(answer['rows']):,} rows"
        lines.append(f"  no ± for {name}{some}: {printable(str(reason['why']))}")
    return "\n".join(lines)


def _cell(value: Any, low: Any, high: Any, *, key: bool = False, derived: bool = False) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "true" if value else "false"
    # A key is a name: the year 2024 is not 2,024.
    if key or not isinstance(value, int | float):
        return printable(str(value))
    if low is None or high is None:
        return _number(value, places=_places(value, None))
    half = max(high - value, value - low)
    places = _places(value, half)
    # An interval that was cut at a natural end (a count is not negative) is not the same on both sides. The ends of a
    # count are rounded; those of a rank are not, and 1 within [1, 2] is not 1 ± 1. No number is exact: ± 0 is not said.
    rounded = 1.01 if isinstance(value, int) and not derived else 0.0
    if half > 0 and math.isclose(high - value, value - low, rel_tol=0.15, abs_tol=rounded):
        return f"{_number(value, places=places)} ± {_number(half, places=places)}"
    return f"{_number(value, places=places)} [{_number(low, places=places)}, {_number(high, places=places)}]"


def _places(value: float, half: float | None) -> int:
    """Decimals that are worth showing: two digits of the error."""
    if isinstance(value, int) and (half is None or half >= 1 or float(half).is_integer()):
        return 0
    if half is None:
        return 0 if float(value).is_integer() else 4
    if half <= 0 or not math.isfinite(half):
        return 2
    return min(8, max(0, 1 - math.floor(math.log10(half))))


def _number(value: float, *, places: int) -> str:
    return f"{value:,.{places}f}" if math.isfinite(value) else str(value)


def price_lines(answer: Mapping[str, Any]) -> list[str]:
    """What the answer cost, what it promises by itself, what remains, and what ± means."""
    from server.cli.prices import own_words, part_words

    accounting = answer["accounting"]
    confidence = round(float(answer["confidence"]) * 100, 4)
    charged = accounting["charged"]
    if accounting.get("reused"):
        price = "nothing: an equal question was answered before, and its release serves again"
    elif not charged:
        price = "nothing"
    else:
        price = ", ".join(f"{part_words(part['epsilon'], accounting)}{_delta(part['delta'])}" for part in charged)
    remaining = accounting["remaining"]
    own = own_words(accounting.get("own"))
    return [
        f"± is the interval of the noise at {confidence:g} % confidence.",
        *_bound_lines(answer),
        f"Price: {price}.",
        *([] if own is None else [own]),
        f"Remains: epsilon {short(remaining['epsilon'])}{_delta(remaining['delta'])}.",
    ]


def warning_lines(answer: Mapping[str, Any], *, error: bool = False) -> list[str]:
    """The warnings of an answer or estimate: what, why, and what to write instead."""
    lines = []
    for warning in answer.get("warnings", []):
        lines.append(painted(f"Warning: {printable(str(warning['what']))}.", "careful", error=error))
        lines.append(f"  {printable(str(warning['why']))}")
        lines += [f"  - {printable(str(instead))}" for instead in warning["instead"]]
    return lines


def _bound_lines(answer: Mapping[str, Any]) -> list[str]:
    """Says that ± leaves out what is beyond the bounds: rows where one unit may have several, and clipped values.

    Without this, a count that lacks a third of its rows would look exact to one percent.
    """
    cut = [printable(str(text)) for text in answer.get("provenance", {}).get("cut", [])]
    return [*dict.fromkeys(cut), "± does not show what the bounds leave out."] if cut else []


def _delta(text: str) -> str:
    try:
        value = float(text)
    except ValueError:
        return f", delta {text}"
    return f", delta {value:g}" if value else ""
