"""One condition for all that keep the same rows: what WHERE and FILTER say, in their canonical form.

    age >= 51, age > 50, NOT age <= 50, 50 < age          age > 50
    age BETWEEN 20 AND 29, age >= 20 AND age < 30         age >= 20 AND age <= 29
    ward = 'a' OR ward = 'b', ward IN ('b', 'a', 'b')     ward IN ('a', 'b')
    NOT (NOT smoker), smoker = TRUE, smoker IS TRUE       smoker
    TRUE, 1 = 1                                           none

Claim. The condition that is returned is TRUE in a row exactly where the one that is given is; elsewhere either may be
FALSE or NULL, which WHERE and FILTER do not tell apart.
Proof. Of a condition `said` makes a formula of two values that holds where it is TRUE, or where it is FALSE. AND is
TRUE where every part is and FALSE where one is, OR the other way round, and NOT exchanges the two, in logic of three
values as of two. A comparison with a constant is TRUE for some values, FALSE for all others, and neither for NULL; IS
and IN likewise, and a list with NULL is never FALSE: each of them is a set of values of one expression
(`value_sets`), and AND and OR of these are intersection and union. Whole numbers and dates have no value between two
neighbours. A whole number that is compared as a double with a constant below 2**53 has its order there, and equals it
only as itself. What is no such comparison is a value of TRUE, FALSE or NULL of its own. The formula is then written
as conditions again, one for each set (`predicate_spelling`).

What is never TRUE stays as it is written: only what is known about its text says why it is refused.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from operator import eq, ge, gt, le, lt, ne

from privacy.policy import ColumnType
from sql_rewrite.evaluate import evaluate, is_exact, is_quick
from sql_rewrite.expressions import (
    Call,
    Canonical,
    ColumnRef,
    Expression,
    Literal,
    Value,
    canonical,
    columns_of,
    walk,
)
from sql_rewrite.functions import TypeRefused, build
from sql_rewrite.predicate_spelling import number_of, spelled, states
from sql_rewrite.value_sets import NOTHING, NULL, PRESENT, ValueSet, above, below, both, either, numbers, points

__all__ = [
    "ALWAYS",
    "NEVER",
    "Formula",
    "Joined",
    "Said",
    "formula_of",
    "is_never",
    "normal_predicate",
    "otherwise",
]

BOOLEAN, INTEGER, DATE, TEXT = ColumnType.BOOLEAN, ColumnType.INTEGER, ColumnType.DATE, ColumnType.TEXT
_MIRRORED = {"=": "=", "<>": "<>", "<": ">", ">": "<", "<=": ">=", ">=": "<="}
_OPPOSITE = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_ORDERS = {"=": eq, "<>": ne, "<": lt, "<=": le, ">": gt, ">=": ge}
_APART = {"is_distinct_from": "is_not_distinct_from", "is_not_distinct_from": "is_distinct_from"}
_LOWER, _UPPER = frozenset({">", ">="}), frozenset({"<", "<="})
_OURS = frozenset({"is_not_null", "coalesce"})
_KEPT = _OURS | {"case"}
_EXACT = 2**53


@dataclass(frozen=True, slots=True)
class Said:
    """That the value of an expression is in a set. `form` is the expression's canonical one."""

    operand: Expression
    form: Canonical
    values: ValueSet


@dataclass(frozen=True, slots=True)
class Joined:
    """That all parts hold, or one of them at least. Without parts it always holds, or never."""

    every: bool
    parts: tuple[Formula, ...]


Formula = Said | Joined

ALWAYS, NEVER = Joined(every=True, parts=()), Joined(every=False, parts=())


def normal_predicate(condition: Expression | None) -> Expression | None:
    """A condition that is TRUE in the same rows, and the same for all spellings of it; None where that is every row."""
    if condition is None or _is_plain(condition):
        return condition
    formula = formula_of(condition)
    if formula == NEVER:
        return condition
    try:
        return _written(formula)
    except TypeRefused:  # written out it may be longer than a condition may be
        return condition


def formula_of(condition: Expression) -> Formula:
    """What holds in the rows in which a condition is TRUE; `NEVER` where no row can be so."""
    return _merged(_said(condition, want=True))


# --- conditions as formulas --------------------------------------------------------------------------------------


def _said(node: Expression, *, want: bool) -> Formula:
    """What holds where a condition is TRUE, or with `want` False where it is FALSE."""
    node = _folded(node)
    if isinstance(node, Literal):
        return ALWAYS if node.value is want else NEVER
    if isinstance(node, ColumnRef):
        return _whole(node, want=want)
    match node.operator:
        case "not":
            return _said(node.arguments[0], want=not want)
        case "and" | "or" if want or not any(map(_is_ours, node.arguments)):
            parts = tuple([_said(part, want=want) for part in node.arguments])
            return Joined(every=(node.operator == "and") is want, parts=parts)
        case "=" | "<>" | "<" | "<=" | ">" | ">=":
            return _compared(node, want=want)
        case "in":
            return _listed(node, want=want)
        case "is_null":  # what texts write; `is_not_null` is ours, and stays what it is
            return _of(node.arguments[0], NULL if want else PRESENT)
        case "is_distinct_from" | "is_not_distinct_from":
            return _distinct(node, want=want)
    return _whole(node, want=want)


