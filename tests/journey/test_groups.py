"""No row leaves its group in silence: every group of every key, against the rows themselves.

The data is small and the noise of epsilon 100 is far below one half, so released counts are the true ones.
"""

from __future__ import annotations

import csv
import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from server.services import DatasetRefused, Services
from tests.journey.clinic import answer_to, attach, open_account, question, services_of

DATASET = """\
version: 2
dataset: DATASET
unit: {table: people, key: person_id}
tables:
  people:
    source: {file: people.csv}
    key: person_id
    columns:
      person_id: {type: integer, nullable: false}
      sex: {type: text, keys: [female, male]}
      level: {type: integer, keys: {range: [0, 3], other: -1}}
      ward: {type: text, keys: {table: wards, column: ward, other: null}}
      clinic: {type: text, keys: {values: [a, b], other: elsewhere}}
      day: {type: date, keys: {range: ["2024-01-01", "2024-01-03"], other: null}}
      smoker: {type: boolean}
      region: {type: text, keys: [north, south], nullable: false}
      score: {type: integer}
  wards:
    public: true
    source: {file: wards.csv}
    columns:
      ward: {type: text}
policy: {epsilon_default: "1", epsilon_max: "100"}
"""
OLD = (
    DATASET.replace("version: 2\n", "")
    .replace(", other: -1", "")
    .replace(", other: null", "")
    .replace("keys: {values: [a, b], other: elsewhere}", "keys: [a, b, c]")
)

Row = dict[str, Any]


def rows() -> list[Row]:
    """People with missing values, and with values outside of the declared keys."""
    r = random.Random(7)
    return [
        {
            "person_id": person,
            "sex": r.choice(["female", "male", None]),
            "level": r.choice([0, 1, 2, 3, 9, -4, None]),
            "ward": r.choice(["w1", "w2", "w9", None]),
            "clinic": r.choice(["a", "b", "c", None]),
            "day": r.choice(["2024-01-01", "2024-01-03", "2023-06-05", None]),
            "smoker": r.choice([True, False, None]),
            "region": r.choice(["north", "south"]),
            "score": r.choice([None, -5, 0, 5, 50]),
        }
        for person in range(300)
    ]


PEOPLE = rows()


