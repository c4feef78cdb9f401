"""The OpenAPI document: complete, in step with the code, and kept with the documentation."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from server.openapi import document_text, openapi_document, request_models
from server.problem_kinds import PROBLEMS
from tests.server.conftest import World

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.fixture
def document(world: World) -> dict[str, Any]:
    """The document of the application."""
    return openapi_document(world.api.app)


def operations(document: dict[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    """Path, method and operation, for all."""
    return [(path, method, item) for path, entry in document["paths"].items() for method, item in entry.items()]


def test_the_kept_document_is_the_applications(world: World) -> None:
    """docs/openapi.json has not drifted; `python -m server.write_openapi docs/openapi.json` writes it anew."""
    assert (DOCS / "openapi.json").read_text("utf-8") == document_text(world.api.app)


def test_every_operation_is_described(document: dict[str, Any]) -> None:
    """Unique readable ids, summaries, descriptions, tags, roles or openness, and a problem for every error status."""
    ids = [item["operationId"] for _, _, item in operations(document)]
    assert len(set(ids)) == len(ids)
    for path, method, item in operations(document):
        assert re.fullmatch(r"[a-z]+[A-Za-z]+", item["operationId"])
        assert item["summary"], path
        assert item["description"], path
        assert item["tags"], path
        assert bool(item["security"]) == ("x-roles" in item), path
        for status, response in item["responses"].items():
            assert response["description"], (path, status)
            if int(status) >= 400 and path != "/readyz":
                assert list(response["content"]) == ["application/problem+json"], (path, status)
        if item["security"]:
            assert {"401", "403", "422", "429", "500", "503"} <= set(item["responses"]), path
        if method in ("post", "put", "patch") and "requestBody" in item:
            assert {"400", "413", "415"} <= set(item["responses"]), path


def test_every_reference_leads_somewhere(document: dict[str, Any]) -> None:
    """References name schemas that exist, and no schema of the framework is left."""
    text = json.dumps(document)
    names = set(re.findall(r"#/components/schemas/(\w+)", text))
    assert names <= set(document["components"]["schemas"])
    assert "HTTPValidationError" not in text
    for schema in document["components"]["schemas"].values():
        jsonschema.Draft202012Validator.check_schema(schema)


def test_examples_are_valid(document: dict[str, Any]) -> None:
    """Every example of a body is accepted by its model, and every example of an answer fits its schema."""
    models = {model.__name__: model for model in request_models()}
    count = 0
    for path, _, item in operations(document):
        media = item.get("requestBody", {}).get("content", {}).get("application/json", {})
        for example in media.get("examples", {}).values():
            models[media["schema"]["$ref"].rsplit("/", 1)[1]].model_validate(example["value"])
            count += 1
        for response in item["responses"].values():
            for content in response.get("content", {}).values():
                if "example" in content:
                    whole = {**content["schema"], "components": document["components"]}
                    jsonschema.Draft202012Validator(whole).validate(content["example"])
                    count += 1
        assert media == {} or media["examples"], path
    assert count > 20


def test_the_page_of_the_api_is_complete(document: dict[str, Any]) -> None:
    """docs/api.md says of every operation what the description says, and names every problem code."""
    page = (DOCS / "api.md").read_text("utf-8")
    for path, method, operation in operations(document):
        if method == "head":
            continue
        (line,) = (line for line in page.splitlines() if line.startswith(f"| `{method.upper()} {path}` |"))
        assert line.endswith(f" | {operation['summary']}. {' '.join(operation['description'].split())} |")
    for code, kind in PROBLEMS.items():
        assert f"| `{code}` | {kind.status} |" in page, code
