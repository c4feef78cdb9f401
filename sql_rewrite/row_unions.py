"""Set operations on rows about people: UNION ALL, UNION, INTERSECT and EXCEPT of nested blocks that select such rows.

    SELECT kind, COUNT(*) FROM (SELECT 'visit' AS kind FROM visits UNION ALL SELECT 'lab' FROM labs) AS t GROUP BY kind
    source:  visits with 'visit', labs with 'lab', one after another
    core:    that source, k0 = kind, a0 = rows

Claim. UNION ALL of unit-local rows is unit-local. Proof: each row of a branch has exactly one unit, and keeps it,
whether or not the branch selects its key; so the rows of unit u are those of u in the one branch and those of u in the
other, which is a function of u's own rows. Their numbers add up, and so do the bounds of what is stored and of what
counts: a unit within the bounds of each branch is within the sums. Bounding above rests on these sums and never on what
the first table declares of its rows; where each branch has one row of a unit, the union has several.

Claim. UNION, INTERSECT and EXCEPT are unit-local where every branch has the unit's key in one column. Proof: equal rows
then have equal units, so that which rows repeat, or are in the other branch too, is decided within each unit. They are
the groups of the union's rows by all columns (unit_groups.py), with a mark of the branch beside them: all groups, those
with both marks, those without the mark of the right side. NULL is one value there, as in GROUP BY. Without the
unit's key a row of one person would stand or fall with the rows of another, and that is refused.

What is known of a column is what is known of it in every branch: the hull of ranges and declared bounds, all values of
public keys, NULL where some branch has it. A sum clips to the hull of the declared bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from sqlglot import exp

from privacy.bounds import BOUND_MAX, AutomaticContribution, ContributionBound
from privacy.policy import ROWS_STORED_MOST, Column, ColumnType, Dataset, Reference, Table
from privacy.refusal import Refused
from sql_rewrite.expression_cost import characters
from sql_rewrite.expressions import ColumnRef, Expression, Literal, form_of, interval_of
from sql_rewrite.full_joins import APART
from sql_rewrite.functions import TypeRefused, build
from sql_rewrite.functions.harmony import harmonise
from sql_rewrite.functions.ranges import hull
from sql_rewrite.narrowed_values import Narrowing, conditions_of
from sql_rewrite.nested_block import LEAVES_MAX
from sql_rewrite.plan import Source, UnitBranch, UnitFunction, UnitGroups, UnitUnion, UnitValue
from sql_rewrite.plan_key import canonical_branch
from sql_rewrite.references import reference
from sql_rewrite.refuse import refuse, rows_chosen
from sql_rewrite.rows import Rows
from sql_rewrite.spelling import named
from sql_rewrite.syntax import consume
from sql_rewrite.text import Text
from sql_rewrite.unit_facts import contribution_bound, leaves, names_unit, rows_bound, rows_of_unit
from sql_rewrite.unit_groups import described
from sql_rewrite.unit_values import content_name, facts_of, made, renamed

__all__ = ["gathered", "united"]

_NUMBERS = (ColumnType.INTEGER, ColumnType.NUMBER)
_SIDE = "side$"


def united(node: exp.SetOperation, left: Rows, right: Rows, relation: str, dataset: Dataset, text: Text) -> Rows:
    """The rows of a set operation under that name of its source. Errors: Refused.

    `left` and `right` are the rows of its sides, whose tables have names from r0 on.
    """
    return _SetOperation(node, relation, dataset, text).rows(left, right)


def gathered(node: exp.Expr, rows: Rows, relation: str, dataset: Dataset, text: Text) -> Rows:
    """The same rows as those of one source under that name, so that a join may leave them out. Errors: Refused.

    It is a union of one branch: each row of it is one row of these, with its unit and its columns. The tables of
    `rows` have names from r0 on.
    """
    whole = _SetOperation(node, relation, dataset, text, what="a join of a nested query is refused")
    return whole.alone(rows)


@dataclass(frozen=True, slots=True)
class _Branch:
    """Rows of a branch whose columns have the places of the whole."""

    sources: tuple[Source, ...]
    where: Expression | None
    columns: tuple[Expression, ...]


class _SetOperation:
    def __init__(
        self, node: exp.Expr, relation: str, dataset: Dataset, text: Text, what: str = "a set operation is refused"
    ) -> None:
        self._node = node
        self._what = what
        self._relation = relation
        self._dataset = dataset
        self._text = text

    def rows(self, left: Rows, right: Rows) -> Rows:
        self._check()
        for side in (left, right):
            if not side.sources or not side.sources[0].table.protected:
                raise self._refusal(
                    "unsupported_sql",
                    "Rows of a public table belong to nobody, so that they cannot stand beside rows of people.",
                    "aggregate each side in its own query, and put the numbers together with UNION ALL",
                )
        names, (one, other) = self._aligned(left, right)
        if isinstance(self._node, exp.Union):
            union = self._union(names, [*_branches(one), *_branches(other)])
            return union if self._node.args.get("distinct") is False else self._distinct(union, None)
        # A mark of the branch decides; it stands behind the columns, so that places stay as they are.
        kind = exp.Except if isinstance(self._node, exp.Except) else exp.Intersect
        marked = [
            replace(branch, columns=(*branch.columns, Literal(side, ColumnType.INTEGER)))
            for side, rows in enumerate((one, other))
            for branch in _branches(rows)
        ]
        return self._distinct(self._union([*names, _SIDE], marked), kind)

    def alone(self, rows: Rows) -> Rows:
        """The rows as a union of one branch."""
        columns = tuple(column for _, column in rows.columns)
        return self._union([name for name, _ in rows.columns], [_Branch(rows.sources, rows.where, columns)])

    def _check(self) -> None:
        node = self._node
        word = {"Intersect": "INTERSECT", "Except": "EXCEPT"}.get(type(node).__name__, "UNION")
        for clause, name in (("order", "ORDER BY"), ("limit", "LIMIT"), ("offset", "OFFSET")):
            if node.args.get(clause):
                raise rows_chosen(name, position=self._text.position(node))
        consume(
            node, "this", "expression", "distinct", "by_name", "with_", "order", "limit", "offset",
            text=self._text, what="a set operation",
        )  # fmt: skip
        if word != "UNION" and node.args.get("distinct") is False:
            raise self._refusal(
                "unsupported_sql",
                f"How often {word} ALL keeps a row follows from one person's rows where both sides have the key of the "
                "privacy unit among their columns, which have different names.",
                "select the key of the privacy unit in both sides, or ask each side in a query of its own",
            )
        if isinstance(node, exp.Intersect) and any(
            isinstance(side, exp.Union | exp.Except) for side in (node.this, node.expression)
        ):
            # INTERSECT binds more tightly than the others, so that no text without brackets should read like this.
            raise self._refusal(
                "unsupported_sql",
                "INTERSECT beside UNION or EXCEPT may be read in two ways.",
                "put the operation that comes first in brackets",
            )

    # Columns

    def _aligned(self, left: Rows, right: Rows) -> tuple[list[str], tuple[Rows, Rows]]:
        """The names of the columns, and both sides with as many columns in their order."""
        if not self._node.args.get("by_name"):
            if len(left.columns) != len(right.columns):
                raise self._refusal(
                    "unsupported_sql",
                    f"Its two sides have different numbers of columns: {len(left.columns)} and {len(right.columns)}.",
                    "select the same columns on both sides, NULL where one has none",
                )
            return [name for name, _ in left.columns], (left, right)
        sides = []
        for side in (left, right):
            named_columns = {name.lower(): found for name, found in reversed(side.columns)}
            if len(named_columns) < len(side.columns):
                raise self._refusal(
                    "ambiguous_column", "Two columns of one side have the same name.", "give each its own alias"
                )
            sides.append(named_columns)
        names = {name.lower(): name for name, _ in reversed((*left.columns, *right.columns))}
        order = dict.fromkeys(name.lower() for name, _ in (*left.columns, *right.columns))
        missing = Literal(None, ColumnType.INTEGER)
        one, other = (
            replace(rows, columns=tuple((names[name], side.get(name, missing)) for name in order))
            for rows, side in zip((left, right), sides, strict=True)
        )
        return [names[name] for name in order], (one, other)

    def _union(self, names: Sequence[str], branches: Sequence[_Branch]) -> Rows:
        """The rows of all branches, with these names of their columns."""
        if sum(leaves(branch.sources) for branch in branches) > LEAVES_MAX:
            raise self._refusal(
                "too_large", f"Written out it reads more than {LEAVES_MAX} tables.", "use fewer branches"
            )
        by_place = [self._of_one_type(names[place], branches, place) for place in range(len(names))]
        made_of = [
            UnitBranch(branch.sources, branch.where, tuple(parts[number] for parts in by_place))
            for number, branch in enumerate(branches)
        ]
        # Branches in either order are one question; so are columns in any.
        made_of.sort(key=lambda branch: repr(canonical_branch(branch)))
        facts: dict[str, tuple[int, ColumnRef]] = {}
        keys = []
        for place, name in enumerate(names):
            key = content_name("c", tuple(form_of(branch.columns[place]) for branch in made_of))
            keys.append(key)
            facts.setdefault(key, (place, _facts(key, name, place, made_of)))
        order = sorted(facts)
        union = UnitUnion(
            branches=tuple(replace(b, columns=tuple(b.columns[facts[key][0]] for key in order)) for b in made_of),
            columns=tuple((key, facts[key][1]) for key in order),
        )
        shown = {key: names[place] for key, (place, _) in facts.items()}
        source = Source(self._relation, self._described(union, shown), union=union)
        refs = {column.name: reference(source, column, self._dataset) for column in source.table.columns}
        return Rows((source,), None, tuple((name, refs[key]) for name, key in zip(names, keys, strict=True)))

    def _of_one_type(self, name: str, branches: Sequence[_Branch], place: int) -> tuple[Expression, ...]:
        """A column's expressions in one type, by the conversions that the engine makes too and that change no value."""
        parts = [branch.columns[place] for branch in branches]
        try:
            found, kind = harmonise("UNION", parts)
            text_beside = any(before.type is ColumnType.TEXT for before in parts) and kind is not ColumnType.TEXT
        except TypeRefused:
            text_beside = True
        if text_beside:
            kinds = ", ".join(dict.fromkeys(part.type.value for part in parts))
            raise self._refusal(
                "unsupported_type",
                f'Column "{name[:63]}" has values of several types: {kinds}.',
                "CAST it to one type in every branch",
            )
        return found

    def _described(self, union: UnitUnion, shown: dict[str, str]) -> Table:
        """The rows as a table, with what is known of it."""
        root = union.branches[0].sources[0].table
        unit = next((name for name, ref in union.columns if ref.is_unit), None)
        known = self._dataset.unit
        references = () if unit is None or known.key is None else (Reference(unit, known.table, known.key),)
        # Of a full join a unit has rows in one branch alone (full_joins.py).
        apart = bool(self._node.meta.get(APART)) and len(union.branches) == 2
        together: Callable[[list[int]], int] = max if apart else sum
        stored = together([rows_of_unit(branch.sources) for branch in union.branches])
        one_row = (apart or len(union.branches) == 1) and stored == 1 and unit is not None
        if stored > ROWS_STORED_MOST:
            raise self._refusal("too_large", f"A person may have {stored:,} rows in it.", "use fewer branches")
        expected = [branch.sources[0].table.rows_expected for branch in union.branches]
        columns = [Column(name, r.type, nullable=r.nullable, description=shown[name]) for name, r in union.columns]
        read = dict.fromkeys(branch.sources[0].table.name for branch in union.branches)
        return replace(
            root, name=" and ".join(read), columns=tuple(columns), key=unit if one_row else None, references=references,
            unit_column=unit or "", unit_path=(),
            rows_stored_per_unit=stored, contribution=_added([b.sources for b in union.branches], together),
            rows_expected=None if None in expected else sum(rows for rows in expected if rows is not None),
        )  # fmt: skip

    # Different rows

    def _distinct(self, union: Rows, kind: type[exp.SetOperation] | None) -> Rows:
        """The different rows; of INTERSECT those that are marked by both sides, of EXCEPT those of the left alone."""
        sources = union.sources
        columns = union.columns if kind is None else union.columns[:-1]
        if not any(names_unit(found, sources) for _, found in columns):
            raise self._without_unit([name for name, _ in columns])
        keys: dict[str, Expression] = {}
        made_of: dict[str, tuple[Expression, str]] = {}
        outputs: list[tuple[str, str]] = []
        for name, found in columns:
            key = content_name("k", form_of(found))
            keys[key] = found
            nullable = found.nullable and not names_unit(found, sources)
            column = renamed(found, key, name, nullable=nullable)
            own = content_name("c", form_of(column))
            made_of.setdefault(own, (column, name))
            outputs.append((name, own))
        values: tuple[UnitValue, ...] = ()
        having: Expression | None = None
        if kind is not None:
            side = union.columns[-1][1]
            ends = [made(which, side, None) for which in (UnitFunction.LEAST, UnitFunction.GREATEST)]
            most, bound = rows_of_unit(sources), rows_bound(sources)
            least, greatest = (facts_of(value, rows=most, bound=bound, shown="the side") for value in ends)
            zero, one = Literal(0, ColumnType.INTEGER), Literal(1, ColumnType.INTEGER)
            if kind is exp.Except:
                values, having = (ends[1],), build("=", (greatest, zero))
            else:
                both = build("and", (build("=", (least, zero)), build("=", (greatest, one))))
                values, having = tuple(sorted(ends, key=lambda value: value.name)), both
        groups = UnitGroups(
            sources=sources,
            where=None,
            keys=tuple(sorted(keys.items())),
            values=values,
            having=having,
            columns=tuple((own, made_of[own][0]) for own in sorted(made_of)),
        )
        shown = {own: name for own, (_, name) in made_of.items()}
        source = Source(self._relation, described(groups, shown, self._dataset), None, groups)
        refs = {column.name: reference(source, column, self._dataset) for column in source.table.columns}
        return Rows((source,), None, tuple((name, refs[own]) for name, own in outputs))

    def _without_unit(self, names: Sequence[str]) -> Refused:
        union = isinstance(self._node, exp.Union)
        word = "UNION" if union else "INTERSECT" if isinstance(self._node, exp.Intersect) else "EXCEPT"
        key = self._dataset.unit.key or "the privacy unit's key"
        ways = [f"select {key} in every branch: rows of one person are then compared with each other"]
        if union:
            counted = f"COUNT(DISTINCT {named(names[0])})" if len(names) == 1 else "COUNT(DISTINCT x)"
            ways.append(f"write UNION ALL, which keeps all rows, and {counted} around it for different values")
        return self._refusal(
            "correlated_subquery",
            f"{word} compares rows, and without the privacy unit among its columns it would compare rows of different "
            "people.",
            *ways,
        )

    def _refusal(self, code: str, why: str, *instead: str) -> Refused:
        return refuse(code, self._what, why, *instead, position=self._text.position(self._node))


