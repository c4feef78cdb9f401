"""Queries of public tables alone: answered for free, and by workers that never open a file with rows of people."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engines import shell
from privacy.refusal import ExecutionFailed, Refused
from server import public_tables
from server.services import Services
from tests.journey.clinic import answer_to, attach, open_account, question

DATASET = """\
version: 2
dataset: wards
unit: {table: people, key: person_id}
tables:
  people:
    source: {file: folk.csv}
    key: person_id
    columns:
      person_id: {type: integer, nullable: false}
      ward: {type: text, keys: {table: wards, column: ward}}
  wards:
    source: {file: wards.csv}
    public: true
    key: ward
    columns:
      ward: {type: text, nullable: false}
      beds: {type: integer}
      rate: {type: number}
      opened: {type: date}
policy: {epsilon_default: "0.1", epsilon_max: "100", delta_per_query: "1e-8"}
"""


@pytest.fixture(scope="module")
def wards(services: Services, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A dataset with a public table, and a principal who may ask it."""
    folder = tmp_path_factory.mktemp("wards")
    (folder / "folk.csv").write_text("person_id,ward\n" + "".join(f"{i},{'ab'[i % 2]}\n" for i in range(400)))
    (folder / "wards.csv").write_text("ward,beds,rate,opened\na,10,0.5,2020-01-31\nb,30,,2021-06-01\nc,,2.5,\n")
    (folder / "wards.yaml").write_text(DATASET)
    attach(services, folder / "wards.yaml")
    open_account(services.ledger, "reader", dataset="wards")
    return "reader"


def ask(services: Services, sql: str, **options: Any) -> dict[str, Any]:
    """The answer to a text."""
    return answer_to(services, question(sql, "reader", dataset="wards", **options))


def test_a_public_table_is_read_for_free(services: Services, wards: str) -> None:
    """Shows its values as they are, without noise, intervals, releases or a charge; NULLs and dates included."""
    del wards
    answer = ask(services, "SELECT * FROM wards ORDER BY ward")
    assert answer["rows"] == [["a", 10, 0.5, "2020-01-31"], ["b", 30, None, "2021-06-01"], ["c", None, 2.5, None]]
    assert [column["kind"] for column in answer["columns"]] == ["key"] * 4
    assert answer["accounting"]["charged"] == []
    assert answer["provenance"]["releases"] == answer["provenance"]["mechanisms"] == []
    assert ask(services, "SELECT SUM(beds) AS n, COUNT(*) AS k FROM wards")["rows"] == [[40, 3]]


def test_an_estimate_says_that_it_costs_nothing(services: Services, wards: str) -> None:
    """Shows the price of a query that reads no rows of people, before it is asked."""
    asked = question("SELECT ward, beds * 2 AS d FROM wards", wards, dataset="wards")
    estimate: Any = services.journey.estimate(asked)
    assert estimate["price"]["epsilon"] == "0"


def test_a_release_meets_a_public_table(services: Services, wards: str) -> None:
    """Shows intervals of numbers per bed, and the second question served by the release of the first."""
    del wards
    sql = "SELECT w.ward, p.n, p.n / w.beds AS per_bed FROM (SELECT ward, COUNT(*) AS n FROM people GROUP BY ward) p "
    answer = ask(services, sql + "JOIN wards w ON w.ward = p.ward WHERE w.beds IS NOT NULL ORDER BY w.ward")
    (ward, n, per_bed), _ = answer["rows"]
    assert ward == "a"
    assert per_bed == pytest.approx(n / 10)
    # The ends of a count are rounded outwards; those of the quotient are not.
    assert answer["lows"][0][2] == pytest.approx(answer["lows"][0][1] / 10, abs=0.1)
    assert answer["highs"][0][2] == pytest.approx(answer["highs"][0][1] / 10, abs=0.1)
    again = ask(services, "SELECT ward, COUNT(*) AS n FROM people GROUP BY ward ORDER BY ward")
    assert again["accounting"]["charged"] == []
    assert again["rows"][0][1] == n


