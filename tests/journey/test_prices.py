"""Prices over HTTP: floors, own figures, families and deltas, from the request to the ledger and back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import pytest

from accountant.account import FilterKind, Limit
from server.app import create_app
from server.services import Services
from tests.journey.clinic import clinic_in
from tests.server.fakes import Api

COUNT = "SELECT COUNT(*) AS n FROM people"
HIDDEN = "SELECT town, COUNT(*) AS n FROM people GROUP BY town"
SUM = "SELECT SUM(age) AS s FROM people"


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    """The clinic under a root as people have them: (20, 0.00001)."""
    with clinic_in(tmp_path_factory.mktemp("prices")) as (started, _):
        started.ledger.create_account(
            dataset="clinic", parent=None, principal=None, name="root",
            limit=Limit(Fraction(20), Fraction(1, 10**5)), filter=FilterKind.APPROXIMATE, actor="test",
        )  # fmt: skip
        yield started


@pytest.fixture
def analyst(services: Services, request: pytest.FixtureRequest) -> Iterator[Callable[..., Any]]:
    """Opens an account for a new principal and returns a caller: (path, body) to (status, JSON)."""
    closing: list[Callable[[], None]] = []
    root = next(a for a in services.ledger.accounts(dataset="clinic") if a.parent is None)

    def make(epsilon: str = "5", delta: str = "0.000001") -> Callable[..., tuple[int, dict[str, Any]]]:
        name = f"a{abs(hash((request.node.name, len(closing)))) % 10**12}"
        kind = FilterKind.APPROXIMATE if Fraction(delta) else FilterKind.PURE
        services.ledger.create_account(
            dataset="clinic", parent=root.id, principal=name, name=name,
            limit=Limit(Fraction(epsilon), Fraction(delta)), filter=kind, actor="test",
        )  # fmt: skip
        services.registry.create_principal(name, role="analyst", actor="test")
        key = services.registry.create_key(name, label="", days=1, actor="test").text
        runner = asyncio.Runner()
        api = Api(create_app(services.settings, services=services), runner, {"analyst": key})
        closing.extend([api.close, runner.close])

        def call(path: str, sql: str, **body: Any) -> tuple[int, dict[str, Any]]:
            answer = api.post(path, json={"dataset": "clinic", "sql": sql, **body})
            return answer.status_code, answer.json()

        return call

    yield make
    for close in closing:
        close()


def test_a_fresh_run_cheaper_than_the_floor_is_refused_and_names_the_least(analyst: Callable[..., Any]) -> None:
    """1e-12 of an account bought a run; now the refusal names a spend that is accepted, and nothing was charged."""
    call = analyst()
    for spend in ({"epsilon": "0.000000000001"}, {"own_epsilon": "0.000000000001"}):
        status, refused = call("/v1/queries", COUNT, spend=spend, reuse="none")
        assert (status, refused["code"], refused["charged"]) == (403, "policy_forbids", False)
        assert call("/v1/estimates", COUNT, spend=spend, reuse="none")[0] == 403
        (way,) = spend
        named = refused["instead"][0].split('"')[5]
        status, answer = call("/v1/queries", COUNT, spend={way: named}, reuse="none")
        assert status == 200, answer
    status, estimate = call("/v1/estimates", COUNT)
    least = estimate["price"]["least"]["epsilon"]
    assert call("/v1/queries", COUNT, spend={"epsilon": least}, reuse="none")[0] == 200


def test_repeats_and_reuse_stay_free_below_the_floor(analyst: Callable[..., Any]) -> None:
    """Who has paid for a better answer gets it for nothing, however little the repeat offers."""
    call = analyst()
    assert call("/v1/queries", COUNT, spend={"epsilon": "0.5"})[0] == 200
    for _ in range(2):
        status, answer = call("/v1/queries", COUNT, spend={"epsilon": "0.000000001"})
        assert status == 200, answer
        assert answer["accounting"]["reused"]
        assert answer["accounting"]["charged"] == []
    assert call("/v1/estimates", COUNT, spend={"epsilon": "0.000000001"})[1]["verdict"] == "free"
    assert call("/v1/queries", COUNT, spend={"epsilon": "0.000000001"}, reuse="none")[0] == 403


def test_a_wide_half_width_is_raised_to_the_floor(analyst: Callable[..., Any]) -> None:
    """The estimate says so, and the answer is more exact than was asked for."""
    call = analyst()
    wish = {"accuracy": {"half_width": "100000000"}}
    status, estimate = call("/v1/estimates", COUNT, **wish)
    assert status == 200
    assert estimate["price"]["raised"]
    assert estimate["columns"][0]["half_width"] < 10**7
    status, answer = call("/v1/queries", COUNT, **wish)
    assert status == 200
    assert Fraction(answer["accounting"]["charged"][0]["epsilon"]) == Fraction(estimate["price"]["epsilon"])


def test_every_price_says_its_part_of_the_account_and_what_it_promises_by_itself(analyst: Callable[..., Any]) -> None:
    """Estimate and answer agree; a repeat takes nothing and still says what the value promises."""
    call = analyst()
    _, estimate = call("/v1/estimates", COUNT, spend={"epsilon": "0.5"})
    _, answer = call("/v1/queries", COUNT, spend={"epsilon": "0.5"})
    price, accounting = estimate["price"], answer["accounting"]
    assert (price["share"], price["of"]) == ("0.1", {"epsilon": "5", "delta": "0.000001"})
    assert (accounting["share"], accounting["of"], accounting["own"]) == (price["share"], price["of"], price["own"])
    assert accounting["own"]["delta"] == "0.000001"
    _, again = call("/v1/queries", COUNT, spend={"epsilon": "0.5"})
    assert again["accounting"]["reused"]
    assert (again["accounting"]["share"], again["accounting"]["own"]) == ("0", accounting["own"])


def test_own_figures_contain_stored_parts_and_thresholds(analyst: Callable[..., Any]) -> None:
    """An answer from a stored part and a fresh one promises more than the fresh one; a threshold's delta counts."""
    call = analyst("20", "0.00001")
    _, first = call("/v1/queries", COUNT, spend={"epsilon": "1"})
    both = "SELECT (SELECT COUNT(*) FROM people) AS n, (SELECT SUM(age) FROM people) AS s"
    _, answer = call("/v1/queries", both, spend={"epsilon": "1"})
    (charged,) = answer["accounting"]["charged"]
    own = Fraction(answer["accounting"]["own"]["epsilon"])
    assert not answer["accounting"]["reused"]
    assert own > Fraction(first["accounting"]["own"]["epsilon"])
    assert Fraction(charged["epsilon"]) <= 1
    _, hidden = call("/v1/queries", HIDDEN, spend={"epsilon": "1"})
    _, plain = call("/v1/queries", "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex", spend={"epsilon": "1"})
    assert Fraction(hidden["accounting"]["own"]["epsilon"]) > Fraction(plain["accounting"]["own"]["epsilon"])


