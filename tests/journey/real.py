"""The real journey behind its protocol, by its own types: so that mypy reads what tests call that run at night only."""

from __future__ import annotations

from privacy.policy import Dataset
from server.answer import Journey
from server.journey.query import ToRun
from server.question import Question
from server.services import Services

__all__ = ["admitted_by", "dataset_of", "journey_of"]


def journey_of(services: Services) -> Journey:
    """The journey of started services."""
    assert isinstance(services.journey, Journey)
    return services.journey


def dataset_of(services: Services, name: str) -> Dataset:
    """An attached dataset."""
    dataset = services.catalogue.get(name)
    assert dataset is not None
    return dataset


def admitted_by(services: Services, asked: Question) -> ToRun:
    """The question after steps 1 to 5, which has to run."""
    admitted = services.journey.admit(asked)
    assert isinstance(admitted, ToRun)
    return admitted
