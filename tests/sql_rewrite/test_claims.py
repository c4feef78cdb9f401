"""What operators claim of themselves: whoever forgets a claim gets the weak side, never a wrong answer."""

from __future__ import annotations

import dataclasses
import math
import sys

import pytest

from privacy.policy import ColumnType
from sql_rewrite.evaluate import map_domain
from sql_rewrite.expressions import Call, ColumnRef, Expression
from sql_rewrite.functions import REGISTRY, build
from sql_rewrite.functions.numbers import resolve_to_number
from sql_rewrite.functions.operator import Operator, plain_call
from sql_rewrite.functions.values import of_number
from tests.sql_rewrite.function_cases import Y, edge_rows, run
from tests.sql_rewrite.test_functions import CASES

CLAIMS = ("nullable", "finite", "loose", "exact")
DEFAULTS = {field.name: field.default for field in dataclasses.fields(Operator) if field.name in CLAIMS}


def forget(patch: pytest.MonkeyPatch, *claims: str) -> None:
    """Takes these claims off every operator of the allow-list."""
    weaker = {claim: DEFAULTS[claim] for claim in claims}
    bare = {name: dataclasses.replace(entry, **weaker) for name, entry in REGISTRY.items()}  # type: ignore[arg-type]
    for module in list(sys.modules.values()):
        if vars(module).get("REGISTRY") is REGISTRY and module.__name__.startswith("sql_rewrite"):
            patch.setattr(module, "REGISTRY", bare)


def test_whether_an_operator_is_strict_has_to_be_said() -> None:
    """Its reference would meet a NULL, or never get one that it should: neither side is safe, so none is assumed."""
    (strict,) = (field for field in dataclasses.fields(Operator) if field.name == "strict")
    assert strict.default is strict.default_factory is dataclasses.MISSING


def test_an_operator_that_says_nothing_is_taken_at_its_weakest() -> None:
    """It may give NULL and infinities, and Python does not compute group keys with it."""
    entry = Operator(
        name="exp", forms="EXP(a)", signature="", meaning="", totality="", section="", strict=True,
        resolve=resolve_to_number("EXP", 1), lower=plain_call("exp"), reference=of_number(math.exp),
    )  # fmt: skip
    assert DEFAULTS == {claim: getattr(entry, claim) for claim in CLAIMS}
    assert entry.nullable(())
    assert {entry.finite, entry.loose, entry.exact} == {False}


def test_forgotten_claims_turn_results_into_guarded_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """The exponential without its range: what was unbounded is guarded, and NULL where the engine has an infinity."""
    forget(monkeypatch, *CLAIMS)
    unbounded = build("exp", (Y,))
    assert isinstance(unbounded, Call)
    assert unbounded.nullable
    assert not unbounded.finite
    assert run(unbounded, [{("t", "y"): value} for value in (0.0, 1e6)]) == [1.0, None]


def test_an_inexact_operator_makes_no_public_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """The lengths of declared keys are known where Python computes them; an operator that does not say so has none."""
    length = build("length", (ColumnRef("t", "s", ColumnType.TEXT, domain=("a", "bb")),))
    assert map_domain(length, 100) == (1, 2, None)
    forget(monkeypatch, "exact")
    assert map_domain(length, 100) is None


@pytest.mark.sparse(10)
@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_a_forgotten_claim_changes_no_answer(name: str) -> None:
    """Guards and NULLs that are not needed cost time: the engine gives the same values, within what is promised."""

    def expressions() -> list[Expression]:
        built = [build(name, arguments) for arguments in CASES[name][:2]]
        return built + [
            build("negate", (build("multiply", (one, Y)),)) for one in built if one.type is ColumnType.NUMBER
        ]

    rows = [edge_rows(expression)[:100] for expression in expressions()]
    expected = [run(expression, row) for expression, row in zip(expressions(), rows, strict=True)]
    for claims in (CLAIMS, *((claim,) for claim in CLAIMS)):
        with pytest.MonkeyPatch.context() as patch:
            forget(patch, *claims)
            for expression, row, values in zip(expressions(), rows, expected, strict=True):
                assert run(expression, row) == values
