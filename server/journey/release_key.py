"""What a stored release is one of, and how good it is: the identity under which the ledger keeps and finds it.

Two releases of one core are comparable when their noise is of one family and their groups were selected with one delta:
then the one with more of its family's amount (pure epsilon, or mu) is at least as exact in every statistic, because the
parts of the statistics are fixed by the core, or stand in the key where a width split the price by need. So family and
delta belong to the key, and the amount is the quality. It is an amount of noise, not a share of somebody's account, and
means the same on every account.

A wish is served by a release of any family that it admits with at least the amount which the wish would buy in that
family, and, where groups are selected, with the delta asked for or with the policy's own where that is the greater one:
more delta shows more groups.

A question about levels of groups is served by a release of the finest one alone too, at the amount that it would buy:
what it computes from it is what it was answered with when nothing else was measured.
A better law of the same statistic is another release, with a name in its key. A release of the earlier law serves what
was asked by its price as it always did; what was asked by its width it serves with so many times the amount that it is
at least as exact.
"""

from __future__ import annotations

import hashlib
import json
from fractions import Fraction

from mechanisms.families import FAMILIES, Law, NoiseFamily, Price
from privacy.events.event import fraction_to_text
from privacy.statistic import CoreStatistics

__all__ = ["law_of", "measured", "quality_of", "release_key"]


def measured(core: CoreStatistics, family: NoiseFamily) -> str:
    """The levels of a core that are measured together with this family of noise, as text; empty where one alone is."""
    lattice = FAMILIES[family].lattice(core)
    return "" if lattice is None else lattice.text


def law_of(core: CoreStatistics, family: NoiseFamily, *, pure: bool, levels: str = "") -> Law | None:
    """The law of a core's noise in this family, on these levels, where earlier versions drew another one.

    `pure`: where nothing but pure epsilon counts.
    """
    return None if levels else FAMILIES[family].law(core, pure=pure)


def release_key(
    core_key: str,
    family: NoiseFamily,
    *,
    delta: Fraction,
    levels: str = "",
    law: Law | None = None,
    raised: bool = False,
    split: str = "",
) -> str:
    """The key (SHA-256, hex) of a core's releases with this family of noise and this delta of its selection.

    `delta` is that of the core alone, zero where its groups are public. `levels` are those that are measured together,
    as text: another split of the price over them is another release. Empty where the finest one is measured alone.
    `law` is None for noise as earlier versions drew it.
    `raised` ones are means of a release and what was bought beside it (sharpening.py): their intervals hold at every
    look, so that one of as much noise as a fresh release is wider.
    `split` says how its statistics share the price where a width split it by need; empty for their fixed parts.
    """
    body: dict[str, object] = {"core": core_key, "delta": fraction_to_text(delta), "noise": family.value, "version": 1}
    if levels:
        body["levels"] = levels
    if law is not None:
        body["law"] = law.name
    if raised:
        body["raised"] = True
    if split:
        body["split"] = split
    return hashlib.sha256(json.dumps(body, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def quality_of(price: Price, part: Fraction) -> Fraction:
    """The quality of a core that gets this part of a price: its pure epsilon, or its mu rounded down to picos."""
    return FAMILIES[price.family].currency.quality(price.amount * part)
