"""What each column of an answer estimates where units are beyond their contribution bounds, in plain sentences.

Functions of declarations and the request alone. mechanisms/bounding.md has the definitions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from privacy.norms import NormOf, NormPower
from privacy.release import BoundsNote, NormNote
from privacy.statistic import Estimate, StatisticKind
from privacy.statistic_kind import Estimated
from sql_rewrite.bound import BoundedCore
from sql_rewrite.contribution import Contribution, NormedContribution

__all__ = ["counts_of", "estimand", "rows_are_cut", "what_is_cut"]

UNITS = "privacy units"
"""What the statistics of units say that they are about."""


def estimand(core: BoundedCore, estimate: Estimate) -> str:
    """What a column estimates, by itself: the same whatever stands beside it."""
    contribution = core.contribution
    match contribution:
        case NormedContribution():
            return _scaled(core, estimate)
        case Contribution():
            return _counted(core, contribution, estimate)
        case _:
            assert_never(contribution)


def _scaled(core: BoundedCore, estimate: Estimate) -> str:
    """The same where units are scaled to norms."""
    statistic = next(item.statistic for item in core.statistics if item.statistic.name == estimate.statistic)
    norm = next((item.norm for item in core.norms if item.norm.name == statistic.norm), None)
    if norm is None:
        return "units"
    place = " over all groups" if core.core.keys else ""
    match norm.of:
        case NormOf.ROWS:
            scaled = f"each unit scaled down to the norm of its rows{place}"
        case NormOf.UNITS:
            scaled = f"each scaled down to the norm of its groups{place}"
        case NormOf.SUM:
            scaled = f"each unit scaled down to the norm of its sums{place}"
        case _:
            assert_never(norm.of)
    kind = estimate.kind.statistic
    said = _estimated(kind)
    if kind is StatisticKind.COUNT and norm.of is NormOf.UNITS:
        said = _estimated(StatisticKind.UNITS)
    return f"{said.of}{' in a group' if said.in_group and core.core.keys else ''}, {scaled}"


def _estimated(kind: StatisticKind) -> Estimated:
    """What an aggregate of a kind estimates. Requires: there is one."""
    assert kind.described.estimated is not None
    return kind.described.estimated


def _counted(core: BoundedCore, contribution: Contribution, estimate: Estimate) -> str:
    """The same where counts bound units."""
    asked = estimate.kind.statistic
    if contribution.rows != 1 and _statistic_of(core, estimate) == UNITS:
        asked = StatisticKind.UNITS  # under a FILTER units are counted as rows, one of each
    if asked is StatisticKind.UNITS:
        return "units" if contribution.one_row or not core.core.keys else "units, each in the groups where it counts"
    if _distinct(core, estimate):
        return _of_values(contribution, asked, grouped=bool(core.core.keys))
    if contribution.one_row:
        return "plain: each unit has one row"
    bound = f"{contribution.rows:,} {_rows(contribution.rows)}"
    place = " and group" if core.core.keys else ""
    total = f", {contribution.total:,} over all groups" if contribution.scaled else ""
    said = _estimated(asked)
    group = " in a group" if said.in_group and core.core.keys else ""
    return f"{said.of}{group}{said.held.format(bound=bound, place=place, total=total)}"


def _distinct(core: BoundedCore, estimate: Estimate) -> bool:
    """Whether an estimate is one of different values."""
    return any(one.statistic.distinct for one in core.statistics if one.statistic.name == estimate.statistic)


def _of_values(contribution: Contribution, asked: StatisticKind, *, grouped: bool) -> str:
    """What an estimate of different values is of."""
    what = {StatisticKind.COUNT: "different values", StatisticKind.SUM: "the sum of different values"}
    said = what.get(asked, "over different values")
    if contribution.one_row:
        return f"{said}: each unit has one row"
    total = f", {contribution.total:,} over all groups" if contribution.scaled else ""
    return f"{said}, of which each unit brings in at most {contribution.rows:,}{' in a group' * grouped}{total}"


def counts_of(core: BoundedCore) -> dict[str, int | None]:
    """The counts that bound a unit, by their names in answers; None where it is scaled to norms."""
    contribution = core.contribution
    match contribution:
        case Contribution():
            groups, rows, total = contribution.groups, contribution.rows, contribution.total
            return {"groups_per_unit": groups, "rows_per_unit_and_group": rows, "rows_per_unit": total}
        case NormedContribution():
            return {"groups_per_unit": None, "rows_per_unit_and_group": None, "rows_per_unit": None}
        case _:
            assert_never(contribution)


def _statistic_of(core: BoundedCore, estimate: Estimate) -> str | None:
    """What the statistic of an estimate is about."""
    return next(one.statistic.argument for one in core.statistics if one.statistic.name == estimate.statistic)


def what_is_cut(
    core: BoundedCore, norms: Sequence[NormNote] = (), bounds: Sequence[BoundsNote] = (), *, open_bounds: bool = False
) -> str | None:
    """Which contribution bound may have cut how, and which values are clipped; None where nothing can be cut.

    `norms` and `bounds` are those that were chosen; with `open_bounds` these bounds will be chosen by the question.
    """
    contribution = core.contribution
    match contribution:
        case NormedContribution():
            cut = _norms_cut(core, norms)
        case Contribution():
            cut = _rows_cut(core, contribution)
        case _:
            assert_never(contribution)
    clipped, chosen = _values_clipped(core, bounds), _chosen(bounds, open_bounds=open_bounds)
    return " ".join(said for said in (cut, clipped, chosen, _not_stored(core)) if said) or None


def _not_stored(core: BoundedCore) -> str | None:
    """Which rows no answer has, by the declarations alone: whether there are any, only the owner knows."""
    tables = {
        source.table.name: source.table
        for source in core.core.sources
        if not source.table.one_row
        and source.table.contribution is not None
        and (isinstance(core.contribution, NormedContribution) or source.table.rows_stored_per_unit is not None)
    }
    if not tables or all(bounded.statistic.argument == UNITS for bounded in core.statistics):
        return None
    most = ", ".join(f"{table.rows_stored:,} of {name}" for name, table in tables.items())
    return f"At most so many rows of one unit are stored (rows_stored_per_unit), and no answer has more: {most}."


def _norms_cut(core: BoundedCore, norms: Sequence[NormNote]) -> str | None:
    """One sentence for each norm; None where no unit is scaled."""
    if not core.norms:
        return None
    if not norms:
        return (
            "Each unit's contribution over all groups is scaled to a norm, which the question chooses from a noisy "
            "histogram of the units' norms: what is cut and the width of the noise follow from it."
        )
    return " ".join(map(_norm_cut, norms))


def _norm_cut(note: NormNote) -> str:
    size = NormPower(note.power).choose(l1="an L1 norm", l2="an L2 norm")
    begin = (
        f"Units whose {_of_norm(note)} over all groups have {size} above {float(note.norm):,.4g} are scaled down to it"
    )
    if note.share is None or note.error is None:
        return f"{begin}; how much that cuts is not known."
    if not note.share and not note.error:
        return f"{begin}; no unit has more, so nothing is cut."
    return (
        f"{begin}, which cuts about {note.share:.1%} (± {2 * note.error:.1%}) of the whole; the interval is that of "
        "the noise alone."
    )


def _of_norm(note: NormNote) -> str:
    """What of a unit the norm measures; of a count of units the groups, in each of which it counts once."""
    return "memberships" if note.of == NormOf.UNITS.value else note.text or note.of


def _chosen(bounds: Sequence[BoundsNote], *, open_bounds: bool) -> str | None:
    """The same of chosen bounds."""
    if not bounds:
        return None
    if open_bounds:
        names = ", ".join(note.column for note in bounds)
        return f"The question chooses bounds for {names} from a noisy histogram of the column's values."
    ends = ", ".join(f"{note.column} {note.lower} to {note.upper}{_beyond(note)}" for note in bounds)
    return f"Values beyond the bounds that were chosen from a noisy histogram of them count as the bound: {ends}."


def _beyond(note: BoundsNote) -> str:
    if note.share is None or note.error is None:
        return " (how many lie beyond is not known)"
    return f" (about {note.share:.1%} of the units, ± {2 * note.error:.1%}, have values beyond)"


def _values_clipped(core: BoundedCore, chosen: Sequence[BoundsNote]) -> str | None:
    """The columns of which values beyond the declared bounds count as the bound, with these bounds."""
    apart = {note.column for note in chosen}
    clipped = {
        column: f"{column} {_end(lower)} to {_end(upper)}"
        for column, lower, upper in core.clipped()
        if column not in apart
    }
    return f"Values beyond the declared bounds count as the bound: {', '.join(clipped.values())}." if clipped else None


def _end(value: object) -> str:
    return f"{value:,.12g}" if isinstance(value, int | float) else str(value)


def rows_are_cut(core: BoundedCore, contribution: Contribution) -> bool:
    """Whether counts may leave out rows or groups of a unit."""
    return _rows_cut(core, contribution) is not None


def _rows_cut(core: BoundedCore, contribution: Contribution) -> str | None:
    """One sentence on which contribution bound may have cut how; None where each unit has one row."""
    if contribution.one_row:
        return None
    cells = core.described.keys.domain
    # Units that are counted as such are all there, however many rows they have.
    rows = any(bounded.statistic.argument != UNITS and bounded.distinct is None for bounded in core.statistics)
    values = _values_cut(core, contribution)
    parts: list[str] = []
    if contribution.choose_groups:
        of = ("group" if contribution.groups == 1 else "groups") if cells is None else f"of the {len(cells):,} groups"
        parts.append(f"counts in at most {contribution.groups:,} {of} (groups_per_unit)")
    verb = "" if parts else "counts "
    if not rows:
        pass
    elif contribution.scaled or contribution.groups > 1:
        each = "each" if parts else "each group"
        parts.append(
            f"{verb}with at most {contribution.rows:,} {_rows(contribution.rows)} in {each} (rows_per_unit_and_group)"
        )
        if contribution.scaled:
            parts.append(f"scaled down beyond {contribution.total:,} rows over all of them (rows_per_unit)")
    else:
        name = "rows_per_unit" if contribution.rows == contribution.total else "rows_per_unit_and_group"
        parts.append(f"{verb}with at most {contribution.rows:,} {_rows(contribution.rows)} ({name})")
    if not parts:
        return values
    text = f"A unit {', '.join(parts)}: where units have more, counts and sums are too low."
    if contribution.choose_groups and cells is not None:
        text += f" {len(cells):,} groups: groups_per_unit {len(cells)} covers them."
    elif contribution.choose_groups:
        text += " A larger groups_per_unit covers groupings in which units have more groups."
    return text if values is None else f"{text} {values}"


def _values_cut(core: BoundedCore, contribution: Contribution) -> str | None:
    """The same of different values; None where none are asked for."""
    if all(bounded.distinct is None for bounded in core.statistics):
        return None
    most = f"{contribution.rows:,}"
    if contribution.rows == contribution.total:
        most += f"{' in each group' * bool(core.core.keys)} (rows_per_unit)"
    else:
        most += f"{' in each group' * bool(core.core.keys)} (rows_per_unit_and_group)"
        most += f", {contribution.total:,} over all groups (rows_per_unit)" * contribution.scaled
    return (
        f"Of its different values a unit brings in at most {most}, chosen by a keyed hash: where units have more, "
        "values that few units have may be missing."
    )


def _rows(number: int) -> str:
    return "row" if number == 1 else "rows"
