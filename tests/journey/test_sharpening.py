"""Precision is bought and not bought again: a better wish costs the difference to what is stored."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import httpx
import pytest

from mechanisms import gateway, sharpening
from mechanisms.calibrate import Calibration
from mechanisms.measurement import Integers, Measurement, Perturbed
from mechanisms.measurements.gaussian_combined import CombinedGaussian
from mechanisms.noisy_sums import sums_from_plain
from mechanisms.randomness import BitSource
from privacy.composition import compose
from privacy.events import Event
from privacy.numbers import PICO, decimal_text
from server.answer_rows import from_stored
from server.services import Services
from tests.journey.clinic import answer_to, clinic_in, open_account, question
from tests.journey.norm_clinic import auto_clinic
from tests.journey.test_http import Api

SEXES = "SELECT sex, COUNT(*) AS n, AVG(age) AS a, AVG(salary) / COUNT(*) AS z FROM people GROUP BY sex"


class Desk:
    """An analyst, and what their account spent."""

    def __init__(self, services: Services, name: str) -> None:
        self.services, self.name = services, name

    def ask(self, sql: str = SEXES, **options: Any) -> dict[str, Any]:
        """An answer."""
        return answer_to(self.services, question(sql, self.name, **{"epsilon": None, **options}))

    def quote(self, sql: str = SEXES, **options: Any) -> dict[str, Any]:
        """An estimate."""
        asked = question(sql, self.name, **{"epsilon": None, **options})
        return dict(self.services.journey.estimate(asked))

    def spent(self) -> Fraction:
        """Mu squared of the analyst's account."""
        (account,) = [one for one in self.services.ledger.accounts(dataset="clinic") if one.principal == self.name]
        return (account.spent.mu_squared or 0) * PICO


@pytest.fixture
def desk(services: Services, analyst: Callable[..., str]) -> Desk:
    """Somebody new."""
    return Desk(services, analyst())


def errors(answer: dict[str, Any]) -> list[float]:
    """The standard errors of the first row."""
    return [error for error in answer["standard_errors"][0] if error is not None]


def test_a_better_wish_costs_the_difference_and_answers_like_a_fresh_one(
    desk: Desk, analyst: Callable[..., str]
) -> None:
    """Of all columns; a repeat is free, a poorer wish too, and the next wish rests on what was made."""
    first = desk.ask(epsilon="1")
    one = desk.spent()
    told = desk.quote(epsilon="2")
    second = desk.ask(epsilon="2")
    fresh = Desk(desk.services, analyst())
    whole = fresh.ask(epsilon="2")
    assert Fraction(0) < 2 * one - desk.spent() <= 10 * PICO
    assert fresh.spent() - desk.spent() <= 10 * PICO
    assert first["accounting"]["sharpened"] is None
    assert second["accounting"]["charged"][0]["epsilon"] == told["price"]["epsilon"] == "1"
    assert second["accounting"]["sharpened"]["anew"]["epsilon"] == "2"
    assert told["sharpening"]["anew"]["epsilon"] == "2"
    assert second["provenance"]["mechanisms"][0]["mechanism"] == "gaussian_combined"
    assert errors(second) == pytest.approx(errors(whole), rel=0.2)
    assert errors(second)[0] < errors(first)[0]
    spent = desk.spent()
    assert desk.ask(epsilon="2")["rows"] == second["rows"]
    assert desk.ask(epsilon="1.5")["accounting"]["reused"]
    assert desk.spent() == spent
    desk.ask(epsilon="3")
    assert abs(desk.spent() - 3 * one) <= 20 * PICO
    assert desk.services.ledger.audit().findings == ()


def test_the_release_has_the_events_of_all_that_is_in_it(desk: Desk) -> None:
    """Whoever reads it for a charge pays for both; its law is that of the sums that are stored."""
    desk.ask(epsilon="1")
    answer = desk.ask(epsilon="2.5")
    release = desk.services.ledger.release(answer["provenance"]["releases"][0])
    assert release is not None
    whole = compose(release.events).mu_squared
    assert whole is not None
    assert abs(whole - desk.spent()) <= 5 * PICO
    for sums in from_stored(release.body, "c0", Fraction(95, 100)).sums or ():
        assert isinstance(sums.measurement, CombinedGaussian)
        assert sums.measurement.looks == 2
        assert sums.fine is not None


