"""Conditions as atoms: FILTERs of one block are measured as the groups that they split its rows into.

    SELECT COUNT(*) FILTER (WHERE sex = 'f') AS a, COUNT(*) FILTER (WHERE sex = 'm') AS b FROM people
    core c0:  people grouped by k0 = CASE WHEN sex = 'f' THEN 1 WHEN sex = 'm' THEN 2 ELSE 0 END, a0 = rows
    shell:    a0 where k0 = 1 as a, a0 where k0 = 2 as b, side by side

An atom is the set of conditions that are TRUE of a row: each row is in exactly one, whatever is NULL, and which atoms
no row can be in is proved from the conditions (`predicates`). Counts and sums of a condition are those of its atoms
together; of averages and variances the condition has to be one atom by itself, and every atom that of a condition.

Claim 1. Each aggregate keeps its estimand, where a unit has one row, or conditions that read what is the same in all
its rows: the same clipped and bounded number, before noise. Proof. An atom's label is the first WHEN that is TRUE.
Larger sets of conditions stand before smaller ones, and a row's own set is the largest of those that are TRUE of it, so
it gets the label of its own set; a condition that is NULL is in no set. The rows with a condition are those of the
atoms that contain it, each once. Bounds: where a unit has one row, nothing is bounded in either plan. Where it has
several and the conditions read what is the same in all of them (`unit_facts`), all its rows are in one atom, so its
rows with a condition are all or none, and it is held to the same number of rows in either plan: the contribution of
both is compared, and is one group without a choice. QED.

Claim 2. Where a unit may have rows in several atoms (`Core.atoms`), it is held over all of them together: at most T =
min(C r, R) rows over all cells, where the same block without conditions has at most C groups, r rows in each and R over
all. A statistic of all atoms then has the sensitivity that one condition's has alone, in L1 and in L2, and a unit of
which r rows in a group and T over all groups have some condition adds to each aggregate what it adds to it alone.
Proof. Each of its rows is in one atom, so its rows over all atoms are at most its rows. Bounds of groups are those of
contribution.py with r and T, whatever the number of groups is: `contribution_over_atoms` has the sensitivities. Within
r and T nothing is scaled or clipped (mechanisms/bounding.md: a unit within all bounds adds exactly its rows and
values), in either plan, and what it adds to the atoms of a condition adds up. QED. A unit beyond them is another
number: it has T rows over all atoms, as with GROUP BY, in place of as many under each condition. Rows of which no
condition is TRUE are not read where every aggregate has one, so that they scale nobody. Units add up over atoms in
claim 1 alone. Where norms are chosen, there is one for the vector of all atoms (mechanisms/norms.md) in place of one
for each condition: each is a choice of the question, and what it cuts is said. Not of partners in a LEFT JOIN, of
which a norm of their own says what is cut, and not of hidden groups or where groups are chosen.

What it costs: one vector in which a unit has one group, in place of K statistics of which each has the same sensitivity
and a K-th of the price. With Gaussian noise a statistic then has sqrt(K) times the error of one with the whole price,
and a sum over m atoms sqrt(m K') times, of K' statistics by atoms; Laplace noise gains more. The plan is changed where
the sum of the errors falls by that count; ranges, degrees and sensitivities are the same, or it is left as it is.
All of that follows from the text and from declarations.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce

from sqlglot import exp

from privacy.aggregate import AggregateFunction
from privacy.policy import ColumnType, Dataset, KeyValue
from privacy.refusal import Refused
from privacy.release import ColumnKind
from privacy.statistic import Statistic, StatisticKind
from sql_rewrite.aggregate_calls import aggregate_form
from sql_rewrite.bound import bound_core
from sql_rewrite.bounded import BoundedCore
from sql_rewrite.contribution import Contribution
from sql_rewrite.expressions import Call, Expression, Literal, canonical, columns_of, form_of
from sql_rewrite.functions import TypeRefused, build
from sql_rewrite.plan import Aggregate, Core, ShellOutput
from sql_rewrite.predicates import ALWAYS, Formula, Joined, Said, formula_of, is_never, normal_predicate, otherwise
from sql_rewrite.released import REPLICATE, ROW, Form, Released, aliased, column, quoted
from sql_rewrite.trace import Shape, Trace
from sql_rewrite.unit_facts import steady_relations
from sql_rewrite.value_sets import PRESENT

__all__ = ["ATOMS_MAX", "Atoms", "atoms_of"]

ATOMS_MAX = 16
"""Most atoms: sums over many have the noise of many."""

_ADDED = (AggregateFunction.ROWS, AggregateFunction.VALUES, AggregateFunction.SUM, AggregateFunction.UNITS)
"""Aggregates that add up over atoms."""

_OF_CASE = (AggregateFunction.SUM, AggregateFunction.AVERAGE, AggregateFunction.VALUES)

_WORTH = 0.99
"""The part of the sum of errors that has to be left at most."""

Masks = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Atoms:
    """A core by atoms in place of one with filters.

    `keys` are the names of the other one's keys in this one, `key` that of the atoms, and `sums` the names of its
    aggregates with the column of this one that adds up to each, and over which atoms, of all that are `read`.
    """

    core: Core
    keys: Mapping[str, str]
    key: str
    sums: tuple[tuple[str, str, Masks], ...]
    read: Masks = ()

    def relation(self, numbers: Mapping[str, str], rows_most: Callable[[], int | None]) -> Released:
        """The other core's columns over the released table of this one: each row is one of each atom, side by side.

        `numbers` are keys of the other core that are there once more, by another name and as doubles.
        """
        core = self.core.name
        outputs = [ShellOutput(name, ColumnKind.KEY, core, held) for name, held in self.keys.items()]
        outputs += [ShellOutput(double, ColumnKind.KEY) for double in numbers.values()]
        for name, held, masks in self.sums:
            rows = [self.read.index(mask) for mask in masks]
            trace = Trace(frozenset((core, held, row) for row in rows), shape=Shape.AFFINE, rises=1)
            if len(rows) == 1:
                outputs.append(ShellOutput(name, ColumnKind.RELEASED, core, held, rows[0], trace))
            else:
                outputs.append(ShellOutput(name, ColumnKind.DERIVED, trace=trace, total=(core, held, len(rows))))

        return Released(
            tuple(outputs),
            identities=len(self.read),
            build=lambda form: self._written(form, numbers),
            rows=frozenset([core]),
            rows_most=rows_most,
        )

    def _written(self, form: Form, numbers: Mapping[str, str]) -> exp.Select:
        """The relation's tree: columns of single rows, which the greatest of one value is."""
        keys = [(column(held), name) for name, held in self.keys.items()]
        doubles = [
            (exp.Cast(this=column(self.keys[name]), to=exp.DataType.build("double")), double)
            for name, double in numbers.items()
        ]
        values = [aliased(value, name) for value, name in (*keys, *doubles)]
        for name, held, masks in self.sums:
            total = reduce(_plus, [self._of_atom(held, mask) for mask in masks])
            values.append(aliased(total, name))
        by: list[exp.Expr] = [column(held) for held in self.keys.values()]
        if form is Form.SIMULATED:
            by.append(column(REPLICATE))
        rows = [aliased(self._of_atom(ROW, mask), f"id${place}") for place, mask in enumerate(self.read)]
        values += [column(REPLICATE)] if form is Form.SIMULATED else []
        values += [] if form is Form.PLAIN else rows
        tree = exp.Select(expressions=values)
        tree.set("from_", exp.From(this=exp.Table(this=quoted(self.core.name))))
        if by:
            tree.set("group", exp.Group(expressions=by))
        if self.keys and form is not Form.SIMULATED:
            first = exp.Ordered(this=exp.Min(this=column(ROW)))
            tree.set("order", exp.Order(expressions=[first]))
        return tree

    def _of_atom(self, name: str, mask: int) -> exp.Expr:
        """A column of the row of one atom."""
        here = exp.EQ(this=column(self.key), expression=exp.Literal.number(mask))
        return exp.Filter(this=exp.Max(this=column(name)), expression=exp.Where(this=here))


