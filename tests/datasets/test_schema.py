"""The published JSON Schema."""

from __future__ import annotations

import jsonschema
import pytest
import yaml

from server.datasets.schema import SCHEMA_PATH, json_schema, schema_text
from tests.datasets.example import EXAMPLE, changed


def test_the_published_schema_is_the_model() -> None:
    """`make schema` was run after the last change of the model."""
    assert schema_text() == SCHEMA_PATH.read_text(encoding="utf-8")


def test_the_schema_accepts_the_example() -> None:
    """An editor that follows the schema shows no error in a sound file."""
    validator = jsonschema.Draft202012Validator(json_schema())
    validator.check_schema(json_schema())
    assert list(validator.iter_errors(yaml.safe_load(EXAMPLE))) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("type: text", "type: txt"),
        ("    public: true", "    publik: true"),
        ("rows_per_unit: 40", "rows_per_unit: 0"),
        ('epsilon_max: "1"', "epsilon_max: 1"),
        ("[0, 200000]", "[0]"),
        ("dataset: clinic", "dataset: my-clinic"),
    ],
)
def test_the_schema_refuses_what_the_check_refuses(old: str, new: str) -> None:
    """Mistakes of shape are seen while typing."""
    validator = jsonschema.Draft202012Validator(json_schema())
    assert list(validator.iter_errors(yaml.safe_load(changed((old, new))))) != []
