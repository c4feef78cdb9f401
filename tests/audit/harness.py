"""The neighbour audit: one query on data with and without one unit, every mechanism call compared exactly.

Statements run in this process on connections with the private engine's own settings and lock, and their results pass
through the engine's own reading code, so that what is compared is what a worker would have answered.
"""

from __future__ import annotations

import hashlib
import math
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import duckdb
import numpy as np

from engines import private as private_engine
from engines.encoding import encode_statement
from engines.frames import Frame
from engines.handlers.connection import identifier, literal, lock_down, private_settings
from engines.handlers.private import run_statement
from mechanisms import calibrate as calibrating
from mechanisms import release as releasing
from mechanisms.calibrate import Calibration, Price
from mechanisms.families import NoiseFamily
from mechanisms.measurement import root_up
from mechanisms.measurements.gaussian import GaussianMeasurement
from mechanisms.measurements.gaussian_moments import GaussianMoments
from mechanisms.measurements.gaussian_pairs import GaussianPairs
from mechanisms.measurements.laplace import LaplaceMeasurement
from mechanisms.measurements.levels import GaussianLevels, LaplaceLevels
from mechanisms.measurements.truncated_geometric import TruncatedGeometricMeasurement
from mechanisms.samplers import rounded_gaussian, rounded_laplace
from privacy.composition import compose
from privacy.events import (
    GaussianEvent,
    GaussianRangesEvent,
    GaussianThresholdEvent,
    LaplaceEvent,
    LaplaceRangesEvent,
    TruncatedGeometricEvent,
)
from privacy.events.laplace import LaplaceThresholdEvent
from privacy.exact import Exact
from privacy.norms import NormPower
from privacy.policy import ColumnType, Table
from privacy.refusal import Refused
from privacy.statement import Statement
from privacy.statistic import StatisticKind
from privacy.stored_norms import FIRST, ROWS, UNITS, KeptTotal, sizes_table, squares_name, total_name, units_table
from sql_rewrite import bound as bounding
from sql_rewrite import lift as lifting
from sql_rewrite import lower as lowering
from sql_rewrite.bound import BoundedCore
from sql_rewrite.contribution import Bounding
from sql_rewrite.plan import Plan
from tests.audit.different import Kept, kept_values, summed_values
from tests.audit.drawn import check_draws, check_scores, on_nodes_alone
from tests.audit.generate import Query, Scene, make_query, make_scene, owner_of, restricted, without_rows
from tests.audit.interpreter import Contributions, contributions, stored, summed
from tests.audit.levels import least_squares, nodes_of, whole
from tests.audit.recorder import Call, FixedBits, recorded
from tests.audit.violation import Violation, require

__all__ = [
    "CURRENT",
    "Audit",
    "Side",
    "Store",
    "Tally",
    "audit_scene",
    "audit_stores",
    "check_noise",
    "check_pair",
    "neighbours_of",
    "price_for",
    "run",
    "shrunk",
]

CONFIDENCE = Fraction(95, 100)
DELTA = Fraction(1, 10**7)

CURRENT: list[Store] = []
"""The data that the journey is running on: planted bugs that read rows where none may be read use it."""


