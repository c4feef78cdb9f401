"""Families of noise: one registry, and nobody tells them apart by a name."""

from __future__ import annotations

import ast
import inspect
import json
from fractions import Fraction

import pytest
import typer

from mechanisms.calibrate import calibrate
from mechanisms.families import BY_MECHANISM, FAMILIES, MEASUREMENTS, NoiseFamily, Price, registered
from mechanisms.measurement import Measurement
from mechanisms.release import release
from mechanisms.released_table import ReleasedTable
from mechanisms.summed import Summed
from privacy.exact import Exact
from privacy.statistic import CoreStatistics
from server.answer_rows import from_stored, to_stored
from server.cli import asking
from server.wire.requests import QueryBody
from tests.mechanisms.support import SeededBits, scalar_core, selected_core, units
from tests.mechanisms.test_release import COUNT_ESTIMATE
from tests.trees import sources, walked

CORES = {"public": scalar_core([units("n")], [COUNT_ESTIMATE]), "hidden": selected_core()}
DELTA = Fraction(1, 10**6)


def names_below(kind: type[Measurement]) -> set[str]:
    """The names of the kinds of measurement that can be made."""
    found = {name for child in kind.__subclasses__() for name in names_below(child)}
    return found if inspect.isabstract(kind) else {kind.name, *found}


def made(core: CoreStatistics, family: NoiseFamily) -> ReleasedTable:
    """A release of a few counts."""
    keys = {"k": ["a"]} if core.keys.columns else {}
    exact = Exact(keys=keys, sums={f"{core.statistics[0].name}_0": [5000]}, rows=1)
    calibration = calibrate([core], Price(family, Fraction(1), DELTA))
    return release(core, calibration, exact, bits=SeededBits(3), confidence=Fraction(95, 100))


def test_every_name_has_one_family_and_every_measurement_one() -> None:
    """The registry is whole: no name without an entry, no kind of measurement outside, none in two families."""
    assert set(FAMILIES) == set(NoiseFamily)
    kinds = [kind for family in FAMILIES.values() for kind in family.measurements]
    assert len(kinds) == len(set(kinds))
    assert {kind.name: kind for kind in kinds} == dict(MEASUREMENTS)
    # What sums over cells have is no noise of its own: it is never drawn, and never stored (mechanisms/summed.py).
    assert set(MEASUREMENTS) == names_below(Measurement) - {Summed.name}
    assert len({family.preference for family in FAMILIES.values()}) == len(FAMILIES)


@pytest.mark.parametrize("name", NoiseFamily)
def test_a_name_without_a_family_cannot_be_registered(name: NoiseFamily) -> None:
    """A name in requests and releases that nothing answers, or two things, stops the import."""
    with pytest.raises(ValueError, match=f"no family .* {name.value}"):
        registered(family for family in FAMILIES.values() if family.name is not name)
    with pytest.raises(ValueError, match=f"two families .* {name.value}"):
        registered((*FAMILIES.values(), FAMILIES[name]))


def test_requests_and_command_line_name_the_families() -> None:
    """What can be asked for is every family, and the server's choice."""
    asked = QueryBody.model_json_schema()["properties"]["noise"]["enum"]
    assert set(asked) == {family.value for family in NoiseFamily} | {"auto"}
    assert [asking._family(word) for word in asked] == asked
    with pytest.raises(typer.BadParameter) as refused:
        asking._family("white")
    assert all(f"'{word}'" in refused.value.message for word in asked)


@pytest.mark.parametrize("name", NoiseFamily)
@pytest.mark.parametrize("shape", CORES)
def test_a_family_draws_what_it_lists(name: NoiseFamily, shape: str) -> None:
    """Its noise is the first of its measurements, its selection one that selects; the release says whose it is."""
    core, family = CORES[shape], FAMILIES[name]
    if not family.selects(core):
        assert family.unselected is not None
        with pytest.raises(ValueError, match=family.unselected):
            calibrate([core], Price(name, Fraction(1), DELTA))
        return
    (measurement,) = calibrate([core], Price(name, Fraction(1), DELTA)).measurements
    assert type(measurement) in family.measurements
    assert BY_MECHANISM[measurement.name] is family
    assert measurement.selects is (shape == "hidden")
    assert made(core, name).family is name


@pytest.mark.parametrize("name", NoiseFamily)
def test_a_family_widens_as_its_own_noise_does(name: NoiseFamily) -> None:
    """The factor between two confidences is that of the quantiles of one noisy number."""
    core = CORES["public"]
    (measurement,) = calibrate([core], Price(name, Fraction(1, 10**9), DELTA)).measurements
    quantiles = [measurement.quantile_single(alpha) for alpha in (0.05, 0.001)]
    assert FAMILIES[name].widening(0.95, 0.999) == pytest.approx(quantiles[1] / quantiles[0], rel=1e-4)


@pytest.mark.parametrize("name", NoiseFamily)
@pytest.mark.parametrize("shape", CORES)
def test_a_release_stores_its_family(name: NoiseFamily, shape: str) -> None:
    """The body names it; a body of before, which does not, has that of its mechanisms; an unknown one is an error."""
    if not FAMILIES[name].selects(CORES[shape]):
        return
    body = json.loads(to_stored(made(CORES[shape], name)))
    assert body["family"] == name.value
    assert from_stored(json.dumps(body).encode(), "core", Fraction(95, 100)).family is name
    del body["family"]
    assert from_stored(json.dumps(body).encode(), "core", Fraction(95, 100)).family is name
    body["family"] = "laplacian"
    with pytest.raises(ValueError, match="laplacian"):
        from_stored(json.dumps(body).encode(), "core", Fraction(95, 100))


def test_nobody_reads_a_part_of_a_mechanisms_name() -> None:
    """No room compares with the name of a measurement, or with a prefix of one: the registry has fields for that."""
    names = {*MEASUREMENTS, *(family.value for family in NoiseFamily)}
    found = []
    for name, tree in sources("privacy", "mechanisms", "accountant", "sql_rewrite", "server"):
        for node in walked(tree):
            compared: list[ast.expr] = []
            if isinstance(node, ast.Compare):
                compared = [node.left, *node.comparators]
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                compared = list(node.args) if node.func.attr in ("startswith", "endswith") else []
            values = [part.value for one in compared for part in ast.walk(one) if isinstance(part, ast.Constant)]
            found += [f"{name}:{node.lineno}: {value}" for value in values if value in names]
    assert found == []
