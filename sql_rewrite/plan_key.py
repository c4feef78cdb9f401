"""Equal plans: one text for all spellings of one private question.

Two cores with the same key ask for the same statistics of the same rows, so a stored release of one answers the
other. Aliases, order of keys and aggregates, ORDER BY, LIMIT and everything else of the shell do not take part.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from privacy.policy import Dataset
from sql_rewrite.expressions import Expression, canonical
from sql_rewrite.plan import Core

__all__ = ["canonical_core", "core_key"]


def _form(expression: Expression | None) -> Any:
    return None if expression is None else canonical(expression)


def canonical_core(core: Core) -> tuple[Any, ...]:
    """A nested tuple that is equal for equal cores, whatever their names."""
    return (
        tuple(
            (
                source.relation,
                source.table.name.lower(),
                None
                if source.join is None
                else (_form(source.join.child), _form(source.join.parent), source.join.outer),
            )
            for source in core.sources
        ),
        _form(core.where),
        tuple(_form(key) for _, key in core.keys),
        tuple((a.function.value, _form(a.argument), _form(a.filter)) for a in core.aggregates),
    )


def core_key(core: Core, dataset: Dataset) -> str:
    """The identity of a core's release: SHA-256 (hex) over the core, the data version and the policy version."""
    body = json.dumps(
        {
            "core": canonical_core(core),
            "data": dataset.data_version,
            "dataset": dataset.name,
            "policy": dataset.policy_version,
            "version": 1,
        },
        sort_keys=True,
        default=str,
        separators=(",", ":"),
    )
    return hashlib.sha256(body.encode()).hexdigest()
