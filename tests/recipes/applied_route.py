"""What is true of the route where the recipe of docs/recipes/route.md was followed; run by test_route.py in a copy.

The name keeps it out of a run over this checkout, which has no such route.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import server.routes.datasets
from tests.server.conftest import World, clock, migrated, populated, settings, world

__all__ = ["clock", "migrated", "populated", "settings", "world"]


def test_the_copy_is_what_is_tested() -> None:
    """The rooms are those of the copy, in which the recipe was followed."""
    assert Path(server.routes.datasets.__file__).is_relative_to(Path.cwd())


def test_the_limits_are_those_of_the_dataset(world: World) -> None:
    """The route says what the dataset's own metadata says, and nothing else of it."""
    limits = world.api.get("/v1/datasets/clinic/limits")
    assert limits.status_code == 200
    assert limits.json() == world.api.get("/v1/datasets/clinic").json()["limits"]
    assert limits.json()["epsilon_default"] == "0.1"


@pytest.mark.parametrize("who", ["other", "dashboard"])
def test_what_may_not_be_seen_is_not_there(world: World, who: str) -> None:
    """404 for a dataset of others, the same as for one that does not exist."""
    hidden = world.api.get("/v1/datasets/clinic/limits", who=who)
    absent = world.api.get("/v1/datasets/absent/limits", who=who)
    assert hidden.status_code == absent.status_code == 404
    assert {**hidden.json(), "request_id": ""} == {**absent.json(), "request_id": ""}


def test_its_answer_has_the_form_that_is_documented(world: World) -> None:
    """The members of the answer are those of the schema that the OpenAPI document says."""
    document = world.api.get("/openapi.json", who=None).json()
    operation = document["paths"]["/v1/datasets/{dataset}/limits"]["get"]
    reference = operation["responses"]["200"]["content"]["application/json"]["schema"]["$ref"]
    schema = document["components"]["schemas"][reference.rsplit("/", 1)[1]]
    assert set(world.api.get("/v1/datasets/clinic/limits").json()) == set(schema["properties"])
