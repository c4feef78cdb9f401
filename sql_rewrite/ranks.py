"""The statistic of quantiles: a tree of counts over the range of their argument (mechanisms/quantiles.md)."""

from __future__ import annotations

import math
from fractions import Fraction

from privacy.rank_tree import NODES_MAX, PLACES, RankTree, shape_of
from privacy.refusal import Refused
from privacy.statistic import Encoding
from sql_rewrite.builder import Family
from sql_rewrite.refuse import refuse

__all__ = ["beside_different", "hidden_groups", "several_rows", "tree_of"]

_WORTH = 2**10
"""Integer units of a row: the noise is rounded to a thousandth of a row, which moves no rank."""


def tree_of(
    family: Family, limits: tuple[Fraction, Fraction], *, integer: bool, cells: int
) -> tuple[RankTree, Encoding]:
    """The tree of a column between its bounds, and how a value becomes its place.

    As many places as there are whole numbers between the bounds, or else as many as all cells together may have. A pure
    function of declarations. Errors: Refused (key_domain_too_large).
    """
    lower, upper = limits
    if integer:
        lower, upper = Fraction(math.floor(lower)), Fraction(math.ceil(upper))
    wanted = int(upper - lower) + 1 if integer else PLACES[0]
    for most in PLACES:
        places = min(wanted, most)
        width = math.ceil(Fraction(wanted, places)) if integer else 1
        places = -(-wanted // width) if integer else places
        tree = RankTree(*shape_of(places), lower, upper, integer, _WORTH)
        if tree.nodes * cells <= NODES_MAX:
            break
    else:
        raise _too_many(family, cells)
    if not integer:
        step = (upper - lower) / tree.places or Fraction(1)
        return tree, Encoding(lower + step / 2, step, 0, tree.places - 1)
    return tree, Encoding(lower + Fraction(width - 1, 2), Fraction(width), 0, places - 1)


def several_rows(family: Family) -> Refused:
    """Quantiles where a unit may have several rows."""
    return _refused(
        family,
        "A person may have several rows here, and quantiles are answered where each person has one.",
        "use AVG, which weighs a person by its rows",
    )


def hidden_groups(family: Family) -> Refused:
    """Quantiles of groups that are not public."""
    return _refused(
        family,
        "Its groups are not declared, and quantiles are answered of public groups.",
        "group by columns with declared keys, or leave GROUP BY out",
        "use AVG, STDDEV or COUNT, which are answered in such groups",
    )


def beside_different(family: Family) -> Refused:
    """Quantiles in one block with different values."""
    return _refused(
        family,
        "It stands beside an aggregate of DISTINCT values, which is counted in another way.",
        "ask for both in two queries",
    )


def _too_many(family: Family, cells: int) -> Refused:
    first = family.aggregates[0]
    return refuse(
        "key_domain_too_large",
        f"{first.text} is refused",
        f"It is asked of {cells:,} groups, and a tree of counts is kept for each: at most "
        f"{NODES_MAX // RankTree(*shape_of(PLACES[-1]), Fraction(0), Fraction(1), False).nodes:,} groups are answered.",
        "group by fewer columns, or ask for a part of the groups in WHERE",
        "use AVG, STDDEV or COUNT, which are answered in as many groups",
        position=first.position,
    )


def _refused(family: Family, why: str, *instead: str) -> Refused:
    first = family.aggregates[0]
    return refuse("unsupported_sql", f"{first.text} is refused", why, *instead, position=first.position)
