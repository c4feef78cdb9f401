"""The dialects: one module for each engine's SQL, listed here."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from sql_rewrite.dialects.dialect import Dialect
from sql_rewrite.dialects.duckdb import DUCKDB

__all__ = ["DIALECTS"]

DIALECTS: Mapping[str, Dialect] = MappingProxyType({"duckdb": DUCKDB})
"""Every dialect by the name that an engine's capabilities have."""