def drawn_and_charged(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> tuple[Fraction, Fraction]:
    """Mu squared of all noise that met true sums, and what was charged for it, of two wishes."""
    drawn: list[Measurement] = []
    genuine = gateway.perturb

    def perturb(measurement: Measurement, exact: Integers, bits: BitSource) -> Perturbed:
        drawn.append(measurement)
        return genuine(measurement, exact, bits)

    with monkeypatch.context() as patch:
        patch.setattr(gateway, "perturb", perturb)
        desk.ask(epsilon="1")
        desk.ask(epsilon="1.75")
    lost = compose([measurement.event() for measurement in drawn]).mu_squared
    assert lost is not None
    return lost, desk.spent()


def test_what_is_drawn_is_what_is_charged(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """The ledger's sum covers every noise that was drawn, and not much more."""
    lost, charged = drawn_and_charged(desk, monkeypatch)
    assert 0 <= charged - lost <= 10 * PICO


def test_a_whole_that_is_drawn_at_the_price_of_a_difference_is_caught(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The planted bug: both drawn anew at their full precision, the difference charged."""
    genuine = sharpening.difference

    def cheap(core: Any, wanted: Any, stored: Any, **options: Any) -> Any:
        found = genuine(core, wanted, stored, **options)
        if found is None:
            return None
        drawn, charged = wanted.measurements_of(core.name), found.drawn

        class Cheap(Calibration):
            """The whole, at the price of the difference."""

            def events_of(self, core_name: str) -> tuple[Event, ...]:
                return charged.events_of(core_name)

        return sharpening.Difference(Cheap((core,), drawn), found.mean)

    monkeypatch.setattr("server.journey.sharpening.difference", cheap)
    lost, charged = drawn_and_charged(desk, monkeypatch)
    assert lost > charged + 100 * PICO


def test_a_width_is_kept_by_every_answer_that_promises_it(desk: Desk) -> None:
    """Means have wider intervals: they serve a width only where theirs are as narrow, and are bought where cheaper."""
    sql = "SELECT COUNT(*) AS n FROM people WHERE age > 40"

    def width(answer: dict[str, Any]) -> float:
        return float(answer["highs"][0][0] - answer["lows"][0][0]) / 2

    desk.ask(sql, epsilon="0.01")
    mean = desk.ask(sql, epsilon="0.1")
    stated = width(mean)
    spent = desk.spent()
    assert width(desk.ask(sql, half_width=Fraction(stated) + 1)) == stated
    assert desk.spent() == spent
    wished = Fraction(stated) * Fraction(9, 10)
    better = desk.ask(sql, half_width=wished)
    assert width(better) <= wished
    assert better["accounting"]["sharpened"] is not None
    assert desk.ask(sql, half_width=wished)["accounting"]["reused"]
    half = desk.ask(sql, half_width=Fraction(stated) / 4)
    assert width(half) <= stated / 4
    assert desk.services.ledger.audit().findings == ()


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT town, COUNT(*) AS n FROM people GROUP BY town",
        "SELECT sex, COUNT(*) AS n FROM people GROUP BY ROLLUP(sex)",
    ],
    ids=["hidden groups", "levels"],
)
def test_what_is_no_sum_of_public_cells_is_bought_whole(desk: Desk, sql: str) -> None:
    """A better wish costs what it costs: nothing of it is a mean."""
    desk.ask(sql, epsilon="5", noise=None)
    answer = desk.ask(sql, epsilon="10")
    assert answer["accounting"]["sharpened"] is None
    assert "gaussian_combined" not in {one["mechanism"] for one in answer["provenance"]["mechanisms"]}


def test_who_wants_no_stored_release_buys_the_whole(desk: Desk) -> None:
    """By `reuse`, and by an age that the stored one has passed."""
    desk.ask(epsilon="1")
    assert desk.ask(epsilon="1.5", reuse="none")["accounting"]["sharpened"] is None
    assert desk.quote(epsilon="2", max_staleness_s=0)["sharpening"] is None


def test_intervals_that_become_no_narrower_are_said(desk: Desk) -> None:
    """By the estimate, by the answer and whenever that is given again; not where so much is added that they do."""
    desk.ask(epsilon="1")

    def said(body: dict[str, Any]) -> list[str]:
        return [one["code"] for one in body["warnings"] if one["code"] == "not_narrower"]

    assert said(desk.quote(epsilon="3")) == []
    assert said(desk.quote(epsilon="2")) == ["not_narrower"]
    answer = desk.ask(epsilon="2")
    assert said(answer) == said(desk.ask(epsilon="2")) == ["not_narrower"]
    (words,) = [one["why"] for one in answer["warnings"] if one["code"] == "not_narrower"]
    assert "1.05 times as far" in words
    assert "from 2.25 times on" in words
    assert said(desk.ask(epsilon="3")) == []


def test_a_stored_release_is_read_once(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """A width asks three times for the table of one."""
    sql = "SELECT COUNT(*) AS n FROM people WHERE age > 41"
    desk.ask(sql, epsilon="0.01")
    mean = desk.ask(sql, epsilon="0.1")
    stated = Fraction(mean["highs"][0][0] - mean["lows"][0][0]) / 2
    read: list[str] = []

    def counted(body: bytes, name: str, confidence: Fraction) -> Any:
        read.append(name)
        return from_stored(body, name, confidence)

    monkeypatch.setattr("server.journey.sharpening.from_stored", counted)
    assert desk.quote(sql, half_width=stated * Fraction(9, 10))["sharpening"] is not None
    assert read == ["c0"]


def test_stored_means_are_read_with_their_law() -> None:
    """A field that this version does not know is an error: without it the noise would have another law."""
    with pytest.raises((KeyError, TypeError, ValueError)):
        sums_from_plain([{"mechanism": "gaussian_combined", "measurement": {}, "estimates": [], "sums": []}])


# Over HTTP


COUNT = "SELECT COUNT(*) AS n FROM people WHERE age > 44"


class Calls:
    """Requests of analysts to a home of their own."""

    def __init__(self, services: Services) -> None:
        self.api = Api(services)
        self.services = services
        for name in ("anna", "ben"):
            self.api.key(name, "analyst")
            open_account(services.ledger, name, epsilon="10")

    def ask(self, body: dict[str, Any], who: str = "anna", **headers: str) -> httpx.Response:
        """A query."""
        return self.api.call(who, "POST", "/v1/queries", {"dataset": "clinic", "sql": COUNT, **body}, **headers)

    def sharpen(self, query: str, body: dict[str, Any], who: str = "anna", **headers: str) -> httpx.Response:
        """A better wish."""
        return self.api.call(who, "POST", f"/v1/queries/{query}:sharpen", body, **headers)

    def spent(self) -> Fraction:
        """Of anna's account."""
        return Desk(self.services, "anna").spent()


@pytest.fixture
def calls(tmp_path: Path) -> Iterator[Calls]:
    """A home with two analysts."""
    with clinic_in(tmp_path) as (services, _):
        yield Calls(services)


def spend(epsilon: str, **options: Any) -> dict[str, Any]:
    """A wish for so much of the account."""
    return {"spend": {"epsilon": epsilon}, **options}


def test_sharpening_by_identifier(calls: Calls) -> None:
    """The difference is charged, a retry is the same bytes, and what would cost more than it may costs nothing."""
    first = calls.ask(spend("0.5")).json()
    query, spent = first["id"], calls.spent()
    dear = calls.sharpen(query, spend("2", max_cost="1.4"))
    assert (dear.status_code, dear.json()["code"], dear.json()["charged"]) == (403, "above_max_cost", False)
    assert calls.spent() == spent
    key = {"Idempotency-Key": "once"}
    answer = calls.sharpen(query, spend("2", max_cost="1.5"), **key)
    assert answer.status_code == 200, answer.text
    assert answer.json()["accounting"]["charged"][0]["epsilon"] == "1.5"
    assert answer.json()["accounting"]["sharpened"]["releases"][0]["release"] == first["links"]["releases"][0]
    assert calls.sharpen(query, spend("2", max_cost="1.5"), **key).content == answer.content
    other = calls.sharpen(query, spend("3"), **key)
    assert (other.status_code, other.json()["code"]) == (409, "idempotency_conflict")
    spent = calls.spent()
    assert calls.sharpen(answer.json()["id"], spend("1")).json()["accounting"]["reused"]
    assert calls.spent() == spent
    calls.services.journey.asked.forget()  # type: ignore[attr-defined] # as after a restart
    again = calls.sharpen(query, spend("2", max_cost="1.5"), **key)
    assert again.content == answer.content
    gone = calls.sharpen(query, spend("3"))
    assert (gone.status_code, gone.json()["code"]) == (409, "text_not_kept")


def test_what_cannot_be_sharpened_and_who_may_not(calls: Calls) -> None:
    """Hidden groups are refused before anything is charged; somebody else's query is not there; a wish is needed."""
    hidden = calls.ask(spend("1", sql="SELECT town, COUNT(*) AS n FROM people GROUP BY town")).json()["id"]
    spent = calls.spent()
    refused = calls.sharpen(hidden, spend("2"))
    assert (refused.status_code, refused.json()["code"], refused.json()["charged"]) == (409, "not_sharpened", False)
    assert calls.spent() == spent
    assert calls.sharpen(hidden, spend("2"), who="ben").status_code == 404
    for body in ({}, {"accuracy": {"confidence": "0.9"}}, spend("1", accuracy={"half_width": "3"}), {"sql": COUNT}):
        assert calls.sharpen(hidden, body).status_code == 422


def test_a_most_cost_of_questions_and_estimates(calls: Calls) -> None:
    """At most means at most; free answers always fit; a question of two charges is held to it in both."""
    assert calls.ask(spend("0.5", max_cost="0.499999")).json()["code"] == "above_max_cost"
    estimate = {"dataset": "clinic", "sql": COUNT, **spend("0.5", max_cost="0.1")}
    assert calls.api.call("anna", "POST", "/v1/estimates", estimate).json()["code"] == "above_max_cost"
    assert calls.spent() == 0
    assert calls.ask(spend("0.5", max_cost="0.5")).status_code == 200
    for most in ("0", "0.000001"):
        assert calls.ask(spend("0.5", max_cost=most)).json()["accounting"]["reused"]
    assert calls.ask(spend("0.7", max_cost="0")).json()["code"] == "above_max_cost"


def test_a_most_cost_is_compared_with_what_is_stated(calls: Calls) -> None:
    """What an estimate prints is enough, and a hair less is not: an answer would state more than was allowed."""
    sql = "SELECT COUNT(*) AS n FROM people WHERE age > 45"
    wish: dict[str, Any] = {"sql": sql, "accuracy": {"half_width": "41"}}
    told = calls.api.call("anna", "POST", "/v1/estimates", {"dataset": "clinic", **wish}).json()["price"]["epsilon"]
    less = calls.ask({**wish, "max_cost": decimal_text(Fraction(told) - PICO, places=12)}).json()
    assert less["code"] == "above_max_cost"
    assert f"a max_cost of at least {told}" in less["instead"][1]
    answer = calls.ask({**wish, "max_cost": told}).json()
    assert answer["accounting"]["charged"][0]["epsilon"] == told


def test_an_unknown_query_is_answered_with_where_queries_are_listed(calls: Calls) -> None:
    """Lists of other things would not help."""
    refused = calls.sharpen("q_000000000000000000000000", spend("2"))
    assert refused.status_code == 404
    assert refused.json()["instead"] == ["See what there is: GET /v1/queries"]


# Norms that the question chooses


def test_the_norm_of_what_is_stored_is_kept(tmp_path: Path) -> None:
    """No histogram is bought again, and units are scaled as they were: sums at other norms would be other numbers."""
    sql = "SELECT ward, COUNT(*) AS n, SUM(cost) AS s FROM visits GROUP BY ward"
    with auto_clinic(tmp_path) as (services, _):
        open_account(services.ledger, "anna", dataset="wards", epsilon="100")

        def ask(epsilon: str) -> dict[str, Any]:
            return answer_to(services, question(sql, "anna", dataset="wards", epsilon=epsilon))

        def spent() -> Fraction:
            (account,) = [one for one in services.ledger.accounts(dataset="wards") if one.principal == "anna"]
            return (account.spent.mu_squared or 0) * PICO

        first = ask("1")
        bought = spent()
        second = ask("2")
        assert second["accounting"]["sharpened"] is not None
        assert [one["norm"] for one in second["provenance"]["norms"]] == [
            one["norm"] for one in first["provenance"]["norms"]
        ]
        assert len(second["provenance"]["releases"]) == 1
        # A part of the first price was for the histogram, which no later one needs.
        assert bought / 2 < spent() - bought < bought * Fraction(101, 100)
        estimate = dict(services.journey.estimate(question(sql, "anna", dataset="wards", epsilon="4")))
        assert [part["for"] for part in estimate["price"]["parts"]] == ["sums"]
        assert errors(second)[0] < errors(first)[0]
        assert ask("2")["accounting"]["reused"]
        assert services.ledger.audit().findings == ()


def test_the_value_bounds_of_what_is_stored_are_kept(desk: Desk) -> None:
    """A stored histogram may choose other ends for less noise; sums that were clipped elsewhere are other numbers."""
    sql = "SELECT sex, AVG(income) AS i FROM people GROUP BY sex"
    first = desk.ask(sql, epsilon="2")
    bought = desk.spent()
    second = desk.ask(sql, epsilon="6")
    assert second["accounting"]["sharpened"] is not None
    ends = [
        [(one["lower"], one["upper"]) for one in answer["provenance"]["value_bounds"]] for answer in (first, second)
    ]
    assert ends[0] == ends[1]
    # Of the first 2, half of 1 was for the histogram: the sums lack 6 - 1.5.
    assert desk.spent() == pytest.approx(bought * Fraction(65, 20), rel=1e-3)
    assert errors(second)[0] < errors(first)[0]
    assert desk.ask(sql, epsilon="6")["accounting"]["reused"]
