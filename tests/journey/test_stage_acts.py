"""What a question of several stages does, in order: one charge, then statements by what was charged and released.

The audit looks at a whole run: what the ledger was asked for before anything was read, which noise every stage got, and
what the later statements were given of the earlier ones. Deliberate bugs show that it sees each of these rules broken.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import pytest

from mechanisms import calibrate as calibrating
from mechanisms import release as releasing
from privacy.refusal import ExecutionFailed
from privacy.statement import Released, StageValue
from server.answer_rows import from_stored
from server.journey import admission as admission_module
from server.journey import charges as charging
from server.journey import running as run_module
from server.journey import stages as stage_module
from server.journey.running import Running
from server.journey.stages import stage_values
from server.services import Services
from tests.journey.clinic import attach, open_account, question, services_of, write_files
from tests.mechanisms.support import recorded

QUESTIONS = (
    "SELECT COUNT(*) AS n FROM people WHERE age < (SELECT COUNT(*) / 60 FROM people WHERE age > 20)",
    "SELECT sex, COUNT(*) AS n FROM people WHERE town IN (SELECT town FROM people GROUP BY 1 HAVING COUNT(*) > 100) "
    "GROUP BY sex",
    "SELECT COUNT(*) AS n FROM people AS p WHERE age > (SELECT AVG(q.age) FROM people AS q WHERE q.sex = p.sex) "
    "AND salary < (SELECT AVG(salary) FROM people WHERE age > (SELECT AVG(age) FROM people))",
)
_NAMES = map("actor{}".format, itertools.count())


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    home = tmp_path_factory.mktemp("acts")
    with services_of(home) as started:
        attach(started, write_files(home / "sources"))
        yield started


@dataclass
class Acts:
    """What was seen of one run."""

    order: list[str] = field(default_factory=list)
    charged: list[object] = field(default_factory=list)
    """The events that the ledger was asked for."""
    drawn: list[object] = field(default_factory=list)
    """Those of the noise that was added, in order."""
    bound: dict[StageValue, Released] = field(default_factory=dict)
    """What later statements were given."""
    released: dict[StageValue, Released] = field(default_factory=dict)
    """What they should be given by the releases that are stored."""

    def findings(self) -> list[str]:
        """The rules that the run broke."""
        found = []
        if not self.order or self.order[0] != "reserve" or self.order.count("reserve") != 1:
            found.append("something was read before the charge, or there were several")
        if self.drawn != self.charged:
            found.append("the noise is not that of the events that were charged")
        different = [one for one, value in self.bound.items() if self.released.get(one, "nothing") != value]
        if different or not self.bound:
            found.append("a later stage was given what is no released number")
        return found


def watched(services: Services, sql: str) -> Acts:
    """One question of a new analyst, and what was done for it."""
    who = next(_NAMES)
    open_account(services.ledger, who)
    acts, journey, ledger = Acts(), services.journey, services.ledger
    running: Any = journey.running  # type: ignore[attr-defined]
    with pytest.MonkeyPatch.context() as patch:

        def reserve(request: Any, _real: Any = ledger.reserve) -> Any:
            acts.order.append("reserve")
            acts.charged = [event for core in request.cores for event in core.events]
            return _real(request)

        def run(*arguments: Any, _real: Any = running._private.run, **options: Any) -> Any:
            acts.order.append("statement")
            return _real(*arguments, **options)

        def fresh(self: Any, query: Any, place: int, made: Any, *rest: Any, _real: Any = Running._fresh) -> Any:
            acts.bound.update(made.values)
            return _real(self, query, place, made, *rest)

        patch.setattr(ledger, "reserve", reserve)
        patch.setattr(running._private, "run", run)
        patch.setattr(Running, "_fresh", fresh)
        with recorded() as calls:
            query: Any = journey.admit(question(sql, who, epsilon="2"))
            journey.complete(query)
    acts.drawn = [call.measurement.event() for call in calls]
    prepared, kept = query.asked.prepared, {one.core_key: one for one in ledger.releases_of(query.query_id)}
    for core, charge in zip(prepared.cores, query.asked.charges, strict=False):
        table = from_stored(kept[charge.core_key].body, core.described.name, Fraction(95, 100))
        acts.released.update(stage_values(core, table, prepared.plan.lists))
    return acts


@pytest.mark.parametrize("sql", QUESTIONS)
def test_one_charge_then_each_stage_by_what_was_charged_and_released(services: Services, sql: str) -> None:
    """Shows all events reserved at once before the first statement, the noise of each, and released numbers alone."""
    acts = watched(services, sql)
    assert not acts.findings()
    assert acts.order.count("statement") >= 2


@contextmanager
def read_before_the_charge(patch: pytest.MonkeyPatch, services: Services) -> Iterator[None]:
    """The first stage is measured while the question is admitted, to know what the later one costs."""
    running: Any = services.journey.running  # type: ignore[attr-defined]
    admission: Any = running._admission
    real = type(admission)._reserved

    def reserved(self: Any, asked: Any, *rest: Any) -> Any:
        dataset = asked.prepared.plan.dataset
        running._private.run(running._served.snapshot(dataset), asked.prepared.statements[0], timeout_seconds=30)
        return real(self, asked, *rest)

    patch.setattr(type(admission), "_reserved", reserved)
    yield


@contextmanager
def noise_of_another_price(patch: pytest.MonkeyPatch, services: Services) -> Iterator[None]:
    """The last stage is measured at the price of the first one's part, twice what was charged for it."""
    real = Running._measured

    def measured(self: Any, query: Any, described: Any, statement: Any, calibration: Any, *rest: Any) -> Any:
        last = query.asked.prepared.cores[-1].described
        if described.name == last.name:
            price = query.asked.priced.price
            calibration = calibrating.calibrate([last], replace(price, amount=price.amount * 4))
        return real(self, query, described, statement, calibration, *rest)

    patch.setattr(Running, "_measured", measured)
    yield


