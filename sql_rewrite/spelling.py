"""Tokens that two readers could read differently: refused here, before the engine judges the text.

Whether a text is in the dialect, the engine decides: it binds each accepted text on empty tables
(engines/handlers/judge.py). What it cannot decide is whether it reads the text as the lift does. That leaves three
things: symbols that both read, each in its own way; parameters that the lift would read and that have no value; and
whatever stands between the tokens, because a reader that takes a space for a letter, or the end of a comment for its
middle, reads another text.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot.tokenizer_core import Token, TokenType

from privacy.refusal import Position, Refused
from sql_rewrite.kinds import Kind
from sql_rewrite.refuse import refuse
from sql_rewrite.text import IDENTIFIER, Text

__all__ = ["RESERVED_BARE", "check_gaps", "check_words", "named"]

RESERVED_BARE = frozenset(
    (
        "all analyse analyze and anti any array as asc asof asymmetric at authorization binary both by case cast "
        "centuries century check collate collation column concurrently constraint create cross day days decade "
        "decades default deferrable desc describe distinct do else end escape except exclude export_state false fetch "
        "filter for foreign freeze from full glob group having hour hours ignore ilike in initially inner intersect "
        "into is join lambda lateral leading left like limit microsecond microseconds millennia millennium "
        "millisecond milliseconds minute minutes month months natural not null offset on only or order outer over "
        "overlaps pivot pivot_longer pivot_wider placing positional precision primary qualify quarter quarters "
        "references rename replace respect returning right second seconds select semi show similar some summarize "
        "symmetric table tablesample then to trailing true union unique unpack unpivot using variadic varying verbose "
        "week weeks when where window with within without year years"
    ).split()
)
"""Keywords of the dialect that cannot name a column of the answer without AS, and for the most part no other column."""

_FOREIGN = frozenset((Kind.NOT, Kind.NULLSAFE_EQ, Kind.DIV, Kind.PARAMETER))
_MEANT = {"!": "NOT", "<=>": "IS NOT DISTINCT FROM", "div": "//", "@": "ABS()"}
"""What these symbols mostly mean elsewhere."""

_LEFT = frozenset(
    (Kind.VAR, Kind.IDENTIFIER, Kind.R_PAREN, Kind.R_BRACKET, Kind.NUMBER, Kind.STRING, Kind.END, Kind.NULL,
     Kind.TRUE, Kind.FALSE)
)  # fmt: skip
"""What may be on the left of a plus that adds."""

_OPERATORS = frozenset(
    (
        Kind.AND, Kind.OR, Kind.EQ, Kind.NEQ, Kind.LT, Kind.LTE, Kind.GT, Kind.GTE, Kind.PLUS, Kind.DASH, Kind.SLASH,
        Kind.DIV, Kind.DPIPE, Kind.LIKE, Kind.ILIKE, Kind.BETWEEN, Kind.IS, Kind.DCOLON, Kind.NOT, Kind.ESCAPE,
    )
)  # fmt: skip
_LISTS = frozenset((Kind.SELECT, Kind.GROUP_BY, Kind.ORDER_BY, Kind.PARTITION_BY))
_ENDS = frozenset((Kind.COMMA, Kind.R_PAREN, Kind.SEMICOLON))
"""What follows these where nothing is listed. The parser drops such a clause, and the engine refuses it."""

_GAPS = ("", " ")
"""What mostly is between two tokens."""

_SPACES = frozenset("\t\n\r ")
_QUOTED = frozenset((Kind.STRING, Kind.IDENTIFIER, Kind.HEREDOC_STRING, Kind.BYTE_STRING))
"""Kinds of tokens that are in quotes and may contain any letter."""


def named(name: str) -> str:
    """A name as SQL can write it: as it is where that is a plain identifier and not reserved, else in double quotes."""
    plain = IDENTIFIER.match(name) and name.lower() not in RESERVED_BARE
    return name if plain else '"' + name.replace('"', '""') + '"'


def check_words(tokens: Sequence[Token], text: Text) -> None:
    """Refuses symbols that the engine reads too, but in its own way, and parameters without a name.

    Errors: Refused (parse_error, unsupported_sql).
    """
    before: TokenType | None = None
    for token in tokens:
        kind = token.token_type
        if kind in _FOREIGN and _foreign(token, text):
            spelled = text.sql[token.start : token.end + 1]
            raise refuse(
                "unsupported_sql",
                f'the operator "{spelled}" is refused',
                "It means something else in this dialect, or nothing at all.",
                f"write {_MEANT.get(spelled.lower(), 'NOT, IS NOT DISTINCT FROM, // or ABS()')} instead",
                position=text.token_position(token),
            )
        if kind is Kind.PLACEHOLDER or (kind is Kind.COLON and before in _OPERATORS):
            raise _parameter(text.token_position(token))
        # The parser drops a plus sign, and ORDER BY +1 (a constant) would become ORDER BY 1 (a position). It reads
        # UNKNOWN as NULL behind IS and NOT; everywhere else it has been made a name.
        if kind is Kind.UNKNOWN:
            raise _unknown(text.token_position(token))
        if (kind is Kind.PLUS and before not in _LEFT) or (kind in _ENDS and before in _LISTS):
            raise _misread(text.token_position(token))
        before = kind
    if before in _LISTS and before is not Kind.SELECT:
        raise _misread(text.token_position(tokens[-1]))


def _foreign(token: Token, text: Text) -> bool:
    kind, spelled = token.token_type, text.sql[token.start : token.end + 1]
    if kind is Kind.NOT:
        # An exclamation mark is also the first half of !~~ (NOT LIKE).
        rest = text.sql[token.end + 1 : token.end + 4]
        return spelled == "!" and not (rest.startswith("~~") and rest != "~~~")
    return kind is Kind.NULLSAFE_EQ or (kind is Kind.DIV and spelled != "//") or spelled == "@"


def check_gaps(tokens: Sequence[Token], text: Text) -> None:
    """Refuses anything between tokens except plain spaces and the engine's comments, and spaces within tokens.

    Called when everything else has been accepted, so that a refusal gives the better reason where there is one.
    Errors: Refused (parse_error).
    """
    sql, gap = text.sql, 0
    odd = not sql.isascii() and not _letters(sql)
    if not odd:
        # Mostly there are spaces and ends of lines between tokens, and nothing else: said of all of them at once.
        ends = [0, *[token.end + 1 for token in tokens]]
        starts = [*[token.start for token in tokens], len(sql)]
        if not "".join([sql[end:start] for end, start in zip(ends, starts, strict=True)]).strip(" \n"):
            return
    for start, stop, kind in [*[(t.start, t.end + 1, t.token_type) for t in tokens], (len(sql), len(sql), None)]:
        between = sql[gap:start]
        # The engine looks for spaces before it knows what a comment is: a quote in one turns its quotes inside out.
        if (
            between not in _GAPS
            and between.strip(" \n")
            and (not _blank(sql, gap, start) or (odd and ("'" in between or '"' in between)))
        ):
            raise _unreadable(text, gap, start)
        if odd and kind not in _QUOTED and not _letters(sql[start:stop]):
            raise _unreadable(text, start, stop)
        gap = stop


def _letters(word: str) -> bool:
    """Whether a token without quotes consists of letters of names: readers disagree on other kinds of spaces."""
    return all(letter.isascii() or f"a{letter}".isidentifier() for letter in word)


def _parameter(position: Position) -> Refused:
    return refuse(
        "parse_error",
        f'the text could not be read as SQL near "{position.text[:40]}"',
        'Parameters are named with a dollar sign and get their value in "parameters" of the request.',
        "age > $age",
        position=position,
    )


def _unknown(position: Position) -> Refused:
    return refuse(
        "parse_error",
        f'the text could not be read as SQL near "{position.text[:40]}"',
        "It is read as a truth value that is missing, and not as a name.",
        f'write a name in double quotes: "{position.text[:40]}"',
        "write IS NULL for IS UNKNOWN",
        position=position,
    )


def _misread(position: Position) -> Refused:
    return refuse(
        "parse_error",
        "the text could not be read as SQL" + f' near "{position.text[:40]}"',
        "A value, a name or an operator is missing beside it, or it has no meaning in this dialect.",
        "check the syntax at the place that is marked",
        position=position,
    )


def _unreadable(text: Text, start: int, stop: int) -> Refused:
    return refuse(
        "parse_error",
        "the text could not be read",
        "Something between its tokens is neither space nor a comment of this dialect.",
        "comments are -- to the end of the line, or /* ... */",
        position=text.span(start, stop),
    )


def _blank(sql: str, start: int, stop: int) -> bool:
    """Whether a piece of the text holds nothing but plain spaces and comments (which may be nested)."""
    place = start
    while place < stop:
        if sql.startswith("--", place):
            place = _line_end(sql, place, stop)
        elif sql.startswith("/*", place):
            depth, place = 1, place + 2
            while depth and place < stop:
                if sql.startswith("/*", place):
                    depth, place = depth + 1, place + 2
                elif sql.startswith("*/", place):
                    depth, place = depth - 1, place + 2
                else:
                    place += 1
            if depth:
                return False
        elif sql[place] in _SPACES:
            place += 1
        else:
            return False
    return True


def _line_end(sql: str, start: int, stop: int) -> int:
    ends = [end for end in (sql.find("\n", start, stop), sql.find("\r", start, stop)) if end >= 0]
    return min(ends, default=stop)
