"""Text to syntax tree, within limits, and the small tools with which the lift reads that tree.

The tree is sqlglot's. It is read here, in `lift`, `lift_expression` and `shell`, and nowhere else.
"""

from __future__ import annotations

import bisect
import logging
import re
from collections.abc import Collection
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, SqlglotError, TokenError

from privacy.refusal import Finding, Position, Refused
from privacy.wording import nearest
from sql_rewrite import metered
from sql_rewrite.kinds import Kind
from sql_rewrite.statements import NO_BEGINNING, begins_query, check_statement

__all__ = [
    "DEPTH_MAX",
    "DIALECT",
    "IN_LIST_MAX",
    "NODES_MAX",
    "TEXT_BYTES_MAX",
    "Text",
    "consume",
    "did_you_mean",
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

CHAIN_MAX = 32
"""Terms from which on a chain of AND or OR is read as a balanced tree."""

IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}\Z", re.ASCII)

_VALUES = frozenset((Kind.VAR, Kind.IDENTIFIER, Kind.NUMBER, Kind.STRING))

# The parser writes texts that it does not know to this log, literals included.
logging.getLogger("sqlglot").disabled = True

_DIALECT = sqlglot.Dialect.get_or_raise(DIALECT)

# The words of calls to which the parser gives no place, by the class of the node that it makes of them.
_UNPLACED: dict[str, frozenset[str]] = {
    name: frozenset(words.split())
    for name, words in {
        "AnyValue": "any_value",
        "ApproxQuantile": "approx_quantile",
        "ArgMax": "arg_max argmax max_by max",
        "ArgMin": "arg_min argmin min_by min",
        "Case": "case",
        "Cast": "cast convert",
        "Ceil": "ceil",
        "Chr": "char chr",
        "CurrentCatalog": "current_catalog",
        "CurrentDate": "current_date current_datetime",
        "CurrentRole": "current_role",
        "CurrentTime": "current_time",
        "CurrentTimestamp": "current_timestamp",
        "CurrentUser": "current_user",
        "Extract": "extract",
        "Floor": "floor",
        "GapFill": "gap_fill",
        "GroupConcat": "group_concat listagg string_agg stringagg",
        "If": "if",
        "Initcap": "initcap",
        "JSONObject": "json_object",
        "JSONObjectAgg": "json_objectagg",
        "JSONTable": "json_table",
        "Localtime": "localtime",
        "Localtimestamp": "localtimestamp",
        "Map": "map",
        "Max": "max",
        "Min": "min",
        "Normalize": "normalize",
        "OpenJSON": "openjson",
        "Overlay": "overlay",
        "PercentileCont": "quantile_cont",
        "PercentileDisc": "quantile_disc",
        "Quantile": "quantile",
        "SessionUser": "session_user",
        "StrPosition": "position",
        "Substring": "substring",
        "Trim": "trim",
        "TryCast": "try_cast safe_cast try_convert",
        "WeightString": "weight_string",
        "XMLElement": "xmlelement",
        "XMLTable": "xmltable",
    }.items()
}