@contextmanager
def first_stage_charged_too_little(patch: pytest.MonkeyPatch, services: Services) -> Iterator[None]:
    """What later stages alone read is charged a tenth of what it is measured at."""
    real = charging.charges_of

    def charges(prepared: Any, priced: Any) -> Any:
        found = []
        for core, charge in itertools.zip_longest(prepared.cores, real(prepared, priced)):
            if core.core.name in prepared.plan.unshown:
                price = replace(priced.price, amount=priced.price.amount / 10)
                events = calibrating.calibrate([core.described], price).events_of(core.described.name)
                charge = replace(charge, events=tuple(events))
            found.append(charge)
        return tuple(found)

    patch.setattr(admission_module, "charges_of", charges)
    patch.setattr(stage_module, "charges_of", charges)
    yield


@contextmanager
def true_numbers_bound(patch: pytest.MonkeyPatch, services: Services) -> Iterator[None]:
    """Later statements are given what was counted, without its noise: groups that nobody selected are among it."""
    true: dict[str, Any] = {}
    real = releasing.release

    def release(described: Any, calibration: Any, exact: Any, **options: Any) -> Any:
        with recorded(noiseless=True):
            true[described.name] = real(described, calibration, exact, **options)
        return real(described, calibration, exact, **options)

    def values(core: Any, table: Any, lists: Any = ()) -> Any:
        return stage_values(core, true[core.described.name], lists)

    patch.setattr(releasing, "release", release)
    patch.setattr(run_module, "stage_values", values)
    yield


PLANTED: tuple[tuple[Callable[..., Any], str], ...] = (
    (read_before_the_charge, "before the charge"),
    (noise_of_another_price, "the noise is not"),
    (first_stage_charged_too_little, "the noise is not"),
    (true_numbers_bound, "no released number"),
)


@pytest.mark.parametrize(("plant", "says"), PLANTED)
@pytest.mark.parametrize("sql", QUESTIONS[:2])
def test_planted_bugs_are_caught(
    services: Services, monkeypatch: pytest.MonkeyPatch, sql: str, plant: Callable[..., Any], says: str
) -> None:
    """Shows each rule broken by a deliberate bug, and the audit that says so."""
    services.journey.preparing.forget()  # type: ignore[attr-defined]
    with plant(monkeypatch, services):
        try:
            found = watched(services, sql)
        except ExecutionFailed:
            pytest.fail("the bug ends the run")
    services.journey.preparing.forget()  # type: ignore[attr-defined]
    assert any(says in one for one in found.findings())
