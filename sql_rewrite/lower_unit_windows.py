"""Windows over the rows of each unit, as layers over these: what windows read -> their places and sums -> their values.

Rows that are equal in the order of a window that distinguishes them anyway are ordered by their whole content: by all
cells of the block. Rows with equal cells are one as good as the other, as long as every window means the same one:
where several windows distinguish rows, each row is numbered first, by its content, and all of them order by the number.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from privacy.policy import ColumnType
from sql_rewrite.expressions import ColumnRef, Expression, Literal, columns_of, needs_wide
from sql_rewrite.layer_values import OneZero
from sql_rewrite.lower_expression import ParameterList
from sql_rewrite.lower_expression import lower as lower_expression
from sql_rewrite.lower_unit_values import lowered_value, row_columns
from sql_rewrite.plan import GROUPS, Placement, UnitPlace, UnitRows, UnitWindow
from sql_rewrite.relations import Extended, Kept, OrderedBy, Output, Placed, Relation, RowFrame, WithinUnit
from sql_rewrite.scalars import Cast, EngineType, Named, Scalar, Whole
from sql_rewrite.stage_values import is_released
from sql_rewrite.unit_facts import content_keys
from sql_rewrite.unit_values import renamed

__all__ = ["read_windows", "window_layers"]

_NUMBER = "n"
"""The column of a row's number among the rows of its unit, by its content."""

_COUNTED = (Placement.NTILE, Placement.LAG, Placement.LEAD, Placement.NTH_VALUE)
"""Functions that read a number of rows, or of parts."""

_FRAMED = (Placement.FIRST_VALUE, Placement.LAST_VALUE, Placement.NTH_VALUE)


def read_windows(computed: UnitRows, names: Collection[str]) -> tuple[set[str], list[UnitWindow]]:
    """The cells and the windows that the columns of these names need."""
    shown = {ref.name for name, column in computed.columns if name in names for ref in columns_of(column)}
    windows = [window for window in computed.windows if window.name in shown]
    read = {name for name, _ in computed.cells if name in shown}
    for window in windows:
        read |= {ref.name for part in _parts(window) for ref in columns_of(part) if not is_released(ref)}
    if any(window.by_place for window in windows):
        read |= set(content_keys(computed))
    return read, windows


def _parts(window: UnitWindow) -> list[Expression]:
    value = window.value
    parts = [value.argument, value.otherwise if isinstance(value, UnitPlace) else value.filter]
    found = [part for part in parts if part is not None]
    return [*found, *window.partition, *(term.expression for term in window.order)]


def window_layers(
    computed: UnitRows,
    rows: Relation,
    read: Collection[str],
    windows: Sequence[UnitWindow],
    parameters: ParameterList,
    *,
    draw: bool,
) -> Relation:
    """The rows with a column for each window, by its name. `rows` have `u`, the cells that are read, and `d`."""
    if not windows:
        return rows
    layers = _Layers(computed, windows, parameters)
    places = [layers.place(window) for window in windows]
    own = ["u", *(["d"] if draw else []), *sorted(read)]
    rows = Kept(rows, GROUPS, None, (*(Output(Named(name), name) for name in own), *layers.columns))
    if layers.numbered:
        rows = Extended(rows, "b", (layers.number(),))
    return Extended(Extended(rows, "w", tuple(layers.over)), "f", tuple(places))


