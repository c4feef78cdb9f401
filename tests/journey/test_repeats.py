"""A question that was answered before is settled in one transaction: no engine, no charge, the same numbers."""

from __future__ import annotations

import datetime
import json
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from accountant import reads
from accountant.account import FilterKind
from accountant.writer import Writer
from mechanisms.families import NoiseFamily
from server.journey.repeats import AnswerParts, Repeats
from server.services import Services
from sql_rewrite.lift_clock import started
from tests.journey.clinic import question, stored

Analyst = Callable[..., str]

SHELL = "SELECT town, COUNT(*) * 2.0 AS n FROM people GROUP BY town ORDER BY n DESC LIMIT 3"
"""Its errors are simulated, so making it anew would give other intervals."""

COMPARED = ("columns", "rows", "standard_errors", "lows", "highs", "confidence", "provenance")


def asked(services: Services, sql: str, principal: str, **options: Any) -> tuple[dict[str, Any], bool]:
    """The answer, and whether `admit` had it."""
    admitted = services.journey.admit(question(sql, principal, **options))
    content = stored(admitted)
    return dict(json.loads(content or services.journey.complete(admitted))), content is not None


def test_a_repeat_is_the_same_answer_for_nothing(
    services: Services, analyst: Analyst, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shows that numbers and intervals are the same, the identifier is new, and no engine is asked."""
    who = analyst()
    first, settled = asked(services, SHELL, who)
    assert not settled
    journey: Any = services.journey

    def touched(*_: object, **__: object) -> None:
        raise AssertionError("an engine was called")

    monkeypatch.setattr(journey.running._private, "run", touched)
    monkeypatch.setattr(journey.running._shell, "run", touched)
    before = services.ledger.accounts(dataset="clinic", principal=who)
    second, settled = asked(services, SHELL, who)
    assert settled
    assert {name: second[name] for name in COMPARED} == {name: first[name] for name in COMPARED}
    assert second["accounting"]["reused"]
    assert second["accounting"]["charged"] == []
    assert second["accounting"]["saved"]["epsilon"] == "1"
    assert second["id"] != first["id"]
    assert services.ledger.accounts(dataset="clinic", principal=who) == before
    record = services.ledger.query(second["id"])
    assert record is not None
    assert record.state == "settled"
    assert json.loads(record.answer or b"") == second


def test_how_often_a_question_goes_to_the_ledger(
    services: Services, analyst: Analyst, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shows the round trips that bound how fast a question can be: reads beside the transactions, and transactions."""
    who = analyst()
    went: Counter[str] = Counter()

    def counted(owner: Any, name: str, label: str) -> None:
        real = getattr(owner, name)

        def call(*arguments: Any, **options: Any) -> Any:
            went[label] += 1
            return real(*arguments, **options)

        monkeypatch.setattr(owner, name, call)

    counted(reads, "read", "reads")
    counted(reads.Reads, "_read", "other reads")
    counted(Writer, "submit", "transactions")
    sql = "SELECT COUNT(*) FROM people WHERE age > 33"
    asked(services, sql, who)
    # The accounts before, what could be made more precise, stored releases of the same rows and groups, those of finer
    # groups, and what remains after the charge.
    assert went == {"reads": 5, "transactions": 2}
    for told, reads_of_it in (("stored", 1), ("told again", 3)):
        went.clear()
        _, settled = asked(services, sql, who)
        assert settled
        # Told again it is read back: its own part, and the table that it shares with the first answer.
        assert went == {"reads": reads_of_it, "transactions": 1}, told


@pytest.mark.parametrize(
    "change", [{"epsilon": "2"}, {"reuse": "none"}, {"max_staleness_s": 0}, {"confidence": Fraction(1, 2)}]
)
def test_another_question_goes_the_whole_way(services: Services, analyst: Analyst, change: dict[str, Any]) -> None:
    """Shows that less noise, fresh noise, fresher numbers and other intervals are not what was told before."""
    who = analyst()
    sql = "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex"
    first, _ = asked(services, sql, who)
    second, settled = asked(services, sql, who, **change)
    assert not settled
    assert second["accounting"]["reused"] == ("confidence" in change)
    assert (second["provenance"]["releases"] == first["provenance"]["releases"]) == ("confidence" in change)


def test_the_newest_of_the_best_releases_is_told(services: Services, analyst: Analyst) -> None:
    """Shows that after a fresh answer of the same quality a repeat tells that one, and settles at once."""
    who = analyst()
    sql = "SELECT COUNT(*) FROM visits"
    for _ in range(3):
        fresh, settled = asked(services, sql, who, reuse="none")
        assert not settled
        repeated, settled = asked(services, sql, who)
        assert settled
        assert repeated["rows"] == fresh["rows"]
        assert repeated["provenance"]["releases"] == fresh["provenance"]["releases"]


def test_a_better_release_from_elsewhere_is_told_instead(services: Services, analyst: Analyst) -> None:
    """Shows that an answer kept here gives way to a better release that this kept answer does not know."""
    who = analyst()
    sql = "SELECT COUNT(*) FROM people WHERE age > 50"
    asked(services, sql, who)
    better, _ = asked(services, "SELECT COUNT(*) AS n FROM people WHERE age > 50", who, epsilon="3")
    second, settled = asked(services, sql, who)
    assert not settled
    assert second["rows"] == better["rows"]
    third, settled = asked(services, sql, who)
    assert settled
    assert third["rows"] == better["rows"]


def test_others_get_their_own(services: Services, analyst: Analyst) -> None:
    """Shows that what one analyst was told is not told to another."""
    sql = "SELECT COUNT(*) FROM people WHERE age = 51"
    first, _ = asked(services, sql, analyst())
    second, settled = asked(services, sql, analyst())
    assert not settled
    assert not second["accounting"]["reused"]
    assert second["provenance"]["releases"] != first["provenance"]["releases"]


def told(rows: int) -> AnswerParts:
    """An answer of so many rows of one column."""
    return AnswerParts(table=b"", provenance=b"", cells=rows, releases={}, priced=None)


def test_what_is_kept_is_bounded() -> None:
    """Shows that cells and answers are bounded, the least recently asked going first, and large ones never kept."""
    repeats = Repeats(cells_max=100, answers_max=6)
    for name in "abcd":
        repeats.keep(name, told(25))
    assert repeats.get("a") is not None
    repeats.keep("e", told(25))
    assert [name for name in "abcde" if repeats.get(name) is not None] == ["a", "c", "d", "e"]
    repeats.keep("large", told(26))
    assert repeats.get("large") is None
    repeats.keep("a", told(1))
    for name in "fgh":
        repeats.keep(name, told(1))
    assert [name for name in "acdefgh" if repeats.get(name) is not None] == ["a", "d", "e", "f", "g", "h"]


@pytest.mark.parametrize("kind", [FilterKind.PURE, FilterKind.APPROXIMATE])
def test_stored_numbers_at_another_confidence(services: Services, analyst: Analyst, kind: FilterKind) -> None:
    """Shows intervals of a reused release: at any confidence, counts and ratios have those of a fresh answer.

    Version 0.1.0 kept them at a lower confidence, and knew none of a ratio at a higher one.
    """
    who = analyst(kind=kind)
    sql = "SELECT sex, COUNT(*) AS n, AVG(age) AS age FROM people GROUP BY sex"
    first, _ = asked(services, sql, who)
    levels = ((Fraction(1, 2), 1), (Fraction(999, 1000), -1))
    reused = [asked(services, sql, who, confidence=confidence)[0] for confidence, _ in levels]
    for again, (confidence, factor) in zip(reused, levels, strict=True):
        fresh, _ = asked(services, sql, who, confidence=confidence, reuse="none")
        assert again["rows"] == first["rows"]
        for row in range(2):
            widths = [
                [answer["highs"][row][column] - answer["lows"][row][column] for column in (1, 2)]
                for answer in (again, fresh, first)
            ]
            assert widths[0][0] == pytest.approx(widths[1][0], abs=1.01)
            assert widths[0][1] == pytest.approx(widths[1][1], rel=0.05)
            assert factor * widths[0][0] <= factor * widths[2][0]
            assert factor * widths[0][1] < factor * widths[2][1]
            assert again["lows"][row][0] is None


def test_an_estimate_is_no_price_for_what_is_repeated_for_nothing(services: Services, analyst: Analyst) -> None:
    """After a Laplace answer a Gaussian spend buys less the first time than later: asked again it is free anyway."""
    who = analyst(epsilon="10")
    asked(services, "SELECT COUNT(*) AS n FROM people", who, epsilon="0.5", noise=NoiseFamily.LAPLACE)
    wish: dict[str, Any] = {"epsilon": "1", "noise": NoiseFamily.GAUSSIAN}
    sql = "SELECT COUNT(*) AS older FROM people WHERE age > 50"
    first, _ = asked(services, sql, who, **wish)
    assert first["accounting"]["charged"]
    told = services.journey.estimate(question(sql, who, **wish))
    assert told["verdict"] == "free"
    again, settled = asked(services, sql, who, **wish)
    assert settled
    assert again["accounting"]["charged"] == []
    # Where nothing stored may serve it has its price.
    told = services.journey.estimate(question(sql, who, reuse="none", **wish))
    assert told["verdict"] == "affordable"


def test_an_answer_of_yesterday_is_not_one_of_today(services: Services, analyst: Analyst) -> None:
    """Shows that a text which reads the clock is one question all day, and charged anew on the next."""
    who = analyst()
    sql = "SELECT COUNT(*) AS n FROM people WHERE age < date_diff('year', DATE '1960-05-01', CURRENT_DATE - 3)"
    evening = datetime.datetime(2026, 2, 28, 20, tzinfo=datetime.UTC)
    told = []
    for hours in (0, 3, 4, 28):
        moment = started(sql, evening + datetime.timedelta(hours=hours))
        answer, settled = asked(services, sql, who, started=moment)
        told.append((settled, answer["accounting"]["reused"]))
    assert told == [(False, False), (True, True), (False, False), (False, False)]
