"""Regular expressions: a subset that means the same in RE2, which engines run, and in Python, which checks them.

A pattern is a constant of the query. It is read into a tree here, and what an engine gets is written anew from that
tree: with counted repeats written out, so that its length says how large the automaton is, and in ASCII. RE2 takes time
linear in the text times that length, for every text. Refused is what the two read differently, or what has no bound:
look-around and references back, flags, classes by name, repeats of what can be empty (their captures differ), and
expressions that are longer than EXPANDED_MAX once they are written out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from privacy.policy import ColumnType
from sql_rewrite.expressions import Call, Expression, Literal, Value
from sql_rewrite.functions.operator import (
    Lowerer,
    Operator,
    Resolve,
    Resolved,
    TypeRefused,
    any_nullable,
    arity,
    constant_integer,
    constant_text,
    expect,
)
from sql_rewrite.functions.values import text, whole
from sql_rewrite.scalars import RegularExpression, RegularUse, Scalar

__all__ = ["EXPANDED_MAX", "OPERATORS", "Unreadable", "engine_pattern", "python_pattern"]

TEXT, BOOLEAN, INTEGER = ColumnType.TEXT, ColumnType.BOOLEAN, ColumnType.INTEGER

PATTERN_MAX = 200
EXPANDED_MAX = 300
"""Most characters of a pattern as engines get it."""

REPEATS_MAX = 50
GROUPS_MAX = 9
DEPTH_MAX = 10

_CLASSES = {"d": "0-9", "w": "0-9A-Za-z_", "s": r"\t\n\f\r "}
_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_SYNTAX = frozenset(".^$*+?()[]{}|\\/-_,:;#@!%&=<>~\"' `")
"""What a backslash may stand before, to mean that sign."""


class Unreadable(Exception):
    """A pattern outside the subset; its text says why."""


@dataclass(frozen=True, slots=True)
class _Part:
    """A piece of an expression: as engines get it, as Python does, and the fewest bytes that it fits."""

    engine: str
    python: str
    least: int


def _sign(character: str) -> str:
    """A character as both read it: letters and digits themselves, all others by their number."""
    return character if character.isascii() and character.isalnum() else f"\\x{{{ord(character):x}}}"


def _python_sign(character: str) -> str:
    return character if character.isascii() and character.isalnum() else f"\\U{ord(character):08x}"


class _Reader:
    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.place = 0
        self.groups = 0
        self.depth = 0

    def whole(self) -> _Part:
        part = self.choice()
        if self.place < len(self.pattern):
            raise Unreadable("a bracket is closed that was not opened")
        return part

    def _peek(self) -> str:
        return self.pattern[self.place : self.place + 1]

    def _next(self) -> str:
        if self.place >= len(self.pattern):
            raise Unreadable("it ends too early")
        self.place += 1
        return self.pattern[self.place - 1]

    def choice(self) -> _Part:
        parts = [self.sequence()]
        while self._peek() == "|":
            self.place += 1
            parts.append(self.sequence())
        if len(parts) == 1:
            return parts[0]
        least = min(part.least for part in parts)
        return _Part("|".join(p.engine for p in parts), "|".join(p.python for p in parts), least)

    def sequence(self) -> _Part:
        engine, python, least = [], [], 0
        while self._peek() not in ("", "|", ")"):
            part = self.repeated(self.item())
            engine.append(part.engine)
            python.append(part.python)
            least += part.least
            if sum(map(len, engine)) > EXPANDED_MAX:
                raise Unreadable(f"with its repeats written out it has more than {EXPANDED_MAX} characters")
        return _Part("".join(engine), "".join(python), least)

    def item(self) -> _Part:
        sign = self._next()
        if sign == "(":
            return self.group()
        if sign == "[":
            return self.set()
        if sign == "\\":
            return self.escape()
        if sign == ".":
            return _Part(".", ".", 1)
        if sign == "^":
            return _Part("^", r"\A", 0)
        if sign == "$":
            return _Part("$", r"\Z", 0)
        if sign in "*+?{":
            raise Unreadable(f"{sign} repeats nothing")
        if sign in "]}":
            raise Unreadable(f"{sign} stands alone; write \\{sign}")
        return _Part(_sign(sign), _python_sign(sign), len(sign.encode()))

    def group(self) -> _Part:
        captures = self._peek() != "?"
        if not captures:
            if self.pattern[self.place : self.place + 2] != "?:":
                raise Unreadable("(? is not followed by a colon: flags and look-around are not read")
            self.place += 2
        self.depth += 1
        self.groups += captures
        if self.depth > DEPTH_MAX or self.groups > GROUPS_MAX:
            raise Unreadable(f"it has more than {GROUPS_MAX} groups, or is nested deeper than {DEPTH_MAX}")
        inner = self.choice()
        if self._next() != ")":
            raise Unreadable("a bracket is not closed")
        self.depth -= 1
        opening = "(" if captures else "(?:"
        return _Part(f"{opening}{inner.engine})", f"{opening}{inner.python})", inner.least)

    def escape(self) -> _Part:
        sign = self._next()
        if sign in "dws":
            return _Part(f"[{_CLASSES[sign]}]", f"[{_CLASSES[sign]}]", 1)
        if sign in "DWS":
            return _Part(f"[^{_CLASSES[sign.lower()]}]", f"[^{_CLASSES[sign.lower()]}]", 1)
        if sign == "b":  # not \B: RE2 finds it inside a character of several bytes, and then raises
            return _Part(r"\b", r"\b", 0)
        found = self._character(sign)
        return _Part(_sign(found), _python_sign(found), len(found.encode()))

    def _character(self, sign: str) -> str:
        """The character that a backslash and what follows it stand for."""
        if sign in _CONTROLS:
            return _CONTROLS[sign]
        if sign == "x":
            found = re.compile(r"\{([0-9a-f]{1,6})\}").match(self.pattern, self.place)
            if found is not None and int(found[1], 16) < 0x110000:
                self.place = found.end()
                return chr(int(found[1], 16))
        if sign not in _SYNTAX:
            raise Unreadable(f"\\{sign} is not read")
        return sign

    def set(self) -> _Part:
        """A set of characters in square brackets."""
        negated = self._peek() == "^"
        self.place += negated
        engine: list[str] = []
        python: list[str] = []
        while self._peek() != "]" or not engine:
            first = self._member()
            if first is None:
                listed = _CLASSES[self.pattern[self.place - 1]]
                engine.append(listed)
                python.append(listed)
                continue
            last = first
            if self._peek() == "-" and self.pattern[self.place + 1 : self.place + 2] not in ("", "]"):
                self.place += 1
                found = self._member()
                if found is None or found < first:
                    raise Unreadable("a range in square brackets is not one")
                last = found
            engine.append(_sign(first) if first == last else f"{_sign(first)}-{_sign(last)}")
            python.append(_python_sign(first) if first == last else f"{_python_sign(first)}-{_python_sign(last)}")
        self.place += 1
        opening = "[^" if negated else "["
        return _Part(f"{opening}{''.join(engine)}]", f"{opening}{''.join(python)}]", 1)

    def _member(self) -> str | None:
        """A character of a set; None for a class of them, whose letter was read last."""
        sign = self._next()
        if sign == "[":
            raise Unreadable("a square bracket inside square brackets is written \\[")
        if sign == "]":
            raise Unreadable("square brackets are empty; write \\] for the sign")
        if sign != "\\":
            return sign
        sign = self._next()
        return None if sign in _CLASSES else self._character(sign)

    def repeated(self, part: _Part) -> _Part:
        """The item with its repeats behind it: how often, and whether as seldom as can be."""
        sign = self._peek()
        if sign not in ("*", "+", "?", "{") or sign == "":
            return part
        self.place += 1
        least, most = {"*": (0, None), "+": (1, None), "?": (0, 1)}.get(sign, (0, 0))
        if sign == "{":
            found = re.compile(r"([0-9]{1,3})(,?)([0-9]{0,3})\}").match(self.pattern, self.place)
            if found is None or (found[3] and not found[2]):
                raise Unreadable("a number of repeats is not read")
            self.place = found.end()
            least = int(found[1])
            most = least if not found[2] else int(found[3]) if found[3] else None
            if max(least, most or 0) > REPEATS_MAX or (most is not None and most < least):
                raise Unreadable(f"there are more than {REPEATS_MAX} repeats, or fewer at most than at least")
        if part.least == 0:
            raise Unreadable("what is repeated can be empty")
        lazy = "?" if self._peek() == "?" else ""
        self.place += len(lazy)
        if self._peek() in ("*", "+", "?", "{") and self._peek():
            raise Unreadable("a repeat is repeated")
        return self._written_out(part, least, most, lazy)

    def _written_out(self, part: _Part, least: int, most: int | None, lazy: str) -> _Part:
        if "(" in part.engine.replace("(?:", "") and (least, most) not in ((0, 1), (0, None), (1, None)):
            raise Unreadable("a group that captures is repeated by a number; write (?:...)")

        def times(piece: str) -> str:
            if (least, most) in ((0, 1), (0, None), (1, None)):
                return piece + {(0, 1): "?", (0, None): "*", (1, None): "+"}[least, most] + lazy
            if most is None:
                return piece * (least - 1) + piece + "+" + lazy if least else piece + "*" + lazy
            # x{2,4} is xx(?:x(?:x)?)?: each further one only behind the one before.
            return piece * least + f"(?:{piece}" * (most - least) + f")?{lazy}" * (most - least)

        return _Part(f"(?:{times(part.engine)})", f"(?:{times(part.python)})", part.least * least)


def _read(pattern: str) -> tuple[_Part, int]:
    reader = _Reader(pattern)
    part = reader.whole()
    if len(part.engine) > EXPANDED_MAX:
        raise Unreadable(f"with its repeats written out it has more than {EXPANDED_MAX} characters")
    return part, reader.groups


def engine_pattern(pattern: str) -> str:
    """The pattern as engines get it. Reading it again gives itself, or the same meaning. Errors: Unreadable."""
    return _read(pattern)[0].engine


def python_pattern(pattern: str) -> re.Pattern[str]:
    """The pattern as Python reads it: it decides what a text's matches are. Errors: Unreadable."""
    return re.compile(_read(pattern)[0].python, re.ASCII)


