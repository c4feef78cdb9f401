"""Why streams are not opened, and why their queries are not answered."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from fractions import Fraction

from privacy.numbers import decimal_text
from privacy.policy import Sharing
from privacy.refusal import Finding
from privacy.wording import nearest
from server.above_floor import Shortfall
from server.errors import Problem
from server.resources import refusals
from server.resources.kinds import ResourceKind

__all__ = [
    "BEYOND_TERMS",
    "BOTH_WAYS",
    "CLOCK",
    "LEAVES_OUT",
    "NOT_CELLS",
    "NUMBER_KEYS",
    "OTHER_RELATION",
    "WHAT",
    "Comparing",
    "above_most",
    "below_floor",
    "beyond_cells",
    "cells_refused",
    "cuts_place",
    "dataset_away",
    "is_over",
    "no_such_values",
    "noise_unreachable",
    "nothing_known",
    "nothing_together",
    "overtaken",
    "shared_refused",
    "tolerance_unreachable",
    "type_refused",
    "unknown_key",
    "unknown_table",
    "upside_down",
]

WHAT = "the text of a stream is refused"
_QUERY = "a query of the stream is refused"

_SHOWN = 5
"""Most values of a key that advice names."""

NOT_CELLS = Finding(
    code="unsupported_sql",
    what=WHAT,
    why="A stream has cells: one COUNT(*) or SUM for each group of public keys, and nothing beside it.",
    instead=(
        "write SELECT sex, COUNT(*) FROM people GROUP BY sex, where sex declares its keys",
        'name the columns in place of the text: "table": "people", "columns": [{"name": "age", "low": 18, "high": 89}]',
    ),
)
NUMBER_KEYS = Finding(
    code="unsupported_sql",
    what=WHAT,
    why="A key of the type number has values with fractions, which queries of a stream cannot name.",
    instead=("group by whole numbers: SELECT CAST(FLOOR(x) AS BIGINT) AS x, COUNT(*) FROM a_table GROUP BY 1",),
)

LEAVES_OUT = Finding(
    code="unsupported_sql",
    what=WHAT,
    why="A unit would count in fewer cells than it has rows, so ranges would leave out more than counts of them do.",
    instead=(
        "name as many groups as rows: "
        '"contribution": {"rows_per_unit": 5, "groups_per_unit": 5, "rows_per_unit_and_group": 5}',
    ),
)
OTHER_RELATION = refusals.other_relation(WHAT, "streams", "ask its queries with POST /v1/queries")
CLOCK = Finding(
    code="volatile_function",
    what=WHAT,
    why="It reads the clock: the cells of a stream are the same whatever the day.",
    instead=("write a date in its place",),
)
BEYOND_TERMS = Finding(
    code="policy_forbids",
    what="a query of the stream is refused",
    why="The declarations have changed: it has other cells, or one unit may change them by more than was charged for.",
    instead=("open another stream", "DELETE /v1/streams/{stream_id} ends this one"),
)
BOTH_WAYS = Finding(
    code="unsupported_sql",
    what=_QUERY,
    why="A condition has a low, a high or both; or it has values.",
    instead=('write {"key": "age", "low": 30, "high": 49}', 'write {"key": "sex", "values": ["female"]}'),
    field="queries",
)


def cells_refused(count: int, most: int) -> Finding:
    """Why a text with too many cells is refused, or with one."""
    return Finding(
        code="key_domain_too_large" if count > most else "unsupported_sql",
        what=WHAT,
        why=f"It has {count} cells, and a stream has from 2 to {most}: each has noise, and a range is the sum of them.",
        instead=("group by fewer keys, or by wider ones, such as age // 5", "narrow the range in WHERE"),
    )


def noise_unreachable(why: str) -> Finding:
    """Why a stream whose noise cannot be drawn is refused."""
    instead = ("name another epsilon, or fewer updates", "count rows, or sum a column with narrower bounds")
    return refusals.no_noise("the stream is refused", why, *instead)


def tolerance_unreachable(least: Fraction) -> Finding:
    """Why a tolerance is refused at which noise alone would use up the updates."""
    return Finding(
        code="accuracy_unreachable",
        what="this tolerance is refused",
        why="Noise alone would use up half of the updates, or more, even if the synopsis had no error at all.",
        instead=(
            f"name a tolerance of {decimal_text(least, places=6)} or more, or none",
            "name fewer updates or queries, or a greater epsilon",
        ),
        field="tolerance",
    )


def above_most(most: Fraction) -> Finding:
    """Why a stream above the policy's greatest price is refused."""
    return refusals.above_most("a stream", most, "open several streams")


def below_floor(queries: int, short: Shortfall) -> Finding:
    """Why a stream below the floor is refused."""
    fewer = f'"queries": {short.looks}, or --queries {short.looks}: after them the synopsis goes on answering'
    return Finding(
        code="policy_forbids",
        what=f"a stream of {queries} compared queries at this epsilon is refused",
        why=f"Each comparison reads rows, and is worth the dataset's floor at least, epsilon {short.of_one} of the "
        f"whole budget.{short.worth}",
        instead=(*((fewer,) if short.looks else ()), short.greater("epsilon")),
    )


