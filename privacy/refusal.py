"""Findings, and refusals: why a query is not answered, in words that help, and never from rows.

    Exception
      Refused            every finding of one stage, before anything private was touched
      ExecutionFailed    the one opaque outcome after the engine was started

Codes are stable. A code's meaning never changes; a new meaning is a new code. `Finding` is the one type for such words
wherever they appear: refusals of queries and requests, warnings of answers, faults of dataset files, failures of
commands. Documents, lines and exceptions are views of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from types import TracebackType

from privacy.by_slots import by_slots

__all__ = ["CODES", "Collector", "ExecutionFailed", "Finding", "Position", "Refused"]

CODES: dict[str, str] = {
    "parse_error": "The text is not one SQL statement that can be read.",
    "not_a_query": "The statement is not a SELECT query.",
    "many_statements": "The text holds more than one statement.",
    "unknown_dataset": "The dataset does not exist, or the caller may not see it.",
    "unknown_table": "The table is not part of the dataset.",
    "unknown_statistic": "The statistic is not registered for the dataset, or the caller may not ask it.",
    "unknown_column": "The column is not part of the tables that the query reads.",
    "ambiguous_column": "The name fits columns of more than one table.",
    "unsupported_sql": "The construct is not answered.",
    "unsupported_function": "The function is not in the list of functions whose behaviour is proved.",
    "unsupported_type": "The operation does not accept values of this type.",
    "volatile_function": "The function gives another value at each call or at each moment.",
    "raw_rows": "The query would return rows about people instead of statistics.",
    "group_by_unit": "The query groups by the privacy unit, or by values of which each belongs to one unit.",
    "column_without_bounds": "A sum needs value bounds, and the expression has none.",
    "contribution_not_named": "How much of one unit counts would be chosen from the data, and has to be known before.",
    "join_multiplies": "The join may repeat rows of one unit.",
    "join_not_on_key": "The join does not follow a declared reference.",
    "private_row_limit": "LIMIT, ORDER BY, DISTINCT, sampling or window functions on private rows.",
    "correlated_subquery": "A subquery compares rows of different units.",
    "too_large": "The text, the query tree or a number is larger than the limit.",
    "key_domain_too_large": "The public keys make more cells than the policy allows.",
    "no_groups": "The conditions rule out every group, so the answer would have no rows.",
    "accuracy_unreachable": "The asked accuracy cannot be promised, or needs more than the policy allows.",
    "cannot_be_planned": "The engine cannot plan the generated statement, whatever the rows are. The fault is ours.",
    "budget_exhausted": "An account on the path cannot pay for the query.",
    "no_budget": "The caller has no account for this dataset.",
    "above_max_cost": "The question would cost more than its max_cost.",
    "not_sharpened": "The stored answer cannot be made more precise for less than a new one.",
    "text_not_kept": "The server does not have the text of that query any more.",
    "policy_forbids": "The dataset's policy does not allow this query.",
    "window_closed": "The account's current window cannot pay; a later one may.",
    "execution_failed": "The query was started and gave no answer. It stays charged.",
}
"""Every refusal code with its meaning, one sentence each."""


@by_slots
@dataclass(frozen=True, slots=True)
class Position:
    """A place in a text: line and column count from 1; `text` is the fragment of the analyst's query, or empty."""

    line: int
    column: int
    text: str


@dataclass(frozen=True, slots=True)
class Finding:
    """One reason, in words that help: what was found or refused, why, and what to do instead (one entry per line).

    Its place is a `position` in a text, or a `field`, a dotted path of known names in a request or a dataset file, or
    both. Whatever reports it checks `code` against the codes that are allowed there.
    """

    code: str
    what: str
    why: str
    instead: tuple[str, ...] = ()
    position: Position | None = None
    field: str | None = None


class Refused(Exception):
    """A query that is not answered; nothing was spent. Carries every independent finding of one stage."""

    def __init__(self, findings: Iterable[Finding]) -> None:
        self.findings: tuple[Finding, ...] = tuple(findings)
        assert self.findings, "a refusal needs at least one finding"
        assert all(finding.code in CODES for finding in self.findings), "a refusal has a code of a refusal"
        super().__init__(self.findings[0].what)


class Collector:
    """Collects the findings of independent parts, so that a refusal reports all of them, each once and in order.

    Each part runs in `with collector:`. A part that is refused ends there; what comes after the block goes on.
    """

    def __init__(self) -> None:
        self._findings: dict[Finding, None] = {}

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        if not isinstance(error, Refused):
            return False
        self._findings.update(dict.fromkeys(error.findings))
        return True

    def __bool__(self) -> bool:
        """Whether anything was refused so far."""
        return bool(self._findings)

    def add(self, finding: Finding) -> None:
        """One more finding."""
        self._findings[finding] = None

    def refuse(self) -> None:
        """Raises Refused with everything that was found; nothing happens when that is nothing."""
        if self._findings:
            raise Refused(self._findings)


class ExecutionFailed(Exception):
    """The opaque outcome of everything that fails after the engine was started. Has no detail on purpose.

    `started` is False only when the engine provably never received a statement: then, and only then, the reservation
    may be voided.
    """

    def __init__(self, *, started: bool = True) -> None:
        self.started = started
        super().__init__("the query could not be completed")
