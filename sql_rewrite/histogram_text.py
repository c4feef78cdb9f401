"""The one text that a histogram is: {"label": number, ...}, made of its cells by the outer query (apart.py)."""

from __future__ import annotations

from sqlglot import exp

__all__ = ["TEXT", "quoted", "shown_end"]


def shown_end(end: exp.Expr) -> str:
    """The end of a bin as its label."""
    return f"-{shown_end(end.this)}" if isinstance(end, exp.Neg) else str(end.this)


def quoted(label: exp.Expr) -> exp.Expr:
    """A label as a string of JSON: what would end it, or may not stand in it, is escaped."""
    for written, escaped in _ESCAPES:
        label = exp.Replace(this=label, expression=exp.Literal.string(written), replacement=exp.Literal.string(escaped))
    return label


_ESCAPES = (("\\", "\\\\"), ('"', '\\"'))


def _written() -> exp.Expr:
    """{"label": number, ...} of the cells in their order."""

    def text(value: str) -> exp.Expr:
        return exp.Literal.string(value)

    number = exp.Cast(this=exp.column("rows_of"), to=exp.DataType.build("text"))
    one = exp.DPipe(this=text('"'), expression=exp.column("label"), safe=True)
    one = exp.DPipe(this=exp.DPipe(this=one, expression=text('": '), safe=True), expression=number, safe=True)
    ordered = exp.Order(this=one, expressions=[exp.Ordered(this=exp.column("cell"), nulls_first=False)])
    listed = exp.GroupConcat(this=ordered, separator=text(", "))
    return exp.DPipe(this=exp.DPipe(this=text("{"), expression=listed, safe=True), expression=text("}"), safe=True)


TEXT = _written()
"""Over columns `cell`, `rows_of`, and `label`, which stands for what the label is."""