def test_the_worker_of_outer_queries_gets_values_and_no_file(
    services: Services, wards: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shows that no request to it names a path: it could not tell where rows of people are."""
    del wards
    sent: list[str] = []
    seen: Callable[..., Any] = shell._request

    def spy(*arguments: Any) -> Any:
        request = seen(*arguments)
        sent.append(repr(request))
        return request

    monkeypatch.setattr(shell, "_request", spy)
    ask(services, "SELECT MAX(rate) AS most, MIN(opened) AS first FROM wards")
    assert sent
    assert not any("duckdb" in request or "/" in request for request in sent)


def test_a_public_table_beyond_the_limit_is_refused(
    services: Services, wards: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shows the refusal before anything runs."""
    monkeypatch.setattr(public_tables, "CELLS_MAX", 11)
    with pytest.raises(Refused) as caught:
        services.journey.estimate(question("SELECT beds - 1 AS b FROM wards", wards, dataset="wards"))
    assert [finding.code for finding in caught.value.findings] == ["too_large"]


def test_a_protected_table_is_no_public_one(services: Services, wards: str) -> None:
    """Shows that the reader of public tables does not find one that is not declared public."""
    del wards
    dataset = services.catalogue.get("wards")
    assert dataset is not None
    snapshot: Path = services.catalogue.snapshot(dataset)  # type: ignore[attr-defined]
    with pytest.raises(LookupError):
        public_tables.public_table(snapshot, "people", cells_max=10**6)


def test_declared_groups_of_people_are_free(services: Services, wards: str) -> None:
    """Shows the keys that a table of people is declared to have: nothing is charged, and the answer says why."""
    del wards
    for sql in ("SELECT DISTINCT ward FROM people ORDER BY 1", "SELECT ward FROM people GROUP BY ward ORDER BY ward"):
        answer = ask(services, sql)
        # Nobody is in ward c; a ward may be missing too, as the declaration allows NULL.
        assert [row[0] for row in answer["rows"]] == ["a", "b", "c", None]
        assert answer["accounting"]["charged"] == []
        assert "groups_declared" in [warning["code"] for warning in answer["warnings"]]


@pytest.mark.parametrize(
    ("code", "sql"),
    [
        ("too_large", "SELECT a.x FROM range(101) AS a(x), range(100) AS b(x)"),
        ("unsupported_sql", "SELECT CAST(concat('x', x) AS DATE) AS d FROM range(5) AS t(x)"),
        ("unsupported_sql", "SELECT CAST(ward AS INTEGER) AS n FROM wards"),
    ],
)
def test_what_public_tables_cannot_answer_is_refused_and_not_failed(
    services: Services, wards: str, code: str, sql: str
) -> None:
    """Shows refusals with a reason: nothing about values that everybody knows has to be opaque."""
    with pytest.raises(Refused) as caught:
        services.journey.admit(question(sql, wards, dataset="wards"))
    assert [finding.code for finding in caught.value.findings] == [code]


def test_an_answer_as_long_as_may_be_is_given(services: Services, wards: str) -> None:
    """Shows the greatest number of rows, of a series whose end is not a part of it."""
    del wards
    assert len(ask(services, "SELECT x FROM range(10000) AS t(x)")["rows"]) == 10_000


LONG = "SELECT STRING_AGG(CAST(g.n AS VARCHAR), ',') OVER (ORDER BY g.n) AS t FROM generate_series(1, 2200) AS g(n)"
"""Ten megabytes in 2,200 rows: each has the numbers of all rows before it."""


def test_texts_that_grow_with_the_square_of_their_rows_are_not_kept(services: Services, wards: str) -> None:
    """Shows that an answer with far more text than was released is none: refused where all of it is public; else a
    failure after the charge, of which the release is kept, so that another question about it is free."""
    # An analyst of their own: releases of other tests must not answer what is to be charged here.
    open_account(services.ledger, "writer", dataset="wards")

    def ask(services: Services, sql: str) -> dict[str, Any]:
        return answer_to(services, question(sql, "writer", dataset="wards"))

    with pytest.raises(Refused) as refused:
        ask(services, LONG)
    assert refused.value.findings[0].code == "too_large"
    released = "(SELECT ward, COUNT(*) AS n FROM people WHERE ward <> 'c' GROUP BY ward)"
    with pytest.raises(ExecutionFailed) as failed:
        ask(services, f"SELECT q.t FROM {released} AS p CROSS JOIN ({LONG}) AS q WHERE p.ward = 'a' ORDER BY q.t")
    assert failed.value.started
    free = ask(services, f"SELECT ward, n FROM {released} AS p ORDER BY ward")
    assert [row[0] for row in free["rows"]][:2] == ["a", "b"]
    assert free["accounting"]["charged"] == []
    assert ask(services, LONG.replace("2200", "500"))["rows"][499][0].endswith(",499,500")
