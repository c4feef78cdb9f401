"""Datasets over HTTP: public metadata for those with an account, never sources, never counts."""

from __future__ import annotations

import dataclasses
import datetime
from fractions import Fraction

from accountant.account import FilterKind, Limit
from accountant.request import CoreCharge, ReserveRequest, Reuse
from privacy.bounds import ValueBounds
from privacy.events import LaplaceEvent
from privacy.numbers import decimal_text
from privacy.policy import Column, ColumnType, PublicKeys
from server.administration.profile_refusals import ProfiledAlready, ProfileFailed
from server.administration.refusal import ActRefused
from server.floor import epsilon_min
from server.published import PROFILE
from server.routes.datasets import table_body
from tests.server.conftest import World
from tests.server.fakes import clinic


def test_an_analyst_with_a_budget_sees_public_metadata(world: World) -> None:
    """Tables, columns, bounds, keys and limits as they were declared."""
    assert [item["name"] for item in world.api.get("/v1/datasets").json()["datasets"]] == ["clinic"]
    body = world.api.get("/v1/datasets/clinic").json()
    assert body["privacy_unit"] == {"table": "patients", "key": "patient"}
    assert body["limits"]["epsilon_default"] == "0.1"
    table = world.api.get("/v1/datasets/clinic/tables/patients").json()
    assert body["tables"] == [table]
    assert table["columns"][1]["bounds"] == {"lower": "0", "upper": "110"}
    assert table["columns"][2]["keys"] == ["f", "m", None]
    assert world.api.get("/v1/datasets/clinic/tables/absent").status_code == 404


def test_without_a_budget_a_dataset_is_not_there(world: World) -> None:
    """404 for a dataset without an account, the same as for one that does not exist; overseers see it."""
    assert world.api.get("/v1/datasets", who="other").json() == {"datasets": [], "unavailable": []}
    hidden = world.api.get("/v1/datasets/clinic", who="other")
    absent = world.api.get("/v1/datasets/absent", who="other")
    assert hidden.status_code == absent.status_code == 404
    assert {**hidden.json(), "request_id": ""} == {**absent.json(), "request_id": ""}
    assert world.api.get("/v1/datasets/clinic/tables/patients", who="other").status_code == 404
    for who in ("admin", "auditor"):
        assert world.api.get("/v1/datasets/clinic", who=who).status_code == 200


def test_every_kind_of_key_and_bound_is_json(world: World) -> None:
    """Dates become ISO text, negative bounds stay exact decimals."""
    day = Column("day", ColumnType.DATE, keys=PublicKeys((datetime.date(2024, 1, 31), None)))
    score = Column("score", ColumnType.NUMBER, bounds=ValueBounds(Fraction(-5, 2), Fraction(1, 8)))
    table = dataclasses.replace(clinic().tables[0], columns=(day, score), unit_column="day")
    columns = table_body(table)["columns"]
    assert columns[0]["keys"] == ["2024-01-31", None]
    assert columns[1]["bounds"] == {"lower": "-2.5", "upper": "0.125"}


def test_an_administrator_attaches_replaces_and_removes(world: World) -> None:
    """POST by file or by contents, PUT under the same name, DELETE; others cannot see it before they have a budget."""
    made = world.api.post("/v1/datasets", json={"path": "school.yaml"}, who="admin")
    assert (made.status_code, made.headers["location"]) == (201, "/v1/datasets/school")
    document = {"dataset": "school", "tables": {}}
    assert world.api.call("PUT", "/v1/datasets/school", json={"dataset": document}, who="admin").status_code == 200
    assert world.registrar.given[-1] == document
    assert world.api.get("/v1/datasets/school").status_code == 404
    assert world.api.call("DELETE", "/v1/datasets/school", who="admin").status_code == 204
    assert world.api.call("DELETE", "/v1/datasets/school", who="admin").status_code == 404


def test_a_dataset_cannot_be_put_under_another_name(world: World) -> None:
    """PUT refuses a file of another name: 409, and nothing is attached."""
    for body in ({"path": "other.yaml"}, {"dataset": {"dataset": "other", "tables": {}}}):
        assert world.api.call("PUT", "/v1/datasets/school", json=body, who="admin").status_code == 409
    assert world.registrar.given == []


