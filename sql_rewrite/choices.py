"""Choices: blocks that release the best keys of public groups, and no number (mechanisms/exponential_mechanism.md).

    SELECT ward FROM visits GROUP BY ward ORDER BY COUNT(*) DESC LIMIT 3
    core:         visits, k0 = ward; the 3 groups with the greatest COUNT(*)
    shell block:  SELECT k0 AS ward FROM c0

Such a block asked of counts, which the block above sorts, is the same question with more noise or less. A choice costs
by the greatest change of one group's score, times the number of keys, whatever the number of groups that a unit is in;
counts cost by all groups of a unit together, whatever the number of keys. The first is taken where the keys are no more
than the squared L2 norm of a unit's counts in units of that change: then both families of noise favour it.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from privacy.aggregate import AggregateFunction
from privacy.bounds import AutomaticContribution
from privacy.policy import Dataset
from privacy.refusal import Refused
from privacy.statistic import Choice, CoreStatistics, Keys, Statistic
from sql_rewrite.contribution import Contribution, contribution_of, parts_of_unit
from sql_rewrite.expressions import describe
from sql_rewrite.keys import cells_most
from sql_rewrite.plan import Chosen, Core
from sql_rewrite.refuse import refuse
from sql_rewrite.syntax import populated
from sql_rewrite.unit_facts import contribution_bound

__all__ = [
    "KEPT_MAX",
    "HiddenChoice",
    "chosen_of",
    "described_choice",
    "hidden_candidates",
    "mode_of_levels",
    "mode_of_stage",
    "only_columns",
]

KEPT_MAX = 100
"""Most keys of one choice: they are drawn one after the other."""

_SCORES = frozenset({AggregateFunction.ROWS, AggregateFunction.VALUES, AggregateFunction.UNITS, AggregateFunction.SUM})

_CLAUSES = {"expressions", "order", "limit", "offset"}


class HiddenChoice(Exception):
    """The MODE of a core is among values that are not public."""

    def __init__(self, core: Core) -> None:
        super().__init__()
        self.core = core


def chosen_of(core: Core, above: exp.Select, dataset: Dataset) -> Core | None:
    """The choice that a core and the block above it ask for, where that is better than counts; None for any other."""
    asked = _asked(core, above)
    if asked is None:
        return None
    cells = cells_most(core, dataset)
    if cells is None or asked.count >= cells:
        return None
    chosen = replace(core, aggregates=(), choice=asked)
    counted = contribution_of(core, cells)
    if isinstance(contribution_bound(core.sources), AutomaticContribution):
        # Counts are scaled to a norm that the data choose, and cut less than any bound: only units need none.
        units = asked.score.function is AggregateFunction.UNITS
        return chosen if units and asked.count == 1 else None
    assert isinstance(counted, Contribution)
    units = asked.score.function is AggregateFunction.UNITS
    groups, change = (counted.groups, 1) if units else (counted.l2_squared_rows, counted.rows**2)
    return chosen if asked.count * change <= groups else None


def only_columns(above: exp.Select) -> exp.Select:
    """The block above a choice: its order and limit are those of the released table."""
    return exp.Select(expressions=[one.copy() for one in above.expressions])


def _asked(core: Core, above: exp.Select) -> Chosen | None:
    """The keys, and no number, by the order of one aggregate, and so many of them."""
    order, limit, offset = above.args.get("order"), above.args.get("limit"), above.args.get("offset")
    if populated(above) - _CLAUSES or order is None or not isinstance(limit, exp.Limit):
        return None
    if len(core.aggregates) != 1 or not core.keys:
        return None
    (score,) = core.aggregates
    if score.function not in _SCORES or score.distinct:
        return None
    keys = {name for name, _ in core.keys}
    if not all(isinstance(one.this, exp.Column) and one.this.name in keys for one in above.expressions):
        return None
    first, *others = order.expressions
    by_score = isinstance(first.this, exp.Column) and first.this.table == core.name and first.this.name == score.name
    if not by_score or any(not isinstance(one.this, exp.Column | exp.Literal) for one in others):
        return None
    count, skipped = _number(limit), 0 if offset is None else _number(offset)
    if count is None or not 1 <= count <= KEPT_MAX or skipped != 0:
        return None
    return Chosen(score=replace(score, name=""), count=count, within=(), least=not first.args.get("desc"))


def _number(clause: exp.Expr) -> int | None:
    """The whole number of a LIMIT or OFFSET."""
    written = clause.args.get("expression")
    if populated(clause) - {"expression"} or not isinstance(written, exp.Literal) or written.is_string:
        return None
    return int(written.this) if str(written.this).isdecimal() and len(written.this) < 10 else None


def described_choice(core: Core, keys: Keys, statistic: Statistic) -> CoreStatistics:
    """The statistics of a core that releases a choice: its score's alone, of which no estimate is made."""
    assert core.choice is not None
    lowest, highest = statistic.of_one_row
    alone = Choice(
        count=core.choice.count,
        within=core.choice.within,
        least=core.choice.least,
        parts_per_unit=1,
        one_way=lowest >= 0 or highest <= 0,
    )
    most = parts_of_unit(core, groups=keys.groups_per_unit, parts=len(alone.parts(keys)))
    return CoreStatistics(core.name, keys, (statistic,), estimates=(), choice=replace(alone, parts_per_unit=most))


def mode_of_levels(chosen: Chosen) -> Refused:
    """The refusal of MODE beside levels of groups."""
    return refuse(
        "unsupported_sql",
        "MODE of several levels of groups is refused",
        "The most frequent value of a level does not follow from those of a finer one.",
        "ask each level in its own query",
        position=chosen.score.position,
    )


def mode_of_stage(chosen: Chosen) -> Refused:
    """The refusal of MODE in the private part of a later stage."""
    return refuse(
        "unsupported_sql",
        "a nested MODE in a query of rows about people is refused",
        "Later stages read numbers that are sums with noise; a choice has none.",
        "ask for it first, and write its value as a constant or parameter",
        position=chosen.score.position,
    )


def hidden_candidates(core: Core) -> Refused:
    """The refusal of a core's choice among values that are not public."""
    chosen = core.choice
    assert chosen is not None
    values = ", ".join(describe(key) for name, key in core.keys if name not in chosen.within)
    return refuse(
        "unsupported_sql",
        "a choice among values that are not public is refused",
        "Which values there are would be revealed by the one that is chosen.",
        f"group by {values}, and COUNT(*), ORDER BY it and LIMIT 1: of the groups that enough people share",
        "ask an administrator to declare the column's keys, or its bounds where it is a whole number",
        position=chosen.score.position,
    )
