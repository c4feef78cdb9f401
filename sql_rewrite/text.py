"""The analyst's SQL text with its tokens: where a node of the tree is in it, and how a function was spelled.

The parser keeps the offsets of names and literals. Of calls that are grammar (CAST, EXTRACT, ...) it keeps none, so
they are found by the tokens before their arguments.
"""

from __future__ import annotations

import bisect
import datetime
import re

from sqlglot import exp
from sqlglot.tokenizer_core import Token

from privacy.refusal import Position
from sql_rewrite.kinds import VALUES, Kind

__all__ = ["IDENTIFIER", "Text", "folded"]

IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}\Z", re.ASCII)

# The names of calls whose place the parser does not keep, by the class of the node that it makes of them.
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


_UNIT = re.compile(r"(?:year|quarter|month|week|day|hour|minute|(?:milli|micro)?second)s?", re.IGNORECASE)


_ASCII_LETTERS = str.maketrans({"\u0130": "i", "\u0131": "i", "\u017f": "s", "\u212a": "k"})
"""The letters beyond ASCII that patterns without regard to case take for letters of ASCII."""


def folded(sql: str) -> str:
    """A text in lower case, in which words are looked for: a pattern without regard to case takes 10 times as long."""
    return (sql if sql.isascii() else sql.translate(_ASCII_LETTERS)).lower()


class Text:
    """The analyst's text with its offsets: turns nodes into positions. `started` is what CURRENT_DATE and NOW() say.

    `folded` is the text in lower case. `intervals` are the folded names of columns of nested queries that hold
    intervals (interval_columns.py).
    """

    __slots__ = ("_lines", "_places", "folded", "intervals", "sql", "started", "tokens")

    def __init__(self, sql: str) -> None:
        self.sql = sql
        self.folded = folded(sql)
        self.tokens: list[Token] = []
        self.started: datetime.datetime | None = None
        self.intervals: set[str] = set()
        self._lines: list[int] | None = None
        self._places: list[int] | None = None

    def position(self, node: exp.Expr | None) -> Position | None:
        """Where a node is in the text, a call with its name and its brackets; None when the tree does not say."""
        if node is None:
            return None
        start, end = None, None
        placed = [meta for part in node.walk() if "start" in (meta := part.meta)]
        if placed:
            start, end = min([meta["start"] for meta in placed]), max([meta["end"] for meta in placed])
        if "start" not in node.meta:
            for part in node.walk():
                word = self._word(part) if type(part).__name__ in _UNPLACED else None
                if word is not None:
                    first, last = self.tokens[word], self.tokens[self.closing(word)]
                    start = first.start if start is None else min(start, first.start)
                    end = last.end if end is None else max(end, last.end)
        if start is None or end is None:
            return None
        stop = self._closed(start, end + 1)
        return self.span(self._opened(start, stop), stop)

    def spelled(self, node: exp.Expr) -> str | None:
        """A function's name as the analyst wrote it, with () when it is a call; None for anything else."""
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
                return self.token_position(token, self.tokens[place + 1])
        return None

    def interval(self, node: exp.Interval) -> Position | None:
        """Where an INTERVAL stands, whose node has no place of its own: beside what it is added to."""
        around = self.position(node.parent)
        starts = [part.meta["start"] for part in (node.parent or node).walk() if "start" in part.meta]
        if around is None or not starts:
            return None
        places = [i for i, token in enumerate(self.tokens[:-1]) if token.token_type is Kind.INTERVAL]
        before = [place for place in places if self.tokens[place].start <= min(starts)]
        after = [place for place in places if self.tokens[place].start > min(starts)]
        first = node.parent is not None and node.parent.args.get("this") is node
        if not (before if first else after):
            return None
        place = before[-1] if first else after[0]
        unit = place + 2 < len(self.tokens) and _UNIT.fullmatch(self.tokens[place + 2].text)
        return self.token_position(self.tokens[place], self.tokens[place + (2 if unit else 1)])

    def operator(self, node: exp.Expr) -> str | None:
        """An operator between two operands as the analyst wrote it, in quotes; None for anything else."""
        if not isinstance(node, exp.Binary) or not isinstance(node.expression, exp.Expr):
            return None
        starts = [part.meta["start"] for part in node.expression.walk() if "start" in part.meta]
        if not starts:
            return None
        place = bisect.bisect_left(self._starts(), min(starts)) - 1
        while place > 0 and self.tokens[place].token_type is Kind.L_PAREN:
            place -= 1
        if place <= 0 or self.tokens[place].token_type in VALUES:
            return None
        return f'the operator "{" ".join(self.tokens[place].text.split())[:40]}"'

    def _word(self, node: exp.Expr) -> int | None:
        """The index of the token that names a function's node."""
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
        """The index of the token that names a call whose node has no place. `start` is where its arguments begin.

        The names that may make a node of its class are known; the nearest one before the arguments whose bracket is
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
        """The index of the token before the bracket that is closed at an index."""
        depth = 0
        for before in range(place, 0, -1):
            kind = self.tokens[before].token_type
            depth += (kind is Kind.R_PAREN) - (kind is Kind.L_PAREN)
            if depth <= 0:
                name = self.tokens[before - 1].text
                return before - 1 if kind is Kind.L_PAREN and IDENTIFIER.match(name) else None
        return None

    def closing(self, place: int) -> int:
        """The index of the token that closes a call or a CASE which begins at an index."""
        depth = 0
        for last in range(place, len(self.tokens)):
            kind = self.tokens[last].token_type
            depth += (kind in (Kind.L_PAREN, Kind.CASE)) - (kind in (Kind.R_PAREN, Kind.END))
            if depth <= 0 and last > place:
                return last if kind in (Kind.R_PAREN, Kind.END) else place
        return place

    def token_position(self, first: Token, last: Token | None = None) -> Position:
        """The position of a token, or of those from `first` to `last`."""
        return self.span(first.start, (last or first).end + 1)

    def span(self, start: int, stop: int) -> Position:
        """The position of the characters from `start` up to `stop`."""
        if self._lines is None:
            self._lines = [0] + [match.end() for match in re.finditer("\n", self.sql)]
        line = bisect.bisect_right(self._lines, start) - 1
        fragment = self.sql[start:stop]
        return Position(line=line + 1, column=start - self._lines[line] + 1, text=fragment[:120])

    def _opened(self, start: int, stop: int) -> int:
        """Extends a fragment to the left over the opening brackets that its closing ones ask for."""
        first, last = bisect.bisect_left(self._starts(), start), bisect.bisect_left(self._starts(), stop)
        depth = least = 0
        for token in self.tokens[first:last]:
            depth += (token.token_type is Kind.L_PAREN) - (token.token_type is Kind.R_PAREN)
            if depth < least:
                least = depth
        place = first - 1
        while least < 0 and place >= 0 and self.tokens[place].token_type is Kind.L_PAREN:
            least, start, place = least + 1, self.tokens[place].start, place - 1
        return start

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
    """Whether a node without a place of its own has its first argument at that offset."""
    places = [part.meta["start"] for part in node.walk() if "start" in part.meta]
    return "start" not in node.meta and bool(places) and min(places) == start
