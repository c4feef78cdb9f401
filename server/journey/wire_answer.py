"""Answers and estimates as JSON: the shapes that docs/api.md promises.

Amounts of epsilon and delta are decimal text. An analyst sees what an answer cost on accounts of their own, never the
balances above them.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from accountant.account import Account, FilterKind
from accountant.request import StoredRelease
from mechanisms.estimates import ExpectedError
from mechanisms.families import FAMILIES
from mechanisms.interval import two_sided_alpha
from mechanisms.released_table import ReleasedTable
from privacy.events import Event
from privacy.loss import Loss, compose
from privacy.numbers import decimal_text
from privacy.own import Own, own_figure
from privacy.policy import Dataset
from privacy.refusal import Finding
from privacy.release import ColumnKind, MechanismNote
from server.answer_rows import from_stored
from server.derived.at_once import why_none
from server.derived.cells import NoInterval
from server.errors import exhausted_words, finding_body
from server.estimands import estimand, what_is_cut
from server.journey.query import Asked, Paid, Prepared
from server.journey.repeats import AnswerParts
from server.pricing import Priced, cost_on, delta_that_fits, own_deltas
from server.question import Question
from sql_rewrite.bound import BoundedCore
from sql_rewrite.plan import Shell, ShellOutput
from sql_rewrite.plan_warnings import answer_warnings

__all__ = ["Quote", "Verdict", "answer", "estimate"]


class Verdict(StrEnum):
    """What an estimate says of its price. The values are sent."""

    FREE = "free"
    AFFORDABLE = "affordable"
    REJECTED_BUDGET = "rejected_budget"


@dataclass(frozen=True, slots=True)
class Quote:
    """What was found out about the price of a question.

    `families` are the candidates of all families of noise, the chosen one first; `least` is the least spend of a fresh
    run; `reusable` are stored releases that serve cores for free, by the core's key.
    """

    priced: Priced | None
    path: Sequence[Account]
    reusable: Mapping[str, StoredRelease]
    curve: Sequence[Priced]
    families: Sequence[Priced]
    least: Fraction | None
    keys: Sequence[str]
    """Keys of the cores, in the order of the plan."""


def answer(asked: Asked, paid: Paid, parts: AnswerParts, account: Account) -> bytes:
    """The body of a settled query, as it is stored and sent. `account` is the one that paid, after it paid."""
    question, prepared, priced = asked.question, asked.prepared, asked.priced
    rows = parts.rows
    ids = [release.id for release in parts.releases.values()]
    events = [event for release in parts.releases.values() for event in release.events]
    own = {a.id for a in asked.path if a.principal == question.principal}
    body = {
        "id": asked.query_id,
        "status": "settled",
        "columns": [
            {"name": name, "type": type_, "kind": kind, "interval": method}
            for (name, type_, kind), method in zip(rows.columns, rows.methods, strict=True)
        ],
        "rows": rows.rows,
        "standard_errors": rows.standard_errors,
        "lows": rows.lows,
        "highs": rows.highs,
        "interval_reasons": [
            {
                "column": reason.column,
                "rows": None if reason.rows is None else list(reason.rows),
                "code": reason.code,
                "why": reason.code.said,
            }
            for reason in rows.reasons
        ],
        "confidence": float(question.confidence),
        "warnings": [
            finding_body(warning) for warning in (*prepared.warnings, *answer_warnings(prepared.cores, len(rows.rows)))
        ],
        "accounting": {
            "charged": [
                {
                    "budget": charged.account,
                    "epsilon": _epsilon(charged.epsilon, account),
                    "delta": decimal_text(charged.delta),
                }
                for charged in paid.charged
                if charged.account in own
            ],
            "reused": bool(prepared.cores) and len(paid.reused) == len(prepared.cores),
            "share": _share(sum((c.epsilon for c in paid.charged if c.account == account.id), Fraction(0)), account),
            "of": {"epsilon": decimal_text(account.limit.epsilon), "delta": decimal_text(account.limit.delta)},
            "own": _own_text(_own(events, account, prepared.plan.dataset), account),
            "saved": _saved(priced, len(paid.reused) - len(paid.read), len(prepared.cores), account),
            "remaining": _remaining(account),
        },
        "provenance": {
            "releases": ids,
            "noise": None if priced is None else priced.family,
            "mechanisms": _mechanisms(prepared, parts.notes),
            "policy_version": prepared.plan.dataset.policy_version,
            "data_version": prepared.plan.dataset.data_version,
            "cut": [cut for core in prepared.cores if (cut := what_is_cut(core)) is not None],
            "intervals": "noise only; clipping and contribution bounds may bias an answer beside it",
        },
        "links": {
            "self": f"/v1/queries/{asked.query_id}",
            "releases": [f"/v1/releases/{release}" for release in ids],
            "budget": f"/v1/budgets/{account.id}",
        },
    }
    return json.dumps(body, separators=(",", ":"), allow_nan=False, ensure_ascii=False).encode()


def estimate(question: Question, prepared: Prepared, quote: Quote) -> dict[str, object]:
    """The body of an estimate: verdict, price, expected errors, what is bounded how, what may be reused."""
    priced, reusable, leaf = quote.priced, quote.reusable, quote.path[0]
    dataset = prepared.plan.dataset
    free = priced is None or len(reusable) == len(prepared.cores)
    verdict = Verdict.FREE
    if priced is not None and not free:
        verdict = Verdict.AFFORDABLE if priced.admitted else Verdict.REJECTED_BUDGET
    loss = None if free or priced is None else _loss(prepared, quote)
    cost = Fraction(0)
    if loss is not None and priced is not None:
        cost = cost_on(leaf, loss) if reusable else priced.cost
    delta = Fraction(0) if loss is None else loss.delta
    return {
        "verdict": verdict,
        "price": {
            "budget": leaf.id,
            "epsilon": _epsilon(cost, leaf),
            "delta": decimal_text(delta),
            "share": _share(cost, leaf),
            "of": {"epsilon": decimal_text(leaf.limit.epsilon), "delta": decimal_text(leaf.limit.delta)},
            "own": _own_text(_own(_used(prepared, quote), leaf, dataset), leaf),
            "least": None if quote.least is None else {"epsilon": decimal_text(quote.least)},
            "raised": priced is not None and priced.raised and not free,
        },
        "refusal": _exhausted(quote) if verdict is Verdict.REJECTED_BUDGET else None,
        "noise": None if priced is None else priced.family,
        "families": [_family(family, prepared, question, leaf, chosen=family is priced) for family in quote.families],
        "warnings": [finding_body(warning) for warning in prepared.warnings],
        "columns": _expected(prepared, priced, question, _stored_tables(prepared, quote, question)),
        "statistics": [] if priced is None else _statistics(prepared, priced),
        "contribution": [_contribution(core) for core in prepared.cores],
        "remaining": _remaining(leaf),
        "remaining_after": {
            "epsilon": _epsilon(max(leaf.remaining_epsilon() - cost, Fraction(0)), leaf, up=False),
            "delta": decimal_text(max(leaf.remaining_delta() - delta, Fraction(0)), up=False),
        },
        "curve": [_point(point, prepared, question, leaf) for point in quote.curve],
        "reusable": [f"/v1/releases/{release.id}" for release in reusable.values()],
        "policy_version": prepared.plan.dataset.policy_version,
        "data_version": prepared.plan.dataset.data_version,
    }


def _contribution(core: BoundedCore) -> dict[str, object]:
    """The contribution bounds of a core, and what they may cut."""
    return {
        "table": core.core.sources[0].table.name,
        "groups_per_unit": core.contribution.groups,
        "rows_per_unit_and_group": core.contribution.rows,
        "rows_per_unit": core.contribution.total,
        "cut": what_is_cut(core),
        "estimands": {
            aggregate.text: estimand(core, estimate)
            for aggregate, estimate in zip(core.core.aggregates, core.described.estimates, strict=True)
        },
        "keys": "public" if core.described.keys.selection is None else "thresholded",
        "cells": None if core.described.keys.domain is None else len(core.described.keys.domain),
    }


def _point(point: Priced, prepared: Prepared, question: Question, leaf: Account) -> dict[str, object]:
    """The query at another spend: what it would cost, and how exact it would be."""
    return {
        "epsilon": _epsilon(point.cost, leaf),
        "share": _share(point.cost, leaf),
        "own": _own_text(_own(point.calibration.events(), leaf, prepared.plan.dataset), leaf),
        "noise": point.family,
        "affordable": point.admitted,
        "standard_errors": {
            aggregate.text: error
            for core in prepared.cores
            for aggregate, error in zip(
                core.core.aggregates,
                point.calibration.predicted_errors(core.described.name).values(),
                strict=True,
            )
        },
        "by_rows": {
            aggregate.text: _by_rows(expected[aggregate.name])
            for core in prepared.cores
            for expected in [_expected_errors(point, core.described.name, question, prepared.at_once())]
            for aggregate in core.core.aggregates
            if aggregate.name in expected
        },
    }


def _loss(prepared: Prepared, quote: Quote) -> Loss:
    """The loss of the cores that no stored release answers: what would be charged."""
    assert quote.priced is not None
    calibration = quote.priced.calibration
    fresh = [c for c, key in zip(prepared.cores, quote.keys, strict=True) if key not in quote.reusable]
    return compose([event for core in fresh for event in calibration.events_of(core.described.name)])


def _used(prepared: Prepared, quote: Quote) -> list[Event]:
    """The events of everything that the answer would use: stored releases where they serve, fresh ones elsewhere."""
    if quote.priced is None:
        return []
    events: list[Event] = []
    for core, key in zip(prepared.cores, quote.keys, strict=True):
        stored = quote.reusable.get(key)
        events.extend(quote.priced.calibration.events_of(core.described.name) if stored is None else stored.events)
    return events


def _own(events: Sequence[Event], account: Account, dataset: Dataset) -> Own:
    return own_figure(events, **own_deltas(account, dataset))


def _own_text(own: Own, account: Account) -> dict[str, str]:
    return {"epsilon": _epsilon(own.epsilon, account), "delta": decimal_text(own.delta)}


def _share(cost: Fraction, account: Account) -> str:
    """The part of the account's limit, from 0 to 1: exact or rounded up."""
    return decimal_text(cost / account.limit.epsilon, places=9)