def shared_refused(sharing: Sharing) -> Finding:
    """Why a stream for others is refused where the policy does not let them read for free what others pay for."""
    return Finding(
        code="policy_forbids",
        what="a stream for others is refused",
        why=f"They would read for free what they did not pay for. {sharing.said}",
        instead=(
            'leave "shared": true out: the stream is then your own',
            "releases_shared: free in the dataset file allows it",
        ),
        field="shared",
    )


def unknown_table(name: str, known: Sequence[str]) -> Finding:
    """Why a table is refused that the dataset does not have, or whose rows are public."""
    near = nearest(name, known)
    return Finding(
        code="unknown_table",
        what=f'table "{name[:63]}" is refused',
        why=f"The tables of people are {', '.join(known)}.",
        instead=() if near is None else (f"write {near}",),
        field="table",
    )


def unknown_key(name: str, known: Sequence[str], *, repeated: bool) -> Finding:
    """Why a condition is refused about a key that the stream does not have, or about one for the second time."""
    near = nearest(name, known)
    return Finding(
        code="unknown_column",
        what=_QUERY,
        why=f'It names the key "{name[:63]}" twice.'
        if repeated
        else f'The stream has no key "{name[:63]}". Its keys are {", ".join(known)}.',
        instead=("put its values into one condition",) if repeated else (f"write {near or known[0]}",),
        field="queries",
    )


def type_refused(name: str, kind: str) -> Finding:
    """Why a value of another type is refused."""
    return Finding(
        code="unsupported_sql",
        what=_QUERY,
        why=f'The key "{name[:63]}" has values of the type {kind}, and a value of the query is none.',
        instead=("write whole numbers and truth values as JSON has them, dates like 2026-01-31, in quotes",),
        field="queries",
    )


def upside_down(name: str) -> Finding:
    """Why a range is refused that ends before it begins."""
    return Finding(
        code="unsupported_sql",
        what=_QUERY,
        why=f'The range of the key "{name[:63]}" ends before it begins.',
        instead=("write the lower end as low",),
        field="queries",
    )


def beyond_cells(name: str) -> Finding:
    """Why a range is refused that goes beyond the cells: its answer would leave rows out."""
    return Finding(
        code="unsupported_sql",
        what=_QUERY,
        why=f'The range of the key "{name[:63]}" goes beyond the cells of the stream, which count no rows there.',
        instead=("leave low or high away where the range is open", "open a stream with a wider range"),
        field="queries",
    )


def cuts_place(name: str, step: int) -> Finding:
    """Why a range is refused that begins or ends within a cell."""
    return Finding(
        code="unsupported_sql",
        what=_QUERY,
        why=f'The range of the key "{name[:63]}" begins or ends within a cell: its cells have {step} values each.',
        instead=("begin it with the first value of a cell, and end it with the last one", "open a stream with step 1"),
        field="queries",
    )


def no_such_values(name: str, known: Sequence[object]) -> Finding:
    """Why a condition is refused whose values no cell has; `known` are the key's own, as JSON has them."""
    some = json.dumps({"key": name, "values": list(known[:_SHOWN])}, ensure_ascii=False)
    return Finding(
        code="unsupported_sql",
        what=_QUERY,
        why=f'No cell satisfies it: the key "{name[:63]}" has none of these values, so the answer is 0 for everybody. '
        f"It has {len(known)} values.",
        instead=(f"write {some}",),
        field="queries",
    )


def nothing_together(kept: Sequence[Mapping[str, object]]) -> Finding:
    """Why conditions are refused of which no cell satisfies all, where some cells satisfy those that are `kept`."""
    return Finding(
        code="unsupported_sql",
        what=_QUERY,
        why="No cell satisfies all of its conditions: the text of the stream rules such cells out, so the answer is 0 "
        "for everybody.",
        instead=(f"write {', '.join(json.dumps(one, ensure_ascii=False) for one in kept)} alone",),
        field="queries",
    )


def is_over(why: str) -> Problem:
    """Why a stream that is over says nothing."""
    return refusals.is_over("stream", why, again=ResourceKind.STREAM.path)


def nothing_known() -> Problem:
    """Why a stream answers nothing that compares nothing any more, and never measured anything."""
    return Problem(
        "conflict",
        what="the stream has no synopsis",
        why="It compares nothing any more, and its cells were never measured: every attempt failed.",
        instead=("Open another one with POST /v1/streams.",),
    )


def overtaken() -> Problem:
    """What a request says that another one overtook."""
    return Problem(
        "conflict",
        what="the queries were overtaken by others of the same stream",
        why="The stream was closed, or taken for one that nobody compares any more, so they were thrown away unseen.",
        instead=("Send them again.",),
        headers={"Retry-After": "1"},
    )


class Comparing(Problem):
    """Why nothing is compared at this moment: other queries of the stream have their turn. Nothing was counted."""

    def __init__(self) -> None:
        super().__init__(
            "conflict",
            what="other queries of the stream are being compared",
            why="Requests of one stream follow one another. These were not counted, and nothing was charged.",
            instead=("Send them again in a moment.", "Send the queries of a page in one request."),
            headers={"Retry-After": "1"},
        )


def dataset_away() -> Problem:
    """What a query says while the dataset is not served."""
    return refusals.dataset_away("stream", again="Send the queries again later.")