def _resolve(forms: str, kind: ColumnType, *, least: int, most: int) -> Resolve:
    """A text and a pattern, with one more constant where `most` says so: a group, or a replacement."""

    def resolve(arguments: tuple[Expression, ...]) -> Resolved:
        arity(forms, arguments, least, most)
        value = expect(forms, arguments[0], TEXT)
        written = constant_text(forms, arguments[1], "pattern", most=max(PATTERN_MAX, EXPANDED_MAX))
        try:
            part, groups = _read(written)
        except Unreadable as unreadable:
            raise TypeRefused(
                "unsupported_function",
                f'"{forms}" is refused with this pattern',
                f"Patterns are those regular expressions that every engine reads alike. Here {unreadable}.",
                ("for a text t: REGEXP_MATCHES(LOWER(t), '^(abc|def)[0-9]+')", "for a text t: t LIKE 'abc%'"),
            ) from None
        others = list(arguments[2:])
        if kind is TEXT and most == 3:
            others = others or [Literal(0, INTEGER)]
            constant_integer(forms, others[0], "group", least=0, most=groups)
        if most == 4:
            _check_replacement(forms, part, others)
        return Resolved((value, Literal(part.engine, TEXT), *others), kind)

    return resolve


def _check_replacement(forms: str, part: _Part, others: list[Expression]) -> None:
    replacement = constant_text(forms, others[0], "replacement", most=PATTERN_MAX)
    if len(others) == 1:
        others.append(Literal("", TEXT))
    if constant_text(forms, others[1], "option", most=1) not in ("", "g") or "\\" in replacement:
        raise TypeRefused(
            "unsupported_function",
            f'"{forms}" is refused here',
            "Its only option is 'g', for every match, and the replacement has no backslash.",
        )
    if part.least == 0 or len(replacement.encode()) > part.least:
        raise TypeRefused(
            "too_large",
            f'"{forms}" is refused here',
            "The replacement is longer than the shortest text that it replaces, so the text could grow without limit.",
        )


