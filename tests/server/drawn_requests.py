"""Requests that are drawn from the OpenAPI document: right ones, almost right ones and wrong ones.

Bodies begin as an example of the document or as a value of its schema; then parts are left out, replaced or added, or
driven to an extreme. Paths name what is there, what is not, and what is no name. The same seed draws the same requests.
"""

from __future__ import annotations

import copy
import json
import random
import re
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import httpx

from tests.server.fakes import Api

__all__ = ["Drawing", "DrawnRequest", "faults"]

PEOPLE = ("admin", "owner", "analyst", "other", "dashboard", "auditor", None)
ODD: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2**31, 2**63, 2**200, -0.0, 1e308, 0.1, 1e-300),
    *("", " ", "a", "0", "-1", "1e9", "NaN", "\u0000", "\ud7ff", "ä", "😀", "'; DROP TABLE principals; --", "x" * 5000),
    *([], {}, [None], [[]], {"": 1}, {"epsilon": "1"}, [1, "a"]),
)
TEXTS = (
    *("clinic", "absent", "analyst", "admin", "people", "patients", "b_2c9a", "q_1", "r_1", "m_1", "x", "ina"),
    *("1", "0.5", "0.000001", "SELECT COUNT(*) AS n FROM patients", "SELECT sex, COUNT(*) FROM patients GROUP BY sex"),
)
NAMES = ("absent", "a b", "%2e%2e", "%00", "ü", "x" * 81, "-", "q_0000", "null", "0")
THERE = ("clinic", "demo", "analyst", "patients")
"""What is there from the beginning. Only read: a principal that is disabled asks nothing more."""

HEADERS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("Accept", ("*/*", "text/csv", "application/json;q=0", "nonsense", "application/vnd.apache.arrow.stream", "a/b/c")),
    ("If-Match", ("*", '"1-d1"', "W/x", "")),
    ("If-None-Match", ("*", '"x"', "W/")),
    ("Idempotency-Key", ("k1", "k2", "", "a b", "x" * 201)),
    ("Noisegate-On-Behalf-Of", ("analyst", "absent", "")),
    ("Range", ("bytes=0-1", "nonsense")),
    ("X-Request-Id", ("x", "\t", "y" * 100)),
    ("Content-Type", ("application/json", "text/plain", "application/json; charset=latin-1", "")),
)


@dataclass(frozen=True)
class DrawnRequest:
    """One request."""

    operation: str
    method: str
    path: str
    who: str | None
    headers: dict[str, str]
    content: bytes | None

    def send(self, api: Api) -> httpx.Response:
        """The answer, which is compared with the document on its way."""
        return api.call(self.method, self.path, who=self.who, headers=self.headers, content=self.content)


