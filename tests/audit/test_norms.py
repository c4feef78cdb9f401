"""Units scaled to norms: random declarations, rows and queries against a second implementation, on neighbouring data.

Sums lie where rational arithmetic says, one unit moves them by no more than is declared in all four norms, each unit is
in one bin of each histogram, and the noise is that of the event that is charged. Planted bugs are found.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from privacy.norms import NormOf, NormPower
from privacy.policy import ColumnType
from privacy.statistic import Encoding, StatisticKind
from privacy.stored_norms import ROWS, KeptTotal, squares_name, total_name
from sql_rewrite import kept_totals, lower, lower_normed, norm_shapes, normed, stored_norms
from sql_rewrite.bounded import BoundedCore, BoundedStatistic
from sql_rewrite.dialects import duckdb as dialect
from sql_rewrite.dialects.duckdb import DuckDB
from sql_rewrite.encodings import normed_sum_encoding
from sql_rewrite.expressions import Call, Expression, columns_of, interval_of
from sql_rewrite.functions import clip_columns
from sql_rewrite.layer_values import Factor, Sum
from sql_rewrite.lower_normed import NormSums
from sql_rewrite.relations import Binned, UnitFactors, UnitTotals
from sql_rewrite.scalars import Arithmetic, Cast, EngineType, Named, Scalar, Whole
from tests.audit.generate import Query, Scene, make_scene
from tests.audit.harness import Store, neighbours_of
from tests.audit.normed import Seen, audit_norms, automatic, check_stores, with_norms, without_negatives
from tests.audit.violation import Violation
from tests.thinned import slow_ones

PARTS, SCENES = 12, 2

TEXTS = [
    "SELECT kind, COUNT(*) AS n, SUM(days) AS s, AVG(cost) AS a, COUNT(DISTINCT person_id) AS u FROM visits GROUP BY 1",
    "SELECT kind, SUM(visit_id) AS s, SUM(-visit_id) AS t FROM visits GROUP BY 1",
    "SELECT urgent, kind, SUM(days) AS s, COUNT(days) AS n, VARIANCE(cost) FILTER (WHERE urgent) AS v FROM visits "
    "GROUP BY 1, 2",
    "SELECT urgent, kind, SUM(1 - 2 * (visit_id % 2)) AS s FROM visits GROUP BY 1, 2",
    "SELECT p.member, COUNT(*) AS n, SUM(v.cost) AS s FROM visits v JOIN people p ON v.person_id = p.person_id "
    "GROUP BY 1",
    "SELECT i.code, COUNT(*) AS n, SUM(i.qty) AS s FROM items i JOIN visits v ON i.visit_id = v.visit_id GROUP BY 1",
    "SELECT COUNT(*) AS n, SUM(days) AS s, COUNT(DISTINCT person_id) AS u FROM visits",
]

KEPT = [
    "SELECT kind, COUNT(*) AS n, AVG(cost) AS a, COUNT(days) AS d FROM visits GROUP BY 1",
    "SELECT COUNT(*) AS n, VARIANCE(cost) AS v FROM visits",
    "SELECT COUNT(*) AS n FROM visits",
    "SELECT COUNT(cost) AS n FROM visits",
    "SELECT COUNT(DISTINCT person_id) AS u FROM visits",
    "SELECT COUNT(DISTINCT person_id) AS u FROM visits WHERE urgent",
    "SELECT urgent, COUNT(*) AS n, AVG(cost) FILTER (WHERE kind = 'a') AS a FROM visits GROUP BY 1",
    "SELECT kind, COUNT(*) AS n FROM visits WHERE urgent GROUP BY 1",
    "SELECT urgent, kind, COUNT(*) AS n FROM visits GROUP BY 1, 2",
    "SELECT UPPER(kind) AS k, COUNT(*) AS n FROM visits GROUP BY 1",
    "SELECT p.member, COUNT(*) AS n FROM visits v JOIN people p ON v.person_id = p.person_id GROUP BY 1",
]
TOTALS = [
    "SELECT kind, SUM(cost) AS s FROM visits GROUP BY 1",
    "SELECT SUM(cost) AS s, COUNT(*) AS n, SUM(days) AS d FROM visits",
    "SELECT urgent, SUM(days) AS s, AVG(cost) AS a, SUM(cost) AS c FROM visits GROUP BY 1",
    "SELECT SUM(days * 3) AS s FROM visits",
    "SELECT SUM(cost) AS s FROM visits WHERE urgent",
    "SELECT kind, SUM(days) AS s FROM visits GROUP BY 1",
]
"""The same of sums, where bounds begin at zero."""

"""Questions some of whose units have norms that a snapshot keeps, and some that look like these."""

HIDDEN = [
    "SELECT CAST(visit_id % 7 AS VARCHAR) AS k, COUNT(*) AS n, SUM(days) AS s, COUNT(DISTINCT person_id) AS u "
    "FROM visits GROUP BY 1",
    "SELECT visit_id // 3 AS k, kind, AVG(cost) AS a, COUNT(*) FILTER (WHERE urgent) AS n FROM visits GROUP BY 1, 2",
    "SELECT ABS(visit_id - 20) AS k FROM visits WHERE urgent GROUP BY 1 HAVING COUNT(*) > 3",
    "SELECT p.age // 9 AS k, SUM(v.cost) AS s, COUNT(DISTINCT v.person_id) AS u FROM visits v "
    "JOIN people p ON v.person_id = p.person_id GROUP BY 1",
    "SELECT v.days AS k, SUM(i.qty) AS s FROM items i JOIN visits v ON i.visit_id = v.visit_id GROUP BY 1",
]
"""Questions whose groups are not public: selected by weights where a unit may have several, else by units."""


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.sparse(PARTS)
@pytest.mark.parametrize(
    "part", [*range(PARTS // 3), *(pytest.param(part, marks=pytest.mark.nightly) for part in range(PARTS // 3, PARTS))]
)
def test_one_unit_changes_no_more_than_its_norm(part: int) -> None:
    """Random triples through lift, bound, at_norms, lower, calibrate, engine and release, compared exactly."""
    seen = Seen()
    for seed in range(part * SCENES, (part + 1) * SCENES):
        audit_norms(seed, queries=8, neighbours=3, seen=seen)
    assert seen.triples > 10
    assert seen.cut > 10


def with_visits(scene: Scene, rows: int) -> Scene:
    """The scene where the spare unit has so many visits, spread over all groups."""
    others = [row for row in scene.rows["visits"] if row["person_id"] != scene.spare]
    patterns = scene.rows["visits"]
    first = 1_000_000
    more = [
        {**patterns[place % len(patterns)], "visit_id": first + place, "person_id": scene.spare}
        for place in range(rows)
    ]
    return replace(scene, rows={**scene.rows, "visits": [*others, *more], "items": []})


def look(
    scene: Scene, texts: list[str], powers: tuple[NormPower, ...] = tuple(NormPower), *, spare: bool, turns: int = 3
) -> Seen:
    """Each text by each power, on the scene and on neighbours: with the spare unit, or without the heaviest."""
    seen = Seen()
    units = frozenset(scene.units)
    neighbour = units | {scene.spare} if spare else neighbours_of(scene, 0, 1)[0]
    with ExitStack() as stack:
        stores = [stack.enter_context(closing(Store(scene, side, seed=1))) for side in (units, neighbour)]
        for place, text in enumerate(texts):
            for power in powers:
                for turn in range(turns):
                    seed = 31 * place + 7 * turn
                    check_stores(scene, stores, Query(text, {}), power=power, seed=seed, seen=seen)
    return seen


@pytest.mark.slow
@pytest.mark.parametrize("rows", slow_ones([1, 5, 5_000], [0, 1, 5, 50, 5_000]))
def test_units_of_any_size(rows: int) -> None:
    """A neighbour with any number of rows moves sums and histograms by no more than is declared."""
    scene = with_visits(automatic(make_scene(3)), rows)
    seen = look(scene, TEXTS if rows < 1_000 else TEXTS[:3], spare=True)
    assert seen.triples > 15


@pytest.mark.slow
@pytest.mark.parametrize("rows", slow_ones([1, 5], [0, 1, 5, 50, 900]))
def test_hidden_groups_of_units_of_any_size(rows: int) -> None:
    """Weights have norm 1 and sums the norm that was chosen, over all groups of a unit and with nothing left out."""
    scene = with_visits(automatic(make_scene(3)), rows)
    seen = look(scene, HIDDEN, (NormPower.L2,), spare=True)
    assert seen.triples == 3 * len(HIDDEN)
    assert seen.cores == seen.triples


@pytest.mark.parametrize(
    ("rows", "every"),
    [
        (1, 3),
        *(pytest.param(rows, 3, marks=pytest.mark.slow) for rows in (0, 50, 5_000)),
        pytest.param(50, 1, marks=pytest.mark.slow),
        *(pytest.param(rows, 1, marks=pytest.mark.nightly) for rows in (0, 1, 5_000)),
    ],
)
def test_norms_that_a_snapshot_keeps(rows: int, every: int) -> None:
    """Sums and histograms are those of the reference, also where no statement groups rows by their unit."""
    scene = with_norms(with_visits(automatic(make_scene(3)), rows))
    seen = look(scene, KEPT, spare=True, turns=3 // every)
    assert seen.triples > 15 // every
    above = with_norms(without_negatives(with_visits(automatic(make_scene(3)), rows)))
    assert len([total for table in above.dataset.tables for total in table.stored_totals]) > 1
    assert look(above, TOTALS, spare=True, turns=3 // every).triples > 8 // every


# Planted bugs

BUGS: dict[str, tuple[Callable[[pytest.MonkeyPatch], None], str]] = {}


def planted(says: str) -> Callable[[Callable[[pytest.MonkeyPatch], None]], Callable[[pytest.MonkeyPatch], None]]:
    """Registers a bug, and what the audit must say of it."""

    def register(plant: Callable[[pytest.MonkeyPatch], None]) -> Callable[[pytest.MonkeyPatch], None]:
        BUGS[plant.__name__] = plant, says
        return plant

    return register


@planted("expected|changed by")
def norm_rounded_down(patch: pytest.MonkeyPatch) -> None:
    """A unit's norm is cut to a whole number, so that its factor is too large."""
    genuine = dialect.DuckDB._factor

    def factor(self: DuckDB, node: Factor) -> str:
        return genuine(self, node).replace("sqrt(", "floor(sqrt(").replace(")) AS BIGINT)", "))) AS BIGINT)")

    patch.setattr(DuckDB, "_factor", factor)
    patch.setitem(DuckDB._writers, Factor, factor)