def test_paths_stay_in_the_folder_and_bodies_have_one_source(world: World) -> None:
    """Paths with folders, other suffixes, both sources or none: 422, and the registrar is not asked."""
    for body in (
        {"path": "../secrets/key.yaml"},
        {"path": "/etc/passwd"},
        {"path": "a/b.yaml"},
        {"path": "clinic.txt"},
        {"path": ".hidden.yaml"},
        {},
        {"path": "a.yaml", "dataset": {}},
        {"dataset": []},
    ):
        assert world.api.post("/v1/datasets", json=body, who="admin").status_code == 422
    assert world.registrar.given == []


def test_all_findings_about_a_dataset_come_at_once(world: World) -> None:
    """A refused description is 422 with every finding and its place."""
    refused = world.api.post("/v1/datasets", json={"dataset": {"dataset": "x"}}, who="admin")
    assert (refused.status_code, refused.json()["code"]) == (422, "dataset_refused")
    assert [finding["field"] for finding in refused.json()["findings"]] == ["tables", "privacy_unit"]


def test_descriptions_may_be_larger_than_questions(world: World) -> None:
    """A dataset's body may be up to a mebibyte; more is 413."""
    document = {"dataset": "big", "tables": {}, "description": "x" * 200_000}
    assert world.api.post("/v1/datasets", json={"dataset": document}, who="admin").status_code == 201
    document["description"] = "x" * 1_100_000
    assert world.api.post("/v1/datasets", json={"dataset": document}, who="admin").status_code == 413


def test_versions_are_for_overseers(world: World) -> None:
    """Versions that were stored are listed oldest first, without paths."""
    for data in ("d1", "d2"):
        world.registry.register_dataset(
            name="clinic", policy_version=1, data_version=data, snapshot=f"secret-{data}", document={}, actor="admin"
        )
    versions = world.api.get("/v1/datasets/clinic/versions", who="auditor")
    assert [(item["data_version"], item["current"]) for item in versions.json()["versions"]] == [
        ("d1", False),
        ("d2", True),
    ]
    assert "secret" not in versions.text
    assert world.api.get("/v1/datasets/absent/versions", who="admin").status_code == 404


def test_a_floor_that_nobody_declared_is_not_shown_as_none(world: World) -> None:
    """`limits.epsilon_min` was null where the least price of an answer was a share of the root: it is that share."""
    served = world.catalogue.datasets["clinic"]
    assert served.limits.epsilon_min is None
    floor = epsilon_min(served, world.root)
    assert floor > 0
    for who in ("analyst", "admin", "auditor"):
        body = world.api.get("/v1/datasets/clinic", who=who).json()
        assert body["limits"]["epsilon_min"] == decimal_text(floor)
    declared = dataclasses.replace(served.limits, epsilon_min=Fraction(1, 100))
    world.catalogue.datasets["clinic"] = dataclasses.replace(served, limits=declared)
    assert world.api.get("/v1/datasets/clinic").json()["limits"]["epsilon_min"] == "0.01"


def test_a_floor_is_not_made_up_before_there_is_a_root(world: World) -> None:
    """Without a budget there is no price and null is the truth; the first root brings the floor."""
    body = {"dataset": {"dataset": "school", "tables": {}}}
    made = world.api.post("/v1/datasets", json=body, who="admin")
    assert made.json()["limits"]["epsilon_min"] is None
    root = world.ledger.create_account(
        dataset="school", parent=None, principal=None, name="root", limit=Limit(Fraction(20), Fraction(0)),
        filter=FilterKind.PURE, actor="test",
    )  # fmt: skip
    expected = decimal_text(epsilon_min(world.catalogue.datasets["school"], root))
    assert expected == "0.0002"
    for answer in (
        world.api.get("/v1/datasets/school", who="admin"),
        world.api.call("PUT", "/v1/datasets/school", json=body, who="admin"),
    ):
        assert answer.json()["limits"]["epsilon_min"] == expected


