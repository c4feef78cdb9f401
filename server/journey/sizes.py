"""How large the numbers of an answer will be, as far as released numbers say it; and half widths for relative ones.

Two sources, both public to the asker and neither read from rows here: the profile of the data, which says the sizes
of tables and of declared keys, and the asker's own stored releases of the same question. A relative accuracy becomes
a half width with them, and everything after that is a question for that half width.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial

from accountant.ledger import Ledger
from accountant.request import Reuse, StoredRelease
from mechanisms.calibrate import UNKNOWN_WIDTH, needed_parts, split_of
from mechanisms.estimates import linear_form, linear_half_width
from mechanisms.estimators.estimator import Form
from mechanisms.families import FAMILIES, Law, NoiseFamily, Price
from mechanisms.interval import two_sided_alpha
from mechanisms.measurement import Measurement
from mechanisms.released_table import ReleasedTable
from privacy.aggregate import AggregateFunction
from privacy.numbers import PICO
from privacy.policy import Dataset
from server.answer_rows import from_stored
from server.journey.norms import foresee
from server.journey.query import Prepared, Quote
from server.journey.release_key import law_of, release_key
from server.journey.stages import own_keys
from server.price_refusals import size_not_known, unreachable, width_not_known
from server.profile_types import Profile
from server.published import Published
from server.question import Question
from sql_rewrite.bound import BoundedCore
from sql_rewrite.expressions import ColumnRef
from sql_rewrite.plan import Aggregate

__all__ = ["Size", "Sizes"]

_SERVES = Fraction(100_001, 100_000)
"""Room for the digits of a price: at this width above its own, a stored release surely serves."""

_COUNTS = (AggregateFunction.ROWS, AggregateFunction.UNITS)


@dataclass(frozen=True, slots=True)
class Size:
    """How many units, or rows, a group has: an estimate, and the lower end of its interval."""

    value: float
    low: float


class Sizes:
    """The sizes that are known before an answer. Safe to use from many threads."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._published = Published(ledger)

    def profile(self, dataset: Dataset) -> Profile | None:
        """The published profile of this version of the data; None where none was made."""
        return self._published.of(dataset)

    def resolved(self, question: Question, prepared: Prepared) -> Question:
        """The question with a half width in place of a relative one. Errors: Refused where no size is known.

        A stored release of the asker that is as exact as that serves for free: its own half width is asked for. Numbers
        that later stages alone read promise nothing. The size of a later number is that which it had when it was asked
        before, at the asker's own first numbers.
        """
        if question.relative is None or not prepared.cores:
            return replace(question, relative=None)
        cells = prepared.at_once()
        if cells is None:
            raise width_not_known()
        alpha = two_sided_alpha(question.confidence, cells)
        keys = prepared.keys
        if prepared.plan.stages:
            keys = own_keys(prepared, partial(self._read, question, prepared))
        cores = [
            (core, key)
            for core, key in zip(prepared.cores, keys, strict=True)
            if core.described.name not in prepared.plan.unshown
        ]
        stored = [self._own(question, prepared, core, key) for core, key in cores]
        widths: list[Fraction] = []
        for table in stored:
            own = None if table is None else _own_width(table, question.relative, alpha)
            if own is None:
                break
            widths.append(own)
        if widths and len(widths) == len(stored):
            return replace(question, relative=None, half_width=_picos(max(widths) * _SERVES))
        profile = self._published.of(prepared.plan.dataset)
        sizes = [
            size for (core, _), table in zip(cores, stored, strict=True) for size in _least_sizes(core, table, profile)
        ]
        if not sizes:
            # Averages and quantiles alone: a half width of these is refused in the same words.
            raise unreachable((UNKNOWN_WIDTH,))
        return replace(question, relative=None, half_width=_picos(question.relative * Fraction(min(sizes))))

    def expected(self, prepared: Prepared, quote: Quote, question: Question) -> list[dict[str, object]]:
        """Of each core whose groups the profile knows: how large they are, and how wide intervals are beside that."""
        profile = self._published.of(prepared.plan.dataset) if prepared.cores else None
        if profile is None:
            return []
        found = []
        for core in prepared.cores:
            sizes = _profiled_sizes(core, profile, AggregateFunction.ROWS)
            assumed = sizes is None
            sizes = _sizes_of_parents(core, profile) if sizes is None else sizes
            if sizes:
                widths = _widths(core, prepared, quote, question)
                found.append(_expected_body(core, sizes, widths, assumed=assumed))
        return found

    def stored_width(self, prepared: Prepared, question: Question) -> Fraction | None:
        """The half width at which the asker's own stored releases serve the whole question; None where there are none.

        Only where the widths of all its columns are known before an answer.
        """
        cells = prepared.at_once()
        if not prepared.cores or cells is None or question.reuse is Reuse.NONE:
            return None
        alpha, widths = two_sided_alpha(question.confidence, cells), list[float]()
        for core, key in zip(prepared.cores, prepared.keys, strict=True):
            table = None if core.norms else self._own(question, prepared, core, key)
            if table is None:
                return None
            widths += [linear_half_width(measurement, form, alpha) for _, measurement, form in _linear(table)]
        return _picos(Fraction(max(widths)) * _SERVES) if widths else None

    def _own(self, question: Question, prepared: Prepared, core: BoundedCore, key: str) -> ReleasedTable | None:
        """The asker's best stored release of a core with public groups."""
        if core.described.keys.domain is None:
            return None
        best = self._best(question, prepared, core, key, [Fraction(0)])
        return None if best is None else from_stored(best.body, core.described.name, question.confidence)

    def _read(self, question: Question, prepared: Prepared, core: BoundedCore, key: str) -> StoredRelease | None:
        """The asker's best stored release of a core that later stages read; its groups may be hidden."""
        selecting = sum(one.keys.selection is not None for one in prepared.described)
        policy = prepared.plan.dataset.limits.delta_per_query
        deltas = [Fraction(0)]
        if core.described.keys.selection is not None:
            deltas = [(question.delta or policy) / selecting, policy]
        return self._best(question, prepared, core, key, deltas)

    def _best(
        self, question: Question, prepared: Prepared, core: BoundedCore, key: str, deltas: Sequence[Fraction]
    ) -> StoredRelease | None:
        """The asker's best stored release of a core's key, in any family of noise that may answer."""
        best = None
        families = FAMILIES if question.noise is None else (question.noise,)
        asked = [
            (family, law, split)
            for family in families
            for law in _laws(core, family)
            for split in ("", *_splits(prepared, core, family))
        ]
        for (family, law, split), delta in itertools.product(asked, deltas):
            named = release_key(key, family, delta=delta, law=law, split=split)
            found = self._ledger.find_release(named, principal=question.principal)
            if found is not None and (best is None or found.quality > best.quality):
                best = found
        return best