class Text:
    """The analyst's text with its offsets: turns nodes into positions."""

    __slots__ = ("_lines", "_places", "sql", "tokens")

    def __init__(self, sql: str) -> None:
        self.sql = sql
        self.tokens: list[Any] = []
        self._lines: list[int] | None = None
        self._places: list[int] | None = None

    def position(self, node: exp.Expr | None) -> Position | None:
        """Where a node stands in the text, a call with its name and its bracket; None when the tree does not know."""
        if node is None:
            return None
        start, end = None, None
        for part in node.walk():
            meta = part.meta
            if "start" in meta:
                start = meta["start"] if start is None else min(start, meta["start"])
                end = meta["end"] if end is None else max(end, meta["end"])
        if "start" not in node.meta:
            for part in node.walk():
                word = self._word(part) if type(part).__name__ in _UNPLACED else None
                if word is not None:
                    first, last = self.tokens[word], self.tokens[self.closing(word)]
                    start = first.start if start is None else min(start, first.start)
                    end = last.end if end is None else max(end, last.end)
        if start is None or end is None:
            return None
        return self.span(start, self._closed(start, end + 1))

    def spelled(self, node: exp.Expr) -> str | None:
        """A function's name as the analyst wrote it, with () when it is a call; None for what is not written so."""
        if isinstance(node, exp.Identifier | exp.Literal | exp.Column):
            return None
        word = self._word(node)
        if word is None:
            return None
        name = str(self.tokens[word].text)[:60]
        opened = word + 1 < len(self.tokens) and self.tokens[word + 1].token_type is Kind.L_PAREN
        if not opened and not isinstance(node, exp.Func):
            return None
        return f"{name}()" if opened and name.lower() != "case" else name

    def parameter(self, name: str) -> Position | None:
        """Where a parameter stands first; None when it cannot be found."""
        for place, token in enumerate(self.tokens[:-1]):
            if token.token_type is Kind.PARAMETER and self.tokens[place + 1].text == name:
                return self.span(token.start, self.tokens[place + 1].end + 1)
        return None

    def operator(self, node: exp.Expr) -> str | None:
        """An operator between two operands as the analyst wrote it, in quotes; None for what is no such operator."""
        if not isinstance(node, exp.Binary) or not isinstance(node.expression, exp.Expr):
            return None
        starts = [part.meta["start"] for part in node.expression.walk() if "start" in part.meta]
        if not starts:
            return None
        place = bisect.bisect_left(self._starts(), min(starts)) - 1
        while place > 0 and self.tokens[place].token_type is Kind.L_PAREN:
            place -= 1
        if place <= 0 or self.tokens[place].token_type in _VALUES:
            return None
        return f'the operator "{" ".join(self.tokens[place].text.split())[:40]}"'

    def _word(self, node: exp.Expr) -> int | None:
        """The place of the word that a function's node was made of."""
        own = node.meta.get("start")
        if own is None and isinstance(node.parent, exp.IgnoreNulls | exp.RespectNulls):
            own = node.parent.meta.get("start")
        if own is not None:
            place = bisect.bisect_left(self._starts(), own)
            return place if place < len(self.tokens) else None
        if not isinstance(node, exp.Func):
            return None
        start = min((part.meta["start"] for part in node.walk() if "start" in part.meta), default=None)
        return self._call(node, start)

    def _starts(self) -> list[int]:
        if self._places is None:
            self._places = [token.start for token in self.tokens]
        return self._places

    def _call(self, node: exp.Expr, start: int | None) -> int | None:
        """The place of the word of a call whose node the parser has given none. `start` is where its arguments begin.

        The words that may make a node of its class are known; the nearest one before the arguments whose bracket is
        open there is the node's own. Nodes of the same class inside, with the same first argument, come first.
        """
        words = _UNPLACED.get(type(node).__name__, frozenset())
        if not words:
            return None
        if start is None:
            places = (i for i, token in enumerate(self.tokens) if token.text.lower() in words)
            return next(places, None)
        inner = sum(1 for part in node.walk() if type(part) is type(node) and part is not node and _begins(part, start))
        depth = 0
        for place in range(bisect.bisect_left(self._starts(), start) - 1, -1, -1):
            kind = self.tokens[place].token_type
            # CASE and END are brackets too.
            if kind in (Kind.R_PAREN, Kind.END):
                depth += 1
            elif kind in (Kind.L_PAREN, Kind.CASE):
                depth -= 1
                word = place if kind is Kind.CASE else place - 1
                if depth < 0 and word >= 0:
                    depth = 0
                    if self.tokens[word].text.lower() in words:
                        if not inner:
                            return word
                        inner -= 1
        return None

    def called(self, place: int) -> int | None:
        """The place of the word before the bracket that is closed at a place."""
        depth = 0
        for before in range(place, 0, -1):
            kind = self.tokens[before].token_type
            depth += (kind is Kind.R_PAREN) - (kind is Kind.L_PAREN)
            if depth <= 0:
                name = self.tokens[before - 1].text
                return before - 1 if kind is Kind.L_PAREN and IDENTIFIER.match(name) else None
        return None

    def closing(self, place: int) -> int:
        """The place of the word that closes a call or a CASE which begins at a place."""
        depth = 0
        for last in range(place, len(self.tokens)):
            kind = self.tokens[last].token_type
            depth += (kind in (Kind.L_PAREN, Kind.CASE)) - (kind in (Kind.R_PAREN, Kind.END))
            if depth <= 0 and last > place:
                return last if kind in (Kind.R_PAREN, Kind.END) else place
        return place

    def span(self, start: int, stop: int) -> Position:
        """The position of the characters from `start` up to `stop`."""
        if self._lines is None:
            self._lines = [0] + [match.end() for match in re.finditer("\n", self.sql)]
        line = bisect.bisect_right(self._lines, start) - 1
        fragment = self.sql[start:stop]
        return Position(line=line + 1, column=start - self._lines[line] + 1, text=fragment[:120])

    def _closed(self, start: int, stop: int) -> int:
        """Extends a fragment over the closing brackets that its opening ones ask for."""
        place = bisect.bisect_left(self._starts(), stop)
        depth = 0
        for token in self.tokens[bisect.bisect_left(self._starts(), start) : place]:
            depth += (token.token_type is Kind.L_PAREN) - (token.token_type is Kind.R_PAREN)
        if depth == 0 and place < len(self.tokens) and self.tokens[place].token_type is Kind.L_PAREN:
            depth, stop, place = 1, self.tokens[place].end + 1, place + 1
        while depth > 0 and place < len(self.tokens):
            kind = self.tokens[place].token_type
            depth += (kind is Kind.L_PAREN) - (kind is Kind.R_PAREN)
            stop = self.tokens[place].end + 1
            place += 1
        return stop


