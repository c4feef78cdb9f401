"""The allow-list of row functions: what may be computed from one row, with types, ranges and proof of totality.

`build` is the only way to make a `Call`. Everything that is not in `REGISTRY` is refused by name. The analyst's
documentation is `docs/functions.md`; its tables are written by `python -m sql_rewrite.functions`.
"""

from __future__ import annotations

from sql_rewrite.functions.building import INTERNAL, REGISTRY, build, cast
from sql_rewrite.functions.clipping import bounds_of, clip_columns
from sql_rewrite.functions.operator import Operator, TypeRefused

__all__ = ["INTERNAL", "REGISTRY", "Operator", "TypeRefused", "bounds_of", "build", "cast", "clip_columns"]
