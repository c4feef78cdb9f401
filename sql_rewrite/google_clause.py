"""GoogleSQL's differential-privacy clause and the arguments of its aggregates, as a spelling of our own options.

    SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1, max_groups_contributed = 3)
           region, SUM(cost, contribution_bounds_per_group => (0, 500)) AS s FROM visits GROUP BY region
    is    SELECT region, SUM(GREATEST(0,LEAST(500,cost))) AS s FROM visits GROUP BY region
    with  {"spend": {"own_epsilon": "1"}, "contribution": {"groups_per_unit": 3}}

The tokens of a text are read before anything else reads it. What is written in their place is the analyst's language
as it is, no longer than what it replaces and on as many lines, so that all that follows keeps its line and column; the
lift is the only reader of its meaning, and DuckDB judges it. Nothing is ever ignored: an option or an argument that is
not known is refused.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token

from privacy.bounds import BOUND_MAX
from privacy.numbers import ATTO, PICO
from privacy.refusal import Finding, Refused
from sql_rewrite.kinds import Kind
from sql_rewrite.refuse import refuse
from sql_rewrite.syntax import DUCKDB, TEXT_BYTES_MAX
from sql_rewrite.text import Text

__all__ = ["Clause", "Respelled", "respelled"]

_TRACES = re.compile(r"differential_privacy|anonymization|\banon_|contribution_bounds_per_", re.IGNORECASE)
_CLAUSES = ("DIFFERENTIAL_PRIVACY", "ANONYMIZATION")
_BOUNDS = ("CONTRIBUTION_BOUNDS_PER_GROUP", "CONTRIBUTION_BOUNDS_PER_ROW")
_CLIPPED = ("SUM", "AVG", "VAR_POP", "VAR_SAMP", "VARIANCE", "STDDEV", "STDDEV_POP", "STDDEV_SAMP")
_ANON = ("COUNT", "SUM", "AVG", "VAR_POP", "STDDEV_POP", "PERCENTILE_CONT")
_OPTIONS = ("epsilon", "delta", "max_groups_contributed", "max_rows_contributed", "privacy_unit_column")
_STRATEGY = "group_selection_strategy"
_NUMBER = re.compile(r"-?\d{1,15}(?:\.\d{1,15})?\Z")
_AMOUNT = re.compile(r"(?:\d{1,9}(?:\.\d{1,12})?|\.\d{1,12})(?:[eE]-?\d{1,2})?\Z")
_EPSILON_MAX, _DELTA_MAX = Fraction(10**6), Fraction(1, 100)
_OPENING, _CLOSING = (Kind.L_PAREN, Kind.L_BRACKET), (Kind.R_PAREN, Kind.R_BRACKET)


@dataclass(frozen=True, slots=True)
class Clause:
    """What the options of a text ask for; None where it does not say. `warnings` say what differs in meaning."""

    epsilon: Fraction | None = None
    delta: Fraction | None = None
    groups_per_unit: int | None = None
    rows_per_unit: int | None = None
    rows_per_unit_and_group: int | None = None
    unit_column: str | None = None
    public_groups: bool = False
    warnings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class Respelled:
    """A text without GoogleSQL's clause and arguments, and what they ask for."""

    sql: str
    clause: Clause


@dataclass(frozen=True, slots=True)
class _Change:
    """What is written in place of a part of the text, which ends before `end`."""

    start: int
    end: int
    new: str


def respelled(sql: str) -> Respelled | None:
    """The text in DuckDB's dialect and its options; None where it has nothing of GoogleSQL's. Errors: Refused."""
    if _TRACES.search(sql) is None or len(sql) > TEXT_BYTES_MAX:
        return None
    try:
        tokens = DUCKDB.tokenize(sql)
    except (SqlglotError, ValueError, RecursionError):
        return None  # refused where it is read
    text = Text(sql)
    text.tokens = tokens
    reader = _Reader(sql, tokens, text)
    changes = reader.changes()
    if not changes:
        return None
    pieces: list[str] = []
    at = 0
    for change in sorted(changes, key=lambda one: one.start):
        if change.start < at:
            raise reader.inside_another(change.start)
        pieces += [sql[at : change.start], _in_place(sql[change.start : change.end], change.new)]
        at = change.end
    return Respelled("".join([*pieces, sql[at:]]), reader.clause())


