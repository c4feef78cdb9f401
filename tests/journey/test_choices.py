"""Keys chosen by noisy scores, over the whole journey: what is said and charged, and which stored releases serve."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import pytest

from mechanisms.families import NoiseFamily
from privacy.events import BoundedRangeEvent
from privacy.refusal import Refused
from server.services import Services
from tests.journey.clinic import answer_to, attach, open_account, question

DATASET = """\
version: 2
dataset: mall
unit: {table: people, key: person_id}
tables:
  people:
    source: {file: people.csv}
    key: person_id
    columns:
      person_id: {type: integer, nullable: false}
  visits:
    source: {file: visits.csv}
    columns:
      person_id: {type: integer, nullable: false}
      shop: {type: text, keys: [a, b, c, d, e], nullable: false}
      hour: {type: integer, bounds: [0, 23]}
      name: {type: text}
    references: {person_id: people.person_id}
    contribution: {rows_per_unit: 12, groups_per_unit: 4, rows_per_unit_and_group: 3}
policy: {epsilon_default: "1", epsilon_max: "100", delta_per_query: "1e-8"}
"""
TOP = "SELECT shop FROM visits GROUP BY shop ORDER BY COUNT(*) DESC LIMIT 2"
COUNTS = "SELECT shop, COUNT(*) AS n FROM visits GROUP BY shop"
SHARES = {"a": 1, "b": 2, "c": 3, "d": 1, "e": 1}


@pytest.fixture(scope="module")
def mall(services: Services, tmp_path_factory: pytest.TempPathFactory) -> str:
    """3,000 people: c is visited three times by each, b twice."""
    folder = tmp_path_factory.mktemp("mall")
    people = range(3_000)
    rows = [f"{i},{shop},{9 + i % 2 * 3},n\n" for i in people for shop in "bbccc"]
    (folder / "people.csv").write_text("person_id\n" + "".join(f"{i}\n" for i in people))
    (folder / "visits.csv").write_text("person_id,shop,hour,name\n" + "".join(rows))
    (folder / "mall.yaml").write_text(DATASET)
    attach(services, folder / "mall.yaml")
    for name in ("chooser", "again", "counter", "third"):
        open_account(services.ledger, name, dataset="mall")
    return "mall"


def ask(services: Services, sql: str, who: str, **options: Any) -> dict[str, Any]:
    """The answer to a text."""
    return answer_to(services, question(sql, who, dataset="mall", **options))


def test_a_choice_releases_keys_and_says_how_well(services: Services, mall: str) -> None:
    """Shows the keys in order, no number of theirs, and a promise that the estimate makes too, before the charge."""
    estimate: Any = services.journey.estimate(question(TOP, "chooser", dataset=mall, report=True))
    assert "chosen by noise" in json.dumps(estimate["plan"])
    answer = ask(services, TOP, "chooser")
    assert answer["rows"] == [["c"], ["b"]]
    assert [(one["name"], one["kind"]) for one in answer["columns"]] == [("shop", "key")]
    (told,) = answer["provenance"]["choices"]
    assert told == estimate["choices"][0]
    assert (told["score"], told["shown"], told["candidates"], told["of"]) == ("COUNT(*)", 2, 5, "rows")
    assert 0 < told["within"] < 300
    assert "groups_chosen" in {one["code"] for one in answer["warnings"]}
    (mechanism,) = answer["provenance"]["mechanisms"]
    assert (mechanism["mechanism"], mechanism["sensitivity"]) == ("exponential_mechanism", "linf 3")
    assert answer["accounting"]["charged"][0]["epsilon"] == estimate["price"]["epsilon"]
    (release,) = services.ledger.releases_of(answer["id"])
    (event,) = release.events
    assert isinstance(event, BoundedRangeEvent)
    assert event.draws == 2


def test_the_same_choice_is_answered_from_its_release(services: Services, mall: str) -> None:
    """Shows that another spelling of the same question is free, and gives the same keys."""
    del mall
    first = ask(services, TOP, "again")
    again = ask(services, TOP.replace("COUNT(*)", "COUNT(1)").replace("shop FROM", "shop AS s FROM"), "again")
    assert again["rows"] == first["rows"]
    assert again["accounting"]["reused"]


def test_stored_counts_go_on_answering(services: Services, mall: str) -> None:
    """Shows that who has the counts pays nothing for their order: it is that of the counts, as in earlier versions."""
    del mall
    counts = ask(services, COUNTS, "counter")
    answer = ask(services, TOP, "counter")
    assert answer["accounting"]["reused"]
    assert answer["provenance"]["releases"] == counts["provenance"]["releases"]
    assert "choices" not in answer["provenance"]
    estimate: Any = services.journey.estimate(question(TOP, "counter", dataset="mall"))
    assert estimate["verdict"] == "free"


def test_a_width_is_promised_by_counts(services: Services, mall: str) -> None:
    """Shows that the same text with a half width is counts, as in earlier versions: a choice has no width."""
    del mall
    answer = ask(services, TOP, "third", epsilon=None, half_width=Fraction(2_000))
    assert answer["rows"] == [["c"], ["b"]]
    assert "choices" not in answer["provenance"]


def test_modes_and_other_spellings(services: Services, mall: str) -> None:
    """Shows MODE, MODE of groups and of a bounded number, and ARG_MAX over counts, with either family of noise."""
    del mall
    for noise, name in ((NoiseFamily.LAPLACE, "permute_and_flip"), (NoiseFamily.GAUSSIAN, "exponential_mechanism")):
        many: dict[str, Any] = {"noise": noise, "epsilon": Fraction(5)}
        answer = ask(services, "SELECT MODE(shop) FROM visits", "third", **many)
        assert answer["rows"] == [["c"]]
        assert answer["provenance"]["mechanisms"][0]["mechanism"] == name
        per = ask(services, "SELECT shop, MODE(hour) AS h FROM visits WHERE shop < 'd' GROUP BY shop", "third", **many)
        assert [row[0] for row in per["rows"]] == ["a", "b", "c"]
        assert {row[1] for row in per["rows"][1:]} <= {9, 12}
        best = "SELECT ARG_MAX(shop, n) AS best FROM (SELECT shop, COUNT(*) AS n FROM visits GROUP BY 1)"
        assert ask(services, best, "third", **many)["rows"] == [["c"]]


def test_histograms_of_levels_add_up_and_modes_share_the_price(services: Services, mall: str) -> None:
    """Shows each label of the total as the sum of that of the shops, noise included, and two choices beside them."""
    del mall
    sql = "SELECT shop, HISTOGRAM(hour, [9, 12]) AS h, MODE(hour) AS m FROM visits GROUP BY ROLLUP (shop)"
    answer = ask(services, sql, "third", epsilon=Fraction(1, 2))
    told = {row[0]: json.loads(row[1]) for row in answer["rows"]}
    assert set(told) == {*"abcde", None}
    assert told[None] == {label: sum(told[shop][label] for shop in "abcde") for label in told[None]}
    assert any(told["a"].values())
    assert {row[0]: row[2] for row in answer["rows"]}[None] in range(24)
    assert "levels_apart" in {one["code"] for one in answer["warnings"]}
    assert len(answer["provenance"]["releases"]) == 3
    (charge,) = answer["accounting"]["charged"]
    assert 0 < Fraction(charge["epsilon"]) <= Fraction(1, 2)


def test_counts_of_levels_add_up_beside_medians(services: Services, mall: str) -> None:
    """Shows the total as the sum of the shops, noise included, an interval for every cell, and a release for medians
    of each level beside that of all counts."""
    del mall
    sql = "SELECT shop, COUNT(*) AS n, MEDIAN(hour) AS m, AVG(hour) AS a FROM visits GROUP BY ROLLUP (shop)"
    answer = ask(services, sql, "third", epsilon=Fraction(1, 5), accept_noise=True)
    counts = {row[0]: row[1] for row in answer["rows"]}
    assert counts[None] == sum(counts[shop] for shop in "abcde")
    assert all(low[1] is not None and low[2] is not None for low in answer["lows"])
    assert len(answer["provenance"]["releases"]) == 3
    assert [one["code"] for one in answer["warnings"]].count("levels_apart") == 1


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT shop, MODE(hour), COUNT(*) FROM visits GROUP BY GROUPING SETS ((shop), (shop))",
        "SELECT MODE(DISTINCT hour) FROM visits",
        "SELECT MODE(hour), hour FROM visits",
        "SELECT MODE(person_id) FROM visits",
        "SELECT ARG_MAX(shop, hour) FROM visits",
        "SELECT APPROX_TOP_K(shop, 21) FROM visits",
    ],
)
def test_what_is_not_a_choice_of_public_groups_is_refused(services: Services, mall: str, sql: str) -> None:
    """Shows that values which are not public, rows of people and mixtures are refused, and cost nothing."""
    with pytest.raises(Refused):
        services.journey.estimate(question(sql, "third", dataset=mall))