@dataclass
class Drawing:
    """Draws requests of a document. `known` are identifiers that are there, which tests add to."""

    document: dict[str, Any]
    generator: random.Random
    known: list[str] = field(default_factory=list)

    def requests(self, count: int) -> list[DrawnRequest]:
        """So many requests; every operation comes before one comes again."""
        operations = [
            (path, method, item) for path, entry in self.document["paths"].items() for method, item in entry.items()
        ]
        drawn = []
        while len(drawn) < count:
            self.generator.shuffle(operations)
            drawn += [self._request(*operation) for operation in operations[: count - len(drawn)]]
        return drawn

    def _request(self, path: str, method: str, item: dict[str, Any]) -> DrawnRequest:
        pick = self.generator
        names = [*NAMES, *self.known, *(THERE if method == "get" else ())]
        address = re.sub(r"\{\w+\}", lambda _: quote(pick.choice(names), safe="%."), path)
        query = [
            f"{parameter['name']}={quote(str(self._value(parameter['schema'])), safe='')}"
            for parameter in item.get("parameters", ())
            if parameter["in"] == "query" and (parameter.get("required") or pick.random() < 0.4)
        ]
        if pick.random() < 0.05:
            query.append(pick.choice(("x=1", "count=1&count=2", "=", "%ff", "dry_run=true")))
        headers = {name: pick.choice(values) for name, values in HEADERS if pick.random() < 0.08}
        content = None
        if "requestBody" in item:
            headers.setdefault("Content-Type", "application/json")
            content = self._content(item["requestBody"]["content"]["application/json"])
        elif pick.random() < 0.05:
            content = b"{}"
        roles = item.get("x-roles", [])
        who = pick.choice(roles) if roles and pick.random() < 0.8 else pick.choice(PEOPLE)
        whole = f"{address}?{'&'.join(query)}" if query else address
        return DrawnRequest(item["operationId"], method.upper(), whole, who, headers, content)

    def _content(self, media: dict[str, Any]) -> bytes:
        pick = self.generator
        examples = [example["value"] for example in media.get("examples", {}).values()]
        body = (
            copy.deepcopy(pick.choice(examples)) if examples and pick.random() < 0.6 else self._value(media["schema"])
        )
        for _ in range(pick.choice((0, 0, 1, 1, 2, 4))):
            body = self._changed(body)
        text = json.dumps(body).encode()
        damage = pick.random()
        if damage < 0.03:
            return pick.choice((b"", b"{", b"[]", b"\xff\xfe", b'{"a":1,"a":2}', b"[" * 2000, b'{"x":NaN}', text * 2))
        return text + b" " * 70_000 if damage > 0.995 else text

    def _changed(self, value: Any) -> Any:
        pick = self.generator
        if isinstance(value, dict) and value and pick.random() < 0.85:
            name = pick.choice(sorted(value))
            choice = pick.random()
            if choice < 0.25:
                return {key: one for key, one in value.items() if key != name}
            if choice < 0.35:
                return {**value, pick.choice(("x", name.upper(), "")): pick.choice(ODD)}
            return {**value, name: self._changed(value[name])}
        if isinstance(value, list) and value and pick.random() < 0.6:
            place = pick.randrange(len(value))
            return [*value[:place], self._changed(value[place]), *value[place + 1 :]] * pick.choice((1, 1, 2, 50))
        return pick.choice((*ODD, *TEXTS, *self.known))

    def _value(self, schema: dict[str, Any], depth: int = 0) -> Any:
        """A value that mostly fits the schema; patterns are met by chance."""
        pick = self.generator
        if "$ref" in schema:
            return self._value(self.document["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]], depth + 1)
        for either in ("anyOf", "oneOf", "allOf"):
            if either in schema:
                return self._value(pick.choice(schema[either]), depth + 1)
        if "const" in schema or "enum" in schema:
            return schema.get("const", pick.choice(schema.get("enum", [None])))
        kind = schema.get("type")
        if kind == "object":
            wanted = schema.get("required", ())
            named = schema.get("properties", {}).items()
            return {
                name: self._value(one, depth + 1)
                for name, one in named
                if name in wanted or (depth < 6 and pick.random() < 0.3)
            }
        if kind == "array":
            least = int(schema.get("minItems", 0))
            many = least + pick.choice((0, 1, 2)) if depth < 6 else least
            return [self._value(schema.get("items", {}), depth + 1) for _ in range(many)]
        if kind in ("integer", "number"):
            low, high = schema.get("minimum", 0), schema.get("maximum", 100)
            return pick.choice((low, high, low - 1, high + 1, 1 if kind == "integer" else 0.5))
        if kind == "boolean":
            return pick.random() < 0.5
        return None if kind == "null" else pick.choice((*TEXTS, *self.known))


def faults(document: dict[str, Any], request: DrawnRequest, response: httpx.Response) -> list[str]:
    """What the document does not say of an answer, beyond status, media type and shape, which the client compares."""
    said = f"{request.method} {request.path[:80]} {request.who} {(request.content or b'')[:300]!r}"
    if response.status_code < 400 or request.method == "HEAD" or "this fake" in response.text:
        return []
    code = response.json().get("code", "")
    item = next(
        one for entry in document["paths"].values() for one in entry.values() if one["operationId"] == request.operation
    )
    wrong = []
    if code == "internal_error":
        wrong.append(f"{said}: failed")
    described = item["responses"].get(str(response.status_code), {}).get("description", "")
    routed = response.status_code not in (404, 405) or f"`{code}`" in described
    if code and f"`{code}`" not in described and routed:
        wrong.append(f"{said}: {response.status_code} {code} is not described")
    if response.status_code in (429, 503) and "retry-after" not in response.headers and code:
        wrong.append(f"{said}: {response.status_code} without Retry-After")
    return wrong