def _is_ours(node: Expression) -> bool:
    """Whether a condition is one that EXISTS and LEFT JOIN are written as: they are not taken apart."""
    return isinstance(node, Call) and node.operator in _OURS


def _whole(node: Expression, *, want: bool) -> Formula:
    """A condition of which nothing is known but that it is TRUE, FALSE or NULL."""
    return _of(node, points((want,)))


def _of(operand: Expression, values: ValueSet) -> Said:
    return Said(operand, canonical(operand), values)


def _compared(node: Call, *, want: bool) -> Formula:
    symbol, first, second = _sides(node)
    if not isinstance(second, Literal):
        return _whole(node if want else build(_OPPOSITE[node.operator], node.arguments), want=True)
    value = second.value
    if value is None:
        return NEVER
    if first.type is BOOLEAN:
        compares = _ORDERS[symbol if want else _OPPOSITE[symbol]]
        return _truths(first, [truth for truth in (False, True) if compares(truth, value)])
    return _among(first, symbol if want else _OPPOSITE[symbol], value)


def _truths(node: Expression, among: Sequence[bool]) -> Formula:
    """What holds where a condition is one of these; it is looked into once at most, however deep they are nested."""
    if len(among) > 1:
        return _of(node, PRESENT)
    return _said(node, want=among[0]) if among else NEVER


def _sides(node: Call) -> tuple[str, Expression, Expression]:
    """A comparison with its constant, where it has one, on the right."""
    first, second = map(_folded, node.arguments)
    if isinstance(first, Literal):
        return _MIRRORED.get(node.operator, node.operator), second, first
    return node.operator, first, second


def _among(operand: Expression, symbol: str, value: Value) -> Said:
    """The values of an expression that compare so with a constant."""
    if isinstance(value, float) and abs(value) < _EXACT and _as_number(operand):
        assert isinstance(operand, Call)
        return _of(operand.arguments[0], _beside(symbol, math.ceil(value), math.floor(value)))
    if operand.type is INTEGER or operand.type is DATE:
        number = number_of(value)
        return _of(operand, _beside(symbol, number, number))
    assert value is not None
    if isinstance(value, float):
        value += 0.0  # 0.0 and -0.0 are equal
    cuts = {"<": below((value, 0)), "<=": below((value, 1)), ">": above((value, 1)), ">=": above((value, 0))}
    if symbol in cuts:
        return _of(operand, cuts[symbol])
    return _of(operand, _equal(points((value,)), equal=symbol == "="))


def _as_number(operand: Expression) -> bool:
    """Whether it is a whole number that is read as a double."""
    return isinstance(operand, Call) and operand.operator == "as_number" and operand.arguments[0].type is INTEGER


def _beside(symbol: str, least: int, most: int) -> ValueSet:
    """Whole numbers that compare so with a number: `least` is the first that is no less, `most` the last no greater."""
    match symbol:
        case "<":
            return below((least, 0))
        case "<=":
            return below((most + 1, 0))
        case ">":
            return above((most + 1, 0))
        case ">=":
            return above((least, 0))
    return _equal(numbers((least,)) if least == most else NOTHING, equal=symbol == "=")


def _equal(values: ValueSet, *, equal: bool) -> ValueSet:
    """These values, or all others that are present."""
    return values if equal else both((values.other(), PRESENT))


def _listed(node: Call, *, want: bool) -> Formula:
    operand, *members = node.arguments
    constants = [member.value for member in members if isinstance(member, Literal)]
    known = [value for value in constants if value is not None]
    if not want and len(known) < len(constants):
        return NEVER  # NULL among them: it may be none of the others, and is never known to be none of all
    if operand.type is BOOLEAN:
        return _truths(operand, [truth for truth in (False, True) if (truth in known) is want])
    if not known:
        return NEVER
    if operand.type is INTEGER or operand.type is DATE:
        values = numbers(map(number_of, known))
    elif _as_number(operand):
        return _of_numbers(operand, known, want=want)
    else:
        values = points([value + 0.0 if isinstance(value, float) else value for value in known])
    return _of(operand, _equal(values, equal=want))


def _of_numbers(operand: Expression, known: Sequence[Value], *, want: bool) -> Formula:
    """A whole number among doubles."""
    found = [_among(operand, "=" if want else "<>", value) for value in known]
    return Joined(every=not want, parts=tuple(found))