@planted("expected|changed by")
def negative_sums_rounded_down(patch: pytest.MonkeyPatch) -> None:
    """What a unit adds is rounded to whole steps, down and not towards zero: a -1/3 in each cell becomes a -1."""
    genuine = NormSums.times

    def times(self: NormSums, item: BoundedStatistic, value: Scalar) -> Scalar:
        made = genuine(self, item, value)
        if item.statistic.kind is not StatisticKind.SUM:
            return made
        assert isinstance(made, Sum)
        whole, offset = Whole(2**item.parts), Cast(Whole(2 ** (40 + item.parts)), EngineType.WIDE)
        up = Arithmetic("+", Cast(made.value, EngineType.WIDE), offset, EngineType.WIDE)
        floored = Arithmetic("-", Arithmetic("//", up, whole, EngineType.WIDE), Whole(2**40), EngineType.WIDE)
        return Sum(Arithmetic("*", floored, whole, EngineType.WIDE))

    patch.setattr(NormSums, "times", times)


@planted("histogram .* changed by 2|another number of units")
def two_bins_for_one_unit(patch: pytest.MonkeyPatch) -> None:
    """Each unit counts in its own bin and in the one before."""
    genuine = DuckDB._binned

    def binned(self: DuckDB, node: Binned) -> str:
        text = genuine(self, node)
        return text.replace('FROM "ub"', 'FROM (SELECT * FROM "ub" UNION ALL SELECT * REPLACE (greatest("n0b" - 1, 0) '
                            'AS "n0b") FROM "ub") AS "uc"')  # fmt: skip

    patch.setitem(DuckDB._writers, Binned, binned)


