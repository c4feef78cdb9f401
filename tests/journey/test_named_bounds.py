"""Bounds that a request has to name: the refusal names those of the profile, and what it advises is accepted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import pytest

from server.administration.profiles import ProfileDataset
from tests.journey.clinic import clinic_in
from tests.journey.test_monitors import Clinic

COUNT = "SELECT COUNT(*) FROM visits"

ASKED: dict[str, dict[str, Any]] = {
    "monitors": {"sql": COUNT, "threshold": "5000", "epsilon": "1", "evaluations": 5},
    "streams": {"table": "visits", "columns": [{"name": "cost", "low": 0, "high": 999, "step": 50}], "epsilon": "2"},
    "batches": {
        "queries": [f"{COUNT} WHERE cost > {least}" for least in (100, 300)],
        "spend": {"own_epsilon": "1"},
    },
}


@pytest.fixture(scope="module")
def clinic(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clinic]:
    """A clinic whose visits have whole numbers as costs, and nothing that is declared of how many a unit has."""
    home = tmp_path_factory.mktemp("named")
    with clinic_in(home) as (services, path):
        declared = "{rows_per_unit: 20, groups_per_unit: 2, rows_per_unit_and_group: 10}"
        text = path.read_text().replace("cost: {type: number", "cost: {type: integer")
        assert declared in text
        path.write_text(text.replace(declared, "auto"))
        services.registrar.attach_path(path, actor="test")
        yield Clinic(home, services, path)


def refusal(clinic: Clinic, who: str, kind: str) -> dict[str, Any]:
    """Why the estimate is refused where bounds would be chosen; nothing is charged."""
    body = {"dataset": "clinic", **ASKED[kind]}
    refused = clinic.call(who, "POST", f"/v1/{kind}:estimate", body)
    assert (refused.status_code, refused.json()["code"]) == (422, "contribution_not_named"), refused.text
    told: dict[str, Any] = refused.json()
    return told


def accepted(clinic: Clinic, who: str, kind: str, advice: str) -> None:
    """What the advice names is accepted as it stands."""
    named, _ = json.JSONDecoder().raw_decode(advice[advice.index("{") :])
    body = {"dataset": "clinic", **ASKED[kind], "contribution": named}
    estimate = clinic.call(who, "POST", f"/v1/{kind}:estimate", body)
    assert estimate.status_code == 200, estimate.text


def test_the_advice_is_that_of_the_profile_where_there_is_one(clinic: Clinic) -> None:
    """Shows a number that is only an example without a profile, quantiles with one, and that both are accepted."""
    who, _ = clinic.somebody(epsilon="100")
    for kind in ASKED:
        example, where = refusal(clinic, who, kind)["instead"]
        assert "20" in example
        assert "dataset profile" in where
        accepted(clinic, who, kind, example)
    stream = stream_of(clinic, who, 2)
    assert stream["contribution"] == {**bounds(2), "source": "request", "larger": 4}
    rows, unknown = stream["cut"]
    assert "scaled down beyond 2 rows" in rows or "at most 2 rows" in rows
    assert "is not known" in unknown
    clinic.services.profiles.make(ProfileDataset("clinic", Fraction(50)), actor="owner")
    for kind in ASKED:
        (known,) = refusal(clinic, who, kind)["instead"]
        # One to four visits each, so both quantiles are four.
        assert known.endswith('_and_group": 4}: nine of ten units have at most that many rows, by the profile')
        accepted(clinic, who, kind, known)
    for rows, share in (
        (1, "many units, half of them or more,"),
        # Half have one or two, so that noise decides whether the median is two or three; it is never more.
        (3, "at most about 50 of 100"),
        (4, "about 1 of 100"),
    ):
        stream = stream_of(clinic, who, rows)
        assert share in stream["cut"][1], rows
        assert stream["contribution"]["larger"] == max(2 * rows, 4)
        # The bound that is named leaves out less, by the same words.
        larger = stream_of(clinic, who, stream["contribution"]["larger"])
        assert "about 1 of 100" in larger["cut"][1]


def bounds(rows: int) -> dict[str, int]:
    """As many groups as rows."""
    return dict.fromkeys(("rows_per_unit", "groups_per_unit", "rows_per_unit_and_group"), rows)


def stream_of(clinic: Clinic, who: str, rows: int) -> dict[str, Any]:
    """A stream with this bound, which says what its estimate says, and nothing of it once it is closed."""
    body = {"dataset": "clinic", **ASKED["streams"], "contribution": bounds(rows)}
    estimate = clinic.call(who, "POST", "/v1/streams:estimate", body).json()
    made: dict[str, Any] = clinic.call(who, "POST", "/v1/streams", body).json()
    assert (made["contribution"], made["cut"]) == (estimate["contribution"], estimate["cut"])
    assert clinic.call(who, "GET", f"/v1/streams/{made['id']}").json()["cut"] == made["cut"]
    asked = clinic.call(who, "POST", f"/v1/streams/{made['id']}/queries", {"queries": [{"where": []}]}).json()
    assert asked["cut"] == made["cut"]
    closed = clinic.call(who, "DELETE", f"/v1/streams/{made['id']}").json()
    assert (closed["contribution"], closed["cut"], closed["sql"]) == (None, [], None)
    return made


def test_a_stream_of_units_with_one_row_leaves_nothing_out(clinic: Clinic) -> None:
    """Shows no bound and no words where each unit has one row."""
    who, _ = clinic.somebody()
    body = {"dataset": "clinic", "table": "people", "columns": [{"name": "sex"}], "epsilon": "2"}
    estimate = clinic.call(who, "POST", "/v1/streams:estimate", body).json()
    assert (estimate["contribution"], estimate["cut"]) == (None, [])
