"""The journey: answers, prices, reuse, failures that stay charged, and one opaque outcome."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from accountant.account import FilterKind
from accountant.errors import BudgetExhausted, IdempotencyConflict, LedgerUnavailable
from privacy.refusal import ExecutionFailed, Refused
from server import answer_rows
from server.journey.moments import Moments
from server.journey.pace import VisibleRun
from server.services import Services
from tests.journey.clinic import PEOPLE, answer_to, question, stored

Analyst = Callable[..., str]


def ask(services: Services, sql: str, principal: str, **options: Any) -> dict[str, Any]:
    """The answer of a question, as JSON."""
    return answer_to(services, question(sql, principal, **options))


def remaining(services: Services, principal: str) -> Fraction:
    """Nominal epsilon that an analyst's account has left."""
    (account,) = services.ledger.accounts(dataset="clinic", principal=principal)
    return account.remaining_epsilon()


def test_an_answer_has_values_errors_and_its_price(services: Services, analyst: Analyst) -> None:
    """Shows a whole answer: values near the truth, error bars of the same shape, price, mechanisms, versions."""
    answer = ask(
        services, "SELECT sex, COUNT(*) AS n, AVG(age) AS age FROM people GROUP BY sex", analyst(), epsilon="10"
    )
    assert [column["kind"] for column in answer["columns"]] == ["key", "released", "released"]
    assert [row[0] for row in answer["rows"]] == ["female", "male", None]
    assert abs(sum(row[1] for row in answer["rows"]) - PEOPLE) < 60
    for name in ("standard_errors", "lows", "highs"):
        assert [len(row) for row in answer[name]] == [3, 3, 3]
    assert answer["standard_errors"][0][0] is None
    assert answer["lows"][0][1] <= answer["rows"][0][1] <= answer["highs"][0][1]
    assert answer["accounting"]["charged"][0]["epsilon"] == "10"
    assert answer["provenance"]["mechanisms"][0]["argument"] == "age clipped to [0, 100]"


def test_estimate_and_answer_carry_the_same_warnings(services: Services, analyst: Analyst) -> None:
    """Shows that a warning is in the estimate, in the answer and in its repeat, and absent where there is no cause."""
    who = analyst()
    sql = "SELECT COUNT(*) AS n FROM people WHERE sex = 'mal'"
    expected = services.journey.estimate(question(sql, who))["warnings"]
    assert [warning["code"] for warning in expected] == ["literal_outside_declaration"]
    assert expected[0]["position"] == {"line": 1, "column": 40, "text": "sex = 'mal'"}
    assert set(expected[0]) == {"code", "what", "why", "instead", "position"}
    assert ask(services, sql, who)["warnings"] == expected
    assert ask(services, sql, who)["warnings"] == expected
    assert ask(services, "SELECT COUNT(*) AS n FROM people WHERE sex = 'male'", who)["warnings"] == []


def test_an_equal_question_is_free_and_has_the_same_noise(services: Services, analyst: Analyst) -> None:
    """Shows that another spelling with another shell reuses the release: forty who look at one table buy it once."""
    who = analyst()
    first = ask(services, "SELECT town, COUNT(*) n FROM people WHERE age > 30 GROUP BY town ORDER BY n", who)
    before = remaining(services, who)
    second = ask(services, "select p.TOWN, count(1) as c from PEOPLE p where 30 < p.age group by 1", who)
    assert second["accounting"]["reused"]
    assert second["accounting"]["charged"] == []
    assert dict(map(tuple, first["rows"])) == dict(map(tuple, second["rows"]))
    assert remaining(services, who) == before


def test_a_better_answer_is_charged(services: Services, analyst: Analyst) -> None:
    """Shows that a stored release does not serve a question that pays for less noise."""
    who = analyst()
    ask(services, "SELECT COUNT(*) FROM people", who, epsilon="0.5")
    assert not ask(services, "SELECT COUNT(*) FROM people", who, epsilon="1")["accounting"]["reused"]
    assert ask(services, "SELECT COUNT(*) FROM people", who, epsilon="0.7")["accounting"]["reused"]


def test_releases_of_others_are_not_reused_unless_shared(services: Services, analyst: Analyst) -> None:
    """Shows that one analyst does not learn what another one asked, not even through a price."""
    ask(services, "SELECT COUNT(*) FROM people WHERE age = 44", analyst())
    answer = ask(services, "SELECT COUNT(*) FROM people WHERE age = 44", analyst(), reuse="any")
    assert not answer["accounting"]["reused"]


