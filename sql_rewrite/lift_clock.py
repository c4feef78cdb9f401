"""CURRENT_DATE, NOW() and their relatives: the moment at which the question began, a constant of its plan.

Claim. A stored release serves no other day than the one that its question asked about. Argument: the moment is written
into the plan as a literal, the identity of a release holds every literal of its plan (`plan_key`), and the server keeps
plans and answers by the moment too (`Question.started`, which is a part of `text_key`). So a question of tomorrow has
another plan, another release and another charge. Texts that read the day alone begin at midnight, and are one question
all day; those that read the time begin at a whole second. Both are UTC.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping

from sqlglot import exp

from privacy.policy import ColumnType
from sql_rewrite.expressions import Expression, Literal
from sql_rewrite.lift_refusal import unread
from sql_rewrite.lifter import Lifter, Reader
from sql_rewrite.syntax import consume

__all__ = ["CLOCKS", "READERS", "clock", "started"]

CLOCKS: Mapping[str, ColumnType] = {
    "current_date": ColumnType.DATE,
    "today": ColumnType.DATE,
    "now": ColumnType.TIMESTAMP,
    "current_timestamp": ColumnType.TIMESTAMP,
    "get_current_timestamp": ColumnType.TIMESTAMP,
    "localtimestamp": ColumnType.TIMESTAMP,
    "current_localtimestamp": ColumnType.TIMESTAMP,
}
"""Functions that read the clock, in lower case, with the type of what they say."""

_WORDS = re.compile(rf"\b(?:{'|'.join(CLOCKS)})\b", re.IGNORECASE | re.ASCII)


def started(sql: str, now: datetime.datetime) -> datetime.datetime | None:
    """The moment at which a question begins that is asked now, without zone; None where its text reads no clock.

    Requires: `now` in UTC. A text that reads the day alone begins at midnight. A name in a string or a comment counts:
    such a text is another question each day, which is never wrong.
    """
    words = {word.lower() for word in _WORDS.findall(sql)}
    if not words:
        return None
    moment = now.replace(microsecond=0, tzinfo=None)
    if any(CLOCKS[word] is ColumnType.TIMESTAMP for word in words):
        return moment
    return moment.replace(hour=0, minute=0, second=0)


def clock(lifter: Lifter, node: exp.Expr, name: str) -> Expression:
    """What the clock said when the question began. Errors: Refused, where nobody said when that was."""
    moment = lifter.text.started
    if moment is None:
        raise unread(lifter, node)
    kind = CLOCKS[name]
    return Literal(moment.date() if kind is ColumnType.DATE else moment, kind)


def _date(lifter: Lifter, node: exp.Expr) -> Expression:
    consume(node, text=lifter.text, what="CURRENT_DATE")
    return clock(lifter, node, "current_date")


def _timestamp(lifter: Lifter, node: exp.Expr) -> Expression:
    consume(node, text=lifter.text, what="CURRENT_TIMESTAMP")
    return clock(lifter, node, "current_timestamp")


READERS: Mapping[type[exp.Expr], Reader] = {
    exp.CurrentDate: _date,
    exp.CurrentTimestamp: _timestamp,
    exp.Localtimestamp: _timestamp,
}