def _laws(core: BoundedCore, family: NoiseFamily) -> tuple[Law | None, ...]:
    """The laws that releases of a core may have in a family of noise."""
    law = law_of(core.described, family, pure=True)
    return (None,) if law is None else (law, *law.between, None)


def _splits(prepared: Prepared, core: BoundedCore, family: NoiseFamily) -> Iterator[str]:
    """How a width may have split the price of a core by need; nothing where its statistics have their fixed parts."""
    cores = prepared.priced
    if all(one.described.name != core.described.name for one in prepared.cores) or len(core.described.statistics) < 2:
        return
    promised = [one for one in cores if one.name not in prepared.plan.unshown]
    found = set[str]()
    for pure in (False, True):
        fixed = Price(family, Fraction(1), Fraction(0), pure)
        with contextlib.suppress(ValueError):
            by_need = replace(fixed, parts=needed_parts(cores, promised, fixed))
            found.add(split_of(core.described, cores, by_need))
    yield from sorted(found - {""})


def _linear(table: ReleasedTable) -> Iterator[tuple[str, Measurement, Form]]:
    """The columns of a stored release that are linear in its sums, with their measurement and form."""
    for sums in table.sums or ():
        for estimate in sums.estimates:
            form = linear_form(sums.measurement.statistic, estimate.kind)
            if form is not None:
                yield estimate.name, sums.measurement, form


