"""Windows within each unit: what is known of the rows, one identity for all spellings, refusals."""

from __future__ import annotations

import pytest

from privacy.policy import Dataset
from sql_rewrite.contribution import Contribution
from sql_rewrite.expressions import ColumnRef
from sql_rewrite.plan_key import core_key
from sql_rewrite.references import reference
from sql_rewrite.unit_facts import rows_of_unit
from tests.sql_rewrite.datasets import AUTOMATIC, CLINIC
from tests.sql_rewrite.test_unit_groups import between, core, refused


def column(listed: str, dataset: Dataset = CLINIC) -> ColumnRef:
    """What is known of a column beside the rows of visits."""
    found = core(f"SELECT COUNT(*) FROM (SELECT person_id, {listed} AS x FROM visits) AS t", dataset)
    source = found.core.sources[0]
    shown = next(c for c in source.table.columns if c.description == "x")
    return reference(source, shown, dataset)


def test_ranges_follow_from_rows_and_bounds() -> None:
    """Shows those of places, of sums over frames, and of the values of other rows."""
    over = "OVER (PARTITION BY person_id ORDER BY day)"
    assert column(f"ROW_NUMBER() {over}").interval == between(1, 1_000)
    assert column(f"RANK() {over}").declared == between(1, 40)
    assert column(f"DENSE_RANK() {over}", AUTOMATIC).declared == between(1, 1_000)
    assert column(f"NTILE(4) {over}").interval == between(1, 4)
    assert column(f"CUME_DIST() {over}").declared == between(0, 1)
    assert column(f"COUNT(*) {over}").interval == between(1, 1_000)
    assert column(f"SUM(cost) {over}").declared == between(0, 200_000)
    assert column(f"LAG(cost) {over}").declared == between(0, 5_000)
    frame = "OVER (PARTITION BY person_id ORDER BY day ROWS BETWEEN 3 PRECEDING AND 1 PRECEDING)"
    assert column(f"COUNT(*) {frame}").interval == between(0, 1_000)


def test_null_is_known() -> None:
    """Shows that a row that need not be there gives NULL, and a default or the row itself does not."""
    over = "OVER (PARTITION BY person_id ORDER BY day)"
    before = "OVER (PARTITION BY person_id ORDER BY day ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"
    assert column(f"LAG(visit_id) {over}").nullable
    assert not column(f"LAG(visit_id, 1, 0) {over}").nullable
    assert column(f"LAG(hospital_id, 1, 0) {over}").nullable
    assert not column(f"FIRST_VALUE(visit_id) {over}").nullable
    assert column(f"FIRST_VALUE(visit_id) {before}").nullable
    assert column(f"MAX(visit_id) {before}").nullable
    assert not column(f"MAX(visit_id) {over}").nullable
    assert not column(f"ROW_NUMBER() {over}").nullable


NUMBERED = "ROW_NUMBER() OVER (PARTITION BY person_id ORDER BY day DESC)"


@pytest.mark.parametrize(
    ("condition", "most"),
    [("= 1", 1), ("= 7", 1), ("<= 3", 3), ("< 3", 2), ("IN (1, 5)", 2), ("BETWEEN 2 AND 4", 4), ("> 2", 1_000)],
)
def test_so_many_rows_of_a_unit_are_kept(condition: str, most: int) -> None:
    """Shows what a condition on the number of a row says of the rows of a unit; one row needs no bounds."""
    found = core(f"SELECT SUM(cost) FROM (SELECT * FROM visits QUALIFY {NUMBERED} {condition}) AS t")
    assert rows_of_unit(found.core.sources) == most
    assert isinstance(found.contribution, Contribution)
    assert found.contribution.one_row == (most == 1)
    assert found.contribution.total == min(most, 40)


