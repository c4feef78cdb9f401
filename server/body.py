"""Request bodies: strict JSON, read with a limit of bytes, of depth and of time, into strict models.

Python's own reader takes the last of two equal keys, NaN, numbers of any length and lone surrogates. Each of
these makes two readers of one text disagree, so each is refused. No message repeats what was sent.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import NoReturn, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails
from starlette.requests import ClientDisconnect, Request

from privacy.refusal import Finding
from server.errors import Problem

__all__ = ["NOT_TEXT", "canonical_hash", "findings_of", "parse_json", "read_body", "request_hash", "validate"]

DEPTH_MAX = 32
INTEGER_DIGITS_MAX = 19
NUMBER_LENGTH_MAX = 40
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
_BRACKET = re.compile(rb"[\[\]{}]")
_MEDIA_TYPE = re.compile(r"application/json\s*(?:;\s*charset=\"?utf-8\"?\s*)?\Z", re.IGNORECASE)

Model = TypeVar("Model", bound=BaseModel)


class _Unreadable(ValueError):
    """A JSON text that is refused; the message is ours and holds nothing of the text."""


async def read_body(request: Request, *, limit: int, timeout_seconds: float) -> bytes:
    """The request's body.

    Errors: Problem unsupported_media_type, body_too_large or request_timeout.
    """
    if not _MEDIA_TYPE.match(request.headers.get("content-type", "").strip()):
        raise Problem(
            "unsupported_media_type",
            what="the body is not declared as JSON",
            why="Only bodies with the header Content-Type: application/json (UTF-8) are read.",
            instead=("Send the header Content-Type: application/json.",),
        )
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise Problem(
            "unsupported_media_type",
            what="the body is compressed",
            why="Compressed bodies are not read.",
            instead=("Send the body without Content-Encoding.",),
        )
    declared = request.headers.get("content-length", "")
    if declared.isascii() and declared.isdigit() and (len(declared) > 12 or int(declared) > limit):
        raise _too_large(limit)
    chunks: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(timeout_seconds):
            async for chunk in request.stream():
                size += len(chunk)
                if size > limit:
                    raise _too_large(limit)
                chunks.append(chunk)
    except TimeoutError:
        raise Problem(
            "request_timeout",
            what="the body did not arrive in time",
            why=f"A body must arrive within {timeout_seconds:g} seconds.",
            headers={"Connection": "close"},
        ) from None
    except ClientDisconnect:
        raise Problem("request_timeout", what="the connection was closed before the body was complete") from None
    return b"".join(chunks)


def _too_large(limit: int) -> Problem:
    return Problem(
        "body_too_large",
        what=f"the body is larger than {limit} bytes",
        instead=(f"Send at most {limit} bytes.",),
        headers={"Connection": "close"},
    )


def _pairs(pairs: list[tuple[str, object]]) -> dict[str, object]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise _Unreadable("An object names one key twice.")
    return result


def _constant(_: str) -> NoReturn:
    raise _Unreadable("NaN and Infinity are not JSON.")


def _integer(text: str) -> int:
    if len(text.lstrip("-")) > INTEGER_DIGITS_MAX or not -(2**63) <= int(text) < 2**63:
        raise _Unreadable("A whole number does not fit into 64 bits.")
    return int(text)


def _float(text: str) -> float:
    value = float(text) if len(text) <= NUMBER_LENGTH_MAX else math.inf
    if not math.isfinite(value):
        raise _Unreadable("A number is too long or too large.")
    return value


def _check_texts(value: object) -> None:
    """Every text is encodable and free of NUL; the value is a tree of limited depth, so recursion is safe."""
    if isinstance(value, str):
        if "\x00" in value:
            raise _Unreadable("A text holds the character U+0000.")
        if not value.isascii():
            try:
                value.encode()
            except UnicodeEncodeError:
                raise _Unreadable("A text holds half of a surrogate pair.") from None
    elif isinstance(value, dict):
        for key, item in value.items():
            _check_texts(key)
            _check_texts(item)
    elif isinstance(value, list):
        for item in value:
            _check_texts(item)


def _depth(raw: bytes) -> int:
    """Deepest nesting of brackets outside strings; 0 where there are too few brackets to be deeper than allowed."""
    if raw.count(b"[") + raw.count(b"{") <= DEPTH_MAX:
        return 0
    deepest = depth = 0
    for match in _BRACKET.finditer(_STRING.sub(b"", raw)):
        depth += 1 if match.group() in b"[{" else -1
        deepest = max(deepest, depth)
    return deepest


def parse_json(raw: bytes) -> dict[str, object]:
    """One JSON object from UTF-8 bytes.

    Errors: Problem invalid_json for anything else: other encodings, duplicate keys, NaN, numbers beyond 64 bits,
    nesting deeper than 32, U+0000, lone surrogates, another value than an object, text after the object.
    """
    try:
        if _depth(raw) > DEPTH_MAX:
            raise _Unreadable(f"The nesting is deeper than {DEPTH_MAX}.")
        value = json.loads(
            raw.decode("utf-8"),
            object_pairs_hook=_pairs,
            parse_constant=_constant,
            parse_int=_integer,
            parse_float=_float,
        )
        if not isinstance(value, dict):
            raise _Unreadable("The body must be an object.")
        _check_texts(value)
    except _Unreadable as refused:
        why = str(refused)
    except UnicodeDecodeError:
        why = "The body is not UTF-8."
    except json.JSONDecodeError as error:
        why = f"The text stops being JSON at line {error.lineno}, column {error.colno}."
    except RecursionError:
        why = f"The nesting is deeper than {DEPTH_MAX}."
    else:
        return value
    raise Problem("invalid_json", what="the body is not a strict JSON object", why=why)


def canonical_hash(value: Mapping[str, object]) -> str:
    """SHA-256 (hex) of the object in canonical form: equal objects have equal hashes, whatever their layout."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def request_hash(raw: Mapping[str, object], kind: str) -> str:
    """The identity of a request for something of a kind: what its body says, but not how long it waits for it."""
    said = {name: value for name, value in raw.items() if value is not None and name != "wait_ms"}
    return canonical_hash(said | {"as": kind})


