"""The parser under a meter: reading any text ends after a known number of steps.

The parser tries a rule, goes back and tries another one. Nested keywords such as `DATE(DATE(...` and joins without ON
double its work with every level, so a text of a hundred letters could keep it busy for hours. It is compiled: it
cannot be subclassed, it ignores Python's recursion limit, and no other thread runs meanwhile.

But its rules look things up in tables of its class, and a table can be a property. Each lookup in one of the tables
named in `METERED` is a step. Every cycle of calls between the parser's rules contains such a lookup (a test derives the
calls from the parser's source and finds no cycle except those of `EXEMPT`), so that between two steps each of the
parser's rules runs at most once over the tokens of the text. When the steps are used up, the lookup raises, and
the parser, which catches only its own errors, gives up.

Steps depend on the text only, not on the machine or its load: a text is always read or always refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.parsers.duckdb import DuckDBParser
from sqlglot.tokenizer_core import Token

__all__ = ["EXEMPT", "METERED", "STEPS_MAX", "TooManySteps", "read"]

METERED: Final = (
    "ASSIGNMENT", "BRACKETS", "COLUMN_OPERATORS", "CONSTRAINT_PARSERS", "NO_PAREN_FUNCTION_PARSERS",
    "PIPE_SYNTAX_TRANSFORM_PARSERS", "PLACEHOLDER_PARSERS", "PRIMARY_PARSERS", "QUERY_MODIFIER_PARSERS",
    "QUERY_MODIFIER_TOKENS", "RANGE_PARSERS", "STATEMENT_PARSERS", "STRING_PARSERS", "TABLE_ALIAS_TOKENS",
    "TEXT_MATCH_EXCLUDED_TOKENS", "TYPE_TOKENS", "UNARY_PARSERS",
)  # fmt: skip
"""Tables of the parser; a lookup in one of them is a step."""

EXEMPT: Final = frozenset(("_parse_grouping_set", "_parse_grouping_sets", "_parse_interval"))
"""Rules that call themselves without a step. Each call consumes a token of its own, and none goes back further."""

STEPS_MAX = 100_000
"""Steps that a text may take. Texts at the limits that are answered take less than half of them."""


class TooManySteps(Exception):
    """The steps are used up. `start` and `end` say where in the text the parser was, if that is known."""

    def __init__(self, start: int | None, end: int | None) -> None:
        super().__init__("the text takes too many steps to read")
        self.start = start
        self.end = end


class _Metered(DuckDB):
    """The dialect of one reading, with the steps that are left to it."""

    def __init__(self, steps: int) -> None:
        super().__init__()
        self.left = steps
        self.written = dict(_WRITTEN)


# The parser writes into this table while it reads CONNECT BY, and forgets to clean up when that fails: the next text
# would be read by other rules. So every reading has its own.
_WRITTEN: Final[Mapping[str, Callable[[DuckDBParser], exp.Expr]]] = DuckDBParser.NO_PAREN_FUNCTION_PARSERS


def _table(value: object) -> property:
    """A table that counts the lookups of a metered parser. Other parsers of the dialect find it unchanged."""

    def look(parser: DuckDBParser) -> object:
        meter = parser.dialect
        if type(meter) is not _Metered:
            return value
        meter.left -= 1
        if meter.left < 0:
            token = parser._curr
            raise TooManySteps(token.start, token.end) if token else TooManySteps(None, None)
        return meter.written if value is _WRITTEN else value

    return property(look)


for _name in METERED:
    setattr(DuckDBParser, _name, _table(getattr(DuckDBParser, _name)))


def read(tokens: Sequence[Token], sql: str, *, steps: int = STEPS_MAX) -> tuple[list[exp.Expr], int]:
    """The statements of a text and the number of steps that they took.

    Errors: TooManySteps, and the parser's own.
    """
    meter = _Metered(steps)
    trees = meter.parser().parse(list(tokens), sql)
    return [tree for tree in trees if tree is not None], steps - meter.left