def _branches(rows: Rows) -> list[_Branch]:
    """The branches that rows are: those of a union that is nothing but one, else one."""
    first = rows.sources[0]
    plain = len(rows.sources) == 1 and first.only is None and rows.where is None
    if first.union is None or not plain:
        given = conditions_of(rows.sources, rows.where)
        columns = [Narrowing((found,), given, whole=False).value(found) for _, found in rows.columns]
        return [_Branch(rows.sources, rows.where, tuple(columns))]
    places = {name: place for place, (name, _) in enumerate(first.union.columns)}
    result = []
    for branch in first.union.branches:
        columns = []
        for _, found in rows.columns:
            if isinstance(found, Literal) or (isinstance(found, ColumnRef) and found.relation != first.relation):
                columns.append(found)  # a constant, or a value that an earlier stage releases
            elif isinstance(found, ColumnRef):
                columns.append(branch.columns[places[found.name]])
            else:
                return [_Branch(rows.sources, rows.where, tuple(column for _, column in rows.columns))]
        result.append(_Branch(branch.sources, branch.where, tuple(columns)))
    return result


def _facts(name: str, shown: str, place: int, branches: Sequence[UnitBranch]) -> ColumnRef:
    """What is known of a column of the union: what holds in every branch."""
    parts = []
    for branch in branches:
        found = branch.columns[place]
        unit = names_unit(found, branch.sources)
        parts.append(renamed(found, name, shown, nullable=found.nullable and not unit))
    first = parts[0]
    kind, nullable = first.type, any(part.nullable for part in parts)
    given = [part for part, b in zip(parts, branches, strict=True) if not _missing(b.columns[place])] or parts
    interval = declared = length = None
    if kind in _NUMBERS:
        interval = hull(map(interval_of, given))
        if kind is ColumnType.NUMBER and not interval.bounded:
            interval = None
    bounds = [part.declared for part in given]
    known = [bound for bound in bounds if bound is not None]
    if len(known) == len(bounds):
        declared = hull(known)
    if kind is ColumnType.TEXT:
        length = max(1, *(characters(part) for part in given))
    others = {part.other for part in given}
    domain = None
    if all(part.domain is not None for part in given) and len(others) == 1:
        values = dict.fromkeys(chain.from_iterable(part.domain or () for part in given))
        missing = nullable or None in values  # other values may be gathered as NULL, where no stored value is
        domain = (*(value for value in values if value is not None), *((None,) if missing else ()))
    return ColumnRef(
        first.relation,
        name,
        kind,
        nullable=nullable,
        interval=interval,
        declared=declared,
        domain=domain,
        other=given[0].other if domain is not None else None,
        is_unit=all(part.is_unit for part in parts),
        length_max=length,
        identifies=all(part.identifies for part in given),
        shown=shown,
    )


def _missing(expression: Expression) -> bool:
    return isinstance(expression, Literal) and expression.value is None


def _added(
    branches: Sequence[tuple[Source, ...]], together: Callable[[list[int]], int] = sum
) -> ContributionBound | AutomaticContribution:
    """How much a unit may take part with the rows of all branches: what it may with those of each, put together."""
    found = [contribution_bound(sources) or ContributionBound(1, 1, 1) for sources in branches]
    counted = [bound.counted if isinstance(bound, AutomaticContribution) else bound for bound in found]
    added = ContributionBound(
        min(BOUND_MAX, together([bound.rows_per_unit for bound in counted])),
        min(BOUND_MAX, together([bound.groups_per_unit for bound in counted])),
        min(BOUND_MAX, together([bound.rows_per_unit_and_group for bound in counted])),
    )
    return AutomaticContribution(added) if any(isinstance(b, AutomaticContribution) for b in found) else added
