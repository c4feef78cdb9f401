"""The refusals of what is not read: subqueries, windows, functions outside the list, and all other syntax."""

from __future__ import annotations

import difflib

from sqlglot import exp

from privacy.refusal import Refused
from sql_rewrite.correlated_advice import correlated
from sql_rewrite.functions import REGISTRY
from sql_rewrite.hints import AGGREGATES, FUNCTIONS, instead_of
from sql_rewrite.lifter import Lifter
from sql_rewrite.operands import operands_of
from sql_rewrite.refuse import refuse

__all__ = ["is_volatile", "unlisted", "unread", "worded"]

_VOLATILE = (exp.CurrentDate, exp.CurrentTime, exp.CurrentTimestamp, exp.Localtimestamp, exp.Rand, exp.Uuid)
_VOLATILE_NAMES = frozenset(
    (
        "now today random rand setseed uuid gen_random_uuid nextval currval current_setting getvariable "
        "txid_current current_query current_user current_schema current_schemas current_database "
        "get_current_time get_current_timestamp transaction_timestamp localtime localtimestamp "
        "current_localtimestamp version"
    ).split()
)

_WORDS: dict[type[exp.Expr], str] = {
    exp.Bracket: "a subscript in square brackets",
    exp.Dot: "a field behind a dot",
    exp.Lambda: "a lambda function",
    exp.Tuple: "a list in brackets",
    exp.Star: "a star",
    exp.Array: "a list",
    exp.Struct: "a struct",
}


def is_volatile(node: exp.Expr, name: str) -> bool:
    """Whether a call, by the name that the analyst wrote, has another value at each moment or for each reader."""
    return isinstance(node, _VOLATILE) or name.removesuffix("()").lower() in _VOLATILE_NAMES


def unread(lifter: Lifter, node: exp.Expr | None) -> Refused:
    """The refusal of a construct that no reader reads, by the name that the analyst wrote; None: one is missing."""
    if node is None:  # as in MAX( AS peak, which the parser reads
        return refuse("unsupported_sql", "a call or an operator is refused", "An argument is missing.")
    if isinstance(node, exp.IgnoreNulls | exp.RespectNulls) and isinstance(node.this, exp.Func):
        node = node.this
    position = lifter.text.position(node)
    name = lifter.text.spelled(node) or lifter.text.operator(node) or worded(node)
    if is_volatile(node, name):
        return _volatile(lifter, name, node)
    if isinstance(node, exp.Query | exp.Subquery | exp.Exists):
        return refuse(
            "correlated_subquery",
            "a subquery inside the private part is refused",
            "Only aggregates, columns and scalar functions are answered there.",
            *(
                _joined(lifter, node)
                or correlated(lifter, node)
                or ("ask for its number in a query of its own, and write it (or $name, a parameter) in its place",)
            ),
            "to count people with such rows, count different units (COUNT(DISTINCT unit)) in the table of the rows",
            position=position,
        )
    if isinstance(node, exp.Window):
        return refuse(
            "private_row_limit",
            "a window function on private rows is refused",
            "It puts rows beside each other. Within one person it is answered in a nested query of rows, in its select "
            "list or in QUALIFY.",
            "write it in a nested query, with the key of the privacy unit in PARTITION BY",
            "use the window on released numbers, in a query around the aggregation",
            position=position,
        )
    if isinstance(node, exp.AggFunc):
        return refuse(
            "unsupported_function",
            f"{name} is refused here",
            "An aggregate stands where a value of one row is expected, or is not answered.",
            *instead_of(
                name, f"{AGGREGATES}, outside WHERE and GROUP BY", lifter.about(node), operands_of(lifter, node)
            ),
            position=position,
        )
    if isinstance(node, exp.Func):
        return refuse(
            "unsupported_function",
            f"{name} is refused",
            "It is not in the list of functions that are proved to give a value for every row.",
            *_instead(lifter, node, name),
            position=position,
        )
    if isinstance(node, exp.Interval):
        return refuse(
            "unsupported_sql",
            "INTERVAL is refused",
            "An interval is added to a date or a timestamp, or is the width of a bucket; it is no value by itself.",
            "for a date d: d + INTERVAL 3 MONTH",
            "for two dates a and b: date_diff('day', a, b) < 30",
            position=lifter.text.interval(node) or position or lifter.text.position(node.parent),
        )
    return refuse(
        "unsupported_sql",
        f"{name} is refused",
        "This construct has no proved meaning in the private part of a query.",
        "see docs/sql.md for what is answered",
        position=position,
    )


