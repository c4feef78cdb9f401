"""By how much what norms cut may move a released number, as far as a histogram says; and warnings of it.

    count, sum   of the whole a part p is missing: x is up to p / (1 - p) x further from zero; a sum of values of
                 both signs as much higher or lower
    average      of the rows a part p is missing, whose values lie in [L, H]: it lies within (1 - p) x + p [L, H]
    a quotient   x / y of sums of which a and b are missing: between (1 - b) and 1 / (1 - a) times itself

*Proof* of the average. Let the weights w(u) scale unit u, with n(u) rows of sum s(u), values clipped to [L, H], and let
p be the part of the rows that scaling takes: p sum n = sum (1 - w) n. Of all rows the mean is (1 - p) times that of the
scaled ones, sum w s / sum w n, and p times a mean of values in [L, H] with the weights 1 - w. So each is no further
away than said where the parts of a cell are those of the whole.

Of a count or an average over the partners of a LEFT JOIN of people's tables p is not known: the histogram weighs all
rows, and most may have no partner. Of 8,400 rows 0.9 % were cut, which was every sixth of the 480 with a partner.

Empirical: p is the share that the histogram says with twice its error, of the whole, and may differ from cell to cell.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import assert_never

from mechanisms.released_table import ReleasedTable
from privacy.aggregate import AggregateFunction
from privacy.refusal import Finding
from privacy.release import ColumnKind, NormNote
from privacy.statistic import Estimate
from privacy.statistic_kind import StatisticKind
from server.answer_rows import AnswerRows
from server.journey.wire_norms import INSTEAD, warns
from sql_rewrite.bound import BoundedCore
from sql_rewrite.expressions import columns_of
from sql_rewrite.plan import ShellOutput
from sql_rewrite.trace import Read, Shape, Trace
from sql_rewrite.value_bounds import written_argument

__all__ = ["Cut", "Known", "beyond_noise", "cut_of", "of_partners"]

NOTABLE = 1 / 2
"""A warning is given where more is likely to be missing than this part of the half width of an interval, or may be than
all of it. An interval at 95 % that is moved by half of it holds the truth 83 times in 100, moved by all every second
time. Likely is the estimate and once its error; with twice the error answers of a large spend were all warned of."""

Known = dict[str, tuple[BoundedCore, ReleasedTable]]
"""The cores by their names, with what was released of them."""

_Ends = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Cut:
    """The part of the whole that may be cut, and what that does: `either` where what is cut may have either sign.

    `negative` is where no value is above zero, so that what is missing is below. `held` are the ends of the range of an
    average's values, of which it is a mean; None for counts and sums. `likely` is the part with once the error of the
    estimate, where `part` has it twice.
    """

    part: float
    either: bool
    held: _Ends | None = None
    likely: float = 0.0
    negative: bool = False

    def widened(self, low: float, high: float) -> _Ends:
        """An interval of noise with what may be cut."""
        if self.held is not None:
            lower, upper = self.held
            return min(low, low + self.part * (lower - low)), max(high, high + self.part * (upper - high))
        more = self.part / (1 - self.part) * max(abs(low), abs(high)) if self.part else 0
        if not more:
            return low, high
        return low - more if self.either or self.negative else low, high if self.negative else high + more

    def moves(self, low: float, high: float) -> float:
        """By how many half widths of an interval the truth may lie beyond what the noise alone says."""
        if high <= low:
            return 0.0
        lower, upper = self.widened(low, high)
        return 2 * max(low - lower, upper - high) / (high - low)

    def notable(self, low: float, high: float) -> bool:
        """Whether what is cut may decide whether the truth lies in an interval."""
        return self.moves(low, high) > 1 or replace(self, part=self.likely).moves(low, high) > NOTABLE


def cut_of(core: BoundedCore, table: ReleasedTable, column: str) -> Cut | None:
    """What a chosen norm may cut of a released column; None where no histogram says it, or nobody what it does."""
    estimate = next(one for one in core.described.estimates if one.name == column)
    note = _note(table, column)
    if note is None or note.share is None or note.error is None:
        return None
    part, likely = (min(note.share + times * note.error, 0.99) for times in (2, 1))
    sums, of_values = table.sums_of(column), estimate.kind.statistic.described.of_values
    if not part or (sums is not None and sums.linear(column)):
        below, above = _signs(core, estimate) if of_values else (False, True)
        return Cut(part, below and above, likely=likely, negative=below and not above)
    if sums is None or estimate.kind is not AggregateFunction.AVERAGE:
        return None
    held = sums.held_to(estimate)
    return None if held is None else Cut(part, either=True, held=held, likely=likely)


def of_partners(core: BoundedCore, estimate: Estimate) -> bool:
    """Whether an estimate is of values which rows have that met a partner in a LEFT JOIN, while its norm is of all.

    A filter that reads the partner has a norm of its own, of the rows that it keeps.
    """
    found = next(one for one in core.statistics if one.statistic.name == estimate.statistic)
    value = found.present if found.present is not None else found.argument
    weighed = estimate.kind.statistic in (StatisticKind.COUNT, StatisticKind.MOMENTS)
    if value is None or not weighed:
        return False
    joined = ((source.relation, source.join) for source in core.core.sources)
    outer = {relation for relation, join in joined if join is not None and join.outer and join.on_unit}
    kept = () if found.filter is None else columns_of(found.filter)
    return any(one.relation in outer for one in columns_of(value)) and not any(one.relation in outer for one in kept)


def _signs(core: BoundedCore, estimate: Estimate) -> tuple[bool, bool]:
    """Whether values of a sum may be below zero, and whether they may be above."""
    found = next(one.statistic.encoding for one in core.statistics if one.statistic.name == estimate.statistic)
    if found is None:
        return True, True
    ends = [found.offset + found.step * end for end in (found.lowest, found.highest)]
    return min(ends) < 0, max(ends) > 0


def _note(table: ReleasedTable, column: str) -> NormNote | None:
    return next((note for note in table.norms if column in note.estimates), None)


def beyond_noise(known: Known, outputs: Sequence[ShellOutput], rows: AnswerRows) -> Iterator[Finding]:
    """One warning for each column of which what is cut may decide, as far as histograms say.

    A small part of a large number is more than its noise, and no interval of noise has it. Norms that cut more than a
    small part are warned of anyway (`cut_warnings`), but not what is computed from them.
    """
    for place, output in enumerate(outputs):
        if output.kind == ColumnKind.RELEASED and output.core is not None and output.column is not None:
            core, table = known[output.core]
            cut, note = cut_of(core, table, output.column), _note(table, output.column)
            estimate = next(one for one in core.described.estimates if one.name == output.column)
            if note is not None and note.share != 0 and of_partners(core, estimate):
                yield _of_partners(output.name, core, output.column)
                continue
            if cut is None or note is None or (cut.held is None and warns(note)):
                continue
            cells = _intervals((lows[place], highs[place]) for lows, highs in zip(rows.lows, rows.highs, strict=True))
            if any(cut.notable(*ends) for ends in cells):
                yield _of_released(output.name, cut, cells)
        elif output.kind == ColumnKind.DERIVED:
            found = _of_derived(output.name, output.trace, known)
            if found is not None:
                yield found


def _of_partners(name: str, core: BoundedCore, column: str) -> Finding:
    aggregate = next(one for one in core.core.aggregates if one.name == column)
    own = "say of it in FILTER that it IS NOT NULL: then the norm is of these rows alone"
    if aggregate.filter is None and aggregate.argument is not None:
        own = (
            f"{aggregate.text} FILTER (WHERE {written_argument(aggregate)} IS NOT NULL) has a norm of its own, of the "
            "rows with a partner"
        )
    return Finding(
        code="contribution_cut",
        what=f'how much of "{name}" is missing is not known',
        why="It is of rows that met a partner in a LEFT JOIN, and the norm, and what is said that it cuts, are of all "
        "rows, of which most may have none. The interval covers the noise alone.",
        instead=(own, *INSTEAD),
    )


def _intervals(ends: Iterable[tuple[float | int | None, float | int | None]]) -> list[_Ends]:
    return [(low, high) for low, high in ends if low is not None and high is not None]


def _of_released(name: str, cut: Cut, cells: Sequence[_Ends]) -> Finding:
    many = sum(cut.notable(*ends) for ends in cells)
    of_cells = "the cell" if len(cells) == 1 else f"{many:,} of {len(cells):,} cells"
    does = "" if cut.held is None else f", whose values may be anything in [{cut.held[0]:,.6g}, {cut.held[1]:,.6g}],"
    return Finding(
        code="contribution_cut",
        what=f'of "{name}" more may be missing than half of its ±, in {of_cells}',
        why=f"Scaling units to the chosen norm may cut up to {cut.part:.1%} of the whole{does} as far as a noisy "
        f"histogram says: up to {max(cut.moves(*ends) for ends in cells):.0%} of the half width of an interval, which "
        "covers the noise alone.",
        instead=('ask "with_cut": true for intervals that have the cut too', *INSTEAD),
    )


def _of_derived(name: str, trace: Trace, known: Known) -> Finding | None:
    """What is said of a computed column: of each number that it reads, the part that may be missing."""
    parts: dict[Read, tuple[Cut, str]] = {}
    notable = False
    for read in sorted(trace.reads, key=str):
        if read[0] not in known:
            continue
        core, table = known[read[0]]
        released = next((one for one in table.columns if one.name == read[1]), None)
        note = _note(table, read[1])
        cut = None if released is None or note is None else cut_of(core, table, read[1])
        if released is None or note is None or cut is None or not cut.part:
            continue
        text = next((one.text for one in core.core.aggregates if one.name == read[1]), read[1])
        parts[read] = (cut, text)
        cells = _intervals(zip(released.lows, released.highs, strict=True))
        notable = notable or warns(note) or any(cut.notable(*ends) for ends in cells)
    if not notable or trace.shape is Shape.CONSTANT:
        return None
    listed = ", ".join(dict.fromkeys(f"{cut.part:.1%} of {text}" for cut, text in parts.values()))
    return Finding(
        code="contribution_cut",
        what=f'"{name}" is computed from numbers of which some may be missing',
        why=f"Scaling units to the chosen norms may cut up to {listed}, as far as noisy histograms say. "
        f"{_consequence(trace, {read: cut for read, (cut, _) in parts.items()})} The interval covers the noise alone.",
        instead=INSTEAD,
    )


def _consequence(trace: Trace, parts: dict[Read, Cut]) -> str:
    """What that does to the computed value, as far as its form says it."""
    match trace.shape:
        case Shape.AFFINE if len(trace.reads) == 1:
            return "The value moves in proportion to it."
        case Shape.AFFINE:
            return "The value moves by the sum of what each of them misses, with its factor."
        case Shape.RATIO if len(trace.divisors) == 1 and len(trace.reads) == 2 and not _spreads(parts):
            above = max((cut.part for read, cut in parts.items() if read not in trace.divisors), default=0.0)
            below = max((cut.part for read, cut in parts.items() if read in trace.divisors), default=0.0)
            return (
                f"Their plain quotient lies between {1 - below:.1%} and {1 / (1 - above):.1%} of what is shown, beside "
                "its noise."
            )
        case Shape.RATIO | Shape.SMOOTH | Shape.ROUGH | Shape.RANK | Shape.FOLDED | Shape.CONSTANT:
            return "How far that moves the value is not known."
        case _:
            assert_never(trace.shape)


def _spreads(parts: dict[Read, Cut]) -> bool:
    """Whether any of the parts is of something other than a plain count."""
    return any(cut.held is not None or cut.either for cut in parts.values())
