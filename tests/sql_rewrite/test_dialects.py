"""What an engine has to compute is said in no engine's words: a dialect that is not DuckDB's can write all of it."""

from __future__ import annotations

import ast
import dataclasses
import functools
import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import pytest

from privacy.norms import NormPower
from privacy.rank_tree import QuantileMechanism
from sql_rewrite.bound import bound
from sql_rewrite.dialects.dialect import Dialect, kinds, writes
from sql_rewrite.dialects.duckdb import DUCKDB, DuckDB, quote
from sql_rewrite.lift import lift
from sql_rewrite.lower import _Lowering
from sql_rewrite.lower_expression import ParameterList, lower
from sql_rewrite.named_ranks import by_mechanism
from sql_rewrite.norms import lower_norms
from sql_rewrite.profile import _Lowering as ProfileLowering
from sql_rewrite.profile import profiled_tables
from sql_rewrite.scalars import (
    Arithmetic,
    Case,
    Comparison,
    EngineType,
    IsNull,
    Junction,
    Named,
    Node,
    Scalar,
    TotalDivision,
    Whole,
    engine_type,
)
from sql_rewrite.value_histogram import _tree, value_histogram
from tests.sql_rewrite.datasets import CLINIC
from tests.sql_rewrite.function_cases import COLUMNS
from tests.sql_rewrite.statements import CORPORA, cores, expressions
from tests.sql_rewrite.test_profile import EXAMPLE
from tests.sql_rewrite.test_squares import core_of

ENGINE_WORDS = re.compile(r"HUGEINT|BIGINT|VARCHAR|TRY_CAST|CAST\(|CASE WHEN|SELECT |hash\(|md5|getvariable|::|COUNT\(")
SQL_ROOM = Path(__file__).resolve().parents[2] / "sql_rewrite"
WRITERS_OF_TREES = (
    "lower.py",
    "lower_distinct.py",
    "lower_normed.py",
    "lower_units.py",
    "lower_expression.py",
    "profile.py",
    "relations.py",
    "layer_values.py",
    "scalars.py",
    "date_scalars.py",
    "norm_worth.py",
    "unit_worth.py",
    *(f"statistics/{name}.py" for name in ("counts", "moments", "products", "ranks", "totals", "vectors")),
)


COUNTED = "SELECT n, COUNT(*) AS c FROM messages GROUP BY n"
"""A question of many groups, where norms are chosen."""


class Outlines(DuckDB):
    """A dialect that knows no SQL: a node is its name and its parts, whatever it is."""

    def write(self, node: Node) -> str:
        return self._outline(node)

    def _outline(self, node: Any) -> str:
        parts = [self._part(getattr(node, field.name)) for field in dataclasses.fields(node)]
        return f"{type(node).__name__}({', '.join(parts)})"

    def _part(self, value: object) -> str:
        if isinstance(value, tuple):
            return "[" + ", ".join(map(self._part, value)) + "]"
        return self._outline(value) if dataclasses.is_dataclass(value) else str(value)


@functools.cache
def outlines(corpora: tuple[str, ...]) -> str:
    """Every tree of the corpora, written by a dialect that knows no SQL."""
    dialect = Outlines()
    listed = [core for corpus in corpora for core in cores(corpus).values()]
    trees: list[str] = [dialect.write(_Lowering(core).tree()) for core in listed]
    latest = "SELECT COUNT(x) FROM (SELECT person_id, ARG_MAX(cost, day) AS x FROM visits GROUP BY person_id) AS t"
    middle = "SELECT COUNT(x) FROM (SELECT person_id, MEDIAN(cost) AS x FROM visits GROUP BY person_id) AS t"
    modes = middle.replace("MEDIAN(cost)", "COUNT(*) AS n, MODE(cost)")
    for text in ("SELECT MEDIAN(age) FROM people", "SELECT MEDIAN(cost), COUNT(*) FROM visits", latest, middle, modes):
        (ranked,) = bound(lift(text, CLINIC))
        trees.append(dialect.write(_Lowering(ranked).tree()))
    blocks = by_mechanism(lift("SELECT MEDIAN(cost) FROM visits", CLINIC), QuantileMechanism.SAMPLE_AND_AGGREGATE)
    trees += [dialect.write(_Lowering(core).tree()) for core in bound(blocks)]
    normed = [core for core in listed if core.norms]
    for statement in (lower_norms(core, dialect, shared=shared) for core in normed for shared in (True, False)):
        trees += [statement.sql, *(table.sql for table in (statement.shared.tables if statement.shared else ()))]
    trees.append(lower_norms(core_of(COUNTED, groups=40, power=NormPower.L2), dialect).sql)
    trees += [dialect.write(lower(expression, ParameterList())) for expression in expressions()]
    trees.append(dialect.write(_tree(value_histogram("b0", "visits", "cost", CLINIC))))
    trees += [dialect.write(ProfileLowering(profiled).tree()) for profiled in profiled_tables(EXAMPLE)]
    return "\n".join(trees)


@pytest.mark.parametrize(
    "corpora",
    [
        pytest.param(("texts that are answered",), id="answered"),
        pytest.param(tuple(CORPORA), id="all", marks=pytest.mark.slow),
    ],
)
def test_trees_hold_no_word_of_an_engine(corpora: tuple[str, ...]) -> None:
    """Whatever DuckDB's SQL says in its own words comes from its dialect alone."""
    assert ENGINE_WORDS.search(outlines(corpora)) is None


