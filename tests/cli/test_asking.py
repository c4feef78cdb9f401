"""`noisegate query` and `noisegate estimate`, against a server that answers what the test says."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from server.cli import main
from server.cli.output import as_commands
from tests.cli.support import Ran, cli, refused

KEY = "ngk_0123456789ab_secret"
ANSWER: dict[str, Any] = {
    "id": "q_1",
    "status": "settled",
    "columns": [
        {"name": "city", "type": "VARCHAR", "kind": "key"},
        {"name": "n", "type": "BIGINT", "kind": "released"},
        {"name": "age", "type": "DOUBLE", "kind": "released"},
    ],
    "rows": [["A\x1b[31m", 5357, 38.9123], [None, 12, None]],
    "standard_errors": [[None, 2.8, 0.02], [None, 2.8, None]],
    "lows": [[None, 5351, 38.87], [None, 0, None]],
    "highs": [[None, 5363, 38.95], [None, 40, None]],
    "confidence": 0.95,
    "accounting": {
        "charged": [{"budget": "b_1", "epsilon": "0.5", "delta": "0"}],
        "reused": False,
        "remaining": {"epsilon": "9.5", "delta": "0.000001"},
    },
}
RUNNING = {"id": "q_1", "status": "running", "links": {"self": "/v1/queries/q_1"}}
PROBLEM = {
    "what": 'SUM of column "income" is refused',
    "why": "The column has no value bounds.",
    "instead": ["Ask an administrator to set bounds."],
    "code": "column_without_bounds",
    "charged": False,
    "position": {"line": 1, "column": 8, "text": "SUM(income)"},
    "findings": [],
}
Reply = tuple[int, Any] | tuple[int, Any, str] | None


@dataclass
class Stand:
    """A server that gives the replies one after the other (None breaks the connection) and keeps the requests."""

    replies: list[Reply] = field(default_factory=list)
    requests: list[tuple[str, str, dict[str, str], Any]] = field(default_factory=list)
    url: str = ""

    def ask(self, command: str, *arguments: str, key: str = KEY) -> Ran:
        return cli(command, *arguments, "--url", self.url, "--key", key, "--home", "/nonexistent")


@pytest.fixture
def stand() -> Iterator[Stand]:
    state = Stand()

    class Handler(BaseHTTPRequestHandler):
        def _serve(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = self.rfile.read(length)
            state.requests.append(
                (self.command, self.path, dict(self.headers.items()), json.loads(body) if body else None)
            )
            reply = state.replies.pop(0) if state.replies else (500, {})
            if reply is None:
                self.connection.close()
                return
            status, value = reply[:2]
            content = value if isinstance(value, bytes) else json.dumps(value).encode()
            self.send_response(status)
            if len(reply) == 3:
                self.send_header("Content-Type", reply[2])
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = _serve

        def log_message(self, format: str, *args: Any) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.handle_error = lambda *_: None  # type: ignore[method-assign]
    state.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield state
    server.shutdown()
    server.server_close()
    thread.join()


def test_answer_is_a_table_with_error_bars(stand: Stand) -> None:
    """Values with ± (or both ends where the interval was cut), price, rest; no control character reaches a terminal."""
    stand.replies = [(200, ANSWER)]
    ran = stand.ask("query", "SELECT 1", "--dataset", "d", "--epsilon", "0.5")
    assert ran.code == 0
    assert "5,357 ± 6" in ran.out
    assert "38.912 ± 0.042" in ran.out
    assert "12 [0, 40]" in ran.out
    assert "NULL" in ran.out
    assert "\x1b" not in ran.out
    assert "Price: epsilon 0.5." in ran.out
    assert "Remains: epsilon 9.5, delta 1e-06." in ran.out
    method, path, headers, body = stand.requests[0]
    assert (method, path) == ("POST", "/v1/queries")
    assert headers["Authorization"] == f"Bearer {KEY}"
    assert len(headers["Idempotency-Key"]) >= 16
    assert body == {"dataset": "d", "sql": "SELECT 1", "spend": {"epsilon": "0.5"}}


def test_a_missing_error_bar_is_not_shown_without_its_reason(stand: Stand) -> None:
    """Below the table stands which column has no ±, in how many rows, and why."""
    reasons = [
        {"column": 1, "rows": None, "code": "groups_not_shown", "why": "Some groups are not shown."},
        {"column": 2, "rows": [0], "code": "undefined", "why": "It is undefined."},
    ]
    stand.replies = [(200, {**ANSWER, "interval_reasons": reasons})]
    ran = stand.ask("query", "SELECT 1", "--dataset", "d")
    names = [column["name"] for column in ANSWER["columns"]]
    assert f"no ± for {names[1]}: Some groups are not shown." in ran.out
    assert f"no ± for {names[2]} in 1 of {len(ANSWER['rows'])} rows: It is undefined." in ran.out


def test_json_is_the_answer_itself(stand: Stand) -> None:
    """Scripts get what the server sent."""
    stand.replies = [(200, ANSWER)]
    assert stand.ask("query", "SELECT 1", "--dataset", "d", "--json").json == ANSWER


def test_all_options_reach_the_body(stand: Stand) -> None:
    """Accuracy, parameters (JSON values, otherwise text), reuse and account."""
    stand.replies = [(200, ANSWER)]
    arguments = ["--half-width", "20", "--confidence", "0.9", "-p", "age=65", "-p", "$city=North", "-p", 'code="7"']
    arguments += ["-p", "flag=true", "-p", "odd=NaN", "--reuse", "none", "--budget", "b_1"]
    assert stand.ask("query", "SELECT 1", "--dataset", "d", *arguments).code == 0
    assert stand.requests[0][3] == {
        "dataset": "d",
        "sql": "SELECT 1",
        "parameters": {"age": 65, "city": "North", "code": "7", "flag": True, "odd": "NaN"},
        "accuracy": {"half_width": "20", "confidence": "0.9"},
        "reuse": "none",
        "budget": "b_1",
    }


def test_nonempty_reaches_the_body(stand: Stand) -> None:
    """Both commands ask for groups with people alone, and for all of them otherwise."""
    stand.replies = [(200, ANSWER), (200, ESTIMATE), (200, ANSWER)]
    assert stand.ask("query", "SELECT 1", "--dataset", "d", "--nonempty").code == 0
    assert stand.ask("estimate", "SELECT 1", "--dataset", "d", "--nonempty").code == 0
    assert stand.ask("query", "SELECT 1", "--dataset", "d").code == 0
    assert [body.get("nonempty") for _, _, _, body in stand.requests] == [True, True, None]


def test_waits_for_a_running_query(stand: Stand) -> None:
    """202 is polled until the answer is there; only one request spends."""
    stand.replies = [(202, RUNNING), (202, RUNNING), (200, ANSWER)]
    assert stand.ask("query", "SELECT 1", "--dataset", "d").code == 0
    assert [(method, path) for method, path, _, _ in stand.requests] == [
        ("POST", "/v1/queries"),
        ("GET", "/v1/queries/q_1"),
        ("GET", "/v1/queries/q_1"),
    ]


def test_broken_connection_repeats_with_the_same_key(stand: Stand) -> None:
    """A question whose answer was lost is sent again under the same idempotency key, so it is never charged twice."""
    stand.replies = [None, (200, ANSWER)]
    assert stand.ask("query", "SELECT 1", "--dataset", "d").code == 0
    keys = [headers["Idempotency-Key"] for _, _, headers, _ in stand.requests]
    assert len(keys) == 2
    assert len(set(keys)) == 1


def test_lost_answer_tells_the_key_to_ask_again_with(stand: Stand) -> None:
    """After three broken connections the message holds the idempotency key."""
    stand.replies = [None, None, None]
    ran = stand.ask("query", "SELECT 1", "--dataset", "d", "--idempotency-key", "mine-1")
    refused(ran, "--idempotency-key mine-1", "may have been charged")
    assert len(stand.requests) == 3


def test_problem_in_words(stand: Stand) -> None:
    """What, why with its place, what to do, and the code; the exit code is 1."""
    stand.replies = [(422, PROBLEM)]
    ran = stand.ask("query", "SELECT SUM(income) FROM people", "--dataset", "d")
    refused(ran, "SUM of column", "column_without_bounds", "line 1, column 8", "Ask an administrator")


def test_several_findings_are_all_told(stand: Stand) -> None:
    """Every finding with its own advice, and that it was charged when it was."""
    findings = [{"what": f"finding {n}", "why": "because", "instead": [f"do {n}"], "position": None} for n in (1, 2)]
    stand.replies = [(422, {**PROBLEM, "charged": True, "findings": findings})]
    ran = stand.ask("query", "SELECT 1", "--dataset", "d")
    refused(ran, "finding 1", "finding 2", "do 1", "do 2", "It was charged.")


@pytest.mark.parametrize("reply", [(200, b"<html>"), (404, {"detail": "no"}), (200, [1]), (502, b"")])
def test_other_servers_are_noticed(stand: Stand, reply: Reply) -> None:
    """What is no answer of this program is told as such."""
    stand.replies = [reply]
    refused(stand.ask("estimate", "SELECT 1", "--dataset", "d"), "is not Noisegate")


def test_nobody_answers(tmp_path: Path) -> None:
    """A port on which nothing listens."""
    ran = cli("query", "SELECT 1", "--dataset", "d", "--url", "http://127.0.0.1:9", "--key", KEY)
    refused(ran, "could not reach a server", "--url")


def test_dataset_may_be_left_out_when_there_is_one(stand: Stand) -> None:
    """The only dataset is taken; with several they are named."""
    stand.replies = [(200, {"datasets": [{"name": "only"}]}), (200, ANSWER)]
    assert stand.ask("query", "SELECT 1").code == 0
    assert stand.requests[-1][3]["dataset"] == "only"
    stand.replies = [(200, {"datasets": [{"name": "one"}, {"name": "two"}]})]
    refused(stand.ask("query", "SELECT 1"), "one, two", code=2)
    stand.replies = [(200, {"datasets": []})]
    refused(stand.ask("query", "SELECT 1"), "no dataset", code=2)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["", "--dataset", "d"], "empty"),
        (["SELECT 1", "--epsilon", "1", "--half-width", "2"], "both given"),
        (["SELECT 1", "--epsilon", "1", "--own-epsilon", "2"], "both given"),
        (["SELECT 1", "--own-epsilon", "1", "--half-width", "2"], "both given"),
        (["SELECT 1", "--own-epsilon", "nan"], "--own-epsilon is not accepted"),
        (["SELECT 1", "--delta", "0.5"], "--delta is not accepted"),
        (["SELECT 1", "--epsilon", "nan"], "--epsilon is not accepted"),
        (["SELECT 1", "--epsilon", "-1"], "--epsilon is not accepted"),
        (["SELECT 1", "--epsilon", "inf"], "--epsilon is not accepted"),
        (["SELECT 1", "--half-width", "0"], "--half-width is not accepted"),
        (["SELECT 1", "--confidence", "2"], "--confidence is not accepted"),
        (["SELECT 1", "-p", "age"], "--parameter is not accepted"),
        (["SELECT 1", "-p", "a=1", "-p", "a=2"], "--parameter is not accepted"),
    ],
)
@pytest.mark.sparse(4)
def test_wrong_usage_needs_no_server(stand: Stand, arguments: list[str], words: str) -> None:
    """Mistakes in the command line are told before anything is sent."""
    refused(stand.ask("query", *arguments), words, code=2)
    assert stand.requests == []


@pytest.mark.parametrize(
    "url",
    ["ftp://127.0.0.1", "127.0.0.1:8765", "http://user:secret@127.0.0.1", "http://127.0.0.1:notaport", "http://", "x"],
)
def test_bad_addresses(url: str) -> None:
    """An address is http or https and a host; a password in it is not repeated."""
    ran = cli("query", "SELECT 1", "--dataset", "d", "--url", url, "--key", KEY)
    refused(ran, "--url is not accepted", code=2)
    assert "secret" not in ran.err


def test_key_never_crosses_a_network_in_clear_text() -> None:
    """http beyond this machine is refused before anything is sent."""
    ran = cli("query", "SELECT 1", "--dataset", "d", "--url", "http://stats.example", "--key", KEY)
    refused(ran, "clear text", "https://stats.example", code=2)


def test_keys(stand: Stand, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From a file or the variable; missing, malformed and doubled ones are told and never repeated."""
    file = tmp_path / "key"
    file.write_text(KEY + "\n")
    at = ("--url", stand.url, "--dataset", "d", "--home", str(tmp_path / "home"))
    stand.replies = [(200, ANSWER), (200, ANSWER)]
    assert cli("query", "SELECT 1", *at, "--key-file", str(file)).code == 0
    monkeypatch.setenv("NOISEGATE_KEY", KEY)
    assert cli("query", "SELECT 1", *at).code == 0
    assert all(headers["Authorization"] == f"Bearer {KEY}" for _, _, headers, _ in stand.requests)
    monkeypatch.delenv("NOISEGATE_KEY")
    refused(cli("query", "SELECT 1", *at), "API key is missing", code=2)
    refused(cli("query", "SELECT 1", *at, "--key", KEY, "--key-file", str(file)), "two keys", code=2)
    refused(cli("query", "SELECT 1", *at, "--key-file", str(tmp_path / "none")), "key file", code=2)
    for wrong in ("password123", "ngk_a\nb", "ngk_\u00e9"):
        ran = cli("query", "SELECT 1", *at, "--key", wrong)
        refused(ran, "API key is not accepted", code=2)
        assert "password123" not in ran.err


