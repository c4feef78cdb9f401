"""Both stages of a question that chooses its norm are within the price: an audit over HTTP, and planted bugs.

The person who is in one world only has a norm exactly at the edge of a bin, 2^8, so that a step of rounding anywhere
would move them to the next one. Looked at are the sums, the bins beside that edge, the norm that was chosen, and the
best linear combination of all that an attacker who knows everybody else can make.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import httpx
import pytest

from accountant.account import FilterKind
from privacy.loss import Loss
from server.answer_rows import from_stored
from server.app import create_app
from server.journey import norms, running
from server.services import Services
from tests.audit import worlds
from tests.audit.worlds import OTHERS, Answer, learned, less_noise, told_too_much, two_worlds

pytestmark = pytest.mark.slow

EDGE = 32
"""The bin whose greatest norm is 2^8."""

SQL = "SELECT COUNT(*) AS n FROM visits"

Server = tuple[Services, dict[FilterKind, str]]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The server with both worlds; one more person has 2^8 rows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(worlds, "ROWS_OF_ONE", 2 ** (EDGE // 4))
        with two_worlds(tmp_path_factory.mktemp("norms") / "home") as started:
            yield started


def seen(services: Services, document: dict[str, Any]) -> tuple[Answer, tuple[Loss, ...]]:
    """What an attacker makes of an answer and its two releases, as a row of numbers; and what they cost."""
    releases = [services.ledger.release(name) for name in document["provenance"]["releases"]]
    assert all(release is not None for release in releases)
    tables = [from_stored(release.body, "c", Fraction(95, 100)) for release in releases if release is not None]
    histogram = next(table for table in tables if any(column.name == "bin" for column in table.columns))
    (told,) = histogram.sums or ()
    bins, spread = told.values[:, 0] * told.measurement.grid, told.measurement.variance() ** 0.5
    count = document["rows"][0][0]
    error = document["standard_errors"][0][0]
    chosen = float(document["provenance"]["norms"][0]["norm"])
    more = min(2 ** (EDGE // 4), chosen)
    best = float(bins[EDGE]) / spread**2 + (count - OTHERS) * more / error**2
    row = (count, float(bins[EDGE]), float(bins[EDGE + 1]), chosen, best, float(bins[: EDGE + 20].sum()))
    losses = tuple(event.loss() for release in releases if release is not None for event in release.events)
    return Answer(200, (row,)), losses


def findings(server: Server, kind: FilterKind, *, times: int, epsilon: str) -> list[str]:
    """The events that the answers of the two worlds tell apart better than their charge allows."""
    services, keys = server
    services.journey.preparing.forget()  # type: ignore[attr-defined]
    told: dict[str, list[Answer]] = {"here": [], "there": []}
    charged: set[tuple[Loss, ...]] = set()

    async def ask_all() -> None:
        transport = httpx.ASGITransport(app=create_app(services.settings, services=services))
        headers = {"Authorization": f"Bearer {keys[kind]}"}
        work = iter([name for _ in range(times) for name in told])
        async with httpx.AsyncClient(transport=transport, base_url="http://test", timeout=60, headers=headers) as http:

            async def one_after_another() -> None:
                for name in work:
                    body = {
                        "dataset": name, "sql": SQL, "spend": {"epsilon": epsilon}, "reuse": "none",
                        "contribution": "auto",
                    }  # fmt: skip
                    response = await http.post("/v1/queries", json=body)
                    assert response.status_code == 200, response.text
                    answer, losses = seen(services, response.json())
                    told[name].append(answer)
                    charged.add(losses)

            await asyncio.gather(*(one_after_another() for _ in range(4)))

    asyncio.run(ask_all())
    (losses,) = charged  # the price is the same in both worlds
    first = times // 4
    here, there = told["here"], told["there"]
    return [
        event.name
        for event in learned(here[:first], there[:first], losses)
        if told_too_much(event, here[first:], there[first:], losses)
    ]


@pytest.mark.parametrize("kind", list(FilterKind), ids=lambda kind: kind.value)
def test_both_stages_together_tell_no_more_than_their_price(server: Server, kind: FilterKind) -> None:
    """Two worlds that differ by one person at a bin's edge: what both releases tell apart is within the charge."""
    assert findings(server, kind, times=100, epsilon="1") == []


def noise_of_a_smaller_norm(patch: pytest.MonkeyPatch) -> None:
    """The second stage draws noise as if the norm were a sixteenth."""
    less_noise(patch, norms, by=16)


def sums_at_another_norm(patch: pytest.MonkeyPatch) -> None:
    """The statement scales units to the greatest norm, and the noise is that of the chosen one."""
    right = running.lower

    def planted(core: Any, dialect: Any, *, shared: bool) -> Any:
        if not core.norms:
            return right(core, dialect, shared=shared)
        wide = norms.at_norms(core, {item.norm.name: item.most for item in core.norms})
        return right(wide, dialect, shared=shared)

    patch.setattr(running, "lower", planted)


@pytest.mark.parametrize("plant", [noise_of_a_smaller_norm, sums_at_another_norm], ids=lambda plant: plant.__name__)
def test_planted_bugs_of_the_second_stage_are_noticed(
    server: Server, monkeypatch: pytest.MonkeyPatch, plant: Callable[[pytest.MonkeyPatch], None]
) -> None:
    """The audit above refutes servers whose second stage is not the one that was priced."""
    plant(monkeypatch)
    assert findings(server, FilterKind.APPROXIMATE, times=130, epsilon="1") != []