@pytest.mark.parametrize(
    "window",
    [
        "RANK() OVER (PARTITION BY person_id ORDER BY day DESC)",
        "DENSE_RANK() OVER (PARTITION BY person_id)",
        "ROW_NUMBER() OVER (PARTITION BY person_id, ward ORDER BY day)",
        "COUNT(*) OVER (PARTITION BY person_id ORDER BY day)",
    ],
)
def test_places_that_repeat_bound_nothing(window: str) -> None:
    """Shows that equal rows may share a rank, and that each ward has a first row."""
    found = core(f"SELECT COUNT(*) FROM (SELECT * FROM visits QUALIFY {window} = 1) AS t")
    assert rows_of_unit(found.core.sources) == 1_000


def test_an_outer_join_keeps_a_unit_without_its_rows() -> None:
    """Shows that a condition above an outer join is not one on the rows before it."""
    inner = f"SELECT person_id, cost, {NUMBERED} AS place FROM visits"
    inside = f"SELECT COUNT(*) FROM people AS p LEFT JOIN ({inner} QUALIFY place = 1) AS t ON t.person_id = p.person_id"
    above = f"SELECT COUNT(*) FROM people AS p LEFT JOIN ({inner}) AS t ON t.person_id = p.person_id WHERE place = 1"
    assert core(inside).core.where is None
    assert core(inside).core.sources[1].table.one_row
    assert core(above).core.where is not None
    assert not core(above).core.sources[1].table.one_row


def test_a_window_over_all_rows_is_constant_per_unit() -> None:
    """Shows that its different values are one row of each unit, and those of a running window are not."""
    whole = "FIRST_VALUE(ward) OVER (PARTITION BY person_id ORDER BY day)"
    running = "LAST_VALUE(ward) OVER (PARTITION BY person_id ORDER BY day ROWS UNBOUNDED PRECEDING)"
    for window, one in ((whole, True), ("MIN(day) OVER (PARTITION BY person_id)", True), (running, False)):
        found = core(f"SELECT COUNT(*) FROM (SELECT DISTINCT person_id, {window} AS x FROM visits) AS t")
        assert found.core.sources[0].table.one_row == one


def test_one_identity_for_all_spellings() -> None:
    """Shows QUALIFY, a condition around the rows, an alias and a named window as one question."""
    listed = f"SELECT *, {NUMBERED} AS place FROM visits"
    spellings = [
        f"SELECT ward, COUNT(*) FROM ({listed} QUALIFY place = 1) AS t GROUP BY ward",
        f"SELECT ward, COUNT(*) FROM ({listed}) AS t WHERE place = 1 GROUP BY ward",
        f"SELECT ward, COUNT(*) FROM (SELECT * FROM ({listed}) AS s WHERE 1 = place) AS t GROUP BY ward",
        f"WITH t AS ({listed}) SELECT ward, COUNT(*) FROM t WHERE t.place = 1 GROUP BY t.ward",
        "SELECT ward, COUNT(*) FROM (SELECT *, ROW_NUMBER() OVER w AS place FROM visits "
        "WINDOW w AS (PARTITION BY person_id ORDER BY day DESC)) AS t WHERE place = 1 GROUP BY ward",
    ]
    assert len({core_key(core(text), CLINIC) for text in spellings}) == 1
    other = spellings[0].replace("DESC", "ASC")
    assert core_key(core(other), CLINIC) != core_key(core(spellings[0]), CLINIC)


def test_rows_of_a_key_of_people_belong_to_one_unit() -> None:
    """Shows that a visit's tests may be numbered within the visit, and nothing within a ward."""
    place = "ROW_NUMBER() OVER (PARTITION BY visit_id ORDER BY result)"
    assert core(f"SELECT COUNT(*) FROM (SELECT {place} AS r FROM tests) AS t WHERE r = 1").statistics