@planted("expected|changed by|another number of units")
def signed_rows_scaled_by_the_norm_of_their_sum(patch: pytest.MonkeyPatch) -> None:
    """Positive and negative rows of different cells cancel in the norm, and not in the cells."""
    for module in (norm_shapes, lower_normed):
        patch.setattr(module, "additive", lambda norm: norm.norm.of is not NormOf.UNITS)


@planted("expected|changed by")
def norm_of_each_cell(patch: pytest.MonkeyPatch) -> None:
    """The norm is that of one cell alone: a unit in ten cells adds ten times the norm."""

    def totals(self: DuckDB, node: UnitTotals) -> str:
        parts = []
        for output in node.outputs:
            assert isinstance(output.value, Sum)
            parts.append(f'{self.write(output.value.value)} AS "{output.name}"')
        return f'SELECT *, {", ".join(parts)} FROM ({self.write(node.rows)}) AS "{node.alias}"'

    patch.setitem(DuckDB._writers, UnitTotals, totals)


@planted("expected|changed by")
def norm_of_the_rows_with_a_value(patch: pytest.MonkeyPatch) -> None:
    """Rows are scaled by the norm of something else: of ones in place of rows."""
    genuine = NormSums._value

    def value(self: NormSums, norm: Any) -> Scalar:
        return Whole(1) if norm.norm.of is NormOf.ROWS else genuine(self, norm)

    patch.setattr(NormSums, "_value", value)


