"""Backups: what they hold, what they refuse, and that no charge is forgotten unnoticed."""

from __future__ import annotations

import io
import json
import tarfile
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import SecretStr
from sqlalchemy import make_url, text

from accountant.audit import AuditReport
from accountant.connection import open_engine
from accountant.errors import LedgerBehind
from accountant.ledger import Ledger, utc_now
from migrations import copies
from migrations.copies import CopyFault, copy_in, copy_out
from migrations.upgrade import current, head
from server.backups import BackupRefused, make_backup, rehearse, restore
from server.backups.archive import LEDGER, unpack
from server.roles import Role
from server.settings import Settings
from server.store.copied import audit_copy, read_copy
from server.store.registry import Registry
from server.store.tables import metadata
from tests.backups.conftest import spend


def audited(settings: Settings) -> AuditReport:
    """What the audit of a home's ledger says."""
    with Ledger(settings.database(), instance="audit", high_water=settings.high_water()) as ledger:
        return ledger.audit()


def elsewhere(tmp_path: Path) -> Settings:
    """An empty home with SQLite."""
    return Settings(home=tmp_path / "elsewhere")


def listed(archive: Path) -> list[str]:
    """The names of an archive's members."""
    with tarfile.open(archive) as tar:
        return tar.getnames()


class TestRoundTrip:
    """Everything comes back, from either database."""

    def test_everything_belongs_to_it(self, settings: Settings, tmp_path: Path) -> None:
        """Ledger, dataset files, secrets and the snapshots that are served; no older one, no mark, no lock."""
        made = make_backup(settings, tmp_path / "one.tar")
        assert made.audit is not None
        assert made.audit.ok
        assert (made.contents.datasets, made.contents.revision) == (("people",), head())
        assert listed(tmp_path / "one.tar") == [
            LEDGER, "datasets/people.csv", "datasets/people.yaml", "secrets/draw_key", "secrets/key_secret",
            "snapshots/people/22222222.duckdb", "snapshots/people/22222222.json", "contents.json",
        ]  # fmt: skip
        assert (tmp_path / "one.tar").stat().st_mode & 0o077 == 0

    def test_without_data(self, settings: Settings, tmp_path: Path) -> None:
        """Nothing that holds rows of people: neither snapshots nor data files of the home."""
        made = make_backup(settings, tmp_path / "one.tar", data=False)
        assert made.contents.left_out == ("snapshots",)
        names = listed(tmp_path / "one.tar")
        assert not [name for name in names if name.startswith("snapshots") or name.endswith(".csv")]
        assert "datasets/people.yaml" in names

    def test_it_comes_back(self, settings: Settings, tmp_path: Path) -> None:
        """The same head, balances, keys and files; from PostgreSQL into SQLite too."""
        before = audited(settings)
        make_backup(settings, tmp_path / "one.tar")
        other = elsewhere(tmp_path)
        restore(other, tmp_path / "one.tar")
        with Ledger(other.database(), instance="test", high_water=other.high_water()) as ledger:
            ledger.acknowledge_restore(actor="test", reason="moved")
        after = audited(other)
        assert after.ok
        # The acknowledgement is one entry in the one root.
        assert (after.entries, after.queries, after.releases) == (before.entries + 1, before.queries, before.releases)
        registry = Registry(other.database(), secret=other.keys_secret(), clock=utc_now)
        assert [key.principal for key in iter(registry.keys())] == ["research"]
        assert [version.data_version for version in registry.datasets()] == ["22222222"]
        registry.close()
        for name in ("secrets/draw_key", "secrets/key_secret", "snapshots/people/22222222.duckdb"):
            assert (other.home / name).read_bytes() == (settings.home / name).read_bytes()
        spend(other)
        assert audited(other).ok

    @pytest.mark.postgresql
    def test_into_postgresql(self, settings: Settings, empty_postgresql_url: str, tmp_path: Path) -> None:
        """Rows, references and the numbers that PostgreSQL counts on by itself."""
        make_backup(settings, tmp_path / "one.tar")
        other = Settings(home=tmp_path / "elsewhere", database_url=SecretStr(empty_postgresql_url))
        restore(other, tmp_path / "one.tar")
        with Ledger(other.database(), instance="test", high_water=other.high_water()) as ledger:
            assert ledger.behind
            ledger.acknowledge_restore(actor="test", reason="moved")
        spend(other)
        assert audited(other).ok
        registry = Registry(other.database(), secret=other.keys_secret(), clock=utc_now)
        before = len(registry.acts())
        registry.create_principal("other", Role.ANALYST, actor="test")
        assert len(registry.acts()) == before + 1
        registry.close()
        again = make_backup(other, tmp_path / "two.tar")
        assert again.audit is not None
        assert again.audit.ok

    def test_while_others_spend(self, settings: Settings, tmp_path: Path) -> None:
        """Every copy made while charges are written is whole, agrees with itself, and is one of its moments."""
        done = threading.Event()

        def work() -> None:
            while not done.is_set():
                spend(settings, queries=1)

        worker = threading.Thread(target=work)
        worker.start()
        try:
            heads = []
            for number in range(4):
                made = make_backup(settings, tmp_path / f"{number}.tar", data=False)
                assert made.audit is not None
                assert made.audit.ok, made.audit.findings
                heads.append(made.contents.sequence)
        finally:
            done.set()
            worker.join()
        assert heads == sorted(heads)
        assert audited(settings).sequence >= heads[-1]


