"""The words of a text against the dialect: constructs that only the parser understands are refused.

The parser reads more than the dialect does (other systems' functions, `!`, `{# #}`), and drops what it does not
expect (the third argument of `MOD(a, 2, b)`). A text is answered only if it means in the dialect what it means
here, so both are refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlglot import exp

from privacy.refusal import Position, Refused
from sql_rewrite import aggregates
from sql_rewrite.hints import FUNCTIONS, instead_of
from sql_rewrite.kinds import Kind
from sql_rewrite.syntax import IDENTIFIER, Text, refuse


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


__all__ = ["CALLS", "RESERVED", "RESERVED_BARE", "RESERVED_RELATION", "check_calls", "check_words", "named"]

RESERVED = _words(
    "all analyse analyze and any array as asc asymmetric both case cast check collate column constraint create "
    "default deferrable desc describe distinct do else end except false fetch for foreign from group having in "
    "initially intersect into lambda lateral leading limit not null offset on only or order pivot pivot_longer "
    "pivot_wider placing primary qualify references returning select show some summarize symmetric table then to "
    "trailing true union unique unpivot using variadic when where window with"
)
"""Words of the dialect that name nothing unless they are quoted, or a column behind AS."""

RESERVED_BARE = RESERVED | _words(
    "anti asof at authorization binary by centuries century collation concurrently cross day days decade decades "
    "escape exclude export_state filter freeze full glob hour hours ignore ilike inner is join left like "
    "microsecond microseconds millennia millennium millisecond milliseconds minute minutes month months natural "
    "outer over overlaps positional precision quarter quarters rename replace respect right second seconds semi "
    "similar tablesample unpack varying verbose week weeks within without year years"
)
"""Words that cannot name a column of the answer without AS."""

RESERVED_RELATION = (
    RESERVED_BARE
    - _words(
        "centuries century day days decade decades escape exclude export_state filter hour hours ignore "
        "microsecond microseconds millennia millennium millisecond milliseconds minute minutes month months over "
        "precision quarter quarters rename replace respect second seconds varying week weeks within without year "
        "years"
    )
) | {"isnull", "notnull"}
"""Words that cannot name a relation without AS."""

_MANY = 1_000

CALLS: dict[str, tuple[int, int]] = {
    **aggregates.CALLS,
    **dict.fromkeys(
        _words(
            "abs any_value bool_and bool_or cast cbrt ceil ceiling char_length character_length day dayname "
            "dayofmonth dayofweek dayofyear epoch exp first_value floor hour isodow isoyear last_value lcase len "
            "length ln log10 log2 lower median minute month monthname ntile percentile_cont percentile_disc quarter "
            "second sign sqrt try_cast ucase upper week weekofyear year extract position"
        ),
        (1, 1),
    ),
    **dict.fromkeys(("cume_dist", "dense_rank", "percent_rank", "rank", "row_number"), (0, 0)),
    **dict.fromkeys(
        _words(
            "contains corr covar_pop covar_samp date_part date_trunc datepart datetrunc ends_with ifnull left mod "
            "nth_value nullif pow power prefix quantile_cont right starts_with suffix strpos instr"
        ),
        (2, 2),
    ),
    **dict.fromkeys(("date_diff", "datediff", "if", "replace", "split_part"), (3, 3)),
    **dict.fromkeys(("arg_max", "arg_min", "argmax", "argmin", "max_by", "min_by", "substr"), (2, 3)),
    "substring": (1, 3),  # one: SUBSTRING(x FROM 2 FOR 3)
    **dict.fromkeys(("log", "ltrim", "max", "min", "quantile", "quantile_disc", "round", "rtrim", "trim"), (1, 2)),
    **dict.fromkeys(("coalesce", "concat", "greatest", "least"), (1, _MANY)),
    "lag": (1, 3),
    "lead": (1, 3),
    "trunc": (1, 2),
}
"""Every function that a text may call, as the dialect spells it, with the fewest and the most arguments it takes."""

# Words before a bracket that is not a call's: clauses, operators and the like.
_CLAUSES = _words(
    "all and any as between by case cross cube distinct else escape except exists filter from full group grouping "
    "having in inner intersect interval is join lateral left like ilike limit materialized not offset on or order "
    "outer over partition qualify right rollup select sets then union using values when where window with within"
)
_PATTERNS = frozenset(("like", "ilike", "glob"))
_WORDED: dict[str, tuple[str, ...]] = {"substring": ("from", "for"), "position": ("in",)}
"""Functions whose arguments may stand between words, with the words in their order: all, the first or the last."""

_QUOTED = frozenset((Kind.STRING, Kind.IDENTIFIER))
_NAMES = frozenset((Kind.VAR, Kind.IDENTIFIER))
_VALUES = _NAMES | {Kind.R_PAREN, Kind.R_BRACKET, Kind.NUMBER, Kind.STRING, Kind.END}
_STARTS = frozenset(
    (
        Kind.SELECT, Kind.FROM, Kind.WHERE, Kind.GROUP_BY, Kind.ORDER_BY,
        Kind.PARTITION_BY, Kind.HAVING, Kind.QUALIFY, Kind.DISTINCT, Kind.L_PAREN,
        Kind.L_BRACKET, Kind.COMMA, Kind.WITH,
    )
)  # fmt: skip
"""Words behind which a list or an expression begins."""

_ENDS = frozenset(
    (
        Kind.FROM, Kind.WHERE, Kind.GROUP_BY, Kind.ORDER_BY, Kind.HAVING, Kind.QUALIFY,
        Kind.LIMIT, Kind.OFFSET, Kind.UNION, Kind.EXCEPT, Kind.INTERSECT, Kind.R_PAREN,
        Kind.R_BRACKET, Kind.COMMA, Kind.SEMICOLON, Kind.JOIN, Kind.ON, Kind.THEN,
        Kind.WHEN, Kind.ELSE, Kind.END, Kind.ALIAS,
    )
)  # fmt: skip
"""Words before which an expression has ended."""

_OPERATORS = frozenset(
    (
        Kind.AND, Kind.OR, Kind.EQ, Kind.NEQ, Kind.LT, Kind.LTE, Kind.GT,
        Kind.GTE, Kind.PLUS, Kind.DASH, Kind.SLASH, Kind.DIV,
        Kind.DPIPE, Kind.LIKE, Kind.ILIKE, Kind.BETWEEN, Kind.IS, Kind.DCOLON,
        Kind.NOT, Kind.ESCAPE,
    )
)  # fmt: skip
"""Operators that need a value on their right."""

_CLAUSE_STARTS = frozenset(
    (
        Kind.WHERE, Kind.GROUP_BY, Kind.ORDER_BY, Kind.HAVING, Kind.QUALIFY, Kind.LIMIT,
        Kind.JOIN,
    )
)  # fmt: skip
_JOIN_ENDS = _CLAUSE_STARTS | {Kind.COMMA, Kind.SEMICOLON, Kind.UNION, Kind.EXCEPT}
_RANKS = {
    Kind.WHERE: 1,
    Kind.GROUP_BY: 2,
    Kind.HAVING: 3,
    Kind.QUALIFY: 5,
    Kind.ORDER_BY: 6,
    Kind.LIMIT: 7,
}
_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)
# U+00A0, U+2000 to U+200A, U+202F, U+205F and U+3000 are spaces of the dialect too; U+2028 and its kin are letters.
_SPACES = frozenset(map(chr, (9, 10, 13, 32, 0xA0, *range(0x2000, 0x200B), 0x202F, 0x205F, 0x3000)))
_SIGNS = frozenset("~!@#%^&|`?")
_BRANCHES = frozenset((Kind.WHEN, Kind.THEN, Kind.ELSE, Kind.ON))
_LISTS = frozenset((Kind.GROUP_BY, Kind.ORDER_BY, Kind.PARTITION_BY))
_ORDERS = frozenset((Kind.ASC, Kind.DESC))

# What must not stand before a word, and what must not follow it; None is the text's beginning or end.
_NEVER_AFTER: dict[Any, frozenset[Any]] = {
    Kind.COMMA: _STARTS | {None},
    Kind.STRING: _VALUES,
    Kind.NUMBER: frozenset((Kind.NUMBER, Kind.STRING, Kind.R_PAREN, Kind.IDENTIFIER)),
    Kind.PARAMETER: _VALUES,
    Kind.ALIAS: _STARTS,
    Kind.JOIN: frozenset((Kind.COMMA,)),
    Kind.IS: frozenset((Kind.NOT,)),
    Kind.L_PAREN: frozenset((Kind.R_PAREN,)),
    Kind.ASC: _ORDERS,
    Kind.DESC: _ORDERS,
    Kind.ALL: _OPERATORS | {Kind.COMMA},
    Kind.DISTINCT: _LISTS | {Kind.COMMA},
}
_NEVER_BEFORE: dict[Any, frozenset[Any]] = {
    Kind.COMMA: _CLAUSE_STARTS | {Kind.COMMA, Kind.SEMICOLON, None},
    Kind.OVER: _ENDS | {None},
    Kind.ALIAS: _ENDS | {None, Kind.SELECT},
    **dict.fromkeys((*_LISTS, *_BRANCHES, Kind.WHERE, Kind.HAVING, Kind.QUALIFY), _ENDS | {None}),
    **dict.fromkeys(_OPERATORS, _ENDS | {None}),
}


_FOREIGN = frozenset((Kind.NOT, Kind.NULLSAFE_EQ, Kind.DIV, Kind.PARAMETER))
_GLUED = frozenset((Kind.DOT, Kind.NUMBER, Kind.PLUS, Kind.DASH))
"""Kinds beside which it matters whether two words touch."""


def named(name: str) -> str:
    """A name as SQL can write it: as it is where that is one plain word that is not reserved, else in double quotes."""
    plain = IDENTIFIER.match(name) and name.lower() not in RESERVED_BARE
    return name if plain else '"' + name.replace('"', '""') + '"'


def check_words(tokens: Sequence[Any], text: Text) -> None:
    """Refuses words that only the parser understands, and anything between words that is neither space nor comment.

    Errors: Refused (parse_error, unsupported_sql).
    """
    _check_order(tokens, text)
    previous = None
    depth, named = 0, False
    searched: list[bool] = []
    odd_space = any(c.isspace() and c not in _SPACES for c in set(text.sql))
    for place, token in enumerate(tokens):
        kind, word = token.token_type, token.text
        spelled = text.sql[token.start : token.end + 1]
        gap = 0 if previous is None else previous.end + 1
        if text.sql[gap : token.start].strip(" \n") and not _blank(text.sql, gap, token.start):
            raise _unreadable(text, gap, token.start)
        if odd_space and kind not in _QUOTED and any(c.isspace() and c not in _SPACES for c in spelled):
            raise _unreadable(text, token.start, token.end + 1)
        foreign = kind in _FOREIGN and (
            (kind is Kind.NOT and spelled == "!" and not _pattern_follows(text.sql, token.end + 1))
            or kind is Kind.NULLSAFE_EQ
            or (kind is Kind.DIV and spelled != "//")
            or (kind is Kind.PARAMETER and spelled == "@")
        )
        if foreign:
            raise refuse(
                "unsupported_sql",
                f'the operator "{spelled}" is refused',
                "It means something else in this dialect, or nothing at all.",
                "write NOT, IS NOT DISTINCT FROM, // or ABS() instead",
                position=text.span(token.start, token.end + 1),
            )
        if kind is Kind.IDENTIFIER and not word:
            raise refuse(
                "parse_error",
                "an empty name is refused",
                "A quoted name needs at least one character.",
                position=text.span(token.start, token.end + 1),
            )
        if kind is Kind.ALIAS and place + 1 < len(tokens):
            first = text.sql[tokens[place + 1].start]
            if not (first.isalpha() or first in "_\"'("):
                raise _misread(text.span(token.start, token.end + 1))
        following = tokens[place + 1].token_type if place + 1 < len(tokens) else None
        if previous is not None and (kind in _GLUED or previous.token_type in _GLUED) and _glued(previous, token):
            raise _misread(text.span(previous.start, token.end + 1))
        compared = previous is not None and previous.token_type in _OPERATORS
        if kind is Kind.PLACEHOLDER or (kind is Kind.COLON and compared):
            raise _parameter(text.span(token.start, token.end + 1))
        if kind is Kind.L_PAREN:
            searched.append(previous is not None and previous.text.lower() == "position")
        elif kind is Kind.R_PAREN and searched:
            searched.pop()
        in_position = kind is Kind.IN and bool(searched) and searched[-1] and following not in _ENDS
        if not in_position and _misplaced(kind, None if previous is None else previous.token_type, following):
            raise _misread(text.span(token.start, token.end + 1))
        if kind is Kind.LIMIT:
            _check_limit(tokens, place, text)
        if kind is Kind.JOIN and not _joined(tokens, place):
            raise refuse(
                "parse_error",
                "a join is refused",
                "It has neither ON nor USING.",
                "a JOIN b ON a.key = b.key",
                position=text.span(token.start, token.end + 1),
            )
        if kind is Kind.WINDOW and following in _NAMES and not _named_window(tokens, place):
            raise _misread(text.span(token.start, token.end + 1))
        if kind is Kind.L_PAREN and following in (Kind.SELECT, Kind.WITH) and named:
            raise _misread(text.span(token.start, token.end + 1))
        named = kind in _NAMES and word.lower() != "materialized"
        depth += (kind is Kind.L_PAREN) - (kind is Kind.R_PAREN)
        previous = token
    if depth != 0:
        raise refuse("parse_error", "the text could not be read", "A bracket is not closed, or closed twice.")
    if previous is not None and not _blank(text.sql, previous.end + 1, len(text.sql)):
        raise _unreadable(text, previous.end + 1, len(text.sql))


def _glued(previous: Any, token: Any) -> bool:
    """Whether two words touch that must not, or do not touch that must."""
    touching = bool(previous.end + 1 == token.start)
    kind = token.token_type
    if previous.token_type is Kind.DOT and kind is Kind.NUMBER:
        return not touching
    if previous.token_type is Kind.NUMBER and kind in _NAMES:
        return touching
    if kind in (Kind.PLUS, Kind.DASH) and previous.token_type not in _VALUES:
        # The dialect reads such a row of signs as one operator, which it does not have.
        return touching and bool(_SIGNS & set(previous.text))
    return False


def _misplaced(kind: Any, previous: Any, following: Any) -> bool:
    """Whether a word stands where the dialect does not let it stand, although the parser skips it."""
    if previous in _NEVER_AFTER.get(kind, ()) or following in _NEVER_BEFORE.get(kind, ()):
        return True
    if kind is Kind.IN:
        return following not in (Kind.L_PAREN, Kind.L_BRACKET)
    if kind is Kind.DOT:
        # A number such as .5 is a dot and a number; everything else joins two names.
        return following is not Kind.NUMBER and (previous in _STARTS or previous is Kind.JOIN)
    if kind is Kind.STAR:
        if previous in _VALUES:
            return following is None or following in _ENDS
        allowed = (Kind.SELECT, Kind.COMMA, Kind.DOT, Kind.DISTINCT, Kind.L_PAREN)
        return previous not in allowed or (previous is Kind.L_PAREN and following is not Kind.R_PAREN)
    if kind is Kind.PLUS:
        # The parser drops a sign, and GROUP BY +1 (a constant) would become GROUP BY 1 (a position).
        return previous is None or previous in _STARTS or previous in _OPERATORS or previous in _BRANCHES
    if kind is Kind.ALL and previous is Kind.SELECT:
        return following in _ENDS
    if kind is Kind.ALL and previous is Kind.L_PAREN:
        return following is Kind.R_PAREN
    if kind is Kind.COLON:
        return previous not in _NAMES
    if kind is Kind.ALL and previous in (Kind.GROUP_BY, Kind.ORDER_BY):
        return following not in (None, Kind.ASC, Kind.DESC, Kind.LIMIT, *_ENDS)
    return kind in (Kind.UNKNOWN, Kind.PLACEHOLDER)


def _joined(tokens: Sequence[Any], place: int) -> bool:
    """Whether a join says on what: ON or USING stands before the next clause, or none is needed."""
    if tokens[place - 1].token_type in (Kind.CROSS, Kind.NATURAL) or tokens[place - 1].text.lower() in (
        "positional",
        "cross",
        "natural",
    ):
        return True
    depth = 0
    for token in tokens[place + 1 :]:
        kind = token.token_type
        depth += (kind is Kind.L_PAREN) - (kind is Kind.R_PAREN)
        if depth == 0 and kind in (Kind.ON, Kind.USING):
            return True
        if depth < 0 or (depth == 0 and kind in _JOIN_ENDS):
            return False
    return False


def _check_order(tokens: Sequence[Any], text: Text) -> None:
    """Refuses clauses in another order than the dialect's, each at most once per query."""
    ranks = [0]
    for token in tokens:
        kind = token.token_type
        if kind is Kind.L_PAREN:
            ranks.append(0)
        elif kind is Kind.R_PAREN and len(ranks) > 1:
            ranks.pop()
        elif kind in (Kind.UNION, Kind.EXCEPT, Kind.INTERSECT, Kind.SEMICOLON):
            ranks[-1] = 0
        elif kind in _RANKS:
            if _RANKS[kind] <= ranks[-1]:
                raise _misread(text.span(token.start, token.end + 1))
            ranks[-1] = _RANKS[kind]


