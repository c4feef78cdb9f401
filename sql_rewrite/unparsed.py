"""The refusal of a text that the parser does not read: at the place where it stopped, with what may have been meant."""

from __future__ import annotations

import re

from sqlglot import exp
from sqlglot.errors import ParseError

from privacy.refusal import Position, Refused
from privacy.wording import nearest
from sql_rewrite.kinds import Kind
from sql_rewrite.metered import STEPS_MAX, TooManySteps
from sql_rewrite.not_queries import NO_BEGINNING, begins_query
from sql_rewrite.refuse import refuse
from sql_rewrite.text import Text

__all__ = ["too_complex", "unparsed_text"]


def unparsed_text(error: ParseError, text: Text) -> Refused:
    """The refusal of a text at which the parser gave up."""
    detail = error.errors[0] if error.errors else {}
    line, column = detail.get("line"), detail.get("col")
    highlight = str(detail.get("highlight") or "")
    position = None
    if isinstance(line, int) and isinstance(column, int):
        start = max(column - len(highlight) + 1, 1)
        position = Position(line=line, column=start, text=highlight[:120])
    description = str(detail.get("description") or "").split("\n")[0].strip().rstrip(".")
    place = next((i for i, t in enumerate(text.tokens) if (t.line, t.col) == (line, column)), None)
    if place is not None and _about_arguments(description):
        called = text.called(place)
        if called is not None:
            return _call_refusal(called, text)
    if "<class" in description or "sqlglot" in description or "TokenType" in description:
        description = ""  # written for the parser's developers
    if place == len(text.tokens) - 1 and highlight != ")":
        description = description or "The text ends where more was expected"
    if place is not None and [token.text.lower() for token in text.tokens[place : place + 2]] == _OTHERS_CLAUSE:
        return refuse(
            "parse_error",
            "WITH DIFFERENTIAL_PRIVACY is refused",
            "Other systems ask for noise with it; here every answer has noise.",
            "leave the clause out: the request says what the answer may cost, or how accurate it has to be",
            position=text.token_position(text.tokens[place], text.tokens[place + 1]),
        )
    hints = () if place is None else _hints(place, text)
    if not begins_query(text.tokens):
        description = NO_BEGINNING
    return refuse(
        "parse_error",
        "the text could not be read as SQL" + (f' near "{highlight[:40]}"' if highlight else ""),
        f"{description.rstrip('.')}." if description else "It is not SQL of this dialect.",
        *(hints or ("check the syntax at the place that is marked",)),
        position=position,
    )


_OTHERS_CLAUSE = ["with", "differential_privacy"]
_MISSING = re.compile(r"Required keyword: .* missing for <class '[\w.]*\.(\w+)'>")
_CLAUSES = ("select", "from", "where", "group", "having", "order", "limit", "join", "distinct", "union", "qualify")


def _about_arguments(description: str) -> bool:
    """Whether the parser misses arguments of a function, or has too many: operands of operators are not arguments."""
    missing = _MISSING.match(description)
    made = getattr(exp, missing[1], None) if missing else None
    function = isinstance(made, type) and issubclass(made, exp.Func | exp.Mod) and not issubclass(made, exp.Connector)
    return function or description.startswith("The number of provided arguments")


def _call_refusal(word: int, text: Text) -> Refused:
    """The refusal of a call whose number of arguments the parser does not accept."""
    name = text.tokens[word]
    return refuse(
        "parse_error",
        f"{name.text[:60]}() is refused",
        "It is not a function of this language, or it does not take this number of arguments.",
        "see the list of functions under /v1/capabilities",
        position=text.token_position(name, text.tokens[text.closing(word)]),
    )


_FOREIGN = {
    "=>": "x >= 1",
    "=<": "x <= 1",
    "`": 'a name stands in double quotes, or in none: "age"',
    "&&": "a AND b",
}


def _hints(place: int, text: Text) -> tuple[str, ...]:
    """What may have been meant where the parser stopped: a misspelt keyword before it, a comma, or another dialect."""
    stopped = text.tokens[place].text
    if stopped in _FOREIGN:
        return (_FOREIGN[stopped],)
    if place and text.tokens[place - 1].text.lower() == "top":
        return (f"LIMIT {stopped[:10]} at the end of the query",)
    for token in reversed(text.tokens[max(0, place - 2) : place + 1]):
        if token.token_type is Kind.VAR and len(token.text) > 2:
            near = nearest(token.text, _CLAUSES)
            if near is not None and near != token.text.lower():
                return (f'did you mean "{near.upper()}" instead of "{token.text[:40]}"?',)
    kinds = [token.token_type for token in text.tokens[max(0, place - 2) : place + 1]]
    if kinds == [Kind.VAR, Kind.VAR, Kind.L_PAREN]:
        return (f'is a comma missing before "{text.tokens[place - 1].text[:40]}"?',)
    return ()


def too_complex(error: TooManySteps, text: Text) -> Refused:
    """The refusal of a text that takes too many steps to read."""
    place = None if error.start is None or error.end is None else text.span(error.start, error.end + 1)
    return refuse(
        "too_large",
        "the query is refused",
        f"It can be read in so many ways that {STEPS_MAX} steps were not enough.",
        "give every join its ON or USING, and do not nest the names of types, such as DATE(DATE(x))",
        position=place,
    )