def _plus(first: exp.Expr, second: exp.Expr) -> exp.Expr:
    return exp.Add(this=first, expression=second)


def atoms_of(core: Core, dataset: Dataset, *, alone: bool = False) -> Atoms | None:
    """The core by atoms where that has the same estimands with less error; None where it is left as it is.

    With `alone` only where each aggregate is read from one atom: what is asked of its error is then true of it.
    """
    if not [one for one in core.aggregates if one.filter is not None or type(one.argument) is Call]:
        return None  # as most are
    if len(core.aggregates) < 2 or core.met or core.choice is not None:
        return None
    asked = replace(core, aggregates=tuple([_with_filter(one) for one in core.aggregates]))
    filters = {repr(form_of(one.filter)): one.filter for one in asked.aggregates if one.filter is not None}
    conditions = [filters[form] for form in sorted(filters)]
    if len(conditions) + any(one.filter is None for one in asked.aggregates) < 2:
        return None
    if not all(map(_may_add_up, asked.aggregates)):
        return None
    masks = _patterns([formula_of(one) for one in conditions], core.where)
    if masks is None:
        return None
    try:
        apart = bound_core(core, dataset)
        made = _by_atoms(asked, conditions, masks) if _alone(apart, conditions) else _together(asked, conditions, masks)
        if made is None or not _is_held(apart):
            return None
        together = bound_core(made.core, dataset)
    except (Refused, TypeRefused):
        return None
    if not _is_same(asked, apart, together, made) or not _is_better(apart, together, made):
        return None
    sums = _read_of(together, made)
    if alone and any(len(masks) > 1 for masks in sums):
        return None
    read = tuple(sorted({mask for masks in sums for mask in masks}))
    return replace(made, sums=tuple((*one[:2], masks) for one, masks in zip(made.sums, sums, strict=True)), read=read)


