"""Problems: every code has its words, and no reader is left without a next step."""

from __future__ import annotations

import datetime
import json
import re

import pytest

from privacy.refusal import CODES, Finding
from server.errors import Problem, problem_body, problem_response
from server.problem_kinds import PROBLEMS
from tests.server.conftest import World
from tests.server.fakes import check_words


@pytest.mark.parametrize("code", sorted(PROBLEMS))
def test_every_problem_says_what_why_and_what_to_do(code: str) -> None:
    """A problem that brings nothing but its code is complete: title, detail, reason, next step."""
    body = problem_body(Problem(code, what="something is refused"), request_id="r")
    check_words(body)
    assert body["status"] == PROBLEMS[code].status
    assert body["detail"] == f"something is refused. {PROBLEMS[code].meaning}"
    response = problem_response(Problem(code, what="something is refused"), request_id="r")
    assert json.loads(bytes(response.body)) == body


@pytest.mark.parametrize("code", sorted(CODES))
def test_findings_without_advice_get_the_one_of_their_code(code: str) -> None:
    """A finding's own advice is kept; without one it has that of its code."""
    silent = Finding(code, "a", "b")
    telling = Finding(code, "a", "b", ("do this",))
    asked = Finding("invalid_request", "a", "b")
    body = problem_body(Problem(code, what="a", findings=(silent, telling, asked)), request_id="r")
    assert [item["instead"] for item in body["findings"]] == [
        list(PROBLEMS[code].instead),
        ["do this"],
        list(PROBLEMS["invalid_request"].instead),
    ]


def test_every_status_is_that_of_an_error() -> None:
    """Codes have a status of 400 to 503; 429 and 503, which clients send again by themselves, are retryable."""
    assert all(400 <= kind.status <= 503 for kind in PROBLEMS.values())
    assert all(kind.retryable for kind in PROBLEMS.values() if kind.status in (429, 503))


def test_addresses_in_advice_exist(world: World) -> None:
    """Where a next step names an operation of this server, the server has it."""
    known = {
        (method, re.sub(r"\{[^}]*\}", "{}", str(getattr(route, "path", ""))))
        for route in world.api.app.routes
        for method in getattr(route, "methods", None) or ()
    }
    text = " ".join(line for kind in PROBLEMS.values() for line in kind.instead)
    named = re.findall(r"\b(GET|POST|PUT|PATCH|DELETE) (/v1/[a-z/{}:-]+[a-z}])", text)
    assert len(named) > 5
    assert {(method, re.sub(r"\{[^}]*\}", "{}", path)) for method, path in named} <= known


@pytest.mark.parametrize(
    ("headers", "why"),
    [
        ({}, "needs a key"),
        ({"Authorization": "Basic bmdrXzEyMw=="}, "Bearer"),
        ({"Authorization": "Bearer something"}, "ngk_"),
        ({"Authorization": "Bearer ngk_0123456789"}, "mistyped"),
    ],
)
def test_a_missing_or_wrong_key_says_how_to_send_one(world: World, headers: dict[str, str], why: str) -> None:
    """401 tells which header is wanted, or how to come by a key that works."""
    response = world.api.get("/v1/me", who=None, headers=headers)
    assert response.status_code == 401
    body = response.json()
    assert why in body["why"]
    told = " ".join(body["instead"])
    assert "noisegate key create" in told
    assert "Authorization: Bearer ngk_" in told or "Copy the whole key" in told
    assert response.headers["www-authenticate"].startswith("Bearer")


def test_keys_that_stopped_working_say_whom_to_ask(world: World) -> None:
    """Revoked, expired and disabled keys are told apart, each with what to do."""
    made = world.registry.create_key("analyst", label="short", days=1, actor="test")
    revoked = world.registry.create_key("analyst", label="gone", days=30, actor="test")
    world.registry.revoke_key(revoked.key.id, actor="test")

    def refusal(text: str) -> dict[str, object]:
        response = world.api.get("/v1/me", who=None, headers={"Authorization": f"Bearer {text}"})
        assert response.status_code == 401
        body: dict[str, object] = response.json()
        return body

    assert refusal(revoked.text)["why"] == "It was revoked."
    world.clock.now += datetime.timedelta(days=2)
    assert refusal(made.text)["why"] == "It has expired."
    world.registry.change_principal("analyst", disabled=True, actor="test")
    body = refusal(world.api.keys["analyst"])
    assert body["why"] == "Its principal is disabled."
    assert "PATCH /v1/principals/{name}" in str(body["instead"])
