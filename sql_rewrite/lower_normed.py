"""What one unit adds where it is scaled to norms, and in which bin of their histograms it counts.

A unit's factor is floor(2^b min(1, C / N)), N its norm and b the binary places of the statistics; all that it adds is
multiplied by it, and nothing is rounded after that. Four shapes:

    stored  the snapshot keeps the unit's norm beside each of its rows (stored_norms.py): rows, factor -> group by key;
            where only norms are needed it has one row of each unit, or of all units alike: units, factor -> sum
    alone   a unit is in one cell: rows -> group by unit and key, factor from what is there -> group by key
    rows    norms that add up over rows (L1, nothing negative), and L2 norms of the same over many groups: rows -> norm
            of each unit (L1: group by unit; L2: `SquaredTotals`), factor -> joined back to the rows -> group by key
    cells   rows -> group by unit and key -> norm of the unit by a window over these few -> factor -> group by key

The statements of the histogram and of the sums share what does not depend on the norms (`tables`): cells have each
unit's cells and norms, rows its norms, alone its one cell. Then these are tables that are made
once, both statements read them, and the window is a join with the units' norms.

Names are those of the statistics (s0n rows with a value, s0x and s0y sums of T and T^2), of the filters (c0, rows of
the unit) and of the norms (n0v in one cell, n0m over all of them, n0f the factor, n0b the bin). mechanisms/norms.md has
the widths of all products, and the proofs. Hidden groups have their salt as one more key (lower.py says why), and a
unit adds its weight to each of its groups (mechanisms/weighted_threshold.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import assert_never

from privacy.norms import NORM_MAX, NormOf, NormPower
from privacy.policy import ColumnType
from privacy.statistic import StatisticKind
from sql_rewrite.bounded import BoundedCore, BoundedNorm, BoundedStatistic
from sql_rewrite.contribution import NormedContribution
from sql_rewrite.expressions import Canonical, form_of
from sql_rewrite.layer_values import Count, Factor, NormBin, Sum
from sql_rewrite.masked_keys import grouped_by_hidden, names_of, salted
from sql_rewrite.norm_shapes import Shape, additive, shape_of, signed
from sql_rewrite.norm_worth import WEIGHT, NormWorth
from sql_rewrite.normed import WEIGHT_PARTS
from sql_rewrite.relations import (
    Binned,
    Extended,
    Grouped,
    HiddenKey,
    Kept,
    Output,
    Projected,
    Relation,
    SharedRows,
    SquaredTotal,
    SquaredTotals,
    UnitFactors,
    UnitTotals,
)
from sql_rewrite.scalars import Arithmetic, Case, Cast, Coalesce, Comparison, Function, Held, Named, Scalar
from sql_rewrite.scalars import Whole as W
from sql_rewrite.squared_places import place_of_null
from sql_rewrite.statistics.registry import sums_of
from sql_rewrite.stored_norms import UnitTable, known_norms, unit_table
from sql_rewrite.unit_worth import INTEGER, ONE, WIDE, count_under, under, when

__all__ = ["ALIKE", "NormSums"]

_NARROW = 2**62
_ZERO = W(0)
_CELLS, _NORMS = "unit$cells", "unit$norms"
"""Tables that statements share: one row for each unit and cell, and one for each unit."""

ALIKE = "un"
"""How many units have the same norms."""

_GROUPS = "ug"
"""The number of groups of a unit."""


class NormSums(NormWorth):
    """The layers of one core over its rows, each with its unit `u`, its keys, encoded values and filters."""

    def __init__(self, bounded: BoundedCore, keys: tuple[str, ...], hidden: tuple[HiddenKey, ...]) -> None:
        assert isinstance(bounded.contribution, NormedContribution)
        filters: dict[Canonical | None, int] = {}
        numbers = {
            item.statistic.name: filters.setdefault(form_of(item.filter), len(filters)) for item in bounded.statistics
        }
        super().__init__(bounded.norms, numbers)
        self.contribution = bounded.contribution
        self.shape = shape_of(bounded)
        self.statistics = bounded.statistics
        self.keys = keys
        self.hidden = hidden
        self.domain = bounded.described.keys.domain
        self.whole = [key.type for _, key in bounded.core.keys] == [ColumnType.INTEGER]
        """Whether there is one key, a whole number."""
        self.weighted = any(item.statistic.kind is StatisticKind.WEIGHTS for item in bounded.statistics)
        self.owners = {
            norm.norm.name: next(item for item in bounded.statistics if item.statistic.norm == norm.norm.name)
            for norm in bounded.norms
        }
        """For each norm a statistic that sees its rows, and its values."""
        known = known_norms(bounded)
        alike = known is not None and unit_table(bounded.core.sources[0].table, known.values()) is UnitTable.SIZES
        self.alike = ALIKE if alike else None
        """Where one row is of several units, the column that has how many."""

    # What does not depend on the norms

    def tables(self, rows: Relation) -> tuple[tuple[str, Relation], ...]:
        """The tables that the statements of the histogram and of the sums share, by name: none depends on norms."""
        match self.shape:
            case Shape.ALONE:
                return ((_CELLS, self._needed(rows)),)
            case Shape.ROWS:
                return ((_NORMS, self._unit_norms(rows)),)
            case Shape.STORED:
                return ()
            case Shape.CELLS:
                norms = Grouped(SharedRows(_CELLS), "w", ("u",), ("u",), self._all_totals())
                return (_CELLS, self._needed(rows)), (_NORMS, norms)
            case _:
                assert_never(self.shape)

    def _needed(self, rows: Relation) -> Relation:
        """One row for each unit and cell with what is read of it later, in 64 bits where it fits."""
        outputs = {name: Output(Named(name), name) for name in ("u", *self._names)}
        for norm in self.norms:
            outputs[f"{_name(norm)}v"] = Output(Named(f"{_name(norm)}v"), f"{_name(norm)}v")
        for item in self.statistics:
            for output in sums_of(item.statistic.kind).cell(self, item):
                outputs[output.name] = output
        return Projected(self._valued(self._by_unit(rows)), "c", tuple(outputs.values()))

    # Sums

    def summed(self, rows: Relation, vectors: dict[str, list[Scalar]], *, shared: bool) -> Relation:
        """The sums per group. `vectors` has what one row adds to each statistic, which the rows' shape scales."""
        match self.shape:
            case Shape.STORED:
                assert not shared
                factors = tuple([Output(self._factor(norm, Named(f"{_name(norm)}m")), _f(norm)) for norm in self.norms])
                return Grouped(Extended(rows, "q", factors), "p", self.keys, self.keys, self._row_products(vectors))
            case Shape.ALONE:
                layer = SharedRows(_CELLS) if shared else self._valued(self._by_unit(rows))
                factors = tuple([Output(self._factor(norm, Named(f"{_name(norm)}v")), _f(norm)) for norm in self.norms])
                layer = Extended(layer, "q", factors) if factors else layer
                return grouped_by_hidden(layer, "p", self.keys, self._names, self.hidden, self._products())
            case Shape.CELLS:
                factors = tuple([Output(self._factor(norm, Named(f"{_name(norm)}m")), _f(norm)) for norm in self.norms])
                if self.weighted:
                    factors = (*factors, Output(_weight(Named(_GROUPS)), WEIGHT))
                if shared:
                    units = Extended(SharedRows(_NORMS), "q", factors)
                    usual = () if self.weighted else self._whole
                    names = tuple([one.name for one in factors])
                    cells: Relation = UnitFactors(SharedRows(_CELLS), units, names, usual=usual)
                else:
                    totals = UnitTotals(self._valued(self._by_unit(rows)), "w", self._all_totals())
                    cells = Extended(totals, "q", factors)
                return grouped_by_hidden(cells, "p", self.keys, self._names, self.hidden, self._products())
            case Shape.ROWS:
                assert not self.hidden
                units = Extended(
                    SharedRows(_NORMS) if shared else self._unit_norms(rows),
                    "q",
                    tuple([Output(self._factor(norm, Named(f"{_name(norm)}m")), _f(norm)) for norm in self.norms]),
                )
                joined = UnitFactors(rows, units, tuple([_f(norm) for norm in self.norms]), usual=self._whole)
                return Grouped(joined, "p", self.keys, self.keys, self._row_products(vectors))
            case _:
                assert_never(self.shape)

    def of_units(self, units: Relation) -> Relation:
        """The sums without groups, from units with their norms: n0m rows, or their sum, each by the factor."""
        assert self.shape is Shape.STORED
        factors = tuple([Output(self._factor(norm, Named(f"{_name(norm)}m")), _f(norm)) for norm in self.norms])
        counts = []
        for item in self.statistics:
            added = self.scaled(item, Named(f"{item.statistic.norm}m"))
            if self.alike is not None:
                added = Arithmetic("*", Cast(added, WIDE), Cast(Named(self.alike), WIDE), WIDE)
            counts.append(Output(Sum(added), f"{item.statistic.name}_0"))
        return Grouped(Extended(units, "q", factors), "p", self.keys, self.keys, tuple(counts))

    @property
    def _names(self) -> tuple[str, ...]:
        """The keys by which cells are grouped, and the salt of hidden ones."""
        return names_of(self.keys, self.hidden)

    def _by_unit(self, rows: Relation) -> Relation:
        """One row for each unit and cell."""
        by = ("u", *self._names)
        return grouped_by_hidden(salted(rows, self.hidden), "r", by, by, self.hidden, self._partial())

    def _partial(self) -> tuple[Output, ...]:
        """Per unit and cell: rows under each filter, and per statistic its rows with a value and its sums."""
        columns: dict[str, Output] = {}
        for item in self.statistics:
            counted = self.counted(item)
            columns.setdefault(counted, Output(count_under(item, ONE), counted))
            for output in sums_of(item.statistic.kind).of_cell(self, item):
                columns[output.name] = output
        return tuple(columns.values())

    def _valued(self, partial: Relation) -> Relation:
        """With each norm's number for the cell: rows, one or none, or the sum held to the greatest norm."""
        values = tuple([Output(self._value(norm), f"{_name(norm)}v") for norm in self.norms])
        return Extended(partial, "v", values) if values else partial

    def _value(self, norm: BoundedNorm) -> Scalar:
        owner = self.owners[_name(norm)]
        rows = Named(self.counted(owner))
        match norm.norm.of:
            case NormOf.ROWS:
                return rows
            case NormOf.UNITS:
                return Case(((Comparison(">", rows, _ZERO, closed=False), ONE),), _ZERO)
            case NormOf.SUM:
                held = Held(Coalesce((Named(f"{owner.statistic.name}x"), _ZERO)), W(NORM_MAX), W(NORM_MAX))
                return Cast(held, INTEGER)
            case _:
                assert_never(norm.norm.of)

    def _totals(self) -> tuple[Output, ...]:
        """Over all cells of the unit: sums of squares, or of absolute values."""
        return tuple([Output(Sum(self._term(norm)), f"{_name(norm)}m") for norm in self.norms])

    def _all_totals(self) -> tuple[Output, ...]:
        """These, and the number of the unit's groups where it decides about weights."""
        return (*self._totals(), Output(Count(), _GROUPS)) if self.weighted else self._totals()

    def _term(self, norm: BoundedNorm) -> Scalar:
        value = Named(f"{_name(norm)}v")
        if self._squared and norm.norm.of is not NormOf.UNITS:  # one and none are their own squares
            narrow = norm.most**2 < _NARROW
            return Arithmetic("*", value if narrow else Cast(value, WIDE), value, INTEGER if narrow else WIDE)
        return Function("abs", (value,)) if signed(norm) else value

    @property
    def _squared(self) -> bool:
        """Whether totals are squares of norms: of one number they are not."""
        return self.contribution.power is NormPower.L2 and self.contribution.cells > 1

    def _factor(self, norm: BoundedNorm, total: Scalar) -> Scalar:
        return Factor(
            Function("abs", (total,)) if self.shape is Shape.ALONE and signed(norm) else total,
            squared=self._squared,
            wide=self._wide(norm),
            norm=self.contribution.norm(_name(norm)),
            parts=self.owners[_name(norm)].parts,
        )

    @property
    def _whole(self) -> tuple[int, ...]:
        """The factors of a unit that is beyond none of the norms."""
        return tuple([2 ** self.owners[_name(norm)].parts for norm in self.norms])

    def _wide(self, norm: BoundedNorm) -> bool:
        """Whether the sum of absolute values over all cells, or over all rows, may leave 64 bits."""
        match norm.norm.of:
            case NormOf.ROWS | NormOf.UNITS:
                return False
            case NormOf.SUM:
                if self.shape is Shape.STORED:
                    return False  # kept_totals.py keeps none that is beyond 62 bits
                terms = self.contribution.rows if self.shape is Shape.ROWS else self.contribution.cells
                return terms * NORM_MAX >= _NARROW
            case _:
                assert_never(norm.norm.of)

    def _products(self) -> tuple[Output, ...]:
        """Per group: each coordinate of each unit times its factor, summed."""
        columns = []
        for item in self.statistics:
            for i, value in enumerate(self._coordinates(item)):
                columns.append(Output(value, f"{item.statistic.name}_{i}"))
        return tuple(columns)

    def _coordinates(self, item: BoundedStatistic) -> Sequence[Scalar]:
        return sums_of(item.statistic.kind).scaled(self, item)

    # Rows

    def _unit_norms(self, rows: Relation) -> Relation:
        """One row for each unit, with norms that add up over its rows, or the squares of norms of what adds up."""
        if self._squared:
            return self._unit_squares(rows)
        outputs = []
        for norm in self.norms:
            owner = self.owners[_name(norm)]
            match norm.norm.of:
                case NormOf.ROWS:
                    value: Scalar = count_under(owner, ONE)
                case NormOf.SUM:
                    total = Coalesce((Sum(under(owner, Named(f"{owner.statistic.name}t"))), _ZERO))
                    value = Cast(total, INTEGER) if owner.rows * NORM_MAX < _NARROW else total
                case NormOf.UNITS:
                    raise AssertionError("units are counted in cells")
                case _:
                    assert_never(norm.norm.of)
            outputs.append(Output(value, f"{_name(norm)}m"))
        return Grouped(rows, "r", ("u",), ("u",), tuple(outputs))

    def _unit_squares(self, rows: Relation) -> Relation:
        """One row for each unit, with the squares of its L2 norms."""
        totals = []
        for norm in self.norms:
            owner, counts = self.owners[_name(norm)], norm.norm.of is NormOf.ROWS
            value = under(owner, ONE if counts else Named(f"{owner.statistic.name}t"))
            wide = norm.most**2 >= _NARROW
            totals.append(SquaredTotal(value, f"{_name(norm)}m", one=counts, wide=wide))
        return SquaredTotals(rows, self.keys, tuple(totals), self.whole, place_of_null(self.domain))

    def _row_products(self, vectors: dict[str, list[Scalar]]) -> tuple[Output, ...]:
        columns = []
        for item in self.statistics:
            parts = vectors[item.statistic.name]
            if item.present is not None:
                parts = [under(item, when(f"{item.statistic.name}h", ONE))]
            for i, part in enumerate(parts):
                factor = Named(f"{item.statistic.norm}f")
                value = Sum(factor) if part is ONE else self.times(item, _closed(part))
                columns.append(Output(value, f"{item.statistic.name}_{i}"))
        return tuple(columns)

    # Histograms

    def binned(self, rows: Relation, bin_name: str, *, shared: bool) -> Relation:
        """For each bin that some unit is in, how many units are in it, by norm."""
        units = self._unit_totals(rows, shared=shared)
        bins = tuple(
            [Output(NormBin(Named(f"{_name(n)}m"), squared=self._squared), f"{_name(n)}b") for n in self.norms]
        )
        columns = tuple([(f"{_name(norm)}b", f"{_name(norm)}_0") for norm in self.norms])
        return Binned(Extended(units, "q", bins), bin_name, columns, self.alike)

    def weights(self, rows: Relation, name: str) -> Relation:
        """One row for each unit with what each of its rows weighs: its factor by the only norm that there is."""
        (norm,) = self.norms
        units = self._unit_totals(rows, shared=False)
        factor = self._factor(norm, Named(f"{_name(norm)}m"))
        return Kept(units, "f", None, (Output(Named("u"), "u"), Output(factor, name)))

    def weighed(self, rows: Relation, name: str) -> Relation:
        """Rows that have the norm of their unit, with what each of them weighs: as of `weights`."""
        assert self.shape is Shape.STORED
        (norm,) = self.norms
        return Extended(rows, "q", (Output(self._factor(norm, Named(f"{_name(norm)}m")), name),))

    def _unit_totals(self, rows: Relation, *, shared: bool) -> Relation:
        """One row for each unit, with each of its norms, or the squares of them."""
        units: Relation
        match self.shape:
            case Shape.ALONE if shared:
                units = self._alone_norms()
            case Shape.ROWS | Shape.CELLS if shared:
                units = SharedRows(_NORMS)
            case Shape.STORED:
                units = rows
            case Shape.ALONE | Shape.ROWS:
                units = (
                    self._unit_norms(rows)
                    if not any(signed(norm) and not additive(norm) for norm in self.norms)
                    else self._signed_norms(rows)
                )
            case Shape.CELLS:
                units = Grouped(self._valued(self._by_unit(rows)), "w", ("u",), ("u",), self._totals())
            case _:
                assert_never(self.shape)
        return units

    def _alone_norms(self) -> Relation:
        """One row for each unit, which is in one cell, from the table of cells. Grouped, so that each counts once."""
        values = [
            Function("abs", (Named(f"{_name(norm)}v"),)) if signed(norm) else Named(f"{_name(norm)}v")
            for norm in self.norms
        ]
        names = [f"{_name(norm)}m" for norm in self.norms]
        if not self.keys:
            outputs = tuple([Output(value, name) for value, name in zip(values, names, strict=True)])
            return Extended(SharedRows(_CELLS), "t", outputs)
        sums = tuple([Output(Sum(value), name) for value, name in zip(values, names, strict=True)])
        return Grouped(SharedRows(_CELLS), "t", ("u",), ("u",), sums)

    def _signed_norms(self, rows: Relation) -> Relation:
        """One row for each unit, which is in one cell: absolute values of its held sums."""
        partial = Grouped(rows, "r", ("u",), ("u",), self._partial())
        outputs = []
        for norm in self.norms:
            value: Scalar = Named(f"{_name(norm)}v")
            outputs.append(Output(Function("abs", (value,)), f"{_name(norm)}m"))
        return Extended(self._valued(partial), "t", tuple(outputs))


def _weight(groups: Scalar) -> Scalar:
    """2^20 / sqrt(groups) or a little less: the factor that scales a vector of as many ones to norm 1."""
    return Factor(groups, squared=True, wide=False, norm=Fraction(1), parts=WEIGHT_PARTS)


def _name(norm: BoundedNorm) -> str:
    return norm.norm.name


def _f(norm: BoundedNorm) -> str:
    return f"{norm.norm.name}f"


def _closed(value: Scalar) -> Scalar:
    """A value that may stand beside an operator."""
    if isinstance(value, Case) and not value.closed:
        return Case(value.pairs, value.otherwise)
    return value