def _joined(lifter: Lifter, node: exp.Expr) -> tuple[str, ...]:
    """What a subquery over one public table stands for: queries over public tables alone are refused."""
    query = node.this if isinstance(node, exp.Subquery | exp.Exists) else node
    from_ = query.args.get("from_") if isinstance(query, exp.Select) and not query.args.get("joins") else None
    joins = lifter.joins_to(from_.this.name) if from_ is not None and isinstance(from_.this, exp.Table) else None
    if joins is None:
        return ()
    if not joins:
        several = "write EXISTS over the public table instead, which compares each of the columns in its WHERE"
        return (
            *((several,) if isinstance(node.parent, exp.In) and isinstance(node.parent.this, exp.Tuple) else ()),
            "write the values, which are public, as a list or as parameters",
            "ask an administrator to declare a reference to the public table, and join it",
        )
    return (*joins, "join its table like this, and write its conditions into WHERE")


def unlisted(lifter: Lifter, node: exp.Anonymous) -> Refused:
    """The refusal of a call that the parser has no class for."""
    name = str(node.this).lower()
    if name in _VOLATILE_NAMES:
        return _volatile(lifter, f"{name}()", node)
    return refuse(
        "unsupported_function",
        f"{lifter.text.spelled(node) or name[:60] + '()'} is refused",
        "It is not in the list of functions that are proved to give a value for every row.",
        *_instead(lifter, node, name),
        position=lifter.text.position(node),
    )


def _instead(lifter: Lifter, node: exp.Expr, name: str) -> tuple[str, ...]:
    """What to write instead of a function: what is known of it, else the accepted form whose name is nearest."""
    hints = instead_of(name, FUNCTIONS, lifter.about(node), operands_of(lifter, node))
    if len(hints) > 1:
        return hints
    near = difflib.get_close_matches(name.removesuffix("()").lower(), _NEAR, n=1, cutoff=0.75)
    return (*(f"the nearest one is {_FORMS[found]}" for found in near), *hints)


_FORMS = {name: operator.forms for operator in REGISTRY.values() for name in (*operator.names, operator.name)}


_NEAR = [name for name, form in _FORMS.items() if form[:1].isalpha()]


def _volatile(lifter: Lifter, name: str, node: exp.Expr) -> Refused:
    return refuse(
        "volatile_function",
        f"{name} is refused",
        "Its value depends on the moment or the session, so equal queries would not be equal.",
        "write the value itself, for instance DATE '2024-12-31'",
        position=lifter.text.position(node),
    )


def worded(node: exp.Expr) -> str:
    """A node's name for people: the SQL name of a function, else the words of its class."""
    known = _WORDED.get(type(node))
    return known or _WORDED.setdefault(type(node), _class_words(type(node)))


_WORDED: dict[type[exp.Expr], str] = {}
"""Of the classes that have been met: every operator is worded, in case it is refused."""


def _class_words(kind: type[exp.Expr]) -> str:
    if issubclass(kind, exp.Func) and kind not in _WORDS:
        names = kind.sql_names() if hasattr(kind, "sql_names") else []
        if names:
            return str(names[0])
    words = _WORDS.get(kind) or kind.__name__
    return words if " " in words else "".join((" " + c.lower()) if c.isupper() else c for c in words).strip()
