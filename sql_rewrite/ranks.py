"""The statistic of quantiles: a tree of counts over the range of their argument (mechanisms/quantiles.md)."""

from __future__ import annotations

import math
from fractions import Fraction

from privacy.aggregate import AggregateFunction
from privacy.rank_tree import BLOCKS, NODES_MAX, PLACES, Drawn, QuantileMechanism, RankTree, shape_of
from privacy.refusal import Refused
from privacy.statistic import Encoding
from sql_rewrite.builder import Family
from sql_rewrite.named_ranks import Asked
from sql_rewrite.refuse import refuse

__all__ = ["SCALED_PARTS", "check_hidden", "tree_of"]

_WORTH = 2**10
"""Integer units of a row: the noise is rounded to a thousandth of a row, which moves no rank."""

SCALED_PARTS = 20
"""Binary places of a row's weight where its unit may be scaled: rows of a table weigh 2^60 together at most."""

_HIDDEN_TREES_MAX = 4
"""Trees of one core with hidden groups: each takes memory for every group that occurs, shown or not."""


_DRAWN_MAX = 3
"""Most quantiles of one argument that are drawn one by one: of more than that the tree alone is the better one."""

_DRAWN_VALUES_MIN = 512
"""Fewest values of whole numbers: of few, the tree mostly knows in which one a quantile is, and shows that it does."""

_DRAWN_PLACES = 2**16
"""Most places among which quantiles of all groups together are drawn: as many are grouped by, and kept in memory."""

_DRAWN_PLACES_MIN = 2**10
"""Fewest places of one group for each quantile that is drawn, where places hold many values: a drawn value is the
middle of its place, and among fewer the tree, whose values lie inside places, is nearer (mechanisms/quantiles.md)."""

_DRAWN_KINDS = {AggregateFunction.QUANTILE: False, AggregateFunction.QUANTILE_DISCRETE: True}
"""The aggregates that are drawn, and whether they are a row."""


def tree_of(
    family: Family,
    limits: tuple[Fraction, Fraction],
    *,
    integer: bool,
    cells: int | None,
    scaled: bool,
    asked: Asked | None = None,
) -> tuple[RankTree, Encoding, Drawn | None]:
    """The tree of a column between its bounds, how a value becomes its place, and the quantiles that are drawn.

    As many places as there are whole numbers between the bounds, or else as many as all cells together may have; of
    hidden groups (no cells) the fewest. With `scaled` a row may weigh a part of one; `asked` is the mechanism that a
    request names. A pure function of text, request and declarations.
    Errors: Refused (key_domain_too_large; unsupported_sql for what a mechanism that is named does not answer).
    """
    lower, upper = limits
    if integer:
        lower, upper = Fraction(math.floor(lower)), Fraction(math.ceil(upper))
    wanted = int(upper - lower) + 1 if integer else PLACES[0]
    for most in PLACES if cells is not None else PLACES[-1:]:
        places = min(wanted, most)
        width = math.ceil(Fraction(wanted, places)) if integer else 1
        places = -(-wanted // width) if integer else places
        # That of hidden groups can be halved, where many are shown (mechanisms/fitted_trees.py).
        shape = shape_of(places if cells is not None else most)
        tree = RankTree(*shape, lower, upper, integer, 2**SCALED_PARTS if scaled else _WORTH)
        if cells is None or tree.nodes * cells <= NODES_MAX:
            break
    else:
        assert cells is not None
        raise _too_many(family, cells)
    if asked is not None:
        drawn: Drawn | None = _named(asked, family, tree, cells, wanted=wanted if integer else None, scaled=scaled)
    else:
        drawn = None if cells is None else _drawn(family, tree, cells, wanted=wanted if integer else None)
    if not integer:
        step = (upper - lower) / tree.places or Fraction(1)
        return tree, Encoding(lower + step / 2, step, 0, tree.places - 1), drawn
    if drawn is not None:
        # Finer places of whole numbers, as many to each place.
        width = drawn.finer * math.ceil(Fraction(width, drawn.finer))
        places = -(-wanted // width)
    return tree, Encoding(lower + Fraction(width - 1, 2), Fraction(width), 0, places - 1), drawn


def _drawn(family: Family, tree: RankTree, cells: int, *, wanted: int | None) -> Drawn | None:
    """The quantiles that are drawn: where few are asked for, of a column with many values, and of few public groups.

    `wanted` is the number of values of whole numbers. A pure function of the text and of declarations.
    """
    asked = {(one.fraction, _DRAWN_KINDS.get(one.function)) for one in family.aggregates}
    if len(asked) > _DRAWN_MAX or tree.lower == tree.upper or (wanted is not None and wanted < _DRAWN_VALUES_MIN):
        return None
    found: dict[bool, list[Fraction]] = {False: [], True: []}
    for fraction, discrete in asked:
        if fraction is None or discrete is None or not 0 < fraction < 1:
            return None
        found[discrete].append(fraction)
    finer = _finer(tree, cells, wanted)
    places = finer * tree.places
    if (wanted is None or places < wanted) and places < _DRAWN_PLACES_MIN * len(asked):
        return None
    return Drawn(tuple(sorted(found[False])), tuple(sorted(found[True])), finer)


def _finer(tree: RankTree, cells: int, wanted: int | None) -> int:
    """Into how many finer places each place of the tree is divided."""
    most = max(1, _DRAWN_PLACES // cells // tree.places)
    return most if wanted is None else min(most, math.ceil(Fraction(wanted, tree.places)))


def _named(
    asked: Asked, family: Family, tree: RankTree, cells: int | None, *, wanted: int | None, scaled: bool
) -> Drawn:
    """What is drawn by the mechanism that the request names. Errors: Refused."""
    fractions: dict[bool, set[Fraction]] = {False: set(), True: set()}
    for one in family.aggregates:
        kind = _DRAWN_KINDS.get(one.function)
        if kind is None or one.fraction is None or not 0 < one.fraction < 1:
            raise asked.refused("An extreme value is read from counts, and is drawn by no mechanism.")
        fractions[kind].add(one.fraction)
    if sum(map(len, fractions.values())) > _DRAWN_MAX:
        raise asked.refused(f"At most {_DRAWN_MAX} quantiles of one value are drawn.")
    if cells is None:
        raise asked.refused("Quantiles are drawn in public groups alone, and its groups are not declared.")
    if tree.lower == tree.upper:
        raise asked.refused("All of its values are equal by declaration.")
    asked.check_units(scaled=scaled)
    return Drawn(
        tuple(sorted(fractions[False])),
        tuple(sorted(fractions[True])),
        _finer(tree, cells, wanted),
        asked.mechanism,
        BLOCKS if asked.mechanism is QuantileMechanism.SAMPLE_AND_AGGREGATE else 0,
    )


def check_hidden(family: Family, trees: int) -> None:
    """Errors: Refused, for one tree more than a core with hidden groups may have."""
    if trees < _HIDDEN_TREES_MAX:
        return
    first = family.aggregates[0]
    raise refuse(
        "too_large",
        f"{first.text} is refused",
        f"Its groups are not declared, and quantiles of at most {_HIDDEN_TREES_MAX} different values or conditions are "
        "answered in such groups at once.",
        "ask for them in several queries",
        position=first.position,
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
