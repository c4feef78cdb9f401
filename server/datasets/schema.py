"""The published JSON Schema of dataset files; `make schema` writes it anew."""

from __future__ import annotations

import json
from pathlib import Path

from privacy.values import Json
from server.datasets.model import DatasetFile

__all__ = ["SCHEMA_PATH", "json_schema", "schema_text", "write_schema"]

SCHEMA_PATH = Path(__file__).resolve().parents[2] / "schemas" / "dataset.schema.json"
"""Where the schema is in a checkout."""


def json_schema() -> dict[str, Json]:
    """The JSON Schema (2020-12) of a dataset file."""
    schema = DatasetFile.model_json_schema(mode="validation")
    schema["title"] = "Noisegate dataset file"
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def schema_text() -> str:
    """The schema as it is stored."""
    return json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"


def write_schema() -> None:
    """Writes the schema into the checkout."""
    SCHEMA_PATH.parent.mkdir(exist_ok=True)
    SCHEMA_PATH.write_text(schema_text(), encoding="utf-8")