def test_the_estimate_is_the_price(services: Services, analyst: Analyst) -> None:
    """Shows that an estimate spends nothing and that the query then costs what it said."""
    who = analyst()
    sql = "SELECT ward, SUM(cost), COUNT(*) FROM visits GROUP BY ward"
    before = remaining(services, who)
    estimate = services.journey.estimate(question(sql, who))
    assert remaining(services, who) == before
    answer = ask(services, sql, who)
    assert answer["accounting"]["charged"][0]["epsilon"] == estimate["price"]["epsilon"]
    assert answer["accounting"]["charged"][0]["delta"] == estimate["price"]["delta"] == "0.00000001"
    assert estimate["verdict"] == "affordable"
    assert services.journey.estimate(question(sql, who))["verdict"] == "free"


def test_an_estimate_tells_the_errors_of_averages_by_rows(services: Services, analyst: Analyst) -> None:
    """Shows that no error is unknown in advance: counts have theirs, ratios one for each number of rows."""
    sql = "SELECT sex, COUNT(*) AS n, AVG(age) AS mean, STDDEV(age) AS spread FROM people GROUP BY sex ORDER BY n"
    estimate = services.journey.estimate(question(sql, analyst()))
    key, count, mean, spread = estimate["columns"]
    assert key["by_rows"] == count["by_rows"] == []
    assert count["standard_error"] > 0
    assert count["half_width"] > count["standard_error"]
    for column in (mean, spread):
        assert column["standard_error"] is None
        assert [100, 1_000, 10_000] == [size["rows"] for size in column["by_rows"]]
        for size in column["by_rows"]:
            assert 0 < size["standard_error"] <= size["standard_error_at_most"]
            assert size["half_width"] > size["standard_error"]
    for point in estimate["curve"]:
        named = {name for name, error in point["standard_errors"].items() if error is None}
        assert named == set(point["by_rows"]) == {"AVG(age)", "STDDEV(age)"}


def test_what_cannot_be_afforded_has_its_own_price(services: Services, analyst: Analyst) -> None:
    """Shows that the price of too much is not the little that is left, in the verdict and on the curve."""
    for kind in (FilterKind.APPROXIMATE, FilterKind.PURE):
        who = analyst(epsilon="1", kind=kind)
        ask(services, "SELECT COUNT(*) FROM people", who, epsilon="0.75", reuse="none")
        estimate = services.journey.estimate(question("SELECT COUNT(*) FROM visits", who, epsilon="0.5"))
        assert (estimate["verdict"], estimate["price"]["epsilon"]) == ("rejected_budget", "0.5")
        assert estimate["remaining_after"]["epsilon"] == "0"
        assert [("0.125", True), ("0.25", True), ("0.5", False), ("1", False), ("2", False)] == [
            (point["epsilon"], point["affordable"]) for point in estimate["curve"]
        ]


def test_an_idempotency_key_charges_once(services: Services, analyst: Analyst) -> None:
    """Shows that a retry gets the same bytes, and another body under the same key a conflict."""
    who = analyst()
    asked = question("SELECT COUNT(*) FROM visits", who, idempotency_key="k1", reuse="none")
    first = services.journey.complete(services.journey.admit(asked))
    before = remaining(services, who)
    again = services.journey.admit(asked)
    assert stored(again) == first
    assert remaining(services, who) == before
    with pytest.raises(IdempotencyConflict):
        services.journey.admit(question("SELECT COUNT(*) FROM people", who, idempotency_key="k1"))


def test_an_empty_budget_refuses_before_anything_runs(services: Services, analyst: Analyst) -> None:
    """Shows the refusal of an exhausted account, and that nothing was spent."""
    who = analyst(epsilon="1", kind=FilterKind.PURE)
    ask(services, "SELECT COUNT(*) FROM people", who, epsilon="0.75")
    with pytest.raises(BudgetExhausted):
        services.journey.admit(question("SELECT COUNT(*) FROM visits", who, epsilon="0.5"))
    assert remaining(services, who) == Fraction(1, 4)
    ask(services, "SELECT COUNT(*) FROM visits", who, epsilon="0.25")
    assert remaining(services, who) == 0
    assert ask(services, "SELECT COUNT(*) FROM people", who, epsilon="0.1")["accounting"]["reused"]