def _lower(use: RegularUse) -> Callable[[Call, Lowerer], Scalar]:
    def lower(call: Call, lowerer: Lowerer) -> Scalar:
        pattern, *others = (part.value for part in call.arguments[1:] if isinstance(part, Literal))
        group = whole(others[0]) if use == "extract" else 0
        replacement = lowerer.value(call.arguments[2]) if use == "replace" else None
        every = use == "replace" and others[1] == "g"
        return RegularExpression(use, lowerer.value(call.arguments[0]), text(pattern), group, replacement, every)

    return lower


def _extract(call: Call, values: Sequence[Value]) -> str:
    found = python_pattern(text(values[1])).search(text(values[0]))
    return "" if found is None else found[whole(values[2])] or ""


def _replace(call: Call, values: Sequence[Value]) -> str:
    replacement = text(values[2])
    every = 0 if values[3] == "g" else 1
    return python_pattern(text(values[1])).sub(lambda _: replacement, text(values[0]), count=every)


_TOTALITY = "The pattern is a constant that was read beforehand; RE2 matches it in linear time, whatever the text is."


def _operator(
    name: str,
    forms: str,
    meaning: str,
    kind: ColumnType,
    use: RegularUse,
    reference: Callable[[Call, Sequence[Value]], Value],
    *,
    most: int = 2,
) -> Operator:
    constants = {2: "", 3: ", constant number of a group", 4: ", constant replacement, 'g'"}[most]
    return Operator(
        name=name,
        forms=forms,
        signature=f"TEXT, constant pattern of up to 200 characters{constants} -> {kind.value.upper()}",
        meaning=meaning,
        totality=_TOTALITY,
        resolve=_resolve(forms, kind, least=3 if most == 4 else 2, most=most),
        lower=_lower(use),
        reference=reference,
        characters=None if kind is BOOLEAN else lambda arguments, lengths: lengths[0],
        nullable=any_nullable,
        strict=True,
        # Never computed while a question is planned: Python may take exponential time for what RE2 does in linear.
        exact=False,
        quick=False,
        section="Text",
    )


