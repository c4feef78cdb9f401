"""Questions of several stages over the whole way: their numbers, their price, their identity, and their failures."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pytest

from accountant.request import Reuse
from privacy.refusal import ExecutionFailed, Refused
from server.answer_rows import from_stored
from server.errors import SumsRefused
from server.journey.pace import VisibleRun
from server.services import Services
from sql_rewrite import stage_hidden
from tests.journey.clinic import answer_to, attach, open_account, question, services_of, write_files
from tests.journey.norm_clinic import write_auto_clinic
from tests.mechanisms.support import recorded

ABOVE = "SELECT COUNT(*) AS n FROM visits WHERE cost > (SELECT AVG(cost) FROM visits)"
MANY = (
    "SELECT sex, COUNT(*) AS n FROM people WHERE age < (SELECT COUNT(*) / 10 FROM people WHERE income > 9) GROUP BY 1"
)
QUESTIONS = (
    ABOVE,
    "SELECT sex, COUNT(*) AS n, AVG(salary) AS s FROM people "
    "WHERE age > (SELECT AVG(age) + STDDEV(age) / 2 FROM people) GROUP BY sex ORDER BY sex",
    "SELECT COUNT(*) AS n FROM people WHERE age > (SELECT AVG(age) FROM people WHERE salary > "
    "(SELECT AVG(salary) FROM people))",
    "WITH m AS (SELECT AVG(age) AS a, COUNT(*) AS n FROM people) "
    "SELECT SUM(ABS(age - (SELECT a FROM m))) AS d, COUNT(*) FILTER (WHERE person_id < (SELECT n / 2 FROM m)) AS h "
    "FROM people",
    "SELECT age > (SELECT MEDIAN(age) FROM people) AS older, COUNT(*) AS n FROM people GROUP BY 1 ORDER BY 1",
    "SELECT COUNT(*) AS n FROM people WHERE income > (SELECT AVG(income) FROM people)",
    "SELECT COUNT(*) AS n FROM people WHERE age > (SELECT AVG(age) FROM people WHERE age > 1000)",
    "SELECT COUNT(*) AS n FROM (SELECT person_id FROM visits GROUP BY person_id HAVING AVG(cost) > "
    "(SELECT AVG(cost) FROM visits)) AS t",
    "WITH m AS (SELECT AVG(cost) AS a, STDDEV(cost) AS s FROM visits) "
    "SELECT p.sex, COUNT(*) AS n FROM visits v JOIN people p USING (person_id), m WHERE v.cost > m.a + m.s "
    "GROUP BY p.sex ORDER BY 1",
    "WITH r AS (SELECT sex, AVG(age) AS a, COUNT(*) AS n FROM people GROUP BY sex) "
    "SELECT p.sex, COUNT(*) AS n, SUM(ABS(p.age - r.a)) AS d FROM people p JOIN r ON p.sex = r.sex "
    "WHERE p.age > r.a AND r.n > 10 GROUP BY p.sex ORDER BY 1",
    "SELECT COUNT(*) AS n, COUNT(r.a) AS m FROM people p LEFT JOIN (SELECT sex, AVG(age) AS a FROM people "
    "WHERE sex = 'male' GROUP BY sex) r ON p.sex = r.sex",
    "SELECT COUNT(*) AS n FROM people "
    "WHERE sex IN (SELECT sex FROM people GROUP BY sex ORDER BY COUNT(*) DESC LIMIT 1)",
    "SELECT COUNT(*) AS n FROM people p JOIN visits v USING (person_id) WHERE p.sex NOT IN (SELECT q.sex "
    "FROM visits w JOIN people q USING (person_id) WHERE q.sex IS NOT NULL GROUP BY 1 ORDER BY AVG(w.cost) LIMIT 1)",
    # Conditions on released groups: HAVING, with ORDER BY and LIMIT beside it, and WHERE over a CTE of them.
    "SELECT COUNT(*) AS n FROM visits v JOIN people p USING (person_id) WHERE p.sex IN (SELECT sex FROM people "
    "GROUP BY sex HAVING COUNT(*) > 250)",
    "SELECT COUNT(*) AS n FROM people WHERE sex NOT IN (SELECT sex FROM people WHERE sex IS NOT NULL GROUP BY 1 "
    "HAVING AVG(age) * 2 > 1.5 * MIN(age) AND sex <> 'male')",
    "SELECT COUNT(*) AS n FROM people WHERE sex IN (SELECT sex FROM people GROUP BY sex HAVING COUNT(*) > 100 "
    "AND 200 >= AVG(age) ORDER BY AVG(age) LIMIT 1)",
    "WITH r AS (SELECT sex AS s, AVG(age) AS a, COUNT(*) AS n FROM people GROUP BY sex), "
    "t AS (SELECT s, a / 2 AS half FROM r WHERE n > 250 OR s = 'nobody') "
    "SELECT COUNT(*) AS n, COUNT(t.half) AS m, AVG(t.half) AS h FROM people p LEFT JOIN t ON p.sex = t.s",
    "WITH top AS (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex ORDER BY n DESC LIMIT 1) "
    "SELECT p.sex, COUNT(*) AS n, SUM(age) AS s FROM people p JOIN top ON p.sex = top.sex GROUP BY p.sex "
    "HAVING COUNT(*) > 50",
    "WITH top AS (SELECT sex FROM people GROUP BY sex ORDER BY COUNT(*) DESC LIMIT 1) "
    "SELECT COUNT(*) AS n FROM visits v JOIN people p USING (person_id) WHERE p.sex IN (SELECT sex FROM top)",
    # Groups of hidden keys, as lists and tables, joined by one key or two, and as values of the row's own group.
    "SELECT COUNT(*) AS n FROM people WHERE town IN (SELECT town FROM people GROUP BY 1 HAVING COUNT(*) > 428)",
    "SELECT COUNT(*) AS n FROM visits WHERE ward NOT IN (SELECT ward FROM visits GROUP BY 1 ORDER BY ward LIMIT 1)",
    "SELECT COUNT(*) AS n FROM people "
    "WHERE town IN (SELECT town FROM people GROUP BY 1 HAVING COUNT(*) * 2 > 857 AND town <> 'town1')",
    "SELECT COUNT(*) AS n FROM people WHERE town NOT IN (SELECT town FROM people WHERE town > 'town2' GROUP BY 1)",
    "SELECT COUNT(*) AS n, COUNT(r.a) AS m FROM people v LEFT JOIN (SELECT town, AVG(age) AS a, COUNT(*) AS c "
    "FROM people GROUP BY 1 HAVING COUNT(*) > 428 ORDER BY town DESC LIMIT 2) r ON v.town = r.town "
    "WHERE v.age > COALESCE(ROUND(r.a / 9) * 9, 30)",
    "SELECT SUM(v.age) / 7.0 AS s FROM people v "
    "WHERE v.age > (SELECT 0.61 * AVG(w.age) FROM people w WHERE w.town = v.town)",
    "SELECT COUNT(*) AS n FROM people v WHERE 429 > (SELECT COUNT(*) FROM people w WHERE w.town = v.town)",
    "WITH r AS (SELECT town AS t, MIN(age) AS a, COUNT(*) AS n FROM people GROUP BY 1) "
    "SELECT COUNT(*) AS m FROM people WHERE town IN (SELECT t FROM r WHERE n > 428)",
    "SELECT p.town, COUNT(*) AS n FROM people p JOIN (SELECT town, sex, COUNT(*) AS c FROM people GROUP BY 1, 2 "
    "HAVING COUNT(*) > 210) AS r ON p.town = r.town AND p.sex = r.sex WHERE p.age * 10 < r.c GROUP BY p.town "
    "ORDER BY p.town",
    "SELECT COUNT(*) AS n FROM people v WHERE NOT EXISTS (SELECT 1 FROM (SELECT town, COUNT(*) AS c FROM people "
    "GROUP BY 1) r WHERE r.town = v.town AND r.c * 2 > 857)",
    "WITH r AS (SELECT town, sex, COUNT(*) AS c FROM people GROUP BY 1, 2 HAVING COUNT(*) > 210) "
    "SELECT COUNT(*) AS n FROM people v WHERE EXISTS (SELECT * FROM r WHERE v.sex = r.sex AND r.town = v.town)",
    "SELECT COUNT(*) AS n FROM people SEMI JOIN (SELECT town FROM people GROUP BY 1 HAVING COUNT(*) > 428) r "
    "USING (town)",
    "WITH r AS (SELECT town, COUNT(*) AS c FROM people GROUP BY 1 ORDER BY town DESC LIMIT 3) "
    "SELECT COUNT(*) AS n FROM people v ANTI JOIN r ON v.town = r.town",
    "SELECT COUNT(*) AS n FROM people WHERE town IN (SELECT DISTINCT town FROM people WHERE age > 40)",
    # Windows within units, values that belong to them, levels of groups, different values and quantiles.
    "SELECT COUNT(*) AS n, AVG(cost) AS c FROM (SELECT person_id, cost FROM visits QUALIFY ROW_NUMBER() OVER ("
    "PARTITION BY person_id ORDER BY ABS(cost - (SELECT AVG(cost) FROM visits))) = 1) AS t",
    "SELECT COUNT(*) AS n FROM (SELECT person_id, SUM(CASE WHEN cost > (SELECT AVG(cost) FROM visits) THEN 1 ELSE 0 "
    "END) OVER (PARTITION BY person_id) AS s FROM visits) AS t WHERE s > 1",
    "SELECT COUNT(*) AS n FROM (SELECT person_id, COUNT(*) AS n FROM visits GROUP BY person_id, ward "
    "QUALIFY MAX(n) OVER (PARTITION BY person_id) > (SELECT COUNT(*) / 400.0 FROM visits)) AS t",
    "SELECT COUNT(*) AS n FROM (SELECT DISTINCT person_id, MAX(cost - (SELECT AVG(cost) FROM visits)) OVER "
    "(PARTITION BY person_id) > 0 AS s FROM visits) AS t WHERE s",
    "SELECT sex, COUNT(*) AS n FROM people WHERE age > (SELECT AVG(age) FROM people) AND sex IS NOT NULL "
    "GROUP BY ROLLUP (sex) HAVING sex IS NOT NULL ORDER BY sex",
    "SELECT COUNT(DISTINCT person_id) AS n FROM visits WHERE cost > (SELECT AVG(cost) FROM visits)",
)
_NAMES = map("analyst{}".format, itertools.count())


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def services(home: Path) -> Iterator[Services]:
    path = write_files(home / "sources")
    with services_of(home) as started:
        attach(started, path)
        attach(started, write_auto_clinic(home / "auto"))
        yield started


@pytest.fixture(scope="module")
def plain(home: Path, services: Services) -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        for file in (home / "sources").glob("*.csv"):
            connection.execute(f"CREATE TABLE {file.stem} AS FROM '{file}'")
        yield connection


def analyst(services: Services, dataset: str = "clinic") -> str:
    """A new analyst with an account."""
    name = next(_NAMES)
    open_account(services.ledger, name, dataset=dataset)
    return name


def charged(answer: dict[str, Any]) -> Fraction:
    """What an answer took of its account."""
    return sum((Fraction(one["epsilon"]) for one in answer["accounting"]["charged"]), Fraction(0))


def spent(services: Services, who: str) -> Fraction:
    """How much of its account an analyst has used."""
    ((leaf, *_),) = services.ledger.spendable("clinic", who)
    return Fraction(leaf.limit.epsilon - leaf.remaining_epsilon())


@pytest.mark.sparse(4)
@pytest.mark.parametrize("sql", QUESTIONS)
def test_without_noise_it_is_what_the_engine_says(
    services: Services, plain: duckdb.DuckDBPyConnection, sql: str
) -> None:
    """Each stage is that of DuckDB, up to the rounding of values; the same text once more costs nothing."""
    who = analyst(services)
    with recorded(noiseless=True):
        answer = answer_to(services, question(sql, who, epsilon="2"))
    rows = [row for row in answer["rows"] if row[0] is not None]  # public keys: the empty group of NULL
    for got, wanted in zip(rows, plain.execute(sql).fetchall(), strict=True):
        for value, truth in zip(got, wanted, strict=True):
            assert value == (pytest.approx(truth, rel=2e-3) if isinstance(truth, int | float) else truth)
    assert "conditional_on_release" in {warning["code"] for warning in answer["warnings"]}
    again = answer_to(services, question(sql, who, epsilon="2"))
    assert again["rows"] == answer["rows"]
    assert again["accounting"]["charged"] == []
    assert again["links"]["releases"] == answer["links"]["releases"]


def test_the_later_stage_reads_the_released_number(
    services: Services, plain: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shows the count at the noisy average that was released, and not at the true one."""
    who = analyst(services)
    with recorded(noiseless=True):
        first = answer_to(services, question("SELECT AVG(cost) AS a FROM visits WHERE ward = 'a'", who))
    mean = first["rows"][0][0]
    for wrong in (mean, mean / 2):
        asked = question(ABOVE.replace("FROM visits)", "FROM visits WHERE ward = 'a')"), analyst(services))
        query: Any = services.journey.admit(asked)
        running: Any = services.journey.running  # type: ignore[attr-defined]
        with monkeypatch.context() as patch, recorded(noiseless=True):
            patch.setattr(running, "_measured", partial(_told, running._measured, wrong))
            services.journey.complete(query)
        (found,) = _stored_counts(services, query.query_id)
        assert found == plain.execute("SELECT COUNT(*) FROM visits WHERE cost > ?", [wrong]).fetchone()[0]  # type: ignore[index]


