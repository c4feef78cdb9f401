"""A command line shows commands, HTTP shows routes: advice of a server in the words of who reads it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from server.cli.answers import warning_lines
from server.cli.client import _problem_failure
from server.cli.output import as_commands
from server.problem_kinds import PROBLEMS
from server.resources.kinds import ResourceKind
from server.routes.common import not_found

ROOT = Path(__file__).resolve().parents[2]
HTTP = re.compile(r"/v1/|\b(?:GET|POST|PUT|PATCH|DELETE) /|\bheader\b|\bIdempotency-Key\b|in the request\b")
SOURCES = (
    *("privacy", "sql_rewrite"),
    *("server/journey", "server/auth.py", "server/errors.py", "server/once.py", "server/pricing.py"),
)
"""Where the advice is written that a question can earn."""


def texts() -> Iterator[tuple[str, str]]:
    """Every string of the sources that names a route, with its place; docstrings aside."""
    for name in SOURCES:
        path = ROOT / name
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            tree = ast.parse(file.read_text("utf-8"))
            prose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
            for node in ast.walk(tree):
                text = node.value if isinstance(node, ast.Constant) and id(node) not in prose else None
                if isinstance(text, str) and re.search(r"\b(?:GET|POST|PUT|PATCH|DELETE) /v1", text):
                    yield f"{file.name}:{node.lineno}", text


@pytest.mark.slow
def test_no_route_is_advised_on_a_command_line() -> None:
    """Whatever route the advice of a question names, the command line names a command, or leaves the line out."""
    found = dict(texts())
    assert len(found) > 10
    assert {place: as_commands(text) for place, text in found.items() if HTTP.search(as_commands(text))} == {}
    kept = [as_commands(text) for text in found.values()]
    assert sum("noisegate" in text for text in kept) > 8


UNEARNED = {"not_acceptable", "unsupported_media_type", "precondition_failed"}
"""What no command of this program earns: it sends what these speak of, or never does."""


@pytest.mark.parametrize("code", sorted(PROBLEMS.keys() - UNEARNED))
def test_no_usual_advice_speaks_of_http_on_a_command_line(code: str) -> None:
    """The advice of every code that a question can earn: no routes, headers or fields of a body."""
    said = str(_problem_failure({"code": code, "what": "it is refused", "why": "", "instead": PROBLEMS[code].instead}))
    assert not HTTP.search(said), said


@pytest.mark.parametrize(
    ("advice", "expected"),
    [
        (
            "compare the conditions with the declared keys: GET /v1/datasets/{dataset} lists them",
            "compare the conditions with the declared keys: noisegate describe DATASET lists them",
        ),
        ("GET /v1/datasets lists those you may ask", "noisegate datasets lists those you may ask"),
        ("List your budgets with GET /v1/budgets.", "List your budgets with noisegate budget show."),
        (
            'send the SELECT alone to POST /v1/estimates (or "noisegate estimate"): its price and errors, for free',
            "send the SELECT alone to noisegate estimate: its price and errors, for free",
        ),
        ('"spend": {"epsilon": "0.1"}, or --epsilon 0.1 on a command line', "--epsilon 0.1"),
        ('ask with "accept_noise": true (or --accept-noise) to pay for it', "ask with --accept-noise to pay for it"),
        ('ask with "nonempty": true (or --nonempty) to leave out groups', "ask with --nonempty to leave out groups"),
        (
            'ask with "contribution": {"groups_per_unit": 3} (or --groups-per-unit 3) to cover this grouping',
            "ask with --groups-per-unit 3 to cover this grouping",
        ),
        ("Read stored answers with GET /v1/queries/{query_id}.", ""),
        *(
            (advice, f"See what there is: noisegate {kind.value} list")
            for kind in ResourceKind
            if kind is not ResourceKind.BATCH  # a batch is answered at once, and its lists are not shown by a command
            for advice in not_found(kind.word).finding.instead
        ),
        ("write WHERE day >= DATE '2024-01-01'", "write WHERE day >= DATE '2024-01-01'"),
    ],
)
def test_a_line_keeps_its_meaning(advice: str, expected: str) -> None:
    """Routes become the commands that show the same, two ways become the one of the command line, SQL stays."""
    assert as_commands(advice) == expected


def test_the_reader_of_a_refusal_and_of_a_warning_gets_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    """Problems with several findings, refusals of estimates and warnings go the same way."""
    monkeypatch.setattr("server.cli.output._home_in_use", " --home /srv/x")
    line = "GET /v1/datasets lists those you may ask"
    finding = {"code": "unknown_dataset", "what": "w", "why": "y", "instead": [line], "position": None}
    problem: dict[str, Any] = {**finding, "findings": [finding, {**finding, "code": "no_groups"}]}
    assert _problem_failure(problem).finding.instead == ("noisegate datasets lists those you may ask",)
    shown = warning_lines({"warnings": [finding]})[-1]
    assert shown.endswith("datasets --home /srv/x lists those you may ask")
