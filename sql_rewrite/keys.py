"""Group keys: which cells are public, and which must pass partition selection.

A core's cells are public when each of its keys has a finite set of values that follows from declarations and the
query text alone. All their combinations then appear in the answer, with noise even where nobody is. Otherwise no
cell is public: a mixture of public and hidden keys would still tell which hidden values exist.
"""

from __future__ import annotations

import itertools

from privacy.policy import Dataset, KeyValue
from sql_rewrite.evaluate import map_domain
from sql_rewrite.plan import Core
from sql_rewrite.syntax import refuse

__all__ = ["key_domain"]


def key_domain(
    core: Core, dataset: Dataset
) -> tuple[tuple[tuple[KeyValue, ...] | None, ...], tuple[tuple[KeyValue, ...], ...] | None]:
    """Public values of each key (None: not public), and all cells in order when every key is public.

    A core without keys has one cell, the empty tuple. Errors: Refused (key_domain_too_large).
    """
    limit = dataset.limits.cells_max
    domains = tuple(map_domain(key, limit) for _, key in core.keys)
    if any(domain is None for domain in domains):
        return tuple(None for _ in domains), None
    known = [domain for domain in domains if domain is not None]
    count = 1
    for domain in known:
        count *= len(domain)
        if count > limit:
            raise refuse(
                "key_domain_too_large",
                "GROUP BY is refused",
                f"Its public keys make more than {limit} groups, and every one of them would get noise.",
                "group by fewer or coarser keys",
            )
    return domains, tuple(itertools.product(*known))
