"""`noisegate backup`, `noisegate restore` and `noisegate migrate --rehearse`."""

from __future__ import annotations

from pathlib import Path

from migrations.upgrade import head
from tests.cli.support import cli, refused


def test_there_and_back(home: Path, tmp_path: Path) -> None:
    """A home comes back elsewhere; it spends after the acknowledgement, and its dataset is served."""
    file, other = str(tmp_path / "one.tar"), tmp_path / "other"
    made = cli("backup", file, "--json", "--home", str(home))
    assert made.code == 0
    assert (made.json["ok"], made.json["datasets"], made.json["left_out"]) == (True, ["people"], [])
    refused(cli("backup", file, "--home", str(home)), "it exists")
    at = ("--home", str(other))
    back = cli("restore", file, *at)
    assert back.code == 0
    assert "nothing is spent until somebody accepts it" in back.out
    limit = ("budget", "set", "--dataset", "people", "--epsilon", "20", "--delta", "0.00001", *at)
    refused(cli(*limit), "older than its high-water mark")
    assert cli("audit", "--acknowledge-restore", "--actor", "me", "--reason", "moved", *at).code == 0
    assert cli(*limit).code == 0
    assert "people" in cli("dataset", "list", *at).out
    refused(cli("restore", file, *at), "there is a ledger already")


def test_what_is_no_home(tmp_path: Path, home: Path) -> None:
    """Nothing to back up, no backup, and a backup without data that says how to go on."""
    refused(cli("backup", str(tmp_path / "one.tar"), "--home", str(tmp_path / "nothing")), "there is no ledger")
    (tmp_path / "none.tar").write_text("no")
    refused(cli("restore", str(tmp_path / "none.tar"), "--home", str(tmp_path / "new")), "is no whole backup")
    file = str(tmp_path / "two.tar")
    assert "without the copies of the data" in cli("backup", file, "--without-data", "--home", str(home)).out
    assert "dataset add" in cli("restore", file, "--home", str(tmp_path / "other")).out


def test_rehearsal(home: Path) -> None:
    """The upgrade is tried on a copy: here there is nothing to change."""
    ran = cli("migrate", "--rehearse", "--json", "--home", str(home))
    assert (ran.code, ran.json) == (0, {"before": head(), "after": head(), "ok": True, "findings": []})
    assert not [path for path in home.iterdir() if path.name.startswith(".rehearsal")]
