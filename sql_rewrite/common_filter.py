"""FILTER on every aggregate is WHERE, where both answer with the same groups.

    SELECT sex, COUNT(*) FILTER (WHERE age > 50) FROM people GROUP BY sex
    SELECT sex, COUNT(*) FROM people WHERE age > 50 GROUP BY sex

Claim. Both have the same rows, with the same exact numbers.
Proof. Groups of public keys are there whether or not they have rows; WHERE leaves out those that no row with its
condition can be in (`reachable`), and here these are none: both lists of groups are compared. An aggregate reads the
rows of its group for which FILTER is TRUE, and those are the rows that WHERE keeps; rows that no aggregate reads
change no number. Bounds are then those of WHERE: they count the rows that are read, and no others, as they do for that
spelling, whose sensitivities are proved for whatever rows a core keeps.
"""

from __future__ import annotations

from dataclasses import replace

from privacy.aggregate import AggregateFunction
from privacy.policy import Dataset
from privacy.refusal import Refused
from sql_rewrite.expressions import form_of
from sql_rewrite.functions import TypeRefused, build
from sql_rewrite.keys import key_domain
from sql_rewrite.plan import Core
from sql_rewrite.predicates import normal_predicate

__all__ = ["filtered_first"]


def filtered_first(core: Core, dataset: Dataset) -> Core:
    """The core with the filter of all its aggregates in WHERE; the same one where they differ, or its groups would."""
    first = core.aggregates[0].filter if core.aggregates else None
    if first is None or core.met:
        return core
    form = form_of(first)
    if any(one.function is AggregateFunction.PRESENT or form_of(one.filter) != form for one in core.aggregates):
        return core
    aggregates = tuple([replace(one, filter=None) for one in core.aggregates])
    try:
        where = first if core.where is None else normal_predicate(build("and", (core.where, first)))
        found = replace(core, where=where, aggregates=aggregates)
        if core.keys:
            before, after = key_domain(core, dataset)[1], key_domain(found, dataset)[1]
            if before is None or before != after:
                return core
    except (Refused, TypeRefused):
        return core
    return found