def test_a_spend_in_own_epsilon_is_the_same_promise_on_every_account(analyst: Callable[..., Any]) -> None:
    """Two accounts, one own_epsilon: equal noise, different parts. A pure account: both ways are one number."""
    scales, shares = [], []
    for epsilon in ("1", "5"):
        _, answer = analyst(epsilon)("/v1/queries", COUNT, spend={"own_epsilon": "0.3"})
        assert Fraction(2999, 10_000) < Fraction(answer["accounting"]["own"]["epsilon"]) <= Fraction(3, 10)
        scales.append(answer["provenance"]["mechanisms"][0]["scale"])
        shares.append(answer["accounting"]["share"])
    assert scales[0] == scales[1]
    assert Fraction(shares[0]) > 5 * Fraction(shares[1])
    _, pure = analyst("5", "0")("/v1/queries", COUNT, spend={"own_epsilon": "0.3"})
    assert pure["accounting"]["charged"][0]["epsilon"] == "0.3"
    assert pure["accounting"]["own"] == {"epsilon": "0.3", "delta": "0"}


@pytest.mark.parametrize("spend", [{}, {"epsilon": "1", "own_epsilon": "1"}, {"own_epsilon": 1}, {"own": "1"}])
def test_a_spend_is_said_in_one_way(analyst: Callable[..., Any], spend: dict[str, Any]) -> None:
    """Neither none nor both; decimal text only."""
    status, problem = analyst()("/v1/estimates", COUNT, spend=spend)
    assert (status, problem["code"]) == (422, "invalid_request")


