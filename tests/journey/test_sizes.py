"""Relative accuracy: met where a profile or a stored release says how large the numbers are, else refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import pytest

from accountant.account import FilterKind, Limit
from privacy.bounds import AskedContribution
from privacy.refusal import Refused
from server.administration.profiles import ProfileDataset
from server.services import Services
from tests.journey.clinic import answer_to, clinic_in, question
from tests.journey.fixtures import principals

BY_SEX = "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex"


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    """A clinic without a profile."""
    with clinic_in(tmp_path_factory.mktemp("plain")) as (services, _):
        yield services


@pytest.fixture(scope="module")
def profiled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    """A clinic with one."""
    with clinic_in(tmp_path_factory.mktemp("sized")) as (services, _):
        services.ledger.create_account(
            dataset="clinic", parent=None, principal=None, name="root",
            limit=Limit(Fraction(100_000), Fraction(1, 10**5)), filter=FilterKind.APPROXIMATE, actor="test",
        )  # fmt: skip
        services.profiles.make(ProfileDataset("clinic", Fraction(100)), actor="owner")
        yield services


def _analyst(services: Services) -> str:
    return principals(services, "sized")()


def _asked(sql: str, principal: str, relative: str, **options: Any) -> Any:
    return question(sql, principal, epsilon=None, relative=Fraction(relative), **options)


def _widths(answer: dict[str, Any], place: int) -> list[float]:
    return [(high[place] - low[place]) / 2 for low, high in zip(answer["lows"], answer["highs"], strict=True)]


def _charged(answer: dict[str, Any]) -> bool:
    return bool(answer["accounting"]["charged"])


def test_without_a_profile_and_a_release_it_is_refused(plain: Services) -> None:
    """With what to do, and before anything is charged."""
    principal = _analyst(plain)
    for relative in ("0.05", "1"):
        with pytest.raises(Refused) as caught:
            plain.journey.admit(_asked(BY_SEX, principal, relative))
        (finding,) = caught.value.findings
        assert finding.code == "accuracy_unreachable"
        assert "COUNT(*)" in finding.why
        assert any("dataset profile" in line for line in finding.instead)


AVERAGES = ("SELECT AVG(age) AS a FROM people", "SELECT sex, MEDIAN(age) AS a FROM people GROUP BY sex")


@pytest.mark.parametrize("sql", AVERAGES)
def test_what_has_no_known_width_is_refused_as_a_half_width_is(plain: Services, profiled: Services, sql: str) -> None:
    """Averages and quantiles alone, whether or not something says how many rows there are, and stored ones too."""
    for services in (plain, profiled):
        principal = _analyst(services)
        answer_to(services, question(sql, principal, epsilon="1"))
        found = []
        for asked in (_asked(sql, principal, "0.1"), question(sql, principal, epsilon=None, half_width=Fraction(1))):
            with pytest.raises(Refused) as caught:
                services.journey.admit(asked)
            found.append([(finding.code, finding.why) for finding in caught.value.findings])
        assert [code for code, _ in found[0]] == ["accuracy_unreachable"]
        assert found[0] == found[1]


@pytest.mark.parametrize("sql", [BY_SEX, "SELECT sex, SUM(salary) AS s FROM people GROUP BY sex"])
def test_a_stored_release_says_the_size(plain: Services, sql: str) -> None:
    """The first one names a spend; afterwards a part of its numbers can be asked for, also of a sum.

    Nobody is in the group of NULL. In one release of sixty its interval says otherwise, as intervals of 95% may: that
    group would be the least one, and no width is narrow beside it. Then another analyst asks; six in a row would be
    so once in 10^8 runs.
    """
    for _ in range(6):
        principal = _analyst(plain)
        first = answer_to(plain, question(sql, principal, epsilon="0.5", accept_noise=True))
        empty = next(place for place, row in enumerate(first["rows"]) if row[0] is None)
        if not first["lows"][empty][1] <= 0 <= first["highs"][empty][1]:
            continue
        answer = answer_to(plain, _asked(sql, principal, "0.02"))
        smallest = min(abs(row[1]) for row in first["rows"] if row[0] is not None)
        assert max(_widths(answer, 1)) <= 0.02 * smallest * 1.05
        if abs(answer["rows"][empty][1]) > max(_widths(answer, 1)):
            continue
        again = answer_to(plain, _asked(sql, principal, "0.02"))
        assert again["rows"] == answer["rows"]
        assert not _charged(again)
        return
    pytest.fail("the group of nobody has had six times a number that is surely not zero")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sql", "least"),
    [
        (BY_SEX, 1_400),
        ("SELECT COUNT(*) AS n FROM people", 2_900),
        ("SELECT COUNT(DISTINCT person_id) AS n FROM visits", 2_900),
    ],
)
def test_a_profile_says_the_size(profiled: Services, sql: str, least: int) -> None:
    """Then the first question already gets what it asks for, and its repeat is free."""
    principal = _analyst(profiled)
    answer = answer_to(profiled, _asked(sql, principal, "0.1"))
    assert 0 < max(_widths(answer, len(answer["columns"]) - 1)) <= 0.1 * least * 1.15
    assert _charged(answer)
    again = answer_to(profiled, _asked(sql, principal, "0.1"))
    assert again["rows"] == answer["rows"]
    assert not _charged(again)
    wider = answer_to(profiled, _asked(sql, principal, "0.3"))
    assert wider["rows"] == answer["rows"]
    finer = answer_to(profiled, _asked(sql, principal, "0.001"))
    assert _charged(finer)
    assert max(_widths(finer, len(answer["columns"]) - 1)) < max(_widths(answer, len(answer["columns"]) - 1))


@pytest.mark.slow
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT sex, COUNT(*) AS n FROM people WHERE age > 30 GROUP BY sex",
        "SELECT SUM(salary) AS s FROM people",
        "SELECT town, COUNT(*) AS n FROM people GROUP BY town",
        "SELECT sex, COUNT(*) FILTER (WHERE age > 30) AS n FROM people GROUP BY sex",
    ],
)
def test_what_the_profile_does_not_say_is_refused(profiled: Services, sql: str) -> None:
    """Rows of a condition, sums, and groups that are not public."""
    with pytest.raises(Refused) as caught:
        profiled.journey.admit(_asked(sql, _analyst(profiled), "0.1"))
    assert caught.value.findings[0].code == "accuracy_unreachable"


@pytest.mark.slow
def test_an_estimate_says_expected_sizes_and_relative_errors(
    profiled: Services, plain: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the profile, where there is one, and for the groups that it knows."""
    asked: Callable[..., Any] = lambda services, sql: services.journey.estimate(  # noqa: E731
        question(sql, _analyst(services), epsilon="0.5", accept_noise=True)
    )
    (found,) = asked(profiled, BY_SEX)["expected"]
    assert found["table"] == "people"
    assert (found["groups"], found["perhaps_empty"]) == (3, 1)
    assert 1_300 < found["rows"]["least"] <= found["rows"]["greatest"] < 1_700
    told = found["relative"]["COUNT(*)"]
    assert 0 < told["greatest"] <= told["median"] <= told["least"] < 1
    assert asked(plain, BY_SEX)["expected"] == []
    assert asked(profiled, "SELECT COUNT(*) AS n FROM people WHERE age > 5")["expected"] == []
    assert asked(profiled, "SELECT 1 AS one")["expected"] == []


