"""COLUMNS and FORMAT over released numbers: patterns of names, and of texts, that every reader reads alike.

COLUMNS('n_.*')                 the columns whose name has such a part, in the order of *
FORMAT('{:.1f} of {}', x, y)    each value in its place, with the digits that its braces say
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from sqlglot import exp

from privacy.refusal import Refused
from sql_rewrite.refuse import refuse
from sql_rewrite.syntax import populated
from sql_rewrite.text import Text

__all__ = ["FORMATTED_MAX", "PLACE", "check_format", "matching"]

FORMATTED_MAX = 440
"""Most characters that FORMAT adds to one value: a double without an exponent has 309 digits, with 102
commas, before its fraction."""

_PATTERN = re.compile(r"\^?(?:[A-Za-z0-9_ ]|\.[*+]?|\|)+\$?")
"""Letters, digits, spaces, dots (any character, with * or +) and alternatives, which RE2 and Python read alike."""

_PATTERN_MAX = 100
_FORM = re.compile(r"(?:[^{}]|\{(?::,?\.(?:[0-9]|1[0-5])f)?\})*")
PLACE = re.compile(r"\{[^{}]*\}")
"""Where FORMAT writes a value."""


def matching(node: exp.Columns, read: Sequence[tuple[str, str]], text: Text) -> list[tuple[str, str]]:
    """The columns, with their relations, whose names COLUMNS means. Errors: Refused."""
    pattern = node.this
    plain = isinstance(pattern, exp.Literal) and pattern.is_string and len(pattern.name) <= _PATTERN_MAX
    if populated(node) - {"this"} or not plain or not _PATTERN.fullmatch(pattern.name) or not pattern.name.isascii():
        raise _refused(
            node,
            text,
            "It takes one text, of letters, digits, dots (.* too) and alternatives (|), alone in a select list.",
            "write the columns that you want",
        )
    fits = _fitting(pattern.name)
    found = [(alias, name) for alias, name in read if fits(name)]
    if not found:
        raise _refused(node, text, "No column that is read here has such a name.", "write the columns that you want")
    return found


def _fitting(pattern: str) -> Callable[[str], bool]:
    """Whether a name has such a part, in time linear in the name: a free estimate must not keep others waiting.

    Between two `.*` stand pieces of one length each. Where an alternative fits at all it fits with each piece at the
    first place behind the one before (the last one at the end, where `$` says so), so none is ever looked for again.
    No dot is the end of a line: an alternative fits within one.
    """
    starts, ends = pattern.startswith("^"), pattern.endswith("$")
    alternatives = pattern.removeprefix("^").removesuffix("$").split("|")
    read = []
    for place, alternative in enumerate(alternatives):
        first, last = starts and place == 0, ends and place == len(alternatives) - 1
        pieces = alternative.replace(".+", "..*").split(".*")
        found = [f"(?>.*?{piece})" for piece in pieces]
        if last:
            found[-1] = f".*{pieces[-1]}\\Z"
        if first:
            found[0] = pieces[0] + ("\\Z" if last and len(pieces) == 1 else "")
        read.append((first, last, re.compile("".join(found))))

    def fits(name: str) -> bool:
        lines = list(enumerate(name.split("\n"), 1))
        return any(
            part.match(line) is not None
            for first, last, part in read
            for number, line in lines
            if (number == 1 or not first) and (number == len(lines) or not last)
        )

    return fits


def check_format(node: exp.Format, text: Text) -> None:
    """Refuses FORMAT whose text is not a constant, or has other places than values. Errors: Refused."""
    form, values = node.this, node.expressions
    plain = isinstance(form, exp.Literal) and form.is_string and _FORM.fullmatch(form.name)
    if not plain or len(PLACE.findall(form.name)) != len(values):
        raise _refused(
            node,
            text,
            "It takes a constant text, with {}, {:.1f} or {:,.1f} (up to 15 digits) for each of the values.",
            "write {} or {:.1f} for each of the values",
        )


def _refused(node: exp.Expr, text: Text, why: str, instead: str) -> Refused:
    return refuse(
        "unsupported_function",
        f"{text.spelled(node) or 'this function'} is refused here",
        why,
        instead,
        position=text.position(node),
    )
