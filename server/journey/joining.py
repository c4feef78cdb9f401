"""Answers from several stored releases at once: which of them are combined, and the table of the estimate.

All of them hold sums of cells of the same rows (sql_rewrite/boxes.py): a total and a part, two marginals, overlapping
ranges. Each brings noise of its own: a release that was made from another one in store is never combined with it, nor
one with what is not known to be independent of the rest. The weights follow from what was asked and how exactly
(mechanisms/least_squares.py); the ledger serves all of the releases, or none.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from accountant.request import HeldRelease
from mechanisms.held_sums import HeldSums, may_say
from mechanisms.least_squares import JoinedGaussian, Term, estimated, joined, joins, weights_of
from mechanisms.measurements.gaussian import GaussianMeasurement
from mechanisms.measurements.gaussian_combined import factors
from mechanisms.noisy_sums import NoisySums
from mechanisms.released_table import ReleasedTable
from privacy.refusal import ExecutionFailed
from privacy.values import Json
from sql_rewrite.boxes import Box, Sum, equations, rows_within

__all__ = ["Joined", "Piece", "box_from_plain", "box_to_plain", "join", "joined_sums"]


@dataclass(frozen=True, slots=True)
class Piece:
    """A stored release that may be one of several: what its sums are, and of which draws of noise they are made.

    `origins` are the releases whose noise is in it, itself included; None where that is not known.
    """

    release: HeldRelease
    sums: tuple[HeldSums, ...]
    box: Box
    origins: frozenset[str] | None


@dataclass(frozen=True, slots=True)
class _Recipe:
    """One estimate of sums: its noise, and of each term the rows of its release, for each cell."""

    measurement: JoinedGaussian
    terms: tuple[Term, ...]
    rows: tuple[list[list[int]], ...]
    names: tuple[str, ...]
    """Of each piece the statistic; empty where none is read."""


@dataclass(frozen=True, slots=True)
class Joined:
    """Estimates from several releases: what their sums are, and those releases, in the order of their qualities."""

    sums: tuple[HeldSums, ...]
    pieces: tuple[Piece, ...]
    recipes: tuple[_Recipe, ...]


def box_to_plain(box: Box) -> dict[str, Json]:
    """A box as JSON holds it: of each place how often each block follows in a row."""
    runs: dict[str, Json] = {
        name: [number for block, same in itertools.groupby(blocks) for number in (sum(1 for _ in same), block)]
        for name, blocks in box.places.items()
    }
    lines: dict[str, Json] = {name: list(ends) for name, ends in box.lines.items()}
    return {"places": runs, "keys": [[name, size] for name, size in box.keys], "lines": lines}


def box_from_plain(stored: Mapping[str, Any]) -> Box:
    """What `box_to_plain` gave. Errors: KeyError, TypeError or ValueError for anything else."""
    places = {}
    for name, runs in stored["places"].items():
        pairs = zip(runs[::2], runs[1::2], strict=True)
        places[str(name)] = tuple([int(block) for times, block in pairs for _ in range(int(times))])
    keys = tuple([(str(name), int(size)) for name, size in stored["keys"]])
    lines = {str(name): tuple(map(int, ends)) for name, ends in stored.get("lines", {}).items()}
    if any(name not in places for name in (*lines, *(name for name, _ in keys))):
        raise ValueError("a key is a place, and so is a line")
    if any(len(places[name]) - 2 * len(ends) not in (1, 2) for name, ends in lines.items()):
        raise ValueError("a line has a value below, and two for each constant")
    return Box(places, keys, lines)


def join(asked: Box, estimands: Sequence[str], pieces: Sequence[Piece]) -> Joined | None:
    """The best estimates of what is asked from several of these releases; None where not all of it follows from them.

    Releases are taken in their order, each that shares no noise with those before it.
    """
    chosen = _independent(pieces)
    found: dict[tuple[str, ...], tuple[_Recipe, frozenset[str]]] = {}
    for estimand in dict.fromkeys(estimands):
        held = _alike(chosen, estimand)
        names = tuple(["" if one is None else one.measurement.statistic.name for one in held])
        if names in found:
            continue
        recipe = _recipe(f"s{len(found)}", asked, chosen, held)
        if recipe is None:
            return None
        gives = [one.gives for one in held if one is not None]
        found[names] = recipe, frozenset.intersection(*gives)
    used = {term.release for recipe, _ in found.values() for term in recipe.terms}
    if len(used) < 2:
        return None
    kept = sorted(used)
    recipes = tuple([_renumbered(recipe, kept) for recipe, _ in found.values()])
    sums = tuple([HeldSums(recipe.measurement, gives) for recipe, gives in found.values()])
    return Joined(sums, tuple([chosen[place] for place in kept]), recipes)


def _independent(pieces: Sequence[Piece]) -> list[Piece]:
    """The releases, without those that share noise or a key with one before."""
    chosen, seen, keys = list[Piece](), set[str](), set[str]()
    for piece in pieces:
        if piece.origins is None or piece.origins & seen or piece.release.core_key in keys:
            continue
        chosen.append(piece)
        seen |= piece.origins
        keys.add(piece.release.core_key)
    return chosen


def _alike(pieces: Sequence[Piece], estimand: str) -> list[HeldSums | None]:
    """Of each release the sums that say an estimand: those of the kind that most releases have, of equals the first."""
    found = [
        next((sums for sums in piece.sums if may_say(sums.gives, estimand) and joins(sums.measurement)), None)
        for piece in pieces
    ]
    kinds: list[tuple[object, ...]] = []
    places = []
    for sums in found:
        if sums is None:
            places.append(-1)
            continue
        kind = _kind(sums)
        if kind not in kinds:
            kinds.append(kind)
        places.append(kinds.index(kind))
    most = max(range(len(kinds)), key=places.count, default=None)
    return [sums if place == most else None for sums, place in zip(found, places, strict=True)]


def _kind(sums: HeldSums) -> tuple[object, ...]:
    """What has to be equal of sums that are added up."""
    measurement = sums.measurement
    assert isinstance(measurement, GaussianMeasurement)
    return replace(measurement.statistic, name="", argument=""), factors(measurement)


def _recipe(name: str, asked: Box, pieces: Sequence[Piece], held: Sequence[HeldSums | None]) -> _Recipe | None:
    """The estimate of one statistic; None where it does not follow."""
    places = [place for place, sums in enumerate(held) if sums is not None]
    wanted, found = frozenset([0]), list[tuple[int, frozenset[int], int, Sum | list[list[int]]]]()
    if asked.keys:
        for place in places:
            within = rows_within(asked, pieces[place].box)
            if within is not None:
                found.append((place, wanted, len(within[0]), within))
    else:
        solved = equations(asked, [pieces[place].box for place in places])
        while solved is None and places:
            places.pop()
            solved = equations(asked, [pieces[place].box for place in places])
        if solved is None:
            return None
        wanted = solved.wanted
        found = [
            (place, one.atoms, one.cells, one) for place, own in zip(places, solved.sums, strict=True) for one in own
        ]
    if not found:
        return None
    noise: dict[int, GaussianMeasurement] = {}
    for place in places:
        sums = held[place]
        assert sums is not None
        assert isinstance(sums.measurement, GaussianMeasurement)
        noise[place] = sums.measurement
    of_draw = {place: float(one.scale_of_sums) ** 2 for place, one in noise.items()}
    variances = [cells * of_draw[place] for place, _, cells, _ in found]
    weights = weights_of(wanted, [atoms for _, atoms, _, _ in found], variances)
    if weights is None or not any(weights):
        return None  # where no value is wanted every sum weighs nothing
    terms, rows_of = [], []
    for (place, _, cells, rows), weight in zip(found, weights, strict=True):
        if weight:
            terms.append(Term(place, cells, weight))
            sizes = [size for _, size in pieces[place].box.keys]
            rows_of.append([rows.rows(sizes)] if isinstance(rows, Sum) else rows)
    measurement = joined(name, noise, terms)
    if measurement is None:
        return None
    used = {term.release for term in terms}
    names = tuple(
        [
            sums.measurement.statistic.name if sums is not None and place in used else ""
            for place, sums in enumerate(held)
        ]
    )
    return _Recipe(measurement, tuple(terms), tuple(rows_of), names)


def _renumbered(recipe: _Recipe, kept: Sequence[int]) -> _Recipe:
    """The recipe with only those releases."""
    terms = tuple([replace(term, release=kept.index(term.release)) for term in recipe.terms])
    return replace(recipe, terms=terms, names=tuple([recipe.names[place] for place in kept]))


def joined_sums(found: Joined, tables: Sequence[ReleasedTable]) -> tuple[NoisySums, ...]:
    """The estimates, from the tables of the releases in their order. Errors: ExecutionFailed for others."""
    result = []
    for recipe in found.recipes:
        parts = []
        for piece, name, table in zip(found.pieces, recipe.names, tables, strict=True):
            known = {one.measurement.statistic.name: one for one in table.sums or ()}
            cells = 1
            for _, size in piece.box.keys:
                cells *= size
            if table.rows != cells or (name and name not in known):
                raise ExecutionFailed
            parts.append(known[name] if name else next(iter(known.values())))
        result.append(estimated(recipe.measurement, parts, recipe.terms, recipe.rows))
    return tuple(result)
