"""A question in GoogleSQL's spelling as one of ours: its options are the request's own, and its text is plain."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from privacy.bounds import AskedContribution
from privacy.policy import Dataset
from privacy.refusal import Finding, Refused
from server.question import Question
from sql_rewrite.bounded import BoundedCore
from sql_rewrite.google_clause import Clause, respelled

__all__ = ["check_clause", "check_groups", "plain_question"]


def plain_question(question: Question) -> Question:
    """The question without GoogleSQL's clause: its epsilon is the answer's own, its bounds are those of the request.

    The question as it is where its text has none. Errors: Refused, also where the request says the same otherwise.
    """
    found = respelled(question.sql)
    if found is None:
        return question
    clause = found.clause
    priced = (question.epsilon, question.own_epsilon, question.half_width, question.relative)
    if clause.epsilon is not None and any(amount is not None for amount in priced):
        raise Refused([_twice("epsilon", "spend or accuracy")])
    if clause.delta is not None and question.delta is not None:
        raise Refused([_twice("delta", "delta")])
    asked = AskedContribution(
        rows_per_unit=clause.rows_per_unit,
        groups_per_unit=clause.groups_per_unit,
        rows_per_unit_and_group=clause.rows_per_unit_and_group,
    )
    bounded = asked != AskedContribution()
    if bounded and question.contribution is not None:
        raise Refused([_twice("bounds", "contribution")])
    return replace(
        question,
        sql=found.sql,
        own_epsilon=question.own_epsilon if clause.epsilon is None else clause.epsilon,
        delta=question.delta if clause.delta is None else clause.delta,
        contribution=asked if bounded else question.contribution,
        clause=clause,
    )


def check_clause(clause: Clause | None, dataset: Dataset) -> None:
    """Refuses a clause that names another privacy unit than the dataset's. Errors: Refused."""
    if clause is None or clause.unit_column is None:
        return
    names = {dataset.unit.key, *(table.unit_column for table in dataset.tables if table.protected)} - {None}
    known = sorted(name for name in names if name is not None)
    if clause.unit_column.lower() not in {name.lower() for name in known}:
        raise Refused(
            [
                Finding(
                    code="unsupported_sql",
                    what=f'privacy_unit_column = "{clause.unit_column}" is refused',
                    why="Whom a dataset protects is declared with it, and no query can choose another unit.",
                    instead=(
                        "leave privacy_unit_column out",
                        *(f"privacy_unit_column = {name}" for name in known),
                    ),
                )
            ]
        )


def check_groups(clause: Clause | None, cores: Iterable[BoundedCore]) -> None:
    """Refuses a clause that says that groups are public where some are not. Errors: Refused."""
    if clause is None or not clause.public_groups:
        return
    if any(core.described.keys.selection is not None for core in cores):
        raise Refused(
            [
                Finding(
                    code="unsupported_sql",
                    what="group_selection_strategy = PUBLIC_GROUPS is refused",
                    why="A key of its groups is not public: nobody declared its values.",
                    instead=(
                        "group by columns with declared keys",
                        "leave group_selection_strategy out: groups of enough units are shown",
                    ),
                )
            ]
        )


def _twice(what: str, field: str) -> Finding:
    return Finding(
        code="unsupported_sql",
        what=f"the {what} of GoogleSQL's clause is refused",
        why=f'The request says it too, in "{field}", and one of them would be ignored.',
        instead=("leave it out of OPTIONS", f'leave "{field}" out of the request'),
    )
