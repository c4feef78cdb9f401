"""Amounts in every form that is not an exact, bounded, positive decimal text."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest

from tests.server.conftest import World
from tests.server.fakes import query

JSON = {"Content-Type": "application/json"}

BAD_EVERYWHERE = [
    '"-1"',
    '"-0.5"',
    '"NaN"',
    '"nan"',
    '"Infinity"',
    '"inf"',
    '"1e9"',
    '"1000000.1"',
    '"1e999"',
    '"1e-999"',
    '"0.0000000000001e-9"',
    '""',
    '" 1"',
    '"1 "',
    '"1,5"',
    '"1_000"',
    '"0x1"',
    '"1/2"',
    '".5"',
    '"5."',
    '"\\u0661"',
    '"' + "9" * 60 + '"',
    "1",
    "0.5",
    "-1",
    "0",
    "1e9",
    "1e2",
    "null",
    "true",
    "[]",
    "{}",
    '["1"]',
]


@pytest.mark.sparse(3)
@pytest.mark.parametrize("text", [*BAD_EVERYWHERE, '"0"', '"0.0"', '"0e5"', '"1e-13"'])
def test_bad_epsilons_are_refused(world: World, text: str) -> None:
    """epsilon as spend: 422 with charged false, and the journey is not asked."""
    raw = json.dumps(query()).replace('"0.5"', text)
    response = world.api.post("/v1/queries", content=raw, headers=JSON)
    assert response.status_code == 422
    assert (response.json()["code"], response.json()["charged"]) == ("invalid_request", False)
    assert world.journey.asked == []


@pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity", "1e999", "1" * 400])
def test_numbers_that_json_cannot_carry_are_refused(world: World, text: str) -> None:
    """NaN, infinities and numbers beyond 64 bits are no JSON for us: 400."""
    raw = json.dumps(query()).replace('"0.5"', text)
    response = world.api.post("/v1/queries", content=raw, headers=JSON)
    assert (response.status_code, response.json()["code"]) == (400, "invalid_json")


def test_a_json_number_is_refused_with_the_reason(world: World) -> None:
    """The message for a number says to write a decimal as text."""
    response = world.api.post("/v1/queries", json=query(spend={"epsilon": 0.5}))
    assert "written as text" in response.json()["why"]
    assert "not exact" in response.json()["why"]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0.5", Fraction(1, 2)),
        ("5e-1", Fraction(1, 2)),
        ("+0.5", Fraction(1, 2)),
        ("0.000000000001", Fraction(1, 10**12)),
        ("1e-12", Fraction(1, 10**12)),
        ("0.1", Fraction(1, 10)),
    ],
)
def test_exact_decimals_stay_exact(world: World, text: str, value: Fraction) -> None:
    """Decimal texts become exact fractions, also in scientific notation."""
    world.api.post("/v1/estimates", json=query(spend={"epsilon": text}))
    assert world.journey.asked[0].epsilon == value


@pytest.mark.sparse(6)
@pytest.mark.parametrize("text", [*BAD_EVERYWHERE, '"1.5"', '"1"', '"0.011"', '"1e-19"'])
def test_bad_deltas_are_refused(world: World, text: str) -> None:
    """delta of a limit: 422 for anything outside of 0 to 0.01 or finer than 10^-18."""
    raw = '{"dataset":"clinic","principal":"other","limit":{"epsilon":"1","delta":AMOUNT}}'.replace("AMOUNT", text)
    response = world.api.post("/v1/budgets", content=raw, headers=JSON, who="admin")
    assert response.status_code == 422
    assert len(world.ledger.accounts()) == 2


@pytest.mark.sparse(6)
@pytest.mark.parametrize("text", [*BAD_EVERYWHERE, '"0"', '"1e-13"'])
def test_bad_limits_are_refused(world: World, text: str) -> None:
    """epsilon of a limit, at creation and at a change: 422, and the account keeps its limit."""
    raw = '{"dataset":"clinic","principal":"other","limit":{"epsilon":AMOUNT,"delta":"1e-6"}}'.replace("AMOUNT", text)
    assert world.api.post("/v1/budgets", content=raw, headers=JSON, who="admin").status_code == 422
    raw = '{"reason":"r","limit":{"epsilon":AMOUNT,"delta":"1e-6"}}'.replace("AMOUNT", text)
    path = f"/v1/budgets/{world.account.id}"
    assert world.api.call("PATCH", path, content=raw, headers=JSON, who="admin").status_code == 422
    assert world.ledger.account(world.account.id).limit == world.account.limit


@pytest.mark.sparse(4)
@pytest.mark.parametrize("text", [*BAD_EVERYWHERE[:5], '"0"', "5", "[]"])
def test_bad_half_widths_are_refused(world: World, text: str) -> None:
    """half_width is decimal text above zero."""
    raw = '{"dataset":"clinic","sql":"SELECT 1","accuracy":{"half_width":AMOUNT}}'.replace("AMOUNT", text)
    response = world.api.post("/v1/estimates", content=raw, headers=JSON)
    assert response.status_code == 422
