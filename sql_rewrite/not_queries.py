"""Statements that are not queries: refused by their first keyword, each with what to do instead.

The tokens decide, before the text is parsed: a statement that the parser cannot read is refused with the same helpful
reason as one that it can.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlglot.tokenizer_core import Token

from privacy.wording import nearest
from sql_rewrite.kinds import Kind
from sql_rewrite.refuse import refuse
from sql_rewrite.text import Text

__all__ = ["NO_BEGINNING", "begins_query", "check_statement"]

NO_BEGINNING = "A query begins with SELECT, or with WITH."


@dataclass(frozen=True, slots=True)
class _Kind:
    """Statements of one kind: the keywords they begin with, why they are refused, and what to do instead."""

    words: tuple[str, ...]
    why: str
    instead: tuple[str, ...]


_DESCRIBED = "GET /v1/datasets lists the datasets, GET /v1/datasets/{name} the tables, columns, types and bounds of one"

_KINDS = (
    _Kind(
        ("explain",),
        "Only the query itself is answered; an estimate shows what it means and costs without running it.",
        ('send the SELECT alone to POST /v1/estimates (or "noisegate estimate"): its price and errors, for free',),
    ),
    _Kind(
        ("describe", "desc", "show"),
        "Only SELECT queries are answered; tables and columns are described elsewhere.",
        (_DESCRIBED, "POST /v1/estimates shows the columns of an answer, for free"),
    ),
    _Kind(
        ("summarize",),
        "It would show values of people: least, greatest and exact counts of every column.",
        ("ask for COUNT(*), AVG(x) and STDDEV(x) of its columns", _DESCRIBED),
    ),
    _Kind(
        ("pragma", "set", "reset", "call", "install", "load", "checkpoint", "vacuum", "analyze", "analyse", "kill"),
        "Only SELECT queries are answered; the engine and its settings belong to the server.",
        ('the request has the options of a query: "spend", "accuracy", "parameters", "reuse"', _DESCRIBED),
    ),
    _Kind(
        ("use", "attach", "detach"),
        'Only SELECT queries are answered; the dataset is chosen by "dataset" of the request.',
        (_DESCRIBED,),
    ),
    _Kind(
        ("insert", "update", "delete", "merge", "replace", "truncate", "upsert"),
        "Only SELECT queries are answered; no query can change data.",
        ("an administrator attaches new data as a new version of the dataset",),
    ),
    _Kind(
        ("create", "drop", "alter", "comment", "grant", "revoke"),
        "Only SELECT queries are answered; no query can make, change or drop anything.",
        ("name an intermediate result with WITH name AS (SELECT ...)", "datasets are attached by an administrator"),
    ),
    _Kind(
        ("copy", "export", "import"),
        "Only SELECT queries are answered; no query reads or writes files.",
        ("send the SELECT alone, and choose CSV, Parquet or Arrow for its answer with the header Accept",),
    ),
    _Kind(
        ("begin", "start", "commit", "rollback", "abort", "savepoint", "release", "end"),
        "Only SELECT queries are answered; each of them stands alone, so there is nothing to begin or to undo.",
        ("send the SELECT alone",),
    ),
    _Kind(
        ("prepare", "execute", "deallocate"),
        "Only SELECT queries are answered, each in its own request.",
        ('write $name in the query and give its value in "parameters" of the request',),
    ),
    _Kind(
        ("pivot_wider", "pivot_longer"),
        "The columns of its answer would depend on rows.",
        ("write each column of the answer as COUNT(*) FILTER (WHERE key = 'value') AS value",),
    ),
    _Kind(
        ("values",),
        "Only SELECT queries are answered.",
        ("SELECT 1 AS a, 2 AS b",),
    ),
)
_BY_WORD = {word: kind for kind in _KINDS for word in kind.words}

_BEGINNINGS = frozenset(("select", "with", "from", "table", "pivot", "unpivot"))
_QUOTED = (Kind.STRING, Kind.IDENTIFIER)
_KEYWORDS = ("select", "with", "from")


def check_statement(sql: str, tokens: Sequence[Token], text: Text) -> None:
    """Refuses a text without a query, with more than one statement, or with a statement of another kind.

    Errors: Refused (parse_error, many_statements, not_a_query). Depends on the text only.
    """
    statements = list(_statements(tokens))
    if not statements:
        nothing = not sql.replace(";", "").strip()
        raise refuse(
            "parse_error",
            "the text is empty" if nothing else "the text contains only comments",
            "There is no statement in it.",
            "write a SELECT query: COUNT(*), SUM, AVG of a table, with WHERE and GROUP BY",
            _DESCRIBED,
        )
    if len(statements) > 1:
        raise refuse(
            "many_statements",
            "the text is refused",
            f"It contains {len(statements)} statements; a request takes one.",
            "send the statements one by one",
            "put intermediate results into WITH name AS (SELECT ...)",
            position=text.token_position(statements[1]),
        )
    first = statements[0]
    word = first.text.lower()
    if first.token_type in _QUOTED or begins_query(tokens):
        return
    place = text.token_position(first)
    kind = _BY_WORD.get(word)
    if kind is not None:
        raise refuse("not_a_query", f"{place.text[:40].upper()} is refused", kind.why, *kind.instead, position=place)
    near = nearest(word, _KEYWORDS)
    if near is not None:
        raise refuse(
            "parse_error",
            f'the text could not be read as SQL near "{place.text[:40]}"',
            NO_BEGINNING,
            f'did you mean "{near.upper()}"?',
            position=place,
        )


def begins_query(tokens: Sequence[Token]) -> bool:
    """Whether the first token is one with which a query may begin."""
    first = next(_statements(tokens), None)
    return first is not None and (first.token_type is Kind.L_PAREN or first.text.lower() in _BEGINNINGS)


def _statements(tokens: Sequence[Token]) -> Iterator[Token]:
    """The first token of each statement."""
    fresh = True
    for token in tokens:
        if token.token_type is Kind.SEMICOLON:
            fresh = True
        elif fresh:
            fresh = False
            yield token
