"""Finer groups from which a core's cells follow by adding up: of coarser keys, of a total, of conditions on keys.

    stored   SELECT sex, band, COUNT(*) FROM people GROUP BY sex, band
    asked    SELECT sex, COUNT(*) FROM people GROUP BY sex
             SELECT COUNT(*) FROM people
             SELECT COUNT(*) FROM people WHERE band = 'old'               one group, or band <> 'old': all others
             SELECT sex, COUNT(*) FROM people WHERE band IN (...) GROUP BY sex

**Claim.** Let a core have bounds under which a unit has one group at most, without a choice of groups: it has one row,
or the keys read what is the same in all of its rows, so that its rows are in one cell (contribution.py, `alone`). Let a
set of its public cells be those whose keys satisfy conditions. Then the sums over this set are those of the core
without those keys over the rows that satisfy the conditions, and each unit adds the same to both. **Proof.** Every row
is in exactly one cell, that of its keys (`map_domain`: all values of a key are in its domain), and satisfies the
conditions exactly when its keys do: they read a column that is a key, and the evaluator is the engine bit for bit for
exact operators. A unit's rows are in one cell g, so a_g and with it every vector of bounding.md is the same function of
the same rows, and it adds nothing elsewhere. With fewer keys the unit has one group again, and the bounds are equal;
the identity below holds them, so that bounds that are not equal give another identity. QED. The sums of units, rows,
values and moments add up; different values do not.

Where a unit may have several groups, bounds hold it in each of them, and the total is another number: no frame then.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from privacy.policy import Dataset, KeyValue
from privacy.refusal import Refused
from sql_rewrite.bounded import BoundedCore
from sql_rewrite.contribution import Contribution
from sql_rewrite.evaluate import closed_domain, evaluate, is_exact
from sql_rewrite.expressions import ColumnRef, Expression, columns_of, form_of
from sql_rewrite.functions import build
from sql_rewrite.keys import key_domain
from sql_rewrite.plan import Core
from sql_rewrite.plan_key import identity_key
from sql_rewrite.reachable import conjuncts

__all__ = ["VALUES_MAX", "FinerFrame", "coarse_of", "finer_frames", "held_keys", "key_digest", "values_of_key"]

_SHORT = 32
_FRAMES_MAX = 4
"""Most sets of conditions that are taken for conditions on keys of a finer release."""

VALUES_MAX = 1_000
"""Most values of a key that a condition is evaluated for."""


@dataclass(frozen=True, slots=True)
class FinerFrame:
    """Finer groups of the rows of a core: their frame without groups, and what the cells of a core are in them.

    `keys` are the keys by which the core itself groups, in its order, and `allowed` the values that other keys may have
    (all of them where a key is not named). Keys are named by their digests.
    """

    coarse: str
    keys: tuple[str, ...]
    allowed: Mapping[str, frozenset[KeyValue]]


def coarse_of(bounded: BoundedCore, dataset: Dataset, where: Expression | None) -> str | None:
    """The identity of a core's rows and bounds under some conditions; None where cells do not add up."""
    contribution, core = bounded.contribution, bounded.core
    if not isinstance(contribution, Contribution) or contribution.groups != 1 or contribution.choose_groups:
        return None
    if bounded.described.keys.domain is None or core.choice is not None or core.met:
        return None
    return identity_key(("coarse", replace(core, aggregates=(), keys=(), where=where), contribution), dataset)


def key_digest(key: Expression, values: Sequence[KeyValue], dataset: Dataset) -> str:
    """The digest of a key with these public values."""
    return identity_key(("key", key), dataset, cells=sorted(map(repr, values)))[:_SHORT]


def values_of_key(
    core: Core, key: Expression, where: Expression | None, dataset: Dataset
) -> tuple[str, tuple[KeyValue, ...]]:
    """The digest of a key, and its public values among rows under these conditions. Errors: Refused without any."""
    _, cells = key_domain(replace(core, keys=(("k0", key),), where=where), dataset)
    values = () if cells is None else tuple([cell[0] for cell in cells])
    return key_digest(key, values, dataset), values


def held_keys(bounded: BoundedCore, dataset: Dataset) -> list[tuple[str, int]]:
    """The digests of a core's keys with their numbers of values; none where its cells are not all combinations."""
    cells, domains = bounded.described.keys.domain, [domain for domain in bounded.domains if domain is not None]
    if cells is None or not domains or math.prod(map(len, domains)) != len(cells):
        return []
    keys = zip(bounded.core.keys, domains, strict=True)
    return [(key_digest(key, domain, dataset), len(domain)) for (_, key), domain in keys]


def finer_frames(bounded: BoundedCore, dataset: Dataset) -> tuple[FinerFrame, ...]:
    """The frames whose finer groups give the cells of a core, the one with all of its conditions first."""
    core = bounded.core
    parts = () if core.where is None else conjuncts(core.where)
    by_column: dict[object, tuple[ColumnRef, list[Expression]]] = {}
    for part in parts:
        columns = {form_of(column): column for column in columns_of(part)}
        if len(columns) == 1 and _tells(part, column := next(iter(columns.values()))):
            by_column.setdefault(form_of(column), (column, []))[1].append(part)
    every = list(by_column.values())
    chosen = [[], every, *([one] for one in every if len(every) > 1)][:_FRAMES_MAX] if every else [[]]
    found = [_frame(bounded, dataset, parts, one) for one in chosen]
    return tuple([frame for frame in found if frame is not None])


def _tells(condition: Expression, column: ColumnRef) -> bool:
    """Whether a condition can be evaluated for all values of its only column."""
    values = closed_domain(column)
    return values is not None and len(values) <= VALUES_MAX and column.other is None and is_exact(condition)


def _frame(
    bounded: BoundedCore,
    dataset: Dataset,
    parts: Sequence[Expression],
    chosen: Sequence[tuple[ColumnRef, list[Expression]]],
) -> FinerFrame | None:
    """The frame with the conditions that are not chosen; None where there is none."""
    core = bounded.core
    gone = [part for _, own in chosen for part in own]
    rest = tuple([part for part in parts if all(part is not one for one in gone)])
    where = build("and", rest) if len(rest) > 1 else rest[0] if rest else None
    coarse = coarse_of(bounded, dataset, where)
    if coarse is None:
        return None
    try:
        keys = [] if chosen else [digest for digest, _ in held_keys(bounded, dataset)]
        if len(keys) != len(core.keys):
            keys = [values_of_key(core, key, where, dataset)[0] for _, key in core.keys]
        allowed = {}
        for column, own in chosen:
            digest, values = values_of_key(core, column, where, dataset)
            read = (column.relation, column.name)
            allowed[digest] = frozenset(v for v in values if all(evaluate(one, {read: v}) is True for one in own))
    except Refused:
        return None
    cells = bounded.described.keys.domain
    assert cells is not None
    for place, digest in enumerate(keys):
        # Of a key with a condition the core has only cells that satisfy it.
        if digest in allowed and any(cell[place] not in allowed[digest] for cell in cells):
            return None
    return FinerFrame(coarse, tuple(keys), {key: values for key, values in allowed.items() if key not in keys})