def _begins(node: exp.Expr, start: int) -> bool:
    """Whether a node without a place of its own has its first argument there."""
    places = [part.meta["start"] for part in node.walk() if "start" in part.meta]
    return "start" not in node.meta and bool(places) and min(places) == start


def refuse(
    code: str,
    what: str,
    why: str,
    *instead: str,
    position: Position | None = None,
) -> Refused:
    """A refusal with one finding."""
    return Refused([Finding(code=code, what=what, why=why, instead=instead, position=position)])


def did_you_mean(name: str, known: Collection[str]) -> tuple[str, ...]:
    """A suggestion line for a misspelt public name, or nothing."""
    near = nearest(name, known)
    return () if near is None else (f'did you mean "{near}"?',)


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


_UNWRITABLE = re.compile("[\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f\\ud800-\\udfff]")
"""Control characters other than tab and the two line ends, and halves of surrogate pairs."""


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
        tokens = _DIALECT.tokenize(sql)
    except (TokenError, SqlglotError, ValueError, RecursionError):
        raise refuse(
            "parse_error",
            "the text could not be split into words",
            "A quote, a comment or a name is not closed, or a character is not known.",
            "check quotes and comments",
        ) from None
    text.tokens = tokens
    check_statement(sql, tokens, text)
    _check_tokens(tokens, text)
    try:
        trees, _ = metered.read(tokens, sql)
    except ParseError as error:
        raise _parse_refusal(error, text) from None
    except metered.TooManySteps as error:
        raise _too_complex(error, text) from None
    except RecursionError:
        raise _too_deep() from None
    except (SqlglotError, ValueError, TypeError, AttributeError, IndexError, KeyError, AssertionError):
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