def _own_width(table: ReleasedTable, relative: Fraction, alpha: float) -> Fraction | None:
    """The widest half width of a stored release that is within the part of each of its numbers, else None.

    Numbers that may be zero count for nothing: no interval is narrow beside them.
    """
    widths: list[Fraction] = []
    for name, measurement, form in _linear(table):
        column = next(column for column in table.columns if column.name == name)
        width = Fraction(linear_half_width(measurement, form, alpha))
        sizes = [abs(value) for value in column.numbers if value is not None and abs(value) > width]
        if not sizes or width > relative * Fraction(min(sizes)):
            return None
        widths.append(width)
    return max(widths, default=None)


def _least_sizes(core: BoundedCore, stored: ReleasedTable | None, profile: Profile | None) -> Iterator[float]:
    """The least size of each column of a core whose width is promised. Errors: Refused where one is not known."""
    by_name = {statistic.name: statistic for statistic in core.described.statistics}
    known = {} if stored is None else {column.name: column for column in stored.columns}
    for aggregate, estimate in zip(core.core.aggregates, core.described.estimates, strict=True):
        if linear_form(by_name[estimate.statistic], estimate.kind) is None:
            continue
        lows: Sequence[float] = ()
        sizes = None if profile is None or not _counts(aggregate) else _profiled_sizes(core, profile, estimate.kind)
        if sizes is not None:
            lows = [size.low for size in sizes]
        elif aggregate.name in known:
            column = known[aggregate.name]
            ends = zip(column.lows, column.highs, strict=True)
            lows = [max(float(low), -float(high)) for low, high in ends if low is not None and high is not None]
        else:
            of_data = "a profile of the data" if profile is None else "the profile of the data"
            raise size_not_known(
                f"Neither {of_data} nor a stored release of yours says how large {aggregate.text} is.",
                profiled=profile is not None,
            )
        surely = [low for low in lows if low > 0]
        if not surely:
            raise size_not_known(
                f"{aggregate.text} may be zero in every group, as far as is known, and no width is narrow beside zero.",
                profiled=profile is not None,
            )
        yield min(surely)


def _counts(aggregate: Aggregate) -> bool:
    """Whether the aggregate counts all rows or all units."""
    return aggregate.function in _COUNTS and aggregate.argument is None and aggregate.filter is None


def _profiled_sizes(core: BoundedCore, profile: Profile, of: AggregateFunction) -> list[Size] | None:
    """The rows, or units, of each public group, as the profile says it; None where it says nothing of such groups.

    Of a table in which units have several rows, a key's units are those of one value of each: at most the units that
    have a row there, so that the lower end is one of the group, too.
    """
    source = core.core.sources[0]
    cells = core.described.keys.domain
    table = next((one for one in profile["tables"] if one["name"].lower() == source.table.name.lower()), None)
    stored = source.stored and len(core.core.sources) == 1
    if table is None or cells is None or not stored or core.core.where is not None:
        return None
    units, rows = table["units"], table["units"] if of is AggregateFunction.UNITS else table["rows"]
    if rows is None:
        return None
    if not core.core.keys:
        return [Size(rows["value"], rows["low"])]
    (_, key), *more = core.core.keys
    if more or not isinstance(key, ColumnRef):
        return None
    column = next((one for one in table["columns"] if one["name"].lower() == key.name.lower()), None)
    if column is None or column["keys"] is None:
        return None
    per_unit = max(rows["value"] / units["value"], 1.0) if units["value"] > 0 else 1.0
    sizes = {_told(one["key"]): Size(one["units"]["value"] * per_unit, one["units"]["low"]) for one in column["keys"]}
    # A group that the profile does not name holds nobody that is known of.
    return [sizes.get(_told(cell[0]), Size(0.0, 0.0)) for cell in cells]


