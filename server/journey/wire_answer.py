"""An answer as JSON: the shape that docs/api.md promises.

An analyst sees what an answer cost on accounts of their own, never the balances above them.

    {identifier and status, table, accounting, provenance, links}

The table (columns, rows, errors, intervals, warnings) is most of it. It and the provenance are the same whenever the
answer is given again, so they are written once and kept as bytes, and the ledger stores the table once.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from accountant.account import Account
from accountant.request import Charged, SharedAnswer, StoredRelease
from mechanisms.released_table import ReleasedTable
from privacy.numbers import decimal_text
from privacy.refusal import Finding
from server.answer_rows import AnswerRows
from server.derived.cells import IntervalMethod
from server.errors import finding_body
from server.estimands import counts_of, estimand, what_is_cut
from server.journey.column_cut import beyond_noise
from server.journey.merging import MergedRows
from server.journey.nobody import nobody_warnings
from server.journey.nonnegative import adjusted_json
from server.journey.query import Asked, Paid, Prepared, ToRun
from server.journey.repeats import AnswerParts
from server.journey.wire_amounts import epsilon_text, own_json, remaining_json, share_text
from server.journey.wire_bounds import bounds_warnings, chosen_bounds_json
from server.journey.wire_choice import choice_warnings, chosen_json
from server.journey.wire_cut import with_cut_json
from server.journey.wire_derived import derived_json
from server.journey.wire_held import held_warnings
from server.journey.wire_merged import merged_json, merged_warnings
from server.journey.wire_norms import cut_warnings, norm_json
from server.journey.wire_parts import answer_parts
from server.journey.wire_sharpened import sharpened_json, sharpened_warnings
from server.journey.wire_strategy import strategy_json
from server.pricing import Priced
from sql_rewrite.plan_warnings import answer_warnings

__all__ = ["answer", "parts_of", "shared_part"]


def parts_of(
    asked: Asked,
    rows: AnswerRows,
    tables: Sequence[ReleasedTable],
    releases: Mapping[str, StoredRelease],
    merged: MergedRows | None = None,
) -> AnswerParts:
    """What is the same in every answer to a question that these releases (by core key, without bodies) serve.

    `tables` are those of the cores, in their order: their notes say what was done. `merged` says which groups were.
    """
    if merged is not None:
        methods = (None if method is None else IntervalMethod.SIMULTANEOUS for method in rows.methods)
        rows = replace(rows, methods=tuple(methods))
    question, prepared, priced = asked.question, asked.prepared, asked.priced
    choices = chosen_json(prepared.cores, tables, question.confidence)
    table: dict[str, object] = {
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
            finding_body(warning)
            for warning in (
                *_warnings(prepared, rows, tables, choices, question.confidence),
                *(() if merged is None else merged_warnings(merged)),
            )
        ],
    }
    if merged is not None:
        table["merged"] = merged_json(merged, prepared, tables[0])
    if question.nonnegative:
        table["adjusted"] = adjusted_json(prepared)
    if question.with_cut:
        table["with_cut"] = with_cut_json(prepared.cores, tables, prepared.plan.shell.outputs, rows)
    provenance = {
        "releases": [release.id for release in releases.values()],
        "noise": None if priced is None else priced.family,
        "mechanisms": _mechanisms(prepared, tables, merged),
        "policy_version": prepared.plan.dataset.policy_version,
        "data_version": prepared.plan.dataset.data_version,
        **({"derived": derived} if (derived := derived_json(prepared, asked.sums, releases)) else {}),
        "cut": [
            cut
            for core, of_core in zip(prepared.cores, tables, strict=True)
            if (cut := what_is_cut(core, of_core.norms, of_core.bounds)) is not None
        ],
        **({"choices": choices} if choices else {}),
        "value_bounds": chosen_bounds_json(prepared.cores, [table.bounds for table in tables]),
        "norms": [
            norm_json(core, note)
            for core, of_core in zip(prepared.cores, tables, strict=True)
            for note in of_core.norms
        ],
        "intervals": "noise only; clipping and contribution bounds may bias an answer beside it",
    }
    return AnswerParts(
        table=_json(table)[1:-1],
        provenance=_json(provenance),
        cells=len(rows.columns) * len(rows.rows),
        releases=releases,
        priced=priced,
        charges=asked.charges,
    )


def _warnings(
    prepared: Prepared,
    rows: AnswerRows,
    tables: Sequence[ReleasedTable],
    choices: Sequence[dict[str, object]],
    confidence: Fraction,
) -> Sequence[Finding]:
    """What the text, the rows that are shown and the notes of the releases call for."""
    known = {core.described.name: (core, table) for core, table in zip(prepared.cores, tables, strict=True)}
    return (
        *prepared.warnings,
        *answer_warnings(prepared.cores, len(rows.rows), [table.rows for table in tables]),
        *cut_warnings([table.norms for table in tables]),
        *beyond_noise(known, prepared.plan.shell.outputs, rows),
        *bounds_warnings([table.bounds for table in tables]),
        *nobody_warnings(prepared.cores, tables),
        *held_warnings(prepared.cores, tables),
        *sharpened_warnings(tables, confidence),
        *choice_warnings(choices),
    )


def answer(asked: Asked, paid: Paid, parts: AnswerParts, account: Account, *, first: ToRun | None = None) -> bytes:
    """The body of a settled query, as it is stored and sent. `account` is the one that paid, after it paid.

    `first` is the query of the first of two charges, where the answer is that of both.
    """
    question, prepared, priced = asked.question, asked.prepared, asked.priced
    events = [event for release in parts.releases.values() for event in release.events]
    own = {a.id for a in asked.path if a.principal == question.principal}
    if question.envelope:
        own.add(asked.path[0].id)
    second = sum((charged.epsilon for charged in paid.charged if charged.account == account.id), Fraction(0))
    every = _together((), paid.charged) if first is None else _together(first.paid.charged, paid.charged)
    spent = sum((charged.epsilon for charged in every if charged.account == account.id), Fraction(0))
    query_id = asked.query_id if first is None else first.query_id
    rest = {
        "accounting": {
            "charged": [
                {
                    "budget": charged.account,
                    "epsilon": epsilon_text(charged.epsilon, account),
                    "delta": decimal_text(charged.delta),
                }
                for charged in every
                if charged.account in own
            ],
            "parts": []
            if paid.read or (first is not None and first.paid.read)
            else answer_parts(asked, paid.reused, second, account, first=first),
            "reused": bool(prepared.cores)
            and all(one.core_key in paid.reused for one in asked.charges)
            and (first is None or not first.paid.charged),
            "share": share_text(spent, account),
            "of": {"epsilon": decimal_text(account.limit.epsilon), "delta": decimal_text(account.limit.delta)},
            "own": own_json(events, account, prepared.plan.dataset),
            "saved": _saved(priced, _free_cores(asked, paid), len(prepared.cores), account),
            "sharpened": sharpened_json(
                asked.raised, asked.whole, priced, [one.core_key for one in asked.sums], account
            ),
            "remaining": remaining_json(account),
        },
    }
    links = {
        "self": f"/v1/queries/{query_id}",
        "releases": [f"/v1/releases/{release.id}" for release in parts.releases.values()],
        "budget": f"/v1/budgets/{account.id}",
    }
    written = _json(rest)[1:-1], b'"provenance":' + parts.provenance, b'"links":' + _json(links)
    return _head(query_id) + b",".join((parts.table, *written)) + b"}"


def shared_part(parts: AnswerParts, query_id: str) -> SharedAnswer | None:
    """Which part of the answer of a query is the same in the one that was told first; None when none was told."""
    if parts.told_by is None:
        return None
    start = len(_head(parts.told_by))
    return SharedAnswer(query_id=parts.told_by, start=start, end=start + len(parts.table), at=len(_head(query_id)))


def _together(*charges: Sequence[Charged]) -> list[Charged]:
    """What each account was charged by all of them."""
    found: dict[str, Charged] = {}
    for one in (one for part in charges for one in part):
        known = found.get(one.account, Charged(one.account, Fraction(0), Fraction(0)))
        found[one.account] = Charged(one.account, known.epsilon + one.epsilon, known.delta + one.delta)
    return list(found.values())


def _head(query_id: str) -> bytes:
    """How every answer begins: with what comes before the columns."""
    return f'{{"id":"{query_id}","status":"settled",'.encode()


def _json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":"), allow_nan=False, ensure_ascii=False).encode()


def _mechanisms(
    prepared: Prepared, tables: Sequence[ReleasedTable], merged: MergedRows | None
) -> list[dict[str, object]]:
    result = []
    for core, table in zip(prepared.cores, tables, strict=True):
        texts = {aggregate.name: aggregate.text for aggregate in core.core.aggregates}
        drawn = {
            one.measurement.statistic.name: one.measurement
            for one in table.sums or (() if merged is None else merged.sums)
        }
        for note in table.notes:
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
                **(strategy_json(drawn[note.statistic]) if note.statistic in drawn else {}),
            }
            result.append(shown)
    return result


def _free_cores(asked: Asked, paid: Paid) -> int:
    """How many cores were served for free."""
    charges = asked.charges[: len(asked.prepared.cores)]
    return sum(charge.core_key in paid.reused and charge.core_key not in paid.read for charge in charges)


def _saved(priced: Priced | None, reused: int, cores: int, account: Account) -> dict[str, str]:
    """What stored releases saved: the part of the nominal price that was not charged again."""
    saved = Fraction(0) if priced is None or not cores else priced.epsilon * reused / cores
    return {"epsilon": epsilon_text(saved, account)}
