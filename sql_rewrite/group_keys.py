"""The keys of a private block's GROUP BY: what it groups by, and which keys are refused."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from privacy.policy import ColumnType, Dataset
from privacy.refusal import Finding, Refused
from sql_rewrite.coarser_groups import coarser
from sql_rewrite.evaluate import map_domain
from sql_rewrite.expressions import Call, ColumnRef, Expression, columns_of, describe, number_text
from sql_rewrite.fraction_keys import whole_part
from sql_rewrite.functions import TypeRefused, build, clip_columns
from sql_rewrite.functions.gathering import gather_arguments
from sql_rewrite.identifying import identifying_column
from sql_rewrite.keys import fits, whole
from sql_rewrite.lift_difference import difference, microseconds_of
from sql_rewrite.lift_expression import ExpressionLift
from sql_rewrite.plan import UnitGroups
from sql_rewrite.refuse import refuse
from sql_rewrite.select_list import SelectList
from sql_rewrite.sources import SourceNames
from sql_rewrite.spelling import named
from sql_rewrite.syntax import populated
from sql_rewrite.text import Text

__all__ = ["FROM_EQUALITY", "GroupKey", "GroupKeyReader", "gathered"]

FROM_EQUALITY = "from_equality"
"""Marks keys that nobody wrote as such: what a nested query compares with the rows around it."""

_SUGGESTED_MAX = 1_000
"""Most groups of a key that a suggestion has."""

_UNITS = ("day", "hour")
"""What a timestamp is cut to where it is a key."""


@dataclass(frozen=True, slots=True)
class GroupKey:
    """A key of GROUP BY: its tree, what was written, and what the core groups by: `written`, gathered and whole.

    Where the text says a number with a fraction, `written` is the whole number in it, and `node` its tree; with a
    `divisor`, `node` stands for the released key divided by it (`fraction_keys`).
    """

    node: exp.Expr
    written: Expression
    expression: Expression
    divisor: int = 1
    by_form: bool = True
    """Whether what means the same as `written` stands for the key too."""
    interval: bool = False
    """Whether the text says an interval, and `written` are its microseconds."""


class GroupKeyReader:
    """Reads the GROUP BY of one block."""

    def __init__(
        self, text: Text, select: SelectList, names: SourceNames, lifter: ExpressionLift, dataset: Dataset
    ) -> None:
        self._text = text
        self._select = select
        self._names = names
        self._lifter = lifter
        self._cells_max = dataset.limits.cells_max
        self._tables = dataset.tables
        self._nested = False
        self._listed: list[exp.Expr] = []

    def read(self, group: exp.Expr) -> list[GroupKey]:
        """The keys of a GROUP BY. Errors: Refused."""
        self._nested = FROM_EQUALITY not in group.meta and group.find_ancestor(exp.Subquery, exp.CTE) is not None
        levels = (exp.Rollup, exp.Cube, exp.GroupingSets)
        if populated(group) - {"expressions", "all"} or any(isinstance(item, levels) for item in group.expressions):
            raise refuse(
                "unsupported_sql",
                "ROLLUP, CUBE and GROUPING SETS are refused",
                "They are not answered yet.",
                "ask each level in its own query",
                position=self._text.position(group),
            )
        found = list(self._select.grouped_by(group))
        for item, node in found:
            if node is None:
                raise refuse(
                    "unknown_column",
                    "a position in GROUP BY is refused",
                    f"The select list has {len(self._select.values)} columns.",
                    position=self._text.position(item),
                )
        self._listed = [node for _, node in found if node is not None]
        return [self._key(node) for node in self._listed]

    def most_frequent(self, call: exp.Expr, operand: exp.Expr) -> GroupKey:
        """What MODE chooses among, as a key that the call stands for. Errors: Refused.

        A whole number between declared bounds is clipped to them: its values are public then.
        """
        key = self._key(self._names.qualified(operand))
        expression = key.expression
        if expression.type is ColumnType.INTEGER and map_domain(expression, self._cells_max) is None:
            expression = clip_columns(expression)
        return GroupKey(call, key.written, expression, key.divisor, by_form=False, interval=key.interval)

    def _key(self, node: exp.Expr) -> GroupKey:
        moments = difference(self._lifter, node)
        if moments is not None:
            written = microseconds_of(self._lifter, node, moments)
            return GroupKey(node, written, written, by_form=False, interval=True)
        written, divisor = self._lifter.lift(node), 1
        if written.type is ColumnType.NUMBER and not whole(written):
            part = whole_part(self._lifter, node)
            if part is not None:
                node, written, divisor = part.node, part.written, part.divisor
        key = self._gathered(node, written)
        self._check_key(node, written, key)
        self._warn_of_moments(node, key)
        if key.type is ColumnType.NUMBER:
            key = self._lifter.make(node, "cast_integer", key)
        return GroupKey(node, written, key, divisor)

    def _gathered(self, node: exp.Expr, key: Expression) -> Expression:
        try:
            return gathered(key, self._cells_max)
        except TypeRefused as refusal:
            raise refuse(
                refusal.finding.code,
                "a key of GROUP BY is refused",
                "The declared keys of its column are too many to compare each row with.",
                "group by a condition on the column: CASE WHEN ... THEN ... END",
                position=self._text.position(node),
            ) from None

    def _check_key(self, node: exp.Expr, key: Expression, counted_as: Expression) -> None:
        column = identifying_column(key)
        if column is not None:
            raise self._group_by_unit(node, key, column)
        if not (whole(key) or key.type is not ColumnType.NUMBER):
            floor = self._lifter.make(node, "floor", key)
            spelled = self._written(node, key)
            clipped = spelled if fits(floor, self._cells_max) else _clipped(spelled)
            ways = [f"FLOOR({clipped})", f"CASE WHEN {spelled} < {_middle(key)} THEN 'low' ELSE 'high' END"]
            if isinstance(key, Call) and key.operator == "divide" and all(whole(part) for part in key.arguments):
                ways.insert(0, " // ".join(describe(part).removesuffix(".0") for part in key.arguments))
            raise refuse(
                "unsupported_type",
                "grouping by a number with a fraction is refused",
                "Almost every group would be one row.",
                *(f"GROUP BY {way}" for way in ways),
                position=self._text.position(node),
            )
        if not fits(counted_as, self._cells_max):
            raise refuse(
                "too_large",
                "a key of GROUP BY is refused",
                "Its values may leave the range of 64-bit integers: its columns have no bounds, or too wide ones.",
                f"clip them in the query: {_clipped('x')}",
                "ask an administrator to declare bounds for the column",
                position=self._text.position(node),
            )

    def _warn_of_moments(self, node: exp.Expr, key: Expression) -> None:
        """Warns of a key that is a timestamp as it is stored, in microseconds: hardly two rows share one."""
        moment = isinstance(key, ColumnRef) and key.type is ColumnType.TIMESTAMP and key.domain is None
        if moment and isinstance(self._computed_as(key), ColumnRef):
            cut = [f"GROUP BY date_trunc('{unit}', {self._written(node, key)})" for unit in _UNITS]
            self._warn_of_unique(node, key, "A timestamp", *cut)

    def _warn_of_unique(self, node: exp.Expr, key: Expression, what: str, *instead: str) -> None:
        self._lifter.warnings.append(
            Finding(
                code="groups_nearly_unique",
                what=f'grouping by "{self._written(node, key)}" may show no group',
                why=f"{what} has microseconds, so hardly two rows share one, and a group is shown only when enough "
                "units are in it.",
                instead=instead,
                position=self._text.position(node),
            )
        )

    def _computed_as(self, key: Expression) -> Expression:
        """What a column of rows that are computed within each unit is of their own rows; any other key as it is."""
        if not isinstance(key, ColumnRef):
            return key
        source = next((one for one in self._names.sources if one.relation == key.relation), None)
        computed = None if source is None else source.windows or source.groups
        if computed is None:
            return key
        column = dict(computed.columns).get(key.name, key)
        cells = dict(computed.keys if isinstance(computed, UnitGroups) else computed.cells)
        return cells.get(column.name, column) if isinstance(column, ColumnRef) else column

    def _written(self, node: exp.Expr, key: Expression) -> str:
        """The key as the analyst wrote it, with the tables of its columns."""
        place = self._text.position(node)
        return describe(key) if place is None or len(place.text) >= 120 else " ".join(place.text.split())

    def _mean(self, column: ColumnRef) -> tuple[str, ...]:
        """A query for what grouping by the unit is mostly asked for; nothing where a unit has one row."""
        source = next((one for one in self._names.sources if one.relation == column.relation), None)
        if source is None or source.groups is not None or column.shown or source.table.one_row:
            return ()
        table = source.table
        rows = f"COUNT(*) / COUNT(DISTINCT {named(column.name)})"
        return (f"the mean number of rows per person: SELECT {rows} AS mean FROM {named(table.name)}",)

    def _within(self, column: ColumnRef) -> tuple[str, ...]:
        """How rows are grouped within each person, in a nested query."""
        table = next((one.table for one in self._names.sources if one.relation == column.relation), None)
        if table is None or not self._nested:
            return ()
        key = named(column.name)
        if table.unit_column is not None:
            return (f"GROUP BY {named(table.unit_column)}, {key} groups within each person",)
        way = table.unit_path[0] if len(table.unit_path) == 1 else None
        parent = next((one for one in self._tables if way is not None and one.name == way.table), None)
        if way is None or parent is None or parent.unit_column is None or len(self._names.sources) > 1:
            return ("group by the key of the privacy unit too: that groups within each person",)
        if way.column != way.key or way.column != column.name:
            return ("group by the key of the privacy unit too: that groups within each person",)
        from_ = f"FROM {named(table.name)} JOIN {named(parent.name)} USING ({named(way.key)})"
        return (f"{from_} GROUP BY {named(parent.unit_column)}, {key} groups within each person",)

    def _coarser(self) -> str | None:
        """The same query by its public keys, where it is a plain one."""
        block = self._select.written[0].parent if self._select.written else None
        if not isinstance(block, exp.Select) or not self._listed:
            return None
        known = [node for node in self._listed if self._is_public(node)]
        query = coarser(block, self._text, known)
        return None if query is None else f"by what many people share: {query}"

    def _is_public(self, node: exp.Expr) -> bool:
        try:
            key = self._lifter.lift(node)
        except Refused:
            return False
        domain = map_domain(key, _SUGGESTED_MAX)
        return key.type is not ColumnType.NUMBER and domain is not None and identifying_column(key) is None

    def _group_by_unit(self, node: exp.Expr, key: Expression, column: ColumnRef) -> Refused:
        if column.is_unit:
            what = "grouping by the privacy unit is refused"
            why = "Each group would be one person."
            mean = self._mean(column)
        else:
            what = f'grouping by "{column.name}" is refused'
            why = f'A value of "{column.name}" belongs to one person, so each group would be one person.'
            mean = self._within(column)
        if not isinstance(key, ColumnRef):
            why += f" {describe(key)} has another value for each value of it."
        return refuse(
            "group_by_unit",
            what,
            why,
            self._coarser() or "group by an attribute that many people share",
            *mean,
            position=self._text.position(node),
        )


def _middle(key: Expression) -> str:
    """A number between the low and the high values of a key."""
    declared = key.declared if isinstance(key, ColumnRef) else None
    if declared is None or declared.lower is None or declared.upper is None:
        return "10"
    return number_text((declared.lower + declared.upper) / 2)


def _clipped(text: str) -> str:
    return f"GREATEST(0, LEAST({text}, 1000000))"


def gathered(key: Expression, limit: int) -> Expression:
    """The key with its open columns gathered; the key itself where there is nothing to gather.

        GROUP BY age          with keys 0 to 110 and other -1
        key                   CASE WHEN age IS NULL OR age BETWEEN 0 AND 110 THEN age ELSE -1 END

    Only the reads that a key is made of are gathered, and only where the key's values could not be known otherwise: of
    `age > 50` both truth values are public whatever the column holds. WHERE and aggregates see the stored value.

    Errors: TypeRefused (too_large).
    Ensures: where the result has a domain, every stored row has a value in it.
    """
    if not any(column.other is not None for column in columns_of(key)) or map_domain(key, limit) is not None:
        return key
    return _replaced(key)


def _replaced(node: Expression) -> Expression:
    if isinstance(node, ColumnRef):
        if node.other is None or node.domain is None:
            return node
        keys = tuple(value for value in node.domain if value is not None and value != node.other.value)
        operator, arguments = gather_arguments(node, node.other.value, keys)
        return build(operator, arguments)
    if isinstance(node, Call):
        return build(node.operator, tuple(_replaced(argument) for argument in node.arguments))
    return node
