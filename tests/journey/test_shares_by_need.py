"""A width splits its price among statistics by need: it costs less, every width holds, and nothing serves too much."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from mechanisms import calibrate as calibrating
from mechanisms.calibrate import calibrate, calibrate_for_half_width, even_part, evenly, part_of, split_of
from mechanisms.families import NoiseFamily
from server.journey import charges
from server.services import Services
from tests.journey.clinic import question, stored
from tests.journey.test_joined_averages import bounded

Analyst = Callable[..., str]
CONFIDENCE = Fraction(95, 100)
SUMS = "SELECT SUM(age), SUM(person_id % 3) FROM people"


def asked(services: Services, sql: str, principal: str, **options: Any) -> dict[str, Any]:
    """The answer."""
    admitted = services.journey.admit(question(sql, principal, **options))
    return dict(json.loads(stored(admitted) or services.journey.complete(admitted)))


@pytest.mark.parametrize("family", NoiseFamily)
@pytest.mark.parametrize(
    ("sql", "times"),
    [
        (SUMS, 1.9),
        ("SELECT COUNT(*), AVG(age), SUM(person_id % 3) FROM people", 1.15),
        ("SELECT SUM(age), SUM(person_id % 100) FROM people", 1.0),
        ("SELECT sex, SUM(age), SUM(person_id % 3), MEDIAN(age) FROM people GROUP BY sex", 1.0),
    ],
)
def test_a_width_costs_what_each_statistic_needs(sql: str, times: float, family: NoiseFamily) -> None:
    """Shows that every width is met at a price that is lower by these times, that wider ones never cost more, and that
    a statistic of which no width is known has no less than it had.
    """
    core = bounded(sql).described
    last = None
    for width in (20, 50, 51, 400):
        price = calibrate_for_half_width([core], Fraction(width), CONFIDENCE, family)
        even = evenly([core], price)
        found = calibrate([core], price)
        widths = [one for one in found.predicted_half_widths(core.name, CONFIDENCE).values() if one is not None]
        assert max(widths) <= width
        assert even.amount >= price.amount * Fraction(times)
        assert last is None or price.amount <= last
        last = price.amount
        assert sum((one.share for one in found.measurements), Fraction(0)) == 1
        compared = calibrate([core], even)
        for mine, other in zip(found.measurements, compared.measurements, strict=True):
            assert mine.share * price.amount <= other.share * even.amount
            if mine.statistic.tree is not None:
                assert mine.share * price.amount == other.share * even.amount


def test_qualities_say_no_more_than_each_statistic_has() -> None:
    """Shows what a split release counts as beside fixed parts: never more than its poorest statistic, to serve; never
    less than its best one, to be served.
    """
    core = bounded(SUMS).described
    price = calibrate_for_half_width([core], Fraction(50), CONFIDENCE, NoiseFamily.GAUSSIAN)
    assert split_of(core, [core], price)
    own = [one.share for one in calibrate([core], price).measurements]
    assert even_part(core, [core], price, least=True) == 2 * min(own)
    assert even_part(core, [core], price, least=False) == 2 * max(own)
    assert part_of(core, [core], price) == 1 == part_of(core, [core])
    assert not split_of(core, [core], evenly([core], price))


def test_a_split_release_serves_its_width_and_what_it_holds(services: Services, analyst: Analyst) -> None:
    """Shows that the same width and a wider one are free, that each sum is, and that a spend of as much as the whole is
    not, as its poorest sum has far less than that.
    """
    who = analyst()
    first = asked(services, SUMS, who, epsilon=None, half_width=Fraction(400))
    assert Decimal(first["accounting"]["charged"][0]["epsilon"]) > 0, first["accounting"]
    for width in (400, 500):
        assert asked(services, SUMS, who, epsilon=None, half_width=Fraction(width))["accounting"]["reused"]
    assert asked(services, "SELECT SUM(age) FROM people", who, epsilon=None, half_width=Fraction(401))["accounting"][
        "reused"
    ]
    relative = asked(services, SUMS, who, epsilon=None, relative=Fraction(1))  # its sizes are those of the release
    assert relative["accounting"]["reused"]
    again = asked(services, SUMS, who, epsilon=first["accounting"]["charged"][0]["epsilon"])
    assert not again["accounting"]["reused"]


def test_parts_by_need_of_several_cores(services: Services, analyst: Analyst) -> None:
    """Shows that cores with one statistic each share by need as well, each with no less than a run must take, under
    the keys that they always had: the same question and each of its parts are free afterwards.
    """
    who = analyst()
    both = "SELECT (SELECT SUM(age) FROM people) AS s, (SELECT COUNT(*) FROM people) AS n"
    first = asked(services, both, who, epsilon=None, half_width=Fraction(400))
    shares = sorted(float(one["share"]) for one in first["provenance"]["mechanisms"])
    assert shares[0] < 0.02 < 0.98 < shares[-1]
    assert asked(services, both, who, epsilon=None, half_width=Fraction(400))["accounting"]["reused"]
    for one in ("SELECT SUM(age) FROM people", "SELECT COUNT(*) FROM people"):
        assert asked(services, one, who, epsilon=None, half_width=Fraction(401))["accounting"]["reused"], one


def test_a_release_under_a_key_without_its_split_is_caught(
    services: Services, analyst: Analyst, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twin: without the split in its key a release serves a spend with sums that have a fraction of what it buys."""
    monkeypatch.setattr(charges, "split_of", lambda core, cores, price: "")
    who = analyst()
    first = asked(services, SUMS, who, epsilon=None, half_width=Fraction(400))
    spend = asked(services, SUMS, who, epsilon=first["accounting"]["charged"][0]["epsilon"])
    assert spend["accounting"]["reused"]


def test_parts_that_forget_a_need_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twin: parts for the wrong statistic cost more than fixed ones, so that these are used."""
    genuine = calibrating.needed_parts
    monkeypatch.setattr(calibrating, "needed_parts", lambda *given: genuine(*given)[::-1])
    core = bounded(SUMS).described
    assert not calibrate_for_half_width([core], Fraction(50), CONFIDENCE, NoiseFamily.GAUSSIAN).parts
