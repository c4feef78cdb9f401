"""Registered statistics with real parts, over HTTP: checked when attached, charged first, answered or not, kept."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import httpx
import pytest

from accountant.filter import FilterKind
from accountant.states import QueryStatus
from mechanisms import gateway
from mechanisms.measurement import Integers
from mechanisms.randomness import BitSource
from mechanisms.tested_statistics import ProposedQuantiles, Tested
from privacy.refusal import ExecutionFailed
from server.routes.statistics import _asked
from server.services import DatasetRefused
from server.statistics.asking import Statistics, ToAsk
from server.statistics.terms import AskStatistic
from server.wire.statistic_requests import StatisticBody
from tests.journey.clinic import attach, clinic_in, open_account
from tests.journey.watched import Clinic, restarted

STATISTICS = """\
statistics:
  typical_age: {sql: "SELECT MEDIAN(age) FROM people", description: "Half are younger."}
  spread: {sql: "SELECT QUANTILE_CONT(cost, 0.75) - QUANTILE_CONT(cost, 0.25) FROM visits", rows_per_unit: 4}
  usual_sex: {sql: "SELECT MODE(sex) FROM people WHERE age >= 18"}
  board: {sql: "SELECT MEDIAN(salary) FROM people", analysts: false}
"""


def with_statistics(path: Path, text: str = STATISTICS) -> None:
    """Registers them in a dataset file."""
    kept = path.read_text().split("statistics:")[0]
    path.write_text(kept + text)


@pytest.fixture(scope="module")
def clinic(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clinic]:
    """A clinic whose owner registered four statistics."""
    home = tmp_path_factory.mktemp("statistics")
    with clinic_in(home) as (services, path):
        with_statistics(path)
        attach(services, path)
        yield Clinic(home, services, path)


def body(**options: Any) -> dict[str, Any]:
    """A question that is certain to be answered."""
    told = {"dataset": "clinic", "statistic": "typical_age", "width": "3", "spend": {"own_epsilon": "2"}, **options}
    return {"wait_ms": 30_000, **{name: value for name, value in told.items() if value is not None}}


def ask(clinic: Clinic, who: str, key: str = "", **options: Any) -> httpx.Response:
    """Asks one."""
    return clinic.call(who, "POST", "/v1/statistics", body(**options), **({"Idempotency-Key": key} if key else {}))


def request_of(who: str, **options: Any) -> AskStatistic:
    """The same, as the statistics read it."""

    class Caller:
        name, role = who, "analyst"

    raw = body(**options)
    return _asked(Caller(), StatisticBody.model_validate(raw), raw, key=None)  # type: ignore[arg-type]


def statistics_of(clinic: Clinic) -> Statistics:
    assert isinstance(clinic.services.statistics, Statistics)
    return clinic.services.statistics


def repeated(answer: Any) -> Any:
    """The same outcome when it is asked for again: it says that nothing was charged."""
    return {**answer, "accounting": {**answer["accounting"], "charged": [], "reused": True}}


def test_a_statistic_is_listed_priced_asked_and_read_again(clinic: Clinic) -> None:
    """Shows a whole life: the estimate's price is charged, the interval holds the truth, and a repeat is free."""
    who, account = clinic.somebody(epsilon="20")
    listed = clinic.call(who, "GET", "/v1/datasets/clinic/statistics").json()["statistics"]
    assert [one["name"] for one in listed] == ["typical_age", "spread", "usual_sex"]
    assert (listed[0]["kind"], listed[0]["step"], listed[0]["low"], listed[0]["high"]) == ("quantiles", 1, 0, 100)
    told = clinic.call(who, "POST", "/v1/statistics:estimate", body())
    assert told.status_code == 200, told.text
    estimate = told.json()
    assert (estimate["verdict"], estimate["width"]) == ("affordable", "3")
    assert estimate["price"]["own"] == {"epsilon": "2", "delta": "0.00000001"}
    # Half of epsilon releases: noise of three places, its rounding, and half a place of the median.
    assert estimate["standard_error"] == pytest.approx(3 * math.sqrt(2))
    assert estimate["half_width"] == pytest.approx(3 * math.log(20) + 1)
    assert estimate["test"]["passes_rarely_below"] < estimate["test"]["threshold"] < 25
    assert clinic.spent(account) == 0
    made = ask(clinic, who)
    assert made.status_code == 200, made.text
    answer = made.json()
    assert made.headers["content-location"] == f"/v1/queries/{answer['id']}"
    assert (answer["outcome"], answer["mechanism"]) == ("answered", "propose_test_release")
    assert abs(answer["value"] - 54) <= 30
    low, high = answer["interval"]
    assert low <= answer["value"] <= high
    (charged,) = answer["accounting"]["charged"]
    assert charged["epsilon"] == estimate["price"]["epsilon"]
    spent = clinic.spent(account)
    assert 0 < spent <= Fraction(charged["epsilon"])
    assert answer["accounting"]["reused"] is False
    assert ask(clinic, who).json() == repeated(answer)
    free = clinic.call(who, "POST", "/v1/statistics:estimate", body()).json()
    assert (free["verdict"], free["price"]["epsilon"], free["price"]["own"]) == ("free", "0", estimate["price"]["own"])
    assert clinic.spent(account) == spent
    assert clinic.call(who, "GET", answer["links"]["self"]).json() == answer
    csv = clinic.call(who, "GET", answer["links"]["self"], Accept="text/csv")
    assert csv.status_code == 406
    another = ask(clinic, who, key="anew").json()
    assert another["id"] != answer["id"]
    assert ask(clinic, who, key="anew").json() == another
    assert ask(clinic, who, key="anew", width="4").status_code == 409
    assert clinic.spent(account) > spent


