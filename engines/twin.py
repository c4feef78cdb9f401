"""The empty twin of a snapshot: the same tables, columns and types, and no row.

A twin is a function of the declaration alone. A statement that cannot be planned and run on the twin would fail on the
snapshot too, and is refused before the charge; what runs on it can fail on the snapshot only for time or memory.
The one thing that a declaration does not say is whether "unit$id" is an INTEGER or, from 2^31 units on, a BIGINT: twins
have INTEGER, and statements group by the column without computing with it.

Beside them stand the tables as analysts see them, on which their texts are bound: without the columns of units, with
the types of values instead of lists of keys, and under the dataset's name as a schema, as a text may write it.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from engines.declaration import described_column
from engines.records import write_record
from privacy.policy import Dataset
from privacy.values import Json

__all__ = ["Twin", "twin_of"]


@dataclass(frozen=True, slots=True)
class Twin:
    """The tables of a twin as a worker reads them, their schema for texts, and a name that differs when they do."""

    name: str
    schema: str
    tables: tuple[Mapping[str, Json], ...]


_KEPT: Final = 64
_lock = threading.Lock()
_known: OrderedDict[int, tuple[Dataset, Twin]] = OrderedDict()


def twin_of(dataset: Dataset) -> Twin:
    """The twin of the dataset's snapshots. Kept for the last few declarations, as each fresh plan asks for it."""
    with _lock:
        known = _known.get(id(dataset))
        if known is not None:
            return known[1]
    tables: tuple[Mapping[str, Json], ...] = tuple(
        {
            "name": table.name,
            "protected": table.protected,
            "columns": [described_column(c) for c in table.columns],
            "norms": None if table.stored_norms is None else list(table.stored_norms),
            "totals": [write_record(total) for total in table.stored_totals],
            "units": table.stored_units,
        }
        for table in dataset.tables
    )
    shape = json.dumps([dataset.name, tables])
    twin = Twin(hashlib.sha256(shape.encode()).hexdigest(), dataset.name, tables)
    with _lock:
        # The declaration is kept beside its twin, so its identity cannot become another one's.
        _known[id(dataset)] = (dataset, twin)
        while len(_known) > _KEPT:
            _known.popitem(last=False)
    return twin