class Store:
    """The rows of some units in the layout of a snapshot, in memory, behind the private engine's settings."""

    def __init__(self, scene: Scene, units: frozenset[Any], *, seed: int) -> None:
        self.units = units
        self.draws = {row["person_id"]: _draw(row["person_id"]) for row in scene.rows["people"]}
        shuffled = random.Random(seed)
        order = sorted(units, key=repr)
        shuffled.shuffle(order)  # numbers of units say nothing, and differ between neighbours
        numbers = {unit: number for number, unit in enumerate(order)}
        self.connection = duckdb.connect(":memory:", config=private_settings(threads=1, memory_limit_mb=512))
        rows = restricted(scene, units)
        part = replace(scene, rows=rows)
        for table in scene.dataset.tables:
            listed = list(zip(rows[table.name], owner_of(part, table.name), strict=True))
            shuffled.shuffle(listed)
            self._create(table, [dict(row) for row, _ in listed], [owner for _, owner in listed], numbers)
        lock_down(self.connection, local_files=False)

    def _create(
        self, table: Table, rows: Sequence[Mapping[str, Any]], owners: Sequence[Any], numbers: Mapping[Any, int]
    ) -> None:
        parts, values = [], []
        for column in table.columns:
            values.append([stored(row[column.name]) for row in rows])
            text = f"unnest(CAST(${len(values)} AS {column.type.sql}[]))"
            if column.type is ColumnType.TEXT and column.keys is not None and column.keys.other is None:
                keys = ", ".join(literal(key) for key in column.keys.values if isinstance(key, str))
                text = f"CAST({text} AS ENUM({keys}))"
            parts.append(f"{text} AS {identifier(column.name)}")
        if table.protected:
            values += [[numbers[owner] for owner in owners], [self.draws[owner] for owner in owners]]
            parts.append(f'unnest(CAST(${len(values) - 1} AS INTEGER[])) AS "unit$id"')
            parts.append(f'unnest(CAST(${len(values)} AS UBIGINT[])) AS "unit$draw"')
        if table.stored_norms is not None:
            counted = Counter(owners)
            values += [
                [counted[owner] for owner in owners],
                [owner not in owners[:at] for at, owner in enumerate(owners)],
            ]
            parts.append(f'unnest(CAST(${len(values) - 1} AS BIGINT[])) AS "{ROWS}"')
            parts.append(f'unnest(CAST(${len(values)} AS BOOLEAN[])) AS "{FIRST}"')
            for name in table.stored_norms:
                cells = Counter(zip(owners, [stored(row[name]) for row in rows], strict=True))
                squares = {owner: sum(n * n for (of, _), n in cells.items() if of == owner) for owner in counted}
                values.append([squares[owner] for owner in owners])
                parts.append(f"unnest(CAST(${len(values)} AS BIGINT[])) AS {identifier(squares_name(name))}")
        self.connection.execute(f"CREATE TABLE {identifier(table.name)} AS SELECT {', '.join(parts)}", values)
        for total in table.stored_totals:
            self._add_total(table, total)
        if table.stored_units:
            self._add_units(table)

    def _add_units(self, table: Table) -> None:
        """The tables of a table's units, from the first row of each."""
        units, sizes = identifier(units_table(table.name)), identifier(sizes_table(table.name))
        self.connection.execute(
            f'CREATE TABLE {units} AS SELECT * EXCLUDE ("unit$id", "unit$draw", "{FIRST}", '
            f"{', '.join(identifier(column.name) for column in table.columns)}) "
            f'FROM {identifier(table.name)} WHERE "{FIRST}"'
        )
        self.connection.execute(
            f'CREATE TABLE {sizes} AS SELECT "{ROWS}", count(*) AS "{UNITS}" FROM {units} GROUP BY 1'
        )

    def _add_total(self, table: Table, total: KeptTotal) -> None:
        """What the rows of each unit add up to, beside them; and the squares by each column that has some."""
        stored, placed = identifier(table.name), identifier(total.placed)
        added = f"(SELECT *, {total.nearest} AS {placed} FROM {stored} AS t)"
        own = f'SELECT "unit$id" AS id, CAST(coalesce(sum({total.held}), 0) AS BIGINT) AS x'
        sums = {total.name: f"{own} FROM {added} GROUP BY ALL"}
        for by in table.stored_norms or () if total.squares else ():
            cells = f"{own}, {identifier(by)} AS k FROM {added} GROUP BY ALL"
            squares = f"SELECT id, CAST(sum(x * x) AS BIGINT) AS x FROM ({cells}) GROUP BY ALL"
            sums[total_name(total.column, by)] = squares
        for name, sql in sums.items():
            self.connection.execute(f"ALTER TABLE {stored} ADD COLUMN {identifier(name)} BIGINT")
            self.connection.execute(
                f'UPDATE {stored} SET {identifier(name)} = s.x FROM ({sql}) AS s WHERE {stored}."unit$id" = s.id'
            )

    def exact(self, statement: Statement) -> Exact:
        """The answer of a statement, read as the private engine reads it."""
        encoded = encode_statement(statement)
        assert encoded is not None
        with closing(self.connection.cursor()) as cursor:
            try:
                header, buffers = run_statement(cursor, encoded)
            except duckdb.Error as error:
                # Whether a statement is answered is an outcome without noise: it must never fail on any data.
                raise Violation(f"the engine raised {type(error).__name__} on {statement.sql}") from None
        return private_engine._parse(Frame(header, tuple(memoryview(buffer) for buffer in buffers)), statement)

    def hashes(self, bounded: BoundedCore, value: ColumnType | None = None) -> Any:
        """The engine's hash of (unit, group), which ranks the groups of a unit; its values, with a value of a type."""
        kinds = [key.type.sql for _, key in bounded.core.keys]
        kinds += [] if value is None else [value.sql]

        def hasher(pairs: Sequence[tuple[Any, tuple[Any, ...]]]) -> list[int]:
            values: list[list[Any]] = [[self.draws[unit] for unit, _ in pairs]]
            values += [[key[place] for _, key in pairs] for place in range(len(kinds))]
            parts = ["unnest(CAST($1 AS UBIGINT[])) AS d"]
            parts += [f"unnest(CAST(${i + 2} AS {kind}[])) AS k{i}" for i, kind in enumerate(kinds)]
            names = ", ".join(["d", *[f"k{i}" for i in range(len(kinds))]])
            with closing(self.connection.cursor()) as cursor:
                found = cursor.execute(f"SELECT hash({names}) FROM (SELECT {', '.join(parts)})", values).fetchall()
            return [int(row[0]) for row in found]

        return hasher

    def close(self) -> None:
        """Forget the rows."""
        self.connection.close()