def _told(measured: Any, number: float, *arguments: Any) -> Any:
    """What is released, with another number for an average."""
    table = measured(*arguments)
    changed = [
        replace(column, values=(number,)) if column.type.value == "number" else column for column in table.columns
    ]
    return replace(table, columns=tuple(changed))


def _stored_counts(services: Services, query_id: str) -> list[Any]:
    """The whole numbers that a query released."""
    ledger: Any = services.ledger
    tables = [from_stored(release.body, "c0", Fraction(95, 100)) for release in ledger.releases_of(query_id)]
    return [column.values[0] for table in tables for column in table.columns if column.type.value == "integer"]


def test_both_stages_are_charged_before_the_first_and_divide_the_spend(services: Services) -> None:
    """Shows the price of a question of two stages: the spend, whatever was released; and no charge for a stored one."""
    who = analyst(services)
    estimate: Any = services.journey.estimate(question(ABOVE, who, report=True))
    done = ["measure one block", "measure one block by the numbers released before"]
    assert [one["does"] for one in estimate["plan"]["stages"] if one["paid"]] == done
    answer = answer_to(services, question(ABOVE, who))
    assert charged(answer) == 1
    assert Fraction(str(estimate["price"]["epsilon"])) == 1
    assert services.journey.estimate(question(ABOVE, who))["verdict"] == "free"
    other = analyst(services)
    answer_to(services, question("SELECT AVG(cost) AS a FROM visits", other))
    later = answer_to(services, question(ABOVE, other))
    assert 0 < charged(later) < 1