@planted("declared")
def sensitivity_of_another_norm(patch: pytest.MonkeyPatch) -> None:
    """The noise is calibrated to the nominal norm, whatever was chosen."""
    genuine = normed._scaled

    def scaled(item: BoundedStatistic, contribution: Any, norm: Fraction, parts: int) -> BoundedStatistic:
        made = genuine(item, contribution, norm, parts)
        nominal = genuine(item, contribution, min(norm, Fraction(1)), parts)
        return replace(made, statistic=replace(made.statistic, sensitivity=nominal.statistic.sensitivity))

    patch.setattr(normed, "_scaled", scaled)


@planted("l1 changed by")
def l1_as_if_it_were_l2(patch: pytest.MonkeyPatch) -> None:
    """Laplace noise for an L2 norm forgets the number of cells."""
    patch.setattr(normed, "_root_up", lambda number: Fraction(1))


@planted("expected|changed by")
def factor_rounded_up(patch: pytest.MonkeyPatch) -> None:
    """A unit's factor is the next whole number of parts."""
    genuine = dialect.DuckDB._factor

    def factor(self: DuckDB, node: Factor) -> str:
        return f"(SELECT ({genuine(self, node)}) + 1)" if node.squared else f"({genuine(self, node)} + 1)"

    patch.setitem(DuckDB._writers, Factor, factor)


@planted("other sums from shared tables")
def nobody_is_looked_up(patch: pytest.MonkeyPatch) -> None:
    """Units that are beyond a norm have the factor of all others."""
    genuine = DuckDB._unit_factors

    def unit_factors(self: DuckDB, node: UnitFactors) -> str:
        return genuine(self, node).replace("IS DISTINCT FROM", "IS DISTINCT FROM 0 AND 0 =")

    patch.setitem(DuckDB._writers, UnitFactors, unit_factors)


@planted("expected|changed by")
def counts_not_scaled(patch: pytest.MonkeyPatch) -> None:
    """Rows that are counted weigh a whole row, whatever the unit's norm is."""
    genuine = NormSums.times

    def times(self: NormSums, item: BoundedStatistic, value: Scalar) -> Scalar:
        if item.statistic.kind is StatisticKind.COUNT:
            return Sum(Arithmetic("*", value, Whole(2**item.parts), EngineType.INTEGER))
        return genuine(self, item, value)

    patch.setattr(NormSums, "times", times)


@pytest.mark.sparse(8)
@pytest.mark.parametrize("name", BUGS)
def test_a_planted_bug_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One deliberate bug per rule: the audit finds it and says why."""
    plant, says = BUGS[name]
    scene = with_visits(automatic(make_scene(3)), 60)
    plant(monkeypatch)
    with pytest.raises(Violation, match=says):
        look(scene, TEXTS[:4], spare=True)


def weight_of_one(patch: pytest.MonkeyPatch) -> None:
    """A unit counts as a whole in each of its groups."""
    patch.setattr(lower_normed, "_weight", lambda groups: Whole(2**20))


def weight_of_the_group_alone(patch: pytest.MonkeyPatch) -> None:
    """The weight follows from the number of rows in the group, not from the number of groups."""
    genuine = lower_normed._weight
    patch.setattr(lower_normed, "_weight", lambda groups: genuine(Named("c0")))


def weight_for_each_row(patch: pytest.MonkeyPatch) -> None:
    """A unit adds its weight to a group once for each of its rows there."""
    genuine = NormSums._coordinates

    def coordinates(self: NormSums, item: BoundedStatistic) -> Sequence[Scalar]:
        if item.statistic.kind is StatisticKind.WEIGHTS:
            return [Sum(Arithmetic("*", Named("uw"), Named("c0"), EngineType.INTEGER))]
        return genuine(self, item)

    patch.setattr(NormSums, "_coordinates", coordinates)


def weight_rounded_up(patch: pytest.MonkeyPatch) -> None:
    """One more than 1 / sqrt(k) allows."""
    genuine = lower_normed._weight
    patch.setattr(
        lower_normed, "_weight", lambda groups: Arithmetic("+", genuine(groups), Whole(1), EngineType.INTEGER)
    )


@pytest.mark.parametrize(
    "plant",
    [weight_of_one, weight_of_the_group_alone, weight_for_each_row, weight_rounded_up],
    ids=lambda p: p.__name__,
)
def test_a_planted_bug_of_weights_is_found(
    plant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One deliberate bug per rule: the audit finds it and says why."""
    scene = with_visits(automatic(make_scene(3)), 60)
    plant(monkeypatch)
    with pytest.raises(Violation, match=r"expected|changed by"):
        look(scene, HIDDEN[:1], (NormPower.L2,), spare=True)


