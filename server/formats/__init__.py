"""Formats of results: which one `Accept` asks for, and an answer's or a release's table in it.

JSON is what is stored and what is sent by default. CSV, Arrow and Parquet are made from those stored bytes, so every
format has the same numbers, and asking again in another format spends nothing.

    the answer's columns, in order | for every released or derived column x: x_standard_error, x_low, x_high
    sex, n                         | n_standard_error, n_low, n_high

What the table does not hold (identifiers, price, what remains) is in `Noisegate-...` headers and, as the JSON has it,
in the Arrow schema's metadata under `noisegate`. pyarrow is an optional library: it is imported here, nowhere else,
and only when somebody asks for a format that needs it.
"""

from __future__ import annotations

from server.formats.accept import negotiate, rank
from server.formats.delimited import to_csv, unguarded
from server.formats.known import FORMATS, JSON, Format, Representation, available, represent
from server.formats.table import RESULT_HEADERS, Column, Table, answer_table, release_table

__all__ = [
    "FORMATS",
    "JSON",
    "RESULT_HEADERS",
    "Column",
    "Format",
    "Representation",
    "Table",
    "answer_table",
    "available",
    "negotiate",
    "rank",
    "release_table",
    "represent",
    "to_csv",
    "unguarded",
]