@pytest.mark.slow
def test_another_release_of_the_first_number_is_another_question(services: Services) -> None:
    """Shows that a better first release, bought in between, is not taken for the one that the count was made at."""
    who = analyst(services)
    answer = answer_to(services, question(ABOVE, who, epsilon="1"))
    again = answer_to(services, question("SELECT AVG(cost) AS a FROM visits", who, epsilon="8", reuse="none"))
    moved = answer_to(services, question(ABOVE, who, epsilon="1"))
    assert charged(moved) > 0
    first, second = answer["links"]["releases"], moved["links"]["releases"]
    assert second[0] == again["links"]["releases"][0] != first[0]
    assert second[1] != first[1]
    assert charged(answer_to(services, question(ABOVE, who, epsilon="1"))) == 0


def test_where_the_ledger_takes_another_release_nothing_is_charged(services: Services) -> None:
    """Shows a first number that is stored between the price and the charge: the question is prepared again."""
    who = analyst(services)
    ledger: Any = services.ledger
    reserve, seen = ledger.reserve, []

    def interrupted(request: Any) -> Any:
        seen.append(request.inputs)
        if len(seen) == 1:
            answer_to(services, question("SELECT AVG(cost) AS a FROM visits", who))
        return reserve(request)

    ledger.reserve = interrupted
    try:
        admitted: Any = services.journey.admit(question(ABOVE, who))
    finally:
        ledger.reserve = reserve
    # The first request wants it made anew; the one inside is that of the average; the last one names its release.
    assert [list(inputs.values()) for inputs in seen[:2]] == [[None], []]
    (named,) = seen[-1].values()
    assert named is not None
    assert [release.id for release in admitted.paid.reused.values()] == [named]
    services.journey.complete(admitted)
    assert not ledger.audit().findings


