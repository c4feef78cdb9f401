"""Exports of ledgers, taken apart, forged and read by the program that auditors use."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import random
import secrets
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from accountant.account import Account
from accountant.errors import BudgetExhausted
from accountant.ledger import Ledger
from accountant.request import Reserved, ReserveRequest, StoredRelease
from privacy.events import Event, GaussianThresholdEvent, SparseSessionEvent
from tests.accountant.making import analyst, core, gaussian, laplace, limit, releases_for, request, root, spend
from tests.accountant.test_raising import posted, raised

__all__ = ["Lines", "Program", "events", "exported", "history", "load", "random_history", "rechained", "sealed"]

Lines = list[dict[str, Any]]
FILE = Path(__file__).resolve().parents[2] / "clients" / "verify.py"


def load() -> Any:
    """The auditor's program, from its file."""
    spec = importlib.util.spec_from_file_location("verify_of_tests", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


Program = load()


def exported(ledger: Ledger) -> Lines:
    """The lines of an export of this moment."""
    return [json.loads(line) for line in ledger.export(now=1_800_000_000_000_000)]


def _raw(line: dict[str, Any]) -> bytes:
    return json.dumps(line, sort_keys=True, separators=(",", ":")).encode() + b"\n"


def sealed(lines: Lines) -> bytes:
    """The file of these lines, with the counts and the hash of a whole export: as somebody forges it."""
    digest, counts, parts = hashlib.sha256(), Counter[str](), []
    for line in lines:
        if "sha256" in line:
            line = line | {"sha256": digest.hexdigest()}
        if line["line"] == "end":
            line = line | {"counts": dict(counts)}
        raw = _raw(line)
        counts[line["line"]] += 1
        digest.update(raw)
        parts.append(raw)
    return b"".join(parts)


def rechained(lines: Lines) -> Lines:
    """The lines with numbers, hashes and heads made anew from what the entries say: a whole new history."""
    head, sequence, counts, heads = "0" * 64, 0, Counter[str](), {}
    for line in lines:
        if line["line"] == "entry":
            sequence += 1
            counts[line["account"]] += 1
            line |= {"sequence": sequence, "account_sequence": counts[line["account"]], "previous": head}
            line["account_previous"] = heads.get(line["account"], "0" * 64)
            promises = line["kind"] in ("post", "fail") and line["details"] != "{}"
            mixed = any(line["amounts"][7:])
            fields = [
                *("entry/3" if promises else "entry/2" if mixed else "entry/1", sequence, line["account"]),
                *(line["account_sequence"], line["kind"], line["query"]),
                *(line["amounts"] if mixed or promises else line["amounts"][:7], line["details"], line["created"]),
                *(line["account_previous"], line["previous"]),
            ]
            head = hashlib.sha256(json.dumps(fields, separators=(",", ":")).encode()).hexdigest()
            line["hash"] = heads[line["account"]] = head
        elif line["line"] == "act":
            sequence += 1
            line |= {"sequence": sequence, "previous": head}
            texts = [line[name] for name in ("actor", "action", "subject", "details")]
            fields = ["act/1", sequence, *texts, line["created"], head]
            line["hash"] = head = hashlib.sha256(json.dumps(fields, separators=(",", ":")).encode()).hexdigest()
        elif line["line"] == "checkpoint":
            line |= {"sequence": sequence, "hash": head}
    spent: dict[str, list[int]] = {}
    for line in of(lines, "entry"):
        before = spent.setdefault(line["account"], [0] * 10)
        spent[line["account"]] = [a + b for a, b in zip(before, line["amounts"], strict=True)]
    for line in of(lines, "account"):
        line |= {"spent": spent[line["id"]], "entries": counts[line["id"]], "hash": heads[line["id"]]}
    for line in (lines[0], lines[-1]):
        line |= {"sequence": sequence, "hash": head}
    return lines


def of(lines: Lines, what: str, /, **values: object) -> Lines:
    """The lines of one sort that have these values."""
    return [line for line in lines if line["line"] == what and all(line[name] == one for name, one in values.items())]


def events() -> dict[str, Event]:
    """Charges that between them use every branch, a delta and a session."""
    return {
        "laplace": laplace("0.01"),
        "gaussian": gaussian("0.001"),
        "hidden": GaussianThresholdEvent(
            l2_squared=limit("0.0004").epsilon, variance=limit(1).epsilon, delta=limit(1, "1e-9").delta
        ),
        "session": SparseSessionEvent(
            **{name: limit(value).epsilon for name, value in {
                "sensitivity": 1, "threshold_scale": 100, "query_scale": 300, "moves": 1, "hits": 3,
            }.items()}
        ),
    }  # fmt: skip


def _base_of(ledger: Ledger, name: str) -> StoredRelease:
    found = ledger.find_release(core(name).core_key)
    assert found is not None
    return found


def history(ledger: Ledger) -> None:
    """Two levels, two datasets, every step of the ledger once, and a release that rests on another one."""
    top = root(ledger, epsilon=10, delta="1e-6", pure=False)
    anna, ben = (analyst(ledger, top, principal=name, delta="1e-6", pure=False) for name in ("anna", "ben"))
    visits = root(ledger, dataset="visits", epsilon=2)
    spend(ledger, request(visits, core("visits"), principal="anna"))
    for name, event in events().items():
        spend(ledger, request(anna, core(name, event), principal="anna"))
    spend(ledger, request(anna, core("core", gaussian("0.001")), principal="anna"))
    charge = raised(_base_of(ledger, "core"))
    posted(ledger, ledger.reserve(request(anna, charge, principal="anna", reuse="own")), charge, "anna")
    ledger.change_limit(anna.id, limit(2, "1e-6"), actor="admin", reason="second study")
    ledger.fail(ledger.reserve(request(anna, core("failed", laplace("0.02")), principal="anna")).query_id)
    ledger.void(ledger.reserve(request(anna, core("voided", laplace("0.3")), principal="anna")).query_id)
    again = ledger.reserve(request(ben, core("gaussian", gaussian("0.001")), principal="ben", reuse="charged"))
    assert again.read
    ledger.post(again.query_id, [], b"read")
    ledger.reserve(request(ben, core("open", laplace("0.05")), principal="ben"))


def random_history(ledger: Ledger, seed: int, steps: int) -> list[Account]:
    """Any steps in any order on a tree of accounts with narrow limits; what is refused is part of it."""
    draw = random.Random(seed)
    top = root(ledger, epsilon=3, delta="1e-6", pure=False)
    tree = [top, *(analyst(ledger, top, principal=f"p{number}", delta="1e-7", pure=False) for number in range(2))]
    tree.append(analyst(ledger, top, principal="pure", epsilon="0.5"))
    kinds: list[Callable[[], Event]] = [
        lambda: laplace(f"0.{draw.randint(1, 400):03}"),
        lambda: gaussian(f"0.{draw.randint(1, 20000):06}"),
        *(lambda event=event: event for event in events().values()),
    ]
    running: list[tuple[Reserved, ReserveRequest]] = []
    for step in range(steps):
        account = draw.choice(tree)
        chance = draw.random()
        if chance < 0.6:
            made = [draw.choice(kinds)() for _ in range(draw.choice((1, 1, 2)))]
            asked = request(
                account,
                core(f"core {draw.randint(0, steps)}", *made),
                principal=account.principal or "owner",
                reuse=draw.choice(("none", "own", "any", "charged")),
            )
            try:
                running.append((ledger.reserve(asked), asked))
            except BudgetExhausted:
                continue
        elif chance < 0.9 and running:
            reserved, asked = running.pop(draw.randrange(len(running)))
            _end(ledger, draw.choice(("post", "post", "fail", "void")), reserved, asked)
        else:
            epsilon = f"{draw.choice(('0.4', '0.9', '1.7', '3.1'))}{step:03}"
            delta = 0 if account.principal == "pure" else draw.choice(("1e-7", "1e-6"))
            ledger.change_limit(account.id, limit(epsilon, delta), actor="admin", reason="random")
    return tree


def _end(ledger: Ledger, how: str, reserved: Reserved, asked: ReserveRequest) -> None:
    if how == "void":
        ledger.void(reserved.query_id)
    elif how == "fail":
        ledger.fail(reserved.query_id)
    else:
        ledger.post(reserved.query_id, releases_for(ledger, reserved, asked.cores, secrets.token_bytes(4)), b"answer")
