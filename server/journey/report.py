"""The whole report of an estimate: the plan as a tree with its facts, bounds, noise, prices and cheaper forms.

Everything in it follows from what an estimate knows: the text, declarations, balances and stored releases. It is made
when it is asked for (`detail: "plan"`), because its prices take longer than the estimate's own.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction

from mechanisms.measurement import Measurement, plain_text
from privacy.bounds import AskedContribution
from privacy.numbers import decimal_text
from server.journey.cheaper import cheaper_forms
from server.journey.named_quantiles import compared_mechanisms
from server.journey.norms import foresee
from server.journey.price_curve import price_curve
from server.journey.query import Prepared, Quote
from server.journey.quoting import Quoting
from server.journey.report_text import report_text
from server.journey.wire_bounds import open_argument, open_bounds_json
from server.journey.wire_norms import norm_json, open_norms_json
from server.journey.wire_parts import Part, fresh_names
from server.question import Question
from sql_rewrite.bound import BoundedCore
from sql_rewrite.contribution import Contribution
from sql_rewrite.explained import Node, explain_core, explain_outer

__all__ = ["report"]


def report(
    question: Question,
    prepared: Prepared,
    quote: Quote,
    estimate: Mapping[str, object],
    *,
    stored_width: Fraction | None,
) -> dict[str, object]:
    """The report of a question whose `estimate` is known, as JSON, with the same as `text`."""
    quoting = Quoting(question, prepared, quote.path)
    dataset = prepared.plan.dataset
    tree = explain_outer(prepared.plan, tuple(explain_core(core, dataset) for core in prepared.cores))
    body: dict[str, object] = {
        "nodes": _node(tree),
        "stages": list(_stages(prepared, quote)),
        "bounds": [bound for core in prepared.cores for bound in _bounds(core, question, prepared, quote)],
        "statistics": list(_statistics(prepared, quote)),
        "alternatives": cheaper_forms(question, prepared, quote, quoting, stored_width=stored_width),
        "quantiles": compared_mechanisms(question, prepared, quote),
        "curve": price_curve(question, prepared, quote, quoting),
    }
    return {**body, "text": report_text(estimate, body, confidence=float(question.confidence))}


def _node(node: Node) -> dict[str, object]:
    facts = node.facts
    return {
        "kind": node.kind,
        "text": node.text,
        "unit": facts.unit,
        "rows_per_unit": facts.rows_per_unit,
        "unique": list(facts.unique),
        "ranges": [dataclasses.asdict(one) for one in facts.ranges],
        "inputs": [_node(one) for one in node.inputs],
    }


def _stages(prepared: Prepared, quote: Quote) -> Iterator[dict[str, object]]:
    """What runs after what: histograms of values, those of norms, the sums, and the outer query."""
    stage, priced = 0, quote.priced
    if priced is not None:
        fresh = fresh_names(prepared, quote)
        tables = {core.described.name: core.core.sources[0].table.name for core in prepared.cores}
        chosen = {core.described.name for core in prepared.cores if core.norms}
        if prepared.values is not None:
            stage += 1
            columns = [f"{one.table}.{one.column.name}" for one in prepared.values.histograms]
            does = f"choose value bounds of {', '.join(columns)} from noisy histograms"
            yield _stage(stage, Part.VALUES, does, fresh=bool(fresh[Part.VALUES]))
        if any(prepared.histograms):
            stage += 1
            does = f"choose how much of a unit counts in {', '.join(sorted({tables[name] for name in chosen}))}"
            yield _stage(stage, Part.NORMS, does, fresh=bool(fresh[Part.NORMS]))
        for place, names in enumerate(_in_order(prepared)):
            stage += 1
            bought = names & set(fresh[Part.SUMS])
            reused = len(names) - len(bought)
            several = f"{len(names)} blocks" if len(names) > 1 else "one block"
            reads = "" if place == 0 else " by the numbers released before"
            served = f", {reused} from stored releases" if reused and not quote.histograms_only else ""
            yield _stage(stage, Part.SUMS, f"measure {several}{reads}{served}", fresh=bool(bought))
    if not prepared.plan.shell.trivial:
        yield _stage(stage + 1, "outer_query", "compute the answer from released numbers, for free", fresh=False)


def _in_order(prepared: Prepared) -> list[set[str]]:
    """The blocks that are measured side by side, by name, and after them those that read their numbers."""
    reads, found = dict(prepared.plan.stages), list[set[str]]()
    depths: dict[str, int] = {}
    for core in prepared.cores:  # what a core reads comes before it
        name = core.described.name
        depths[name] = max((1 + depths[one] for one in reads.get(name, ())), default=0)
        found += [set() for _ in range(depths[name] + 1 - len(found))]
        found[depths[name]].add(name)
    return found


def _stage(number: int, name: str, does: str, *, fresh: bool) -> dict[str, object]:
    return {"stage": number, "of": name, "does": does, "paid": fresh}


def _bounds(core: BoundedCore, question: Question, prepared: Prepared, quote: Quote) -> Iterator[dict[str, object]]:
    """How much a unit counts and to what values are clipped, with where each bound comes from."""
    table, contribution = core.core.sources[0].table.name, core.contribution
    if isinstance(contribution, Contribution):
        if contribution.one_row:
            yield _bound(table, "rows_per_unit", 1, "key", "a unit has one row")
        else:
            yield from _counts(table, contribution, question.contribution)
    else:
        notes = prepared.notes
        if quote.priced is not None:
            notes = foresee(prepared, quote.priced, quote.histograms).notes
        known = [norm_json(core, note) for note in notes.get(core.described.name, ())]
        for norm in known or open_norms_json(core, quote.priced):
            of = f"{norm['power']} norm of {norm['argument'] or norm['of']}"
            why = None if known else "the question chooses it from a noisy histogram"
            yield _bound(table, of, norm["norm"], str(norm["source"] or "chosen"), why)
    for one in open_bounds_json(core, prepared):
        ends = None if one["lower"] is None else [one["lower"], one["upper"]]
        why = "the question chooses them from a noisy histogram" if ends is None else None
        yield _bound(str(one["table"] or table), str(one["column"]), ends, str(one["source"]), why)


def _counts(table: str, most: Contribution, asked: AskedContribution | None) -> Iterator[dict[str, object]]:
    named = AskedContribution() if asked is None else asked
    for of, value, wish in (
        ("rows_per_unit", most.total, named.rows_per_unit),
        ("groups_per_unit", most.groups, named.groups_per_unit),
        ("rows_per_unit_and_group", most.rows, named.rows_per_unit_and_group),
    ):
        yield _bound(table, of, value, "declared" if wish is None else "request", None)


def _bound(table: str, of: str, value: object, source: str, why: str | None) -> dict[str, object]:
    return {"table": table, "of": of, "value": value, "source": source, "why": why}


def _statistics(prepared: Prepared, quote: Quote) -> Iterator[dict[str, object]]:
    """Every measurement: what it is of, what one unit moves it by, and the noise that hides that."""
    if quote.priced is None:
        return
    seen = foresee(prepared, quote.priced, quote.histograms)
    cores = {core.described.name: core for core in prepared.cores}
    for measurement in seen.priced.calibration.measurements:
        core = cores.get(measurement.core)
        unbounded = prepared.values is not None and measurement.core in prepared.values.places
        yield _statistic(measurement, core, is_open=unbounded or measurement.core in seen.open, unbounded=unbounded)


def _statistic(
    measurement: Measurement, core: BoundedCore | None, *, is_open: bool, unbounded: bool
) -> dict[str, object]:
    """With `is_open` a bound is chosen later, and the numbers that would follow from it are not known."""
    statistic, unit = measurement.statistic, measurement.unit
    held = statistic.sensitivity
    answers: Sequence[str] = []
    if core is not None and core.core.choice is not None:
        answers = [core.core.choice.score.text]
    elif core is not None:
        pairs = zip(core.core.aggregates, core.described.estimates, strict=True)
        answers = [aggregate.text for aggregate, estimate in pairs if estimate.statistic == statistic.name]
    known = None if is_open else unit
    return {
        "core": measurement.core,
        "of": open_argument(statistic.argument, is_open=unbounded) or statistic.kind.value,
        "answers": answers,
        "selects_groups": core is not None and core.described.keys.selection == statistic.name,
        "sums": statistic.coordinates,
        "sensitivity": {
            "l1": None if known is None else plain_text(held.l1 * known),
            "l2": None if known is None else f"{math.sqrt(float(held.l2_squared)) * float(known):.9g}",
        },
        "mechanism": measurement.name,
        "scale": None if known is None else plain_text(measurement.scale_of_sums * known),
        "share": decimal_text(measurement.share, places=6),
    }
