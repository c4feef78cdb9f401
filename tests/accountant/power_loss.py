"""A disk that loses what was not synced: what a process wrote is recorded, and any moment of it can be cut off.

    python -m tests.accountant.power_loss DATABASE_URL DIARY CHARGES SYNCHRONOUS

spends on a ledger and tells a diary what it was told. It runs with the recorder (`recorded_writes.c`) loaded before
everything else. `Recorded` then puts a folder together as a power loss at one moment would leave it: everything that
was synced by then, and of all later writes of each file none, all, or some, of whole sectors.
"""

from __future__ import annotations

import json
import os
import random
import struct
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import event

from accountant.ledger import Ledger
from tests.accountant.making import releases_for, request

__all__ = ["Recorded", "compiled", "recorded"]

SECTOR = 512
CHECKPOINT_PAGES = 40
"""A checkpoint after so many pages, so that a short run has many."""


def compiled(folder: Path) -> Path | None:
    """The recorder, None where there is no compiler."""
    library = folder / "recorded_writes.so"
    source = Path(__file__).with_name("recorded_writes.c")
    try:
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return library


@dataclass(frozen=True)
class Step:
    """One write, cut or sync of one file."""

    kind: str
    name: str
    offset: int
    data: bytes


class Recorded:
    """What a process did to the files of a folder, in order, from what they were before."""

    def __init__(self, before: dict[str, bytes], log: bytes) -> None:
        self.before = before
        self.steps: list[Step] = []
        at = 0
        while at < len(log):
            kind, named, offset, length = struct.unpack_from("<cHqQ", log, at)
            at += 19
            name = log[at : at + named].decode()
            self.steps.append(Step(kind.decode(), Path(name).name, offset, log[at + named : at + named + length]))
            at += named + length

    def told(self, until: int) -> list[dict[str, str]]:
        """What the diary said by then: the world outside, which loses nothing."""
        text = b"".join(step.data for step in self.steps[:until] if step.name == "diary" and step.kind == "W")
        return [json.loads(line) for line in text.decode().splitlines()]

    def lose_power(self, until: int, chance: random.Random, *, keep: float) -> dict[str, bytes]:
        """The files after a power loss at that step; of what was not synced, this part stays, sector by sector."""
        files = {name: bytearray(content) for name, content in self.before.items()}
        unsynced: dict[str, list[Step]] = {}
        for step in self.steps[:until]:
            if step.name == "diary":
                continue
            if step.kind == "S":
                for earlier in unsynced.pop(step.name, []):
                    _apply(files, earlier)
            else:
                unsynced.setdefault(step.name, []).append(step)
        for steps in unsynced.values():
            for step in steps:
                for part in _sectors(step):
                    if chance.random() < keep:
                        _apply(files, part)
        return {name: bytes(content) for name, content in files.items()}


def _sectors(step: Step) -> list[Step]:
    if step.kind != "W":
        return [step]
    return [
        Step("W", step.name, step.offset + at, step.data[at : at + SECTOR]) for at in range(0, len(step.data), SECTOR)
    ]


def _apply(files: dict[str, bytearray], step: Step) -> None:
    content = files.setdefault(step.name, bytearray())
    if step.kind == "T":
        del content[step.offset :]
        content.extend(bytes(step.offset - len(content)))
        return
    content.extend(bytes(max(0, step.offset + len(step.data) - len(content))))
    content[step.offset : step.offset + len(step.data)] = step.data


def recorded(library: Path, ledger: Path, *, charges: int, synchronous: str, account: str) -> Recorded:
    """A run of this module on a ledger, recorded."""
    before = {path.name: path.read_bytes() for path in ledger.parent.glob(f"{ledger.name}*") if path.suffix != ".so"}
    log, diary = ledger.with_name("log.of.writes"), ledger.with_name("diary")
    variables = {"LD_PRELOAD": str(library), "RECORDED_FOLDER": str(ledger.parent), "RECORDED_LOG": str(log)}
    arguments = [f"sqlite:///{ledger}", str(diary), str(charges), synchronous, account]
    root = Path(__file__).resolve().parents[2]
    subprocess.run(
        [sys.executable, "-m", "tests.accountant.power_loss", *arguments],
        env={**os.environ, "PYTHONPATH": str(root), **variables},
        check=True,
    )
    return Recorded(before, log.read_bytes())


def main(url: str, diary: str, charges: str, synchronous: str, account: str) -> None:
    """Four clients, each with its part of the charges."""
    out = os.open(diary, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def tell(**fact: str) -> None:
        os.write(out, json.dumps(fact).encode() + b"\n")

    with Ledger(url, instance="child") as ledger:

        def set_up(connection: object, _: object) -> None:
            connection.execute(f"PRAGMA synchronous={synchronous}")  # type: ignore[attr-defined]
            connection.execute(f"PRAGMA wal_autocheckpoint={CHECKPOINT_PAGES}")  # type: ignore[attr-defined]

        event.listen(ledger._engine, "connect", set_up)
        ledger._engine.dispose()
        assert ledger._writer is not None
        ledger._writer._disconnect()

        def client(number: int) -> None:
            for turn in range(int(charges) // 4):
                asked = request(account, query_id=f"q{number}-{turn}")
                reserved = ledger.reserve(asked)
                tell(reserved=reserved.query_id)
                answer = f"answer {number} {turn}" * 20
                ledger.post(reserved.query_id, releases_for(ledger, reserved, asked.cores), answer.encode())
                tell(query=reserved.query_id, answer=answer)

        clients = [threading.Thread(target=client, args=(number,)) for number in range(4)]
        for one in clients:
            one.start()
        for one in clients:
            one.join()


if __name__ == "__main__":
    main(*sys.argv[1:])