def kept_whatever_where_says(patch: pytest.MonkeyPatch) -> None:
    """The norm of all rows in place of those that WHERE keeps."""
    plain = stored_norms.known_norms

    def known(bounded: BoundedCore) -> Mapping[str, str] | None:
        return plain(replace(bounded, core=replace(bounded.core, where=None)))

    for module in (norm_shapes, lower_normed, lower):
        patch.setattr(module, "known_norms", known)


def kept_for_each_power(patch: pytest.MonkeyPatch) -> None:
    """The number of rows in place of the sum of squares."""
    patch.setattr(stored_norms, "squares_name", lambda column: ROWS)


def kept_by_another_column(patch: pytest.MonkeyPatch) -> None:
    """The squares by one column for groups by another."""
    patch.setattr(stored_norms, "squares_name", lambda column: squares_name("urgent" if column == "kind" else "kind"))


def kept_for_two_keys(patch: pytest.MonkeyPatch) -> None:
    """The squares by the last key for groups by two."""
    plain = stored_norms.known_norms

    def known(bounded: BoundedCore) -> Mapping[str, str] | None:
        return plain(replace(bounded, core=replace(bounded.core, keys=bounded.core.keys[-1:])))

    for module in (norm_shapes, lower_normed, lower):
        patch.setattr(module, "known_norms", known)


def total_of_another_value(patch: pytest.MonkeyPatch) -> None:
    """A total of the column whatever is computed of it."""
    plain = kept_totals.total_of

    def total(argument: Expression | None, encoding: Encoding | None, rows: int) -> KeptTotal | None:
        found = plain(argument, encoding, rows)
        if found is None and isinstance(argument, Call):
            (ref,) = columns_of(argument)
            bounds = interval_of(clip_columns(ref))
            assert bounds.lower is not None
            assert bounds.upper is not None
            ways = normed_sum_encoding(bounds.lower, bounds.upper, integer=ref.type is ColumnType.INTEGER, rows=rows)
            return plain(clip_columns(ref), ways, rows)
        return found

    patch.setattr(stored_norms, "total_of", total)


def total_in_place_of_squares(patch: pytest.MonkeyPatch) -> None:
    """The L1 norm of sums where the square of their L2 norm belongs."""
    patch.setattr(stored_norms, "total_name", lambda column, by=None: total_name(column))


def units_alike_counted_once(patch: pytest.MonkeyPatch) -> None:
    """One row of several units as one unit."""
    plain = NormSums.__init__

    def made(self: NormSums, *given: Any) -> None:
        plain(self, *given)
        self.alike = None

    patch.setattr(NormSums, "__init__", made)


def units_counted_whatever_where_says(patch: pytest.MonkeyPatch) -> None:
    """All units with a row in place of those whose rows WHERE keeps."""
    plain = stored_norms.counts_units
    patch.setattr(lower, "counts_units", lambda b: plain(replace(b, core=replace(b.core, where=None))))


def norms_in_place_of_values(patch: pytest.MonkeyPatch) -> None:
    """A sum of averages, of which the number of rows is the norm and not what is added."""
    patch.setattr(stored_norms, "_is_norm", lambda item: True)


@pytest.mark.sparse(3)
@pytest.mark.parametrize(
    ("plant", "text"),
    [
        (units_alike_counted_once, KEPT[2]),
        (norms_in_place_of_values, KEPT[3]),
        (units_counted_whatever_where_says, KEPT[5]),
        (total_of_another_value, TOTALS[3]),
        (total_in_place_of_squares, TOTALS[5]),
        (kept_whatever_where_says, TOTALS[4]),
        (kept_whatever_where_says, KEPT[7]),
        (kept_for_each_power, KEPT[0]),
        (kept_by_another_column, KEPT[0]),
        (kept_for_two_keys, KEPT[8]),
    ],
    ids=lambda given: getattr(given, "__name__", ""),
)
def test_a_planted_bug_of_kept_norms_is_found(
    plant: Callable[[pytest.MonkeyPatch], None], text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One deliberate bug per condition under which a norm is the one that the snapshot keeps."""
    scene = with_visits(automatic(make_scene(3)), 60)
    scene = with_norms(without_negatives(scene) if text in TOTALS else scene)
    plant(monkeypatch)
    with pytest.raises(Violation, match=r"expected|changed by|bins of"):
        look(scene, [text], (NormPower.L2,), spare=True)
