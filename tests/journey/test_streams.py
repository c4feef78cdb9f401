"""Streams with real parts, over HTTP: one charge, ranges as they come, kept over restarts, refused clearly."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import httpx
import pytest

from accountant.filter import Branch, alive_branches
from accountant.states import QueryStatus
from mechanisms import gateway
from mechanisms.measurement import Integers
from mechanisms.randomness import BitSource
from mechanisms.sparse_vector import Hit, SparseRun
from mechanisms.streams.price import StreamNoise
from privacy.policy import ColumnType
from privacy.refusal import ExecutionFailed, Refused
from server.monitors.recovery import Recovery
from server.sealing import MONITORS, STREAMS, Seal, SealBroken
from server.store.resources import STREAMS as KEPT
from server.store.resources import StreamRow
from server.store.streams import Turn
from server.streams.cells import cells_asked
from server.streams.refusals import Comparing
from server.streams.sealing import Frame, state_of
from server.streams.streams import StreamQuestion, Streams
from server.streams.terms import Terms, Within
from tests.journey.clinic import PEOPLE, clinic_in
from tests.journey.watched import Clinic, restarted
from tests.work import counting_calls

VISITS = 7_500
"""One to four of each person, in turn, of less than 900 each."""
WHOLE = {"rows_per_unit": 4, "groups_per_unit": 4, "rows_per_unit_and_group": 4}
AGES: dict[str, Any] = {"table": "people", "columns": [{"name": "age", "low": 18, "high": 89}]}
EXACT = "100"
"""A price at which answers are the truth, but for a few."""


@pytest.fixture
def clinic(tmp_path: Path) -> Iterator[Clinic]:
    """A clinic of its own."""
    with clinic_in(tmp_path) as (services, path):
        yield Clinic(tmp_path, services, path)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clinic]:
    """A clinic whose data stay as they are, for tests with analysts of their own."""
    home = tmp_path_factory.mktemp("streams")
    with clinic_in(home) as (services, path):
        yield Clinic(home, services, path)


def opened(clinic: Clinic, who: str, key: str = "", **options: Any) -> httpx.Response:
    """Opens a stream of ages."""
    body = {"dataset": "clinic", **AGES, "epsilon": EXACT, "updates": 2, "queries": 20, **options}
    body = {name: value for name, value in body.items() if value is not None}
    return clinic.call(who, "POST", "/v1/streams", body, **({"Idempotency-Key": key} if key else {}))


def ages(low: int | None, high: int | None) -> dict[str, Any]:
    """One query."""
    return {"where": [{"key": "age", "low": low, "high": high}]}


def ask(clinic: Clinic, who: str, stream: str, *queries: dict[str, Any]) -> httpx.Response:
    """Queries of one."""
    return clinic.call(who, "POST", f"/v1/streams/{stream}/queries", {"queries": list(queries)})


def truth(clinic: Clinic, low: int, high: int) -> int:
    """How many people are of these ages."""
    lines = (clinic.path.parent / "people.csv").read_text().splitlines()[1:]
    return sum(low <= int(line.split(",")[1]) <= high for line in lines)


def streams_of(clinic: Clinic) -> Streams:
    """The streams of its services."""
    found = clinic.services.streams
    assert isinstance(found, Streams)
    return found


def test_the_life_of_a_stream(clinic: Clinic) -> None:
    """Shows one charge, free answers within their bound, repeats from what is stored, an update where the data moved,
    the state in which nothing is compared, what survives a restart, and the end."""
    account = clinic.person("ann")
    made = opened(clinic, "ann", key="once")
    assert made.status_code == 201, made.text
    stream = made.json()
    assert made.headers["location"] == f"/v1/streams/{stream['id']}"
    assert (stream["status"], stream["comparing"], stream["cells"], stream["updates_left"]) == ("settled", True, 72, 2)
    assert stream["keys"] == [{"name": "age", "type": "integer", "values": 72, "first": 18, "last": 89}]
    charged = clinic.spent(account)
    assert 0 < charged <= 100
    told = ask(clinic, "ann", stream["id"], ages(30, 49), {"where": []}, ages(30, 49)).json()
    first, whole, again = told["answers"]
    assert (told["compared"], first["found"]) == (2, "synopsis"), "one query is compared once"
    assert first == again
    assert abs(first["value"] - truth(clinic, 30, 49)) <= first["within"] == stream["within"]
    assert abs(whole["value"] - PEOPLE) <= 6 * whole["standard_error"] + 1
    repeated = ask(clinic, "ann", stream["id"], ages(30, 49)).json()["answers"][0]
    assert repeated == {**first, "repeated": True}
    clinic.grow(1_000)
    moved = ask(clinic, "ann", stream["id"], ages(30, 49)).json()
    (hit,) = moved["answers"]
    assert (hit["found"], moved["updates_left"]) == ("measured", 1)
    assert abs(hit["value"] - truth(clinic, 30, 49)) <= 3 * hit["within"]
    assert hit["data_version"] != first["data_version"]
    with restarted(clinic):
        kept = ask(clinic, "ann", stream["id"], ages(30, 49)).json()["answers"][0]
        assert kept == {**hit, "repeated": True}
        clinic.grow(1_000)
        last, other = ask(clinic, "ann", stream["id"], ages(30, 49), ages(18, 39)).json()["answers"]
        assert (last["found"], other["found"], other["within"]) == ("measured", "not_compared", None)
        shown = clinic.call("ann", "GET", f"/v1/streams/{stream['id']}").json()
        assert (shown["status"], shown["comparing"], shown["why"]) == ("settled", False, "its last update was made")
        assert shown["updates_left"] == 0
        assert clinic.spent(account) == charged
        assert opened(clinic, "ann", key="once").json()["id"] == stream["id"]
        closed = clinic.call("ann", "DELETE", f"/v1/streams/{stream['id']}").json()
        assert (closed["status"], closed["sql"], closed["keys"]) == ("closed", None, None)
        gone = ask(clinic, "ann", stream["id"], ages(30, 49))
        assert (gone.status_code, gone.json()["code"]) == (409, "conflict")
        assert clinic.spent(account) == charged
    row = clinic.services.registry.resource(KEPT, stream["id"])
    assert row is not None
    assert (row.frame, row.sealed) == (b"", b"")
    assert not clinic.services.registry.stream_answers(stream["id"], ["x"])


def test_what_is_charged_is_what_is_drawn_before_a_row_is_read(shared: Clinic, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows one reservation with the events of cells, comparisons and every update, with no engine, and the branch of
    rho gone: sessions beside other charges are proved for sums of epsilon and mu squared."""
    ann, account = shared.somebody()

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a row was read")

    with monkeypatch.context() as patch:
        patch.setattr(streams_of(shared).resources.private, "run", refuse)
        stream = opened(shared, ann, epsilon="2", updates=3).json()["id"]
    ledger = shared.services.ledger
    record = ledger.query(stream)
    assert record is not None
    assert record.state is QueryStatus.SETTLED
    (entry,) = [one for one in ledger.entries(account) if one.query_id == stream and "sparse_session/1" in one.details]
    assert entry.details.count('"laplace/1"') == 1 + 3
    found = ledger.account(account)
    assert alive_branches(found.spent, found.branches) == (Branch.PURE, Branch.GAUSSIAN, Branch.MIXED)
    assert found.spent.pure == Fraction(2) * 10**12