def _named_window(tokens: Sequence[Any], place: int) -> bool:
    return place + 2 < len(tokens) and tokens[place + 2].token_type is Kind.ALIAS


def _parameter(position: Position) -> Refused:
    return refuse(
        "parse_error",
        f'the text could not be read as SQL near "{position.text[:40]}"',
        'Parameters are named with a dollar sign and get their value in "parameters" of the request.',
        "age > $age",
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


def _check_limit(tokens: Sequence[Any], place: int, text: Text) -> None:
    """Refuses LIMIT a, b, which other systems read as an offset and a limit."""
    depth = 0
    for token in tokens[place + 1 :]:
        depth += (token.token_type is Kind.L_PAREN) - (token.token_type is Kind.R_PAREN)
        if depth < 0:
            return
        if depth == 0 and (token.token_type is Kind.COMMA or token.token_type in _CLAUSE_STARTS):
            raise refuse(
                "parse_error",
                "a clause behind LIMIT is refused",
                "The dialect has LIMIT and OFFSET at the end, without a comma.",
                "LIMIT 10 OFFSET 20",
                position=text.span(tokens[place].start, token.end + 1),
            )


def _unreadable(text: Text, start: int, stop: int) -> Refused:
    return refuse(
        "parse_error",
        "the text could not be read",
        "Something between its words is neither space nor a comment of this dialect.",
        "comments are -- to the end of the line, or /* ... */",
        position=text.span(start, stop),
    )


def _pattern_follows(sql: str, start: int) -> bool:
    """Whether an exclamation mark is the first half of the operator !~~ (NOT LIKE)."""
    return sql.startswith("~~", start) and not sql.startswith("~~~", start)


def _blank(sql: str, start: int, stop: int) -> bool:
    """Whether a piece of the text holds nothing but spaces and comments (which may be nested)."""
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


def check_calls(tokens: Sequence[Any], tree: exp.Expr, text: Text) -> None:
    """Refuses a call that the dialect does not have, or whose number of arguments it does not take.

    Called when everything else was accepted, so that a refusal names the better reason where there is one.
    Errors: Refused (parse_error, unsupported_function).
    """
    places = {token.start: place for place, token in enumerate(tokens)}
    nodes = list(tree.walk())
    identifiers = [node for node in nodes if isinstance(node, exp.Identifier)]
    for table in nodes:
        if not isinstance(table, exp.Table):
            continue
        after = places.get(table.this.meta.get("start", -1), len(tokens)) + 1
        if after < len(tokens) and tokens[after].token_type is Kind.STAR:
            raise refuse(
                "parse_error",
                "a star behind a table is refused",
                "The dialect does not have it.",
                position=text.span(tokens[after].start, tokens[after].end + 1),
            )
    for name in identifiers:
        place = places.get(name.meta.get("start", -1))
        if place is not None and not name.args.get("quoted"):
            _check_name(tokens, place, name, text)
    for between in nodes:
        if isinstance(between, exp.Between):
            _check_between(tokens, between, text)
    for comparison in nodes:
        if not isinstance(comparison, _COMPARISONS):
            continue
        if isinstance(comparison.this, _COMPARISONS) or isinstance(comparison.expression, _COMPARISONS):
            raise refuse(
                "parse_error",
                "a chain of comparisons is refused",
                "The dialect does not compare the result of a comparison without brackets.",
                "a < b AND b < c",
                position=text.position(comparison),
            )
    if _count(tokens, Kind.WHEN) != _count(tokens, Kind.THEN):
        raise refuse("parse_error", "CASE is refused", "Every WHEN needs its THEN.", "CASE WHEN a THEN b ELSE c END")
    names = {node.meta["start"] for node in identifiers if "start" in node.meta}
    for place, token in enumerate(tokens[:-1]):
        if tokens[place + 1].token_type is not Kind.L_PAREN or token.start in names:
            continue
        name = token.text.lower()
        if token.token_type is not Kind.IDENTIFIER and not (name[:1].isalpha() or name[:1] == "_"):
            continue
        count = _arguments(tokens, place + 1)
        if token.token_type in _LISTS:
            continue  # ORDER BY (n) is no call
        if name in _PATTERNS:
            known, fits = True, count == 1
        elif name in _WORDED and not _worded(tokens, place + 1, _WORDED[name], count):
            known, fits = True, False
        elif name in CALLS:
            fewest, most = CALLS[name]
            known, fits = True, fewest <= count <= most
        elif name in _CLAUSES or _in_cast(tokens, place):
            continue
        else:
            known, fits = False, False
        if not fits:
            raise refuse(
                "unsupported_function",
                f"{name[:60]}() is refused",
                f"It does not take {count} arguments." if known else "The dialect has no such function.",
                *(instead_of(name, FUNCTIONS) if not known else (FUNCTIONS,)),
                position=text.span(token.start, token.end + 1),
            )


def _worded(tokens: Sequence[Any], opening: int, words: tuple[str, ...], count: int) -> bool:
    """Whether a call whose arguments may be divided by words has either commas or these words, in their order."""
    depth, found = 0, []
    for token in tokens[opening:]:
        depth += (token.token_type is Kind.L_PAREN) - (token.token_type is Kind.R_PAREN)
        if depth == 0:
            break
        if depth == 1 and token.token_type is not Kind.IDENTIFIER and token.text.lower() in words:
            found.append(token.text.lower())
    return (count > 1 and not found) or (count == 1 and found in ([*words], [words[0]], [words[-1]]))


def _check_name(tokens: Sequence[Any], place: int, name: exp.Identifier, text: Text) -> None:
    """Refuses a word of the dialect as a name. Behind AS every word may name a column of the answer."""
    words: frozenset[str] = RESERVED
    after = tokens[place + 1].token_type if place + 1 < len(tokens) else None
    if isinstance(name.parent, exp.TableAlias) and name.arg_key == "columns":
        if after not in (Kind.COMMA, Kind.R_PAREN):
            raise _misread(text.span(tokens[place].start, tokens[place].end + 1))
    elif isinstance(name.parent, exp.TableAlias):
        words = RESERVED_RELATION
    elif isinstance(name.parent, exp.Alias) and name.arg_key == "alias":
        if place > 0 and tokens[place - 1].token_type is Kind.ALIAS:
            return
        words = RESERVED if after is Kind.COLON else RESERVED_BARE
    if name.name.lower() in words:
        raise refuse(
            "parse_error",
            f'the name "{name.name[:63]}" is refused',
            "It is a word of the dialect.",
            f'write it in double quotes: "{name.name[:63]}"',
            position=text.position(name),
        )


def _check_between(tokens: Sequence[Any], between: exp.Between, text: Text) -> None:
    """Refuses BETWEEN without its AND: of the words between the two bounds one must be AND."""
    low, high = _places(between.args["low"]), _places(between.args["high"])
    if not low or not high:
        return
    inner = (token for token in tokens if max(low) < token.start < min(high))
    if not any(token.token_type is Kind.AND for token in inner):
        raise refuse(
            "parse_error",
            "BETWEEN is refused",
            "Its AND is missing.",
            "x BETWEEN 1 AND 10",
            position=text.position(between),
        )


def _places(node: exp.Expr) -> list[int]:
    return [part.meta["start"] for part in node.walk() if "start" in part.meta]


def _count(tokens: Sequence[Any], kind: Any) -> int:
    return sum(token.token_type is kind for token in tokens)


def _arguments(tokens: Sequence[Any], opening: int) -> int:
    """How many arguments stand between an opening bracket and its closing one."""
    if tokens[opening + 1].token_type is Kind.R_PAREN:
        return 0
    count, depth = 1, 0
    for token in tokens[opening:]:
        if token.token_type in (Kind.L_PAREN, Kind.L_BRACKET, Kind.L_BRACE):
            depth += 1
        elif token.token_type in (Kind.R_PAREN, Kind.R_BRACKET, Kind.R_BRACE):
            depth -= 1
            if depth == 0:
                break
        elif token.token_type is Kind.COMMA and depth == 1:
            count += 1
    return count


def _in_cast(tokens: Sequence[Any], place: int) -> bool:
    """Whether a word before a bracket is a type, as in CAST(x AS DECIMAL(10, 2)) or x::DECIMAL(10, 2)."""
    return place > 0 and tokens[place - 1].token_type in (Kind.ALIAS, Kind.DCOLON)