class _Layers:
    """The columns of the layers: `columns` of each row, `over` the rows of its unit."""

    def __init__(self, computed: UnitRows, windows: Sequence[UnitWindow], parameters: ParameterList) -> None:
        self._parameters = parameters
        self._wide = {ref.name for _, column in computed.columns for ref in columns_of(column) if needs_wide(ref)}
        self.numbered = sum(window.by_place for window in windows) > 1
        self._columns: dict[str, Scalar] = {}
        self.over: list[Output] = []
        self._made: dict[Expression, str] = {}
        cells = dict(computed.cells)
        self._content: tuple[str, ...] = ()
        if any(window.by_place for window in windows):
            keys = [(name, cells[name]) for name in content_keys(computed)]
            refs = [renamed(cell, name, name, nullable=cell.nullable) for name, cell in keys]
            self._content = tuple([self._compared(ref) for ref in refs])

    @property
    def columns(self) -> list[Output]:
        """What windows read of each row, beside cells."""
        return [Output(value, name) for name, value in self._columns.items()]

    def number(self) -> Output:
        """The number of a row by its content."""
        order = tuple(OrderedBy(name, descending=False, nulls_first=False) for name in self._content)
        return Output(WithinUnit(Placed("row_number", ()), (), order), _NUMBER)

    def place(self, window: UnitWindow) -> Output:
        """The column of a window, above the layer of `over`."""
        partition = tuple([self._compared(part) for part in window.partition])
        by = "" if window.frame is None else window.frame.by
        order = [OrderedBy(self._ordered(t.expression, by), t.descending, t.nulls_first) for t in window.order]
        if window.by_place:
            ties = (_NUMBER,) if self.numbered else self._content
            known = {term.name for term in order} | set(partition)
            order += [OrderedBy(name, descending=False, nulls_first=False) for name in ties if name not in known]
        frame = _lowered_frame(window)
        count = len(self.over)

        def over(made: Scalar) -> Scalar:
            name = f"{window.name}x{len(self.over) - count}"
            self.over.append(Output(WithinUnit(made, partition, tuple(order), frame), name))
            return Named(name)

        if isinstance(window.value, UnitPlace):
            return Output(over(self._placed(window, window.value)), window.name)
        for output in row_columns(window.value, self._parameters):
            self._columns[output.name] = output.value
        return Output(lowered_value(window.value, wide=window.name in self._wide, over=over), window.name)

    def _placed(self, window: UnitWindow, place: UnitPlace) -> Scalar:
        arguments: list[Scalar] = []
        if place.argument is not None:
            name = f"{window.name}t"
            self._columns[name] = _plain(place.argument, self._parameters)
            arguments.append(Named(name))
        if place.function in _COUNTED:
            arguments.append(Whole(place.number))
        if place.otherwise is not None:
            assert isinstance(place.otherwise, Literal)
            arguments.append(lower_expression(place.otherwise, self._parameters))
        return Placed(place.function.value, tuple(arguments), place.ignores_null)

    def _ordered(self, expression: Expression, by: str) -> str:
        """The column of a term of the order: wide enough that no distance from a value leaves its type."""
        kind = {"whole": EngineType.WIDE, "clock": EngineType.TIMESTAMP}.get(by)
        if kind is None or (kind is EngineType.WIDE and expression.type is ColumnType.NUMBER):
            return self._compared(expression)
        name = f"{self._compared(expression)}{by[0]}"
        self._columns[name] = Cast(_plain(expression, self._parameters), kind)
        return name

    def _compared(self, expression: Expression) -> str:
        """The column of what rows are compared by."""
        if isinstance(expression, ColumnRef) and expression.type is not ColumnType.TEXT:
            return expression.name
        name = self._made.get(expression)
        if name is None:
            name = self._made[expression] = f"o{len(self._made)}"
            self._columns[name] = _plain(expression, self._parameters)
        return name


def _plain(expression: Expression, parameters: ParameterList) -> Scalar:
    """A value as it is compared: stored keys sort otherwise than text, and two zeros are one."""
    found = lower_expression(expression, parameters)
    if expression.type is ColumnType.NUMBER:
        return OneZero(found)
    return Cast(found, EngineType.TEXT) if expression.type is ColumnType.TEXT else found


def _lowered_frame(window: UnitWindow) -> RowFrame | None:
    """The frame, of rows where a window distinguishes them: the first and last of all are the same in either."""
    value, frame = window.value, window.frame
    if isinstance(value, UnitPlace):
        if value.function not in _FRAMED:
            return None
        assert frame is not None
        return RowFrame(rows=True, start=frame.start, end=frame.end)
    if frame is None:
        return None
    return RowFrame(rows=frame.rows, start=frame.start, end=frame.end, by=frame.by, exclude=frame.exclude)
