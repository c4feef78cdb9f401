"""Statistics that an owner registers: one number of one table, of a kind whose distance to instability is computable.

    SELECT MEDIAN(days) FROM stays WHERE ward = 'A'                                  a quantile
    SELECT QUANTILE_CONT(age, 0.75) - QUANTILE_CONT(age, 0.25) FROM people           a difference of two, or their sum
    SELECT MODE(sex) FROM people                                                     the most frequent declared value

The text is read as every question's. Of these kinds mechanisms/proposed_quantiles.md and stable_mode.md bound what one
unit can do to the answer at every distance, from counts by place. Everything else is refused, with the reason.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace
from fractions import Fraction

from sqlglot import exp

from privacy.aggregate import AggregateFunction
from privacy.policy import ColumnType, Dataset, KeyValue, OwnStatistic
from privacy.rank_tree import QuantileMechanism
from privacy.refusal import Position, Refused
from privacy.statement import Statement
from privacy.statistic import Encoding
from sql_rewrite.bound import bound_core
from sql_rewrite.bounded import BoundedCore
from sql_rewrite.contribution import NormedContribution
from sql_rewrite.cost import Work, check_work
from sql_rewrite.dialects.dialect import Dialect
from sql_rewrite.lift import lift
from sql_rewrite.lower import lower
from sql_rewrite.memory import check_memory
from sql_rewrite.plan import Core, Plan
from sql_rewrite.refuse import refuse
from sql_rewrite.syntax import populated
from sql_rewrite.text import Text

__all__ = ["OwnForm", "OwnKind", "lift_statistic"]

_CLAUSES = frozenset({"expressions", "from_", "where"})
_EXAMPLES = (
    "SELECT MEDIAN(age) FROM people WHERE age >= 18",
    "SELECT QUANTILE_CONT(age, 0.75) - QUANTILE_CONT(age, 0.25) FROM people",
    "SELECT MODE(sex) FROM people",
)
_QUANTILES = frozenset({AggregateFunction.QUANTILE, AggregateFunction.QUANTILE_DISCRETE})
_SIGNS: dict[type[exp.Expr], int] = {exp.Sub: -1, exp.Add: 1}


class OwnKind(enum.StrEnum):
    """The kinds of statistics that can be registered."""

    QUANTILES = "quantiles"
    """A quantile, or a sum or difference of two of one value."""

    MODE = "mode"
    """The most frequent of the declared values of a column."""


@dataclass(frozen=True, slots=True)
class OwnForm:
    """A registered statistic as it is computed: its counts as a statement, and what of them is the answer.

    `terms` are the quantiles with their signs, none for a mode. `places` is how a value becomes its place; `values` are
    those of a mode, in the order of their places. `change` is the most that one unit adds: of quantiles to all counts
    together, of a mode to each one.
    """

    kind: OwnKind
    bounded: BoundedCore
    statement: Statement
    work: Work
    change: int
    terms: tuple[tuple[Fraction, int], ...]
    places: Encoding | None
    values: tuple[KeyValue, ...]

    @property
    def step(self) -> Fraction:
        """The width of a place, in the unit of the column. Requires: quantiles."""
        assert self.places is not None
        return self.places.step

    @property
    def range(self) -> tuple[Fraction, Fraction]:
        """The least and the greatest answer. Requires: quantiles."""
        places = self.places
        assert places is not None
        low, high = places.offset, places.offset + places.step * places.highest
        ends = [(low, high) if sign > 0 else (-high, -low) for _, sign in self.terms]
        return sum((end[0] for end in ends), Fraction(0)), sum((end[1] for end in ends), Fraction(0))


def lift_statistic(own: OwnStatistic, dataset: Dataset, dialect: Dialect) -> OwnForm:
    """The statistic of a text. Depends on the text and on declarations only. Errors: Refused."""
    signs: list[int] = []
    plan = lift(own.sql, dataset.bounded_by(own.contribution), write=lambda tree, text: _parts(tree, text, signs))
    if len(plan.cores) != 1 or plan.stages or plan.public or not plan.shell.trivial:
        raise _refused("It is not one aggregate of the rows of one table of people.")
    (core,) = plan.cores
    if core.choice is not None:
        if signs != [1] or core.choice.within or core.choice.least or core.choice.count != 1 or len(core.keys) != 1:
            raise _refused("A most frequent value is answered by itself.")
        return _mode(bound_core(core, plan.dataset), dialect)
    return _quantiles(core, plan, tuple(signs), dialect)


def _parts(tree: exp.Expr, text: Text, signs: list[int]) -> exp.Expr:
    """The same query with one column for each of two aggregates that are added or subtracted. Errors: Refused."""
    if not isinstance(tree, exp.Select):
        raise _refused("It is not one SELECT.")
    beyond = sorted(populated(tree) - _CLAUSES)
    if beyond:
        raise _refused(f"It has no groups, joins, order or limit; this one has {beyond[0].rstrip('_').upper()}.")
    source = tree.args.get("from_")
    if source is None or not isinstance(source.this, exp.Table) or any(True for _ in tree.find_all(exp.Subquery)):
        raise _refused("It reads one table, without nested queries: what a unit adds is then its rows there.")
    if len(tree.expressions) != 1:
        raise _refused("It gives one number.")
    (item,) = tree.expressions
    value = item.this if isinstance(item, exp.Alias) else item
    while isinstance(value, exp.Paren):
        value = value.this
    sign = _SIGNS.get(type(value))
    if sign is None:
        signs.append(1)
        return tree
    made = []
    for number, part in enumerate((value.this, value.expression)):
        while isinstance(part, exp.Paren):
            part = part.this
        alias = exp.Alias(this=part, alias=exp.to_identifier(f"part{number}", quoted=True))
        alias.meta.update(part.meta)
        made.append(alias)
    signs += [1, sign]
    tree.set("expressions", made)
    return tree


def _quantiles(core: Core, plan: Plan, signs: tuple[int, ...], dialect: Dialect) -> OwnForm:
    by_name = {aggregate.name: aggregate for aggregate in core.aggregates}
    outputs = [by_name.get(str(output.column)) for output in plan.shell.outputs]
    asked = [one for one in outputs if one is not None]
    if core.keys or len(asked) != len(signs) or any(one.function not in _QUANTILES for one in asked):
        raise _refused(
            "One unit can change this aggregate by an amount that no proposal can be tested against: the distance to "
            "where it jumps is known of quantiles strictly between 0 and 1, and of a most frequent value."
        )
    terms = [(Fraction(one.fraction or 0), sign) for one, sign in zip(asked, signs, strict=True)]
    argument = asked[0].argument
    if argument is None or argument.type not in (ColumnType.INTEGER, ColumnType.NUMBER):
        raise _refused("A proposal is a number, so its quantiles are of numbers.", asked[0].position)
    if any(not 0 < fraction < 1 for fraction, _ in terms):
        raise _refused("An extreme value has no distance: one unit decides it.", asked[0].position)
    bounded = bound_core(replace(core, quantiles=QuantileMechanism.EXPONENTIAL), plan.dataset)
    if isinstance(bounded.contribution, NormedContribution):
        raise _refused(
            "How much of a unit counts would be chosen from the rows, and the test needs to know it before.",
            asked[0].position,
            "register it with rows_per_unit, which says how many rows of a unit count",
        )
    if len(bounded.statistics) != 1 or bounded.described.keys.domain != ((),):
        raise _refused("Its quantiles are of two values, or of rows under two conditions.", asked[0].position)
    if len({fraction for fraction, _ in terms}) != len(terms):
        raise _refused("Both of its quantiles are the same.", asked[0].position)
    (item,) = bounded.statistics
    assert item.statistic.drawn is not None
    change = item.statistic.sensitivity.linf
    assert change.denominator == 1
    return OwnForm(
        kind=OwnKind.QUANTILES,
        bounded=bounded,
        statement=lower(bounded, dialect),
        work=_work(bounded, dialect),
        change=int(change),
        terms=tuple(terms),
        places=item.row_encoding,
        values=(),
    )


def _mode(bounded: BoundedCore, dialect: Dialect) -> OwnForm:
    choice, domain = bounded.described.choice, bounded.described.keys.domain
    (item,) = bounded.statistics
    change = item.statistic.sensitivity.linf
    if choice is None or domain is None or not choice.one_way or len(domain) < 2 or change.denominator != 1:
        raise _refused("It has no two declared values, or its score can rise and fall by one unit.")
    return OwnForm(
        kind=OwnKind.MODE,
        bounded=bounded,
        statement=lower(bounded, dialect),
        work=_work(bounded, dialect),
        change=int(change),
        terms=(),
        places=None,
        values=tuple([value for (value,) in domain]),
    )


def _work(bounded: BoundedCore, dialect: Dialect) -> Work:
    check_memory((bounded,), dialect.costs)
    return check_work((bounded,), dialect.costs)


def _refused(why: str, position: Position | None = None, *instead: str) -> Refused:
    return refuse("unsupported_sql", "the statistic is refused", why, *instead, *_EXAMPLES, position=position)