def test_stored_key_goes_to_its_own_server_only(stand: Stand, tmp_path: Path) -> None:
    """The analyst's key of a home is not sent to another address."""
    secrets = tmp_path / "home" / "secrets"
    secrets.mkdir(parents=True)
    (secrets / "analyst.apikey").write_text(KEY)
    ran = cli("query", "SELECT 1", "--url", stand.url, "--dataset", "d", "--home", str(tmp_path / "home"))
    refused(ran, "API key is missing", code=2)
    assert stand.requests == []


ESTIMATE: dict[str, Any] = {
    "verdict": "affordable",
    "price": {"budget": "b_1", "epsilon": "0.1", "delta": "0"},
    "columns": [
        {"name": "city", "kind": "key", "standard_error": None, "half_width": None},
        {"name": "n", "kind": "released", "standard_error": 14.1, "half_width": 30.0},
        {"name": "ratio", "kind": "derived", "standard_error": None, "half_width": None},
    ],
    "contribution": [
        {"table": "people", "groups_per_unit": 1, "rows_per_unit_and_group": 1, "keys": "thresholded", "cells": None}
    ],
    "remaining": {"epsilon": "10", "delta": "0"},
    "remaining_after": {"epsilon": "9.9", "delta": "0"},
    "curve": [
        {"epsilon": "0.1", "noise": "laplace", "affordable": True, "standard_errors": {"n": 14.1}},
        {"epsilon": "0.2", "noise": "laplace", "affordable": True, "standard_errors": {"n": 7.07}},
    ],
}


