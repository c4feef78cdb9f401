"""An answer as JSON: the shape that docs/api.md promises.

An analyst sees what an answer cost on accounts of their own, never the balances above them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from fractions import Fraction

from accountant.account import Account
from privacy.numbers import decimal_text
from privacy.release import MechanismNote
from server.errors import finding_body
from server.estimands import counts_of, estimand, what_is_cut
from server.journey.query import Asked, Paid, Prepared
from server.journey.repeats import AnswerParts
from server.journey.wire_amounts import epsilon_text, own_json, remaining_json, share_text
from server.pricing import Priced
from sql_rewrite.plan_warnings import answer_warnings

__all__ = ["answer"]


def answer(asked: Asked, paid: Paid, parts: AnswerParts, account: Account) -> bytes:
    """The body of a settled query, as it is stored and sent. `account` is the one that paid, after it paid."""
    question, prepared, priced = asked.question, asked.prepared, asked.priced
    rows = parts.rows
    ids = [release.id for release in parts.releases.values()]
    events = [event for release in parts.releases.values() for event in release.events]
    own = {a.id for a in asked.path if a.principal == question.principal}
    spent = sum((charged.epsilon for charged in paid.charged if charged.account == account.id), Fraction(0))
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
                    "epsilon": epsilon_text(charged.epsilon, account),
                    "delta": decimal_text(charged.delta),
                }
                for charged in paid.charged
                if charged.account in own
            ],
            "reused": bool(prepared.cores) and len(paid.reused) == len(prepared.cores),
            "share": share_text(spent, account),
            "of": {"epsilon": decimal_text(account.limit.epsilon), "delta": decimal_text(account.limit.delta)},
            "own": own_json(events, account, prepared.plan.dataset),
            "saved": _saved(priced, len(paid.reused) - len(paid.read), len(prepared.cores), account),
            "remaining": remaining_json(account),
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


def _mechanisms(prepared: Prepared, notes: Sequence[Sequence[MechanismNote]]) -> list[dict[str, object]]:
    result = []
    for core, of_core in zip(prepared.cores, notes, strict=True):
        texts = {aggregate.name: aggregate.text for aggregate in core.core.aggregates}
        for note in of_core:
            shown: dict[str, object] = {
                "columns": [texts.get(name, name) for name in note.estimates],
                "mechanism": note.mechanism,
                "scale": note.scale,
                "sensitivity": note.sensitivity,
                "argument": note.argument,
                "share": note.share,
                **counts_of(core),
                "estimands": [
                    estimand(core, estimate) for estimate in core.described.estimates if estimate.name in note.estimates
                ],
            }
            result.append(shown)
    return result


def _saved(priced: Priced | None, reused: int, cores: int, account: Account) -> dict[str, str]:
    """What stored releases saved: the part of the nominal price that was not charged again."""
    saved = Fraction(0) if priced is None or not cores else priced.epsilon * reused / cores
    return {"epsilon": epsilon_text(saved, account)}