def write(folder: Path, name: str, text: str) -> Path:
    """The files of a dataset."""
    folder.mkdir(exist_ok=True)
    with (folder / "people.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(PEOPLE[0]))
        writer.writeheader()
        writer.writerows(
            {key: "" if value is None else str(value).lower() for key, value in row.items()} for row in PEOPLE
        )
    (folder / "wards.csv").write_text("ward\nw1\nw2\nw3\n")
    path = folder / f"{name}.yaml"
    path.write_text(text.replace("DATASET", name))
    return path


@pytest.fixture(scope="module")
def groups(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    """Services with the dataset as a file of version 2, and as one of version 1."""
    home = tmp_path_factory.mktemp("groups")
    with services_of(home) as services:
        for name, text in (("new", DATASET), ("old", OLD)):
            attach(services, write(home / "sources", name, text))
            open_account(services.ledger, "ann", epsilon="100000", dataset=name)
        yield services


def answered(services: Services, sql: str, dataset: str = "new", **options: Any) -> dict[str, Any]:
    """The answer with noise that no rounding shows."""
    return answer_to(services, question(sql, "ann", dataset=dataset, epsilon="100", **options))


def counted(services: Services, sql: str, dataset: str = "new") -> dict[Any, int]:
    """Groups with their counts, those of nobody left out."""
    found = {tuple(row[:-1]): row[-1] for row in answered(services, sql, dataset)["rows"]}
    return {key: count for key, count in found.items() if count}


@dataclass(frozen=True)
class Case:
    """A key as SQL and in Python."""

    sql: str
    value: Callable[[Row], Any]


def known(row: Row, column: str, keys: tuple[Any, ...], other: Any) -> Any:
    """The group of a gathered column."""
    value = row[column]
    return value if value is None or value in keys else other


def level(row: Row) -> Any:
    """Its gathered level."""
    return known(row, "level", (0, 1, 2, 3), -1)


CASES = [
    Case("sex", lambda r: r["sex"]),
    Case("COALESCE(sex, 'none')", lambda r: r["sex"] or "none"),
    Case("sex IS NULL", lambda r: r["sex"] is None),
    Case("sex IS NOT NULL", lambda r: r["sex"] is not None),
    Case("CASE WHEN sex IS NULL THEN 'missing' WHEN sex = 'male' THEN 'm' ELSE 'f' END",
         lambda r: {None: "missing", "male": "m", "female": "f"}[r["sex"]]),
    Case("CASE sex WHEN 'male' THEN 'm' END", lambda r: "m" if r["sex"] == "male" else None),
    Case("NULLIF(sex, 'male')", lambda r: None if r["sex"] == "male" else r["sex"]),
    Case("sex = 'male'", lambda r: None if r["sex"] is None else r["sex"] == "male"),
    Case("UPPER(sex) || '!'", lambda r: None if r["sex"] is None else r["sex"].upper() + "!"),
    Case("sex || region", lambda r: None if r["sex"] is None else r["sex"] + r["region"]),
    Case("level", level),
    Case("COALESCE(level, 7)", lambda r: 7 if r["level"] is None else level(r)),
    Case("level IS NULL", lambda r: r["level"] is None),
    Case("level > 2", lambda r: None if r["level"] is None else r["level"] > 2),
    Case("level * 10 + 1", lambda r: None if r["level"] is None else level(r) * 10 + 1),
    Case("FLOOR(level / 2)", lambda r: None if r["level"] is None else level(r) // 2),
    Case("CASE WHEN level < 0 THEN 'below' WHEN level > 3 THEN 'above' ELSE 'inside' END",
         lambda r: "inside" if r["level"] is None else
         "below" if r["level"] < 0 else "above" if r["level"] > 3 else "inside"),
    Case("ward", lambda r: known(r, "ward", ("w1", "w2", "w3"), None)),
    Case("COALESCE(ward, 'none')", lambda r: known(r, "ward", ("w1", "w2", "w3"), None) or "none"),
    Case("clinic", lambda r: known(r, "clinic", ("a", "b"), "elsewhere")),
    Case("clinic || sex", lambda r: None if r["clinic"] is None or r["sex"] is None
         else known(r, "clinic", ("a", "b"), "elsewhere") + r["sex"]),
    Case("day IS NULL", lambda r: r["day"] is None),
    Case("MONTH(day)", lambda r: None if r["day"] is None else int(r["day"][5:7])),
    Case("smoker", lambda r: r["smoker"]),
    Case("smoker OR sex = 'male'", lambda r: True if r["smoker"] or r["sex"] == "male" else
         None if None in (r["smoker"], r["sex"]) else False),
    Case("NOT smoker", lambda r: None if r["smoker"] is None else not r["smoker"]),
    Case("COALESCE(smoker, region = 'north')",
         lambda r: r["region"] == "north" if r["smoker"] is None else r["smoker"]),
    Case("region", lambda r: r["region"]),
    Case("SIGN(score)", lambda r: None if r["score"] is None else (r["score"] > 0) - (r["score"] < 0)),
    Case("CAST(CAST(sex AS VARCHAR) AS INTEGER) IS NULL", lambda r: True),
    Case("GREATEST(0, LEAST(score, 6))", lambda r: None if r["score"] is None else max(0, min(r["score"], 6))),
    Case("6 // GREATEST(-1, LEAST(score, 2))",
         lambda r: None if r["score"] in (None, 0) else int(6 / max(-1, min(r["score"], 2)))),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.sql)
@pytest.mark.sparse(4)
def test_no_row_leaves_its_group(groups: Services, case: Case) -> None:
    """Shows every group of a key with its true count, NULL and the group of other values included."""
    expected = Counter((case.value(row),) for row in PEOPLE)
    assert expected == counted(groups, f"SELECT {case.sql} AS k, COUNT(*) AS n FROM people GROUP BY k")


def test_two_keys_and_conditions(groups: Services) -> None:
    """Shows groups of two keys under a condition that sees the stored value."""
    sql = "SELECT level, sex, COUNT(*) AS n FROM people WHERE level > 3 OR sex IS NULL GROUP BY ALL"
    expected = Counter(
        (level(row), row["sex"])
        for row in PEOPLE
        if row["sex"] is None or (row["level"] is not None and row["level"] > 3)
    )
    assert expected == counted(groups, sql)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("sex", lambda r: r["sex"]),
        ("level", lambda r: known(r, "level", (0, 1, 2, 3), None)),
        ("ward", lambda r: known(r, "ward", ("w1", "w2", "w3"), None)),
        ("clinic", lambda r: r["clinic"]),
        ("COALESCE(level, 9)", lambda r: 9 if level(r) in (None, -1) else level(r)),
    ],
)
def test_a_dataset_of_version_1_keeps_its_rows(groups: Services, key: str, value: Callable[[Row], Any]) -> None:
    """Shows that what was attached from an old file answers as before, and that values outside count as NULL."""
    expected = Counter((value(row),) for row in PEOPLE)
    assert expected == counted(groups, f"SELECT {key} AS k, COUNT(*) AS n FROM people GROUP BY k", "old")


def test_a_condition_on_a_key_sees_the_stored_value(groups: Services) -> None:
    """Shows that gathering is for groups alone: WHERE and sums read what is stored."""
    (row,) = answered(groups, "SELECT COUNT(*) AS n FROM people WHERE level = 9")["rows"]
    assert row == [sum(person["level"] == 9 for person in PEOPLE)]


@pytest.mark.sparse(3)
@pytest.mark.parametrize(
    ("old", "new", "column"),
    [
        (", other: -1", "", "level"),
        ("keys: {table: wards, column: ward, other: null}", "keys: {table: wards, column: ward}", "ward"),
        ("{values: [a, b], other: elsewhere}", "[a, b]", "clinic"),
        ('["2024-01-01", "2024-01-03"], other: null', '["2024-01-01", "2024-01-03"]', "day"),
        ("keys: {range: [0, 3], other: -1}", "keys: [0, 1, 2, 3, 9]", "level"),
    ],
)
def test_values_outside_of_keys_are_refused_at_attach(
    groups: Services, tmp_path: Path, old: str, new: str, column: str
) -> None:
    """Shows that without another group a value that is none of the keys refuses the data, and nothing is served."""
    assert old in DATASET
    path = write(tmp_path, "refused", DATASET.replace(old, new))
    with pytest.raises(DatasetRefused) as caught:
        attach(groups, path)
    (finding,) = caught.value.findings
    assert finding.field == f"tables.people.{column}"
    assert "not in the declared keys" in finding.why
    assert any("other:" in line for line in finding.instead)
    assert groups.catalogue.get("refused") is None


def test_an_upgraded_file_means_the_same(groups: Services, tmp_path: Path) -> None:
    """Shows that the upgrade of the old file attaches as the same data with the same groups."""
    from server.datasets import upgrade

    result = upgrade(OLD.replace("DATASET", "old"))
    assert result.kept
    before = groups.catalogue.get("old")
    assert before is not None
    attach(groups, write(tmp_path, "old", result.text))
    after = groups.catalogue.get("old")
    assert after is not None
    assert (after.data_version, after.tables) == (before.data_version, before.tables)


# --- groups of nobody --------------------------------------------------------------------------------------------

AGES = """\
version: 2
dataset: ages
unit: {table: people, key: person_id}
tables:
  people:
    source: {file: people.csv}
    key: person_id
    columns:
      person_id: {type: integer, nullable: false}
      age: {type: integer, keys: {range: [0, 119]}, nullable: false}
      score: {type: number, bounds: [0, 10], nullable: false}
policy: {epsilon_default: "1", epsilon_max: "100"}
"""
OLDEST = 40


@pytest.fixture(scope="module")
def ages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    """4,000 people of 40 ages, declared from 0 to 119: most public groups are empty."""
    home = tmp_path_factory.mktemp("ages")
    source = home / "sources"
    source.mkdir()
    lines = [f"{person},{person % OLDEST},{person % 11}" for person in range(4_000)]
    (source / "people.csv").write_text("person_id,age,score\n" + "\n".join(lines) + "\n")
    (source / "ages.yaml").write_text(AGES)
    with services_of(home) as services:
        attach(services, source / "ages.yaml")
        open_account(services.ledger, "ann", epsilon="100000", dataset="ages")
        yield services


MEAN = "SELECT AVG(n) AS mean, COUNT(*) AS groups FROM (SELECT age, COUNT(*) AS n FROM people GROUP BY age)"


def codes(answer: dict[str, Any]) -> list[str]:
    """The codes of its warnings."""
    return [warning["code"] for warning in answer["warnings"]]


def test_an_aggregate_over_empty_public_groups_is_not_silent(ages: Services) -> None:
    """Shows that a mean over public groups counts those of nobody and says so, in the estimate too."""
    answer = answered(ages, MEAN, "ages")
    assert answer["rows"][0][1] == 120
    assert "empty_groups_counted" in codes(answer)
    (found,) = [w for w in answer["warnings"] if w["code"] == "empty_groups_counted"]
    assert "120" in found["what"]
    assert any("nonempty" in line for line in found["instead"])
    estimate = ages.journey.estimate(question(MEAN, "ann", dataset="ages"))
    assert "empty_groups_counted" in codes(estimate)
    limited = answered(ages, "SELECT age, COUNT(*) AS n FROM people GROUP BY age ORDER BY n LIMIT 3", "ages")
    assert "empty_groups_counted" in codes(limited)
    filtered = MEAN + " WHERE n > 20"
    assert "empty_groups_counted" not in codes(answered(ages, filtered, "ages"))
    assert codes(answered(ages, "SELECT age, COUNT(*) AS n FROM people GROUP BY age", "ages")) == []


def test_nonempty_leaves_out_groups_of_nobody(ages: Services) -> None:
    """Shows that the mean is that of the groups with people, without an interval, and at no further cost."""
    answered(ages, MEAN, "ages")
    answer = answered(ages, MEAN, "ages", nonempty=True)
    mean, groups = answer["rows"][0]
    assert abs(groups - OLDEST) <= 6
    assert abs(mean - 100) < 15
    assert answer["lows"] == [[None, None]]
    assert codes(answer) == ["empty_groups_left_out"]
    assert answer["accounting"]["reused"], "the same release as without nonempty, cut afterwards"
    shown = answered(ages, "SELECT age, COUNT(*) AS n FROM people GROUP BY age", "ages", nonempty=True)
    assert {row[0] for row in shown["rows"]} >= set(range(OLDEST))
    assert all(low[1] >= 0 for low in shown["lows"])


@pytest.mark.slow
def test_nonempty_shows_its_price(ages: Services) -> None:
    """Shows that a question without a count gets one, and that the estimate lists it with its share."""
    sql = "SELECT age, SUM(score) AS s FROM people GROUP BY age"
    plain = ages.journey.estimate(question(sql, "ann", dataset="ages"))
    asked = ages.journey.estimate(question(sql, "ann", dataset="ages", nonempty=True))
    assert len(asked["statistics"]) >= len(plain["statistics"])
    answers = [text for statistic in asked["statistics"] for text in statistic["answers"]]
    assert "COUNT(*)" in answers
    answer = answered(ages, sql, "ages", nonempty=True)
    assert abs(len(answer["rows"]) - OLDEST) <= 6
    assert [column["name"] for column in answer["columns"]] == ["age", "s"]


@pytest.mark.slow
def test_an_answer_without_any_hidden_group_says_why(groups: Services) -> None:
    """Hidden groups that are all too small are not silent, and rows that HAVING left out are no such groups."""
    sql = "SELECT score + 1 AS k, COUNT(*) AS n FROM people WHERE person_id < 3 GROUP BY k"
    hidden = answer_to(groups, question(sql, "ann", dataset="new", epsilon="0.01"))
    assert not hidden["rows"]
    assert "no_group_shown" in codes(hidden)
    sql = "SELECT smoker, COUNT(*) AS n FROM people GROUP BY smoker HAVING COUNT(*) > 1000000"
    shown = answered(groups, sql, "new")
    assert not shown["rows"]
    assert "no_group_shown" not in codes(shown)


def test_counts_of_shown_groups_keep_their_promise(ages: Services) -> None:
    """Shows that intervals of counts that were shown because they are high hold the true count as often as they say.

    40 questions of 120 groups. The chance of fewer than 92 % of some thousand shown counts, at a promise of 95 %, is
    below 1e-6. Without the correction the empty groups among them never hold.
    """
    held = shown = empty = 0
    for number in range(40):
        sql = f"SELECT age, COUNT(*) AS n FROM people WHERE person_id < 4000 + {number} GROUP BY age"
        asked = question(sql, "ann", dataset="ages", epsilon="0.05", nonempty=True)
        answer = answer_to(ages, asked)
        for row, low, high in zip(answer["rows"], answer["lows"], answer["highs"], strict=True):
            truth = 100 if row[0] < OLDEST else 0
            shown += 1
            empty += truth == 0
            held += low[1] <= truth <= high[1]
    assert empty > 10
    assert shown > 1_000
    assert held >= 0.92 * shown


def test_levels_add_up_and_cost_what_the_finest_does(services: Services, analyst: Callable[..., str]) -> None:
    """Shows children that add up to their parents with real noise, intervals of parents, one price, and reuse.

    The release of several levels serves the same levels again; that of the finest alone serves them too.
    """
    who = analyst()
    sql = "SELECT sex, age > 50 AS old, GROUPING(sex, old) AS level, COUNT(*) AS n, SUM(age) AS s, AVG(age) AS a "
    answer = answer_to(services, question(sql + "FROM people GROUP BY ROLLUP (sex, old)", who, epsilon="0.5"))
    assert [charge["epsilon"] for charge in answer["accounting"]["charged"]] == ["0.5"]
    assert len(answer["provenance"]["releases"]) == 1
    rows = answer["rows"]
    levels = {level: [row for row in rows if row[2] == level] for level in (0, 1, 3)}
    (total,) = levels[3]
    for column in (3, 4):
        assert total[column] == sum(row[column] for row in levels[1]) == sum(row[column] for row in levels[0])
    assert len(levels[0]) == 2 * len(levels[1])
    place = rows.index(total)
    assert answer["lows"][place][3] < total[3] < answer["highs"][place][3]
    averages = [row[5] for row in levels[0] if row[5] is not None]
    assert min(averages) <= total[5] <= max(averages)
    finest = "SELECT age > 50 AS o, sex, SUM(age), COUNT(*), AVG(age), COUNT(age) FROM people GROUP BY 1, 2"
    again = answer_to(
        services, question("SELECT * FROM (" + sql + "FROM people GROUP BY ROLLUP (sex, old))", who, epsilon="0.5")
    )
    assert again["accounting"]["charged"] == []
    other = analyst()
    alone = answer_to(services, question(finest, other, epsilon="0.5"))
    assert [charge["epsilon"] for charge in alone["accounting"]["charged"]] == ["0.5"]
    served = answer_to(services, question(sql + "FROM people GROUP BY ROLLUP (sex, old)", other, epsilon="0.5"))
    assert served["accounting"]["charged"] == []
    assert served["provenance"]["releases"] == alone["provenance"]["releases"]


def test_levels_of_their_own_share_one_price(services: Services, analyst: Callable[..., str]) -> None:
    """Shows that aggregates which do not add up are released for each level, with intervals and one charge."""
    sql = "SELECT GROUPING(sex) AS all_of_them, AVG(age) AS a, STDDEV_POP(age) AS s FROM people GROUP BY ROLLUP (sex)"
    answer = answer_to(services, question(sql, analyst(), epsilon="0.5"))
    assert [charge["epsilon"] for charge in answer["accounting"]["charged"]] == ["0.5"]
    assert len(answer["provenance"]["releases"]) == 2
    assert "levels_apart" in [warning["code"] for warning in answer["warnings"]]
    place = [row[0] for row in answer["rows"]].index(1)
    for column in (1, 2):
        assert answer["lows"][place][column] <= answer["rows"][place][column] <= answer["highs"][place][column]


@pytest.mark.parametrize(
    "sql",
    [
        "PIVOT people ON region USING COUNT(*) GROUP BY smoker",
        "SELECT * FROM (PIVOT people ON region USING COUNT(*) GROUP BY smoker)",
    ],
)
def test_a_pivot_without_a_list_has_the_declared_values(groups: Services, sql: str) -> None:
    """Shows that the engine reads such a text, all the way to its answer."""
    answer = answered(groups, sql)
    assert [column["name"] for column in answer["columns"]] == ["smoker", "north", "south"]
    true = Counter((person["smoker"], person["region"]) for person in PEOPLE)
    assert {(row[0], *row[1:]) for row in answer["rows"]} == {
        (smoker, true[smoker, "north"], true[smoker, "south"]) for smoker in (True, False, None)
    }