@pytest.mark.parametrize(
    ("listed", "code"),
    [
        ("ROW_NUMBER() OVER (PARTITION BY ward ORDER BY day)", "private_row_limit"),
        ("SUM(cost) OVER ()", "private_row_limit"),
        ("RANK() OVER (PARTITION BY person_id % 10 ORDER BY day)", "private_row_limit"),
        ("RANK() OVER (PARTITION BY hospital_id ORDER BY day)", "private_row_limit"),
        ("LAST_VALUE(ward) OVER (PARTITION BY person_id ORDER BY day)", "unsupported_sql"),
        ("ROW_NUMBER() OVER (PARTITION BY person_id ROWS UNBOUNDED PRECEDING)", "unsupported_sql"),
        ("SUM(cost) OVER (PARTITION BY person_id GROUPS UNBOUNDED PRECEDING)", "unsupported_sql"),
        ("SUM(cost) OVER (PARTITION BY person_id ROWS BETWEEN 1 FOLLOWING AND 1 PRECEDING)", "unsupported_sql"),
        ("SUM(cost) OVER (PARTITION BY person_id ROWS BETWEEN visit_id PRECEDING AND CURRENT ROW)", "unsupported_sql"),
        ("COUNT(DISTINCT ward) OVER (PARTITION BY person_id)", "unsupported_function"),
        ("LAG(ward, 0 IGNORE NULLS) OVER (PARTITION BY person_id ORDER BY day)", "unsupported_function"),
        ("ROW_NUMBER() IGNORE NULLS OVER (PARTITION BY person_id ORDER BY day)", "unsupported_function"),
        ("SUM(cost) OVER (PARTITION BY person_id ORDER BY day, cost RANGE 3 PRECEDING)", "unsupported_sql"),
        ("SUM(cost) OVER (PARTITION BY person_id ORDER BY ward RANGE 3 PRECEDING)", "unsupported_sql"),
        ("SUM(cost) OVER (PARTITION BY person_id ORDER BY day RANGE 3 PRECEDING)", "unsupported_sql"),
        ("SUM(cost) OVER (PARTITION BY person_id ORDER BY day RANGE INTERVAL 1 MONTH PRECEDING)", "unsupported_sql"),
        ("SUM(cost) OVER (PARTITION BY person_id GROUPS 3 PRECEDING)", "unsupported_sql"),
        ("FIRST_VALUE(cost) OVER (PARTITION BY person_id ORDER BY day GROUPS 3 PRECEDING)", "unsupported_sql"),
        ("LAST_VALUE(cost IGNORE NULLS) OVER (PARTITION BY person_id ORDER BY day)", "unsupported_sql"),
        ("ARG_MAX(ward, cost) OVER (PARTITION BY person_id)", "unsupported_function"),
        ("LAG(cost, visit_id) OVER (PARTITION BY person_id ORDER BY day)", "unsupported_sql"),
        ("LAG(cost, 1, 'none') OVER (PARTITION BY person_id ORDER BY day)", "unsupported_type"),
        ("NTILE(0) OVER (PARTITION BY person_id ORDER BY day)", "unsupported_sql"),
        ("SUM(COUNT(*)) OVER (PARTITION BY person_id)", "raw_rows"),
        ("LAG(RANK() OVER (PARTITION BY person_id)) OVER (PARTITION BY person_id ORDER BY day)", "private_row_limit"),
        ("ROW_NUMBER() OVER w", "unknown_table"),
    ],
)
def test_windows_are_refused(listed: str, code: str) -> None:
    """Shows what puts rows of several people beside each other, and what has no proved or deterministic meaning."""
    assert (
        refused(f"SELECT COUNT(*) FROM (SELECT person_id, {listed} AS x FROM visits) AS t WHERE x IS NULL").code == code
    )