def test_estimate_shows_price_errors_and_curve(stand: Stand) -> None:
    """The verdict, the price, what would remain, half widths, and the price of other accuracies."""
    stand.replies = [(200, ESTIMATE)]
    ran = stand.ask("estimate", "SELECT 1", "--dataset", "d")
    assert ran.code == 0
    for words in ("would be answered", "epsilon 0.1", "9.9 afterwards", "30", "unknown", "not public", "7.07"):
        assert words in ran.out
    assert stand.requests[0][1] == "/v1/estimates"
    assert "Idempotency-Key" not in stand.requests[0][2]


def test_a_price_is_shown_as_a_part_of_the_account_and_as_a_promise(stand: Stand) -> None:
    """An epsilon without its account says nothing: `0.5 of 10 (5 %)`, and what the answer promises, rounded up."""
    more = {
        "of": {"epsilon": "10", "delta": "0.000001"},
        "share": "0.05",
        "own": {"epsilon": "1.7468", "delta": "0.000001"},
    }
    family: dict[str, Any] = {
        "noise": "gaussian",
        "chosen": True,
        "affordable": True,
        "price": {"epsilon": "0.1", "share": "0.01", "delta": "0", "own": more["own"]},
        "columns": [{"name": "n", "standard_error": 14.1, "half_width": 30, "by_rows": []}],
        "remaining_after": {"epsilon": "9.9", "delta": "0"},
        "questions_left_after": {"laplace": 99, "gaussian": 98},
        "later": {"like_this": 98, "epsilon": "0.1", "standard_error": 5.5},
    }
    other = {**family, "noise": "laplace", "chosen": False, "affordable": False}
    estimate = {
        **ESTIMATE,
        "verdict": "rejected_budget",
        "price": {**ESTIMATE["price"], **more, "raised": True, "least": {"epsilon": "0.1"}},
        "families": [family, other],
        "refusal": {"why": "It takes more delta.", "instead": ['"delta": "0.0000005"']},
    }
    stand.replies = [(200, {**ANSWER, "accounting": {**ANSWER["accounting"], **more}}), (200, estimate)]
    shown = stand.ask("query", "SELECT 1", "--dataset", "d", "--own-epsilon", "1.75", "--noise", "gaussian")
    assert "Price: epsilon 0.5 of 10 (5 %)." in shown.out
    assert "By itself it promises epsilon 1.75 at delta 1e-06" in shown.out
    body = stand.requests[0][3]
    assert (body["spend"], body["noise"]) == ({"own_epsilon": "1.75"}, "gaussian")
    shown = stand.ask("estimate", "SELECT 1", "--dataset", "d", "--delta", "1e-10")
    words = (
        "0.1 of 10 (1 %)",
        "least price",
        "more exact",
        "gaussian (this)",
        "laplace *",
        "98",
        "more delta",
        "0000005",
    )
    assert [word for word in words if word not in shown.out] == []
    assert stand.requests[1][3]["delta"] == "1e-10"


