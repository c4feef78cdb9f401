"""Text: case, length, pieces, searching. Characters are Unicode code points, as in the engine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

from privacy.policy import ColumnType
from sql_rewrite.dialects.costs import Cost
from sql_rewrite.expressions import Call, Expression, Interval, Literal, Value
from sql_rewrite.functions import ranges
from sql_rewrite.functions.letters import case_agrees, lower_case, upper_case
from sql_rewrite.functions.operator import (
    Operator,
    Reference,
    Resolve,
    Resolved,
    TypeRefused,
    any_nullable,
    arity,
    as_long,
    constant_integer,
    constant_text,
    expect,
    one_argument,
    plain_call,
)
from sql_rewrite.functions.text_size import fixed, growth, longest
from sql_rewrite.functions.values import of_text, of_texts, text, whole
from sql_rewrite.scalars import Concatenation

__all__ = ["OPERATORS"]

TEXT, INTEGER, BOOLEAN = ColumnType.TEXT, ColumnType.INTEGER, ColumnType.BOOLEAN

NEEDLE_MAX = 1_000
PIECE_MAX = 1_000
START_MAX = 1_000_000
GROWTH_MAX = 16
FIXED_MAX = 4_000
"""Most characters of one value that come from constants and from pieces of constant length."""
TEXT_MAX = ranges.between(0, 2**32)
"""No engine stores a longer text."""

_SPACES = "\u0020\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
"""What the engine trims: the space separators of Unicode, neither tabs nor line ends."""


def _resolve_piece(forms: str) -> Resolve:
    def resolve(arguments: tuple[Expression, ...]) -> Resolved:
        arity(forms, arguments, 2)
        constant_integer(forms, arguments[1], "number of characters", least=0, most=PIECE_MAX)
        return Resolved((expect(forms, arguments[0], TEXT), arguments[1]), TEXT)

    return resolve


def _resolve_substr(arguments: tuple[Expression, ...]) -> Resolved:
    forms = "SUBSTR"
    arity(forms, arguments, 2, 3)
    constant_integer(forms, arguments[1], "start", least=1, most=START_MAX)
    if len(arguments) == 3:
        constant_integer(forms, arguments[2], "number of characters", least=0, most=PIECE_MAX)
    return Resolved((expect(forms, arguments[0], TEXT), *arguments[1:]), TEXT)


def _substr(call: Call, values: Sequence[Value]) -> str:
    characters, start = text(values[0]), whole(values[1]) - 1
    return characters[start:] if len(values) == 2 else characters[start : start + whole(values[2])]


def _left(call: Call, values: Sequence[Value]) -> str:
    return text(values[0])[: whole(values[1])]


def _right(call: Call, values: Sequence[Value]) -> str:
    characters = text(values[0])
    return characters[max(0, len(characters) - whole(values[1])) :]


def _resolve_needle(forms: str, kind: ColumnType = BOOLEAN) -> Resolve:
    def resolve(arguments: tuple[Expression, ...]) -> Resolved:
        arity(forms, arguments, 2)
        constant_text(forms, arguments[1], "searched text", most=NEEDLE_MAX)
        return Resolved((expect(forms, arguments[0], TEXT), arguments[1]), kind)

    return resolve


def _resolve_replace(arguments: tuple[Expression, ...]) -> Resolved:
    forms = "REPLACE"
    arity(forms, arguments, 3)
    old = constant_text(forms, arguments[1], "searched text", most=NEEDLE_MAX)
    new = constant_text(forms, arguments[2], "replacement", most=NEEDLE_MAX)
    if len(new.encode()) > len(old.encode()):
        raise TypeRefused(
            "too_large",
            '"REPLACE" is refused here',
            "The replacement is longer than what it replaces, so the text could grow without limit.",
        )
    return Resolved((expect(forms, arguments[0], TEXT), *arguments[1:]), TEXT)


def _replace(call: Call, values: Sequence[Value]) -> str:
    characters, old, new = map(text, values)
    return characters if old == "" else characters.replace(old, new)


def _piece_characters(arguments: Sequence[Expression], lengths: Sequence[int]) -> int:
    """As many as the last argument says, where the text has them."""
    last = arguments[-1]
    assert isinstance(last, Literal)
    return min(lengths[0], whole(last.value))


def _substr_characters(arguments: Sequence[Expression], lengths: Sequence[int]) -> int:
    return _piece_characters(arguments, lengths) if len(arguments) == 3 else lengths[0]


def _replace_characters(arguments: Sequence[Expression], lengths: Sequence[int]) -> int:
    """Not longer in bytes, but four characters may stand where one of four bytes stood."""
    old, new = (a.value for a in arguments[1:] if isinstance(a, Literal))
    return lengths[0] * max(1, -(-len(text(new)) // max(1, len(text(old)))))


def _resolve_concat(forms: str) -> Resolve:
    def resolve(arguments: tuple[Expression, ...]) -> Resolved:
        arity(forms, arguments, 1, GROWTH_MAX)
        converted = tuple(expect(forms, argument, TEXT) for argument in arguments)
        if sum(growth(argument) for argument in converted) > GROWTH_MAX:
            raise TypeRefused(
                "too_large", f'"{forms}" is refused here', f"It joins more than {GROWTH_MAX} stored texts in one value."
            )
        if sum(fixed(argument) for argument in converted) > FIXED_MAX:
            # Repeated constants would make one person's row as large and slow as the query likes.
            raise TypeRefused(
                "too_large",
                f'"{forms}" is refused here',
                f"Its constants may make a text of more than {FIXED_MAX:,} characters.",
            )
        return Resolved(converted, TEXT)

    return resolve


def _length_range(arguments: Sequence[Expression], intervals: Sequence[Interval]) -> Interval:
    most = longest(arguments[0])
    return Interval(Fraction(0), None if most is None else Fraction(most))


def _same_length(
    name: str,
    meaning: str,
    function: Callable[[str], str],
    cost: Cost,
    totality: str = "Removing characters is defined for every text and makes it shorter.",
    *,
    names: tuple[str, ...] = (),
    exact: bool | Callable[[str], bool] = True,
) -> Operator:
    """A text that is not longer than the argument."""
    forms = f"{name.upper()}(a)"
    return Operator(
        name=name,
        forms=forms,
        signature="TEXT -> TEXT",
        meaning=meaning,
        totality=totality,
        names=names,
        resolve=one_argument(name.upper() if names else forms, TEXT),
        lower=plain_call(name),
        reference=of_text(function),
        characters=as_long,
        exact=exact,
        cost=cost,
        nullable=any_nullable,
        strict=True,
        section="Text",
    )


def _case(name: str, function: Callable[[str], str], cost: Cost) -> Operator:
    meaning = f"Every character mapped to its one {name}-case character."
    totality = "The mapping has one result per code point and leaves unknown ones alone."
    return _same_length(name, meaning, function, cost, totality, names=(name,), exact=case_agrees)


def _needle(
    name: str, forms: str, meaning: str, function: Callable[[str, str], bool], cost: Cost, *others: str
) -> Operator:
    return Operator(
        name=name,
        forms=forms,
        signature="TEXT, constant of up to 1,000 characters -> BOOLEAN",
        meaning=meaning,
        totality="Searching a constant is defined for every text.",
        names=(name, *others),
        takes=2,
        resolve=_resolve_needle(forms),
        lower=plain_call(name),
        reference=of_texts(function),
        cost=cost,
        nullable=any_nullable,
        strict=True,
        exact=True,
        section="Text",
    )


def _piece(name: str, forms: str, meaning: str, reference: Reference, cost: Cost) -> Operator:
    return Operator(
        name=name,
        forms=forms,
        signature="TEXT, constant from 0 to 1,000 -> TEXT",
        meaning=meaning,
        totality="The number of characters is a small constant; shorter texts are returned as they are.",
        names=(name,),
        takes=2,
        resolve=_resolve_piece(forms),
        lower=plain_call(name),
        reference=reference,
        characters=_piece_characters,
        cost=cost,
        nullable=any_nullable,
        strict=True,
        exact=True,
        section="Text",
    )


OPERATORS: tuple[Operator, ...] = (
    _case("lower", lower_case, Cost(row=27, vector=2800, character=15.7)),
    _case("upper", upper_case, Cost(row=17, character=17.7)),
    Operator(
        name="length",
        forms="LENGTH(a), CHAR_LENGTH(a)",
        signature="TEXT -> INTEGER",
        meaning="The number of code points.",
        totality="Every stored text is valid UTF-8 of less than 2^32 bytes.",
        names=("length", "char_length"),
        resolve=one_argument("LENGTH", TEXT, to=INTEGER),
        lower=plain_call("length"),
        reference=of_text(len),
        cost=Cost(row=4, character=1.4),
        range=_length_range,
        ceiling=TEXT_MAX,
        nullable=any_nullable,
        strict=True,
        exact=True,
        section="Text",
    ),
    _same_length(
        "trim",
        "Without spaces at both ends (Unicode space separators).",
        lambda t: t.strip(_SPACES),
        Cost(row=51, character=14.6),
    ),
    _same_length(
        "ltrim", "Without spaces at the start.", lambda t: t.lstrip(_SPACES), Cost(row=32, vector=1300, character=7)
    ),
    _same_length(
        "rtrim", "Without spaces at the end.", lambda t: t.rstrip(_SPACES), Cost(row=28, vector=2100, character=9.6)
    ),
    _piece("left", "LEFT(a, n)", "The first n characters.", _left, Cost(row=37, vector=3100, character=3.7)),
    _piece("right", "RIGHT(a, n)", "The last n characters.", _right, Cost(row=41, vector=1400, character=5.9)),
    Operator(
        name="substr",
        forms="SUBSTR(a, start [, n]), SUBSTRING",
        signature="TEXT, constant from 1 to 1,000,000, constant from 0 to 1,000 -> TEXT",
        meaning="From the character at start (1 is the first): n characters, or all that follow.",
        totality="Start and length are bounded constants; a start behind the end gives the empty text.",
        names=("substr", "substring"),
        takes=3,
        resolve=_resolve_substr,
        lower=plain_call("substr"),
        reference=_substr,
        characters=_substr_characters,
        cost=Cost(row=24, vector=3200, character=5),
        nullable=any_nullable,
        strict=True,
        exact=True,
        section="Text",
    ),
    Operator(
        name="concat",
        forms="a || b, CONCAT(a, b, ...)",
        signature="TEXT, ... -> TEXT",
        meaning="The texts one after another; NULL when one is NULL (in CONCAT, NULL is replaced by the empty text).",
        totality="At most 16 stored texts are joined in one value, so its size stays near that of the data.",
        resolve=_resolve_concat("||"),
        lower=lambda call, lowerer: Concatenation(tuple([lowerer.value(argument) for argument in call.arguments])),
        reference=lambda call, values: "".join(map(text, values)),
        characters=lambda arguments, lengths: sum(lengths),
        chained=True,
        nullable=any_nullable,
        strict=True,
        exact=True,
        section="Text",
    ),
    Operator(
        name="replace",
        forms="REPLACE(a, old, new)",
        signature="TEXT, constant, constant that is not longer -> TEXT",
        meaning="Every occurrence of old, from left to right, replaced by new.",
        totality="The replacement is not longer than what it replaces, so the text cannot grow.",
        names=("replace",),
        takes=3,
        resolve=_resolve_replace,
        lower=plain_call("replace"),
        reference=_replace,
        characters=_replace_characters,
        cost=Cost(row=47, vector=3900, character=15, pattern=0.08),
        nullable=any_nullable,
        strict=True,
        exact=True,
        section="Text",
    ),
    _needle(
        "starts_with",
        "STARTS_WITH(a, 'x')",
        "Whether the text begins with it.",
        lambda a, b: a.startswith(b),
        Cost(row=29, vector=2600, character=1),
        "prefix",
    ),
    _needle(
        "ends_with",
        "ENDS_WITH(a, 'x'), SUFFIX",
        "Whether the text ends with it.",
        lambda a, b: a.endswith(b),
        Cost(row=26, vector=2100, character=1.1),
        "suffix",
    ),
    _needle(
        "contains",
        "CONTAINS(a, 'x')",
        "Whether it occurs in the text.",
        lambda a, b: b in a,
        Cost(row=23, vector=3900, character=9.5, pattern=0.12),
    ),
    Operator(
        name="position",
        forms="POSITION('x' IN a), STRPOS(a, 'x'), INSTR",
        signature="TEXT, constant of up to 1,000 characters -> INTEGER",
        meaning="Where it occurs first (1 is the first character), 0 when it does not; 1 for the empty text.",
        totality="Searching a constant is defined for every text, and a text has fewer than 2^32 characters.",
        names=("strpos", "instr"),
        takes=2,
        resolve=_resolve_needle("POSITION", INTEGER),
        lower=plain_call("position"),
        reference=of_texts(lambda a, b: a.find(b) + 1),
        cost=Cost(row=25, character=9.5, pattern=0.12),
        range=_length_range,
        ceiling=TEXT_MAX,
        nullable=any_nullable,
        strict=True,
        exact=True,
        section="Text",
    ),
)
"""Entries of the allow-list."""
