"""Relations of released numbers, which the outer query reads, in up to three forms.

plain        the answer's columns
identified   and, after them, hidden columns `id$0`, `id$1` ... that name the row by the released rows it came from
simulated    and, before those, `replicate$`: the relation over replicates of the released tables
"""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import assert_never

from sqlglot import exp

from privacy.release import ColumnKind
from sql_rewrite.plan import ShellOutput
from sql_rewrite.refuse import refuse
from sql_rewrite.syntax import copied
from sql_rewrite.text import Text
from sql_rewrite.trace import Shape, Trace

__all__ = ["REPLICATE", "ROW", "Form", "Released", "check_name", "column", "core_relation", "hidden_columns", "quoted"]

ROW = "row$"
REPLICATE = "replicate$"
_HIDDEN = re.compile(
    r"id\$\d+\Z|(?:derived|nested)\d+\$\Z|(?:row|replicate|renamed|driver|constants|values)\$\Z", re.IGNORECASE
)


class Form(enum.Enum):
    """Which hidden columns a relation has beside those of the answer."""

    PLAIN = "plain"
    IDENTIFIED = "identified"
    SIMULATED = "simulated"


class Released:
    """A relation of released numbers: its columns, and its forms, built when asked for.

    `identities` counts the columns `id$0`..; None when rows have no identity, so that only the plain form exists.
    `bare` names the core when the relation is that core's table as it is. `instances` counts the relations that the
    forms read once everything is written out. `rows` are the cores whose rows make its own; `chosen` says that noisy
    numbers decide which of them are there, `ordered` that they decide their order. `rows_most` gives the greatest
    number of its rows that follows from public facts, None when nothing does; it is asked only where that matters.
    """

    __slots__ = (
        "_build", "_forms", "bare", "chosen", "identities", "instances", "ordered", "outputs", "rows", "rows_most",
    )  # fmt: skip

    def __init__(
        self,
        outputs: tuple[ShellOutput, ...],
        *,
        identities: int | None,
        build: Callable[[Form], exp.Query | None],
        instances: int = 1,
        bare: str | None = None,
        rows: frozenset[str] = frozenset(),
        chosen: bool = False,
        ordered: bool = False,
        rows_most: Callable[[], int | None] = lambda: None,
    ) -> None:
        self.rows_most = rows_most
        self.rows = rows
        self.chosen = chosen
        self.ordered = ordered
        self.outputs = outputs
        self.instances = instances
        self.identities = identities
        self.bare = bare
        self._build = build
        self._forms: dict[Form, exp.Query | None] = {}

    def form(self, form: Form) -> exp.Query | None:
        """The tree of a form; None when it does not exist. Copy before use."""
        if form is not Form.PLAIN and self.identities is None:
            return None
        if form not in self._forms:
            self._forms[form] = self._build(form)
        return self._forms[form]

    def plain(self) -> exp.Query:
        """A copy of the plain form, which always exists."""
        tree = self.form(Form.PLAIN)
        assert tree is not None
        copy: exp.Query = tree.copy()
        return copy


def hidden_columns(form: Form, identities: int) -> list[str]:
    """The names of the hidden columns that a relation with that many identities has in a form."""
    ids = [f"id${i}" for i in range(identities)]
    match form:
        case Form.PLAIN:
            return []
        case Form.IDENTIFIED:
            return ids
        case Form.SIMULATED:
            return [REPLICATE, *ids]
        case _:
            assert_never(form)


def quoted(name: str) -> exp.Identifier:
    """A quoted identifier."""
    return exp.Identifier(this=name, quoted=True)


def column(name: str, relation: str | None = None) -> exp.Column:
    """A quoted column reference."""
    return exp.Column(this=quoted(name), table=quoted(relation) if relation else None)


def aliased(value: exp.Expr, name: str) -> exp.Expr:
    """A column of a select list under a quoted name. A value that stands in a tree already is copied."""
    value = value if value.parent is None else copied(value)
    if "alias" in value.arg_types:
        return exp.alias_(value, name, quoted=True, copy=False)
    return exp.Alias(this=value, alias=quoted(name))


def core_relation(
    core: str, outputs: Sequence[ShellOutput], numbers: Mapping[str, str], rows_most: Callable[[], int | None]
) -> Released:
    """The relation of a core's released table, whose rows are named by `row$`.

    `numbers` are keys that are in the relation once more, by another name and as the doubles that they were.
    """

    def build(form: Form) -> exp.Query:
        columns: list[exp.Expr] = [column(output.name) for output in outputs]
        columns += [
            aliased(exp.Cast(this=column(name), to=exp.DataType.build("double")), double)
            for name, double in numbers.items()
        ]
        columns += [
            column(name) if name == REPLICATE else aliased(column(ROW), name) for name in hidden_columns(form, 1)
        ]
        tree = exp.Select(expressions=columns)
        tree.set("from_", exp.From(this=exp.Table(this=quoted(core))))
        return tree

    return Released(
        (
            *(_traced(output) if output.kind == ColumnKind.RELEASED else output for output in outputs),
            *(ShellOutput(name=double, kind=ColumnKind.KEY) for double in numbers.values()),
        ),
        identities=1,
        build=build,
        bare=core,
        rows=frozenset([core]),
        rows_most=rows_most,
    )


def _traced(output: ShellOutput) -> ShellOutput:
    """A released column of a core's own table."""
    assert output.core is not None
    assert output.column is not None
    reads = frozenset([(output.core, output.column, 0)])
    return replace(output, identity=0, trace=Trace(reads=reads, shape=Shape.AFFINE, rises=1))


def check_name(name: str, text: Text, node: exp.Expr) -> None:
    """Refuses a name that is given to hidden columns and relations."""
    if _HIDDEN.match(name):
        raise refuse(
            "unsupported_sql",
            f'the name "{name[:63]}" is refused',
            "The server gives names of this form to columns of its own.",
            "choose another name",
            position=text.position(node),
        )