def _with_filter(one: Aggregate) -> Aggregate:
    """SUM, AVG and COUNT of a CASE with one condition as what they are: the same aggregate with FILTER.

    Other rows have NULL in it, which none of them reads, or zero, which adds nothing to a sum.
    """
    case = one.argument
    if not isinstance(case, Call) or case.operator != "case" or len(case.arguments) != 3 or one.distinct:
        return one
    condition, value, other = case.arguments
    if not isinstance(other, Literal) or one.function not in _OF_CASE:
        return one
    if other.value is not None and (other.value != 0 or one.function is not AggregateFunction.SUM):
        return one
    try:
        inside = condition if one.filter is None else build("and", (one.filter, condition))
    except TypeRefused:
        return one
    held = replace(one, argument=value, filter=normal_predicate(inside))
    counts = one.function is AggregateFunction.VALUES and not value.nullable
    counts = counts or (one.function is AggregateFunction.SUM and value == Literal(1, ColumnType.INTEGER))
    return replace(held, function=AggregateFunction.ROWS, argument=None) if counts else held


def _may_add_up(one: Aggregate) -> bool:
    """Whether an aggregate may be asked by atoms: of a known kind, and with a condition that narrows no range of it."""
    if one.distinct or one.second is not None:
        return False
    if one.function not in _ADDED and one.function.statistic is not StatisticKind.MOMENTS:
        return False
    if one.argument is None or one.filter is None:
        return True
    read = {(ref.relation, ref.name) for ref in columns_of(one.filter)}
    return not any((ref.relation, ref.name) in read for ref in columns_of(one.argument))


def _patterns(formulas: Sequence[Formula], where: Expression | None) -> Masks | None:
    """The sets of conditions that may be TRUE of a row, as sums of powers of two; None where they are too many."""
    start = ALWAYS if where is None else formula_of(where)
    found: list[tuple[int, tuple[Formula, ...]]] = [(0, (start,))]
    for place, formula in enumerate(formulas):
        split = [
            (mask + more, (*said, one))
            for mask, said in found
            for more, one in ((0, otherwise(formula)), (2**place, formula))
        ]
        found = [(mask, said) for mask, said in split if _may_be(said)]
        if len(found) > ATOMS_MAX:
            return None
    return tuple(mask for mask, _ in found)


