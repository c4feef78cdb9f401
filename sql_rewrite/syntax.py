"""Text to syntax tree, within limits, and the small tools with which the lift reads that tree.

The tree is sqlglot's. It is read here, in `lift`, `lift_expression` and `shell`, and nowhere else.
"""

from __future__ import annotations

import bisect
import difflib
import logging
import re
from collections.abc import Iterable
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, SqlglotError, TokenError
from sqlglot.tokenizer_core import TokenType

from privacy.refusal import Finding, Position, Refused

__all__ = [
    "DEPTH_MAX",
    "DIALECT",
    "IN_LIST_MAX",
    "NODES_MAX",
    "TEXT_BYTES_MAX",
    "Text",
    "consume",
    "nearest",
    "parse",
    "populated",
    "refuse",
    "rendered",
]

DIALECT = "duckdb"
TEXT_BYTES_MAX = 64 * 1024
TOKENS_MAX = 5_000
NODES_MAX = 4_000
DEPTH_MAX = 64
NESTING_MAX = 32
IN_LIST_MAX = 1_000
RUN_MAX = 100
"""Most words in a row that are neither a name nor a number nor a text: the parser's stack is that of a thread."""

CALL_CHAIN_MAX = 64
"""Most calls of a text that follow a bracket and a dot."""

SUBSCRIPTS_MAX = 64
"""Most square brackets of a text: the parser's work grows with the square of their number."""

IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}\Z", re.ASCII)

_VALUES = frozenset((TokenType.VAR, TokenType.IDENTIFIER, TokenType.NUMBER, TokenType.STRING))

# The parser writes texts that it does not know to this log, literals included.
logging.getLogger("sqlglot").disabled = True

# The parser warns about texts that it reads as commands, and quotes them. They are refused here, with words of ours.
logging.getLogger("sqlglot").disabled = True

_DIALECT = sqlglot.Dialect.get_or_raise(DIALECT)


class Text:
    """The analyst's text with its offsets: turns nodes into positions."""

    __slots__ = ("_lines", "sql", "tokens")

    def __init__(self, sql: str) -> None:
        self.sql = sql
        self.tokens: list[Any] = []
        self._lines: list[int] | None = None

    def position(self, node: exp.Expr | None) -> Position | None:
        """Where a node stands in the text; None when the tree does not know."""
        if node is None:
            return None
        start, end = None, None
        for part in node.walk():
            meta = part.meta
            if "start" in meta:
                start = meta["start"] if start is None else min(start, meta["start"])
                end = meta["end"] if end is None else max(end, meta["end"])
        if start is None or end is None:
            return None
        return self.span(start, self._closed(start, end + 1))

    def span(self, start: int, stop: int) -> Position:
        """The position of the characters from `start` up to `stop`."""
        if self._lines is None:
            self._lines = [0] + [match.end() for match in re.finditer("\n", self.sql)]
        line = bisect.bisect_right(self._lines, start) - 1
        fragment = self.sql[start:stop]
        return Position(line=line + 1, column=start - self._lines[line] + 1, text=fragment[:120])

    def _closed(self, start: int, stop: int) -> int:
        """Extends a fragment over the closing brackets that its opening ones ask for."""
        missing = self.sql.count("(", start, stop) - self.sql.count(")", start, stop)
        if missing == 0 and self.sql[stop : stop + 1] == "(":
            missing = 0 if self.sql[stop : stop + 1] != "(" else 1
            stop += 1
        while missing > 0 and stop < len(self.sql):
            character = self.sql[stop]
            missing += (character == "(") - (character == ")")
            stop += 1
        return stop


def refuse(
    code: str,
    what: str,
    why: str,
    *instead: str,
    position: Position | None = None,
) -> Refused:
    """A refusal with one finding."""
    return Refused([Finding(code=code, what=what, why=why, instead=instead, position=position)])


def nearest(name: str, known: Iterable[str]) -> tuple[str, ...]:
    """A suggestion line for a misspelt public name, or nothing."""
    names = {candidate.lower(): candidate for candidate in known}
    close = difflib.get_close_matches(name.lower(), names, n=1, cutoff=0.6)
    return (f'did you mean "{names[close[0]]}"?',) if close else ()


def rendered(node: exp.Expr) -> str:
    """A node as text for people, when its place in the analyst's text is not known.

    The generator has functions of its own that fail on arguments it does not foresee; a name must do then.
    """
    try:
        return node.sql(dialect=DIALECT, comments=False)
    except (SqlglotError, ValueError, TypeError, AttributeError, IndexError, KeyError, AssertionError):
        return type(node).__name__.lower()


def populated(node: exp.Expr) -> set[str]:
    """Names of the slots of a node that hold something."""
    return {name for name, value in node.args.items() if value is not None and value is not False and value != []}


def consume(node: exp.Expr, *names: str, text: Text, what: str) -> None:
    """Refuses when a slot of the node is populated that the caller does not name.

    This is what stops a clause from being dropped silently (LESSONS 6): the lift asserts that it has read
    everything that the parser found.
    """
    extra = populated(node) - set(names)
    if extra:
        listed = ", ".join(sorted(name.strip("_") for name in extra))
        raise refuse(
            "unsupported_sql",
            f"{what} with {listed} is refused",
            "This part of the syntax has no proved meaning here, and nothing is ever ignored.",
            "write the query without it",
            position=text.position(node),
        )