def _known_names(model: type[BaseModel], seen: set[type[BaseModel]] | None = None) -> set[str]:
    """Every field name of the model and of the models inside it: the only names a message may repeat."""
    seen = set() if seen is None else seen
    if model in seen:
        return set()
    seen.add(model)
    names: set[str] = set(model.model_fields)
    for info in model.model_fields.values():
        stack = [info.annotation]
        while stack:
            annotation = stack.pop()
            if isinstance(annotation, type) and issubclass(annotation, BaseModel):
                names |= _known_names(annotation, seen)
            stack.extend(getattr(annotation, "__args__", ()))
    return names


NOT_TEXT = "decimal written as text"
"""What the refusal of a JSON number says about an amount; the advice follows from it."""

_MESSAGES = {
    "missing": "The field is required.",
    "extra_forbidden": "The object has a field that is not known here.",
    "string_type": "The value must be a text.",
    "int_type": "The value must be a whole number.",
    "int_parsing": "The value must be a whole number.",
    "bool_type": "The value must be true or false.",
    "dict_type": "The value must be an object.",
    "model_type": "The value must be an object.",
    "model_attributes_type": "The value must be an object.",
    "list_type": "The value must be a list.",
    "string_too_short": "The text is too short.",
    "string_too_long": "The text is too long.",
    "string_pattern_mismatch": "The text does not have the required form.",
    "too_long": "The list or object has too many members.",
    "too_short": "The list or object has too few members.",
}


_NESTED = {
    "rows_per_unit": ("contribution", '"contribution": {"rows_per_unit": 40}'),
    "groups_per_unit": ("contribution", '"contribution": {"groups_per_unit": 36}'),
    "rows_per_unit_and_group": ("contribution", '"contribution": {"rows_per_unit_and_group": 10}'),
    "epsilon": ("spend", '"spend": {"epsilon": "0.5"}'),
    "own_epsilon": ("spend", '"spend": {"own_epsilon": "0.5"}'),
    "half_width": ("accuracy", '"accuracy": {"half_width": "10"}'),
    "confidence": ("accuracy", '"accuracy": {"half_width": "10", "confidence": "0.95"}'),
}
"""Fields that people write beside their object instead of into it: the object's field, and how it is written."""


def _message(error: ErrorDetails) -> str:
    kind = error["type"]
    if kind in _MESSAGES:
        return _MESSAGES[kind]
    if kind == "value_error":
        # Raised by our own validators, whose sentences hold names and limits only.
        sentence = error["msg"].removeprefix("Value error, ")
        return sentence[:1].upper() + sentence[1:] + ("" if sentence.endswith(".") else ".")
    if kind in ("literal_error", "enum"):
        return f"The value must be one of {error.get('ctx', {}).get('expected', 'the listed values')}."
    if kind in ("greater_than_equal", "less_than_equal", "greater_than", "less_than"):
        return error["msg"].replace("Input should be", "The value must be") + "."
    return "The value has a wrong type or is outside its range."


def findings_of(errors: Sequence[ErrorDetails], *, known: set[str], fields: Sequence[str] = ()) -> tuple[Finding, ...]:
    """Findings for the errors of a validation: paths of known names, sentences of ours, no input."""
    findings: dict[tuple[str, str], Finding] = {}
    for error in errors:
        parts = [
            str(part) if isinstance(part, int) or part in known else "(name not shown)"
            for part in error["loc"]
            # Branches of a union name types; they mean nothing to the caller.
            if not (
                isinstance(part, str) and part in ("body", "query", "path", "header", "str", "int", "float", "bool")
            )
        ]
        path = ".".join(parts)
        why = _message(error)
        instead: tuple[str, ...] = ()
        if error["type"] == "extra_forbidden" and fields:
            nested = _NESTED.get(path)
            hint = (f"Write it as {nested[1]}.",) if nested is not None and nested[0] in fields else ()
            instead = (*hint, f"Known fields: {', '.join(fields)}.")
        elif NOT_TEXT in why:
            instead = ('Write it in quotes: "0.5".',)
        what = f'field "{path}" is not accepted' if path else "the object is not accepted"
        findings.setdefault((path, why), Finding("invalid_request", what, why, instead, field=path or None))
    return tuple(findings.values())


def validate(model: type[Model], value: Mapping[str, object]) -> Model:
    """The model's instance for a parsed object.

    Errors: Problem invalid_request with every finding at once.
    """
    try:
        return model.model_validate(value)
    except ValidationError as error:
        errors = error.errors(include_url=False, include_input=False)
    raise Problem.of(findings_of(errors, known=_known_names(model), fields=tuple(model.model_fields)))