def _may_be(said: Sequence[Formula]) -> bool:
    """Whether it is not proved that no row can fulfil all of it: what is never NULL is not NULL either."""
    read = [part for one in said for part in ((one,) if isinstance(one, Said) else one.parts) if isinstance(part, Said)]
    present = [Said(one.operand, one.form, PRESENT) for one in read if not one.operand.nullable]
    return not is_never(Joined(every=True, parts=(*said, *present)))


def _is_held(apart: BoundedCore) -> bool:
    """Whether bounds hold what a unit adds, in public groups of which none is chosen.

    What norms cut of rows with a partner is known from a norm of their own alone (server/journey/column_cut.py).
    """
    contribution, sources = apart.contribution, apart.core.sources
    if isinstance(contribution, Contribution):
        held = not contribution.choose_groups
    else:
        held = not any(source.join is not None and source.join.outer for source in sources)
    return held and apart.described.keys.domain is not None


def _alone(apart: BoundedCore, conditions: Sequence[Expression]) -> bool:
    """Whether a unit has rows in one group and one atom alone."""
    contribution = apart.contribution
    if not isinstance(contribution, Contribution):
        return False
    steady = steady_relations(apart.core.sources)
    inside = all(ref.relation in steady for condition in conditions for ref in columns_of(condition))
    return contribution.one_row or (contribution.groups == 1 and inside)


def _together(asked: Core, conditions: Sequence[Expression], masks: Masks) -> Atoms | None:
    """The core by atoms over which a unit is bounded together; None where its units or all its conditions are asked.

    Where each aggregate has a condition, only rows of which some condition is TRUE are read: others scale no unit.
    """
    if any(one.function is AggregateFunction.UNITS for one in asked.aggregates):
        return None
    core, covered = asked, all(one.filter is not None for one in asked.aggregates)
    if covered:
        masks = tuple(mask for mask in masks if mask)
        some = build("or", conditions)
        where = some if core.where is None else build("and", (core.where, some))
        core = replace(core, where=normal_predicate(where))
    if len(masks) < 2:
        return None
    made = _by_atoms(core, conditions, masks, covered=covered)
    return replace(made, core=replace(made.core, atoms=made.key))


def _by_atoms(core: Core, conditions: Sequence[Expression], masks: Masks, *, covered: bool = False) -> Atoms:
    """The core grouped by atoms too. Errors: TypeRefused, where the key would be too long.

    With `covered` the rows are those that some condition is TRUE of: what is in no other atom is in the last one.
    """
    branches: list[Expression] = []
    for mask in sorted(masks, key=lambda mask: (-mask.bit_count(), mask)):
        held = [condition for place, condition in enumerate(conditions) if mask >> place & 1]
        if held:
            branches += [build("and", held) if len(held) > 1 else held[0], Literal(mask, ColumnType.INTEGER)]
    last = [*branches[:-2], branches[-1]] if covered else [*branches, Literal(0, ColumnType.INTEGER)]
    label = build("case", last)
    keys = dict(core.keys) | {"": label}
    order = sorted(keys, key=lambda name: repr(canonical(keys[name])))
    names = {name: f"k{place}" for place, name in enumerate(order)}
    plain = {aggregate_form(bare): bare for one in core.aggregates for bare in (replace(one, filter=None),)}
    held_as = {form: replace(plain[form], name=f"a{place}") for place, form in enumerate(sorted(plain))}
    places = {repr(canonical(condition)): place for place, condition in enumerate(conditions)}
    sums = []
    for one in core.aggregates:
        inside = None if one.filter is None else places[repr(canonical(one.filter))]
        read = tuple(mask for mask in masks if inside is None or mask >> inside & 1)
        sums.append((one.name, held_as[aggregate_form(replace(one, filter=None))].name, read))
    made = replace(
        core,
        keys=tuple((names[name], keys[name]) for name in order),
        aggregates=tuple(held_as.values()),
    )
    return Atoms(made, {name: names[name] for name, _ in core.keys}, names[""], tuple(sums))