def test_a_question_that_names_its_noise_is_not_answered_with_another(analyst: Callable[..., Any]) -> None:
    """Gaussian, then laplace, then gaussian again: the second is charged, the third is the first one's."""
    call = analyst()
    answers = [
        call("/v1/queries", COUNT, spend={"epsilon": "0.25"}, noise=noise)[1]
        for noise in ("gaussian", "laplace", "gaussian")
    ]
    assert [answer["provenance"]["mechanisms"][0]["mechanism"] for answer in answers] == [
        "gaussian",
        "laplace",
        "gaussian",
    ]
    assert [answer["accounting"]["reused"] for answer in answers] == [False, False, True]
    assert answers[0]["rows"] == answers[2]["rows"]
    # Whoever names none is served by either.
    _, auto = call("/v1/queries", COUNT, spend={"epsilon": "0.25"})
    assert auto["accounting"]["reused"]


def test_a_question_with_more_delta_is_not_answered_with_fewer_groups(analyst: Callable[..., Any]) -> None:
    """A release of a smaller delta does not serve the policy's; one of the policy's serves a smaller one."""
    call = analyst()
    small = call("/v1/queries", HIDDEN, spend={"epsilon": "0.25"}, delta="0.0000000001")[1]
    usual = call("/v1/queries", HIDDEN, spend={"epsilon": "0.25"})[1]
    assert not usual["accounting"]["reused"]
    assert usual["accounting"]["charged"][0]["delta"] == "0.00000001"
    assert small["accounting"]["charged"][0]["delta"] == "0.0000000001"
    smaller = call("/v1/queries", HIDDEN, spend={"epsilon": "0.25"}, delta="0.000000001")[1]
    assert smaller["accounting"]["reused"]


def test_the_same_question_stays_free_when_its_noise_is_no_longer_admitted(analyst: Callable[..., Any]) -> None:
    """An account that is used up still gets what it bought, also where a fresh run would now take the other noise."""
    call = analyst("2")
    body = {"spend": {"epsilon": "0.25"}}
    assert call("/v1/queries", COUNT, **body)[1]["provenance"]["noise"] == "gaussian"
    for _ in range(30):
        if call("/v1/queries", SUM, spend={"epsilon": "1"}, noise="gaussian", reuse="none")[0] != 200:
            break
    # Another spelling of it, so that this is not the process's own memory of the answer.
    status, answer = call("/v1/queries", COUNT + " WHERE TRUE", **body)
    if status != 200 or not answer["accounting"]["reused"]:
        status, answer = call("/v1/queries", COUNT.lower(), **body)
    assert status == 200, answer
    assert answer["accounting"]["reused"]


def test_one_account_does_not_get_what_the_other_one_bought_for_less(
    services: Services, analyst: Callable[..., Any]
) -> None:
    """The same spend on a larger account of the same principal buys more: the smaller one's release does not serve."""
    call = analyst("1")
    (small,) = [a for a in services.ledger.accounts(dataset="clinic") if a.limit.epsilon == 1][-1:]
    principal = small.principal
    root = next(a for a in services.ledger.accounts(dataset="clinic") if a.parent is None)
    group = services.ledger.create_account(
        dataset="clinic", parent=root.id, principal=None, name=f"group {principal}",
        limit=Limit(Fraction(15), Fraction(1, 10**6)), filter=FilterKind.APPROXIMATE, actor="test",
    )  # fmt: skip
    large = services.ledger.create_account(
        dataset="clinic", parent=group.id, principal=principal, name="large",
        limit=Limit(Fraction(10), Fraction(1, 10**6)), filter=FilterKind.APPROXIMATE, actor="test",
    )  # fmt: skip
    body = {"spend": {"epsilon": "0.1"}}
    first = call("/v1/queries", COUNT, budget=small.id, **body)[1]
    second = call("/v1/queries", COUNT, budget=large.id, **body)[1]
    assert not second["accounting"]["reused"]
    assert second["standard_errors"][0][0] < first["standard_errors"][0][0]
    assert call("/v1/queries", COUNT, budget=small.id, **body)[1]["accounting"]["reused"]


