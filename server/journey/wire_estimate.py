"""An estimate as JSON: the shape that docs/api.md promises."""

from __future__ import annotations

from enum import StrEnum
from fractions import Fraction

from accountant.account import Account
from accountant.entry import from_micros
from mechanisms.released_table import ReleasedTable
from privacy.composition import compose
from privacy.events import Event
from privacy.loss import Loss
from privacy.numbers import decimal_text
from privacy.refusal import Finding
from privacy.release import NormNote
from server.errors import exhausted_words, finding_body, window_words
from server.estimands import counts_of, estimand, what_is_cut
from server.journey.charges import wish_of
from server.journey.held import stored_table
from server.journey.norms import Foreseen, foresee
from server.journey.query import Prepared, Quote
from server.journey.two_charges import said_before
from server.journey.wire_amounts import epsilon_text, own_json, remaining_json, share_text
from server.journey.wire_bounds import bounds_before, open_argument, open_bounds_json
from server.journey.wire_choice import choice_warnings, expected_choices_json
from server.journey.wire_errors import by_rows_json, errors_by_rows, expected_columns, unbounded_columns
from server.journey.wire_merged import merging_json
from server.journey.wire_norms import norm_json, open_norms_json
from server.journey.wire_parts import estimate_parts, fresh_names
from server.journey.wire_sharpened import bought_events, expected_warnings, sharpened_json
from server.journey.wire_strategy import running_errors_json, strategy_json
from server.pricing import Priced, delta_that_fits
from server.question import Question
from server.spends import cost_on
from server.weighing import next_error, questions_left
from sql_rewrite.bound import BoundedCore

__all__ = ["Verdict", "estimate"]


class Verdict(StrEnum):
    """What an estimate says of its price. The values are sent."""

    FREE = "free"
    AFFORDABLE = "affordable"
    REJECTED_BUDGET = "rejected_budget"


def estimate(question: Question, prepared: Prepared, quote: Quote) -> dict[str, object]:
    """The body of an estimate: verdict, price, expected errors, what is bounded how, what may be reused."""
    priced, reusable, leaf = quote.priced, quote.reusable, quote.path[0]
    dataset = prepared.plan.dataset
    free = priced is None or (not quote.histograms_only and all(key in reusable for key in quote.keys))
    verdict = Verdict.FREE
    if priced is not None and not free:
        verdict = Verdict.AFFORDABLE if priced.admitted else Verdict.REJECTED_BUDGET
    loss = None if free or priced is None else _loss(prepared, quote)
    cost = Fraction(0)
    if loss is not None and priced is not None:
        cost = cost_on(leaf, loss) if reusable else priced.cost
    first = epsilon_text(cost, leaf)
    before = [said_before(question, dataset, leaf, first)] if quote.histograms_only else []
    seen = None if priced is None else foresee(prepared, priced, quote.histograms)
    notes = prepared.notes if seen is None else seen.notes
    choices = expected_choices_json(prepared.cores, priced, question.confidence)
    delta = Fraction(0) if loss is None else loss.delta
    return {
        "verdict": verdict,
        "price": {
            "budget": leaf.id,
            "epsilon": first,
            "delta": decimal_text(delta),
            "then_at_most": {"epsilon": decimal_text(wish_of(question).most(dataset))}
            if quote.histograms_only
            else None,
            "parts": estimate_parts(prepared, quote, cost),
            "share": share_text(cost, leaf),
            "of": {"epsilon": decimal_text(leaf.limit.epsilon), "delta": decimal_text(leaf.limit.delta)},
            "own": own_json(_used(prepared, quote), leaf, dataset),
            "least": None if quote.least is None else {"epsilon": decimal_text(quote.least)},
            "raised": priced is not None and priced.raised and not free,
        },
        "refusal": _exhausted(quote) if verdict is Verdict.REJECTED_BUDGET else None,
        "noise": None if priced is None else priced.family,
        "families": [
            _family(foresee(prepared, family, quote.histograms), prepared, question, leaf, chosen=family is priced)
            for family in quote.families
        ],
        "warnings": [
            finding_body(warning)
            for warning in (
                *before,
                *prepared.warnings,
                *expected_warnings(quote.raised, question.confidence),
                *choice_warnings(choices),
            )
        ],
        "choices": choices,
        "columns": expected_columns(prepared, seen, question, _stored_tables(prepared, quote, question)),
        "statistics": [] if priced is None or quote.histograms_only else _statistics(prepared, priced),
        "merging": None if question.merge is None else merging_json(question.merge, prepared),
        "contribution": [
            _contribution(prepared, core, notes.get(core.described.name, ()), priced) for core in prepared.cores
        ],
        "remaining": remaining_json(leaf),
        "remaining_after": {
            "epsilon": epsilon_text(max(leaf.remaining_epsilon() - cost, Fraction(0)), leaf, up=False),
            "delta": decimal_text(max(leaf.remaining_delta() - delta, Fraction(0)), up=False),
        },
        "curve": [
            _point(foresee(prepared, point, quote.histograms), prepared, question, leaf) for point in quote.curve
        ],
        "sharpening": sharpened_json(quote.raised, quote.whole, priced, quote.keys, leaf),
        "reusable": [f"/v1/releases/{release.id}" for release in reusable.values()],
        "policy_version": prepared.plan.dataset.policy_version,
        "data_version": prepared.plan.dataset.data_version,
    }