def _is_same(asked: Core, apart: BoundedCore, together: BoundedCore, made: Atoms) -> bool:
    """Whether every aggregate is bounded as before, over the same groups, of which each has all atoms."""
    contribution = together.contribution
    if type(contribution) is not type(apart.contribution):
        return False
    if made.core.atoms is None:
        assert isinstance(contribution, Contribution)
        if contribution != apart.contribution or contribution.groups != 1 or contribution.choose_groups:
            return False
        if not contribution.one_row and asked.aggregates != apart.core.aggregates:
            return False  # how rows of a unit are bounded, CASE and FILTER may say differently
    before, after = apart.described.keys.domain, together.described.keys.domain
    if before is None or after is None:
        return False
    groups = [[name for name, _ in core.core.keys] for core in (apart, together)]
    labels = {cell[groups[1].index(made.key)] for cell in after}
    outer = [tuple(cell[groups[1].index(made.keys[name])] for name in groups[0]) for cell in after]
    full = len(after) == len(before) * len(labels) and set(outer) == set(before)
    return full and all(_same_statistic(one, apart, together, made, labels) for one in asked.aggregates)


def _same_statistic(
    one: Aggregate, apart: BoundedCore, together: BoundedCore, made: Atoms, labels: set[KeyValue]
) -> bool:
    """Whether an aggregate is read from the same statistic in each atom, of the same values."""
    _, held, masks = next(known for known in made.sums if known[0] == one.name)
    by_atoms = next(known for known in together.core.aggregates if known.name == held)
    if by_atoms.argument != one.argument:
        return False
    inside = labels.intersection(masks)
    if not inside or (one.function not in _ADDED and (len(inside) > 1 or not _all_read(made, labels))):
        return False
    before, after = _described(apart, one.name), _described(together, held)
    if before == after or (made.core.atoms is not None and _measured(before) == _measured(after)):
        return True
    original = next(known for known in apart.core.aggregates if known.name == one.name)
    worths = _worth(before), _worth(after)
    return original != one and worths[0] is not None and worths[1] is not None and worths[1] <= worths[0]


def _measured(statistic: Statistic) -> tuple[object, ...]:
    """What a statistic measures of a row, whether units are scaled, in steps of any fineness, or never."""
    steps = statistic.encoding
    ends = None
    if steps is not None and statistic.kind is not StatisticKind.COUNT:
        ends = tuple(steps.offset + steps.step * end for end in (steps.lowest, steps.highest))
    means = statistic.kind, statistic.degree, statistic.coordinates, statistic.parts, statistic.distinct
    return (*means, statistic.counts_nulls, statistic.raised, statistic.lowered, ends)


def _worth(statistic: Statistic) -> Fraction | None:
    """How much one row can add to a count or a sum, in its own unit; None for what else is measured with it."""
    if statistic.kind not in (StatisticKind.COUNT, StatisticKind.SUM) or statistic.coordinates != 1:
        return None
    step = Fraction(1) if statistic.encoding is None else statistic.encoding.step
    return statistic.sensitivity.linf * step


def _all_read(made: Atoms, labels: set[KeyValue]) -> bool:
    """Whether some aggregate reads every atom: warnings of groups without rows are then of what is asked for."""
    return labels <= {label for _, _, masks in made.sums for label in masks}


def _described(bounded: BoundedCore, aggregate: str) -> Statistic:
    """The statistic of an aggregate without what names it: units of which each has one row are counted as rows are."""
    estimate = next(one for one in bounded.described.estimates if one.name == aggregate)
    found = next(one for one in bounded.described.statistics if one.name == estimate.statistic)
    kind = StatisticKind.COUNT if found.kind is StatisticKind.UNITS else found.kind
    return replace(found, name="", argument="", kind=kind)


def _is_better(apart: BoundedCore, together: BoundedCore, made: Atoms) -> bool:
    """Whether the sum of standard errors falls, in those of a statistic with the whole price."""
    read = _read_of(together, made)
    before = len(read) * math.sqrt(len(apart.statistics))
    after = sum(math.sqrt(len(masks) * len(together.statistics)) for masks in read)
    return after <= _WORTH * before


def _read_of(together: BoundedCore, made: Atoms) -> list[Masks]:
    """Of which atoms each aggregate is the sum: of those that a row can be in, in order."""
    place = [name for name, _ in together.core.keys].index(made.key)
    labels = {cell[place] for cell in together.described.keys.domain or ()}
    return [tuple(mask for mask in sorted(masks) if mask in labels) for _, _, masks in made.sums]
