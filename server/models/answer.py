"""A fitted model as its owner reads it: weights with intervals, how rows are encoded, and SQL that predicts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from fractions import Fraction

from mechanisms.interval import gaussian_two_sided, two_sided_alpha
from mechanisms.measurement import plain_text
from mechanisms.private_descent import Fitted, HeldOut
from privacy.numbers import decimal_text
from privacy.release import BoundsNote
from privacy.training import HELD_PLACES, FeatureKind, TrainingFeature, Wanted
from server.models.chosen_bounds import bounds_json
from server.models.quoting import Quoted

__all__ = ["encoding_body", "model_body", "predict_sql", "stored_answer"]


def model_body(
    quoted: Quoted,
    fitted: Fitted,
    tested: HeldOut | None,
    *,
    confidence: Fraction,
    count: float | None,
    notes: Sequence[BoundsNote],
) -> dict[str, object]:
    """The answer: a function of released numbers and of public facts."""
    statement, noise = quoted.training.statement, quoted.noise
    wide = gaussian_two_sided(two_sided_alpha(confidence))
    # Rows are divided by this norm before they meet a weight.
    scale = 1 / float(quoted.clip_norm)
    weights = [value * scale for value in fitted.weights]
    errors = [value * scale for value in fitted.deviations]
    low, high = statement.label.ends
    entries = [
        {
            "feature": name,
            "key": key,
            "kind": kind,
            "weight": weight,
            "standard_error": error,
            "low": weight - wide * error,
            "high": weight + wide * error,
        }
        for (name, key, kind), weight, error in zip(_columns(statement.features), weights, errors, strict=True)
    ]
    fitted_by = [
        {
            "measured": wanted.value,
            "times": times,
            "of": "trained on",
            "mechanism": noise.measurement(wanted).name,
            "scale": plain_text(noise.measurement(wanted).scale_of_sums),
            "sensitivity": noise.measurement(wanted).sensitivity_text,
        }
        for wanted, times in noise.fitted_by
    ]
    if noise.tested_by is not None:
        own = noise.measurement(noise.tested_by)
        fitted_by.append(
            {
                "measured": noise.tested_by.value,
                "times": 1,
                "of": "held out",
                "mechanism": own.name,
                "scale": plain_text(own.scale_of_sums),
                "sensitivity": own.sensitivity_text,
            }
        )
    return {
        "label": {"name": statement.label.name, "low": float(low), "high": float(high)},
        "intercept": entries[0],
        "weights": entries[1:],
        "encoding": encoding_body(statement.features),
        "predict": predict_sql(quoted, weights),
        "units": count,
        "held_out": None if tested is None else _tested_body(noise.tested_by, tested, noise.held),
        "confidence": decimal_text(confidence),
        "mechanisms": fitted_by,
        "bounds": bounds_json(notes),
        "warnings": [*_warnings(quoted, tested), *_bounds_warnings(notes)],
    }


def _columns(features: Sequence[TrainingFeature]) -> list[tuple[str | None, str | None, str]]:
    columns: list[tuple[str | None, str | None, str]] = [(None, None, "intercept")]
    for feature in features:
        if feature.kind is FeatureKind.KEYS:
            columns += [(feature.name, key, "key") for key in feature.keys]
        else:
            columns.append((feature.name, None, "number"))
    return columns


def encoding_body(features: Sequence[TrainingFeature], *, known: bool = True) -> list[dict[str, object]]:
    """How a row becomes what weights are multiplied with; not `known` are ends that are to be chosen."""
    return [
        {"feature": feature.name, "kind": "keys", "keys": list(feature.keys), "low": None, "high": None}
        if feature.kind is FeatureKind.KEYS
        else {
            "feature": feature.name,
            "kind": "number",
            "keys": None,
            "low": float(feature.ends[0]) if known or not feature.chosen else None,
            "high": float(feature.ends[1]) if known or not feature.chosen else None,
        }
        for feature in features
    ]


def predict_sql(quoted: Quoted, weights: Sequence[float]) -> str:
    """An expression over columns that are named as the features: the chance of the label, or its value."""
    statement = quoted.training.statement
    terms, place = [_number(weights[0])], 1
    for feature in statement.features:
        name = '"' + feature.name.replace('"', '""') + '"'
        if feature.kind is FeatureKind.KEYS:
            parts = []
            for key, weight in zip(feature.keys, weights[place:], strict=False):
                test = f"{name} IS NULL" if key is None else f"{name} = {_text(key)}"
                parts.append(f"WHEN {test} THEN {_number(weight)}")
            terms.append(f"CASE {' '.join(parts)} ELSE 0 END")
        else:
            low, high = (float(end) for end in feature.ends)
            # Booleans are numbers here: CAST reads them as 0 and 1.
            value = f"GREATEST({low!r}, LEAST({high!r}, CAST({name} AS DOUBLE)))"
            scaled = f"(2 * {value} - {low + high!r}) / {high - low!r}"
            terms.append(f"{_number(weights[place])} * CASE WHEN {name} IS NULL THEN 0 ELSE {scaled} END")
        place += feature.width
    score = " + ".join(terms)
    if quoted.noise.method.logistic:
        return f"1 / (1 + EXP(-({score})))"
    low, high = (float(end) for end in statement.label.ends)
    return f"{(low + high) / 2!r} + {(high - low) / 2!r} * ({score})"


def _number(value: float) -> str:
    return f"({value:.9g})"


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _tested_body(wanted: Wanted | None, tested: HeldOut, held: int) -> dict[str, object]:
    body: dict[str, object] = {
        "share": held / HELD_PLACES,
        "standard_error": tested.deviation,
        "half_width": tested.half_width,
        "accuracy": None,
        "confusion": None,
        "explained_variance": None,
        "value_standard_error": tested.value_deviation,
    }
    if wanted is Wanted.OUTCOMES:
        names = ("true_negative", "false_positive", "false_negative", "true_positive")
        body |= {"accuracy": tested.value, "confusion": dict(zip(names, tested.numbers, strict=True))}
    else:
        body["explained_variance"] = tested.value
    return body


def _warnings(quoted: Quoted, tested: HeldOut | None) -> list[dict[str, str]]:
    """What the numbers do not say by themselves."""
    found = [
        {
            "code": "intervals_of_noise",
            "text": "Intervals are of the noise alone, to first order: not of clipping, of too few iterations, or of "
            "the sample.",
        }
    ]
    if quoted.training.rows_of_unit > 1:
        found.append(
            {
                "code": "several_rows",
                "text": "A unit may have several rows: they count together as one at most, so units with many rows "
                "weigh no more than others.",
            }
        )
    if quoted.clip < 1:
        found.append(
            {
                "code": "clipped",
                "text": "Rows or gradients beyond the clip were scaled to it; the formula of the prediction does not "
                "scale them.",
            }
        )
    if tested is not None and tested.value is None:
        found.append(
            {
                "code": "held_out_within_noise",
                "text": "The held-out units, or the differences of their labels, are within the noise: nothing is "
                "said of the model's quality.",
            }
        )
    if tested is not None and tested.value is not None and quoted.noise.tested_by is Wanted.OUTCOMES:
        negative, positive = tested.numbers[0] + tested.numbers[1], tested.numbers[2] + tested.numbers[3]
        if min(negative, positive) <= 2 * tested.half_width:
            found.append(
                {
                    "code": "one_class",
                    "text": "One of the two labels is within the noise among the held-out units: whoever always says "
                    "the other one is right as often.",
                }
            )
    return found


def _bounds_warnings(notes: Sequence[BoundsNote]) -> list[dict[str, str]]:
    """Of columns of which a histogram shows nobody."""
    return [
        {
            "code": "bounds_uncertain",
            "text": f"The bounds of {note.column}, {note.lower} to {note.upper}, are a guess: the histogram of its "
            "values shows nobody for certain. Ask for a greater epsilon, or write bounds in the text.",
        }
        for note in notes
        if not note.certain
    ]


def stored_answer(body: dict[str, object]) -> bytes:
    """The answer as the ledger keeps it."""
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