def _exhausted(quote: Quote) -> dict[str, object]:
    """Why a query would be refused that the budget does not cover, in the words of that refusal."""
    assert quote.priced is not None
    why, instead = exhausted_words(None, delta_that_fits(quote.path, quote.priced.loss))
    return finding_body(
        Finding(code="budget_exhausted", what="the budget does not cover this query", why=why, instead=instead)
    )


def _family(
    priced: Priced, prepared: Prepared, question: Question, leaf: Account, *, chosen: bool
) -> dict[str, object]:
    """What one family of noise would give for the wish, and what it would leave for later questions."""
    after = leaf.after(priced.loss)
    dataset = prepared.plan.dataset
    return {
        "noise": priced.family,
        "chosen": chosen,
        "affordable": priced.admitted,
        "price": {
            "epsilon": _epsilon(priced.cost, leaf),
            "share": _share(priced.cost, leaf),
            "delta": decimal_text(priced.delta),
            "own": _own_text(_own(priced.calibration.events(), leaf, dataset), leaf),
        },
        "columns": [
            {key: column[key] for key in ("name", "standard_error", "half_width", "by_rows")}
            for column in _expected(prepared, priced, question, {})
            if column["kind"] != "key"
        ],
        "remaining_after": _remaining(after),
        "questions_left_after": _questions_left(after, dataset.limits.epsilon_default),
    }


