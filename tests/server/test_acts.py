"""Acts of administrators are in the ledger's chain: whatever is done to one, or past them, is found and named."""

from __future__ import annotations

import contextlib
import copy
import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import Connection

from accountant.acts import append_act
from accountant.checkpoint import CheckpointFile
from accountant.ledger import Ledger, utc_now
from accountant.reader import LedgerReader
from server.roles import Role
from server.store.registry import Registry
from tests.accountant.exported import Lines, Program, exported, of, rechained, sealed
from tests.accountant.making import core, laplace, limit, request, root, spend
from tests.accountant.test_ledger_audit import tamper
from tests.server.conftest import World

SECRET = b"x" * 32


def administer(url: str, mark: Path | None = None) -> None:
    """A day of an administrator, with one charge among the acts."""
    registry = Registry(url, secret=SECRET, clock=utc_now, high_water=mark)
    try:
        registry.create_principal("ina", Role.ANALYST, actor="setup")
        made = registry.create_key("ina", label="laptop", days=30, actor="setup")
        with Ledger(url, instance="test") as ledger:
            spend(ledger, request(root(ledger), core("a", laplace("0.01"))))
        registry.create_principal("omar", Role.OWNER, actor="setup")
        registry.revoke_key(made.key.id, actor="omar")
        for data_version in ("1", "2"):
            registry.register_dataset(
                name="clinic", policy_version=1, data_version=data_version, snapshot="x", document={}, actor="omar"
            )
        registry.create_key("omar", label="", days=30, actor="setup")
        registry.remove_dataset("clinic", actor="omar")
    finally:
        registry.close()


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgresql)])
def database(request: pytest.FixtureRequest) -> str:
    """The address of a fresh, migrated database: every test runs on both."""
    address: str = request.getfixturevalue(f"{request.param}_url")
    return address


@pytest.fixture
def administered(database: str) -> Iterator[str]:
    """The address of a ledger with entries and acts in turn."""
    administer(database)
    return database


def found(url: str) -> set[str]:
    """The codes of what an audit finds."""
    reader = LedgerReader(url)
    try:
        return {finding.code for finding in reader.audit().findings}
    finally:
        reader.close()


def test_one_chain_of_entries_and_acts(administered: str) -> None:
    """One head for both; an export has them in one order, and the auditor's program agrees."""
    with Ledger(administered, instance="test") as ledger:
        report = ledger.audit()
        lines = exported(ledger)
    assert report.findings == ()
    assert report.sequence == report.entries + report.acts
    assert [line["sequence"] for line in lines if line["line"] in ("entry", "act")] == list(
        range(1, report.sequence + 1)
    )
    verifier = Program.Verifier()
    verifier.read(iter(sealed(lines).splitlines(keepends=True)), {})
    assert verifier.findings == []
    assert (verifier.sequence, verifier.counts["act"]) == (report.sequence, report.acts)
    assert any("setup: principal created, ina" in line for line in verifier.words())
    details = "".join(line["details"] for line in of(lines, "act"))
    assert "laptop" not in details  # hashes, not what they are of


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("UPDATE acts SET actor = 'nobody' WHERE action = 'key_revoked'", "wrong_hash"),
        ("UPDATE acts SET created = created + 1 WHERE action = 'key_revoked'", "wrong_hash"),
        ("DELETE FROM acts WHERE action = 'key_revoked'", "sequence_gap"),
        ("DELETE FROM acts WHERE sequence = (SELECT max(sequence) FROM acts)", "wrong_head"),
        ("UPDATE acts SET sequence = 1000 - sequence WHERE actor = 'omar'", "sequence_gap"),
        (
            "INSERT INTO acts SELECT 1000, actor, action, subject, details, created, previous, hash FROM acts "
            "WHERE action = 'key_revoked'",
            "sequence_gap",
        ),
        ("UPDATE principals SET role = 'admin' WHERE name = 'ina'", "wrong_row"),
        ("UPDATE principals SET disabled = created WHERE name = 'ina'", "wrong_row"),
        ("UPDATE api_keys SET revoked = NULL", "wrong_row"),
        ("UPDATE api_keys SET expires = '2999-01-01T00:00:00Z'", "wrong_row"),
        ("UPDATE api_keys SET principal = 'omar'", "wrong_row"),
        ("DELETE FROM api_keys", "wrong_row"),
        (
            "INSERT INTO principals SELECT 'eve', 'admin', created, disabled FROM principals WHERE name = 'ina'",
            "wrong_row",
        ),
        ("UPDATE dataset_versions SET document = '[]'", "wrong_row"),
        ("UPDATE dataset_versions SET snapshot = 'other'", "wrong_row"),
        ("UPDATE dataset_versions SET current = (1 = 1) WHERE data_version = '1'", "wrong_row"),
    ],
)
@pytest.mark.sparse(4)
def test_what_an_audit_finds(administered: str, statement: str, code: str) -> None:
    """An act that was altered, dropped, reordered or planted, and a row that no act made as it is."""
    tamper(administered, statement)
    assert code in found(administered)


