"""docs/datasets.md is true."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

from pydantic import BaseModel

from engines.table_source import DateOrder, DecimalMark, Encoding, ThousandsMark
from server.datasets import check_text, severity
from server.datasets.model import (
    ColumnFile,
    ContributionFile,
    DatasetFile,
    PolicyFile,
    SourceFile,
    TableFile,
    UnitFile,
)

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "datasets.md").read_text(encoding="utf-8")


def test_the_example_is_sound() -> None:
    """What the page shows can be used as it is; rows as units come with their warning."""
    example, rows = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    assert check_text(example) == []
    assert [(severity(item), item.field) for item in check_text("version: 2\ndataset: survey\n" + rows)] == [
        ("warning", "unit.rows")
    ]


def test_every_name_has_its_line() -> None:
    """Each name that a file may hold is explained in a table of the page."""
    rows = set(re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE))
    for model in (DatasetFile, TableFile, ColumnFile, ContributionFile, PolicyFile):
        assert set(model.model_fields) - {"description"} <= rows, model
    for model in (UnitFile, SourceFile):
        assert all(f"`{name}`" in PAGE or f"`{name}: true`" in PAGE for name in names(model)), model


def names(model: type[BaseModel]) -> list[str]:
    """The names as a file writes them."""
    return [field.alias or name for name, field in model.model_fields.items()]


def test_every_date_order_is_listed() -> None:
    """The orders of days on the page are those that are read."""
    assert all(f"`{order}`" in PAGE for order in get_args(DateOrder))
    assert all(f'`"{mark}"`' in PAGE for mark in (*get_args(DecimalMark), *get_args(ThousandsMark)))
    assert all(f"`{encoding}`" in PAGE for encoding in get_args(Encoding))


def test_the_defaults_are_those_of_the_model() -> None:
    """The policy's table shows what holds when a name is left out."""
    shown = dict(re.findall(r"^\| `(\w+)` \| `\"?([^`\"]+)\"?` \|", PAGE, re.MULTILINE))
    for name, field in PolicyFile.model_fields.items():
        assert shown[name] == str(field.default).lower()