def _distinct(node: Call, *, want: bool) -> Formula:
    operator, first, second = _sides(node)
    same = (operator == "is_not_distinct_from") is want
    if not isinstance(second, Literal):
        return _whole(node if want else build(_APART[operator], node.arguments), want=True)
    if second.value is None:
        return _of(first, NULL if same else PRESENT)
    equal = _said(first, want=second.value is True) if first.type is BOOLEAN else _among(first, "=", second.value)
    return equal if same else otherwise(equal)


def is_never(formula: Formula) -> bool:
    """Whether no row can be so, whatever its values are: a proof where it is true."""
    return _merged(formula) == NEVER


def otherwise(formula: Formula) -> Formula:
    """What holds exactly where a formula does not."""
    if isinstance(formula, Said):
        return Said(formula.operand, formula.form, formula.values.other())
    return Joined(not formula.every, tuple([otherwise(part) for part in formula.parts]))


def _folded(node: Expression) -> Expression:
    """The constant that an expression of constants is, where the evaluator's result is the engine's."""
    if not isinstance(node, Call) or columns_of(node):
        return node
    if any(part.type is TEXT for part in walk(node)) or not (is_quick(node) and is_exact(node)):
        return node
    return Literal(evaluate(node, {}), node.type)


# --- formulas in one form ----------------------------------------------------------------------------------------


def _merged(formula: Formula) -> Formula:
    """The formula with one set for each expression in each junction, and without what holds always or never."""
    if isinstance(formula, Said):
        return _junction([formula], every=True)
    flat: list[Formula] = []
    for part in map(_merged, formula.parts):
        flat += part.parts if isinstance(part, Joined) and part.every is formula.every else (part,)
    return _junction(flat, every=formula.every)


def _junction(parts: Sequence[Formula], *, every: bool) -> Formula:
    about: dict[Canonical, list[Said]] = {}
    for part in parts:
        if isinstance(part, Said):
            about.setdefault(part.form, []).append(part)
    kept: dict[Formula, None] = {}
    for part in parts:
        if isinstance(part, Joined):
            if not part.parts:
                return part  # flattened, it is the opposite of what says nothing here
            kept[part] = None
            continue
        same = about.pop(part.form, None)
        if same is None:
            continue
        values = (both if every else either)([one.values for one in same])
        held = states(part.operand, values)
        if held is (not every):
            return ALWAYS if held else NEVER
        if held is None:
            kept[Said(part.operand, part.form, values)] = None
    found = tuple(kept)
    return found[0] if len(found) == 1 else Joined(every, found)


def _written(formula: Formula) -> Expression | None:
    """The condition that a formula is; None where it always holds."""
    if formula == ALWAYS:
        return None
    if isinstance(formula, Said):
        return spelled(formula.operand, formula.values)
    written = [one for one in map(_written, formula.parts) if one is not None]
    return build("and" if formula.every else "or", written)


def _is_plain(condition: Expression) -> bool:
    """Whether a condition is in its canonical form as it is written: as those of most questions are, found quickly."""
    parts = condition.arguments if isinstance(condition, Call) and condition.operator == "and" else (condition,)
    seen: dict[ColumnRef, list[tuple[str, Value]]] = {}
    for part in parts:
        if type(part) is not Call:
            return False
        symbol = part.operator
        if symbol in _KEPT:
            continue
        if len(part.arguments) < 2:
            return False
        column, constant = part.arguments[0], part.arguments[1]
        if symbol in _MIRRORED and _reads(column) and (type(constant) is ColumnRef or _is_kept(constant)):
            continue
        if type(column) is not ColumnRef or type(constant) is not Literal or not constant.value:
            return False
        if symbol == "in":
            values = {one.value for one in part.arguments if type(one) is Literal}
            if column.type is not TEXT or len(values) < 2 or None in values:
                return False
        elif symbol not in _MIRRORED or column.type is BOOLEAN:
            return False
        seen.setdefault(column, []).append((symbol, constant.value))
    return all(_plain_together(column, said) for column, said in seen.items())


def _is_kept(node: Expression) -> bool:
    return type(node) is Call and node.operator in _KEPT


def _reads(side: Expression) -> bool:
    """Whether a side of a comparison is a column, as a double or as it is."""
    if type(side) is Call and side.operator == "as_number":
        side = side.arguments[0]
    return type(side) is ColumnRef


def _plain_together(column: ColumnRef, said: Sequence[tuple[str, Value]]) -> bool:
    """Whether what is said of one column is in canonical form: alone, or from one value to another."""
    whole = column.type is INTEGER or column.type is DATE
    if len(said) == 1:
        return not whole or said[0][0] in ("=", "<>")
    if len(said) > 2 or column.other is not None:
        return False
    (symbol, low), (other, high) = said if said[0][0] in _LOWER else reversed(said)
    if symbol not in _LOWER or other not in _UPPER:
        return False
    if not whole:
        return (low,) < (high,)
    if symbol != ">=" or other != "<=" or not isinstance(low, int) or not isinstance(high, int):
        return False
    return high - low > 1