def test_a_pure_account_gets_laplace_and_no_thresholds(services: Services, analyst: Analyst) -> None:
    """Shows that a pure account is never charged a delta: hidden keys are refused, public keys answered."""
    who = analyst(epsilon="10", kind=FilterKind.PURE)
    answer = ask(services, "SELECT sex, COUNT(*) FROM people GROUP BY sex", who)
    assert answer["provenance"]["noise"] == "laplace"
    assert answer["accounting"]["charged"] == [
        {"budget": answer["accounting"]["charged"][0]["budget"], "epsilon": "1", "delta": "0"}
    ]
    with pytest.raises(BudgetExhausted):
        services.journey.admit(question("SELECT town, COUNT(*) FROM people GROUP BY town", who))


def test_strangers_learn_nothing(services: Services) -> None:
    """Shows one refusal for a dataset that does not exist and for one without an account: names reveal nothing."""
    texts = set()
    for dataset in ("clinic", "nothing"):
        with pytest.raises(Refused) as caught:
            services.journey.admit(question("SELECT COUNT(*) FROM people", "stranger", dataset=dataset))
        finding = caught.value.findings[0]
        texts.add((finding.code, finding.why, finding.what.replace(dataset, "x")))
    assert len(texts) == 1


def test_a_failure_after_the_start_stays_charged(
    services: Services, analyst: Analyst, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shows one opaque outcome for every cause, charged, without cause or context: no oracle."""
    who = analyst()
    for number, error in enumerate([ExecutionFailed(), MemoryError("secret"), KeyError("secret"), SystemExit(3)]):
        before = remaining(services, who)

        def fail(*_: Any, error: BaseException = error, **__: Any) -> Any:
            raise error

        admitted = services.journey.admit(question(f"SELECT COUNT(*) FROM people WHERE age > {number}", who))
        with monkeypatch.context() as patch:
            patch.setattr(services.journey.running._private, "run", fail)
            with pytest.raises(ExecutionFailed) as caught:
                services.journey.complete(admitted)
        assert caught.value.__cause__ is None
        assert caught.value.__context__ is None
        assert "secret" not in repr(caught.value)
        assert remaining(services, who) < before
        record = services.ledger.query(admitted.query_id)
        assert record is not None
        assert record.state == "failed_charged"


def test_a_corrected_outer_part_costs_nothing(services: Services, analyst: Analyst) -> None:
    """Shows what the message of a failure says: the release below a part that failed serves the corrected question."""
    who = analyst()
    inner = "SELECT COUNT(*) AS n FROM people WHERE age > 54"
    admitted = services.journey.admit(question(f"SELECT CAST(n * 1000 AS TINYINT) AS n FROM ({inner}) AS t", who))
    with pytest.raises(ExecutionFailed) as failed:
        services.journey.complete(admitted)
    assert failed.value.started
    charged = remaining(services, who)
    corrected = services.journey.admit(question(f"SELECT CAST(n AS BIGINT) AS n FROM ({inner}) AS t", who))
    assert json.loads(services.journey.complete(corrected))["accounting"]["reused"]
    assert remaining(services, who) == charged


def test_an_engine_that_never_started_gives_the_charge_back(
    services: Services, analyst: Analyst, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shows the only void: no worker ever received the statement."""
    who = analyst()
    before = remaining(services, who)
    admitted = services.journey.admit(question("SELECT COUNT(*) FROM people WHERE age > 55", who))

    def unavailable(*_: Any, **__: Any) -> Any:
        raise ExecutionFailed(started=False)

    monkeypatch.setattr(services.journey.running._private, "run", unavailable)
    with pytest.raises(ExecutionFailed):
        services.journey.complete(admitted)
    assert remaining(services, who) == before


def test_a_cancelled_query_that_waits_is_void(services: Services, analyst: Analyst) -> None:
    """Shows that cancelling before the start gives the charge back, and that others cannot cancel it."""
    who, other = analyst(), analyst()
    before = remaining(services, who)
    admitted = services.journey.admit(question("SELECT COUNT(*) FROM people WHERE age > 56", who))
    assert services.journey.cancel(admitted.query_id, other) is None
    assert services.journey.cancel(admitted.query_id, who) == "failed_void"
    with pytest.raises(ExecutionFailed):
        services.journey.complete(admitted)
    assert remaining(services, who) == before


@pytest.mark.parametrize("step", ["cancel", "engine"])
def test_what_the_ledger_could_not_give_back_is_not_called_void(
    services: Services, analyst: Analyst, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """Shows that "nothing was charged" is said only when the ledger has it, not when it should have had it."""
    who = analyst()
    journey: Any = services.journey
    admitted = journey.admit(question("SELECT COUNT(*) FROM people WHERE age > 57", who))

    def unreachable(_: str) -> None:
        raise LedgerUnavailable("gone")

    def never_started(*_: object, **__: object) -> None:
        raise ExecutionFailed(started=False)

    monkeypatch.setattr(journey.admission._ledger, "void", unreachable)
    if step == "cancel":
        assert journey.cancel(admitted.query_id, who) == "reserved"
    else:
        monkeypatch.setattr(journey.running._private, "run", never_started)
    with pytest.raises(ExecutionFailed) as caught:
        journey.complete(admitted)
    assert caught.value.started
    assert remaining(services, who) < services.ledger.accounts(dataset="clinic", principal=who)[0].limit.epsilon


def test_answers_appear_at_chosen_moments(services: Services, analyst: Analyst) -> None:
    """Shows that the reply waits for the plan's first moment times 2^k, whatever the running time and the draw were."""
    slept: list[float] = []
    moments = Moments(first=0.02, tick=0.01)
    for part in (0.0, 0.999):
        for spent, expected in [(0.001, 0.02), (0.0099, 0.02), (0.0201, 0.04), (0.03, 0.04), (0.9, 1.28)]:
            now = 100.0 + spent
            visible = VisibleRun(moments, part, 100.0, clock=lambda now=now: now, sleep=slept.append)
            visible.wait()
            assert slept.pop() == pytest.approx(expected - spent)


def test_half_widths_are_kept(services: Services, analyst: Analyst) -> None:
    """Shows that an asked accuracy sets the price, and that the interval keeps it."""
    answer = ask(services, "SELECT COUNT(*) FROM people", analyst(), epsilon=None, half_width=Fraction(5), reuse="none")
    half = (answer["highs"][0][0] - answer["lows"][0][0]) / 2
    assert 3 <= half <= 5


def test_derived_cells_have_error_bars(services: Services, analyst: Analyst) -> None:
    """Shows that a ratio and a share computed in the shell carry intervals from the released numbers."""
    answer = ask(
        services,
        "WITH t AS (SELECT sex, COUNT(*) n, SUM(age) s FROM people GROUP BY sex) "
        "SELECT sex, s / n AS mean, n / SUM(n) OVER () AS share FROM t ORDER BY sex",
        analyst(),
    )
    for row, low, high, error in zip(
        answer["rows"], answer["lows"], answer["highs"], answer["standard_errors"], strict=True
    ):
        # Nobody has the key NULL: a quotient over its count, which is noise alone, is undefined.
        for column in (1, 2) if row[0] is not None else (2,):
            assert low[column] < row[column] < high[column]
            assert error[column] > 0
    assert {reason["code"] for reason in answer["interval_reasons"]} <= {"undefined"}


def test_aggregating_released_numbers_is_free(services: Services, analyst: Analyst) -> None:
    """Shows that totals of a stored release cost nothing and equal the sum of their parts."""
    who = analyst()
    parts = ask(services, "SELECT sex, COUNT(*) n FROM people GROUP BY sex", who)
    total = ask(services, "SELECT SUM(n) AS n FROM (SELECT sex, COUNT(*) n FROM people GROUP BY sex)", who)
    assert total["accounting"]["charged"] == []
    assert total["rows"][0][0] == sum(row[1] for row in parts["rows"])
    assert total["standard_errors"][0][0] > 0


def test_an_empty_where_gives_a_noisy_zero(services: Services, analyst: Analyst) -> None:
    """Shows that a scalar aggregate over nobody is a row with noise, not an empty answer."""
    answer = ask(services, "SELECT COUNT(*), SUM(age) FROM people WHERE age > 500", analyst())
    assert len(answer["rows"]) == 1
    assert abs(answer["rows"][0][0]) < 100


def test_a_query_without_rows_is_free(services: Services, analyst: Analyst) -> None:
    """Shows that a probe such as SELECT 1 is answered and costs nothing."""
    answer = ask(services, "SELECT 1 AS one", analyst())
    assert answer["rows"] == [[1]]
    assert answer["accounting"]["charged"] == []


def test_a_shell_that_does_not_bind_is_refused_before_the_charge(services: Services, analyst: Analyst) -> None:
    """Shows that a reason known before is a refusal, not a charged failure."""
    who = analyst()
    before = remaining(services, who)
    with pytest.raises(Refused):
        services.journey.admit(question("SELECT COUNT(*) + LOWER(5) FROM people WHERE age > 3", who))
    assert remaining(services, who) == before


def test_no_text_of_a_query_is_stored(services: Services, analyst: Analyst) -> None:
    """Shows that the ledger's description of a query has shapes, never literals."""
    admitted = services.journey.admit(question("SELECT COUNT(*) FROM people WHERE town = 'canary77'", analyst()))
    services.journey.complete(admitted)
    record = services.ledger.query(admitted.query_id)
    assert record is not None
    assert "canary77" not in json.dumps(record.description)
    assert record.description["cores"][0]["tables"] == ["people"]


def test_a_type_that_no_format_carries_is_refused_before_the_charge(
    services: Services, analyst: Analyst, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shows that such a column of the answer is refused, not charged and then lost."""
    monkeypatch.setattr(answer_rows, "_ANSWER_TYPES", answer_rows._ANSWER_TYPES - {"INTERVAL"})
    who = analyst()
    before = remaining(services, who)
    with pytest.raises(Refused) as caught:
        services.journey.admit(question("SELECT sex, INTERVAL 1 DAY AS i, COUNT(*) FROM people GROUP BY sex", who))
    assert caught.value.findings[0].code == "unsupported_type"
    assert remaining(services, who) == before


def test_the_charge_is_what_was_asked_whatever_came_before(services: Services, analyst: Analyst) -> None:
    """Shows over a mixed sequence that estimate, charge and asked spend agree, so no question locks an account in."""
    who = analyst(epsilon="10")
    asked = ["1", "0.1", "0.5", "0.1", "2", "0.01"]
    for number, epsilon in enumerate(asked):
        sql = f"SELECT sex, COUNT(*) n, AVG(age) a FROM people WHERE age > {20 + number} GROUP BY sex"
        estimate = services.journey.estimate(question(sql, who, epsilon=epsilon))
        answer = ask(services, sql, who, epsilon=epsilon)
        charged = answer["accounting"]["charged"][0]["epsilon"]
        assert estimate["price"]["epsilon"] == charged
        assert Fraction(charged) == Fraction(epsilon)
    left = Fraction(10) - sum(Fraction(epsilon) for epsilon in asked)
    assert abs(remaining(services, who) - left) < Fraction(1, 10**6)


def test_a_count_of_hidden_groups_says_why_it_has_no_interval(services: Services, analyst: Analyst) -> None:
    """`COUNT(*)` over groups above a threshold claimed to be exact; each such cell is null now, with the reason."""
    sql = "SELECT COUNT(*) AS groups, MAX(n) AS most FROM (SELECT {0}, COUNT(*) AS n FROM {1} GROUP BY {0})"
    public = ask(services, sql.format("sex", "people"), analyst(), epsilon="10")
    assert public["interval_reasons"] == []
    assert [column["interval"] for column in public["columns"]] == ["exact", "bounds"]
    assert public["lows"][0][0] == public["highs"][0][0] == public["rows"][0][0]
    hidden = ask(services, sql.format("ward", "visits"), analyst(), epsilon="10")
    assert {"gaussian_threshold", "truncated_geometric"} & {
        mechanism["mechanism"] for mechanism in hidden["provenance"]["mechanisms"]
    }
    assert [(reason["column"], reason["rows"], reason["code"]) for reason in hidden["interval_reasons"]] == [
        (0, None, "groups_not_shown"),
        (1, None, "groups_not_shown"),
    ]
    assert hidden["lows"] == hidden["highs"] == [[None, None]]
    assert all(reason["why"] for reason in hidden["interval_reasons"])


def test_a_union_of_two_private_counts_keeps_its_bars(services: Services, analyst: Analyst) -> None:
    """UNION ALL of two questions lost their intervals; each row has that of its own release, also from the store."""
    sql = "SELECT 'people' AS what, COUNT(*) AS n FROM people UNION ALL SELECT 'visits', COUNT(*) FROM visits"
    who = analyst()
    first = ask(services, sql, who)
    assert first["interval_reasons"] == []
    for answer in (first, ask(services, sql + " ORDER BY n", who)):
        for row, low, high in zip(answer["rows"], answer["lows"], answer["highs"], strict=True):
            assert low[1] <= row[1] <= high[1]
            assert high[1] > low[1]
            assert low[0] is high[0] is None