def parse(sql: str) -> tuple[exp.Expr, Text]:
    """The one statement of a text.

    Errors: Refused with parse_error, many_statements, not_a_query or too_large. Depends on the text only.
    """
    text = Text(sql)
    if len(sql.encode("utf-8", "surrogatepass")) > TEXT_BYTES_MAX:
        raise refuse(
            "too_large", "the text is refused", f"It is longer than {TEXT_BYTES_MAX} bytes.", "ask less at once"
        )
    if any(ord(c) < 32 and c not in "\t\n\r" for c in sql) or any(0xD800 <= ord(c) <= 0xDFFF for c in sql):
        raise refuse("parse_error", "the text is refused", "It contains control characters.", "remove them")
    try:
        tokens = _DIALECT.tokenize(sql)
    except (TokenError, SqlglotError, ValueError, RecursionError):
        raise refuse(
            "parse_error",
            "the text could not be split into words",
            "A quote, a comment or a name is not closed, or a character is not known.",
            "check quotes and comments",
        ) from None
    text.tokens = tokens
    _check_tokens(tokens, text)
    try:
        trees = [tree for tree in _DIALECT.parser().parse(tokens, sql) if tree is not None]
    except ParseError as error:
        raise _parse_refusal(error, text) from None
    except RecursionError:
        raise _too_deep() from None
    except (SqlglotError, ValueError, TypeError, AttributeError, IndexError, KeyError, AssertionError):
        raise refuse(
            "parse_error", "the text could not be read", "It is not SQL of this dialect.", "check the syntax"
        ) from None
    if not trees:
        raise refuse("parse_error", "the text is empty", "There is no statement in it.", "write a SELECT query")
    if len(trees) > 1:
        raise refuse(
            "many_statements",
            "the text is refused",
            f"It holds {len(trees)} statements; one query is one statement.",
            "send the statements one by one",
        )
    tree = trees[0]
    try:
        _check_size(tree, text)
    except RecursionError:
        raise _too_deep() from None
    return tree, text


def _check_tokens(tokens: list[Any], text: Text) -> None:
    if len(tokens) > TOKENS_MAX:
        raise refuse("too_large", "the text is refused", f"It has more than {TOKENS_MAX} words.", "ask less at once")
    if sum(token.token_type is TokenType.L_BRACKET for token in tokens) > SUBSCRIPTS_MAX:
        raise refuse(
            "too_large", "the text is refused", f"It has more than {SUBSCRIPTS_MAX} square brackets.", "use IN (...)"
        )
    depth = run = calls = 0
    before = None
    for token in tokens:
        # a.f().f() ...: the parser's work grows with the square of such a chain.
        calls += before is TokenType.R_PAREN and token.token_type is TokenType.DOT
        before = token.token_type
        if calls > CALL_CHAIN_MAX:
            raise _too_deep(text.span(token.start, token.end + 1))
        # Words without a value between them (NOT NOT ..., INTERVAL INTERVAL ...) nest without brackets.
        run = 0 if token.token_type in _VALUES else run + 1
        if run > RUN_MAX:
            raise _too_deep(text.span(token.start, token.end + 1))
        if token.token_type in (TokenType.L_PAREN, TokenType.CASE, TokenType.L_BRACKET, TokenType.L_BRACE):
            depth += 1
            if depth > NESTING_MAX:
                raise _too_deep(text.span(token.start, token.end + 1))
        elif token.token_type in (TokenType.R_PAREN, TokenType.END, TokenType.R_BRACKET, TokenType.R_BRACE):
            depth -= 1


def _check_size(tree: exp.Expr, text: Text) -> None:
    count = 0
    stack = [(tree, 1)]
    while stack:
        node, depth = stack.pop()
        count += 1
        if depth > DEPTH_MAX * 3 or count > NODES_MAX:
            raise _too_deep(text.position(node) if depth <= DEPTH_MAX * 3 else None)
        stack.extend((child, depth + 1) for child in node.iter_expressions())


def _too_deep(position: Position | None = None) -> Refused:
    return refuse(
        "too_large",
        "the query is refused",
        f"It is nested deeper or is larger than the limits ({NESTING_MAX} brackets, {NODES_MAX} nodes).",
        "write it flatter, or ask it in parts",
        position=position,
    )


def _parse_refusal(error: ParseError, text: Text) -> Refused:
    detail = error.errors[0] if error.errors else {}
    line, column = detail.get("line"), detail.get("col")
    highlight = str(detail.get("highlight") or "")
    position = None
    if isinstance(line, int) and isinstance(column, int):
        start = max(column - len(highlight) + 1, 1)
        position = Position(line=line, column=start, text=highlight[:120])
    description = str(detail.get("description") or "").split("\n")[0].strip().rstrip(".")
    if "<class" in description or "sqlglot" in description:
        description = ""  # words for the parser's programmers
    return refuse(
        "parse_error",
        "the text could not be read as SQL" + (f' near "{highlight[:40]}"' if highlight else ""),
        f"{description}." if description else "It is not SQL of this dialect.",
        "check the syntax at the place that is marked",
        position=position,
    )