WARNING: dict[str, Any] = {
    "code": "literal_outside_declaration",
    "what": "'mal' is compared with \"sex\"",
    "why": "It is declared\x1b[2J otherwise.",
    "instead": ["compare it with one of: 'female', 'male'", 'ask "with_cut": true for intervals that have the cut too'],
    "position": {"line": 1, "column": 8, "text": "sex = 'mal'"},
}


def test_warnings_are_shown_by_estimate_and_query(stand: Stand) -> None:
    """A warning is told in words before the price, without control characters."""
    stand.replies = [(200, {**ESTIMATE, "warnings": [WARNING]}), (200, {**ANSWER, "warnings": [WARNING]})]
    for command in ("estimate", "query"):
        ran = stand.ask(command, "SELECT 1", "--dataset", "d")
        assert ran.code == 0
        for words in ("Warning: 'mal' is compared", "declared", "- compare it with one of", "- ask --with-cut for"):
            assert words in ran.out
        assert "\x1b" not in ran.out
        assert ran.out.index("Warning") < ran.out.index("Price")


def test_estimate_marks_what_the_budget_does_not_cover(stand: Stand) -> None:
    """A price beyond the budget has a star; a list without such prices has none."""
    dear = {**ESTIMATE["curve"][1], "affordable": False}
    stand.replies = [(200, {**ESTIMATE, "curve": [ESTIMATE["curve"][0], dear]}), (200, ESTIMATE)]
    marked = stand.ask("estimate", "SELECT 1", "--dataset", "d").out
    assert "0.2 *" in marked
    assert "0.1 *" not in marked
    assert "more than the budget covers" in marked
    assert "*" not in stand.ask("estimate", "SELECT 1", "--dataset", "d").out