@pytest.mark.parametrize("failing", [1, 2])
def test_a_failure_of_either_stage_is_one_outcome(
    services: Services, monkeypatch: pytest.MonkeyPatch, failing: int
) -> None:
    """Shows one opaque error, the whole charge kept, and nothing stored, whichever statement failed."""
    who = analyst(services)
    private: Any = services.journey.running._private  # type: ignore[attr-defined]
    run, calls = private.run, []

    def fails(*arguments: Any, **options: Any) -> Any:
        calls.append(1)
        if len(calls) == failing:
            raise ExecutionFailed
        return run(*arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(private, "run", fails)
        with pytest.raises(ExecutionFailed) as failed:
            answer_to(services, question(ABOVE, who))
    assert failed.value.started
    assert spent(services, who) == pytest.approx(1, rel=1e-6)
    assert charged(answer_to(services, question(ABOVE, who))) == 1


def test_nothing_can_be_watched_between_the_stages(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows two statements in one slot, then the visible moment, and only then the outer query and the ledger."""
    running: Any = services.journey.running  # type: ignore[attr-defined]
    seen: list[str] = []

    def logged(name: str, called: Any) -> Any:
        def call(*arguments: Any, **options: Any) -> Any:
            seen.append(name)
            return called(*arguments, **options)

        return call

    who = analyst(services)
    admitted: Any = services.journey.admit(question(ABOVE, who))
    monkeypatch.setattr(running._private, "lease", logged("slot", running._private.lease))
    monkeypatch.setattr(running._private, "run", logged("statement", running._private.run))
    monkeypatch.setattr(VisibleRun, "wait", logged("moment", VisibleRun.wait))
    monkeypatch.setattr(running._shell, "run", logged("outer query", running._shell.run))
    monkeypatch.setattr(running._ledger, "post", logged("ledger", running._ledger.post))
    services.journey.complete(admitted)
    first = [name for name, _ in itertools.groupby(seen)]
    assert seen.count("statement") == 2
    assert first[:3] == ["slot", "statement", "moment"]
    assert set(first[3:]) <= {"outer query", "ledger"}


TOWNS = "SELECT COUNT(*) AS n FROM people WHERE town IN (SELECT town FROM people GROUP BY 1)"


def test_a_list_without_room_is_refused_once_it_is_released(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shows seven groups for three places: a statement, the moment, a refusal that says it is charged; the list stays.

    Asked again it is refused before anything is charged; with LIMIT the stored list serves.
    """
    who = analyst(services)
    running: Any = services.journey.running  # type: ignore[attr-defined]
    ledger: Any = services.ledger
    with monkeypatch.context() as patch:
        patch.setattr(stage_hidden, "CELLS_MAX", 3)
        services.journey.preparing.forget()  # type: ignore[attr-defined]
        seen: list[str] = []
        run, wait = running._private.run, VisibleRun.wait
        patch.setattr(running._private, "run", lambda *a, **o: (seen.append("statement"), run(*a, **o))[1])
        patch.setattr(VisibleRun, "wait", lambda one: (seen.append("moment"), wait(one))[1])
        with pytest.raises(SumsRefused) as refused:
            answer_to(services, question(TOWNS, who))
        assert seen == ["statement", "moment"]
        assert (refused.value.problem.code, refused.value.problem.charged) == ("too_large", True)
        assert "7 groups" in refused.value.problem.finding.why
        used = spent(services, who)
        assert used == pytest.approx(1, rel=1e-6)
        for ask in (services.journey.estimate, services.journey.admit):
            with pytest.raises(Refused, match="a released list"):
                ask(question(TOWNS, who))
        assert spent(services, who) == used
        limited = TOWNS.replace("GROUP BY 1", "GROUP BY 1 ORDER BY town LIMIT 2")
        assert 0 < charged(answer_to(services, question(limited, who))) < 1
    services.journey.preparing.forget()  # type: ignore[attr-defined]
    assert not ledger.audit().findings


def test_too_old_a_stage_makes_all_of_them_anew(services: Services) -> None:
    """Shows that a question which wants fresh releases gets them for every stage."""
    who = analyst(services)
    first = answer_to(services, question(ABOVE, who))
    fresh = answer_to(services, question(ABOVE, who, max_staleness_s=0))
    assert charged(fresh) == 1
    assert not set(first["links"]["releases"]) & set(fresh["links"]["releases"])
    none = answer_to(services, question(ABOVE, who, reuse=Reuse.NONE))
    assert charged(none) == 1


def test_norms_of_a_later_stage_are_chosen_after_the_number_that_it_reads(services: Services) -> None:
    """Shows units scaled to norms in both stages: the histogram of the second is of rows that the number chooses."""
    who = analyst(services, "wards")
    sql = "SELECT ward, COUNT(*) AS n FROM visits WHERE cost > (SELECT AVG(cost) FROM visits) GROUP BY ward"
    answer = answer_to(services, question(sql, who, dataset="wards", epsilon="20"))
    assert len(answer["rows"]) == 4
    assert {norm["source"] for norm in answer["provenance"]["norms"]} == {"chosen"}
    again = answer_to(services, question(sql, who, dataset="wards", epsilon="20"))
    assert again["accounting"]["charged"] == []
    assert again["rows"] == answer["rows"]


@pytest.mark.sparse(4)
@pytest.mark.parametrize("width", ["5", "15"])
@pytest.mark.parametrize("sql", [ABOVE, MANY])
def test_an_accuracy_is_the_cheapest_spend_that_reaches_it(services: Services, sql: str, width: str) -> None:
    """Shows the width in the answer and the price of the estimate, and that a little less spend is a wider answer.

    What later stages alone read promises nothing: the count of MANY's first stage takes no more than its part.
    """
    who = analyst(services)
    asked = question(sql, who, epsilon=None, half_width=Fraction(width))
    estimate = services.journey.estimate(asked)
    answer = answer_to(services, asked)
    price = charged(answer)
    assert price == pytest.approx(Fraction(str(estimate["price"]["epsilon"])), rel=1e-4)  # type: ignore[index]
    assert widest(answer) <= float(width)
    less: Any = services.journey.estimate(question(sql, analyst(services), epsilon=str(round(float(price) * 0.97, 6))))
    assert max(column["half_width"] or 0 for column in less["columns"] if column["name"] == "n") > float(width)
    assert answer_to(services, asked)["accounting"]["charged"] == []
    wider = replace(asked, half_width=Fraction(width) * 2)
    assert answer_to(services, wider)["accounting"]["charged"] == []


def widest(answer: dict[str, Any]) -> float:
    """The widest half width of an answer's last column, which counts."""
    return max((high[-1] - low[-1]) / 2 for low, high in zip(answer["lows"], answer["highs"], strict=True))


def test_a_width_of_a_later_stage_holds_its_units_to_counts(services: Services) -> None:
    """Shows a width where a spend would choose a norm: promised before its charge, with a warning, and free again."""
    who = analyst(services, "wards")
    asked = question(ABOVE, who, epsilon=None, dataset="wards", half_width=Fraction(50))
    answer = answer_to(services, asked)
    assert widest(answer) <= 50
    assert charged(answer) > 0
    assert any(warning["code"] == "bounds_assumed" for warning in answer["warnings"])
    assert answer_to(services, asked)["accounting"]["charged"] == []
    spent = answer_to(services, question(ABOVE, who, dataset="wards"))
    assert {norm["source"] for norm in spent["provenance"]["norms"]} == {"chosen"}
