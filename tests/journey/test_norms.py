"""Questions that choose the norm of contributions: two releases, one reservation, and what is said of both."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from accountant.account import FilterKind
from mechanisms.calibrate import HISTOGRAM_SHARE
from mechanisms.families import NoiseFamily
from privacy.bounds import AskedContribution
from privacy.refusal import ExecutionFailed, Refused
from server.journey import norms, running
from server.services import Services
from tests.journey.clinic import attach, open_account, question, stored
from tests.journey.norm_clinic import HEAVY, PEOPLE, auto_clinic, write_auto_clinic

WARD = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"
ROWS = (PEOPLE - HEAVY) * 5 // 2 + HEAVY * 150

_NAMES = iter(range(10**6))
Analyst = Callable[..., str]


@pytest.fixture(scope="module")
def clinic(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    """Services with the clinic whose bounds are chosen."""
    with auto_clinic(tmp_path_factory.mktemp("norms")) as (services, _):
        yield services


def analyst(services: Services, **options: Any) -> str:
    """A new principal with an account."""
    name = f"norms{next(_NAMES)}"
    open_account(services.ledger, name, dataset="wards", **options)
    return name


def ask(services: Services, sql: str, who: str, **options: Any) -> dict[str, Any]:
    """The answer, as JSON."""
    admitted = services.journey.admit(question(sql, who, dataset="wards", **options))
    return dict(json.loads(stored(admitted) or services.journey.complete(admitted)))


def foreseen(services: Services, sql: str, who: str, **options: Any) -> dict[str, Any]:
    """The estimate."""
    return dict(services.journey.estimate(question(sql, who, dataset="wards", **options)))


def statements(services: Services, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The statements that the engine runs from now on."""
    seen: list[str] = []
    private: Any = services.journey.running._private  # type: ignore[attr-defined]
    run = private.run

    def noted(snapshot: object, statement: Any, **options: Any) -> Any:
        seen.append(statement.sql)
        return run(snapshot, statement, **options)

    monkeypatch.setattr(private, "run", noted)
    return seen


def charged_mu(services: Services, who: str) -> Fraction:
    """Mu squared that an account has spent, in picos."""
    (account,) = services.ledger.accounts(dataset="wards", principal=who)
    return Fraction(account.spent.mu_squared or 0)


def near(answer: dict[str, Any], place: int, truth: float, *, cut: float) -> bool:
    """Whether a column adds up to the truth, less a part that may be cut: within six of its standard errors."""
    error = math.hypot(*(errors[place] for errors in answer["standard_errors"]))
    return bool(abs(sum(row[place] for row in answer["rows"]) - truth) < cut * truth + 6 * error)


def test_nothing_is_declared_and_the_answer_is_right(clinic: Services) -> None:
    """Shows both releases of one question: near the truth, the norm with its source, what it cuts, one charge.

    Its noise is small beside one person with a thousand rows, so that the norm is that of the heavy ones, or larger
    where noise looks like such a person. At a thousand the noise of a group is 82, the least loss is below that, and
    what is cut of four groups is then at most 4.2% of their rows.
    """
    answer = ask(clinic, WARD, analyst(clinic), epsilon="100")
    assert [row[0] for row in answer["rows"]] == list("abcd")
    assert near(answer, 1, ROWS, cut=0.02)
    (norm,) = answer["provenance"]["norms"]
    assert (norm["source"], norm["power"], norm["of"], norm["columns"]) == ("chosen", "l2", "rows", ["COUNT(*)"])
    assert 50 < float(norm["norm"]) <= 1000  # the heavy ones have 150 rows over four wards: a norm of 75
    assert 0 <= norm["cut"]["share"] < 0.05
    assert norm["cut"]["error"] is not None
    assert "scaled down" in answer["provenance"]["cut"][0]
    assert len(answer["provenance"]["releases"]) == 2
    (charged,) = answer["accounting"]["charged"]
    assert charged["epsilon"] == "100"
    assert not answer["accounting"]["reused"]