@pytest.mark.parametrize(
    ("inner", "code"),
    [
        ("SELECT * FROM visits QUALIFY RANK() OVER (PARTITION BY person_id) = 1 ORDER BY day", "private_row_limit"),
        ("SELECT * FROM visits QUALIFY RANK() OVER (PARTITION BY person_id) = 1 LIMIT 3", "private_row_limit"),
        ("SELECT DISTINCT ON (ward) ward, cost FROM visits ORDER BY ward, day", "private_row_limit"),
        ("SELECT DISTINCT ward, RANK() OVER (PARTITION BY person_id) AS r FROM visits", "private_row_limit"),
        ("SELECT * FROM visits QUALIFY cost", "unsupported_type"),
        ("SELECT * FROM visits WHERE RANK() OVER (PARTITION BY person_id) = 1", "private_row_limit"),
        ("SELECT cost FROM visits WINDOW w AS (PARTITION BY person_id) QUALIFY cost > 1", "unsupported_sql"),
        (
            "SELECT person_id, COUNT(*) OVER (PARTITION BY person_id), cost FROM visits GROUP BY person_id",
            "unsupported_sql",
        ),
        (
            "SELECT h.region, RANK() OVER (PARTITION BY v.person_id) FROM hospitals h "
            "LEFT JOIN visits v ON v.hospital_id = h.hospital_id",
            "unsupported_sql",
        ),
    ],
)
def test_blocks_with_windows_are_refused(inner: str, code: str) -> None:
    """Shows the clauses that would choose among rows of several people, and what is never ignored."""
    assert refused(f"SELECT COUNT(*) FROM ({inner}) AS t").code == code


def test_what_a_refusal_offers_names_the_table() -> None:
    """Shows a query in place of a window over all people."""
    finding = refused("SELECT COUNT(*) FROM (SELECT RANK() OVER (ORDER BY cost) AS r FROM visits) AS t WHERE r = 1")
    assert finding.instead[0] == (
        "SELECT COUNT(*) AS n FROM (SELECT person_id, ROW_NUMBER() OVER (PARTITION BY person_id) AS place FROM visits) "
        "AS t WHERE place = 1"
    )


def test_what_a_frame_leaves_out_is_known() -> None:
    """Shows that a row which is left out of its own frame may find none, and that rows of a unit then differ."""
    over = "OVER (PARTITION BY person_id ORDER BY day RANGE BETWEEN INTERVAL 3 DAY PRECEDING AND CURRENT ROW{})"
    assert column(f"COUNT(*) {over.format('')}").interval == between(1, 1_000)
    assert column(f"COUNT(*) {over.format(' EXCLUDE TIES')}").interval == between(1, 1_000)
    assert column(f"COUNT(*) {over.format(' EXCLUDE CURRENT ROW')}").interval == between(0, 1_000)
    assert column(f"MAX(visit_id) {over.format(' EXCLUDE GROUP')}").nullable
    whole = "(PARTITION BY person_id ORDER BY day ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING{})"
    for exclude in ("", " EXCLUDE CURRENT ROW"):
        rows = f"SELECT DISTINCT person_id, SUM(visit_id) OVER {whole.format(exclude)} AS x FROM visits"
        assert core(f"SELECT COUNT(*) FROM ({rows}) AS t").core.sources[0].table.one_row == (exclude == "")


def test_frames_are_told_apart() -> None:
    """Shows that windows which differ in their frame alone, or in IGNORE NULLS, are several."""
    frames = ("ROWS 3 PRECEDING", "GROUPS 3 PRECEDING", "RANGE INTERVAL 3 DAY PRECEDING",
              "ROWS BETWEEN 3 PRECEDING AND CURRENT ROW EXCLUDE TIES")  # fmt: skip
    clipped = "SELECT SUM(GREATEST(0, LEAST(9, x))) FROM (SELECT {} AS x FROM visits) AS t"
    over = "OVER (PARTITION BY person_id ORDER BY day {})"
    made = {core_key(core(clipped.format(f"SUM(cost) {over.format(frame)}")), CLINIC) for frame in frames}
    assert len(made) == len(frames)
    made = {
        core_key(core(clipped.format(f"LAG(cost{nulls}) {over.format('')}")), CLINIC) for nulls in ("", " IGNORE NULLS")
    }
    assert len(made) == 2
