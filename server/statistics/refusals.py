"""Why registered statistics are not answered."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from mechanisms.measurement import plain_text
from privacy.numbers import decimal_text
from privacy.refusal import Finding
from server.above_floor import Shortfall
from server.resources import refusals

__all__ = ["above_most", "below_floor", "no_delta", "no_noise", "not_planned", "unknown", "width_asked", "width_range"]

_WHAT = "the statistic is refused"


def unknown(name: str, known: Sequence[str]) -> Finding:
    """Why there is no such statistic, for somebody who may ask those that are listed."""
    listed = ", ".join(known[:20])
    return Finding(
        code="unknown_statistic",
        what=f'the statistic "{name[:63]}" is refused',
        why="It is not registered for this dataset, or not for you.",
        instead=(
            f"You may ask: {listed}" if known else "ask the owner to register it in the dataset file, under statistics",
        ),
    )


def width_asked(kind: str, *, needed: bool, example: str) -> Finding:
    """Why a proposal is missing, or has no place."""
    why = (
        f"It is a statistic of {kind}: what is tested is that one unit moves it by no more than you propose."
        if needed
        else "A most frequent value is released as it is where it is stable, so nothing is proposed."
    )
    return Finding(
        code="accuracy_unreachable",
        what=_WHAT,
        why=why,
        instead=(f'"width": "{example}"' if needed else "leave width out",),
        field="width",
    )


def width_range(step: Fraction, most: Fraction) -> Finding:
    """Why a proposal outside the values is no proposal."""
    return Finding(
        code="accuracy_unreachable",
        what=_WHAT,
        why=f"A proposal lies between {plain_text(step)}, which is a place of its counts, and {plain_text(most)}, "
        "which is the range of its answers.",
        instead=(f'"width": "{plain_text(max(step, most / 100))}"',),
        field="width",
    )


def no_delta(why: str) -> Finding:
    """Why an account, or a policy, cannot pay for a test."""
    return Finding(
        code="policy_forbids",
        what=_WHAT,
        why=f"Its test passes wrongly with a small probability, its delta, and {why}.",
        instead=("ask an administrator for an account with a delta, and a policy with delta_per_query",),
    )


def no_noise(why: str) -> Finding:
    """Why noise cannot be drawn at a price."""
    return refusals.no_noise(_WHAT, why)


def above_most(most: Fraction) -> Finding:
    """Why a price above the policy's greatest is refused."""
    return refusals.above_most("a statistic", most, f'"spend": {{"epsilon": "{decimal_text(most)}"}}')


def below_floor(short: Shortfall, *, own: bool) -> Finding:
    """Why a price below the floor is refused; `own`: it was named as that of the statistic itself."""
    return refusals.below_floor("a statistic", short, own=own)


def not_planned() -> Finding:
    """Why a statement that the engine cannot plan is refused before it is charged."""
    return refusals.not_planned(_WHAT, "write the statistic in another way")
