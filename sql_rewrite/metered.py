"""The parser under a meter: reading any text ends after a known number of steps.

The parser tries a rule, goes back and tries another one. Nested words such as `DATE(DATE(...` and joins without ON
double its work with every level, so a text of a hundred letters could keep it busy for hours. It is compiled: it
cannot be subclassed, it does not notice Python's limit of recursion, and no other thread runs meanwhile.

But its rules look into tables of its class, and a table can be a property. Looking into one of the tables named in
`METERED` is a step. Every cycle of calls between the parser's rules looks into one of them on its way (a test derives
the calls from the parser's source and finds no other cycle than those of `EXEMPT`), so that between two steps there
is no more work than the parser's rules, each once, over the words of the text. When the steps are used up, the look
raises, and the parser, which catches only errors of its own, gives up.

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
"""Tables of the parser; a look into one of them is a step."""

EXEMPT: Final = frozenset(("_parse_grouping_set", "_parse_grouping_sets", "_parse_interval"))
"""Rules that call themselves without a step. Each call takes a word of its own, and none goes back by more than it."""

STEPS_MAX = 100_000
"""Steps that a text may take. Texts at the limits that are answered take less than half of them."""


class TooManySteps(Exception):
    """The steps are used up. `start` and `end` are the place in the text that the parser had reached, if any."""

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
    """A table that counts the looks of a metered parser. Other parsers of the dialect find it as it was."""

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