def _questions_left(account: Account, epsilon: Fraction) -> dict[str, int]:
    """How many questions of this nominal epsilon and public groups the account admits one after another, by noise."""
    left: dict[str, int] = {}
    for family, entry in FAMILIES.items():
        if not entry.currency.pays(account):
            continue
        try:
            amount = entry.currency.nominal_amount(epsilon, account)
        except ValueError:
            left[family] = 0
            continue
        left[family] = account.charges_left(entry.loss(amount))
    return left


@dataclass(frozen=True, slots=True)
class _ColumnError:
    """What is known before the answer of the errors of a column: None where it depends on the answer.

    `reason` says why there is no half-width although the column is released as it is.
    """

    standard_error: float | None = None
    half_width: float | None = None
    by_rows: tuple[ExpectedError, ...] = ()
    stored: bool = False
    reason: NoInterval | None = None


def _stored_tables(prepared: Prepared, quote: Quote, question: Question) -> dict[str, ReleasedTable]:
    """The stored releases that would serve for free, by core: their errors are what one gets."""
    if quote.priced is None:
        return {}
    return {
        core.described.name: from_stored(quote.reusable[key].body, core.described.name, question.confidence)
        for core, key in zip(prepared.cores, quote.keys, strict=True)
        if key in quote.reusable
    }


