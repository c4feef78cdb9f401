"""The refusal of a text that the lift reads and the engine does not, at the place where the engine stopped.

The engine reports where it stopped, as a number, and nothing else of its message is passed on. What may have been meant
follows from the tokens of the text.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Sequence

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from privacy.refusal import Position, Refused
from privacy.statement import Step
from sql_rewrite.hints import FUNCTIONS, instead_of
from sql_rewrite.kinds import Kind
from sql_rewrite.refuse import refuse
from sql_rewrite.syntax import parse
from sql_rewrite.text import Text

__all__ = ["foreign_text", "place_of_value"]

_COMPARED = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)
_COMPARISONS = frozenset((Kind.EQ, Kind.NEQ, Kind.LT, Kind.LTE, Kind.GT, Kind.GTE))
_CLAUSES = frozenset(
    (Kind.FROM, Kind.WHERE, Kind.GROUP_BY, Kind.HAVING, Kind.QUALIFY, Kind.ORDER_BY, Kind.LIMIT, Kind.OFFSET)
)
_AFTER_NAMES = _CLAUSES | {Kind.R_PAREN, Kind.COMMA, Kind.BETWEEN, Kind.IN, Kind.LIKE, Kind.ILIKE}
_ENDS = _CLAUSES | {Kind.R_PAREN, Kind.SEMICOLON, Kind.UNION, Kind.EXCEPT, Kind.INTERSECT}


def foreign_text(sql: str, step: Step, place: int | None) -> Refused:
    """The refusal of a text that the lift accepts, at whose character `place`, where known, the engine stopped."""
    if step is Step.END:
        return refuse(
            "too_large",
            "the query is refused",
            "The engine could not read it within its limits of time and memory.",
            "write it flatter, or ask it in parts",
        )
    tree, text = parse(sql)
    token = _unplaced(tree, text) if place is None else _token(text.tokens, place)
    if token is None:
        return refuse(_CODES[step], "the text could not be read as SQL", _WHY[step], "check its syntax")
    word = text.tokens[token]
    span = text.token_position(word)
    called = token + 1 < len(text.tokens) and text.tokens[token + 1].token_type is Kind.L_PAREN
    if step is Step.BIND and called and (word.text[:1].isalpha() or word.text[:1] == "_"):
        return refuse(
            "unsupported_function",
            f"{word.text[:60]}() is refused",
            "The dialect has no such function, or it takes other arguments.",
            *instead_of(word.text, FUNCTIONS),
            position=text.token_position(word, text.tokens[text.closing(token)]),
        )
    return refuse(
        _CODES[step],
        f'the text could not be read as SQL near "{span.text[:40]}"',
        _WHY[step],
        *(_meant(text.tokens, token) if step is Step.READ else _with_table(text.tokens, token)),
        "check the syntax at the place that is marked",
        position=span,
    )


def place_of_value(sql: str, written: str, place: int | None) -> Position | None:
    """Where in the analyst's text that stands which the written outer query has at a place.

    A constant, a column, a call, or what a column is compared with: released columns have names there that the analyst
    did not write. None unless the text contains it exactly once.
    """
    if place is None:
        return None
    _, text = parse(sql)
    direct = _VALUE.match(written, place)
    if direct is not None:
        same = [at for at, token in enumerate(text.tokens) if _is(token, direct[0])]
        if len(same) == 1:
            return text.token_position(text.tokens[same[0]])
    called = _CALL.match(written, place)
    if called is not None:
        same = [at for at, token in enumerate(text.tokens[:-1]) if _called(text.tokens, at, called[1])]
        return text.token_position(text.tokens[same[0]], text.tokens[text.closing(same[0])]) if len(same) == 1 else None
    return _compared(text, written, place)


def _compared(text: Text, written: str, place: int) -> Position | None:
    """Where a comparison with a constant stands, of which the written query has the column at a place."""
    after = _AFTER.match(written, place)
    found = after or _BEFORE.search(written[max(0, place - _NEAR) : place])
    if found is None:
        return None
    operator, tokens = found["operator"].rstrip(" ("), text.tokens
    # How far the constant is from its operator, and the column.
    constant, column = (2 if operator == "IN" else 1, -1) if after else (-1, 1)
    same = [
        at
        for at, token in enumerate(tokens)
        if _operator(token) == operator
        and 0 < at < len(tokens) - max(constant, column)
        and _is(tokens[at + constant], found["value"])
    ]
    if len(same) != 1:
        return None
    (at,) = same
    named = tokens[at + column].token_type in (Kind.VAR, Kind.IDENTIFIER)
    ends = [at, at + constant, *((at + column,) if named else ()), *((text.closing(at),) if operator == "IN" else ())]
    return text.token_position(tokens[min(ends)], tokens[max(ends)])


def _is(token: Token, value: str) -> bool:
    """Whether a token is a constant or a name that is written so."""
    quote = value[0] if value[0] in "'\"" else ""
    kinds = (Kind.STRING,) if quote == "'" else (Kind.VAR, Kind.IDENTIFIER) if quote else (Kind.NUMBER,)
    return token.token_type in kinds and token.text == (value[1:-1].replace(quote * 2, quote) if quote else value)


def _called(tokens: Sequence[Token], at: int, name: str) -> bool:
    """Whether a call of a function begins at a token."""
    return tokens[at].text.lower() == name.lower() and tokens[at + 1].token_type is Kind.L_PAREN


def _operator(token: Token) -> str:
    """An operator as outer queries are written."""
    return {"!=": "<>", "==": "="}.get(token.text, token.text.upper())


_CONSTANT = r"""'(?:[^']|'')*'|\d+(?:\.\d+)?"""
_NAME = r'''"(?:[^"]|"")*"'''
_OPERATOR = r"(?P<operator>=|<>|<=|>=|<|>|\+|-|\*|/|IN \()"
_NEAR = 300
"""Characters before a column in which a constant is looked for: a longer one is not found."""

