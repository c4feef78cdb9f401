"""Joins with rows of constants, whose conditions are conditions of the block; and NATURAL JOIN, which is a USING."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from sql_rewrite.entries import Entry, tables_of
from sql_rewrite.join_advice import INNER
from sql_rewrite.join_links import conjuncts
from sql_rewrite.refuse import refuse
from sql_rewrite.sources import SourceNames
from sql_rewrite.syntax import consume
from sql_rewrite.text import Text

__all__ = ["check_order", "meeting", "natural", "of_constants"]


_OF_KIND = {
    "SEMI": "write the values into WHERE: x IN (SELECT v FROM them)",
    "ANTI": "write the values into WHERE: x NOT IN (SELECT v FROM them)",
}
"""What means the same as a join of such a kind."""


def of_constants(entry: Entry) -> bool:
    """Whether an entry of FROM is rows of constants, and nothing of people."""
    tables = tables_of(entry)
    return bool(tables) and tables[0].constants is not None


def meeting(join: exp.Join, names: SourceNames, text: Text, kept: set[str], outer: list[str]) -> list[exp.Expr]:
    """The conditions of a join with rows of constants; the joined entry is the last of the visible ones.

    An outer join that keeps the constants adds their relations to `kept`: groups of them are there anyway
    (sql_rewrite/preserved.py), and rows of nobody are never made. One that keeps people adds the entry to `outer`, and
    its conditions are those of constant_outer.py. FULL JOIN does both.
    Errors: Refused (unsupported_sql, join_not_on_key).
    """
    consume(join, "this", "on", "using", "side", "kind", text=text, what="a join")
    side, kind = str(join.args.get("side") or "").upper(), str(join.args.get("kind") or "").upper()
    joined, earlier = names.entries[-1], names.entries[:-1]
    if side:
        last, before = of_constants(joined), all(map(of_constants, earlier))
        full = side == "FULL" and kind in ("", "OUTER") and last is not before and not join.args.get("using")
        if full and (last or len(earlier) == 1):
            constants = joined if last else earlier[0]
            outer.append(constants.relation)
            kept.update(source.relation for source in tables_of(constants))
            return _conditions(join, names, text)
        if side == "LEFT" and kind in ("", "OUTER") and last and not before:
            outer.append(joined.relation)
            return _conditions(join, names, text)
        if kind not in ("", "OUTER") or not ((side == "LEFT" and before) or (side == "RIGHT" and last and not before)):
            raise refuse(
                "unsupported_sql",
                f"a {side} JOIN with rows of constants is refused",
                "Rows that meet none of them are not kept. It is not answered yet.",
                *(
                    ("write ON instead of USING, and name the column of the constants",)
                    if join.args.get("using")
                    else ("write the values with CASE: its ELSE is for the rows that meet none", INNER)
                ),
                position=text.position(join.this),
            )
        kept.update(source.relation for e in (earlier if before else [joined]) for source in tables_of(e))
    elif kind not in ("", "INNER", "CROSS"):
        raise refuse(
            "unsupported_sql",
            f"a {kind.lower()} join is refused",
            "Rows of constants are joined with JOIN, and by any condition.",
            _OF_KIND.get(kind, "use JOIN"),
            position=text.position(join.this),
        )
    return _conditions(join, names, text)


def _conditions(join: exp.Join, names: SourceNames, text: Text) -> list[exp.Expr]:
    """What ON says, and the equalities of USING. Errors: Refused."""
    joined, earlier = names.entries[-1], names.entries[:-1]
    found = [] if join.args.get("on") is None else list(conjuncts(join.args["on"]))
    for identifier in join.args.get("using") or []:
        holding = [entry for entry in earlier if names.own_name(entry, identifier.name) is not None]
        own = names.own_name(joined, identifier.name)
        if not holding or own is None:
            raise refuse(
                "unknown_column",
                f'column "{identifier.name[:63]}" is refused',
                "USING names a column of both sides.",
                "join with ON instead",
                position=text.position(identifier),
            )
        names.check_using(identifier, holding)
        found.append(
            exp.EQ(this=names.column_of(holding[0], identifier), expression=names.column_of(joined, identifier))
        )
    return found


def check_order(join: exp.Join, earlier: Sequence[Entry], text: Text) -> None:
    """Refuses an outer join that keeps the rows of a table of people behind rows of constants. Errors: Refused.

    What constants leave out is left out by conditions of the block, which would leave out the kept rows, too.
    """
    side = str(join.args.get("side") or "").upper()
    people = [entry for entry in earlier if not of_constants(entry)]
    if side in ("RIGHT", "FULL") and people and len(people) < len(earlier):
        raise refuse(
            "unsupported_sql",
            f"a {side} JOIN after rows of constants is refused",
            "It would keep rows that the join before it leaves out. It is not answered yet.",
            "write it as LEFT JOIN, from the table whose rows are kept",
            position=text.position(join.this),
        )


def natural(join: exp.Join, names: SourceNames, text: Text) -> exp.Join:
    """The join itself; a NATURAL one by the only column that both sides have. Errors: Refused (join_not_on_key)."""
    if str(join.args.get("method") or "").upper() != "NATURAL":
        return join
    joined, earlier = names.entries[-1], names.entries[:-1]
    shared = _shared(names, earlier, joined)
    if len(shared) != 1:
        raise refuse(
            "join_not_on_key",
            "a NATURAL JOIN is refused",
            "Both sides have no column in common."
            if not shared
            else f"Both sides have several columns in common: {', '.join(shared[:10])}.",
            "write the columns that are compared: JOIN ... ON",
            position=text.position(join.this),
        )
    using = exp.Identifier(this=shared[0], quoted=True)
    if "start" in join.this.meta or join.this.args.get("this") is not None:
        place = getattr(join.this.this, "meta", {})
        using.meta.update({name: place[name] for name in ("start", "end", "line", "col") if name in place})
    found = exp.Join(**{slot: value for slot, value in join.args.items() if slot != "method" and value})
    found.set("using", [using])
    return found


def _shared(names: SourceNames, earlier: Sequence[Entry], joined: Entry) -> list[str]:
    """The names of columns that the joined entry and one before it have."""
    listed = [name for name, _ in names.star(joined.relation)]
    return [name for name in listed if any(names.own_name(entry, name) is not None for entry in earlier)]