def test_every_range_is_one_look_at_the_same_statement(shared: Clinic, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows that whatever is asked one statement runs, once for all queries of a request, and none for stored ones;
    and that a stored answer takes no more than the work of finding it."""
    ann, _ = shared.somebody()
    stream, ran = opened(shared, ann).json()["id"], list[str]()
    streams = streams_of(shared)
    genuine = streams.resources.private.run

    def run(snapshot: Any, statement: Any, **options: Any) -> Any:
        ran.append(statement.sql)
        return genuine(snapshot, statement, **options)

    monkeypatch.setattr(streams.resources.private, "run", run)
    ask(shared, ann, stream, ages(20, 20), ages(18, None), {"where": [{"key": "AGE", "values": [30, 31]}]})
    ask(shared, ann, stream, ages(None, 40))
    assert len(ran) == 2
    assert len(set(ran)) == 1
    ask(shared, ann, stream, ages(None, 40), ages(20, 20))
    assert len(ran) == 2
    row = shared.services.registry.resource(KEPT, stream)
    assert row is not None
    told, calls = counting_calls(lambda: streams.begin(row, ((Within(key="age", low=20, high=20),),), by=ann))
    assert isinstance(told, tuple)
    assert calls < 8_000


def test_the_noise_of_the_threshold_is_drawn_once(clinic: Clinic, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows by a recorder at the gateway that comparisons of all requests, before and after a process that died between
    measuring and storing, are with the noise of one threshold and the scales that were charged; what died is counted,
    was seen by nobody, and leaves the stream as it was."""
    clinic.person("ann")
    seen: list[tuple[SparseRun, int]] = []
    genuine = gateway.compare

    def compare(run: SparseRun, distances: Integers, bits: BitSource) -> tuple[Hit, ...]:
        seen.append((run, run.threshold.noise.value >> (run.threshold.noise.length - 64)))
        return genuine(run, distances, bits)

    monkeypatch.setattr(gateway, "compare", compare)
    stream = opened(clinic, "ann", epsilon="2").json()["id"]
    ask(clinic, "ann", stream, ages(30, 49))
    before = clinic.services.registry.resource(KEPT, stream)
    assert before is not None

    def killed(*_: object, **__: object) -> bool:
        raise KeyboardInterrupt

    begun = streams_of(clinic).begin(before, ((Within(key="age", low=40, high=60),),), by="ann")
    assert isinstance(begun, StreamQuestion)
    with monkeypatch.context() as patch:
        patch.setattr(streams_of(clinic).registry, "end_comparisons", killed)
        with pytest.raises(KeyboardInterrupt):
            streams_of(clinic).complete(begun)
    with restarted(clinic):
        after = clinic.services.registry.resource(KEPT, stream)
        assert after is not None
        assert (after.sealed, after.left, after.revision) == (before.sealed, before.left, before.revision)
        assert after.made == before.made + 1
        died = clinic.services.registry.comparing()
        assert died == {after.instance}
        with monkeypatch.context() as patch:
            patch.setattr(clinic.services.ledger, "gone", lambda names: frozenset(names) & died)
            assert Recovery(clinic.services.ledger, clinic.services.registry).recover() == 1
        assert ask(clinic, "ann", stream, ages(40, 60)).json()["answers"][0]["repeated"] is False
    assert len({noise for _, noise in seen}) == 1
    terms = Terms.from_json(before.terms)
    assert {run.mechanism for run, _ in seen} == {terms.noise.gate}
    assert terms.noise.gate.event() in terms.noise.events()


def test_what_was_planned_before_others_were_compared_counts_nothing(shared: Clinic) -> None:
    """Shows that a request planned beside another one reads the stream again: the same query is told from what is
    stored, another one is compared after it; and that while a turn is taken nothing is counted."""
    ann, _ = shared.somebody()
    streams = streams_of(shared)
    stream = opened(shared, ann).json()["id"]
    row = shared.services.registry.resource(KEPT, stream)
    assert row is not None
    one, other = (streams.begin(row, ((Within(key="age", low=low, high=60),),), by=ann) for low in (20, 21))
    same = streams.begin(row, ((Within(key="age", low=20, high=60),),), by=ann)
    assert isinstance(one, StreamQuestion)
    assert isinstance(other, StreamQuestion)
    assert isinstance(same, StreamQuestion)
    turn = streams.registry.begin_comparisons(row, 1, most=20, instance=streams.resources.ledger.instance)
    assert turn is not None
    with pytest.raises(Comparing):
        streams.complete(one)
    streams.registry.end_turn(turn)
    genuine = streams.registry.begin_comparisons

    def overtaking(row: StreamRow, wanted: int, *, most: int, instance: str) -> Turn | None:
        streams.registry.begin_comparisons = genuine  # type: ignore[method-assign]
        streams.complete(one)
        return genuine(row, wanted, most=most, instance=instance)

    streams.registry.begin_comparisons = overtaking  # type: ignore[method-assign]
    with pytest.raises(Comparing):
        streams.complete(other)
    (told,) = streams.complete(same)
    assert told.repeated
    (told,) = streams.complete(other)
    assert not told.repeated
    found = shared.services.registry.resource(KEPT, row.id)
    assert found is not None
    assert (found.made, found.revision, found.instance) == (3, 2, None)


def test_a_failure_is_one_opaque_outcome_at_a_visible_moment(clinic: Clinic, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows that a comparison that fails is counted and says nothing, and that the stream goes on; when all were used
    up so, there is no synopsis and it says so."""
    clinic.person("ann")
    stream = opened(clinic, "ann", queries=2).json()["id"]
    slept = list[float]()
    streams = streams_of(clinic)
    monkeypatch.setattr(streams.resources.pace, "sleep", slept.append)

    def fail(*_: object, **__: object) -> None:
        raise ExecutionFailed

    with monkeypatch.context() as patch:
        patch.setattr(streams.resources.private, "run", fail)
        for low in (20, 30):
            failed = ask(clinic, "ann", stream, ages(low, 60))
            assert (failed.status_code, failed.json()["code"]) == (500, "execution_failed")
    assert len(slept) == 2
    empty = ask(clinic, "ann", stream, ages(20, 60))
    assert (empty.status_code, empty.json()["what"]) == (409, "the stream has no synopsis")
    assert clinic.call("ann", "GET", f"/v1/streams/{stream}").json()["compared"] == 2


def test_after_the_last_comparison_the_synopsis_goes_on(shared: Clinic) -> None:
    """Shows that queries beyond the stated number are answered without a look at rows, and say so."""
    ann, _ = shared.somebody()
    stream = opened(shared, ann, queries=1).json()["id"]
    told = ask(shared, ann, stream, ages(20, 40), ages(20, 41)).json()
    assert [one["found"] for one in told["answers"]] == ["synopsis", "not_compared"]
    assert told["comparing"] is False
    later = ask(shared, ann, stream, ages(20, 42), ages(20, 40)).json()["answers"]
    assert [(one["found"], one["repeated"]) for one in later] == [("not_compared", False), ("synopsis", True)]
    assert later[0]["standard_error"] > 0
    assert abs(later[0]["value"] - truth(shared, 20, 42)) < 8 * later[0]["standard_error"] + 1


def test_nothing_of_it_is_stored_in_the_clear(shared: Clinic) -> None:
    """Shows that neither noise, ranges nor synopsis can be read without the key, nor under another identifier."""
    ann, _ = shared.somebody()
    stream = opened(shared, ann).json()["id"]
    ask(shared, ann, stream, ages(37, 61))
    row = shared.services.registry.resource(KEPT, stream)
    assert row is not None
    secret = shared.services.settings.keys_secret()
    terms = Terms.from_json(row.terms)
    state = state_of(row.sealed, Seal(secret, STREAMS), stream=stream, noise=terms.noise, left=row.left)
    assert state.synopsis is not None
    assert state.synopsis.base.size == 72
    for seal, name in ((Seal(secret, MONITORS), stream), (Seal(secret, STREAMS), "st_other")):
        with pytest.raises(SealBroken):
            state_of(row.sealed, seal, stream=name, noise=terms.noise, left=row.left)
    everything = repr(row.terms) + repr(shared.services.registry.resource(KEPT, stream))
    assert "37, 61" not in everything
    assert "SELECT" not in row.terms


def test_others_see_terms_and_ask_nothing(shared: Clinic) -> None:
    """Shows that a stream of somebody else is not there, and that an auditor reads terms without the text."""
    ann, _ = shared.somebody()
    bob, _ = shared.somebody()
    shared.person("eve", role="auditor")
    stream = opened(shared, ann).json()["id"]
    for method, path in (("GET", ""), ("POST", "/queries"), ("DELETE", "")):
        body = {"queries": [{"where": []}]} if method == "POST" else None
        assert shared.call(bob, method, f"/v1/streams/{stream}{path}", body).status_code == 404
    shown = shared.call("eve", "GET", f"/v1/streams/{stream}").json()
    assert (shown["sql"], shown["keys"], shown["cells"]) == (None, None, 72)
    assert shared.call(bob, "GET", "/v1/streams").json()["streams"] == []
    listed = shared.call(ann, "GET", "/v1/streams?count=1").json()
    assert ([one["id"] for one in listed["streams"]], listed["next"]) == ([stream], None)


@pytest.mark.slow
def test_what_the_estimate_says_is_what_is_opened(shared: Clinic) -> None:
    """Shows the same terms and price before and after, several keys with steps, and sums by a text of one's own."""
    ann, account = shared.somebody()
    body = {
        "dataset": "clinic",
        "table": "people",
        "columns": [{"name": "age", "low": 20, "high": 84, "step": 10}, {"name": "sex"}],
        "epsilon": "20",
        "tolerance": "200",
    }
    told = shared.call(ann, "POST", "/v1/streams:estimate", body).json()
    assert shared.spent(account) == 0
    made = shared.call(ann, "POST", "/v1/streams", body).json()
    for name in ("cells", "tolerance", "within", "within_measured", "wrong_updates"):
        assert told[name] == made[name]
    assert Fraction(told["price"]["epsilon"]) == pytest.approx(shared.spent(account), abs=1e-9)
    assert (told["verdict"], told["tolerance"], told["price"]["own"]["epsilon"]) == ("affordable", 200, "20")
    query = {"where": [{"key": "age", "low": 30, "high": 49}, {"key": "sex", "values": ["female", "male", None]}]}
    value = ask(shared, ann, made["id"], query).json()["answers"][0]["value"]
    assert abs(value - truth(shared, 30, 49)) < 30
    (last,) = ask(shared, ann, made["id"], ages(80, 84)).json()["answers"]
    assert abs(last["value"] - truth(shared, 80, 84)) < 30
    sums = {"sql": "SELECT sex, SUM(salary) AS s FROM people GROUP BY sex", "table": None, "columns": None}
    summed = opened(shared, ann, **sums).json()["id"]
    (answer,) = ask(shared, ann, summed, {"where": []}).json()["answers"]
    assert answer["value"] == pytest.approx(500 * sum(age * truth(shared, age, age) for age in range(18, 90)), rel=0.01)
    costs = {"table": "visits", "columns": [{"name": "cost", "low": 0, "high": 999, "step": 5}]}
    few = opened(shared, ann, **costs)
    assert (few.status_code, few.json()["code"]) == (422, "unsupported_sql")
    several = opened(shared, ann, **costs, contribution=WHOLE).json()
    assert several["cells"] == 200
    row = shared.services.registry.resource(KEPT, several["id"])
    assert row is not None
    terms = Terms.from_json(row.terms)
    assert terms.noise.change * terms.step == 4
    parts = [{"where": [{"key": "cost", "low": low, "high": high}]} for low, high in ((0, 499), (500, 999), (0, 999))]
    below, above, every = (one["value"] for one in ask(shared, ann, several["id"], *parts).json()["answers"])
    assert abs(below + above - every) <= 1
    assert abs(every - VISITS) < 150


def text(sql: str) -> dict[str, Any]:
    """Cells by a text in place of columns."""
    return {"sql": sql, "table": None, "columns": None}


def columns(*given: dict[str, Any]) -> dict[str, Any]:
    """Cells of these columns."""
    return {"columns": list(given)}


BAD_STREAMS: dict[str, tuple[dict[str, Any], str]] = {
    "no cells": (text("SELECT COUNT(*) FROM people"), "unsupported_sql"),
    "hidden keys": (columns({"name": "town"}), "unsupported_sql"),
    "values": (text("SELECT sex, COUNT(DISTINCT age) FROM people GROUP BY sex"), "unsupported_sql"),
    "two numbers": (text("SELECT sex, COUNT(*), SUM(age) FROM people GROUP BY 1"), "unsupported_sql"),
    "arithmetic": (text("SELECT sex, COUNT(*) + 1 FROM people GROUP BY sex"), "unsupported_sql"),
    "keys of numbers": (text("SELECT FLOOR(age / 10) AS decade, COUNT(*) FROM people GROUP BY 1"), "unsupported_sql"),
    "the clock": (
        text("SELECT sex, COUNT(*) FROM people WHERE age > YEAR(NOW()) - 1980 GROUP BY 1"),
        "volatile_function",
    ),
    "unknown column": (columns({"name": "agee"}), "unknown_column"),
    "repeated column": (columns({"name": "age"}, {"name": "AGE"}), "unknown_column"),
    "unknown table": ({"table": "peple"}, "unknown_table"),
    "no ends": (columns({"name": "income"}), "unsupported_sql"),
    "upside down": (columns({"name": "age", "low": 80, "high": 20}), "unsupported_sql"),
    "one cell": (columns({"name": "age", "low": 20, "high": 20}), "unsupported_sql"),
    "too many cells": (columns({"name": "age"}, {"name": "salary", "low": 0, "high": 99}), "key_domain_too_large"),
    "too many places": (columns({"name": "salary", "low": 0, "high": 4096}), "unsupported_sql"),
    "beyond the policy": ({"epsilon": "101"}, "policy_forbids"),
    "below the floor": ({"epsilon": "0.001", "queries": 100_000}, "policy_forbids"),
    "less than noise": ({"epsilon": "1", "tolerance": "1"}, "accuracy_unreachable"),
    "no updates": ({"updates": 0}, "invalid_request"),
    "two texts": ({"sql": "SELECT sex, COUNT(*) FROM people GROUP BY sex"}, "invalid_request"),
}


@pytest.mark.sparse(4)
@pytest.mark.parametrize("case", BAD_STREAMS)
def test_what_cannot_be_a_stream_is_refused_before_it_is_charged(shared: Clinic, case: str) -> None:
    """Shows refusals of texts, columns, prices and numbers, with nothing charged and no stream made."""
    options, code = BAD_STREAMS[case]
    who, account = shared.somebody()
    refused = opened(shared, who, **options)
    assert refused.json()["code"] == code, refused.text
    assert refused.json()["charged"] is False
    if case == "hidden keys":
        assert refused.json()["instead"] == [
            "write the cells as sql: any GROUP BY of public keys"
        ]  # a text has no ends
    assert shared.spent(account) == 0
    assert shared.call(who, "GET", "/v1/streams").json()["streams"] == []


def test_bad_queries_are_refused_and_nothing_is_counted(shared: Clinic) -> None:
    """Shows that ranges which are the wrong way round, beyond the cells, across a place, of unknown or repeated keys or
    other types, and of nobody are refused with words, and leave the stream as it was."""
    ann, _ = shared.somebody()
    columns = [{"name": "age", "low": 20, "high": 84, "step": 10}, {"name": "sex"}]
    stream = opened(shared, ann, columns=columns).json()["id"]
    bad: list[list[dict[str, Any]]] = [
        [{"key": "agee", "low": 30}],
        [{"key": "age", "low": 30}, {"key": "Age", "high": 49}],
        [{"key": "age", "low": "30"}],
        [{"key": "age", "low": True}],
        [{"key": "age", "low": 50, "high": 39}],
        [{"key": "age", "low": 10}],
        [{"key": "age", "high": 90}],
        [{"key": "age", "low": 31}],
        [{"key": "age", "high": 48}],
        [{"key": "age", "values": [21]}],
        [{"key": "age", "values": [30], "low": 30}],
        [{"key": "age"}],
        [{"key": "sex", "values": ["other"]}],
    ]
    for where in bad:
        refused = ask(shared, ann, stream, {"where": []}, {"where": where})
        assert refused.status_code == 422, (where, refused.text)
        assert refused.json()["instead"], where
    for queries in ([], [{"where": []}] * 101, [{"where": [{"key": "age", "low": 1.5}]}]):
        assert ask(shared, ann, stream, *queries).status_code == 422
    assert shared.call(ann, "GET", f"/v1/streams/{stream}").json()["compared"] == 0


@pytest.mark.parametrize(
    "where", [[{"key": "sex", "values": ["other"]}], [{"key": "age", "low": 20}, {"key": "sex", "low": "n"}]]
)
def test_a_query_of_nobody_is_told_what_to_write(shared: Clinic, where: list[Any]) -> None:
    """Shows advice that names values which the key has, and is answered as it is written."""
    ann, _ = shared.somebody()
    stream = opened(shared, ann, columns=[{"name": "age", "low": 20, "high": 29}, {"name": "sex"}]).json()["id"]
    refused = ask(shared, ann, stream, {"where": where}).json()
    assert refused["code"] == "unsupported_sql", refused
    (line,) = refused["instead"]
    written = json.loads(line.removeprefix("write "))
    assert (written["key"], written["values"][:2]) == ("sex", ["female", "male"])
    assert ask(shared, ann, stream, {"where": [written]}).status_code == 200


def test_conditions_of_no_cell_together_are_told_which_have_some() -> None:
    """Shows the conditions up to the first that leaves no cell, where each of them has cells."""
    domain = (("a", 1), ("b", 2))
    kinds = (ColumnType.TEXT, ColumnType.INTEGER)
    frame = Frame("SELECT", ("x", "y"), kinds, domain, "", "", (None, None))
    with pytest.raises(Refused) as refused:
        cells_asked(frame, [Within(key="x", values=("a",)), Within(key="Y", low=2, high=2)])
    (line,) = refused.value.findings[0].instead
    assert line == 'write {"key": "x", "values": ["a"]} alone'


def test_a_text_without_cells_is_told_of_columns(shared: Clinic) -> None:
    """Shows both forms that the refusal of a text names, opened as they are written."""
    ann, _ = shared.somebody()
    refused = opened(shared, ann, table=None, columns=None, sql="SELECT age, COUNT(*) FROM people GROUP BY age").json()
    text, columns = refused["instead"]
    sql = text.removeprefix("write ").partition(", where")[0]
    assert opened(shared, ann, table=None, columns=None, sql=sql).status_code == 201
    body = json.loads("{" + columns.partition("text: ")[2] + "}")
    assert opened(shared, ann, **body).status_code == 201


def test_a_restored_ledger_and_other_declarations_end_comparing(
    clinic: Clinic, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shows that after an older copy of the ledger was put back nothing is compared, and that queries are refused where
    the declarations now let one unit change the cells by more than was charged."""
    clinic.person("ann")
    visits = {
        "sql": "SELECT CASE WHEN cost < 100 THEN 'low' ELSE 'high' END AS c, COUNT(*) FROM visits GROUP BY c",
        "table": None,
        "columns": None,
        "contribution": WHOLE,
    }
    stream = opened(clinic, "ann", **visits).json()["id"]
    low = {"where": [{"key": "c", "values": ["low"]}]}
    assert ask(clinic, "ann", stream, low).status_code == 200
    found = clinic.services.registry.resource(KEPT, stream)
    assert found is not None
    terms = Terms.from_json(found.terms)
    less = replace(terms, noise=StreamNoise.for_epsilon(terms.epsilon, change=Fraction(3), updates=2))
    clinic.grow(1)
    with monkeypatch.context() as patch:
        # As if one unit could change them by less when the stream was opened.
        patch.setattr(Terms, "from_json", lambda text: less)
        refused = ask(clinic, "ann", stream, low)
    assert (refused.status_code, refused.json()["code"]) == (403, "policy_forbids"), refused.text
    ledger = clinic.services.ledger
    monkeypatch.setattr(ledger, "_behind", {"sequence": 1})
    ledger.acknowledge_restore(actor="root", reason="a disk failed")
    told = ask(clinic, "ann", stream, {"where": []}).json()
    assert (told["comparing"], told["answers"][0]["found"]) == (False, "not_compared")