def _sizes_of_parents(core: BoundedCore, profile: Profile) -> list[Size] | None:
    """The rows of each group, where the key is of the people that the rows belong to: expected, and not promised.

    The profile says how many units each key has, and how many rows the table; that the units of a group have as many
    rows as others is assumed.
    """
    if len(core.core.sources) != 2 or core.core.where is not None or len(core.core.keys) != 1:
        return None
    (_, key), (child, parent) = core.core.keys[0], core.core.sources
    cells, join = core.described.keys.domain, parent.join
    if cells is None or not isinstance(key, ColumnRef) or key.relation != parent.relation or join is None:
        return None
    whole = child.stored and parent.stored and child.only is None and parent.only is None
    if not whole or not parent.table.one_row or not child.table.protected or join.also or join.when is not None:
        return None
    tables = {one["name"].lower(): one for one in profile["tables"]}
    rows, of = tables.get(child.table.name.lower()), tables.get(parent.table.name.lower())
    if rows is None or of is None or rows["rows"] is None:
        return None
    column = next((one for one in of["columns"] if one["name"].lower() == key.name.lower()), None)
    if column is None or column["keys"] is None:
        return None
    units = {_told(one["key"]): one["units"] for one in column["keys"]}
    every = sum(max(one["value"], 0.0) for one in units.values())
    if every <= 0:
        return None
    each = rows["rows"]["value"] / every
    known = [units.get(_told(cell[0])) for cell in cells]
    return [Size(0.0, 0.0) if one is None else Size(max(one["value"], 0.0) * each, one["low"]) for one in known]


def _told(key: object) -> str:
    """A key as profiles say it."""
    return repr(key.isoformat()) if hasattr(key, "isoformat") else repr(key)


def _widths(core: BoundedCore, prepared: Prepared, quote: Quote, question: Question) -> dict[str, float]:
    """The half widths that a fresh release of the core would have, by the text of its counts."""
    cells = prepared.at_once()
    if quote.priced is None or cells is None:
        return {}
    source = core.core.sources[0]
    seen = foresee(prepared, quote.priced, quote.histograms)
    if core.described.name in seen.open:
        # The width of a question that chooses its norm is that of the norm, which a stored histogram says.
        return {}
    widths = seen.priced.calibration.predicted_half_widths(core.described.name, question.confidence, cells=cells)
    return {
        aggregate.text: width
        for aggregate in core.core.aggregates
        if _counts(aggregate) and (aggregate.function is AggregateFunction.ROWS or source.table.one_row)
        for width in [widths.get(aggregate.name)]
        if width is not None
    }


def _expected_body(
    core: BoundedCore, sizes: Sequence[Size], widths: Mapping[str, float], *, assumed: bool
) -> dict[str, object]:
    ordered = sorted(size.value for size in sizes if size.low > 0)
    picked = {"least": ordered[0], "median": ordered[len(ordered) // 2], "greatest": ordered[-1]} if ordered else {}
    return {
        "table": core.core.sources[0].table.name,
        "groups": len(sizes),
        "perhaps_empty": len(sizes) - len(ordered),
        "rows": {name: round(value) for name, value in picked.items()} or None,
        "assumed": "the people of each group have as many rows as others" if assumed else None,
        "relative": {
            text: {name: float(f"{width / value:.4g}") for name, value in picked.items()}
            for text, width in widths.items()
            if picked
        },
    }


def _picos(width: Fraction) -> Fraction:
    """Rounded down to whole picos, as a half width is asked for."""
    return max(width // PICO, 1) * PICO