def _draw(unit: Any) -> int:
    """Stands for the snapshot's keyed hash: a function of the unit's key alone."""
    return int.from_bytes(hashlib.blake2b(repr(unit).encode(), digest_size=8).digest(), "big")


@contextmanager
def _running_on(store: Store) -> Iterator[None]:
    CURRENT.append(store)
    try:
        yield
    finally:
        CURRENT.pop()


@dataclass(frozen=True)
class CoreSide:
    """One core on one side: its calls, and the keys of the rows of every matrix."""

    keys: tuple[tuple[Any, ...], ...]
    calls: tuple[Call, ...]


@dataclass(frozen=True)
class Side:
    """Everything that one run did: what was decided before data was touched, and what the mechanisms were given."""

    cores: tuple[BoundedCore, ...]
    statements: tuple[Statement, ...]
    calibration: Calibration
    sides: tuple[CoreSide, ...]


def price_for(cores: Sequence[BoundedCore], *, gaussian: bool, epsilon: Fraction) -> Price:
    """The price that a journey would ask of this family; hidden groups shared by many need Gaussian noise."""
    hidden = any(core.described.keys.selection is not None for core in cores)
    delta = DELTA if hidden else Fraction(0)
    several = any(
        core.described.keys.selection is not None and core.described.keys.groups_per_unit > 1 for core in cores
    )
    return (
        Price(NoiseFamily.GAUSSIAN, epsilon**2, delta)
        if gaussian or several
        else Price(NoiseFamily.LAPLACE, epsilon, delta)
    )


def run(
    store: Store,
    scene: Scene,
    query: Query,
    *,
    gaussian: bool,
    epsilon: Fraction,
    power: NormPower = NormPower.L2,
    settled: Callable[[BoundedCore], BoundedCore] = lambda core: core,
    bound: Callable[[Plan, NormPower], Sequence[BoundedCore]] = lambda plan, power: bounding.bound(plan, power=power),
) -> Side:
    """The journey's steps 2 to 4, then 6 and 7, with the recorder in the gateway's place. Errors: Refused.

    `settled` puts cores at the norms that a question chose, where it chooses any of that power; `bound` has the value
    bounds that it chose.
    """
    with _running_on(store):
        plan = lifting.lift(query.sql, scene.dataset, query.parameters)
        cores = tuple(settled(core) for core in bound(plan, power))
        statements = tuple(lowering.lower(core) for core in cores)
        price = price_for(cores, gaussian=gaussian, epsilon=epsilon)
        calibration = calibrating.calibrate([core.described for core in cores], price)
        _check_price(calibration, price)
        sides = []
        for core, statement in zip(cores, statements, strict=True):
            exact = store.exact(statement)
            with recorded(noise=True, seed=len(sides)) as recorder:
                table = releasing.release(core.described, calibration, exact, bits=FixedBits(0), confidence=CONFIDENCE)
            columns = [column.values for column in table.columns if column.role == "key"]
            keys = tuple(zip(*columns, strict=True)) if columns else ((),) * table.rows
            sides.append(CoreSide(keys, tuple(recorder.calls)))
        return Side(cores, statements, calibration, tuple(sides))