def test_a_refusal_for_want_of_delta_names_the_delta_that_fits(analyst: Callable[..., Any]) -> None:
    """An account whose share of delta for groups is below the policy's: the advice is accepted."""
    call = analyst("5", "0.000000001")
    status, refused = call("/v1/queries", HIDDEN)
    assert (status, refused["code"]) == (403, "budget_exhausted")
    named = refused["instead"][0].split('"')[3]
    estimate = call("/v1/estimates", HIDDEN)[1]
    assert estimate["verdict"] == "rejected_budget"
    assert estimate["refusal"]["instead"][0] == refused["instead"][0]
    assert named == "0.00000000015"
    status, answer = call("/v1/queries", HIDDEN, delta=named)
    assert status == 200, answer
    status, refused = call("/v1/queries", HIDDEN, delta="0.0000001")
    assert (status, refused["code"]) == (403, "policy_forbids")


def test_estimates_show_both_families_and_what_they_leave(analyst: Callable[..., Any]) -> None:
    """Price, errors and later questions of either; a large Laplace answer leaves fewer Gaussian ones."""
    call = analyst("1")
    _, estimate = call("/v1/estimates", COUNT, spend={"epsilon": "0.1"})
    assert [(f["noise"], f["chosen"]) for f in estimate["families"]] == [("gaussian", True), ("laplace", False)]
    _, estimate = call("/v1/estimates", COUNT, spend={"epsilon": "0.5"})
    assert [(f["noise"], f["chosen"]) for f in estimate["families"]] == [("laplace", True), ("gaussian", False)]
    laplace, gaussian = estimate["families"]
    assert laplace["later"]["standard_error"] > gaussian["later"]["standard_error"]
    assert {f["later"]["like_this"] for f in estimate["families"]} == {1}
    assert laplace["columns"][0]["half_width"] < gaussian["columns"][0]["half_width"]
    assert laplace["questions_left_after"]["gaussian"] < gaussian["questions_left_after"]["gaussian"]
    assert laplace["questions_left_after"]["laplace"] > 0
    _, named = call("/v1/estimates", COUNT, spend={"epsilon": "0.5"}, noise="gaussian")
    assert [f["noise"] for f in named["families"]] == ["gaussian", "laplace"]
    # What the estimate says would be left is what is left.
    _, answer = call("/v1/queries", COUNT, spend={"epsilon": "0.5"}, noise="laplace")
    assert answer["accounting"]["remaining"] == named["remaining_after"] == laplace["remaining_after"]


@pytest.mark.parametrize("delta", ["0.000001", "0.00000001", "0"])
@pytest.mark.parametrize("noise", ["auto", "laplace", "gaussian"])
@pytest.mark.parametrize(
    "sql", [COUNT, SUM, HIDDEN, "SELECT ward, AVG(cost) AS c FROM visits GROUP BY ward", "SELECT 1"]
)
@pytest.mark.sparse(8)
def test_what_an_estimate_names_as_the_least_is_answered(
    analyst: Callable[..., Any], sql: str, noise: str, delta: str
) -> None:
    """Every question, noise and kind of account gets an estimate or a refusal; the least spend is affordable."""
    call = analyst("5", delta)
    status, estimate = call("/v1/estimates", sql, noise=noise)
    assert status == 200 or (status == 422 and estimate["code"] == "accuracy_unreachable"), estimate
    if status == 200 and estimate["price"]["least"] is not None:
        spend = {"epsilon": estimate["price"]["least"]["epsilon"]}
        status, least = call("/v1/estimates", sql, noise=estimate["noise"], spend=spend)
        assert status == 200, least
        assert least["verdict"] == estimate["verdict"]


def test_a_wider_half_width_over_http_is_not_charged_more(analyst: Callable[..., Any]) -> None:
    """The issue's pair, charged: on (1, 1e-6), 10 does not cost more than 8."""
    costs = []
    for width in ("8", "10"):
        _, answer = analyst("1")("/v1/queries", COUNT, accuracy={"half_width": width}, reuse="none")
        costs.append(Fraction(answer["accounting"]["charged"][0]["epsilon"]))
    assert costs[1] <= costs[0] < Fraction(36, 100)
