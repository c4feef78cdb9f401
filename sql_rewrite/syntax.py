"""Text to syntax tree, within limits, and the small tools with which the lift reads that tree.

The tree is sqlglot's. It is read here, in `lift`, `lift_expression` and `shell`, and nowhere else.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Sequence
from typing import Final

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, SqlglotError, TokenError
from sqlglot.tokenizer_core import Token

from privacy.refusal import Position, Refused
from sql_rewrite import metered
from sql_rewrite.kinds import VALUES, Kind
from sql_rewrite.not_queries import check_statement
from sql_rewrite.refuse import refuse
from sql_rewrite.text import Text
from sql_rewrite.unparsed import too_complex, unparsed_text

__all__ = [
    "DEPTH_MAX",
    "DIALECT",
    "DUCKDB",
    "IN_LIST_MAX",
    "NODES_MAX",
    "TEXT_BYTES_MAX",
    "UNFORESEEN",
    "clauses",
    "consume",
    "copied",
    "kinds_of",
    "parse",
    "placed_like",
    "populated",
    "rebuilt",
    "rendered",
    "select_place",
    "unbracketed",
    "whole_number",
]

DIALECT = "duckdb"
TEXT_BYTES_MAX = 64 * 1024
TOKENS_MAX = 5_000
NODES_MAX = 4_000
DEPTH_MAX = 64
NESTING_MAX = 32
IN_LIST_MAX = 1_000
RUN_MAX = 100
"""Most tokens in a row that are neither a name nor a number nor a string: the parser's stack is that of a thread."""

CALL_CHAIN_MAX = 64
"""Most calls in a text that follow a bracket and a dot."""

SUBSCRIPTS_MAX = 64
"""Most square brackets in a text: the parser's work grows with the square of their number."""

CHAIN_MAX = 32
"""A chain of AND or OR with at least this many terms is read as a balanced tree."""

UNFORESEEN: Final = (SqlglotError, ValueError, TypeError, AttributeError, IndexError, KeyError, AssertionError)
"""What the parser and the generator raise on arguments that they do not foresee."""

_UNWRITABLE = re.compile("[\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f\\ud800-\\udfff]")
"""Control characters other than tab and the two line ends, and halves of surrogate pairs."""

# The parser logs texts that it does not know, including literals.
logging.getLogger("sqlglot").disabled = True

DUCKDB = sqlglot.Dialect.get_or_raise(DIALECT)


def rendered(node: exp.Expr) -> str:
    """A node as text for people, when its place in the analyst's text is not known.

    Some of the generator's functions fail on arguments that they do not foresee; the node's name has to do then.
    """
    try:
        return node.sql(dialect=DIALECT, comments=False)
    except UNFORESEEN:
        return type(node).__name__.lower()


def populated(node: exp.Expr) -> set[str]:
    """Names of the slots of a node that hold something."""
    return {name for name, value in node.args.items() if value is not None and value is not False and value != []}


def whole_number(node: object) -> int | None:
    """The value of a literal that is written as a whole number of at most 18 digits; None for anything else."""
    if not isinstance(node, exp.Literal) or node.is_string or len(node.name) > 18 or not node.name.isdecimal():
        return None
    return int(node.name)


def select_place(node: exp.Expr) -> int | None:
    """The place in the select list, from 0, that a number in GROUP BY or ORDER BY names; None for any other node.

    It may lie outside the select list; -1 stands for a number that cannot be a place.
    """
    if not isinstance(node, exp.Literal) or node.is_string:
        return None
    return (whole_number(node) or 0) - 1


def clauses(node: exp.Expr, *slots: str) -> list[exp.Expr]:
    """What a node has in some of its slots."""
    return [node.args[slot] for slot in slots if node.args.get(slot) is not None]


