"""Warnings: counts and sums are too low where units count in fewer groups than are shown, or no group is shown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from privacy.bounds import BOUND_MAX, AskedContribution, AutomaticContribution
from privacy.policy import Dataset
from privacy.refusal import Finding
from sql_rewrite.bounded import BoundedCore
from sql_rewrite.contribution import Contribution
from sql_rewrite.plan import Plan

__all__ = [
    "bounds_assumed",
    "bounds_partly_asked",
    "groups_beyond_bound",
    "no_group_shown",
    "shown_groups_beyond_bound",
]


def bounds_assumed(_: Plan, cores: tuple[BoundedCore, ...]) -> Iterator[Finding]:
    """One warning per core whose units are held to counts that nobody declared or asked for."""
    for core in cores:
        bound, declared = core.contribution, core.core.sources[0].table.contribution
        if isinstance(bound, Contribution) and not bound.one_row and isinstance(declared, AutomaticContribution):
            if core.core.choice is not None:
                yield _assumed_choice(bound)
                continue
            if any(bounded.distinct is not None for bounded in core.statistics):
                yield _distinct_assumed(core, bound)
                continue
            yield Finding(
                code="bounds_assumed",
                what="counts and sums may be far too low",
                why="The groups are hidden and no norm is chosen for them, so a unit counts with at most "
                f"{bound.rows:,} rows in each of at most {bound.groups:,} groups, which nobody declared.",
                instead=(
                    "declare the keys of these columns, which makes their groups public",
                    'ask with bounds of your own: "contribution": {"rows_per_unit": 200, "groups_per_unit": 10} '
                    "(or --rows-per-unit 200 --groups-per-unit 10); greater ones leave out less, and smaller ones need "
                    "less noise where a unit has few rows",
                ),
            )


def bounds_partly_asked(
    asked: AskedContribution | None, dataset: Dataset, cores: tuple[BoundedCore, ...]
) -> Iterator[Finding]:
    """A warning where a request names some bounds of tables for which the question would choose, and not others.

    `dataset` is the declared one, without the bounds of the request.
    """
    if asked is None or asked.automatic or asked == AskedContribution():
        return
    for core in cores:
        bound = core.contribution
        if not isinstance(bound, Contribution) or bound.one_row or not _was_automatic(core, dataset):
            continue
        # What bounds the rows of a unit in one group, and over all groups, although nobody named it.
        choice = core.core.choice is not None
        each = asked.rows_per_unit_and_group is None and (choice or (bool(core.core.keys) and bound.rows < bound.total))
        over_all = asked.rows_per_unit is None and not choice
        if not each and not over_all:
            continue
        named = {
            "rows_per_unit": asked.rows_per_unit or 200,
            "groups_per_unit": asked.groups_per_unit,
            "rows_per_unit_and_group": asked.rows_per_unit_and_group or min(200, asked.rows_per_unit or 200),
        }
        wanted = ", ".join(f'"{name}": {number}' for name, number in named.items() if number is not None)
        options = " ".join(
            f"--{name.replace('_', '-')} {number}" for name, number in named.items() if number is not None
        )
        held = f"{bound.total:,} rows over all groups" if over_all else f"{bound.rows:,} rows in each group"
        yield Finding(
            code="bounds_assumed",
            what="counts and sums may be far too low",
            why="Where a request names one contribution bound, the question chooses none of the others: a unit counts "
            f"with at most {held}, which nobody declared or asked for.",
            instead=(
                f'name the others too: "contribution": {{{wanted}}} (or {options})',
                'name none: the question then chooses how much of a unit counts ("contribution": "auto")',
            ),
        )
        return


def _was_automatic(core: BoundedCore, dataset: Dataset) -> bool:
    """Whether a table of a core is declared so that questions choose; unions and computed rows may be of any table."""
    tables = [dataset.table(source.table.name) for source in core.core.sources]
    possible = dataset.tables if None in tables else [table for table in tables if table is not None]
    return any(isinstance(table.contribution, AutomaticContribution) for table in possible)


def _distinct_assumed(core: BoundedCore, bound: Contribution) -> Finding:
    """Of different values: only counts bound what a unit brings in, whether groups are public or not."""
    each = " in each group" if core.core.keys else ""
    return Finding(
        code="bounds_assumed",
        what="values that few units have may be missing",
        why=f"A unit brings in at most {bound.rows:,} of its different values{each}, which nobody declared: no norm is "
        "chosen for different values.",
        instead=(
            f'ask with bounds of your own: "contribution": {{"rows_per_unit": {4 * bound.total}}} '
            f"(or --rows-per-unit {4 * bound.total})",
        ),
    )


def _assumed_choice(bound: Contribution) -> Finding:
    return Finding(
        code="bounds_assumed",
        what="a few units with very many rows may not count in full",
        why="Keys are chosen by counts that bounds hold, not by norms that the data choose: a unit counts with at most "
        f"{bound.rows:,} rows in each group, which nobody declared.",
        instead=(
            'ask with a bound of your own: "contribution": {"rows_per_unit_and_group": 100} '
            "(or --rows-per-unit-and-group 100)",
        ),
    )


def groups_beyond_bound(_: Plan, cores: tuple[BoundedCore, ...]) -> Iterator[Finding]:
    """One warning per core whose public groups are more than a unit may count in."""
    for core in cores:
        cells = core.described.keys.domain
        bound = core.contribution
        if isinstance(bound, Contribution) and bound.choose_groups and cells is not None:
            yield _beyond(len(cells), bound.groups)


def shown_groups_beyond_bound(cores: tuple[BoundedCore, ...], rows: int) -> Iterator[Finding]:
    """The same where only the answer shows the groups: its `rows` are groups of its one core.

    Which groups are shown is released, so their number reveals nothing more.
    """
    if len(cores) == 1 and cores[0].described.keys.domain is None:
        bound = cores[0].contribution
        if isinstance(bound, Contribution) and bound.choose_groups and rows > bound.groups:
            yield _beyond(rows, bound.groups)


def no_group_shown(cores: tuple[BoundedCore, ...], shown: Sequence[int]) -> Iterator[Finding]:
    """Warns of the first core of which no group is shown, although there may be many; `shown` are groups by core."""
    for core, groups in zip(cores, shown, strict=True):
        if not groups and core.described.keys.domain is None:
            yield Finding(
                code="no_group_shown",
                what="no group is large enough to be shown",
                why="The list of groups is not public, so a group appears only where enough units are in it for its "
                "noisy count to be above a threshold. That none appears does not mean that nobody is there.",
                instead=(
                    "group by fewer or coarser keys",
                    "spend more: the threshold falls with the noise",
                    "have the groups declared, where everybody knows them (keys in the dataset file)",
                ),
            )
            return


def _beyond(count: int, groups: int) -> Finding:
    covers = (
        (
            f'ask with "contribution": {{"groups_per_unit": {count}}} (or --groups-per-unit {count}) to cover this '
            "grouping, with more noise",
        )
        if count <= BOUND_MAX
        else ()
    )
    return Finding(
        code="groups_beyond_bound",
        what="counts and sums of the groups are too low",
        why=f"The answer has {count:,} groups, and a unit counts in at most {groups:,} of them (groups_per_unit): "
        "the others of a unit with more are dropped, and ± does not show it.",
        instead=(*covers, "group by fewer keys"),
    )