def test_stopped_home_is_started_with_its_own_option(tmp_path: Path) -> None:
    """The command that starts a home names the home, because the plain one would start another."""
    home = tmp_path / "elsewhere"
    (home / "secrets").mkdir(parents=True)
    (home / "secrets" / "analyst.apikey").write_text(KEY)
    ran = cli("query", "SELECT 1", "--dataset", "d", "--home", str(home))
    refused(ran, "no server serves this home", f"up --home {home}", code=2)


def test_estimate_shows_averages_by_the_number_of_rows(stand: Stand) -> None:
    """A ratio has no error before its group is known: the errors of some group sizes are shown, and the worst."""
    sizes = [
        {"rows": rows, "standard_error": 400 / rows, "half_width": 800 / rows, "standard_error_at_most": 560 / rows}
        for rows in (100, 1_000, 10_000)
    ]
    columns = [
        {"name": "n", "kind": "released", "standard_error": 14.1, "half_width": 30.0, "by_rows": []},
        {"name": "mean", "kind": "released", "standard_error": None, "half_width": None, "by_rows": sizes},
    ]
    curve = [
        {**point, "standard_errors": {"AVG(age)": None}, "by_rows": {"AVG(age)": sizes}} for point in ESTIMATE["curve"]
    ]
    stand.replies = [(200, {**ESTIMATE, "columns": columns, "curve": curve})]
    ran = stand.ask("estimate", "SELECT 1", "--dataset", "d")
    assert ran.code == 0
    assert "unknown" not in ran.out
    for words in ("1,000", "8 (4)", "0.8 (0.4)", "0.08 (0.04)", "mean 0.056", "AVG(age) of 1,000 rows"):
        assert words in ran.out