def _contribution(
    prepared: Prepared, core: BoundedCore, notes: tuple[NormNote, ...], priced: Priced | None
) -> dict[str, object]:
    """The contribution bounds of a core, and what they may cut."""
    bounds, is_open = bounds_before(core, prepared)
    return {
        "table": core.core.sources[0].table.name,
        **counts_of(core),
        "norms": [norm_json(core, note) for note in notes]
        or [
            {**norm, "argument": open_argument(str(norm["argument"]), is_open=is_open)}
            for norm in open_norms_json(core, priced)
        ],
        "value_bounds": open_bounds_json(core, prepared),
        "cut": what_is_cut(core, notes, bounds, open_bounds=is_open),
        "estimands": {
            aggregate.text: estimand(core, estimate)
            for aggregate, estimate in zip(core.core.aggregates, core.described.estimates, strict=True)
        },
        "keys": "public" if core.described.keys.selection is None else "thresholded",
        "shown_from": _shown_from(core, priced),
        "cells": None if core.described.keys.domain is None else len(core.described.keys.domain),
    }


_GROUPS = (1, 10, 100)
"""Groups of a unit for which an estimate says how many units a hidden group needs."""


def _shown_from(core: BoundedCore, priced: Priced | None) -> list[dict[str, int]]:
    """How many units a hidden group needs to be shown with a chance of a half, each with so many groups."""
    selection = core.described.keys.selection
    if selection is None or priced is None or core.described.name not in {c.name for c in priced.calibration.cores}:
        return []
    measurement = priced.calibration.measurement(core.described.name, selection)
    most = core.described.keys.groups_per_unit
    found = [(groups, measurement.half_shown(groups)) for groups in _GROUPS if groups <= most]
    if len({units for _, units in found}) == 1:
        found = found[:1]  # the number of groups makes no difference
    return [{"groups_per_unit": groups, "units": units} for groups, units in found if units is not None]


def _statistics(prepared: Prepared, priced: Priced) -> list[dict[str, object]]:
    """What the price buys: each core's statistics, and the histograms of norms with no column of the answer."""
    cores = {core.described.name: core for core in prepared.cores}
    result = []
    for measurement in priced.calibration.measurements:
        core = cores.get(measurement.core)
        result.append(
            {
                "core": measurement.core,
                "argument": open_argument(
                    measurement.statistic.argument,
                    is_open=prepared.values is not None and measurement.core in prepared.values.places,
                ),
                "mechanism": measurement.name,
                "share": decimal_text(measurement.share, places=6),
                "answers": []
                if core is None
                else [
                    aggregate.text
                    for aggregate, e in zip(core.core.aggregates, core.described.estimates, strict=True)
                    if e.statistic == measurement.statistic.name
                ],
                **strategy_json(measurement),
                **({} if core is None else running_errors_json(core.described, measurement)),
                "selects_groups": core is not None and core.described.keys.selection == measurement.statistic.name,
            }
        )
    return result


