"""The limits of queries."""

from __future__ import annotations

from fractions import Fraction

from privacy.numbers import ATTO, PICO, parse_decimal
from server.datasets.finding import WARNING
from server.datasets.meaning.judged import Judged
from server.datasets.model import PolicyFile

__all__ = ["DELTA_MAX", "EPSILON_MAX", "judge_policy"]

EPSILON_MAX = Fraction(100)
"""Largest epsilon that a policy may name for one query."""

DELTA_MAX = Fraction(1, 1000)
"""Largest delta that a policy may name for one query."""


def judge_policy(judged: Judged, policy: PolicyFile) -> None:
    """Finds limits that are not decimals, are out of their range, or contradict each other."""
    values: dict[str, Fraction] = {}
    for name, maximum, unit, zero in (
        ("epsilon_default", EPSILON_MAX, PICO, False),
        ("epsilon_max", EPSILON_MAX, PICO, False),
        ("epsilon_min", EPSILON_MAX, PICO, False),
        ("delta_per_query", DELTA_MAX, ATTO, True),
    ):
        if getattr(policy, name) is None:
            continue
        try:
            values[name] = parse_decimal(
                getattr(policy, name), name=name, maximum=maximum, unit=unit, zero_allowed=zero
            )
        except ValueError as error:
            judged.problem(
                ("policy", name),
                what=f'"{name}" of the policy cannot be used',
                why=f"{error}.",
                instead='Write a decimal in quotes, such as "0.1" for an epsilon or "1e-7" for a delta.',
            )
    if {"epsilon_default", "epsilon_max"} <= values.keys() and values["epsilon_default"] > values["epsilon_max"]:
        judged.problem(
            ("policy", "epsilon_default"),
            what='"epsilon_default" of the policy is above "epsilon_max"',
            why="A query that names no spend would always be refused.",
            instead="Lower epsilon_default or raise epsilon_max.",
        )
    if {"epsilon_min", "epsilon_max"} <= values.keys() and values["epsilon_min"] > values["epsilon_max"]:
        judged.problem(
            ("policy", "epsilon_min"),
            what='"epsilon_min" of the policy is above "epsilon_max"',
            why="Every query that reads rows would be refused.",
            instead="Lower epsilon_min or raise epsilon_max.",
        )
    if values.get("epsilon_max", Fraction(0)) > 10:
        judged.problem(
            ("policy", "epsilon_max"),
            code=WARNING,
            what='"epsilon_max" of the policy is large',
            why="Beyond an epsilon of 10 one answer may reveal almost certainly whether a person is in the data.",
            instead="Keep it at 1 or below unless the data is not sensitive.",
        )