def test_statement_from_the_input(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    """ "-" reads the statement from standard input, as scripts do."""
    import io

    monkeypatch.setattr("sys.stdin", io.StringIO("SELECT 2\n"))
    stand.replies = [(200, ANSWER)]
    assert stand.ask("query", "-", "--dataset", "d").code == 0
    assert stand.requests[0][3]["sql"] == "SELECT 2\n"


def test_a_pipe_needs_no_dash(stand: Stand, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A statement comes from a pipe or a file as well; two of them, or none at a terminal, are wrong usage."""
    import io

    monkeypatch.setattr("sys.stdin", io.StringIO("SELECT 3\n"))
    file = tmp_path / "question.sql"
    file.write_text("\ufeffSELECT 4\n", "utf-8")
    stand.replies = [(200, ANSWER), (200, ANSWER)]
    assert stand.ask("query", "--dataset", "d").code == 0
    assert stand.ask("query", "-f", str(file), "--dataset", "d").code == 0
    assert [request[3]["sql"] for request in stand.requests] == ["SELECT 3\n", "SELECT 4\n"]
    stand.replies = [(200, ANSWER)]
    monkeypatch.setattr("sys.stdin", io.StringIO("SELECT 4\n"))
    assert stand.ask("query", "--file", "-", "--dataset", "d").code == 0
    assert stand.requests[-1][3]["sql"] == "SELECT 4\n"
    refused(stand.ask("query", "SELECT 1", "--file", str(file)), "a statement and --file", code=2)
    refused(stand.ask("query", "SELECT 1", "--file", "-"), "a statement and --file", code=2)
    refused(stand.ask("query", "--file", str(tmp_path / "nothing.sql")), "could not find")
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    refused(stand.ask("query", "--dataset", "d"), "the statement is missing", code=2)


def test_csv_is_what_the_server_writes(stand: Stand) -> None:
    """--format csv prints the server's own document; --json with another format is wrong usage."""
    stand.replies = [(200, ANSWER), (200, b"city,n\nA,1\n", "text/csv; charset=utf-8")]
    ran = stand.ask("query", "SELECT 1", "--dataset", "d", "--format", "csv")
    assert ran.out == "city,n\nA,1\n"
    assert "Price:" in ran.err
    method, path, headers, _ = stand.requests[1]
    assert (method, path, headers["Accept"]) == ("GET", "/v1/queries/q_1", "text/csv")
    assert stand.ask("query", "SELECT 1", "--dataset", "d", "--format", "csv", "--json").code == 2


DESCRIBED = {
    "name": "clinic",
    "description": "An example\x1b",
    "privacy_unit": {"table": "patients", "key": "patient_id"},
    "limits": {"epsilon_default": "0.1", "epsilon_max": "1"},
    "tables": [
        {
            "name": "visits",
            "protected": True,
            "key": "visit_id",
            "description": "",
            "references": [{"column": "patient_id", "table": "patients", "key": "patient_id"}],
            "columns": [
                {
                    "name": "cost",
                    "type": "number",
                    "nullable": True,
                    "bounds": {"lower": "0", "upper": "20000"},
                    "keys": None,
                    "description": "",
                },
                {
                    "name": "ward",
                    "type": "text",
                    "nullable": False,
                    "bounds": None,
                    "keys": list("abcdefgh"),
                    "other": {"key": "elsewhere"},
                    "description": "Where",
                },
            ],
            "contribution": {"rows_per_unit": 40, "groups_per_unit": 4, "rows_per_unit_and_group": 15},
        }
    ],
}
LISTED = {"datasets": [{"name": "clinic", "description": "", "tables": ["visits"]}]}


def test_a_remote_analyst_sees_datasets_columns_and_budget(stand: Stand) -> None:
    """Datasets, declarations and own budgets come over HTTP, for people and for scripts."""
    stand.replies = [(200, LISTED)]
    assert "clinic" in stand.ask("datasets").out
    stand.replies = [(200, LISTED), (200, DESCRIBED)]
    shown = stand.ask("describe").out
    for words in ("patient_id of patients", "0 to 20000", "a, b, c, d, e, f, ... (8); any other value is elsewhere",
                  "patient_id refers to patients",
                  "at most 40 rows, in 4 groups, 15 in each", "text, never NULL"):  # fmt: skip
        assert words in shown
    assert "\x1b" not in shown
    stand.replies = [(200, DESCRIBED), (200, DESCRIBED["tables"][0])]
    assert stand.ask("describe", "clinic", "visits", "--json").json == DESCRIBED["tables"][0]
    assert stand.requests[-1][1] == "/v1/datasets/clinic/tables/visits"
    budgets = {
        "budgets": [
            {
                "id": "b_1", "dataset": "clinic", "principal": "maria", "name": "maria", "filter": "approximate",
                "limit": {"epsilon": "5", "delta": "0.000001"}, "used_share": "0.25",
                "remaining": {"epsilon": "3.75", "delta": "0.0000005"},
            }
        ]
    }  # fmt: skip
    stand.replies = [(200, budgets), (200, budgets)]
    ran = cli("budget", "show", "--url", stand.url, "--key", KEY)
    assert "25.0 %" in ran.out
    assert "maria" in ran.out
    assert cli("budget", "show", "--url", stand.url, "--key", KEY, "--json").json == budgets["budgets"]


def test_closed_output_ends_quietly(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader that went away (`| head`) is no traceback."""

    class Gone:
        def write(self, text: str) -> Callable[[], None]:
            raise BrokenPipeError

        def flush(self) -> None:
            return

        def fileno(self) -> int:
            raise OSError

    stand.replies = [(200, ANSWER)]
    monkeypatch.setattr("sys.stdout", Gone())
    arguments = ["query", "SELECT 1", "--dataset", "d", "--url", stand.url, "--key", KEY]
    assert main(arguments) == 1


def test_queries_are_listed_and_a_missing_one_says_how(stand: Stand) -> None:
    """A line for each; whoever names an unknown one is told this command."""
    charged = [{"budget": "b_1", "epsilon": "0.5", "delta": "0"}]
    one = {"id": "q_1", "dataset": "d", "status": "settled", "charged": charged, "created": "2026-03-01T12:00:00Z"}
    stand.replies = [(200, {"queries": [one, {**one, "id": "q_2", "charged": []}], "next": None})]
    assert stand.ask("queries").out.splitlines() == [
        "q_1  2026-03-01T12:00:00Z  d  settled  epsilon 0.5",
        "q_2  2026-03-01T12:00:00Z  d  settled  free",
    ]
    assert as_commands("See what there is: GET /v1/queries") == "See what there is: noisegate queries"


def test_an_answer_is_sharpened_by_its_identifier(stand: Stand) -> None:
    """The wish for the whole goes to the query's address; the answer says its own, and that a stored one is in it."""
    added = {"anew": {"epsilon": "2"}, "releases": []}
    stand.replies = [(200, {**ANSWER, "accounting": {**ANSWER["accounting"], "sharpened": added}})]
    ran = stand.ask("sharpen", "q_1", "--epsilon", "2", "--max-cost", "1.5")
    assert ran.code == 0
    assert "anew it would cost epsilon 2." in ran.out
    assert "The answer is q_1." in ran.out
    method, path, headers, body = stand.requests[0]
    assert (method, path) == ("POST", "/v1/queries/q_1:sharpen")
    assert len(headers["Idempotency-Key"]) >= 16
    assert body == {"spend": {"epsilon": "2"}, "max_cost": "1.5"}
    refused(stand.ask("sharpen", "q_1", "--max-cost", "1"), "better wish", code=2)
    refused(stand.ask("sharpen", "q_1", "--epsilon", "1", "--half-width", "2"), "both given", code=2)
