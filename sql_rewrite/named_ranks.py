"""Quantiles by a mechanism that the request names: which cores they are of, and what no mechanism of that name answers.

Everything here follows from the request, the text and declarations.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import assert_never

from privacy.rank_tree import QuantileMechanism
from privacy.refusal import Refused
from privacy.statistic import StatisticKind
from sql_rewrite.builder import Family
from sql_rewrite.plan import Core, Plan
from sql_rewrite.refuse import refuse

__all__ = ["Asked", "asked_of", "by_mechanism"]


@dataclass(frozen=True, slots=True)
class Asked:
    """A mechanism that is named for the quantiles of one value, and what is known of their core."""

    mechanism: QuantileMechanism
    family: Family
    grouped: bool

    def refused(self, why: str) -> Refused:
        """The refusal of these quantiles."""
        first = self.family.aggregates[0]
        return refuse(
            "unsupported_sql",
            f"{first.text} is refused by the mechanism {self.mechanism}",
            why,
            "ask without naming a mechanism: the server chooses one",
            "ask for at most three quantiles between 0 and 1, and for MIN and MAX by themselves",
            "name public groups, or one group in WHERE",
            position=first.position,
        )

    def check_units(self, *, scaled: bool) -> None:
        """Errors: Refused where a unit may have more rows, or groups, than the proof of the mechanism allows."""
        match self.mechanism:
            case QuantileMechanism.EXPONENTIAL:
                return
            case QuantileMechanism.SMOOTH:
                if scaled:
                    raise self.refused(
                        "A unit may have several rows, and smooth sensitivity is proved for one row of each."
                    )
            case QuantileMechanism.SAMPLE_AND_AGGREGATE:
                if scaled and self.grouped:
                    raise self.refused("A unit may be in several groups, and would change a block's answer in each.")
            case _:
                assert_never(self.mechanism)


def asked_of(core: Core, family: Family) -> Asked | None:
    """The mechanism that is named for a core's quantiles; None where none is."""
    return None if core.quantiles is None else Asked(core.quantiles, family, bool(core.keys))


def by_mechanism(plan: Plan, mechanism: QuantileMechanism | None) -> Plan:
    """The plan whose quantiles are all asked for by this mechanism. Errors: Refused where it has none."""
    if mechanism is None:
        return plan
    ranked = {core.name for core in plan.cores if _ranked(core)}
    if not ranked:
        raise refuse(
            "unsupported_sql",
            f"the mechanism {mechanism} is refused",
            "It names how quantiles are drawn, and the query has no quantile of people's rows.",
            "ask for MEDIAN or a quantile",
            "leave the mechanism out",
        )
    return replace(
        plan,
        cores=tuple([replace(core, quantiles=mechanism) if core.name in ranked else core for core in plan.cores]),
    )


def _ranked(core: Core) -> bool:
    return any(one.function.statistic is StatisticKind.RANKS for one in core.aggregates)
