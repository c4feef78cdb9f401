"""A statement that the engine cannot plan: a refusal for everybody, before the charge, whatever the rows are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from privacy.refusal import Refused
from privacy.statement import Statement
from server.journey import preparing
from server.services import Services
from sql_rewrite.bound import BoundedCore
from sql_rewrite.dialects.dialect import Dialect
from sql_rewrite.lower import lower
from tests.journey.clinic import question


def test_what_cannot_be_planned_is_a_refusal_and_never_an_outcome(
    services: Services, attacker: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Estimate and question say the same code; nothing is charged, no row is read, and the incident is counted."""

    def wrong(core: BoundedCore, dialect: Dialect) -> Statement:
        statement = lower(core, dialect)
        return replace(statement, sql=statement.sql.replace("COUNT(*)", "COUNT(no_such_function(salary))"))

    name = attacker()
    monkeypatch.setattr(preparing, "lower", wrong)
    ran: list[object] = []
    monkeypatch.setattr(services.journey.running._private, "run", lambda *given, **named: ran.append(given))  # type: ignore[attr-defined]
    before = services.incidents.counts()["unplannable"]
    asked = question("SELECT COUNT(*) AS unplannable FROM people", name)
    for ask in (services.journey.estimate, services.journey.admit):
        with pytest.raises(Refused) as refused:
            ask(asked)
        assert [finding.code for finding in refused.value.findings] == ["cannot_be_planned"]
    assert before + 2 == services.incidents.counts()["unplannable"]
    ((account, *_),) = services.ledger.spendable("clinic", name)
    assert account.used_share() == 0
    assert ran == []
