"""Sums of squares over the cells of a unit, in DuckDB's SQL, without a group for each cell.

    SELECT u, SUM(x * x) FROM (SELECT u, k0, SUM(t) AS x FROM rows GROUP BY u, k0) GROUP BY u

makes a group for each unit and cell, which are about as many as the rows. Here a bucket is one of 64 numbers that
follows from the keys alone, and each unit has two sets of buckets as bits: o those with a row (`bit_or`), e those with
an odd number of rows (`bit_xor`). n is the number of its rows. Only rows that may share their cell are grouped by it.

Claim. The statement gives the sum over cells of the squares of their sums of t.

Proof. Let b be the numbers of rows in the unit's buckets; they add up to n. 2|o| - |e| has 1 for each odd b, which is
1 or more, and 2 for each even b above zero, which is 2 or more. So it is at most n, and n exactly where each b is at
most 2; then the buckets in o and not in e have two rows, and all others at most one. Those, or all 64 where it is not
n, are the buckets `together`. Keys that are equal, or both NULL, have one bucket, so that the rows of a cell are
all in a bucket of `together` or none of them is. A cell whose rows are not has one row, since its bucket has one, and
the square of its sum is the square of its t. Of every other cell (sum of t)^2 - sum of t^2 is added to the sum of t^2
over all rows of the unit, which leaves the square of its sum. QED. Which function of the keys a bucket is does not
matter to what comes out; the less two keys of a unit share one, the fewer rows are grouped.

Claim 2. Where different cells have different buckets and t is 1 for every row, the sum for a unit with n = 2|o| - |e|
is 4|o| - 3|e|. Proof. Each bucket has the rows of one cell: one in each of the |e| odd ones, two in each of the other
|o| - |e|. So the squares are |e| times 1 and |o| - |e| times 4. QED. All rows of other units are grouped by cell. Were
a key not among those that have a bucket of their own, its rows would count in the cell of another one: the sum would be
greater, so that the unit is scaled further, and never less.

Widths. All t are whole and not negative, so that both sums of squares are at most the square of the unit's sum of t.
The unit -1 is nobody: with it neither join is one with nothing, which the engine skips (sql_rewrite/nobody.py). Nothing
can raise: a shift is by 0 to 63 in 64 bits without a sign, and numbers of bits are at most 128.
"""

from __future__ import annotations

from collections.abc import Callable

from sql_rewrite.relations import SquaredTotals
from sql_rewrite.scalars import Node, Whole
from sql_rewrite.squared_places import BUCKETS

__all__ = ["squares_text"]

_ALL = 2**64 - 1


def squares_text(node: SquaredTotals, write: Callable[[Node], str]) -> str:
    """The statement of the layer."""
    rows, keys = write(node.rows), ", ".join([f'"{key}"' for key in node.keys])
    bit = _bit(keys, whole=node.whole, null=node.null or 0)
    only = node.totals[0].value if len(node.totals) == 1 else None
    if node.whole and node.null is not None and isinstance(only, Whole) and only.value == 1:
        return _counted(rows, keys, bit, node.totals[0].name)
    squares, others, summed, added = [], [], [], []
    for total in node.totals:
        name, kind = f'"{total.name}"', "HUGEINT" if total.wide else "BIGINT"
        value = f"({write(total.value)})"
        if total.one:
            square = cell = f"COUNT({value})"
        else:
            square = f"COALESCE(SUM(CAST({value} AS {kind}) * {value}), 0)"
            cell = f"COALESCE(SUM({value}), 0)"
        squares.append(f"CAST({square} AS {kind}) AS {name}")
        others.append(f"CAST({cell} AS {kind}) * CAST({cell} AS {kind}) - CAST({square} AS {kind}) AS {name}")
        summed.append(f"CAST(SUM({name}) AS {kind}) AS {name}")
        added.append(f'"t".{name} + COALESCE("o".{name}, 0) AS {name}')
    names = ", ".join([f'"{total.name}"' for total in node.totals])
    units = (
        f'SELECT "u", COUNT(*) AS "un", bit_or({bit}) AS "uo", bit_xor({bit}) AS "ue", {", ".join(squares)} '
        f'FROM ({rows}) AS "r" GROUP BY "u"'
    )
    together = f'CASE WHEN "un" = 2 * {_bits("uo")} - {_bits("ue")} THEN "uo" & ~"ue" ELSE CAST({_ALL} AS UBIGINT) END'
    sharing = 'SELECT "u", "ut" FROM "us" WHERE "ut" <> 0 UNION ALL SELECT -1, CAST(1 AS UBIGINT)'
    shared = (
        f'SELECT "a".* FROM ({rows}) AS "a" INNER JOIN ({sharing}) AS "m" '
        f'ON ("a"."u" = "m"."u") WHERE ("ut" & {bit}) <> 0'
    )
    cells = f'SELECT "u", {", ".join(others)} FROM ({shared}) AS "c" GROUP BY "u", {keys}'
    beside = f'SELECT "u", {", ".join(summed)} FROM ({cells}) AS "d" GROUP BY "u" UNION ALL BY NAME SELECT -1 AS "u"'
    return (
        f'WITH "us" AS MATERIALIZED (SELECT "u", {together} AS "ut", {names} FROM ({units}) AS "b") '
        f'SELECT "t"."u", {", ".join(added)} FROM "us" AS "t" LEFT JOIN ({beside}) AS "o" ON ("t"."u" = "o"."u")'
    )


def _counted(rows: str, keys: str, bit: str, name: str) -> str:
    """The same of numbers of rows, where cells that differ have buckets that differ."""
    known = f"4 * {_bits('uo')} - 3 * {_bits('ue')}"
    units = (
        f'SELECT "u", COUNT(*) AS "un", bit_or({bit}) AS "uo", bit_xor({bit}) AS "ue" FROM ({rows}) AS "r" GROUP BY "u"'
    )
    others = 'SELECT "u" FROM "us" WHERE "uk" IS NOT TRUE UNION ALL SELECT -1'
    cells = (
        f'SELECT "u", COUNT(*) AS "n" FROM (SELECT "a".* FROM ({rows}) AS "a" INNER JOIN ({others}) AS "m" '
        f'ON ("a"."u" = "m"."u")) AS "c" GROUP BY "u", {keys}'
    )
    beside = f'SELECT "u", CAST(SUM("n" * "n") AS BIGINT) AS "{name}" FROM ({cells}) AS "d" GROUP BY "u"'
    return (
        f'WITH "us" AS MATERIALIZED (SELECT "u", "un" = 2 * {_bits("uo")} - {_bits("ue")} AS "uk", {known} AS "{name}" '
        f'FROM ({units}) AS "b") SELECT "t"."u", COALESCE("o"."{name}", "t"."{name}") AS "{name}" FROM "us" AS "t" '
        f'LEFT JOIN ({beside} UNION ALL BY NAME SELECT -1 AS "u") AS "o" ON ("t"."u" = "o"."u")'
    )


def _bits(name: str) -> str:
    """How many bits are set: the engine counts them in 8 bits, where twice 64 is too much and raises."""
    return f'CAST(bit_count("{name}") AS BIGINT)'


def _bit(keys: str, *, whole: bool, null: int) -> str:
    """The bucket of a row as a bit. The last six bits of one whole number tell apart 64 of them in a row."""
    place = f"COALESCE({keys} & {BUCKETS - 1}, {null})" if whole else f"hash({keys}) & {BUCKETS - 1}"
    return f"(CAST(1 AS UBIGINT) << CAST({place} AS UBIGINT))"
