"""Columns without declared bounds: their bounds are bought, chosen, shown, stored and reused."""

from __future__ import annotations

import csv
import random
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from mechanisms import gateway
from mechanisms.calibrate import calibrate
from mechanisms.families import NoiseFamily, Price
from mechanisms.measurement import Integers, Measurement, Perturbed
from mechanisms.randomness import BitSource
from privacy.refusal import ExecutionFailed, Refused
from privacy.statement import Statement
from server.journey import running as journey_running
from server.journey import value_bounds as choosing
from server.journey.query import Prepared, ToRun
from server.services import Services
from sql_rewrite.cost import Work, work_of
from tests.audit.recorder import FixedBits
from tests.journey.clinic import answer_to, attach, open_account, question, services_of

PEOPLE = 2_000

DATASET = """\
version: 2
dataset: NAME
unit: {table: people, key: person_id}
tables:
  people:
    source: {file: people.csv}
    key: person_id
    columns:
      person_id: {type: integer, nullable: false}
      sex: {type: text, keys: [female, male], nullable: false}
      town: {type: text}
      age: {type: integer, bounds: [0, 100]}
      income: {type: integer}
      height: {type: number}
      born: {type: date}
      nothing: {type: number}
      same: {type: integer}
      single: {type: number}
      huge: {type: integer}
      endless: {type: number}
  visits:
    source: {file: visits.csv}
    key: visit_id
    references: {person_id: people.person_id}
    contribution: CONTRIBUTION
    columns:
      visit_id: {type: integer, nullable: false}
      person_id: {type: integer, nullable: false}
      ward: {type: text, keys: [a, b], nullable: false}
      paid: {type: number}
policy: {epsilon_default: "0.1", epsilon_max: "100", delta_per_query: "1e-8", releases_shared: "no"AUTOMATIC}
"""


COUNTED = "{rows_per_unit: 4, groups_per_unit: 2, rows_per_unit_and_group: 4}"


