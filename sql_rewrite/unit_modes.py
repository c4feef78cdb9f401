"""MODE within a unit, alone beside the keys, written out: the most frequent value, counted value by value.

    SELECT patient_id, MODE(ward) AS m FROM visits GROUP BY patient_id
    SELECT key_0 AS patient_id, ARG_MIN(mode_value, mode_rank) AS m
    FROM (SELECT patient_id AS key_0, ward AS mode_value, 0 - COUNT(ward) AS mode_rank FROM visits
          GROUP BY patient_id, ward)
    GROUP BY key_0

Claim. It is the mode of each group, NULL where all of its values are. Proof: the inner groups are those of the outer
ones, parted by value, with the number of its rows; ARG_MIN leaves NULL out and takes a value with the greatest number.
Of several it takes the least, where DuckDB takes any: so it is a function of the multiset of the unit's rows.
Both blocks group by the unit, and what unit_groups.py proves of such blocks holds for them. Beside other aggregates, a
FILTER or HAVING it is a value of the group like others (unit_values.py), which is the same value.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from sql_rewrite.aggregate_calls import aggregate_calls, is_mode
from sql_rewrite.select_list import grouped_by
from sql_rewrite.shell import output_name
from sql_rewrite.syntax import placed_like, populated
from sql_rewrite.text import Text

__all__ = ["mode_operand", "with_modes"]

_SLOTS = {"expressions", "from_", "joins", "where", "group"}
_ASCENDING = {"this", "nulls_first"}
_VALUE, _RANK = "mode_value", "mode_rank"


def with_modes(node: exp.Select, text: Text, knows: Callable[[str], bool]) -> exp.Select | None:
    """A block that groups by the unit, without MODE; None where it has none, or something else beside keys and it.

    `knows` says whether a table of the block has a column of that name: in GROUP BY it comes before an alias.
    """
    calls = aggregate_calls(node.expressions)
    if not calls or not all(map(is_mode, calls)) or populated(node) - _SLOTS:
        return None
    values = [mode_operand(call) for call in calls]
    keys = _keys(node, knows)
    if None in values or any(value != values[0] for value in values) or keys is None:
        return None
    value = values[0]
    assert value is not None
    shown: list[exp.Expr] = []
    for projection in node.expressions:
        name = projection.alias if isinstance(projection, exp.Alias) else output_name(text, projection)
        meant = projection.unalias()
        if is_mode(meant):
            found: exp.Expr = exp.ArgMin(this=exp.column(_VALUE), expression=exp.column(_RANK))
        elif meant in keys:
            found = exp.column(f"key_{keys.index(meant)}")
        else:
            return None
        shown.append(placed_like(exp.alias_(found, name, quoted=True), projection))
    listed = [exp.alias_(key.copy(), f"key_{place}") for place, key in enumerate(keys)]
    counted = exp.Sub(this=exp.Literal.number(0), expression=exp.Count(this=value.copy(), big_int=True))
    inner = node.copy()
    inner.set("expressions", [*listed, exp.alias_(value.copy(), _VALUE), exp.alias_(counted, _RANK)])
    inner.set("group", exp.Group(expressions=[*(key.copy() for key in keys), value.copy()]))
    nested = exp.Subquery(this=inner, alias=exp.TableAlias(this=exp.to_identifier("modes")))
    by = [exp.column(f"key_{place}") for place in range(len(keys))]
    written = exp.Select(expressions=shown, from_=exp.From(this=nested), group=exp.Group(expressions=by))
    placed_like(written, node)
    return written


def mode_operand(call: exp.Expr) -> exp.Expr | None:
    """What MODE(x), or MODE() WITHIN GROUP (ORDER BY x), is of; None with a FILTER or another order."""
    if isinstance(call, exp.WithinGroup):
        order = call.expression
        terms = order.expressions if isinstance(order, exp.Order) and not populated(order) - {"expressions"} else []
        plain = len(terms) == 1 and isinstance(terms[0], exp.Ordered) and not populated(terms[0]) - _ASCENDING
        return terms[0].this if plain and call.this.this is None else None
    found = call.this if isinstance(call, exp.Mode) and not populated(call) - {"this"} else None
    return None if isinstance(found, exp.Distinct | exp.Order) else found


def _keys(node: exp.Select, knows: Callable[[str], bool]) -> list[exp.Expr] | None:
    """The keys of GROUP BY, places and aliases replaced; None where they are levels."""
    group = node.args["group"]
    if populated(group) - {"expressions", "all"}:
        return None
    values = [projection.unalias() for projection in node.expressions]
    aliases = {one.alias.lower(): one.this for one in node.expressions if isinstance(one, exp.Alias)}

    def named(name: str) -> exp.Expr | None:
        return None if knows(name) else aliases.get(name.lower())

    found = [meant for _, meant in grouped_by(group, values, named, lambda item: item)]
    return None if None in found else list(dict.fromkeys(key for key in found if key is not None))
