"""Rows beside what each of their units has, in DuckDB's SQL: a join with units.

Where most units have the usual numbers (they are not beyond a norm: a factor of 2^b), only the others are looked up.

    SELECT a.*, CASE WHEN m.u IS NULL THEN 2^b ELSE m.f END
    FROM rows a LEFT JOIN (SELECT u, f FROM units WHERE f IS DISTINCT FROM 2^b ...) m ON a.u = m.u

Claim. The rows and numbers are those of the join with all units. Proof. `units` has one row for each unit that has a
row. A unit with a number that is not the usual one, were it NULL, is found and has its numbers. Each other one is not
found, and has the usual numbers. QED.

How long it takes. Every row looks for its unit, whoever is beyond a norm, and those that are found are read as well:
a row of a unit that is beyond takes what it took in a join with all units, each other one less. The row of no unit is
there in both ways so that some row always is: the engine skips a join with nothing, so that the first unit that is
beyond, or is there at all, would make all rows of the others look for theirs (sql_rewrite/nobody.py).
"""

from __future__ import annotations

from collections.abc import Callable

from sql_rewrite.dialects.duckdb_scalars import quote
from sql_rewrite.relations import BesideNobody, UnitFactors
from sql_rewrite.scalars import Node

__all__ = ["factors_text", "nobody_text"]


def factors_text(node: UnitFactors, write: Callable[[Node], str]) -> str:
    """The statement of the layer."""
    rows, units = write(node.rows), write(node.units)
    names = [f'"{name}"' for name in node.names]
    if node.usual:
        pairs = list(zip(names, node.usual, strict=True))
        other = " OR ".join([f"{name} IS DISTINCT FROM {number}" for name, number in pairs])
        nobody = ", ".join(["-1", *[f"CAST({number} AS BIGINT)" for number in node.usual]])
        units = f'SELECT "u", {", ".join(names)} FROM ({units}) AS "ul" WHERE {other} UNION ALL SELECT {nobody}'
        found = [f'CASE WHEN "m"."u" IS NULL THEN {number} ELSE "m".{name} END AS {name}' for name, number in pairs]
        listed = ['"a".*', *found]
    else:
        units += ' UNION ALL BY NAME SELECT -1 AS "u"'
        listed = ['"a".*', *[f'"m".{name}' for name in names]]
    equal = ['"a"."u" = "m"."u"']
    equal += [f'"a"."{name}" IS NOT DISTINCT FROM "m"."{name}"' for name in node.by]
    return (
        f'SELECT {", ".join(listed)} FROM ({rows}) AS "a" {"LEFT" if node.usual else "INNER"} JOIN ({units}) AS "m" '
        f"ON ({' AND '.join(equal)})"
    )


def nobody_text(node: BesideNobody, write: Callable[[Node], str]) -> str:
    """Rows and nobody. By name: columns that the row of nobody does not have are NULL of their own type."""
    nobody = ", ".join([f"{write(output.value)} AS {quote(output.name)}" for output in node.nobody])
    keys = " AND ".join([f"{quote(key)} IS NOT NULL" for key in node.keys])
    kept = f'SELECT * FROM ({write(node.rows)}) AS "y" WHERE {keys}'
    return f"{kept} UNION ALL BY NAME SELECT {nobody}"