def test_the_histogram_takes_its_share_and_no_more(clinic: Services) -> None:
    """Shows what was reserved: the whole price, a sixteenth of it for the histogram, in the currency of the noise."""
    who = analyst(clinic)
    asked = question(WARD, who, dataset="wards", epsilon="10")
    admitted: Any = clinic.journey.admit(asked)
    sums, histogram = admitted.asked.charges
    amounts = [one.events[0].loss().mu_squared for one in (sums, histogram)]
    assert all(len(one.events) == 1 for one in (sums, histogram))
    whole = admitted.asked.priced.price.amount
    assert abs(amounts[1] / whole - HISTOGRAM_SHARE) < Fraction(1, 10**6)
    assert whole * (1 - Fraction(1, 10**9)) <= sum(amounts) <= whole
    clinic.journey.complete(admitted)
    assert charged_mu(clinic, who) <= whole * 10**12 + 2


def test_equal_shapes_find_the_stored_histogram(clinic: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows that other aggregates of the same rows and groups pay for their sums alone, at the norm of the first."""
    who = analyst(clinic)
    first = ask(clinic, WARD, who, epsilon="10")
    spent = charged_mu(clinic, who)
    before = foreseen(clinic, WARD.replace("COUNT(*)", "AVG(cost)"), who, epsilon="10")
    seen = statements(clinic, monkeypatch)
    second = ask(clinic, WARD.replace("COUNT(*)", "AVG(cost)"), who, epsilon="10")
    assert len(seen) == 1
    (norm,) = second["provenance"]["norms"]
    assert norm["source"] == "stored"
    assert norm["norm"] == first["provenance"]["norms"][0]["norm"]
    assert norm["cut"] == first["provenance"]["norms"][0]["cut"]
    assert second["provenance"]["releases"][-1] in first["provenance"]["releases"] or set(
        second["provenance"]["releases"]
    ) & set(first["provenance"]["releases"])
    more = charged_mu(clinic, who) - spent
    assert abs(more / spent - (1 - HISTOGRAM_SHARE)) < Fraction(1, 10**4)
    assert before["contribution"][0]["norms"][0]["norm"] == norm["norm"]
    assert before["price"]["epsilon"] == second["accounting"]["charged"][0]["epsilon"]


def test_the_same_question_again_is_free(clinic: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows both ways to the same answer: a repeat, and the stored sums after this process forgot it."""
    who = analyst(clinic)
    first = ask(clinic, WARD, who, epsilon="10")
    seen = statements(clinic, monkeypatch)
    again = ask(clinic, WARD, who, epsilon="10")
    assert again["rows"] == first["rows"]
    assert again["provenance"] == first["provenance"]
    assert again["accounting"]["charged"] == []
    assert again["accounting"]["reused"]
    other = ask(clinic, f"{WARD} ORDER BY ward DESC", who, epsilon="5")
    assert sorted(other["rows"]) == sorted(first["rows"])
    assert other["accounting"]["charged"] == []
    assert other["provenance"]["norms"] == first["provenance"]["norms"]
    assert seen == []


def test_a_retry_sends_the_same_bytes(clinic: Services) -> None:
    """Shows that an idempotency key covers both releases."""
    who = analyst(clinic)
    asked = question(WARD, who, dataset="wards", epsilon="10", idempotency_key="one")
    first = clinic.journey.complete(clinic.journey.admit(asked))  # type: ignore[arg-type]
    spent = charged_mu(clinic, who)
    assert stored(clinic.journey.admit(asked)) == first
    assert charged_mu(clinic, who) == spent


def test_estimates_with_and_without_a_histogram(clinic: Services) -> None:
    """Shows what is said before: widths per unit of the norm, and with a stored histogram the widths themselves."""
    who = analyst(clinic)
    sql = "SELECT ward, COUNT(*) AS n, SUM(cost) AS c FROM visits GROUP BY ward"
    before = foreseen(clinic, sql, who, epsilon="10")
    assert [column["half_width"] for column in before["columns"]] == [None, None, None]
    assert before["columns"][1]["half_width_reason"]["code"] == "norm_not_chosen"
    costs, rows = sorted(before["contribution"][0]["norms"], key=lambda one: one["of"] == "rows")
    assert (rows["norm"], rows["source"], rows["cut"]) == (None, None, None)
    assert rows["standard_error_per_norm"] > 0
    assert costs["of"] == "sum"
    assert sum(float(one["share"]) for one in before["statistics"]) == pytest.approx(1, abs=1e-5)
    answer = ask(clinic, sql, who, epsilon="10")
    after = foreseen(clinic, sql, who, epsilon="10", reuse="none")
    assert after["columns"][1]["half_width_reason"]["code"] == "norm_not_chosen"
    fresh = foreseen(clinic, sql.replace("COUNT(*)", "COUNT(cost)"), who, epsilon="10")
    for place, column in enumerate(fresh["columns"][1:], 1):
        made = answer["standard_errors"][0][place]
        assert column["standard_error"] == pytest.approx(made, rel=0.02)
    assert {norm["source"] for norm in fresh["contribution"][0]["norms"]} == {"stored"}
    assert all(point["standard_errors"]["COUNT(cost)"] is not None for point in fresh["curve"])


def test_a_width_is_kept_at_a_stored_norm(clinic: Services) -> None:
    """Shows a width at the norm that a spend bought: one charge, for the sums alone."""
    who = analyst(clinic)
    options = {"epsilon": None, "half_width": Fraction(400)}
    ask(clinic, WARD, who, epsilon="1")
    answer = ask(clinic, WARD, who, **options)
    assert answer["highs"][0][1] - answer["lows"][0][1] <= 802  # whole numbers, rounded outwards
    assert answer["provenance"]["norms"][0]["source"] == "stored"
    assert len(answer["provenance"]["releases"]) == 1
    narrower = ask(clinic, WARD, who, epsilon=None, half_width=Fraction(100))
    assert narrower["highs"][0][1] - narrower["lows"][0][1] <= 202
    assert ask(clinic, WARD, who, **options)["accounting"]["charged"] == []
    named = AskedContribution(rows_per_unit=10, groups_per_unit=4, rows_per_unit_and_group=5)
    counted = ask(clinic, WARD, who, epsilon=None, half_width=Fraction(100), contribution=named)
    assert counted["provenance"]["norms"] == []
    assert counted["provenance"]["mechanisms"][0]["rows_per_unit"] == 10


def test_pure_accounts_choose_an_l1_norm(clinic: Services) -> None:
    """Shows Laplace noise on both releases, and the least norm that the account can use."""
    who = analyst(clinic, kind=FilterKind.PURE)
    answer = ask(clinic, WARD, who, epsilon="10")
    (norm,) = answer["provenance"]["norms"]
    assert norm["power"] == "l1"
    assert 100 < float(norm["norm"]) <= 1000  # no unit has more rows than are kept
    assert answer["provenance"]["noise"] == "laplace"
    assert answer["accounting"]["charged"][0]["epsilon"] == "10"
    named = ask(clinic, WARD, analyst(clinic), epsilon="10", noise=NoiseFamily.LAPLACE)
    assert named["provenance"]["norms"][0]["power"] == "l1"


def test_several_cores_joins_filters_and_units(clinic: Services) -> None:
    """Shows that each core has a histogram of its own, equal ones share it."""
    who = analyst(clinic)
    joined = ask(
        clinic,
        "SELECT p.sex, COUNT(*) AS n, COUNT(*) FILTER (WHERE v.cost > 100) AS m, COUNT(DISTINCT v.person_id) AS u "
        "FROM visits v JOIN people p ON v.person_id = p.person_id GROUP BY p.sex",
        who,
        epsilon="100",
    )
    assert near(joined, 1, ROWS, cut=0.05)
    assert near(joined, 3, PEOPLE, cut=0.02)
    assert len(joined["provenance"]["norms"]) == 2  # of all rows, and of those under the filter
    two = ask(
        clinic,
        f"SELECT a.ward, a.n, b.m FROM ({WARD}) a JOIN (SELECT ward, AVG(cost) AS m FROM visits GROUP BY ward) b "
        "ON a.ward = b.ward",
        who,
        epsilon="100",
    )
    assert len(two["rows"]) == 4
    assert len(two["provenance"]["releases"]) == 3


def test_hidden_groups_lose_none_of_a_unit(clinic: Services) -> None:
    """Shows weighted selection and chosen norms in one question, one charge with one delta, and a free second use."""
    who = analyst(clinic)
    text = "SELECT town, COUNT(*) AS n, COUNT(DISTINCT person_id) AS u FROM visits GROUP BY town"
    answer = ask(clinic, text, who, epsilon="100")
    assert [row[0] for row in answer["rows"]] == ["town0", "town1", "town2"]
    assert near(answer, 1, ROWS, cut=0.02)
    assert near(answer, 2, PEOPLE, cut=0.01)
    assert [norm["of"] for norm in answer["provenance"]["norms"]] == ["rows", "units"]
    shown = foreseen(clinic, text, who, epsilon="1")["contribution"][0]["shown_from"]
    assert [one["groups_per_unit"] for one in shown] == [1, 10, 100]
    assert shown[0]["units"] < shown[1]["units"] < shown[2]["units"]
    mechanisms = [one["mechanism"] for one in answer["provenance"]["mechanisms"]]
    assert mechanisms == ["weighted_threshold", "gaussian", "gaussian"]
    (charged,) = answer["accounting"]["charged"]
    assert charged["delta"] == "0.00000001"
    again = ask(clinic, text, who, epsilon="100")
    assert again["accounting"]["reused"]
    assert again["rows"] == answer["rows"]
    # Groups of two units, five standard deviations below the threshold.
    rare = ask(clinic, "SELECT person_id // 2 + 10000 AS k, COUNT(*) AS n FROM visits GROUP BY 1", who, epsilon="1")
    assert rare["rows"] == []


def test_hidden_groups_keep_to_counts_under_laplace_noise(clinic: Services) -> None:
    """Shows that a pure account is told what to ask instead, as where counts are declared."""
    with pytest.raises(Refused) as refused:
        ask(clinic, "SELECT town, COUNT(*) AS n FROM visits GROUP BY town", analyst(clinic), noise=NoiseFamily.LAPLACE)
    assert "groups_per_unit" in str(refused.value.findings[0].instead)


def test_a_request_may_ask_for_it(clinic: Services) -> None:
    """Shows that auto in a request is what the table has, and that the same release serves both."""
    who = analyst(clinic)
    first = ask(clinic, WARD, who, epsilon="10", contribution=AskedContribution(automatic=True))
    assert first["provenance"]["norms"][0]["source"] == "chosen"
    assert ask(clinic, WARD, who, epsilon="10")["rows"] == first["rows"]


def test_a_wrong_norm_stops_the_run(clinic: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows the check of the second stage: noise that would lose more than was reserved is never drawn."""
    who = analyst(clinic)
    right = norms.at_chosen_norms

    def planted(calibration: Any, core: Any) -> Any:
        """Noise from half the nominal norm: the chosen one may be the nominal one, and is never less."""
        made = right(calibration, core)
        cheap = tuple(
            replace(one, sigma=calibration.measurement(core.name, one.statistic.name).sigma / 2)
            for one in made.measurements
        )
        return replace(made, measurements=cheap)

    monkeypatch.setattr(norms, "at_chosen_norms", planted)
    with pytest.raises(ExecutionFailed):
        ask(clinic, WARD, who, epsilon="10")
    monkeypatch.undo()
    assert ask(clinic, WARD, who, epsilon="10")["rows"]


def test_a_failure_between_the_stages_keeps_the_charge(clinic: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows that the first statement ran, so nothing is given back and nothing half-made is stored."""
    who = analyst(clinic)
    private: Any = clinic.journey.running._private  # type: ignore[attr-defined]
    run, calls = private.run, []

    def second_fails(*arguments: Any, **options: Any) -> Any:
        calls.append(1)
        if len(calls) == 2:
            raise ExecutionFailed(started=False)
        return run(*arguments, **options)

    monkeypatch.setattr(private, "run", second_fails)
    with pytest.raises(ExecutionFailed) as failed:
        ask(clinic, WARD, who, epsilon="10")
    assert failed.value.started
    assert charged_mu(clinic, who) > 0
    monkeypatch.undo()
    assert foreseen(clinic, WARD, who, epsilon="10")["contribution"][0]["norms"][0]["norm"] is None
    assert ask(clinic, WARD, who, epsilon="10")["provenance"]["norms"][0]["source"] == "chosen"


def test_sums_at_the_time_limit_keep_their_histogram(clinic: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows that a second statement that reaches the limit is charged, and that the next question pays for less."""
    who = analyst(clinic)
    journey: Any = clinic.journey
    run, calls, late = journey.running._private.run, [], [0.0]

    def second_is_late(*arguments: Any, timeout_seconds: float, **options: Any) -> Any:
        calls.append(1)
        if len(calls) == 2:
            late[0] += timeout_seconds
            raise ExecutionFailed
        return run(*arguments, timeout_seconds=timeout_seconds, **options)

    pace = replace(journey.pace, clock=lambda: time.monotonic() + late[0], sleep=lambda _: None)
    monkeypatch.setattr(journey.running, "_pace", pace)
    monkeypatch.setattr(journey.running._private, "run", second_is_late)
    with pytest.raises(ExecutionFailed) as failed:
        ask(clinic, WARD, who, epsilon="10")
    monkeypatch.undo()
    assert failed.value.started
    spent = charged_mu(clinic, who)
    assert foreseen(clinic, WARD, who, epsilon="10")["contribution"][0]["norms"][0]["source"] == "stored"
    seen = statements(clinic, monkeypatch)
    answer = ask(clinic, WARD, who, epsilon="10")
    assert len(seen) == 1
    assert answer["provenance"]["norms"][0]["source"] == "stored"
    assert abs((charged_mu(clinic, who) - spent) / spent - (1 - HISTOGRAM_SHARE)) < Fraction(1, 10**4)
    assert not clinic.ledger.audit().findings


@pytest.mark.slow
def test_a_failure_of_the_first_statement_before_it_starts_is_given_back(
    clinic: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shows that nothing was read then, so nothing is charged."""
    who = analyst(clinic)
    private: Any = clinic.journey.running._private  # type: ignore[attr-defined]

    def fails(*_: Any, **__: Any) -> Any:
        raise ExecutionFailed(started=False)

    monkeypatch.setattr(private, "run", fails)
    with pytest.raises(ExecutionFailed) as failed:
        ask(clinic, WARD, who, epsilon="10")
    assert not failed.value.started
    assert charged_mu(clinic, who) == 0


def test_what_was_not_charged_is_not_released(clinic: Services) -> None:
    """Shows that sums without a charge for their histogram, and without a stored one, are not made."""
    who = analyst(clinic)
    admitted: Any = clinic.journey.admit(question(WARD, who, dataset="wards", epsilon="10"))
    short = replace(admitted, asked=replace(admitted.asked, charges=admitted.asked.charges[:1]))
    with pytest.raises(ExecutionFailed):
        clinic.journey.complete(short)


@pytest.mark.slow
@pytest.mark.parametrize(("shared", "free"), [("free", True), ("no", False)])
def test_a_histogram_is_shared_as_releases_are(tmp_path: Path, shared: str, free: bool) -> None:
    """Shows that another analyst's histogram chooses only where the policy lets it be read."""
    with auto_clinic(tmp_path, shared=shared) as (services, _):
        one, two = analyst(services), analyst(services)
        ask(services, WARD, one, epsilon="10")
        other = ask(services, WARD.replace("COUNT(*)", "AVG(cost)"), two, epsilon="10")
        assert (other["provenance"]["norms"][0]["source"] == "stored") == free


@pytest.mark.slow
def test_a_shared_histogram_is_charged_to_its_reader(tmp_path: Path) -> None:
    """Shows the policy `charged`: the histogram of another analyst costs the reader what it cost there."""
    with auto_clinic(tmp_path, shared="charged") as (services, _):
        one, two = analyst(services), analyst(services)
        ask(services, WARD, one, epsilon="10")
        ask(services, WARD.replace("COUNT(*)", "AVG(cost)"), two, epsilon="10")
        assert abs(charged_mu(services, two) / charged_mu(services, one) - 1) < Fraction(1, 10**6)
        ask(services, WARD.replace("COUNT(*)", "COUNT(cost)"), two, epsilon="10")
        assert abs(charged_mu(services, two) / charged_mu(services, one) - 2 + HISTOGRAM_SHARE) < Fraction(1, 10**6)


@pytest.mark.slow
def test_sums_at_anothers_norm_are_not_read_without_its_histogram(tmp_path: Path) -> None:
    """Forbids, under `charged`, to show a norm and a cut of a histogram that the reader's account never paid for.

    Who had a histogram of their own read the other's sums for the charge of these alone, and saw what chose them.
    """
    with auto_clinic(tmp_path, shared="charged") as (services, _):
        one, two = analyst(services), analyst(services)
        first = ask(services, WARD, one, epsilon="40")
        ask(services, WARD.replace("COUNT(*)", "AVG(cost)"), two, epsilon="20")
        spent = charged_mu(services, two)
        second = ask(services, WARD, two, epsilon="40")
        assert not set(second["provenance"]["releases"]) & set(first["provenance"]["releases"])
        assert second["provenance"]["norms"][0]["source"] == "stored"
        assert second["rows"] != first["rows"]
        assert charged_mu(services, two) > spent
        third = ask(services, WARD, one, epsilon=None, half_width=Fraction(300))
        spent = charged_mu(services, two)
        fourth = ask(services, WARD, two, epsilon=None, half_width=Fraction(300))
        assert not set(third["provenance"]["releases"]) & set(fourth["provenance"]["releases"])
        assert charged_mu(services, two) > spent


@pytest.mark.slow
def test_new_data_need_a_new_histogram_and_an_old_one_may_choose(tmp_path: Path) -> None:
    """Shows that a histogram of other data never says what is cut, and chooses only where a width is promised."""
    with auto_clinic(tmp_path) as (services, _):
        who = analyst(services)
        first = ask(services, WARD, who, epsilon="10")
        attach(services, write_auto_clinic(tmp_path / "sources", extra=5))
        assert foreseen(services, WARD, who, epsilon="10")["contribution"][0]["norms"][0]["norm"] is None
        width = ask(services, WARD, who, epsilon=None, half_width=Fraction(300))
        (norm,) = width["provenance"]["norms"]
        assert (norm["source"], norm["cut"]) == ("stored", None)
        assert width["provenance"]["data_version"] != first["provenance"]["data_version"]
        fresh = ask(services, WARD, who, epsilon="10")
        assert fresh["provenance"]["norms"][0]["source"] == "chosen"
        assert not set(fresh["provenance"]["releases"]) & set(first["provenance"]["releases"])


def test_the_floor_holds_for_sums_alone(clinic: Services) -> None:
    """Shows that a least spend buys sums that cover the floor without their histogram, which may be stored later."""
    from server.floor import Floor

    who = analyst(clinic)
    least = foreseen(clinic, WARD, who)["price"]["least"]["epsilon"]
    asked = question(WARD, who, dataset="wards", epsilon=least, accept_noise=True)
    admitted: Any = clinic.journey.admit(asked)
    sums = admitted.asked.charges[0]
    root = next(account for account in clinic.ledger.accounts(dataset="wards") if account.parent is None)
    floor = Floor.of(clinic.catalogue.get("wards"), root)  # type: ignore[arg-type]
    assert sums.events[0].loss().mu_squared * 10**12 >= floor.mu_squared
    clinic.journey.complete(admitted)


def test_the_norm_is_told_in_words(clinic: Services) -> None:
    """Shows the sentence and the warning of a cut that is not small."""
    answer = ask(clinic, "SELECT ward, SUM(cost) AS c FROM visits GROUP BY ward", analyst(clinic), epsilon="0.02")
    (norm,) = answer["provenance"]["norms"]
    (said,) = answer["provenance"]["cut"]
    assert "the noise alone" in said or "not known" in said
    codes = [warning["code"] for warning in answer["warnings"]]
    cut = norm["cut"]
    small = cut is not None and cut["share"] < 0.05 and cut["share"] + 2 * cut["error"] < 0.1
    assert ("contribution_cut" in codes) == (not small)


def test_running_needs_what_it_checks() -> None:
    """Shows that the check of the reserved loss is in the way of every chosen norm."""
    assert running.require_reserved is norms.require_reserved
