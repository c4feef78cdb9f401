"""The power fails at any moment: what was told is charged and stored, whatever of the unsynced writes is lost."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from accountant.ledger import Ledger
from accountant.states import QueryStatus
from tests.accountant.making import analyst, root
from tests.accountant.power_loss import Recorded, compiled, recorded
from tests.accountant.test_ledger_crash import later

Record = Callable[[str], tuple[Recorded, str]]


@pytest.fixture
def record(sqlite_url: str, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Record:
    """Records a run under a setting of `synchronous`: what was written, and the account."""
    library = compiled(tmp_path_factory.mktemp("recorder"))
    if library is None:
        pytest.skip("no C compiler: install cc")
    with Ledger(sqlite_url, instance="setup") as ledger:
        account = analyst(ledger, root(ledger, epsilon=1000), epsilon=1000).id
    ledger_file = Path(sqlite_url.removeprefix("sqlite:///"))
    return lambda synchronous: (
        recorded(library, ledger_file, charges=80, synchronous=synchronous, account=account),
        account,
    )


def lost(files: dict[str, bytes], told: list[dict[str, str]], account: str, folder: Path) -> list[str]:
    """What was told and is not in the ledger that is left; everything else about it must be right."""
    folder.mkdir()
    for name, content in files.items():
        (folder / name).write_bytes(content)
    missing = []
    with Ledger(f"sqlite:///{folder / 'ledger.db'}", instance="after", clock=later) as ledger:
        assert ledger.audit().findings == ()
        charged = 0
        for record in ledger.queries(None, count=1000):
            assert record.state in (QueryStatus.SETTLED, QueryStatus.FAILED_CHARGED)
            charged += 1
        assert ledger.account(account).spent.pure == charged * 10**11
        for fact in told:
            query = ledger.query(fact.get("query", fact.get("reserved", "")))
            if query is None or ("answer" in fact and query.answer != fact["answer"].encode()):
                missing.append(str(fact))
    return missing


@pytest.mark.slow
@pytest.mark.parametrize("crashes", [12, pytest.param(300, marks=pytest.mark.nightly)])
def test_the_power_fails(record: Record, tmp_path: Path, crashes: int) -> None:
    """Cut at random steps; of what was not synced nothing is left, half of all sectors, or everything."""
    chance = random.Random(crashes)
    run, account = record("FULL")
    kinds = {step.kind for step in run.steps if step.name == "ledger.db"}
    assert kinds >= {"W", "S"}, "there was no checkpoint"
    for turn in range(crashes):
        until = chance.randrange(len(run.steps))
        files = run.lose_power(until, chance, keep=(0, 0.5, 1)[turn % 3])
        assert lost(files, run.told(until), account, tmp_path / f"crash {turn}") == []


@pytest.mark.slow
def test_without_syncing_it_is_lost(record: Record, tmp_path: Path) -> None:
    """The twin: with synchronous off, which the ledger refuses for itself, answers that were told are gone."""
    run, account = record("OFF")
    files = run.lose_power(len(run.steps) - 1, random.Random(1), keep=0)
    told = run.told(len(run.steps) - 1)
    assert len(lost(files, told, account, tmp_path / "crash")) == len(told) == 160