def write(
    folder: Path,
    name: str,
    *,
    people: int = PEOPLE,
    rich: bool = False,
    automatic: str = "",
    contribution: str = COUNTED,
) -> Path:
    """A dataset with columns of all sorts; `rich` makes one person's income a billion."""
    folder.mkdir(parents=True, exist_ok=True)
    source = random.Random(3)
    names = "person_id sex town age income height born nothing same single huge endless".split()
    with (folder / "people.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(names)
        for person in range(people):
            income = 10**9 if rich and person == 0 else source.randrange(100, 1_000)
            year = source.randrange(1950, 2000)
            rows.writerow([
                person, source.choice(["female", "male"]), f"town{person % 3}", source.randrange(18, 90), income,
                round(source.gauss(1.7, 0.1), 3), f"{year}-06-01", "", 42, 7.5 if person == 5 else "",
                10**17 * (1 if person % 2 else -1), "inf" if person % 2 else "2.5",
            ])  # fmt: skip
    with (folder / "visits.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["visit_id", "person_id", "ward", "paid"])
        visit = 0
        for person in range(people):
            for _ in range(1 + person % 4):
                rows.writerow([visit, person, source.choice("ab"), source.randrange(10, 90)])
                visit += 1
    path = folder / f"{name}.yaml"
    text = DATASET.replace("NAME", name).replace("AUTOMATIC", automatic).replace("CONTRIBUTION", contribution)
    path.write_text(text)
    return path


NAMES = {
    "survey": {},
    "rich": {"rich": True},
    "strict": {"automatic": ", automatic_bounds: false"},
    "alone": {"people": 1},
    "scaled": {"contribution": "auto"},
}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    """Services with several datasets."""
    home = tmp_path_factory.mktemp("values")
    with services_of(home) as services:
        for name, options in NAMES.items():
            attach(services, write(home / "sources" / name, name, **options))
        yield services


@pytest.fixture
def ask(served: Services, request: pytest.FixtureRequest) -> Callable[..., dict[str, Any]]:
    """Asks as one new analyst."""
    seen: set[str] = set()

    def asked(sql: str, dataset: str = "survey", *, estimate: bool = False, **options: Any) -> dict[str, Any]:
        name = f"{request.node.name}-{dataset}"[:60]
        if dataset not in seen:
            open_account(served.ledger, name, dataset=dataset, epsilon="10000")
            seen.add(dataset)
        posed = question(sql, name, dataset=dataset, **{"epsilon": "20", **options})
        return dict(served.journey.estimate(posed)) if estimate else answer_to(served, posed)

    return asked


Ask = Callable[..., dict[str, Any]]


def bounds(answer: dict[str, Any]) -> dict[str, tuple[Any, Any, str]]:
    """The value bounds of an answer by column: ends and source."""
    return {one["column"]: (one["lower"], one["upper"], one["source"]) for one in answer["provenance"]["value_bounds"]}


def test_an_average_of_a_column_without_bounds_is_answered(ask: Ask) -> None:
    """One question: bounds around the values, their source and the part of the spend; the average is near the truth."""
    answer = ask("SELECT AVG(income), SUM(income), AVG(age), COUNT(*) FROM people")
    (average, total, _, people) = answer["rows"][0]
    assert abs(average - 549) < 30
    assert abs(total - 549 * PEOPLE) < 60_000
    assert abs(people - PEOPLE) < 60
    found = bounds(answer)
    lower, upper, source = found["income"]
    assert source == "chosen"
    assert -100 <= float(lower) <= 150
    assert 800 <= float(upper) <= 2_000
    assert found["age"] == ("0", "100", "declared")
    (income,) = (one for one in answer["provenance"]["value_bounds"] if one["column"] == "income")
    assert income["share"] == "0.25"
    assert income["certain"] is True
    assert any("chosen from a noisy histogram" in cut for cut in answer["provenance"]["cut"])
    assert len(answer["provenance"]["releases"]) == 2
    (charged,) = answer["accounting"]["charged"]
    assert Fraction(charged["epsilon"]) <= 20


@pytest.mark.parametrize("dataset", ["survey", "scaled"])
def test_later_stages_choose_bounds_and_norms(ask: Ask, dataset: str) -> None:
    """Both stages read a column without bounds: its histogram comes first, and norms of the later one after the number.

    The noise of epsilon 100 is far below the tolerances: a number is off by 20 scales once in 10^8.
    """
    sql = ("SELECT ward, SUM(paid) AS s, COUNT(*) AS n FROM visits WHERE paid > (SELECT AVG(paid) FROM visits) "
           "GROUP BY ward")  # fmt: skip
    answer = ask(sql, dataset, epsilon="100")
    for _, total, number in answer["rows"]:
        assert 60 < total / number < 80
    assert bounds(answer)["paid"][2] == "chosen"
    norms = {one["source"] for one in answer["provenance"].get("norms", [])}
    assert norms == ({"chosen"} if dataset == "scaled" else set())
    again = ask(sql, dataset, epsilon="100")
    assert again["rows"] == answer["rows"]
    assert again["accounting"]["charged"] == []


@pytest.mark.slow
def test_what_anothers_bounds_decide_is_not_read_without_their_histogram(tmp_path: Path) -> None:
    """Forbids, under `charged`, to show value bounds, or what follows from them, to whom their histogram was not sold.

    Histograms of values are read for a charge; sums within chosen bounds, and norms of such sums, are made anew.
    """
    with services_of(tmp_path) as services:
        path = write(tmp_path / "sources", "lent", contribution="auto")
        path.write_text(path.read_text().replace('releases_shared: "no"', 'releases_shared: "charged"'))
        attach(services, path)
        releases = {}
        for who in ("one", "two"):
            open_account(services.ledger, who, dataset="lent", epsilon="10000")
        for who, epsilon, sql in (
            ("one", "40", "SELECT ward, SUM(paid) FROM visits GROUP BY ward"),
            ("two", "20", "SELECT AVG(paid) FROM visits"),
            ("two", "40", "SELECT ward, SUM(paid) FROM visits GROUP BY ward"),
        ):
            answer = answer_to(services, question(sql, who, dataset="lent", epsilon=epsilon))
            releases[who] = set(answer["provenance"]["releases"])
        assert (len(releases["one"]), len(releases["two"])) == (3, 2)
        assert not releases["one"] & releases["two"]


@pytest.mark.sparse(2)
@pytest.mark.parametrize(
    ("value", "table", "column", "truth"),
    [("MEDIAN(paid)", "visits", "paid", 49.5), ("MAX(DATE '2020-06-01' - born)", "people", "born", 45.5 * 365.25)],
    ids=["median", "days"],
)
def test_bounds_reach_what_is_computed_within_a_unit(
    ask: Ask, value: str, table: str, column: str, truth: float
) -> None:
    """A median of a person's rows lies among them: bounds are chosen for the column, and the mean is near the truth."""
    answer = ask(f"SELECT AVG(m) FROM (SELECT person_id, {value} AS m FROM {table} GROUP BY person_id) AS t")
    assert bounds(answer)[column][2] == "chosen"
    assert answer["rows"][0][0] == pytest.approx(truth, rel=0.1)
    assert not any(one["code"] == "range_not_narrowed" for one in answer["warnings"])


def test_later_questions_find_the_histogram(ask: Ask) -> None:
    """Other filters, groups and aggregates of the column use the stored bounds, and the whole spend is theirs."""
    ask("SELECT AVG(income) FROM people")
    for sql in (
        "SELECT STDDEV(income) FROM people WHERE age > 40",
        "SELECT sex, SUM(income) FROM people GROUP BY sex",
        "SELECT town, AVG(income) FROM people GROUP BY town",
    ):
        answer = ask(sql)
        assert bounds(answer)["income"][2] == "stored"
        assert len(answer["provenance"]["releases"]) == 1
        before = ask(sql, estimate=True)
        assert before["verdict"] == "free"


@pytest.mark.parametrize("dataset", ["survey", "scaled"])
def test_bounds_of_a_union_are_those_of_its_branches(ask: Ask, dataset: str) -> None:
    """Both columns have a histogram each, and the sum clips to what both bounds hold; the mean is that of all rows."""
    sql = "SELECT AVG(x) FROM (SELECT income AS x FROM people UNION ALL SELECT paid FROM visits) AS t"
    answer = ask(sql, dataset, epsilon="100")
    found = bounds(answer)
    assert {name: source for name, (_, _, source) in found.items()} == {"income": "chosen", "paid": "chosen"}
    # 2,000 incomes from 100 to 1,000 and 5,000 payments from 10 to 90.
    assert answer["rows"][0][0] == pytest.approx((2_000 * 550 + 5_000 * 49.5) / 7_000, rel=0.05)
    later = ask(sql.replace("AVG", "SUM"), dataset, epsilon="100")
    assert {source for _, _, source in bounds(later).values()} == {"stored"}


def test_a_repeated_question_is_free_and_the_same(ask: Ask) -> None:
    """The same numbers with the same bounds, for nothing."""
    first = ask("SELECT AVG(height) FROM people")
    again = ask("SELECT AVG(height) FROM people")
    assert again["rows"] == first["rows"]
    assert again["accounting"]["charged"] == []
    assert bounds(again)["height"][:2] == bounds(first)["height"][:2]


def test_the_same_question_in_other_words_is_free(ask: Ask) -> None:
    """What bought its histogram has had less for its sums than a question that finds it, and serves that one too.

    A server that was started again asks in other words as well: it keeps no answers.
    """
    first = ask("SELECT AVG(height) FROM people WHERE age > 20")
    again = ask("SELECT AVG(height) AS tall FROM people WHERE age > 20")
    assert again["rows"] == first["rows"]
    assert again["accounting"]["charged"] == []
    assert again["provenance"]["releases"] == first["provenance"]["releases"][1:]


def test_a_fresh_histogram_is_bought_where_none_may_be_reused(ask: Ask) -> None:
    """`reuse: none` pays for a histogram as well."""
    ask("SELECT AVG(income) FROM people")
    answer = ask("SELECT AVG(income) FROM people", reuse="none")
    assert bounds(answer)["income"][2] == "chosen"
    assert len(answer["accounting"]["charged"]) == 1


@pytest.mark.parametrize("noise", list(NoiseFamily))
def test_both_families_answer(ask: Ask, noise: NoiseFamily) -> None:
    """Laplace and Gaussian noise, of one row and of several rows per unit."""
    answer = ask("SELECT AVG(income) FROM people", noise=noise)
    assert abs(answer["rows"][0][0] - 549) < 40
    visits = ask("SELECT ward, AVG(paid), SUM(paid) FROM visits GROUP BY ward", noise=noise)
    for _, average, total in visits["rows"]:
        assert abs(average - 49.5) < 10
        assert abs(total - 2.5 * PEOPLE / 2 * 49.5) < 20_000
    assert bounds(visits)["paid"][2] == "chosen"


@pytest.mark.slow
@pytest.mark.parametrize("noise", list(NoiseFamily))
def test_bounds_and_norms_are_chosen_in_one_question(ask: Ask, noise: NoiseFamily) -> None:
    """Under `contribution: auto` three stages: values, then norms within the chosen bounds, then sums; all stored."""
    sql = "SELECT ward, SUM(paid), AVG(paid) FROM visits GROUP BY ward"
    answer = ask(sql, "scaled", noise=noise)
    for _, total, average in answer["rows"]:
        assert abs(total - 2.5 * PEOPLE / 2 * 49.5) < 20_000
        assert abs(average - 49.5) < 10
    assert bounds(answer)["paid"][2] == "chosen"
    assert {norm["source"] for norm in answer["provenance"]["norms"]} == {"chosen"}
    assert len(answer["provenance"]["releases"]) == 3
    again = ask("SELECT ward, AVG(paid), SUM(paid), STDDEV(paid) FROM visits GROUP BY ward", "scaled", noise=noise)
    assert bounds(again)["paid"][2] == "stored"
    for _, average, total, _ in again["rows"]:
        assert abs(total - 2.5 * PEOPLE / 2 * 49.5) < 20_000
        assert abs(average - 49.5) < 10


def test_a_stored_histogram_of_norms_serves_at_other_bounds(ask: Ask) -> None:
    """The steps of a sum follow from its bounds: a histogram in other steps is moved."""
    first = ask("SELECT SUM(paid) FROM visits", "scaled")
    ask("SELECT AVG(paid) FROM visits", "scaled", reuse="none", epsilon="100")
    again = ask("SELECT SUM(paid) FROM visits WHERE paid > 0", "scaled")
    for answer in (first, again):
        assert abs(answer["rows"][0][0] - 2.5 * PEOPLE * 49.5) < 30_000


def test_differences_of_dates(ask: Ask) -> None:
    """Dates have bounds too: quarters of years."""
    answer = ask("SELECT AVG(date_diff('year', born, DATE '2020-06-01')) FROM people")
    assert abs(answer["rows"][0][0] - 45.5) < 2
    lower, upper, _ = bounds(answer)["born"]
    assert "1945" < lower < "1955"
    assert "1994" < upper < "2005"


def test_an_estimate_says_what_will_be_chosen(ask: Ask) -> None:
    """Before: no ends and no width of the average, though that of the count; afterwards both."""
    sql = "SELECT AVG(income), SUM(income), COUNT(*) FROM people"
    before = ask(sql, estimate=True)
    (core,) = before["contribution"]
    assert core["value_bounds"] == [
        {
            "table": "people", "column": "income", "lower": None, "upper": None, "source": "chosen", "certain": None,
            "share": "0.25", "cut": None, "cut_reason": "The bounds are chosen by the question.",
        }
    ]  # fmt: skip
    assert "The question chooses bounds for income" in core["cut"]
    average, total, count = before["columns"]
    assert average["half_width_reason"]["code"] == total["half_width_reason"]["code"] == "bounds_not_chosen"
    assert total["standard_error"] is None
    assert count["half_width"] is not None
    ask("SELECT AVG(income) FROM people")
    after = ask(sql, estimate=True)
    (shown,) = after["contribution"][0]["value_bounds"]
    assert shown["source"] == "stored"
    assert shown["lower"] is not None
    assert after["columns"][1]["half_width"] is not None


@pytest.mark.slow
def test_a_width_is_kept_at_stored_bounds(ask: Ask) -> None:
    """A width at the bounds of a stored histogram is kept, and priced at them."""
    sql = "SELECT SUM(income) FROM people"
    ask(sql, epsilon="0.5")
    answer = ask(sql, half_width=Fraction(20_000), epsilon=None)
    assert (answer["highs"][0][0] - answer["lows"][0][0]) / 2 <= 20_001


def test_a_policy_may_forbid_it(ask: Ask) -> None:
    """Without `automatic_bounds` the refusal is that of before."""
    with pytest.raises(Refused) as refused:
        ask("SELECT AVG(income) FROM people", "strict")
    assert refused.value.findings[0].code == "column_without_bounds"


@pytest.mark.parametrize("column", ["person_id", "1 / height", "income * income * income"])
def test_what_no_bounds_help_is_refused(ask: Ask, column: str) -> None:
    """Ids have no automatic bounds, and ranges that cannot be proved are refused before anything is spent."""
    with pytest.raises(Refused) as refused:
        ask(f"SELECT AVG({column}) FROM people")
    assert refused.value.findings[0].code in ("column_without_bounds", "too_large")


@pytest.mark.slow
def test_what_the_text_clips_buys_no_histogram(ask: Ask) -> None:
    """GREATEST and LEAST bound a column by themselves."""
    answer = ask("SELECT AVG(LEAST(GREATEST(income, 0), 1000)) FROM people")
    assert bounds(answer) == {}
    assert len(answer["provenance"]["releases"]) == 1


@pytest.mark.slow
def test_bounds_follow_from_the_noise_at_the_norm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows that norms are known before bounds are chosen, in a first question and where values are stored.

    Without them the noise of one row is weighed, and the bounds of a few people with many rows are too wide.
    """
    weighed: list[float] = []
    genuine = choosing.choose_bounds

    def noted(lows: Any, highs: Any, grid: Any, **options: Any) -> Any:
        weighed.append(options["noise"])
        return genuine(lows, highs, grid, **options)

    monkeypatch.setattr(choosing, "choose_bounds", noted)
    with services_of(tmp_path) as services:
        path = write(tmp_path / "sources", "crowded", contribution="auto")
        with (tmp_path / "sources" / "visits.csv").open("a", newline="") as file:
            for visit in range(40 * 300):
                csv.writer(file).writerow([10**6 + visit, visit % 40, "a", 20 + visit % 50])
        attach(services, path)
        open_account(services.ledger, "one", dataset="crowded", epsilon="10000")
        sent: list[str] = []
        private: Any = services.journey.running._private  # type: ignore[attr-defined]
        run = private.run

        def watched(snapshot: Path, statement: Any, **options: Any) -> Any:
            sent.append(statement.sql)
            return run(snapshot, statement, **options)

        monkeypatch.setattr(private, "run", watched)
        first = answer_to(services, question("SELECT AVG(paid) FROM visits", "one", dataset="crowded", epsilon="20"))
        (norm,) = first["provenance"]["norms"]
        assert float(norm["norm"]) > 100
        assert len(sent) == 3
        assert len(weighed) == 1
        weighed.clear()
        sql = "SELECT AVG(paid) FROM visits WHERE visit_id >= 0"
        again = answer_to(services, question(sql, "one", dataset="crowded", epsilon="20"))
        assert bounds(again)["paid"][2] == "stored"
        assert [norm["source"] for norm in again["provenance"]["norms"]] == ["chosen"]
        before, after = weighed
        assert after > 3 * before  # with the norm, which was not known before the price
        for answer in (first, again):
            assert abs(answer["rows"][0][0] - 46) < 8
            assert float(bounds(answer)["paid"][1]) < 200


@pytest.mark.slow
def test_bounds_of_a_quantile_hold_it_however_large_units_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows that noise at a large norm makes the bounds of an average narrow, and not those of a median beside it.

    And that bounds which a norm would choose again, at more than was priced, stay those of the price.
    """
    with services_of(tmp_path) as services:
        path = write(tmp_path / "sources", "skewed", contribution="auto")
        with (tmp_path / "sources" / "visits.csv").open("w", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(["visit_id", "person_id", "ward", "paid"])
            rows.writerows([visit, visit % 40, "a", 2 ** (visit // 40 % 12)] for visit in range(40 * 300))
        attach(services, path)
        open_account(services.ledger, "one", dataset="skewed", epsilon="10000")

        def told(sql: str) -> dict[str, Any]:
            return answer_to(services, question(sql, "one", dataset="skewed", epsilon="20"))

        for sql in ("SELECT MEDIAN(paid) AS m FROM visits", "SELECT AVG(paid), MEDIAN(paid) AS m FROM visits"):
            low, high, _ = bounds(told(sql))["paid"]
            assert float(low) <= 16, sql
            assert float(high) >= 1000, sql

        calls: list[object] = []

        def first_beyond(reserved: object, _: object) -> None:
            calls.append(reserved)
            if len(calls) == 1:
                raise ExecutionFailed

        with monkeypatch.context() as patch:
            patch.setattr(journey_running, "require_reserved", first_beyond)
            kept = told("SELECT AVG(paid) FROM visits WHERE visit_id > 0")
        assert len(calls) == 2
        assert bounds(kept)["paid"][2] == "stored"
        assert [norm["source"] for norm in kept["provenance"]["norms"]] == ["chosen"]


# Untidy columns


@pytest.mark.parametrize("column", ["nothing", "single"])
def test_columns_of_nobody_or_one_person(ask: Ask, column: str) -> None:
    """All NULL, or one person's value alone: no number that looks like an answer, and a count of nobody beside it."""
    sql = f"SELECT AVG({column}), COUNT({column}) FROM people"
    for _ in range(3):
        # The widest intervals that can be asked for: of 10,000 answers one or two take noise for somebody, and stand.
        answer = ask(sql, epsilon="1", confidence=Fraction(9999, 10000), reuse="none")
        if answer["lows"][0][1] <= 0 <= answer["highs"][0][1]:
            break
    assert [warning["code"] for warning in answer["warnings"]] == ["bounds_uncertain", "nobody_seen"]
    assert answer["rows"][0][0] is None
    assert answer["lows"][0][1] <= 0 <= answer["highs"][0][1]
    (one,) = answer["provenance"]["value_bounds"]
    assert one["certain"] is False
    assert (one["cut"], one["cut_reason"]) == (None, "The histogram shows nobody for certain.")


def test_equal_values(ask: Ask) -> None:
    """A column in which all values are equal has narrow bounds."""
    answer = ask("SELECT AVG(same) FROM people")
    lower, upper, _ = bounds(answer)["same"]
    assert -1_000 <= float(lower) <= 42 <= float(upper) <= 5_000
    assert abs(answer["rows"][0][0] - 42) < 30


def test_values_beyond_the_grid(ask: Ask) -> None:
    """Values that no bounds reach count as the ends of the grid."""
    answer = ask("SELECT AVG(huge) FROM people")
    lower, upper, _ = bounds(answer)["huge"]
    assert float(lower) == -float(upper)
    assert float(upper) > 3e13
    (one,) = answer["provenance"]["value_bounds"]
    assert one["cut"]["share"] > 0.9  # nobody's value is within them, and the answer says so


def test_infinite_values(ask: Ask) -> None:
    """What is not finite is NULL in a snapshot, and in no bin."""
    answer = ask("SELECT AVG(endless) FROM people")
    lower, upper, _ = bounds(answer)["endless"]
    assert -100 <= float(lower) <= 2.5 <= float(upper) <= 500


def test_a_dataset_of_one_unit(ask: Ask) -> None:
    """Hardly anybody is there: the answer is noise, and says so."""
    answer = ask("SELECT AVG(income), SUM(income) FROM people", "alone", epsilon="1")
    assert "bounds_uncertain" in [warning["code"] for warning in answer["warnings"]]


# Privacy


def statements(served: Services, dataset: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The statements of one question, with a histogram whose noisy counts are the same whatever the rows are."""
    name = f"watcher-{dataset}-{len(served.ledger.accounts(dataset=dataset))}"
    open_account(served.ledger, name, dataset=dataset, epsilon="10000")
    seen: list[str] = []
    genuine, private = gateway.perturb, served.journey.running._private  # type: ignore[attr-defined]
    run = private.run

    def perturb(measurement: Measurement, exact_matrix: Integers, bits: BitSource) -> Perturbed:
        drawn = genuine(measurement, exact_matrix, bits)
        return drawn if measurement.core != "b0" else measurement.perturb(exact_matrix * 0 + 10, FixedBits(1))

    def watched(snapshot: Path, statement: Any, **options: Any) -> Any:
        seen.append(statement.sql)
        return run(snapshot, statement, **options)

    with monkeypatch.context() as patch:
        patch.setattr(gateway, "perturb", perturb)
        patch.setattr(private, "run", watched)
        answer_to(served, question("SELECT AVG(income) FROM people", name, dataset=dataset, epsilon="20"))
    return seen


def test_bounds_are_a_function_of_released_numbers(served: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the same noisy histogram, one person with a billion changes no statement."""
    first = statements(served, "survey", monkeypatch)
    assert len(first) == 2
    assert first == statements(served, "rich", monkeypatch)


def test_bounds_from_the_true_data_are_caught(served: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted choice that looks at the rows makes other statements of them."""
    genuine = choosing.choose_bounds
    exact: list[int] = []
    perturb = gateway.perturb

    def peeking(measurement: Measurement, exact_matrix: Integers, bits: BitSource) -> Perturbed:
        if measurement.core == "b0":
            exact[:] = [int(n) for n in exact_matrix[:, 0].tolist()]
        return perturb(measurement, exact_matrix, bits)

    def planted(lows: Any, highs: Any, grid: Any, **options: Any) -> Any:
        plain = [100 * number for number in exact]
        return genuine(plain, plain, grid, **{**options, "deviation": 0.5})

    with monkeypatch.context() as patch:
        patch.setattr(gateway, "perturb", peeking)
        patch.setattr(choosing, "choose_bounds", planted)
        found = [statements(served, name, monkeypatch) for name in ("survey", "rich")]
    assert found[0] != found[1]


def test_sums_never_cost_more_than_was_reserved(served: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second stage with less noise than was paid for is no answer."""
    genuine = journey_running.at_chosen_bounds
    name = "overdrawn"
    open_account(served.ledger, name, dataset="survey", epsilon="10000")

    def planted(prepared: Any, calibration: Any, told: Any, dialect: Any) -> Any:
        bound, _ = genuine(prepared, calibration, told, dialect)
        return bound, calibrate(bound.described, Price(calibration.family, Fraction(10**6), Fraction(0)))

    monkeypatch.setattr(journey_running, "at_chosen_bounds", planted)
    admitted = served.journey.admit(question("SELECT AVG(income) FROM people", name, dataset="survey", epsilon="20"))
    assert isinstance(admitted, ToRun)
    with pytest.raises(ExecutionFailed):
        served.journey.complete(admitted)


@pytest.mark.parametrize("dataset", ["survey", "scaled"])
def test_sums_that_are_zero_at_nominal_bounds(ask: Ask, dataset: str) -> None:
    """`x // 10` is zero wherever x is between -1 and 1: choosing bounds divided by that, after the charge."""
    for sql, truth in (
        ("SELECT SUM(income // 10) FROM people", 108_000),
        ("SELECT SUM(income * 0) FROM people", 0),
        ("SELECT SUM(CASE WHEN income > 5 THEN income // 10 END) FROM people GROUP BY sex", 54_000),
        ("SELECT SUM(income // 10) FROM people GROUP BY town", 36_000),
        ("SELECT SUM(TRUNC(paid / 100)) FROM visits", 0),
    ):
        for (value,) in ask(sql, dataset, accept_noise=True)["rows"]:
            assert abs(value - truth) < 20_000, sql


@pytest.mark.slow
def test_the_tick_is_that_of_all_statements(served: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows that the moments of a run follow from the work of each statement that it sends, whatever is stored."""
    journey: Any = served.journey
    open_account(served.ledger, "ticks", dataset="scaled", epsilon="10000")
    run, pace = journey.running._private.run, journey.running._pace.moments
    sent: list[str] = []
    paced: list[Work] = []

    def noted(snapshot: object, statement: Statement, **options: Any) -> Any:
        sent.append(statement.sql)
        return run(snapshot, statement, **options)

    def moments(self: object, work: Work) -> Any:
        paced.append(work)
        return pace(work)

    monkeypatch.setattr(journey.running._private, "run", noted)
    monkeypatch.setattr(type(journey.running._pace), "moments", moments)
    norms = "SELECT ward, COUNT(*) AS n, SUM(visit_id) AS v FROM visits GROUP BY ward"
    bounds = "SELECT ward, SUM(paid) AS s, AVG(paid) AS a, COUNT(*) AS n FROM visits GROUP BY ward"
    joined = "SELECT p.sex, AVG(v.paid) AS a FROM visits v JOIN people p ON v.person_id = p.person_id GROUP BY p.sex"
    hidden = "SELECT p.town, COUNT(*) AS n FROM visits v JOIN people p ON v.person_id = p.person_id GROUP BY p.town"
    both = f"WITH a AS ({norms}), b AS ({joined}) SELECT a.ward, a.n, b.sex, b.a FROM a, b"
    for sql, statements in (
        (norms, 2),
        (bounds, 3),
        (norms.replace("COUNT(*)", "COUNT(paid)"), 1),
        (bounds.replace("AVG(paid)", "VARIANCE(paid)"), 1),
        (joined, 2),  # the histogram of values is stored
        (hidden, 2),
        (both.replace("AVG(v.paid)", "STDDEV(v.paid)"), 1),
    ):
        sent.clear()
        paced.clear()
        asked = question(sql, "ticks", dataset="scaled", epsilon="20", accept_noise=True)
        admitted = journey.admit(asked)
        journey.complete(admitted)
        assert len(sent) == statements, sql
        (work,) = paced
        prepared: Prepared = admitted.asked.prepared
        of_values = {
            statement.sql: work_of([histogram.bounded]).unit_nanoseconds
            for histogram, statement in zip(prepared.values.histograms, prepared.values.statements, strict=True)
        } if prepared.values is not None else {}  # fmt: skip
        first = [of_values[text] for text in sent if text in of_values]
        # A histogram of norms shares its pass with the sums of its core.
        alone = sorted(work_of([core]).unit_nanoseconds for core in prepared.cores)
        count = len(sent) - len(first)
        chosen = [core for core in prepared.cores if core.norms]
        shared = work_of(prepared.cores, first=chosen, apart=prepared.apart).unit_nanoseconds
        later = sum(alone[:count]) if count <= len(alone) else shared
        assert later == sum(alone[:count]) or later > sum(alone), sql
        assert work.unit_nanoseconds >= (sum(first) + later) * (1 - 1e-9), sql