def _in_place(old: str, new: str) -> str:
    """The new text, followed by as many line ends and spaces as keep what follows at its line and column."""
    lines = old.count("\n") - new.count("\n")
    if lines > 0:
        return new + "\n" * lines + " " * len(old.rpartition("\n")[2])
    return new + " " * (len(old.rpartition("\n")[2]) - len(new.rpartition("\n")[2]))


class _Reader:
    def __init__(self, sql: str, tokens: Sequence[Token], text: Text) -> None:
        self._sql = sql
        self._tokens = tokens
        self._text = text
        self._options: dict[str, str] = {}
        self._rows: set[int] = set()
        self._clipped: Token | None = None
        self._clause: Token | None = None

    def changes(self) -> list[_Change]:
        """What is written in place of clauses and calls. Errors: Refused."""
        found: list[_Change] = []
        for place in range(len(self._tokens)):
            change = self._clause_at(place) or self._call_at(place)
            if change is not None:
                found.append(change)
        return found

    def clause(self) -> Clause:
        """What was read. Errors: Refused."""
        options = self._options
        epsilon, delta = (_amount(options.get(name)) for name in ("epsilon", "delta"))
        groups, rows = options.get("max_groups_contributed", options.get("kappa")), options.get("max_rows_contributed")
        strategy = options.get(_STRATEGY, "").upper()
        unit = options.get("privacy_unit_column")
        made = partial(self._refusal, self._clause)
        for name, known in (("epsilon", epsilon), ("delta", delta)):
            if name in options and known is None:
                raise made(f"Its {name} has to be a number that is written out.")
        if epsilon is not None and not (0 < epsilon <= _EPSILON_MAX and (epsilon / PICO).denominator == 1):
            raise made("Its epsilon has to be more than 0, at most 1,000,000, and a whole multiple of 10^-12.")
        if delta is not None and not (delta <= _DELTA_MAX and (delta / ATTO).denominator == 1):
            raise made("Its delta has to be at most 0.01, and a whole multiple of 10^-18.")
        for name, given in (("max_groups_contributed", groups), ("max_rows_contributed", rows)):
            if given is not None and not (given.isdecimal() and 1 <= len(given) <= 10 and 0 < int(given) <= BOUND_MAX):
                raise made(f"Its {name} has to be a whole number, 1 or more.")
        if groups is not None and rows is not None:
            raise made("It has one of max_groups_contributed and max_rows_contributed.")
        if _STRATEGY in options and strategy not in ("LAPLACE_THRESHOLD", "PUBLIC_GROUPS"):
            raise made(f"Its {_STRATEGY} has to be LAPLACE_THRESHOLD or PUBLIC_GROUPS.")
        if unit is not None and re.fullmatch(r"[A-Za-z_]\w{0,62}", unit) is None:
            raise made("Its privacy_unit_column has to be the name of a column.")
        if len(self._rows) > 1:
            raise made(
                "The bounds of its counts differ: one number of rows per unit and group holds for all of a query."
            )
        # Without GROUP BY all rows are one group.
        grouped = any(token.token_type is Kind.GROUP_BY for token in self._tokens)
        counted = None if grouped else next(iter(self._rows), None)
        return Clause(
            epsilon=epsilon,
            delta=delta,
            groups_per_unit=None if groups is None or counted is not None else int(groups),
            rows_per_unit=counted if rows is None else int(rows),
            rows_per_unit_and_group=next(iter(self._rows), None),
            unit_column=unit,
            public_groups=strategy == "PUBLIC_GROUPS",
            warnings=tuple(self._warnings(bounded=groups is not None or rows is not None)),
        )

    def _warnings(self, *, bounded: bool) -> list[Finding]:
        found: list[Finding] = []

        def warn(what: str, why: str, *instead: str, token: Token | None) -> None:
            position = None if token is None else self._text.token_position(token)
            found.append(Finding(code="other_meaning", what=what, why=why, instead=instead, position=position))

        if self._clause is not None and not bounded:
            warn(
                "a unit counts in as many groups as the dataset declares",
                "GoogleSQL's max_groups_contributed is 1 where a text does not say it.",
                "write max_groups_contributed into OPTIONS",
                token=self._clause,
            )
        if self._clipped is not None:
            warn(
                "bounds of a sum or an average hold for each row",
                "GoogleSQL clamps what a unit adds to a group. Here each row's value is clipped, and then what its "
                "allotted rows add: the same where a unit has one row in a group. Averages weigh units by rows.",
                token=self._clipped,
            )
        if self._rows:
            warn(
                "the bound of a count holds for every aggregate of the query",
                "It is the number of rows of a unit that count in a group, which GoogleSQL bounds for each aggregate.",
                'the request\'s "contribution" says the same',
                token=self._clause,
            )
        return found

    # The clause

    def _clause_at(self, place: int) -> _Change | None:
        words = [self._word(place + i) for i in range(3)]
        if words[:2] != ["SELECT", "WITH"] or words[2] not in _CLAUSES:
            return None
        if self._clause is not None:
            raise self._refusal(self._tokens[place + 2], "The text has two of them, and a query has one price.")
        self._clause = self._tokens[place + 2]
        end = place + 2
        if self._word(place + 3) == "OPTIONS" and self._kind(place + 4) is Kind.L_PAREN:
            end = self._text.closing(place + 4)
            if end == place + 4:
                raise self._refusal(self._clause, "Its OPTIONS are not closed.")
            for part in self._parts(place + 5, end):
                self._option(part)
        return _Change(self._tokens[place + 1].start, self._tokens[end].end + 1, "")

    def _option(self, part: tuple[int, int]) -> None:
        first, end = part
        name = self._word(first).lower()
        if name not in (*_OPTIONS, "kappa", _STRATEGY) or end - first < 3 or self._kind(first + 1) is not Kind.EQ:
            raise self._refusal(
                self._tokens[min(first, len(self._tokens) - 1)],
                "One of its options is not known.",
                f"the options are {', '.join(_OPTIONS)} and {_STRATEGY}",
            )
        again = "max_groups_contributed" if name == "kappa" else name
        if again in self._options:
            raise self._refusal(self._tokens[first], "One of its options is given twice.")
        self._options[again] = self._between(first + 2, end).strip()

    # Calls

    def _call_at(self, place: int) -> _Change | None:
        word = self._word(place)
        if self._kind(place + 1) is not Kind.L_PAREN or not re.fullmatch(r"[A-Z_]\w*", word):
            return None
        anon, name = word.startswith("ANON_"), word.removeprefix("ANON_")
        close = self._text.closing(place + 1)
        if close == place + 1:
            return None
        parts = self._parts(place + 2, close)
        named = [part for part in parts if self._word(part[0]) in _BOUNDS and self._kind(part[0] + 1) is Kind.FARROW]
        if not anon and not named:
            return None
        token = self._tokens[place]
        arguments = 2 if name == "PERCENTILE_CONT" else 1
        if anon and (name not in _ANON or len(parts) != arguments):
            raise self._refusal(token, f"{word[:40]} is not answered.", f"ANON_ stands before {', '.join(_ANON)}")
        bounded = (*_CLIPPED, "COUNT", "PERCENTILE_CONT")
        if named and (len(named) > 1 or parts[-1] != named[0] or len(parts) != arguments + 1 or name not in bounded):
            raise self._refusal(
                token, "Bounds are the last argument of COUNT, SUM, AVG, a spread or PERCENTILE_CONT, once."
            )
        if anon:
            last, bounds = self._clamped(*parts[-1])
        else:
            last, bounds = self._between(*parts[arguments - 1]), self._pair(named[0][0] + 2, named[0][1])
        given = [*(self._between(*part) for part in parts[: arguments - 1]), last]
        if not all(argument.strip() for argument in given):
            raise self._refusal(token, "Its argument is missing.")
        written = self._written(token, name, [argument.strip() for argument in given], bounds)
        return _Change(token.start, self._tokens[close].end + 1, written)

    def _written(self, token: Token, name: str, arguments: Sequence[str], bounds: tuple[str, str] | None) -> str:
        argument, *rest = arguments
        name = "QUANTILE_CONT" if name == "PERCENTILE_CONT" else name
        if bounds is None:
            return f"{name}({', '.join(arguments)})"
        low, high = bounds
        if Fraction(low) > Fraction(high):
            raise self._refusal(token, "Its lower bound is above the upper one.")
        if name == "COUNT":
            if Fraction(low) != 0 or not high.isdecimal() or not 0 < int(high) <= BOUND_MAX:
                raise self._refusal(token, "The bounds of a count are 0 and the most rows of a unit in a group.")
            self._rows.add(int(high))
            return f"{name}({argument})"
        self._clipped = self._clipped if rest else token
        return f"{name}({','.join([f'GREATEST({low},LEAST({high},{argument}))', *rest])})"

    def _clamped(self, first: int, end: int) -> tuple[str, tuple[str, str] | None]:
        """The argument of an ANON_ call, and the bounds of CLAMPED BETWEEN."""
        depth = 0
        for at in range(first, end):
            depth += (self._kind(at) in _OPENING) - (self._kind(at) in _CLOSING)
            if depth or self._word(at) != "CLAMPED" or self._kind(at + 1) is not Kind.BETWEEN:
                continue
            middle = next((k for k in range(at + 2, end) if self._kind(k) is Kind.AND), None)
            if middle is None:
                raise self._refusal(self._tokens[at], "CLAMPED BETWEEN takes two bounds, with AND between them.")
            return self._between(first, at), (self._constant(at + 2, middle), self._constant(middle + 1, end))
        return self._between(first, end), None

    def _pair(self, first: int, end: int) -> tuple[str, str]:
        """The two constants in brackets."""
        if self._kind(first) is not Kind.L_PAREN or self._text.closing(first) != end - 1:
            raise self._refusal(self._tokens[first - 2], "Bounds are two numbers in brackets.")
        parts = self._parts(first + 1, end - 1)
        if len(parts) != 2:
            raise self._refusal(self._tokens[first - 2], "Bounds are two numbers in brackets.")
        return self._constant(*parts[0]), self._constant(*parts[1])

    def _constant(self, first: int, end: int) -> str:
        found = "".join(self._between(first, end).split())
        if _NUMBER.match(found) is None:
            raise self._refusal(self._tokens[first], "Bounds have to be numbers that are written out.")
        return found

    # Tokens

    def _word(self, place: int) -> str:
        if place >= len(self._tokens) or self._tokens[place].token_type in (Kind.STRING, Kind.IDENTIFIER):
            return ""
        return str(self._tokens[place].text).upper()

    def _kind(self, place: int) -> object:
        return self._tokens[place].token_type if place < len(self._tokens) else None

    def _parts(self, first: int, end: int) -> list[tuple[int, int]]:
        """What commas separate between two places, brackets inside apart."""
        found: list[tuple[int, int]] = []
        depth, begun = 0, first
        for at in range(first, end):
            kind = self._kind(at)
            depth += (kind in _OPENING) - (kind in _CLOSING)
            if kind is Kind.COMMA and depth == 0:
                found.append((begun, at))
                begun = at + 1
        return [*found, (begun, end)]

    def _between(self, first: int, end: int) -> str:
        """The text of some tokens."""
        return self._sql[self._tokens[first].start : self._tokens[end - 1].end + 1] if first < end else ""

    def inside_another(self, start: int) -> Refused:
        """The refusal of a call with bounds inside the arguments of another one: an aggregate of an aggregate."""
        token = next(token for token in self._tokens if token.start >= start)
        return self._refusal(token, "A call of its spelling stands inside another one.", "write them side by side")

    def _refusal(self, token: Token | None, why: str, *instead: str) -> Refused:
        return refuse(
            "unsupported_sql",
            "GoogleSQL's clause is refused",
            why,
            *instead,
            "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1, max_groups_contributed = 3) ...",
            "SUM(x, contribution_bounds_per_group => (0, 100))",
            position=None if token is None else self._text.token_position(token),
        )


def _amount(written: str | None) -> Fraction | None:
    return None if written is None or _AMOUNT.match(written) is None else Fraction(written)