def _point(seen: Foreseen, prepared: Prepared, question: Question, leaf: Account) -> dict[str, object]:
    """The query at another spend: what it would cost, and how exact it would be."""
    point = seen.priced
    known = [core for core in prepared.cores if core.described.name not in seen.open]
    unknown = {core.described.name: unbounded_columns(seen, core.described.name) for core in known}
    return {
        "epsilon": epsilon_text(point.cost, leaf),
        "share": share_text(point.cost, leaf),
        "own": own_json(point.calibration.events(), leaf, prepared.plan.dataset),
        "noise": point.family,
        "affordable": point.admitted,
        "standard_errors": {
            aggregate.text: None if aggregate.name in unknown.get(core.described.name, ()) else error
            for core in prepared.cores
            for aggregate, error in zip(
                core.core.aggregates,
                point.calibration.predicted_errors(core.described.name).values()
                if core in known
                else [None] * len(core.core.aggregates),
                strict=True,
            )
        },
        "by_rows": {
            aggregate.text: by_rows_json(expected[aggregate.name])
            for core in known
            for expected in [errors_by_rows(point, core.described.name, question, prepared.at_once())]
            for aggregate in core.core.aggregates
            if aggregate.name in expected and aggregate.name not in unknown[core.described.name]
        },
    }


def _family(
    seen: Foreseen, prepared: Prepared, question: Question, leaf: Account, *, chosen: bool
) -> dict[str, object]:
    """What one family of noise would give for the wish, and what it would leave for later questions."""
    priced = seen.priced
    after = leaf.after(priced.loss)
    dataset = prepared.plan.dataset
    return {
        "noise": priced.family,
        "chosen": chosen,
        "affordable": priced.admitted,
        "price": {
            "epsilon": epsilon_text(priced.cost, leaf),
            "share": share_text(priced.cost, leaf),
            "delta": decimal_text(priced.delta),
            "own": own_json(priced.calibration.events(), leaf, dataset),
        },
        "columns": [
            {key: column[key] for key in ("name", "standard_error", "half_width", "by_rows")}
            for column in expected_columns(prepared, seen, question, {})
            if column["kind"] != "key"
        ],
        "remaining_after": remaining_json(after),
        "questions_left_after": questions_left([after], dataset.limits.epsilon_default),
        "later": {
            "like_this": after.charges_left(priced.loss),
            "epsilon": decimal_text(dataset.limits.epsilon_default),
            "standard_error": next_error(after, dataset.limits.epsilon_default),
        },
    }


def _fresh(prepared: Prepared, quote: Quote) -> list[str]:
    """The names of what no stored release answers: of cores, and of the histograms that they need."""
    return [name for names in fresh_names(prepared, quote).values() for name in names]


def _loss(prepared: Prepared, quote: Quote) -> Loss:
    """The loss of what no stored release answers: what would be charged."""
    assert quote.priced is not None
    return compose([event for name in _fresh(prepared, quote) for event in bought_events(quote, name)])


def _used(prepared: Prepared, quote: Quote) -> list[Event]:
    """The events of everything that the answer would use: stored releases where they serve, fresh ones elsewhere."""
    if quote.priced is None:
        return []
    events = [event for name in _fresh(prepared, quote) for event in bought_events(quote, name)]
    stored = [*quote.reusable.values(), *(one.base for one in quote.raised.values())]
    return [*events, *(event for one in stored for event in one.events)]


def _stored_tables(prepared: Prepared, quote: Quote, question: Question) -> dict[str, ReleasedTable]:
    """The stored releases that would serve for free, by core: their errors are what one gets."""
    if quote.priced is None:
        return {}
    return {
        core.described.name: stored_table(
            quote.reusable[charge.core_key],
            charge,
            core,
            question=question,
            prepared=prepared,
            priced=quote.priced,
            beside=quote.reusable,
        )
        for core, charge in zip(prepared.cores, quote.charges, strict=not quote.histograms_only)
        if charge.core_key in quote.reusable
    }


def _exhausted(quote: Quote) -> dict[str, object]:
    """Why a query would be refused that the budget does not cover, in the words of that refusal."""
    assert quote.priced is not None
    loss = quote.priced.loss
    why, instead = exhausted_words(None, delta_that_fits(quote.path, loss))
    # As the ledger asks: the root first. Of an account that is not the payer's own only its turn is said.
    refusing = next((account for account in reversed(quote.path) if not account.admits(loss)), None)
    if refusing is not None and refusing.window is not None:
        available = refusing.available_at(loss) if refusing is quote.path[0] else None
        moments = (
            None if at is None else from_micros(at)
            for at in (available, refusing.window.rule.turn_after_moment(refusing.moment))
        )
        words, waiting = window_words(*moments)
        why, instead = f"{why}{words}", (*waiting, *instead)
    return finding_body(
        Finding(code="budget_exhausted", what="the budget does not cover this query", why=why, instead=instead)
    )