OPERATORS: tuple[Operator, ...] = (
    _operator(
        "regexp_matches",
        "REGEXP_MATCHES(a, 'pattern'), a ~ 'pattern'",
        "Whether some part of the text fits the regular expression.",
        BOOLEAN,
        "search",
        lambda call, values: python_pattern(text(values[1])).search(text(values[0])) is not None,
    ),
    _operator(
        "regexp_full_match",
        "REGEXP_FULL_MATCH(a, 'pattern'), a SIMILAR TO 'pattern'",
        "Whether the whole text fits the regular expression.",
        BOOLEAN,
        "full",
        lambda call, values: python_pattern(text(values[1])).fullmatch(text(values[0])) is not None,
    ),
    _operator(
        "regexp_extract",
        "REGEXP_EXTRACT(a, 'pattern' [, group])",
        "The first part of the text that fits, or a group of it; empty where nothing fits.",
        TEXT,
        "extract",
        _extract,
        most=3,
    ),
    _operator(
        "regexp_replace",
        "REGEXP_REPLACE(a, 'pattern', 'new' [, 'g'])",
        "The first part that fits replaced, or every one with 'g'; the new text is no longer than what fits.",
        TEXT,
        "replace",
        _replace,
        most=4,
    ),
)
"""Entries of the allow-list."""