_VALUE = re.compile(f"{_CONSTANT}|{_NAME}")
_CALL = re.compile(r"([A-Za-z_]\w*)\(", re.ASCII)
_AFTER = re.compile(rf"(?:{_NAME}\.)?{_NAME} {_OPERATOR} ?(?P<value>{_CONSTANT})")
_BEFORE = re.compile(rf"(?P<value>{_CONSTANT}) {_OPERATOR} \Z")
_CODES = {Step.READ: "parse_error", Step.BIND: "unsupported_sql"}
_WHY = {
    Step.READ: "A value, a name or an operator is missing beside it, or it has no meaning in this dialect.",
    Step.BIND: "DuckDB, whose dialect this is, does not accept the names and types that meet there.",
}


def _unplaced(tree: exp.Expr, text: Text) -> int | None:
    """The token that the engine means where it reports no place, as it does for very few constructs."""
    for node in tree.walk():
        if isinstance(node, _COMPARED) and isinstance(node.this, _COMPARED):
            starts = [part.meta["start"] for part in node.expression.walk() if "start" in part.meta]
            if starts:
                return max(0, (_token(text.tokens, min(starts)) or 0) - 1)
    for place, token in enumerate(text.tokens[1:], start=1):
        before = text.tokens[place - 1].token_type
        if token.token_type is Kind.STRING and before in (Kind.R_PAREN, Kind.VAR, Kind.NUMBER):
            return place
        if token.token_type is Kind.ALL and before is Kind.L_PAREN:
            return place
    return None


def _token(tokens: Sequence[Token], place: int) -> int | None:
    """The token at a place of the text, or the next one after it; the last one where there is none."""
    if not tokens:
        return None
    found = bisect.bisect_left([token.end for token in tokens], place)
    return min(found, len(tokens) - 1)


def _meant(tokens: Sequence[Token], place: int) -> tuple[str, ...]:
    """What may have been meant where the engine stopped reading."""
    kind, word = tokens[place].token_type, tokens[place].text
    if kind is Kind.COMMA and _clause(tokens, place) is Kind.LIMIT:
        return ("LIMIT 10 OFFSET 20",)
    if kind in _COMPARISONS:
        return ("a < b AND b < c",)
    missing = _missing_on(tokens, place)
    if missing:
        return missing
    named = place > 0 and kind in _AFTER_NAMES and tokens[place - 1].token_type is Kind.VAR
    quoted = (f'a keyword of the dialect is a name only in double quotes: "{tokens[place - 1].text[:63]}"',)
    if kind in _CLAUSES:
        order = "the order is SELECT, FROM, WHERE, GROUP BY, HAVING, QUALIFY, ORDER BY, LIMIT"
        return (order, *quoted) if named else (order,)
    if named:
        return quoted
    if kind is Kind.STRING:
        return ('strings stand in single quotes, names in double ones: AS "name"',)
    if word[:1].isalpha():
        return (f'a keyword of the dialect is a name only in double quotes: "{word[:63]}"',)
    return ()


def _with_table(tokens: Sequence[Token], place: int) -> tuple[str, ...]:
    """What helps a name without a table at which the engine stopped: several relations around it may have it."""
    around = [tokens[near].token_type for near in (place - 1, place + 1) if 0 <= near < len(tokens)]
    if tokens[place].token_type is not Kind.VAR or Kind.DOT in around:
        return ()
    return (f"where several tables have {tokens[place].text[:63]}, write it with its table",)


def _clause(tokens: Sequence[Token], place: int) -> TokenType | None:
    """The kind of the clause that contains a token."""
    depth = 0
    for token in reversed(tokens[:place]):
        depth += (token.token_type is Kind.R_PAREN) - (token.token_type is Kind.L_PAREN)
        if depth < 0:
            return None
        if depth == 0 and token.token_type in _CLAUSES:
            return token.token_type
    return None


def _missing_on(tokens: Sequence[Token], place: int) -> tuple[str, ...]:
    """What to write when a join before the place says neither ON nor USING."""
    if place < len(tokens) and tokens[place].token_type not in _ENDS:
        return ()
    for token in reversed(tokens[:place]):
        if token.token_type in (Kind.ON, Kind.USING, Kind.CROSS, Kind.NATURAL, *_CLAUSES - {Kind.FROM}):
            return ()
        if token.token_type is Kind.JOIN:
            return ("a JOIN b ON a.key = b.key",)
    return ()