def test_the_day_of_use_needs_no_act(administered: str) -> None:
    """A key's last day of use changes by itself, and nothing is found."""
    tamper(administered, "UPDATE api_keys SET last_used_day = '2026-11-23'")
    assert found(administered) == set()


def _first(lines: Lines, action: str) -> dict[str, object]:
    return of(lines, "act", action=action)[0]


def _drop(lines: Lines) -> None:
    lines.remove(_first(lines, "key_revoked"))


def _alter(lines: Lines) -> None:
    _first(lines, "key_revoked")["actor"] = "nobody"


def _reorder(lines: Lines) -> None:
    one, two = (lines.index(_first(lines, action)) for action in ("key_created", "principal_created"))
    lines[one], lines[two] = lines[two], lines[one]


def _plant(lines: Lines) -> None:
    lines.insert(lines.index(_first(lines, "key_revoked")), dict(_first(lines, "principal_created")))


def _forget(lines: Lines) -> None:
    _drop(lines)
    rechained(lines)


def _vouch(lines: Lines) -> None:
    act = _first(lines, "key_revoked")
    details = json.loads(str(act["details"]))
    (key,) = details["rows"]["api_keys"]
    details["rows"]["api_keys"][key] = "0" * 64
    act["details"] = json.dumps(details, sort_keys=True, separators=(",", ":"))
    rechained(lines)


def _erase(lines: Lines) -> None:
    lines.remove(of(lines, "row", table="principals")[0])