def _check_price(calibration: Calibration, price: Price) -> None:
    """The cost is known before data is touched, is at most the price, and covers each declared sensitivity."""
    loss = compose(calibration.events())
    if price.family is NoiseFamily.LAPLACE:
        require(loss.pure is not None and loss.pure <= price.amount, f"epsilon {loss.pure} above {price.amount}")
    else:
        require(loss.mu_squared is not None and loss.mu_squared <= price.amount, "mu squared above the price")
    require(loss.delta <= price.delta, f"delta {loss.delta} above {price.delta}")
    for measurement in calibration.measurements:
        event, bound = measurement.event(), measurement.statistic.sensitivity
        if isinstance(event, LaplaceEvent | LaplaceRangesEvent | LaplaceThresholdEvent):
            require(event.l1_sensitivity >= bound.l1, "the event forgets part of the L1 sensitivity")
        elif isinstance(event, GaussianEvent | GaussianThresholdEvent | GaussianRangesEvent):
            require(event.l2_squared >= bound.l2_squared, "the event forgets part of the L2 sensitivity")
        else:
            require(bound.l1 == 1, "a geometric selection of groups that units share")


# One side


def check_side(side: Side, parts: Sequence[Contributions], units: frozenset[Any], kept: Sequence[Kept] = ()) -> None:
    """The sums are those of the reference, within the statement's bounds; the noise is that of the event."""
    kept = kept or [{}] * len(parts)
    for core, statement, found, part, values in zip(side.cores, side.statements, side.sides, parts, kept, strict=True):
        described = core.described
        expected = summed(part, units)
        for key, sums in summed_values(core, values, units).items():
            expected.setdefault(key, {}).update(sums)
        require(
            [call.event for call in found.calls] == list(side.calibration.events_of(described.name)),
            "the gateway was called with other events than were charged",
        )
        require(
            [call.statistic for call in found.calls] == [statistic.name for statistic in described.statistics],
            "the gateway was not called once per statistic in order",
        )
        _check_keys(core, found, set(expected))
        bounds = {item.name: item.bound for item in statement.sums}
        worths = {one.name: 1 if one.tree is None else one.tree.worth for one in described.statistics}
        trees = {item.name: item.bound * worths[item.name] for item in statement.by_place}
        for call in found.calls:
            zero = (0,) * call.measurement.statistic.summed
            wanted = tuple(expected.get(key, {}).get(call.statistic, zero) for key in found.keys)
            different = [
                f"{key}: expected {a}, got {b}"
                for key, a, b in zip(found.keys, wanted, call.exact, strict=True)
                if a != b
            ]
            kind = call.measurement.statistic.kind.value
            require(not different, f"{kind} {call.statistic} of {described.name}: {'; '.join(different[:5])}")
            for row in call.exact:
                for place, value in enumerate(row):
                    most = trees.get(call.statistic) or bounds[f"{call.statistic}_{place}"]
                    require(abs(value) <= most, "a sum beyond the statement's bound")
            check_noise(call)


def _check_keys(core: BoundedCore, found: CoreSide, expected: set[tuple[Any, ...]]) -> None:
    """Public cells all appear, in the declared order; hidden groups come sorted, whatever the order of rows."""
    domain = core.described.keys.domain
    if domain is not None:
        require(found.keys == domain, "not exactly the public cells")
        require(expected <= set(domain), "a group outside the public cells")
        return
    require(set(found.keys) == expected, f"groups {set(found.keys)} instead of {expected}")
    placed = sorted(found.keys, key=lambda key: [(part is None, 0 if part is None else part) for part in key])
    require(list(found.keys) == placed, "groups come in the order of rows")
    selection = found.calls[0]
    assert selection.kept is not None
    for key, count, kept in zip(found.keys, selection.exact, selection.kept, strict=True):
        one = selection.measurement.statistic.sensitivity.linf
        require(not (kept and sum(count) <= one), f"a group of one person was released: {key}")


def _by_coordinate(measurement: GaussianMoments, sigma: Fraction, count: int, bits: FixedBits) -> Any:
    """Noise of which the middle coordinates of Bernstein sums have less; equal scales are drawn together."""
    width = measurement.statistic.coordinates
    squares = [_factor_squared(measurement, place) for place in range(width)]
    found = np.zeros(count, dtype=np.int64)
    for square in dict.fromkeys(squares):
        own = [place for place in range(count) if squares[place % width] == square]
        found[own] = rounded_gaussian(sigma=root_up(sigma**2 / square), count=len(own), bits=bits)
    return found


