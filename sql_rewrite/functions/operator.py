"""The description of one operator of the allow-list, and the checks of arguments that descriptions share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Protocol

from privacy.by_slots import by_slots
from privacy.policy import ColumnType
from privacy.refusal import Finding
from sql_rewrite.dialects.costs import Cost
from sql_rewrite.expressions import ANY, Call, Expression, Interval, Literal, Value, needs_wide
from sql_rewrite.scalars import Cast, EngineType, Function, Scalar

__all__ = [
    "Characters",
    "Lower",
    "Lowerer",
    "Operator",
    "Range",
    "Reference",
    "Resolve",
    "Resolved",
    "TypeRefused",
    "always",
    "any_nullable",
    "arity",
    "as_long",
    "constant",
    "constant_integer",
    "constant_text",
    "expect",
    "integer_operands",
    "narrow",
    "never",
    "no_range",
    "one_argument",
    "plain_call",
    "refuse_types",
]


class TypeRefused(Exception):
    """An operator was applied to something that it does not accept; its finding gets the text's position later.

    `code` is one of unsupported_type, unsupported_function and too_large. The texts depend on the query only.
    """

    def __init__(self, code: str, what: str, why: str, instead: tuple[str, ...] = ()) -> None:
        self.finding = Finding(code, what, why, instead)
        super().__init__(what)


class Lowerer(Protocol):
    """What an operator's lowering may ask for. Implemented in `sql_rewrite.lower_expression`."""

    def value(self, expression: Expression) -> Scalar:
        """The argument; a NUMBER is finite or NULL."""
        ...

    def loose(self, expression: Expression) -> Scalar:
        """The argument; a NUMBER may be an infinity or NaN where it will be turned into NULL later."""
        ...

    def integer(self, expression: Expression, *, wide: bool) -> Scalar:
        """An INTEGER argument of type WIDE when `wide`, else of 64 bits."""
        ...


@by_slots
@dataclass(frozen=True, slots=True)
class Resolved:
    """What an operator makes of its arguments: the arguments with implicit conversions, and the result type."""

    arguments: tuple[Expression, ...]
    type: ColumnType


Resolve = Callable[[tuple[Expression, ...]], Resolved]
Range = Callable[[Sequence[Expression], Sequence[Interval]], Interval]
Lower = Callable[[Call, Lowerer], Scalar]
Reference = Callable[[Call, Sequence[Value]], Value]
Characters = Callable[[Sequence[Expression], Sequence[int]], int]
"""The most characters of a text that an operator gives; the numbers are those of its arguments, 0 for other types."""


def any_nullable(arguments: Sequence[Expression]) -> bool:
    """NULL when an argument is NULL, and only then."""
    return any(map(_nullable, arguments))


_nullable = attrgetter("nullable")


def never(arguments: Sequence[Expression]) -> bool:
    """Never NULL."""
    return False


def always(arguments: Sequence[Expression]) -> bool:
    """Possibly NULL whatever the arguments are: what is assumed of an operator that claims nothing else."""
    return True


def no_range(arguments: Sequence[Expression], intervals: Sequence[Interval]) -> Interval:
    """For results that are not numbers."""
    return ANY


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """One entry of the allow-list, and the only place that says what is true of the operator in every engine.

    For people: `forms` is the SQL that analysts write, `signature` the accepted types, `meaning` the result in one
    sentence, `totality` why no stored value can make it raise, `section` its table in docs/functions.md.

    For the lift: `names` are the SQL functions that are this operator with their arguments in order, read as far as
    `takes` of them (None: any number); one more is refused as syntax. `alike` arguments are of one kind: an untyped
    NULL takes the type of the others, and a text constant beside a date is a date. `parts` are the words for it in
    EXTRACT and date_part. What is not written as a call of a name has a reader in `lift_call` or `lift_operator`.

    For the plan: `resolve` checks types and counts, `range` maps the arguments' intervals to the result's, `ceiling` is
    what the result can never leave whatever is known of the arguments. `characters` is the most characters of a result
    that is TEXT, from those of the arguments that are: memory and time are bounded by it, so no operator gives text
    without. `values` are all that are not NULL, where they are few.

    For engines: `lower` says what an engine has to compute, in nodes that its dialect writes
    (sql_rewrite/scalars.py). `cost` belongs to a plain call (`plain_call`), and holds for every dialect whose own table
    does not say otherwise; the cost of other nodes is that of their writer, in the dialect. Either is for two arguments
    where the operator is `chained`, and grows with each further one.

    `reference` is the definition in Python: it gets the call and its arguments' values; an infinity or NaN in its
    result means NULL. A `strict` operator gives NULL as soon as one argument is NULL, and `reference` is then never
    called with NULL.

    What follows is claimed only by operators that say so. An operator without a claim may give NULL or an
    infinity for any arguments, and its results are never computed in Python. `nullable` says for some
    arguments whether the result may be NULL. `finite`: finite arguments give a finite number or NULL. `loose`: an
    infinity or NaN of an argument stays visible in the result, so that one guard above the whole chain is enough.
    `exact`: Python's result is the engine's, bit for bit; or, as a function, whether it is so for a text.

    `quick` is disclaimed by what Python may take exponential time for, which is never computed while a question is
    planned.
    """

    name: str
    forms: str
    signature: str
    meaning: str
    totality: str
    section: str
    resolve: Resolve
    lower: Lower
    reference: Reference
    strict: bool
    names: tuple[str, ...] = ()
    takes: int | None = 1
    alike: bool = False
    parts: tuple[str, ...] = ()
    range: Range = no_range
    ceiling: Interval | None = None
    characters: Characters | None = None
    values: tuple[str, ...] = ()
    nullable: Callable[[Sequence[Expression]], bool] = always
    finite: bool = False
    loose: bool = False
    exact: bool | Callable[[str], bool] = False
    quick: bool = True
    cost: Cost | None = None
    chained: bool = False