def rebuilt(node: exp.Expr, change: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
    """A node of the same class whose parts are changed. Its place in the text is not kept."""
    kind = type(node)
    if kind in _LEAVES:
        return kind(**node.args)
    parts: dict[str, object] = {}
    for name, value in node.args.items():
        if isinstance(value, exp.Expr):
            parts[name] = change(value)
        elif type(value) is list:
            parts[name] = [change(part) if isinstance(part, exp.Expr) else part for part in value]
        elif value is not None:
            parts[name] = value
    return kind(**parts)


_LEAVES = frozenset({exp.Identifier, exp.Literal, exp.Null, exp.Boolean})
"""Nodes without parts."""


def copied(node: exp.Expr) -> exp.Expr:
    """A copy of a node with its places in the text: what `node.copy()` makes, without comments and guessed types.

    That one looks for values which stand in the tree twice; there are none.
    """
    copy = rebuilt(node, copied)
    if node.meta:
        copy.meta.update(node.meta)
    return copy


def kinds_of(*kinds: type[exp.Expr]) -> frozenset[type[exp.Expr]]:
    """Classes of nodes with their subclasses: to look one up is faster than to ask for an instance of many."""
    return frozenset(kinds).union(*(kinds_of(*kind.__subclasses__()) for kind in kinds if kind.__subclasses__()))


def unbracketed(item: exp.Expr) -> list[exp.Expr]:
    """The keys that a part of GROUP BY stands for: brackets around one key or a list of keys mean nothing."""
    if isinstance(item, exp.Paren):
        return unbracketed(item.this)
    if isinstance(item, exp.Tuple):
        return [key for part in item.expressions for key in unbracketed(part)]
    return [item]


def consume(node: exp.Expr | None, *names: str, text: Text, what: str) -> None:
    """Refuses when a slot of the node is populated that the caller does not name, and when there is no node.

    This is what stops a clause from being dropped silently: the lift asserts that it has read
    everything that the parser found.
    """
    if node is None:
        raise refuse("unsupported_sql", f"{what} is refused", "What belongs into its brackets is missing.")
    for name, value in node.args.items():
        if value is not None and value is not False and name not in names and value != []:
            break
    else:
        return
    extra = populated(node) - set(names)
    if extra:
        listed = ", ".join(sorted(name.strip("_") for name in extra))
        written = text.spelled(node)
        raise refuse(
            "unsupported_sql",
            f"{what} with {listed} is refused" if written is None else f"{written} is refused with such arguments",
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
    if _UNWRITABLE.search(sql) is not None:
        raise refuse("parse_error", "the text is refused", "It contains control characters.", "remove them")
    try:
        tokens = DUCKDB.tokenize(sql)
    except (TokenError, SqlglotError, ValueError, RecursionError):
        raise refuse(
            "parse_error",
            "the text could not be split into tokens",
            "A quote, a comment or a name is not closed, or a character is not known.",
            "check quotes and comments",
        ) from None
    _name_unknown(tokens)
    text.tokens = tokens
    check_statement(sql, tokens, text)
    _check_tokens(tokens, text)
    try:
        trees, _ = metered.read(tokens, sql)
    except ParseError as error:
        raise unparsed_text(error, text) from None
    except metered.TooManySteps as error:
        raise too_complex(error, text) from None
    except RecursionError:
        raise _too_deep() from None
    except UNFORESEEN:
        raise refuse(
            "parse_error", "the text could not be read", "It is not SQL of this dialect.", "check the syntax"
        ) from None
    if len(trees) != 1:
        raise refuse("parse_error", "the text could not be read", "It is not one statement.", "write a SELECT query")
    tree = trees[0]
    try:
        _check_size(tree, text)
    except RecursionError:
        raise _too_deep() from None
    return tree, text


def placed_like(node: exp.Expr, old: exp.Expr) -> exp.Expr:
    """The node, with the place in the text of the one that it stands for, for refusals."""
    for part in node.walk():
        if not part.meta:
            part.meta.update(old.meta)
    return node


def _name_unknown(tokens: Sequence[Token]) -> None:
    """Makes UNKNOWN the name that it is, except behind IS and NOT, where it may be a truth value."""
    before = None
    for token in tokens:
        if token.token_type is Kind.UNKNOWN and before not in (Kind.IS, Kind.NOT):
            token.token_type = Kind.VAR
        before = token.token_type


def _check_tokens(tokens: Sequence[Token], text: Text) -> None:
    if len(tokens) > TOKENS_MAX:
        raise refuse("too_large", "the text is refused", f"It has more than {TOKENS_MAX} tokens.", "ask less at once")
    kinds = [token.token_type for token in tokens]
    if kinds.count(Kind.L_BRACKET) > SUBSCRIPTS_MAX:
        raise refuse(
            "too_large", "the text is refused", f"It has more than {SUBSCRIPTS_MAX} square brackets.", "use IN (...)"
        )
    nested = sum([kinds.count(kind) for kind in _OPENING])
    if nested <= NESTING_MAX and len(kinds) <= RUN_MAX and kinds.count(Kind.DOT) <= CALL_CHAIN_MAX:
        return  # none of what follows can be beyond its limit
    depth = run = calls = 0
    before = None
    for token, kind in zip(tokens, kinds, strict=True):
        # a.f().f() ...: the parser's work grows with the square of such a chain.
        calls += before is Kind.R_PAREN and kind is Kind.DOT
        before = kind
        if calls > CALL_CHAIN_MAX:
            raise _too_deep(text.token_position(token))
        # Tokens without a value between them (NOT NOT ..., INTERVAL INTERVAL ...) nest without brackets.
        run = 0 if kind in VALUES else run + 1
        if run > RUN_MAX:
            raise _too_deep(text.token_position(token))
        if kind in _OPENING:
            depth += 1
            if depth > NESTING_MAX:
                raise _too_deep(text.token_position(token))
        elif kind in _CLOSING:
            depth -= 1


_OPENING = (Kind.L_PAREN, Kind.CASE, Kind.L_BRACKET, Kind.L_BRACE)
_CLOSING = (Kind.R_PAREN, Kind.END, Kind.R_BRACKET, Kind.R_BRACE)
_CONNECTORS = frozenset({exp.And, exp.Or})


def _check_size(tree: exp.Expr, text: Text) -> None:
    """Refuses trees that are too deep or too large; counts them level by level."""
    level, depth, count = [tree], 1, 0
    while level:
        if depth > DEPTH_MAX * 3:
            raise _too_deep()
        if count + len(level) > NODES_MAX:
            raise _too_deep(text.position(level[NODES_MAX - count]))
        count += len(level)
        depth += 1
        for node in level:
            if type(node) in _CONNECTORS and type(node.parent) is not type(node):
                assert isinstance(node, (exp.And, exp.Or))
                _balance(node)
        level = [child for node in level for child in node.iter_expressions()]


def _balance(node: exp.And | exp.Or) -> None:
    """Makes a flat tree of a long chain `a AND b AND c ...`, which the parser nests once per term.

    Both connectors are associative, NULL included, so the chain means the same with any brackets.
    """
    kind = type(node)
    terms: list[exp.Expr] = []
    left: exp.Expr = node
    while type(left) is kind:
        terms.append(left.expression)
        left = left.this
    if len(terms) < CHAIN_MAX:
        return
    terms.append(left)
    terms.reverse()
    while len(terms) > 2:
        pairs = zip(terms[::2], terms[1::2], strict=False)
        terms = [kind(this=a, expression=b) for a, b in pairs] + terms[len(terms) - len(terms) % 2 :]
    node.set("this", terms[0])
    node.set("expression", terms[1])


def _too_deep(position: Position | None = None) -> Refused:
    return refuse(
        "too_large",
        "the query is refused",
        f"It is nested deeper or is larger than the limits ({NESTING_MAX} brackets, {NODES_MAX} nodes).",
        "write it flatter, or ask it in parts",
        position=position,
    )