@pytest.mark.slow
def test_an_open_norm_has_no_relative_error(profiled: Services) -> None:
    """Where the question chooses its norm the width follows from it: the sizes are said without it."""
    by_all = "SELECT COUNT(*) AS n FROM visits"
    chosen = question(by_all, _analyst(profiled), epsilon="0.5", contribution=AskedContribution(automatic=True))
    (found,) = profiled.journey.estimate(chosen)["expected"]
    assert found["rows"]["least"] > 6_000
    assert found["relative"] == {}
    who = _analyst(profiled)
    automatic = AskedContribution(automatic=True)
    answer_to(profiled, question(by_all, who, epsilon="0.5", contribution=automatic))
    again = question(by_all, who, epsilon="0.6", contribution=automatic)
    (known,) = profiled.journey.estimate(again)["expected"]
    assert 0 < known["relative"]["COUNT(*)"]["least"] < 1
    (counted,) = profiled.journey.estimate(question(by_all, _analyst(profiled), epsilon="0.5"))["expected"]
    assert counted["relative"]["COUNT(*)"]["least"] > 0


@pytest.mark.slow
def test_an_estimate_says_sizes_by_what_rows_refer_to(profiled: Services) -> None:
    """Shows the rows that are expected of groups by a column of the people, with what is assumed; and no promise."""
    by_sex = "SELECT p.sex, COUNT(*) AS n FROM visits v JOIN people p USING (person_id) GROUP BY 1"
    asked = question(by_sex, _analyst(profiled), epsilon="0.5", accept_noise=True)
    (found,) = profiled.journey.estimate(asked)["expected"]
    (whole,) = profiled.journey.estimate(
        question("SELECT COUNT(*) AS n FROM visits", _analyst(profiled), epsilon="0.5")
    )["expected"]
    assert whole["assumed"] is None
    assert found["assumed"] == "the people of each group have as many rows as others"
    both = found["rows"]["least"] + found["rows"]["greatest"]
    assert both == pytest.approx(whole["rows"]["least"], rel=0.05)
    # Rows that meet nobody by a condition are in another group, so that no sizes follow.
    beside = "FROM visits v LEFT JOIN people p ON p.person_id = v.person_id AND v.cost > 3"
    asked = question(f"SELECT p.sex, COUNT(*) AS n {beside} GROUP BY 1", _analyst(profiled), epsilon="0.5")
    assert profiled.journey.estimate(asked)["expected"] == []
    with pytest.raises(Refused):
        profiled.journey.admit(_asked(by_sex, _analyst(profiled), "0.1"))