def _factor_squared(measurement: GaussianMoments, place: int) -> Fraction:
    """In the audit's own words: 7/2 in the middle of three, 31/9 of four, 7/2, 71/18, 7/2 of five; products of two."""
    inner: dict[int, dict[int, Fraction]] = {1: {}, 2: {1: Fraction(7, 2)}, 3: dict.fromkeys((1, 2), Fraction(31, 9))}
    inner[4] = {1: Fraction(7, 2), 2: Fraction(71, 18), 3: Fraction(7, 2)}
    statistic = measurement.statistic
    first, second = statistic.degree, statistic.second_degree
    if place >= (first + 1) * (second + 1):
        return Fraction(1)
    one, two = divmod(place, second + 1)
    return inner[first].get(one, Fraction(1)) * (inner[second].get(two, Fraction(1)) if second else 1)


_SIGNS = ((1, 1, 1, 1), (-1, -1, 1, 1), (-1, 1, -1, 1), (1, -1, -1, 1))
"""In the audit's own words: the number of rows, both distances from the middles, and their product, of four sums."""


def _forms(row: Sequence[int]) -> list[int]:
    """The four forms of a pair's sums."""
    return [sum(sign * value for sign, value in zip(signs, row, strict=True)) for signs in _SIGNS]


def _check_pairs(call: Call) -> None:
    """Noise on forms, 52, 37, 37 and 2 parts of 128 of the squared length, of which sums are combinations."""
    measurement, event = call.measurement, call.event
    assert isinstance(measurement, GaussianPairs)
    assert isinstance(event, GaussianEvent | GaussianThresholdEvent)
    step, bits = 4 * measurement.grid, FixedBits(call.seed)
    root = Fraction(math.isqrt(event.variance.numerator), math.isqrt(event.variance.denominator))
    require(root**2 == event.variance, "the variance is no square of a short number")
    columns = [
        rounded_gaussian(sigma=root_up((root / step) ** 2 * 128 / parts), count=len(call.exact), bits=bits).tolist()
        for parts in (52, 37, 37, 2)
    ]
    for row, noisy, noise in zip(call.exact, call.noisy, zip(*columns, strict=True), strict=True):
        coarse = [(form + step // 2) // step + int(own) for form, own in zip(_forms(row), noise, strict=True)]
        wanted = [sum(_SIGNS[i][place] * coarse[i] for i in range(4)) for place in range(4)]
        require(list(noisy) == wanted, f"{measurement.name}: the noise is not that of the charged event")


def check_noise(call: Call) -> None:
    """The noise that was drawn is exactly the noise of the event that is charged."""
    measurement, event = call.measurement, call.event
    if isinstance(measurement, GaussianPairs):
        _check_pairs(call)
        return
    grid = measurement.grid
    wide = on_nodes_alone(measurement.statistic)
    exact: Sequence[Sequence[int]] = [row[:wide] for row in call.exact]
    if isinstance(measurement, LaplaceLevels | GaussianLevels):
        exact = nodes_of(measurement, exact)
    count = sum(len(row) for row in exact)
    bits = FixedBits(call.seed)
    if isinstance(event, LaplaceEvent | LaplaceRangesEvent | LaplaceThresholdEvent):
        assert isinstance(measurement, LaplaceMeasurement)
        noise = rounded_laplace(scale=event.scale / grid, count=count, bits=bits)
    elif isinstance(event, GaussianEvent | GaussianThresholdEvent | GaussianRangesEvent):
        assert isinstance(measurement, GaussianMeasurement)
        root = Fraction(math.isqrt(event.variance.numerator), math.isqrt(event.variance.denominator))
        require(root**2 == event.variance, "the variance is no square of a short number")
        noise = (
            _by_coordinate(measurement, root / grid, count, bits)
            if isinstance(measurement, GaussianMoments)
            else rounded_gaussian(sigma=root / grid, count=count, bits=bits)
        )
    else:
        assert isinstance(event, TruncatedGeometricEvent)
        assert isinstance(measurement, TruncatedGeometricMeasurement)
        require(event.epsilon == measurement.table.epsilon and event.delta == measurement.table.delta, "another table")
        noise = measurement.table.draw(count, bits)[0]
    flat = [value for row in exact for value in row]
    drawn = [value for row in call.noisy for value in row[:wide]]
    wanted = [(value + grid // 2) // grid + int(step) for value, step in zip(flat, noise.tolist(), strict=True)]
    if isinstance(measurement, LaplaceLevels | GaussianLevels):
        width = len(exact[0])
        noisy = [wanted[start : start + width] for start in range(0, len(wanted), width)]
        wanted = [value for row in whole(least_squares(measurement, noisy)) for value in row]
    require(drawn == wanted, f"{measurement.name}: the noise is not that of the charged event")
    if isinstance(event, LaplaceRangesEvent | GaussianRangesEvent):
        check_draws(call, event, bits)


# Two sides


@dataclass
class Tally:
    """What an audit saw: how many triples, and how close to its bound each kind of statistic came."""

    triples: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    tightest: dict[str, Fraction] = field(default_factory=dict)
    """Of the L1 bound."""
    squares: dict[str, Fraction] = field(default_factory=dict)
    """The same of the squared L2 bound."""
    greatest: dict[str, Fraction] = field(default_factory=dict)
    """The same of the bound of one cell."""

    def saw(self, kind: str, *, l1: Fraction, l2_squared: Fraction, linf: Fraction) -> None:
        """One statistic's change as parts of its declared bounds."""
        self.kinds[kind] += 1
        for most, ratio in ((self.tightest, l1), (self.squares, l2_squared), (self.greatest, linf)):
            most[kind] = max(ratio, most.get(kind, Fraction(0)))


def check_pair(one: Side, two: Side, tally: Tally) -> None:
    """Nothing but the sums differs, and they differ by no more than is declared."""
    require(one.statements == two.statements, "the statement depends on data")
    require([c.described for c in one.cores] == [c.described for c in two.cores], "the statistics depend on data")
    require(one.calibration == two.calibration, "the calibration depends on data")
    for core, left, right in zip(one.cores, one.sides, two.sides, strict=True):
        require(
            [(c.statistic, c.measurement) for c in left.calls] == [(c.statistic, c.measurement) for c in right.calls],
            "the mechanism calls depend on data",
        )
        if core.described.keys.domain is not None:
            require(left.keys == right.keys, "the shown groups depend on data")
        every = list(dict.fromkeys([*left.keys, *right.keys]))
        for call, other in zip(left.calls, right.calls, strict=True):
            zero = (0,) * call.measurement.statistic.summed
            first = dict(zip(left.keys, call.exact, strict=True))
            second = dict(zip(right.keys, other.exact, strict=True))
            changes = [
                [a - b for a, b in zip(first.get(key, zero), second.get(key, zero), strict=True)] for key in every
            ]
            wide = on_nodes_alone(call.measurement.statistic)
            _check_distance(core, call, [change for row in changes for change in row[:wide]], tally)
            if call.measurement.statistic.drawn is not None:
                check_scores(call, [(first.get(key, zero)[wide:], second.get(key, zero)[wide:]) for key in every])
            _check_coarse(call, first, second, every, zero)


def _check_distance(core: BoundedCore, call: Call, changes: Iterable[int], tally: Tally) -> None:
    statistic = call.measurement.statistic
    bound = statistic.sensitivity
    moved = [abs(change) for change in changes if change]
    found = {
        "l0": (len(moved), bound.l0),
        "l1": (sum(moved), bound.l1),
        "l2_squared": (sum(change**2 for change in moved), bound.l2_squared),
        "linf": (max(moved, default=0), bound.linf),
    }
    for name, (value, limit) in found.items():
        require(
            value <= limit,
            f"{statistic.kind.value} {statistic.name} ({statistic.argument}) of {core.described.name}: "
            f"{name} changed by {value}, declared {limit}",
        )
    bounding = next(item.bounding for item in core.statistics if item.statistic.name == statistic.name)
    degrees = f"{statistic.degree or ''}{statistic.second_degree or ''}"
    kind = f"{statistic.kind.value}{degrees}{'n' if statistic.counts_nulls else ''}"
    if statistic.kind is StatisticKind.MOMENTS and bounding is not Bounding.SCALED:
        kind += f" {bounding.value}{' raised' * statistic.raised}{' lowered' * statistic.lowered}"
    kind += " of parts" * statistic.fractional
    kind += " of values" * statistic.distinct
    parts = {name: Fraction(value) / limit for name, (value, limit) in found.items() if name != "l0"}
    tally.saw(kind, **parts)


def _check_coarse(call: Call, first: Any, second: Any, every: Sequence[Any], zero: tuple[int, ...]) -> None:
    """Sums that were rounded to the measurement's grid change by no more than the event says."""
    grid, event, statistic = call.measurement.grid, call.event, call.measurement.statistic

    def coarse(value: int) -> int:
        return (value + grid // 2) // grid * grid

    sides: list[list[Sequence[int]]] = [[one.get(key, zero) for key in every] for one in (first, second)]
    if isinstance(call.measurement, GaussianPairs):
        grid, sides = 4 * grid, [[_forms(row) for row in side] for side in sides]
    if isinstance(call.measurement, LaplaceLevels | GaussianLevels):
        sides = [list(nodes_of(call.measurement, side)) for side in sides]
    changes = [
        coarse(a) - coarse(b)
        for row, other in zip(*sides, strict=True)
        for a, b in list(zip(row, other, strict=True))[: on_nodes_alone(statistic)]
    ]
    if isinstance(event, LaplaceEvent | LaplaceRangesEvent | LaplaceThresholdEvent):
        require(sum(map(abs, changes)) <= event.l1_sensitivity, "levels or rounding to the grid are not in the event")
    elif isinstance(event, GaussianEvent | GaussianThresholdEvent | GaussianRangesEvent):
        squares: Fraction | int = sum(change**2 for change in changes)
        if isinstance(call.measurement, GaussianMoments):
            # With the factors that are drawn with, whatever the proof says of them.
            width, sigmas = statistic.coordinates, call.measurement.sigmas
            factors = [(call.measurement.sigma / sigma) ** 2 for sigma in sigmas]
            squares = sum((factors[i % width] * change**2 for i, change in enumerate(changes)), Fraction(0))
        if isinstance(call.measurement, GaussianPairs):
            root = call.measurement.sigma / 4
            factors = [(root / sigma) ** 2 for sigma in call.measurement.sigmas]
            squares = sum((factors[i % 4] * change**2 for i, change in enumerate(changes)), Fraction(0))
        require(squares <= event.l2_squared, "levels or rounding to the grid are not in the event")


@dataclass(frozen=True)
class Audit:
    """One triple: a scene, a query with its price, and the units of a neighbour."""

    scene: Scene
    query: Query
    gaussian: bool
    epsilon: Fraction
    neighbour: frozenset[Any]

    def check(self, tally: Tally | None = None) -> None:
        """Raises Violation when the triple does not hold."""
        units = frozenset(self.scene.units)
        with (
            closing(Store(self.scene, units, seed=1)) as one,
            closing(Store(self.scene, self.neighbour, seed=2)) as two,
        ):
            _check_triple(self, one, two, _run_or_refused(self, one), tally or Tally(), _Reference(self, one))

    def describe(self) -> str:
        """The triple as text."""
        lines = [f"scene {self.scene.seed}, epsilon {self.epsilon}, {'gaussian' if self.gaussian else 'laplace'}"]
        lines.append(f"{self.query.sql}  {dict(self.query.parameters)}")
        lines.append(f"units {self.scene.units}; neighbour {sorted(self.neighbour, key=repr)}")
        for table in self.scene.dataset.tables:
            lines.append(f"{table.name} {table.contribution}")
            lines += [f"    {dict(row)}" for row in self.scene.rows[table.name]]
        return "\n".join(lines)


def _run_or_refused(audit: Audit, store: Store) -> Side | tuple[str, ...]:
    try:
        return run(store, audit.scene, audit.query, gaussian=audit.gaussian, epsilon=audit.epsilon)
    except Refused as refused:
        return tuple(finding.code for finding in refused.findings)
    except Violation:
        raise
    except Exception as error:  # whatever a row can make fail is an answer about that row
        raise Violation(f"the run failed with {type(error).__name__}: {error}") from error


class _Reference:
    """The reference's contributions of all units (the spare one too), computed when they are first asked for."""

    def __init__(self, audit: Audit, store: Store) -> None:
        self._audit, self._store = audit, store
        self._parts: list[Contributions] | None = None
        self._kept: list[Kept] | None = None

    def kept(self, side: Side) -> list[Kept]:
        """The different values that each unit brings in."""
        if self._kept is None:
            scene = self._audit.scene
            owners = {table.name: owner_of(scene, table.name) for table in scene.dataset.tables}
            self._kept = [kept_values(core, scene.rows, owners, self._store.hashes) for core in side.cores]
        return self._kept

    def parts(self, side: Side) -> list[Contributions]:
        if self._parts is None:
            scene = self._audit.scene
            owners = {table.name: owner_of(scene, table.name) for table in scene.dataset.tables}
            self._parts = [contributions(c, scene.rows, owners, self._store.hashes(c)) for c in side.cores]
        return self._parts


def _check_triple(
    audit: Audit,
    one: Store,
    two: Store,
    base: Side | tuple[str, ...],
    tally: Tally,
    reference: _Reference,
) -> None:
    tally.triples += 1
    other = _run_or_refused(audit, two)
    if isinstance(base, tuple) or isinstance(other, tuple):
        require(base == other, "one side is refused, the other is not, or for other reasons")
        assert isinstance(base, tuple)
        tally.refused.update(base)
        return
    check_pair(base, other, tally)
    check_side(base, reference.parts(base), one.units, reference.kept(base))
    check_side(other, reference.parts(base), two.units, reference.kept(base))


def neighbours_of(scene: Scene, seed: int, count: int) -> list[frozenset[Any]]:
    """Neighbours: without the unit that has most rows, without some others, and with the spare unit."""
    sizes = Counter(owner_of(scene, "visits"))
    units = frozenset(scene.units)
    heaviest = max(scene.units, key=lambda unit: sizes[unit])
    rest = [unit for unit in scene.units if unit != heaviest]
    random.Random(seed).shuffle(rest)
    found = [units - {heaviest}, units | {scene.spare}, *[units - {unit} for unit in rest]]
    return found[:count]


def audit_scene(seed: int, *, queries: int, neighbours: int, tally: Tally, shrink: bool = True) -> None:
    """Many triples over one scene: each query runs once on the data and once on every neighbour.

    Errors: Violation, with the smallest counterexample that was found unless `shrink` is off.
    """
    scene = make_scene(seed)
    sides = neighbours_of(scene, seed, neighbours)
    with ExitStack() as stack:
        stores = [stack.enter_context(closing(Store(scene, frozenset(scene.units), seed=seed)))]
        stores += [stack.enter_context(closing(Store(scene, units, seed=seed + 1))) for units in sides]
        audit_stores(scene, stores, queries=queries, tally=tally, shrink=shrink)


def audit_stores(scene: Scene, stores: Sequence[Store], *, queries: int, tally: Tally, shrink: bool) -> None:
    """The triples of a scene whose data (first) and neighbours are already stored."""
    choice = random.Random(scene.seed)
    for number in range(queries):
        query = make_query(scene, scene.seed * 1_000 + number)
        gaussian, epsilon = choice.random() < 0.4, choice.choice([Fraction(1, 100), Fraction(1), Fraction(8)])
        audit = Audit(scene, query, gaussian, epsilon, stores[1].units)
        try:
            base = _run_or_refused(audit, stores[0])
            reference = _Reference(audit, stores[0])
            for store in stores[1:]:
                audit = replace(audit, neighbour=store.units)
                _check_triple(audit, stores[0], store, base, tally, reference)
        except Violation as violation:
            if not shrink:
                raise
            raise Violation(f"{violation}\n{shrunk(audit).describe()}") from None


def shrunk(audit: Audit, attempts: int = 150) -> Audit:
    """A smaller triple that still fails: units and rows are left out while it does."""
    left = [attempts]

    def fails(candidate: Audit) -> bool:
        left[0] -= 1
        try:
            candidate.check()
        except Violation:
            return True
        except Exception:
            return False
        return False

    if not fails(audit):
        return audit  # it needs its whole history; show it as it is
    for unit in audit.scene.units:
        scene = replace(audit.scene, units=tuple(other for other in audit.scene.units if other != unit))
        candidate = replace(audit, scene=scene, neighbour=audit.neighbour - {unit})
        if left[0] > 0 and candidate.neighbour != frozenset(scene.units) and fails(candidate):
            audit = candidate
    used = frozenset(audit.scene.units) | audit.neighbour
    part = replace(audit, scene=replace(audit.scene, rows=restricted(audit.scene, used)))
    audit = part if fails(part) else audit
    for table in ("items", "visits", "hospitals"):
        step = max(1, len(audit.scene.rows[table]) // 2)
        while step and left[0] > 0:
            place = 0
            while place < len(audit.scene.rows[table]) and left[0] > 0:
                candidate = replace(
                    audit, scene=without_rows(audit.scene, table, frozenset(range(place, place + step)))
                )
                if fails(candidate):
                    audit = candidate
                else:
                    place += step
            step //= 2
    return audit