def _check_tokens(tokens: list[Any], text: Text) -> None:
    if len(tokens) > TOKENS_MAX:
        raise refuse("too_large", "the text is refused", f"It has more than {TOKENS_MAX} words.", "ask less at once")
    if sum(token.token_type is Kind.L_BRACKET for token in tokens) > SUBSCRIPTS_MAX:
        raise refuse(
            "too_large", "the text is refused", f"It has more than {SUBSCRIPTS_MAX} square brackets.", "use IN (...)"
        )
    depth = run = calls = 0
    before = None
    for token in tokens:
        # a.f().f() ...: the parser's work grows with the square of such a chain.
        calls += before is Kind.R_PAREN and token.token_type is Kind.DOT
        before = token.token_type
        if calls > CALL_CHAIN_MAX:
            raise _too_deep(text.span(token.start, token.end + 1))
        # Words without a value between them (NOT NOT ..., INTERVAL INTERVAL ...) nest without brackets.
        run = 0 if token.token_type in _VALUES else run + 1
        if run > RUN_MAX:
            raise _too_deep(text.span(token.start, token.end + 1))
        if token.token_type in (Kind.L_PAREN, Kind.CASE, Kind.L_BRACKET, Kind.L_BRACE):
            depth += 1
            if depth > NESTING_MAX:
                raise _too_deep(text.span(token.start, token.end + 1))
        elif token.token_type in (Kind.R_PAREN, Kind.END, Kind.R_BRACKET, Kind.R_BRACE):
            depth -= 1


_CONNECTORS = (exp.And, exp.Or)


def _check_size(tree: exp.Expr, text: Text) -> None:
    count = 0
    stack = [(tree, 1)]
    while stack:
        node, depth = stack.pop()
        count += 1
        if isinstance(node, _CONNECTORS) and type(node.parent) is not type(node):
            _balance(node)
        if depth > DEPTH_MAX * 3 or count > NODES_MAX:
            raise _too_deep(text.position(node) if depth <= DEPTH_MAX * 3 else None)
        stack.extend((child, depth + 1) for child in node.iter_expressions())


def _balance(node: exp.And | exp.Or) -> None:
    """Makes a flat tree of a long chain `a AND b AND c ...`, which the parser nests as often as it has terms.

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


def _too_complex(error: metered.TooManySteps, text: Text) -> Refused:
    place = None if error.start is None or error.end is None else text.span(error.start, error.end + 1)
    return refuse(
        "too_large",
        "the query is refused",
        f"It can be read in so many ways that {metered.STEPS_MAX} steps were not enough.",
        "give every join its ON or USING, and do not nest the names of types, such as DATE(DATE(x))",
        position=place,
    )


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
    place = next((i for i, t in enumerate(text.tokens) if (t.line, t.col) == (line, column)), None)
    if place is not None and _about_arguments(description):
        called = text.called(place)
        if called is not None:
            return _call_refusal(called, text)
    if "<class" in description or "sqlglot" in description or "TokenType" in description:
        description = ""  # words for the parser's programmers
    if place == len(text.tokens) - 1 and highlight != ")":
        description = description or "The text ends where more was expected"
    if place is not None and [token.text.lower() for token in text.tokens[place : place + 2]] == _OTHERS_CLAUSE:
        return refuse(
            "parse_error",
            "WITH DIFFERENTIAL_PRIVACY is refused",
            "Other systems ask for noise with it; here every answer has noise.",
            "leave the clause out: the request says what the answer may cost, or how exact it shall be",
            position=text.span(text.tokens[place].start, text.tokens[place + 1].end + 1),
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
    """Whether the parser misses arguments of a function, or has too many: an operand of an operator is no argument."""
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
        position=text.span(name.start, text.tokens[text.closing(word)].end + 1),
    )


_FOREIGN = {
    "=>": "x >= 1",
    "=<": "x <= 1",
    "`": 'a name stands in double quotes, or in none: "age"',
    "&&": "a AND b",
}


def _hints(place: int, text: Text) -> tuple[str, ...]:
    """What may have been meant where the parser stopped: a misspelt word before it, a comma, or another dialect."""
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