@pytest.mark.slow
def test_every_kind_of_node_occurs() -> None:
    """The corpora hold each kind of value and layer, so statements that stay the same keep all of the dialect."""
    names = [kind.__name__ for kind in kinds()]
    assert len(names) > 40
    written = outlines(tuple(CORPORA))
    assert [name for name in names if f"{name}(" not in written] == []


def test_a_dialect_that_forgets_a_node_is_no_dialect() -> None:
    """A class without one of the writers cannot be defined, so no statement stops half-way."""
    every = {f"_{kind.__name__}": writes(kind)(lambda self, node: "") for kind in kinds()}
    assert type("Whole", (Dialect,), every)().write(A) == ""
    del every["_Finite"]
    with pytest.raises(TypeError, match="Finite"):
        type("Broken", (Dialect,), every)


@pytest.mark.parametrize("name", WRITERS_OF_TREES)
def test_what_makes_trees_writes_no_sql(name: str) -> None:
    """No string of these modules, documentation apart, is a piece of SQL."""
    tree = ast.parse((SQL_ROOM / name).read_text())
    bodies = [node.body for node in ast.walk(tree) if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)]
    said = {id(part.value) for body in bodies for part in body if isinstance(part, ast.Expr)}
    strings = [
        n.value
        for n in ast.walk(tree)
        if isinstance(n, ast.Constant) and isinstance(n.value, str) and id(n) not in said
    ]
    assert strings
    assert [text for text in strings if ENGINE_WORDS.search(text)] == []


def _parts(value: object) -> Iterator[Node]:
    """The node and all below it."""
    if isinstance(value, Node):
        yield value
        for field in dataclasses.fields(value):  # type: ignore[arg-type]
            yield from _parts(getattr(value, field.name))
    elif isinstance(value, tuple):
        for item in value:
            yield from _parts(item)


def test_arithmetic_says_the_type_that_it_has() -> None:
    """Another engine will need the types that nodes of arithmetic have: they are those that DuckDB finds in its SQL."""
    seen: dict[str, EngineType] = {}
    for expression in expressions():
        for part in _parts(lower(expression, ParameterList())):
            if isinstance(part, Arithmetic | TotalDivision):
                seen[re.sub(r"\$\d+", "NULL", DUCKDB.write(part))] = part.type
    with closing(duckdb.connect()) as connection:
        columns = ", ".join(f"NULL::{DUCKDB.types[engine_type(column)]} AS {quote(column.name)}" for column in COLUMNS)
        connection.execute(f"CREATE TABLE t AS SELECT {columns}")
        found = {sql: connection.execute(f"SELECT typeof({sql}) FROM t").fetchall()[0][0] for sql in seen}
    assert set(seen.values()) == {EngineType.INTEGER, EngineType.WIDE, EngineType.NUMBER}
    assert {sql: DUCKDB.types[kind] for sql, kind in seen.items()} == found


A, B, C = Named("a"), Named("b"), Named("c")
WIDE = EngineType.WIDE


def _bare(symbol: Any, left: Scalar, right: Scalar) -> Arithmetic:
    return Arithmetic(symbol, left, right, WIDE, closed=False)


@pytest.mark.parametrize(
    ("node", "sql"),
    [
        (_bare("*", _bare("+", A, B), C), '("a" + "b") * "c"'),
        (_bare("+", A, _bare("*", B, C)), '"a" + "b" * "c"'),
        (_bare("-", _bare("-", A, B), C), '"a" - "b" - "c"'),
        (_bare("-", A, _bare("-", B, C)), '"a" - ("b" - "c")'),
        (_bare("//", A, _bare("*", B, C)), '"a" // ("b" * "c")'),
        (_bare("//", _bare("*", A, B), C), '"a" * "b" // "c"'),
        (_bare("*", A, _bare("//", B, C)), '"a" * ("b" // "c")'),
        (Comparison("<", _bare("+", A, B), C, closed=False), '"a" + "b" < "c"'),
        (Comparison("=", Comparison("<", A, B, closed=False), C, closed=False), '("a" < "b") = "c"'),
        (IsNull(Comparison("<", A, B, closed=False), closed=False), '("a" < "b") IS NULL'),
        (
            Junction("AND", (Junction("OR", (A, B), closed=False), Comparison(">", C, Whole(1), closed=False))),
            '(("a" OR "b") AND "c" > 1)',
        ),
        (Junction("OR", (Junction("AND", (A, B), closed=False), C), closed=False), '"a" AND "b" OR "c"'),
        (_bare("*", Case(((A, B),), C, closed=False), Whole(2)), '(CASE WHEN "a" THEN "b" ELSE "c" END) * 2'),
        (Case(((A, _bare("+", B, C)),), closed=False), 'CASE WHEN "a" THEN "b" + "c" END'),
    ],
)
def test_parentheses_stand_where_the_tree_would_be_read_otherwise(node: Scalar, sql: str) -> None:
    """Nodes without parentheses of their own get them from what stands above, and only where they are needed."""
    assert DUCKDB.write(node) == sql