OLDER = "SELECT sex, COUNT(*) AS n FROM people WHERE sex IS NOT NULL AND age > (SELECT AVG(age) FROM people) GROUP BY 1"
OF_TOWNS = (
    "SELECT COUNT(*) AS n FROM people WHERE age > 30 AND town IN (SELECT town FROM people GROUP BY 1 "
    "HAVING COUNT(*) > 100)"
)


@pytest.mark.parametrize("sql", [OLDER, OF_TOWNS])
def test_a_later_stage_has_the_size_that_it_had(plain: Services, sql: str) -> None:
    """A stored answer says how large the last numbers are; a tighter part costs more, and is what the answer has."""
    principal = _analyst(plain)
    with pytest.raises(Refused, match="the asked relative accuracy") as refused:
        plain.journey.admit(_asked(sql, principal, "0.05"))
    assert any("ask once with a spend" in line for line in refused.value.findings[0].instead)
    first = answer_to(plain, question(sql, principal, epsilon="0.05", accept_noise=True))
    size = min(row[-1] for row in first["rows"])
    relative = max(_widths(first, -1)) / size
    asked = _asked(sql, principal, str(round(relative * 1.2, 6)))
    free = answer_to(plain, asked)
    assert not _charged(free)
    assert free["rows"] == first["rows"]
    tighter = _asked(sql, principal, str(round(relative / 3, 6)))
    answer = answer_to(plain, tighter)
    assert _charged(answer)
    assert max(_widths(answer, -1)) <= float(tighter.relative) * size
    assert not _charged(answer_to(plain, tighter))


def test_a_profile_says_the_size_of_a_count_beside_a_later_one(profiled: Services) -> None:
    """A count of all rows, beside a count of those that an earlier number selects, is not enough for the latter."""
    sql = "SELECT COUNT(*) AS n, AVG(CASE WHEN age > (SELECT AVG(age) FROM people) THEN 1 ELSE 0 END) AS p FROM people"
    answer = answer_to(profiled, _asked(sql, _analyst(profiled), "0.02"))
    assert _widths(answer, 0)[0] <= 0.02 * 3_000
    with pytest.raises(Refused, match="the asked relative accuracy"):
        profiled.journey.admit(_asked(OF_TOWNS, _analyst(profiled), "0.02"))