def _greatest(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return max(known) if known and len(known) == len(values) else None


def _expected(
    prepared: Prepared, priced: Priced | None, question: Question, stored: Mapping[str, ReleasedTable]
) -> list[dict[str, object]]:
    """The error of each column: that of the stored release where one serves, otherwise the expected one.

    The expected one of a ratio, which depends on how many rows a group has, is given for some numbers.
    """
    shell = prepared.plan.shell
    cells = prepared.at_once({name: table.rows for name, table in stored.items()})
    selected = {core.described.name for core in prepared.cores if core.described.keys.selection is not None}
    errors: dict[tuple[str, str], _ColumnError] = {}
    for name in (core.described.name for core in prepared.cores):
        table = stored.get(name)
        if table is not None:
            errors |= {(name, column): error for column, error in _stored_errors(table, question, cells).items()}
        elif priced is not None:
            errors |= {(name, column): error for column, error in _fresh_errors(priced, name, question, cells).items()}
    result: list[dict[str, object]] = []
    for output in shell.outputs:
        error = _of_output(shell, output, errors, selected)
        result.append(
            {
                "name": output.name,
                "kind": output.kind,
                "standard_error": error.standard_error,
                "half_width": error.half_width,
                "half_width_reason": None if error.reason is None else {"code": error.reason, "why": error.reason.said},
                "by_rows": _by_rows(error.by_rows),
                "stored": error.stored,
            }
        )
    return result


def _of_output(
    shell: Shell, output: ShellOutput, errors: Mapping[tuple[str, str], _ColumnError], selected: Collection[str]
) -> _ColumnError:
    """The error of a column that is released as it is: in a UNION ALL the widest of its branches."""
    if output.kind != ColumnKind.RELEASED:
        return _ColumnError()
    if output.branches:
        branches = [_of_output(shell, branch, errors, selected) for branch in output.branches]
        return _ColumnError(
            _greatest([branch.standard_error for branch in branches]),
            _greatest([branch.half_width for branch in branches]),
            stored=all(branch.stored for branch in branches),
            reason=next((branch.reason for branch in branches if branch.reason is not None), None),
        )
    error = errors.get((output.core or "", output.column or ""), _ColumnError())
    reason = why_none(shell, output.trace, selected)
    if reason is None:
        return error
    return dataclasses.replace(error, half_width=None, by_rows=_without_widths(error.by_rows), reason=reason)


def _stored_errors(table: ReleasedTable, question: Question, cells: int | None) -> dict[str, _ColumnError]:
    """The greatest error and half-width of each column of a stored release, None where a cell's is not known."""
    found: dict[str, _ColumnError] = {}
    for column in (column for column in table.columns if column.role == ColumnKind.RELEASED):
        ends: tuple[Sequence[float | int | None], Sequence[float | int | None]] | None = (column.lows, column.highs)
        if cells is not None and cells > 1:
            ends = table.ends(column.name, two_sided_alpha(question.confidence, cells))
        widths: list[float | None] = [None]
        if ends is not None and cells is not None:
            widths = [
                None if low is None or high is None else (float(high) - float(low)) / 2
                for low, high in zip(*ends, strict=True)
            ]
        reason = NoInterval.CELLS_NOT_KNOWN if cells is None else NoInterval.STORED_WITHOUT_SUMS
        found[column.name] = _ColumnError(
            _greatest(column.standard_errors),
            _greatest(widths),
            stored=True,
            reason=reason if cells is None or ends is None else None,
        )
    return found


def _fresh_errors(priced: Priced, core: str, question: Question, cells: int | None) -> dict[str, _ColumnError]:
    """The errors that a fresh release of a core would have, by column."""
    widths: Mapping[str, float | None] = {}
    if cells is not None:
        widths = priced.calibration.predicted_half_widths(core, question.confidence, cells=cells)
    ratios = _expected_errors(priced, core, question, cells)
    reason = NoInterval.CELLS_NOT_KNOWN if cells is None else None
    return {
        column: _ColumnError(error, widths.get(column), ratios.get(column, ()), reason=reason)
        for column, error in priced.calibration.predicted_errors(core).items()
    }


def _expected_errors(
    priced: Priced, core: str, question: Question, cells: int | None
) -> dict[str, tuple[ExpectedError, ...]]:
    """The errors of each ratio in groups of some sizes, without half-widths where it is not known how many hold."""
    expected = priced.calibration.expected_errors(core, question.confidence, cells=cells or 1)
    return expected if cells is not None else {name: _without_widths(sizes) for name, sizes in expected.items()}


def _without_widths(sizes: Sequence[ExpectedError]) -> tuple[ExpectedError, ...]:
    return tuple(dataclasses.replace(size, half_width=None) for size in sizes)


def _by_rows(expected: Sequence[ExpectedError]) -> list[dict[str, object]]:
    return [dataclasses.asdict(error) for error in expected]


def _statistics(prepared: Prepared, priced: Priced) -> list[dict[str, object]]:
    result = []
    for measurement in priced.calibration.measurements:
        core = next(c for c in prepared.cores if c.described.name == measurement.core)
        result.append(
            {
                "core": measurement.core,
                "argument": measurement.statistic.argument,
                "mechanism": measurement.name,
                "share": decimal_text(measurement.share, places=6),
                "answers": [
                    aggregate.text
                    for aggregate, e in zip(core.core.aggregates, core.described.estimates, strict=True)
                    if e.statistic == measurement.statistic.name
                ],
                "selects_groups": core.described.keys.selection == measurement.statistic.name,
            }
        )
    return result


def _mechanisms(prepared: Prepared, notes: Sequence[Sequence[MechanismNote]]) -> list[dict[str, object]]:
    result = []
    for core, of_core in zip(prepared.cores, notes, strict=True):
        texts = {aggregate.name: aggregate.text for aggregate in core.core.aggregates}
        for note in of_core:
            shown = {
                "columns": [texts.get(name, name) for name in note.estimates],
                "mechanism": note.mechanism,
                "scale": note.scale,
                "sensitivity": note.sensitivity,
                "argument": note.argument,
                "share": note.share,
                "groups_per_unit": core.contribution.groups,
                "rows_per_unit_and_group": core.contribution.rows,
                "rows_per_unit": core.contribution.total,
                "estimands": [
                    estimand(core, estimate) for estimate in core.described.estimates if estimate.name in note.estimates
                ],
            }
            result.append(shown)
    return result


def _saved(priced: Priced | None, reused: int, cores: int, account: Account) -> dict[str, str]:
    """What stored releases saved: the part of the nominal price that was not charged again."""
    saved = Fraction(0) if priced is None or not cores else priced.epsilon * reused / cores
    return {"epsilon": _epsilon(saved, account)}


def _remaining(account: Account) -> dict[str, str]:
    return {
        "epsilon": _epsilon(account.remaining_epsilon(), account, up=False),
        "delta": decimal_text(account.remaining_delta(), up=False),
    }


def _epsilon(value: Fraction, account: Account, *, up: bool = True) -> str:
    """Epsilon as text: exact of a pure account, in millionths of an approximate one, where it is a gauge.

    A share of a Gaussian budget has digits that nobody can use; what is spent is rounded up, what is left down.
    """
    places = 12 if account.filter is FilterKind.PURE else 6
    if up and places == 6 and value < Fraction(1, 10**4):
        places = 12
    return decimal_text(value, places=places, up=up)