class TestForgottenCharges:
    """A backup has forgotten what came after it."""

    def test_noticed_by_the_mark_of_the_home(self, settings: Settings, tmp_path: Path) -> None:
        """Put back where the mark still is, the ledger spends nothing; what was spent in between is missing."""
        make_backup(settings, tmp_path / "one.tar")
        spend(settings)
        other = elsewhere(tmp_path)
        other.home.mkdir()
        other.high_water().write_bytes(settings.high_water().read_bytes())
        assert not restore(other, tmp_path / "one.tar").newest
        with Ledger(other.database(), instance="test", high_water=other.high_water()) as ledger:
            assert ledger.behind

    def test_noticed_without_any_mark(self, settings: Settings, tmp_path: Path) -> None:
        """On a new machine nobody knows what was charged since: nothing is spent either."""
        make_backup(settings, tmp_path / "one.tar")
        other = elsewhere(tmp_path)
        assert not restore(other, tmp_path / "one.tar").newest
        with pytest.raises(LedgerBehind):
            spend(other)

    def test_nothing_was_forgotten(self, settings: Settings, tmp_path: Path) -> None:
        """Where the mark knows no later entry, the home goes on."""
        make_backup(settings, tmp_path / "one.tar")
        other = elsewhere(tmp_path)
        other.home.mkdir()
        other.high_water().write_bytes(settings.high_water().read_bytes())
        assert restore(other, tmp_path / "one.tar").newest
        spend(other)
        assert audited(other).ok

    @pytest.mark.parametrize("table", ["monitors", "streams"])
    def test_open_sessions_are_never_the_newest(self, settings: Settings, tmp_path: Path, table: str) -> None:
        """What a monitor said after the backup is in no entry: put back unnoticed, it would say as much again."""
        engine = open_engine(settings.database())
        with engine.begin() as connection:
            row = {"id": "m", "sealed": b"x", "left": 1, "revision": 1}
            more = {"background": False} if table == "monitors" else {"frame": b"x", "made": 0, "shared": False}
            connection.execute(metadata.tables[table].insert().values(**row, **more))
        engine.dispose()
        make_backup(settings, tmp_path / "one.tar")
        other = elsewhere(tmp_path)
        other.home.mkdir()
        other.high_water().write_bytes(settings.high_water().read_bytes())
        assert not restore(other, tmp_path / "one.tar").newest
        with pytest.raises(LedgerBehind):
            spend(other)

    def test_a_lost_mark(self, settings: Settings) -> None:
        """SQLite's mark is older than the first entry: without it nothing is spent. PostgreSQL's is made, and told."""
        settings.high_water().unlink()
        with Ledger(settings.database(), instance="test", high_water=settings.high_water()) as ledger:
            sqlite = settings.database().startswith("sqlite")
            assert (ledger.behind, ledger.mark_made) == (sqlite, not sqlite)
            if sqlite:
                ledger.acknowledge_restore(actor="test", reason="the disk with the mark is gone")
        spend(settings)

    def test_an_empty_ledger_needs_no_mark(self, sqlite_url: str, tmp_path: Path) -> None:
        """A ledger without entries has nothing to forget."""
        with Ledger(sqlite_url, instance="test", high_water=tmp_path / "mark") as ledger:
            assert (ledger.behind, ledger.mark_made) == (False, False)

    def test_a_mark_that_cannot_be_written(self, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
        """A place that cannot be written leaves no restored ledger behind."""
        monkeypatch.setattr("accountant.highwater.os.pwrite", _full)
        other = Settings(home=settings.home.parent / "elsewhere")
        archive = settings.home.parent / "one.tar"
        make_backup(settings, archive)
        with pytest.raises(BackupRefused, match="high-water mark"):
            restore(other, archive)
        assert not (other.home / "ledger.sqlite").exists()


def _full(*_: object) -> int:
    raise OSError(28, "No space left on device")


def _cut(content: bytes) -> bytes:
    return content[: len(content) // 2]


def _without_list(content: bytes) -> bytes:
    return _again(content, lambda name, body: None if name == "contents.json" else body)


def _other_byte(content: bytes) -> bytes:
    return _again(content, lambda name, body: body[:-1] + b"?" if name == "secrets/draw_key" else body)


def _other_head(content: bytes) -> bytes:
    def change(name: str, body: bytes) -> bytes:
        return json.dumps(json.loads(body) | {"sequence": 1}).encode() if name == "contents.json" else body

    return _again(content, change)


def _member_outside(content: bytes) -> bytes:
    return _again(
        content, lambda _, body: body, names=lambda name: f"../{name}" if name.startswith("secrets") else name
    )


def _member_above(content: bytes) -> bytes:
    return _again(
        content,
        lambda _, body: body,
        names=lambda name: f"secrets/../../{name}" if name.startswith("secrets") else name,
    )


def _member_after(content: bytes) -> bytes:
    other = _again(content, lambda name, body: body if name == "ledger.sqlite" else None)
    made = io.BytesIO(content)
    with tarfile.open(fileobj=made, mode="a") as whole, tarfile.open(fileobj=io.BytesIO(other)) as again:
        (member,) = again
        whole.addfile(member, again.extractfile(member))
    return made.getvalue()


def _later_schema(content: bytes) -> bytes:
    def change(name: str, body: bytes) -> bytes:
        return json.dumps(json.loads(body) | {"revision": "9999"}).encode() if name == "contents.json" else body

    return _again(content, change)


def _newer(content: bytes) -> bytes:
    def change(name: str, body: bytes) -> bytes:
        return json.dumps(json.loads(body) | {"format": 2}).encode() if name == "contents.json" else body

    return _again(content, change)


def _again(content: bytes, change: Callable[[str, bytes], bytes | None], names: Callable[[str], str] = str) -> bytes:
    """The archive with other members."""
    made = io.BytesIO()
    with tarfile.open(fileobj=io.BytesIO(content)) as tar, tarfile.open(fileobj=made, mode="w") as other:
        for member in tar:
            stream = tar.extractfile(member)
            assert stream is not None
            body = change(member.name, stream.read())
            if body is not None:
                member.name, member.size = names(member.name), len(body)
                other.addfile(member, io.BytesIO(body))
    return made.getvalue()


class TestRefusals:
    """Nothing is put over anything, and nothing that is not whole is put anywhere."""

    @pytest.fixture
    def settings(self, sqlite_url: str, tmp_path: Path) -> Settings:
        """A home with SQLite and a few entries."""
        made = Settings(home=tmp_path / "home", database_url=SecretStr(sqlite_url))
        made.home.mkdir()
        made.own_secret("draw_key")
        spend(made, queries=1)
        return made

    @pytest.mark.parametrize(
        ("change", "words"),
        [
            (_cut, "cut short"),
            (_without_list, "not made to its end"),
            (_other_byte, "secrets/draw_key"),
            (_other_head, "not the one that its list names"),
            (_member_outside, "members that no backup has"),
            (_member_above, "members that no backup has"),
            (_member_after, "follows its list"),
            (_later_schema, "newer than this program"),
            (_newer, "newer version"),
            (lambda _: b"nothing of the kind", "no tar archive"),
            (lambda _: b"", "no tar archive"),
        ],
    )
    def test_no_whole_backup(
        self, settings: Settings, tmp_path: Path, change: Callable[[bytes], bytes], words: str
    ) -> None:
        """The reason is named, and the home is as empty as before."""
        make_backup(settings, tmp_path / "one.tar")
        (tmp_path / "two.tar").write_bytes(change((tmp_path / "one.tar").read_bytes()))
        other = elsewhere(tmp_path)
        with pytest.raises(BackupRefused) as refused:
            restore(other, tmp_path / "two.tar")
        assert words in refused.value.finding.why
        assert list(other.home.iterdir()) == []
        assert not (tmp_path / "secrets").exists()

    def test_over_a_ledger(self, settings: Settings, tmp_path: Path) -> None:
        """A ledger that is there stays, with all of its entries."""
        make_backup(settings, tmp_path / "one.tar")
        spend(settings)
        before = audited(settings)
        with pytest.raises(BackupRefused, match="there is a ledger already"):
            restore(settings, tmp_path / "one.tar")
        assert audited(settings) == before

    def test_another_file_in_the_way(self, settings: Settings, tmp_path: Path) -> None:
        """A secret that is not the backup's is not overwritten, and no ledger appears beside it."""
        make_backup(settings, tmp_path / "one.tar")
        other = elsewhere(tmp_path)
        secret = other.own_secret("draw_key")
        with pytest.raises(BackupRefused, match="another file is in the way"):
            restore(other, tmp_path / "one.tar")
        assert other.own_secret("draw_key") == secret
        assert not (other.home / "ledger.sqlite").exists()

    def test_a_file_that_exists(self, settings: Settings, tmp_path: Path) -> None:
        """A backup is written over nothing, and what failed leaves nothing."""
        (tmp_path / "one.tar").write_text("precious")
        with pytest.raises(BackupRefused, match="it exists"):
            make_backup(settings, tmp_path / "one.tar")
        assert (tmp_path / "one.tar").read_text() == "precious"
        assert sorted(path.name for path in tmp_path.iterdir()) == ["home", "ledger.db", "ledger.db-owner", "one.tar"]

    def test_a_damaged_ledger(self, settings: Settings, tmp_path: Path) -> None:
        """What SQLite finds damaged is no backup; what only the audit finds is one, and is told."""
        engine = open_engine(settings.database())
        with engine.connect() as connection:
            connection.execute(text("UPDATE accounts SET spent_pure = spent_pure + 7"))
            connection.commit()
        engine.dispose()
        made = make_backup(settings, tmp_path / "one.tar")
        assert made.audit is not None
        assert [finding.code for finding in made.audit.findings].count("wrong_balance") == 2

    def test_a_table_that_was_not_copied_whole(
        self, settings: Settings, postgresql_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A copy that lacks rows is no copy: the planted one leaves the last rows of each piece out."""
        with Ledger(postgresql_url, instance="test") as ledger:
            assert not ledger.behind
        spend(Settings(home=settings.home.parent, database_url=SecretStr(postgresql_url)))
        insert = copies.insert
        monkeypatch.setattr(copies, "_ROWS", 1)
        monkeypatch.setattr(copies, "insert", lambda table: insert(table).prefix_with("OR IGNORE"))
        copy_out(postgresql_url, tmp_path / "whole.sqlite")
        monkeypatch.setattr(copies, "select", _without_last(copies.select))
        with pytest.raises(CopyFault, match="not copied whole"):
            copy_out(postgresql_url, tmp_path / "short.sqlite")


def _without_last(select: Callable[..., object]) -> Callable[..., object]:
    def chosen(*columns: object) -> object:
        made = select(*columns)
        return made.limit(1) if len(columns) > 1 else made  # type: ignore[attr-defined]

    return chosen


class TestRehearsal:
    """An upgrade is tried on a copy."""

    def test_it_changes_nothing(self, settings: Settings) -> None:
        """The copy is brought to this version and audited; the ledger is as it was, and no copy stays."""
        before, files = audited(settings), sorted(settings.home.rglob("*"))
        done = rehearse(settings)
        assert (done.before, done.after, done.audit.ok) == (head(), head(), True)
        assert done.audit.entries == before.entries
        assert audited(settings) == before
        assert sorted(settings.home.rglob("*")) == files


def test_a_copy_goes_into_nothing_that_is_there(sqlite_url: str, tmp_path: Path) -> None:
    """Neither over a file nor into a database with tables."""
    path = Path(make_url(sqlite_url).database or "")
    copy_out(sqlite_url, tmp_path / "copy.sqlite")
    with pytest.raises(CopyFault, match="not empty"):
        copy_in(tmp_path / "copy.sqlite", sqlite_url)
    copy_in(tmp_path / "copy.sqlite", f"sqlite:///{tmp_path / 'other.db'}")
    assert current(f"sqlite:///{tmp_path / 'other.db'}") == current(f"sqlite:///{path}")
    assert read_copy(tmp_path / "other.db") == read_copy(path)
    assert audit_copy(tmp_path / "copy.sqlite").ok


def test_contents_are_read_from_the_archive(sqlite_url: str, tmp_path: Path) -> None:
    """What making a backup reports is what reading it reports."""
    settings = Settings(home=tmp_path / "home", database_url=SecretStr(sqlite_url))
    settings.home.mkdir()
    made = make_backup(settings, tmp_path / "one.tar")
    (tmp_path / "folder").mkdir()
    assert unpack(tmp_path / "one.tar", tmp_path / "folder") == made.contents