@pytest.fixture(scope="module")
def original(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Lines:
    """One export, to forge copies of."""
    path = tmp_path_factory.mktemp("acts") / "ledger.sqlite"
    path.write_bytes(sqlite_template.read_bytes())
    administer(f"sqlite:///{path}")
    with Ledger(f"sqlite:///{path}", instance="test") as ledger:
        return exported(ledger)


@pytest.mark.parametrize(
    ("forge", "code"),
    [
        (_alter, "changed_act"),
        (_drop, "missing_entry"),
        (_reorder, "wrong_order"),
        (_plant, "wrong_order"),
        (_forget, "wrong_row"),
        (_vouch, "wrong_row"),
        (_erase, "wrong_row"),
    ],
    ids=lambda one: getattr(one, "__name__", None),
)
def test_what_the_program_finds(original: Lines, forge: Callable[[Lines], None], code: str) -> None:
    """A forged export, whole chains that were made anew among them."""
    lines = copy.deepcopy(original)
    forge(lines)
    verifier = Program.Verifier()
    verifier.read(iter(sealed(lines).splitlines(keepends=True)), {})
    assert code in {found for found, _, _ in verifier.findings}


def test_a_history_without_an_act_is_another_one(original: Lines) -> None:
    """A chain that was made anew does not have the head that was noted."""
    noted = {original[-1]["sequence"]: original[-1]["hash"]}
    lines = copy.deepcopy(original)
    _first(lines, "key_revoked")["actor"] = "nobody"
    verifier = Program.Verifier()
    verifier.read(iter(sealed(rechained(lines)).splitlines(keepends=True)), noted)
    assert {code for code, _, _ in verifier.findings} == {"other_history"}


def test_auditors_read_them(world: World) -> None:
    """A page of acts for those who oversee, with their places in the chain; for nobody else."""
    world.registry.create_principal("eve", Role.ANALYST, actor="admin")
    page = world.api.get("/v1/acts?subject=eve", who="auditor").json()
    ((act,), following) = page["acts"], page["next"]
    assert (act["action"], act["actor"], following) == ("principal_created", "admin", None)
    assert act["details"]["rows"]["principals"].keys() == {"eve"}
    both = [world.api.get(f"/v1/acts?count=2&after={after}", who="admin").json()["acts"] for after in (0, 2)]
    assert [act["sequence"] for act in both[0]] == sorted(act["sequence"] for act in both[0])
    assert world.api.get("/v1/acts", who="owner").status_code == 403


def test_an_act_beside_a_step_of_the_ledger(database: str) -> None:
    """It is in the chain of the batch, before the entry of the step; of a step that is refused nothing is left."""

    def act(connection: Connection, *, refused: bool) -> None:
        append_act(connection, actor="omar", action="tried", subject="x", details={}, clock=1)
        if refused:
            raise ValueError("no")

    with Ledger(database, instance="test") as ledger:
        account = root(ledger)
        for refused in (True, False):
            with pytest.raises(ValueError, match="no") if refused else contextlib.nullcontext():
                ledger.change_limit(
                    account.id, limit(2), actor="omar", reason="x", beside=partial(act, refused=refused)
                )
        report = ledger.audit()
        assert (report.findings, report.acts, report.sequence) == ((), 1, 3)


def test_an_audit_goes_on_from_acts(administered: str) -> None:
    """What acts vouched for before a checkpoint is compared by the audit that goes on from it."""
    with Ledger(administered, instance="test") as ledger:
        kept = CheckpointFile(checkpoint=ledger.audit().checkpoint)
        point = CheckpointFile.read(kept.text()).checkpoint
        assert point is not None
        registry = Registry(administered, secret=SECRET, clock=utc_now)
        registry.create_principal("eve", Role.ANALYST, actor="setup")
        registry.close()
        sound = ledger.audit_since(point)
        assert sound is not None
        assert (sound.findings, sound.acts) == ((), 1)
        tamper(administered, "UPDATE principals SET role = 'admin' WHERE name = 'ina'")
        forged = ledger.audit_since(point)
        assert forged is not None
        assert [finding.subject for finding in forged.findings] == ["principals ina"]


def test_the_mark_learns_of_acts(sqlite_url: str, tmp_path: Path) -> None:
    """A copy of before an act, put back, is behind; an act on a ledger that is behind does not hide that."""
    mark, file = tmp_path / "mark", Path(sqlite_url.removeprefix("sqlite:///"))
    with Ledger(sqlite_url, instance="test", high_water=mark) as ledger:
        spend(ledger, request(root(ledger), core("a", laplace("0.01"))))
    before = file.read_bytes()
    registry = Registry(sqlite_url, secret=SECRET, clock=utc_now, high_water=mark)
    registry.create_principal("ina", Role.ANALYST, actor="setup")
    registry.close()
    with Ledger(sqlite_url, instance="test", high_water=mark) as ledger:
        assert not ledger.behind
    file.write_bytes(before)
    for beside in ("-wal", "-shm"):
        file.with_name(file.name + beside).unlink(missing_ok=True)
    registry = Registry(sqlite_url, secret=SECRET, clock=utc_now, high_water=mark)
    for name in ("one", "two", "three"):
        registry.create_principal(name, Role.ANALYST, actor="setup")
    registry.close()
    with Ledger(sqlite_url, instance="test", high_water=mark) as ledger:
        assert ledger.behind


def test_acts_before_the_first_entry_need_no_mark(sqlite_url: str, tmp_path: Path) -> None:
    """A home that was set up and never opened for spending has forgotten nothing."""
    registry = Registry(sqlite_url, secret=SECRET, clock=utc_now, high_water=tmp_path / "mark")
    registry.create_principal("ina", Role.ANALYST, actor="setup")
    registry.close()
    with Ledger(sqlite_url, instance="test", high_water=tmp_path / "mark") as ledger:
        assert not ledger.behind
