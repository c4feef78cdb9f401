"""Coarser trees where very many hidden groups are shown: quantiles.md.

How many are shown is released by their selection, so the tree on which they are then measured may follow from it.
"""

from __future__ import annotations

from dataclasses import replace

from mechanisms.calibrate import Calibration
from mechanisms.measurement import Measurement
from privacy.rank_tree import NODES_MAX
from privacy.statistic import Encoding, Statistic

__all__ = ["fitting"]


def fitting(calibration: Calibration, core: str, *, groups: int) -> Calibration:
    """The calibration with trees whose counts fit their limit over so many groups, or the coarsest ones.

    Scales and events stay: what one unit changes on a coarser tree of as many levels is no more in any norm.
    """
    return replace(
        calibration,
        measurements=tuple(_fitting(one, groups) if one.core == core else one for one in calibration.measurements),
    )


def _fitting(measurement: Measurement, groups: int) -> Measurement:
    statistic = measurement.statistic
    while statistic.tree is not None and statistic.tree.nodes * groups > NODES_MAX and statistic.tree.halves:
        statistic = _coarser(statistic)
    return measurement if statistic is measurement.statistic else replace(measurement, statistic=statistic)


def _coarser(statistic: Statistic) -> Statistic:
    tree, encoding = statistic.tree, statistic.encoding
    assert tree is not None
    assert encoding is not None
    halved = tree.coarser()
    together = tree.places // halved.places
    # The middle of the first place: of whole numbers that of the first and the last in it.
    step = encoding.step * together
    offset = tree.lower + ((step - 1) if tree.whole else step) / 2
    return replace(
        statistic,
        tree=halved,
        coordinates=halved.nodes,
        encoding=Encoding(offset, step, 0, encoding.highest // together),
    )