def test_a_broken_dataset_is_not_told_to_be_unknown(world: World) -> None:
    """Who may ask it reads that it is not available and that nothing was charged; to a stranger it is not there."""
    world.api.post("/v1/datasets", json={"dataset": {"dataset": "school", "tables": {}}}, who="admin")
    del world.catalogue.datasets["clinic"]
    world.catalogue.broken.append("clinic")
    question = {"dataset": "clinic", "sql": "SELECT COUNT(*) AS n FROM patients"}
    asked = [
        world.api.get("/v1/datasets/clinic"),
        world.api.get("/v1/datasets/clinic/tables/patients"),
        world.api.get("/v1/datasets/clinic", who="admin"),
        world.api.post("/v1/queries", json=question),
        world.api.post("/v1/estimates", json=question),
    ]
    for refused in asked:
        assert (refused.status_code, refused.json()["code"], refused.json()["charged"]) == (503, "unavailable", False)
        assert 'dataset "clinic" is not available' in refused.json()["what"]
    assert world.spent() == 0
    for path in ("/v1/queries", "/v1/estimates"):
        absent = world.api.post(path, json={**question, "dataset": "absent"}, who="admin")
        hidden = world.api.post(path, json=question, who="other")
        assert hidden.json()["what"] == absent.json()["what"]
        assert (absent.status_code, hidden.status_code) == (404, 404)
        assert hidden.json()["code"] == "unknown_dataset"
    assert world.api.get("/v1/datasets/clinic", who="other").status_code == 404
    assert world.api.get("/v1/datasets").json() == {"datasets": [], "unavailable": ["clinic"]}
    assert world.api.get("/v1/datasets", who="other").json() == {"datasets": [], "unavailable": []}
    seen = world.api.get("/v1/datasets", who="admin").json()
    assert ([item["name"] for item in seen["datasets"]], seen["unavailable"]) == (["school"], ["clinic"])


def test_an_administrator_makes_a_profile_and_everybody_reads_it(world: World) -> None:
    """POST once, published with the dataset; nobody else may make one, and a refusal is a problem."""
    path = "/v1/datasets/clinic/profile"
    assert world.api.get("/v1/datasets/clinic").json()["profile"] is None
    made = world.api.post(path, json={"epsilon": "0.25"}, who="admin", headers={"Idempotency-Key": "p"})
    assert (made.status_code, made.headers["location"]) == (201, "/v1/datasets/clinic")
    profile = world.api.get("/v1/datasets/clinic").json()["profile"]
    assert profile == made.json()
    assert Fraction(profile["epsilon"]) == Fraction(1, 4)
    again = world.api.post(path, json={"epsilon": "0.25"}, who="admin", headers={"Idempotency-Key": "p"})
    assert again.json() == profile
    assert world.api.post(path, json={"epsilon": "0.25"}, who="analyst").status_code == 403
    assert world.api.post(path, json={"epsilon": 0.25}, who="admin").status_code == 422
    world.profiles.refusal = ActRefused(ProfiledAlready("clinic", "d1", "2026-03-01", "0.25"))
    second = world.api.post(path, json={"epsilon": "0.25"}, who="admin")
    assert (second.status_code, second.json()["code"]) == (409, "conflict")
    world.profiles.refusal = ActRefused(ProfileFailed("clinic", charged=True))
    failed = world.api.post(path, json={"epsilon": "0.25"}, who="admin")
    assert (failed.json()["code"], failed.json()["charged"]) == ("execution_failed", True)


def test_the_query_of_a_profile_is_sent_as_json_only(world: World) -> None:
    """It is an entry like any other, and no table."""
    core = CoreCharge(
        core_key="0" * 64, quality=Fraction(1), events=(LaplaceEvent(l1_sensitivity=Fraction(1), scale=Fraction(10)),)
    )
    request = ReserveRequest(
        query_id="q_1",
        principal="admin",
        account=world.root.id,
        body_hash="0" * 64,
        cores=(core,),
        reuse=Reuse.NONE,
        description={PROFILE: "d1"},
    )
    world.ledger.reserve(request)
    world.ledger.post("q_1", (), b'{"tables":[]}')
    as_text = world.api.get("/v1/queries/q_1", who="admin", headers={"Accept": "text/csv"})
    assert (as_text.status_code, as_text.json()["code"]) == (406, "not_acceptable")