def test_no_answer_is_an_answer_of_the_same_price(clinic: Clinic) -> None:
    """Shows the explicit outcome where two values are equally usual, and a mode where one is not."""
    who, account = clinic.somebody(epsilon="50")
    options = {"statistic": "usual_sex", "width": None, "spend": {"own_epsilon": "0.05"}}
    told = ask(clinic, who, **options).json()
    assert (told["outcome"], told["value"], told["interval"], told["half_width"]) == ("no_answer", None, None, None)
    refused = clinic.spent(account)
    assert refused > 0
    with_people = ask(clinic, who, statistic="spread", width="60", spend={"own_epsilon": "4"}).json()
    assert with_people["outcome"] == "answered"
    assert 0 <= with_people["interval"][0] <= with_people["interval"][1] <= 1000
    # Two thousand units hold the quartiles within sixty of each other's, and none within a place.
    assert ask(clinic, who, statistic="spread", width="0.02", spend={"own_epsilon": "0.05"}).json()["value"] is None


@pytest.mark.slow
def test_a_most_frequent_value_is_released_as_it_is(clinic: Clinic, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows the value of the place that the gateway gives."""
    who, _ = clinic.somebody(epsilon="50")
    monkeypatch.setattr(gateway, "test", lambda *_: 1)
    told = ask(clinic, who, statistic="usual_sex", width=None).json()
    assert (told["outcome"], told["value"], told["interval"]) == ("answered", "male", None)


REFUSED: list[tuple[str, int, dict[str, Any]]] = [
    ("unknown_statistic", 404, {"statistic": "absent"}),
    ("unknown_statistic", 404, {"statistic": "board"}),
    ("unknown_dataset", 404, {"dataset": "absent"}),
    ("accuracy_unreachable", 422, {"width": None}),
    ("accuracy_unreachable", 422, {"width": "0.5"}),
    ("accuracy_unreachable", 422, {"width": "100"}),
    ("accuracy_unreachable", 422, {"statistic": "usual_sex"}),
    ("policy_forbids", 403, {"spend": {"epsilon": "101"}}),
    ("policy_forbids", 403, {"spend": {"epsilon": "0.0000001"}}),
]


@pytest.mark.parametrize(("code", "status", "options"), REFUSED)
def test_what_is_not_asked_is_refused_before_it_is_charged(
    clinic: Clinic, code: str, status: int, options: dict[str, Any]
) -> None:
    """Shows a refusal by declarations, the same in an estimate, and an account that is as before."""
    who, account = clinic.somebody(epsilon="200")
    for path in ("/v1/statistics", "/v1/statistics:estimate"):
        told = clinic.call(who, "POST", path, body(**options))
        problem = told.json()
        assert (told.status_code, problem["code"], problem["charged"]) == (status, code, False), told.text
        assert problem["findings"][0]["instead"]
    assert clinic.spent(account) == 0


def test_an_account_without_delta_cannot_pay(clinic: Clinic) -> None:
    """Shows why: the test passes wrongly with a small probability. An exhausted account is refused as ever."""
    who, _ = clinic.somebody(epsilon="10", kind=FilterKind.PURE)
    told = clinic.call(who, "POST", "/v1/statistics:estimate", body()).json()
    assert told["code"] == "policy_forbids"
    assert "delta" in told["why"]
    poor, _ = clinic.somebody(epsilon="0.5")
    assert clinic.call(poor, "POST", "/v1/statistics:estimate", body()).json()["verdict"] == "rejected_budget"
    assert ask(clinic, poor).json()["code"] == "budget_exhausted"


def test_the_owner_asks_what_analysts_may_not(clinic: Clinic) -> None:
    """Shows the list of an owner, and an answer to one with an account."""
    clinic.person("boss", role="owner")
    open_account(clinic.services.ledger, "boss", epsilon="20")
    names = [one["name"] for one in clinic.call("boss", "GET", "/v1/datasets/clinic/statistics").json()["statistics"]]
    assert names == ["typical_age", "spread", "usual_sex", "board"]
    assert ask(clinic, "boss", statistic="board", width="2000").json()["outcome"] == "answered"


def test_the_charge_comes_before_the_first_row(clinic: Clinic, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows the reservation in place when the engine is asked, and one opaque outcome, charged, where that fails."""
    who, account = clinic.somebody(epsilon="20")
    statistics = statistics_of(clinic)
    asked = statistics.admit(request_of(who, width="5"))
    assert isinstance(asked, ToAsk)
    charged = clinic.spent(account)
    assert charged > 0

    def broken(*_: object) -> None:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(gateway, "test", broken)
        with pytest.raises(ExecutionFailed) as failed:
            statistics.complete(asked)
    assert failed.value.started
    record = clinic.services.ledger.query(asked.query_id)
    assert record is not None
    assert record.state is QueryStatus.FAILED_CHARGED
    assert clinic.spent(account) == charged
    # A failure is no answer that a repeat could read: the same question is asked anew, and pays.
    again = statistics.admit(request_of(who, width="5"))
    assert isinstance(again, ToAsk)
    # While it waits for its turn it is cancelled as the query that it is.
    cancelled = clinic.call(who, "POST", f"/v1/queries/{again.query_id}:cancel").json()
    assert cancelled == {"id": again.query_id, "status": "failed_void", "charged": False}
    assert clinic.spent(account) == charged
    with pytest.raises(ExecutionFailed):
        statistics.complete(again)
    # What is drawn after them is what a repeat reads.
    answered = ask(clinic, who, width="5").json()
    assert clinic.spent(account) > charged
    paid = clinic.spent(account)
    assert ask(clinic, who, width="5").json() == repeated(answered)
    assert clinic.spent(account) == paid


def test_what_the_gateway_gets_is_what_was_priced(clinic: Clinic, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows one call with all rows by place, the proposal of the request, and the event of the charge."""
    seen: list[tuple[Tested, Integers]] = []
    genuine = gateway.test

    def recorded(tested: Tested, counts: Integers, bits: BitSource) -> int | None:
        seen.append((tested, counts))
        return genuine(tested, counts, bits)

    monkeypatch.setattr(gateway, "test", recorded)
    who, _ = clinic.somebody(epsilon="20")
    answer = ask(clinic, who, width="7").json()
    ((tested, counts),) = seen
    assert isinstance(tested, ProposedQuantiles)
    assert (tested.width, tested.epsilon, tested.delta) == (7, 2, Fraction(1, 10**8))
    assert len(counts) == 101
    assert int(counts.sum()) == 3_000 * tested.change
    assert answer["accounting"]["own"]["epsilon"] == "2"


def test_answers_survive_a_restart(tmp_path: Path) -> None:
    """Shows the same bytes afterwards, and the file refused whose statistic has no distance."""
    with clinic_in(tmp_path) as (services, path):
        with_statistics(path)
        attach(services, path)
        own = Clinic(tmp_path, services, path)
        who, account = own.somebody(epsilon="20")
        answer = ask(own, who).json()
        spent = own.spent(account)
        with restarted(own):
            assert ask(own, who).json() == repeated(answer)
            assert own.spent(account) == spent
            with_statistics(path, STATISTICS + '  mean: {sql: "SELECT AVG(age) FROM people"}\n')
            with pytest.raises(DatasetRefused) as refused:
                attach(own.services, path)
            (finding,) = refused.value.findings
            assert finding.field == "statistics.mean.sql"
            assert "no proposal can be tested" in finding.why


def test_the_outcome_is_stored_as_it_was_sent(clinic: Clinic) -> None:
    """Shows that only the reader's own account is named, and that nothing of the counts is kept."""
    who, account = clinic.somebody(epsilon="20")
    asked = statistics_of(clinic).admit(replace(request_of(who, width="6"), confidence=Fraction(9, 10)))
    assert isinstance(asked, ToAsk)
    stored = json.loads(statistics_of(clinic).complete(asked))
    assert [part["budget"] for part in stored["accounting"]["charged"]] == [account]
    assert stored["confidence"] == "0.9"
    assert set(stored) == {
        *("id", "status", "dataset", "statistic", "outcome", "value", "interval", "kind", "width", "step", "low"),
        *("high", "standard_error", "half_width", "confidence", "test", "mechanism", "accounting", "policy_version"),
        *("data_version", "links"),
    }
