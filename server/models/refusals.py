"""Why models are not fitted."""

from __future__ import annotations

from fractions import Fraction

from privacy.numbers import decimal_text
from privacy.refusal import Finding
from server.above_floor import Shortfall
from server.resources import refusals

__all__ = [
    "above_most",
    "below_floor",
    "no_noise",
    "not_a_class",
    "not_two_values",
    "too_long",
    "too_many_rows",
    "too_wide",
    "unpaid",
]

_WHAT = "the model is refused"


def not_a_class(low: Fraction, high: Fraction) -> Finding:
    """Why a label beyond 0 and 1 has no logistic regression."""
    return Finding(
        code="unsupported_sql",
        what="the label is refused",
        why=f"Logistic regression predicts a condition; by its declaration this label lies between {float(low):g} and "
        f"{float(high):g}.",
        instead=(
            "write a condition: income > 50000 AS label",
            '"method": "sufficient_statistics" predicts a number',
        ),
    )


def not_two_values() -> Finding:
    """Why numbers between 0 and 1 have no logistic regression."""
    return Finding(
        code="unsupported_sql",
        what="the label is refused",
        why="Logistic regression predicts a condition; this label may have values between 0 and 1.",
        instead=("write a condition: x >= 0.5 AS label", '"method": "sufficient_statistics" predicts a number'),
    )


def too_wide(width: int, most: int) -> Finding:
    """Why second moments of so many columns are not measured."""
    return Finding(
        code="too_large",
        what=_WHAT,
        why=f"Sufficient statistics measure all pairs of {width} encoded columns; {most} columns are allowed.",
        instead=("leave out features with many keys", '"method": "input_clipping" needs no pairs'),
    )


def too_long(seconds: float, most: float) -> Finding:
    """Why a model that would not end in time is refused before it is charged."""
    return Finding(
        code="too_large",
        what=_WHAT,
        why=f"On the declared number of rows it takes about {seconds:.0f} s of the {most:.0f} s that a question has.",
        instead=("ask for fewer iterations", "leave out features with many keys"),
    )


def too_many_rows(rows: int, row_bytes: int, most: int) -> Finding:
    """Why a model whose rows would not fit into a worker is refused before it is charged."""
    return Finding(
        code="too_large",
        what=_WHAT,
        why=f"A worker holds its rows at {row_bytes} bytes each: about {rows:,} are declared, and it has room for "
        f"{most // row_bytes:,}.",
        instead=(
            "leave out features, above all those with many keys",
            "ask the operator for a larger engine_memory_mb",
        ),
    )


def no_noise(why: str) -> Finding:
    """Why noise cannot be drawn at a price."""
    return refusals.no_noise(_WHAT, why)


def unpaid(why: str) -> Finding:
    """Why an account cannot pay."""
    return Finding(
        code="policy_forbids",
        what=_WHAT,
        why=f"It is measured with Gaussian noise, and {why}.",
        instead=("ask an administrator for an account with a delta",),
    )


def above_most(most: Fraction) -> Finding:
    """Why a price above the policy's greatest is refused."""
    return refusals.above_most("a model", most, f'"spend": {{"epsilon": "{decimal_text(most)}"}}')


def below_floor(short: Shortfall, *, own: bool) -> Finding:
    """Why a price below the floor is refused; `own`: it was named as that of the model itself."""
    return refusals.below_floor("a model", short, own=own)