def one_argument(forms: str, *kinds: ColumnType, to: ColumnType | None = None) -> Resolve:
    """Accepts one argument of one of the types, and gives `to`, or the type that the argument has."""

    def resolve(arguments: tuple[Expression, ...]) -> Resolved:
        arity(forms, arguments, 1)
        argument = expect(forms, arguments[0], *kinds)
        return Resolved((argument,), to or argument.type)

    return resolve


def as_long(arguments: Sequence[Expression], lengths: Sequence[int]) -> int:
    """As long as its longest text."""
    return max(lengths)


def plain_call(name: str, *, cast: EngineType | None = None) -> Lower:
    """A call of the function with the operator's arguments as they are: it is defined for every value.

    `cast` is the type of the result, where engines give it another one.
    """
    return lambda call, lowerer: Function(name, tuple([lowerer.value(part) for part in call.arguments]), cast)


def refuse_types(forms: str, arguments: Sequence[Expression], accepted: str, *instead: str) -> TypeRefused:
    """The refusal of argument types, in words."""
    given = ", ".join(argument.type.value for argument in arguments)
    return TypeRefused(
        "unsupported_type",
        f'"{forms}" is refused for arguments of type {given}',
        f"It accepts {accepted}; values are never converted between text and numbers without a CAST.",
        instead,
    )


def arity(forms: str, arguments: Sequence[Expression], least: int, most: int | None = None) -> None:
    """Refuse a wrong number of arguments; `most` defaults to `least`."""
    most = least if most is None else most
    if not least <= len(arguments) <= most:
        wanted = str(least) if least == most else f"{least} to {most}"
        raise TypeRefused(
            "unsupported_function",
            f'"{forms}" with {len(arguments)} arguments is refused',
            f"This form takes {wanted}.",
        )


def expect(forms: str, argument: Expression, *types: ColumnType) -> Expression:
    """The argument when it has one of the types (a NULL constant takes the first one)."""
    if isinstance(argument, Literal) and argument.value is None:
        return Literal(None, argument.type if argument.type in types else types[0])
    if argument.type not in types:
        raise refuse_types(forms, (argument,), " or ".join(dict.fromkeys(kind.value for kind in types)))
    return argument


def constant(forms: str, argument: Expression, role: str, kind: ColumnType) -> Literal:
    """The argument when it is a constant of the query that is not NULL."""
    if not isinstance(argument, Literal) or argument.value is None or argument.type is not kind:
        raise TypeRefused(
            "unsupported_function",
            f'"{forms}" is refused here',
            f"The {role} must be a constant of type {kind.value}; a value from a row could make it slow or large.",
        )
    return argument


def constant_integer(forms: str, argument: Expression, role: str, *, least: int, most: int) -> int:
    """The value of a constant integer argument within limits."""
    value = constant(forms, argument, role, ColumnType.INTEGER).value
    assert isinstance(value, int)
    if not least <= value <= most:
        raise TypeRefused(
            "too_large", f'"{forms}" with {role} {value} is refused', f"It must be between {least} and {most}."
        )
    return value


def constant_text(forms: str, argument: Expression, role: str, *, most: int) -> str:
    """The value of a constant text argument within a length."""
    value = constant(forms, argument, role, ColumnType.TEXT).value
    assert isinstance(value, str)
    if len(value) > most:
        raise TypeRefused("too_large", f'"{forms}" is refused here', f"The {role} has more than {most} characters.")
    return value


def integer_operands(lowerer: Lowerer, arguments: Sequence[Expression], *, wide: bool) -> tuple[list[Scalar], bool]:
    """INTEGER arguments in one engine type, WIDE when `wide` or one of them needs it, and whether that is WIDE."""
    wide = wide or any(map(needs_wide, arguments))
    return [lowerer.integer(argument, wide=wide) for argument in arguments], wide


def narrow(node: Scalar, call: Call, *, wide: bool) -> Scalar:
    """Back to 64 bits when the operation ran in 128 and its result provably fits.

    A safe cast although a plain one cannot fail here: should the proof be wrong, a NULL is better than an error.
    """
    return Cast(node, EngineType.INTEGER, safe=True) if wide and not needs_wide(call) else node
