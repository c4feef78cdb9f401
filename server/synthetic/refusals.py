"""Why synthetic tables are not made."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from privacy.refusal import Finding
from server.above_floor import Shortfall
from server.errors import Problem
from server.resources import refusals
from sql_rewrite.cost import UNIT_NANOSECONDS_MAX

__all__ = [
    "COLUMNS_MAX",
    "NOT_PLANNED",
    "above_most",
    "below_floor",
    "column_refused",
    "name_refused",
    "name_taken",
    "no_columns",
    "no_noise",
    "options_refused",
    "public_table",
    "rows_refused",
    "too_many_cells",
    "too_many_columns",
    "unit_too_long",
    "unknown_column",
    "unknown_table",
    "unpaid",
]

COLUMNS_MAX = 40


def name_refused(name: str) -> Finding:
    """Why a name is refused that SQL would have to quote."""
    return Finding(
        code="unsupported_sql",
        what=f'the name "{name[:63]}" is refused',
        why="Queries name the table: letters of ASCII, digits and underscores, a letter first, 63 of them at most.",
        instead=("name it like synthetic_people",),
        field="name",
    )


def name_taken(name: str) -> Problem:
    """Why a name is refused that stands for something already."""
    return Problem(
        "conflict",
        what=f'the name "{name}" is taken',
        why="A table of the dataset, or a synthetic one of yours, has it.",
        instead=("Choose another name.", "DELETE /v1/synthetic/{synthetic_id} gives the name of one of yours back."),
    )


def unknown_table(name: str, names: Sequence[str]) -> Finding:
    """Why a table is refused that the dataset does not have."""
    return Finding(
        code="unknown_table",
        what=f'table "{name[:63]}" is refused',
        why="The dataset has no such table.",
        instead=(f"name one of: {', '.join(sorted(names))}",),
        field="table",
    )


def public_table(name: str) -> Finding:
    """Why a public table has no synthetic one."""
    return Finding(
        code="unsupported_sql",
        what=f'table "{name}" is refused',
        why="Its rows are public: queries read them as they are, for free.",
        instead=("name a table with rows about people",),
        field="table",
    )


def unknown_column(name: str) -> Finding:
    """Why a column is refused that the table does not have."""
    return Finding(
        code="unknown_column",
        what=f'column "{name[:63]}" is refused',
        why="The table has no such column, or it is named twice.",
        instead=("see the columns with GET /v1/datasets/{dataset}",),
        field="columns",
    )


def column_refused(name: str, why: str, *, keys_would_do: bool) -> Finding:
    """Why a column is refused that has no places."""
    return Finding(
        code="column_without_bounds",
        what=f'column "{name}" is refused',
        why=f"A synthetic table counts values by places that are known beforehand, and {why}.",
        instead=(
            "leave the column out",
            *(("ask the dataset's owner to declare keys for it",) if keys_would_do else ()),
        ),
        field="columns",
    )


def options_refused(name: str, why: str) -> Finding:
    """Why bins or bounds of a column are refused."""
    return Finding(
        code="unsupported_type",
        what=f'the options of column "{name}" are refused',
        why=why,
        instead=("leave them out",),
        field="columns",
    )


def no_columns(left_out: Sequence[tuple[str, str]]) -> Finding:
    """Why a table without columns is refused."""
    named = "; ".join(f'"{name}": {why}' for name, why in left_out[:5])
    return Finding(
        code="column_without_bounds",
        what="a synthetic table without columns is refused",
        why=f"No column of the table has places that are known beforehand. {named}".strip(),
        instead=("ask the dataset's owner to declare keys or bounds",),
        field="columns",
    )


def too_many_columns(count: int) -> Finding:
    """Why a table with very many columns is refused."""
    return Finding(
        code="too_large",
        what=f"a synthetic table of {count:,} columns is refused",
        why=f"It has {COLUMNS_MAX} at most: every pair of them is counted.",
        instead=("name the columns that matter",),
        field="columns",
    )


def too_many_cells(cells: int, most: int) -> Finding:
    """Why a table whose marginals have very many cells is refused."""
    return Finding(
        code="key_domain_too_large",
        what=f"a synthetic table with {cells:,} cells of pairs of columns is refused",
        why=f"All pairs that may be measured have {most:,} cells at most, as they are held in memory.",
        instead=("name fewer columns", "name fewer bins for numbers and dates"),
        field="columns",
    )


def rows_refused(most: int) -> Finding:
    """Why a number of rows of a unit is refused."""
    return Finding(
        code="policy_forbids",
        what="rows_per_unit is refused",
        why=f"The dataset keeps {most:,} rows of one unit at most in this table.",
        instead=(f"name a number from 1 to {most:,}",),
        field="rows_per_unit",
    )


def above_most(most: Fraction) -> Finding:
    """Why a table above the policy's greatest price is refused."""
    return refusals.above_most("a synthetic table", most, field="epsilon")


def below_floor(short: Shortfall) -> Finding:
    """Why a table below the floor is refused."""
    return Finding(
        code="policy_forbids",
        what="a synthetic table at this epsilon is refused",
        why=f"It reads rows three times, and each is worth the dataset's floor at least, epsilon {short.of_one} of the "
        f"whole budget.{short.worth}",
        instead=(short.greater("epsilon"),),
        field="epsilon",
    )


def unpaid(why: str) -> Finding:
    """Why an account cannot pay for Gaussian noise."""
    return Finding(
        code="policy_forbids",
        what="a synthetic table is refused",
        why=f"Its marginals have Gaussian noise. {why[:1].upper()}{why[1:]}.",
        instead=("name an account with a delta in budget",),
        field="budget",
    )


def no_noise(why: str) -> Finding:
    """Why noise cannot be drawn at a price."""
    what = "a synthetic table at this price is refused"
    return refusals.no_noise(what, why, "name another epsilon", "name fewer rows_per_unit", field="epsilon")


NOT_PLANNED = refusals.not_planned("the synthetic table is refused", "name fewer columns")


def unit_too_long(nanoseconds: float) -> Finding:
    """Why a table is refused for which the rows of one person take long enough to be seen."""
    return Finding(
        code="too_large",
        what="the synthetic table is refused",
        why=f"Counting the rows of one person may take {round(nanoseconds / 1e6):,} ms, which would show whether they "
        f"are there; {UNIT_NANOSECONDS_MAX // 1_000_000} ms are allowed.",
        instead=(
            "name fewer columns",
            "ask an administrator to declare a smaller rows_stored_per_unit",
        ),
    )
