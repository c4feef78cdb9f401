"""The export of a ledger, and the auditor's program that recomputes it: it agrees, and every forgery has a name."""

from __future__ import annotations

import ast
import copy
import itertools
import json
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from accountant import export
from accountant.entry import Amounts
from accountant.filter import AMOUNT_MAX, DeltaShares, FilterKind, Limit, Sums, split_limit
from accountant.ledger import Ledger
from privacy.events import KINDS, event_to_json
from tests.accountant.exported import (
    FILE,
    Lines,
    Program,
    exported,
    history,
    of,
    random_history,
    rechained,
    sealed,
)
from tests.accountant.making import analyst, root, spend
from tests.accountant.making import request as asked
from tests.accountant.test_ledger_audit import tamper
from tests.privacy.test_events import SAMPLES


def codes(raw: bytes, heads: dict[int, str] | None = None) -> set[str]:
    """The codes of what the program finds in a file."""
    verifier = Program.Verifier()
    verifier.read(iter(raw.splitlines(keepends=True)), heads or {})
    return {code for code, _, _ in verifier.findings}


@pytest.fixture(scope="module")
def original(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Lines:
    """One history with every step, a checkpoint after each third entry, exported once."""
    path = tmp_path_factory.mktemp("export") / "ledger.sqlite"
    path.write_bytes(sqlite_template.read_bytes())
    with pytest.MonkeyPatch.context() as patched, Ledger(f"sqlite:///{path}", instance="test") as ledger:
        patched.setattr(export, "CHECKPOINT_EVERY", 3)
        history(ledger)
        assert ledger.audit().findings == ()
        return exported(ledger)


@pytest.fixture
def lines(original: Lines) -> Lines:
    """A copy to forge."""
    return copy.deepcopy(original)


def test_what_is_exported_agrees(ledger: Ledger) -> None:
    """On both databases: nothing is found, everything is counted, and no text or value of a question is in it."""
    history(ledger)
    raw = b"".join(ledger.export(now=1))
    verifier = Program.Verifier()
    verifier.read(iter(raw.splitlines(keepends=True)), {})
    assert verifier.findings == []
    report = ledger.audit()
    assert (verifier.sequence, verifier.hash) == (report.sequence, report.hash)
    counted = (verifier.counts[name] for name in ("entry", "account", "query", "release"))
    assert tuple(counted) == (report.entries, report.accounts, report.queries, report.releases)
    assert b'"answer"' not in raw.replace(b'"answer":', b"")
    assert b"noisy" not in raw
    assert b"body_hash" not in raw
    words = "\n".join(verifier.words())
    assert "Dataset people: worst-case loss per person (epsilon 10, delta 0.000001)." in words
    assert "more\n  than 7.389 times" in words
    assert "changed the limit of people, account anna" in words
    assert "1 reservations are open" in words
    assert "1 sessions were charged in whole" in words


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.sparse(4)
def test_random_histories_have_identical_balances(sqlite_url: str, seed: int) -> None:
    """Shows on any steps in any order, refusals and changed limits among them, that the program and the ledger agree
    on every amount of every account, and that neither finds anything."""
    with Ledger(sqlite_url, instance="test") as ledger:
        tree = random_history(ledger, seed, 60)
        assert ledger.audit().findings == ()
        verifier = Program.Verifier()
        verifier.read(ledger.export(now=1), {})
        assert verifier.findings == []
        for account in tree:
            found = ledger.account(account.id)
            assert Amounts(*verifier.accounts[account.id].spent).sums() == found.spent
            assert verifier.accounts[account.id].used() == found.used_share()
        places = {tuple(amount > 0 for amount in line["amounts"][7:9]) for line in of(exported(ledger), "entry")}
        assert places == {(False, False), (True, False), (False, True)}


def test_every_event_costs_the_same() -> None:
    """Shows for every kind of event that may be charged that the program knows it, and has its loss to the unit. A new
    kind goes into `EVENTS` of clients/verify.py, written from its theorem and not from its code."""
    assert set(Program.EVENTS) == {kind.kind for kind in KINDS}
    for kind, event in SAMPLES.items():
        least, most = Program.charge_of(json.dumps({"charged": [{"events": [event_to_json(event)]}]}))
        sums = Sums.of(event.loss())
        assert least == (sums.pure, sums.delta, sums.rho, sums.mu_squared), kind
        assert all(low is None or low <= high <= low + 1 + low // 10**17 for low, high in zip(least, most, strict=True))


@pytest.mark.parametrize(
    ("epsilon", "delta", "parts"),
    [
        ("1", "1e-6", (70, 7, 8)),
        ("0.3", "1e-9", (25, 25, 0)),
        ("10", "1e-2", (40, 0, 20)),
        ("1000000", "4e-18", (70, 7, 8)),
        ("0.000000000003", "1e-6", (0, 50, 50)),
    ],
)
def test_every_limit_has_the_same_budgets(epsilon: str, delta: str, parts: tuple[int, int, int]) -> None:
    """Shows that the budgets of all branches are the same whole units, though another way finds them."""
    limit = Limit(Fraction(epsilon), Fraction(delta))
    shares = DeltaShares(gaussian=parts[0], concentrated=parts[1], mixed=parts[2], groups=100 - sum(parts))
    theirs = split_limit(limit, FilterKind.APPROXIMATE, shares)
    named = {"gaussian": parts[0], "concentrated": parts[1], "mixed": parts[2], "groups": shares.groups}
    mine = Program.budgets_of((int(limit.epsilon * 10**12), int(limit.delta * 10**18)), "approximate", named)
    for branch, budget in mine.items():
        said = getattr(theirs, branch)
        assert said == budget or (branch == "rho" and budget is not None and 0 <= budget - said < budget / 10**12)


def test_the_program_shares_no_code() -> None:
    """Imports of the standard library alone, in one file, which runs without Noisegate beside it."""
    tree = ast.parse(FILE.read_text("utf-8"))
    modules = {
        name.split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in ([one.name for one in node.names] if isinstance(node, ast.Import) else [node.module or "."])
    }
    assert modules - {"__future__"} <= set(sys.stdlib_module_names)
    assert AMOUNT_MAX == Program.AMOUNT_MAX


def test_it_runs_alone(lines: Lines, tmp_path: Path) -> None:
    """As an auditor runs it: a copy of the file in a folder of its own, isolated; its exit code says the outcome, and
    an earlier export of the same ledger agrees while one of a rewritten ledger does not."""
    program, whole, older = tmp_path / "verify.py", tmp_path / "new.ndjson", tmp_path / "old.ndjson"
    program.write_bytes(FILE.read_bytes())
    whole.write_bytes(sealed(lines))
    entry = of(lines, "entry")[4]
    older.write_bytes(json.dumps({"line": "end", "sequence": entry["sequence"], "hash": entry["hash"]}).encode())

    def run(*arguments: object) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-I", "-S", str(program), *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=tmp_path)

    ran = run(whole, "--earlier", older)
    assert ran.returncode == 0, ran.stderr
    assert "Everything agrees" in ran.stdout
    assert f"Head, to be noted elsewhere: {lines[-1]['sequence']}:{lines[-1]['hash']}" in ran.stdout
    of(lines, "entry")[2]["created"] += 1
    whole.write_bytes(sealed(rechained(lines)))
    assert run(whole).returncode == 0, "a whole new history agrees with itself"
    assert run(whole, "--earlier", older, "--json").returncode == 1
    assert run(older).returncode == run(tmp_path / "none").returncode == 2


# --- Forgeries --------------------------------------------------------------------------------------------------------


def details(line: dict[str, object], **changes: object) -> None:
    """Changes the details of an entry."""
    line["details"] = json.dumps(json.loads(str(line["details"])) | changes, sort_keys=True, separators=(",", ":"))


def reserved(lines: Lines, number: int = 0) -> dict[str, object]:
    """A charge of anna's account."""
    (anna,) = of(lines, "account", name="anna")
    return of(lines, "entry", kind="reserve", account=anna["id"])[number]


def dropped(lines: Lines) -> None:
    lines.remove(of(lines, "entry")[6])


def altered(lines: Lines) -> None:
    of(lines, "entry")[6]["created"] += 1


def reordered(lines: Lines) -> None:
    one, other = (lines.index(entry) for entry in of(lines, "entry")[6:8])
    lines[one], lines[other] = lines[other], lines[one]


def duplicated(lines: Lines) -> None:
    entry = of(lines, "entry")[6]
    lines.insert(lines.index(entry), copy.deepcopy(entry))


def cheaper(lines: Lines) -> None:
    amounts = reserved(lines)["amounts"]
    assert isinstance(amounts, list)
    amounts[0] -= 1


def other_event(lines: Lines) -> None:
    for line in of(lines, "entry", query=reserved(lines)["query"], kind="reserve"):
        line["details"] = line["details"].replace('"1/100"', '"1/200"')


def unknown_event(lines: Lines) -> None:
    line = reserved(lines)
    line["details"] = str(line["details"]).replace("laplace/1", "laplace/2")


def other_place(lines: Lines) -> None:
    amounts = reserved(lines)["amounts"]
    assert isinstance(amounts, list)
    amounts[7:9] = [0, amounts[3]] if amounts[7] else [amounts[0], 0]


def earlier_moment(lines: Lines) -> None:
    of(lines, "entry", kind="void")[0]["created"] -= 10**12


def slower_clock(lines: Lines) -> None:
    lines[0]["epoch"] += 1


def outside_its_window(lines: Lines) -> None:
    (anna,) = of(lines, "account", name="anna")
    (line,) = of(lines, "entry", account=anna["id"], kind="grant")
    details(line, window={"kind": "monthly", "mode": "slices", "first": "2026-01-01", "slices": 1000})


def window_that_forgets(lines: Lines) -> None:
    of(lines, "account", name="anna")[0]["window"] = {
        "kind": "daily",
        "mode": "slices",
        "first": "2026-01-01",
        "slices": 9,
    }


def greater_void(lines: Lines) -> None:
    of(lines, "entry", kind="void")[0]["amounts"][3] -= 5


def void_of_what_ran(lines: Lines) -> None:
    query = of(lines, "entry", kind="post")[0]["query"]
    for post, charge in zip(
        of(lines, "entry", kind="post", query=query), of(lines, "entry", kind="reserve", query=query), strict=True
    ):
        post |= {"kind": "void", "amounts": [-amount for amount in charge["amounts"]], "details": "{}"}


def closed_twice(lines: Lines) -> None:
    post = of(lines, "entry", kind="post")[0]
    lines.insert(lines.index(post) + 1, copy.deepcopy(post))


def root_not_charged(lines: Lines) -> None:
    (top,) = of(lines, "account", name="lifetime", dataset="people")
    for line in of(lines, "entry", query=reserved(lines)["query"], account=top["id"]):
        lines.remove(line)


def raised_grant(lines: Lines) -> None:
    line = of(lines, "entry", kind="grant")[0]
    details(line, limit={"delta": "0.000001", "epsilon": "20"})


def other_shares(lines: Lines) -> None:
    details(of(lines, "entry", kind="grant")[0], delta_shares={"gaussian": 90, "concentrated": 5, "groups": 5})


def limit_without_entry(lines: Lines) -> None:
    of(lines, "account", name="lifetime")[0]["limit"][0] *= 2


def greater_budget(lines: Lines) -> None:
    of(lines, "account", name="anna")[0]["budgets"]["mixed_mu_squared"] += 1


def forgotten_raise(lines: Lines) -> None:
    details(of(lines, "entry", kind="adjust")[0], **{"from": {"delta": "0.000001", "epsilon": "2"}})


def beyond_the_limit(lines: Lines) -> None:
    (anna,) = of(lines, "account", name="anna")
    for line in of(lines, "entry", account=anna["id"], kind="grant"):
        details(line, limit={"delta": "0.000001", "epsilon": "0.02"})


def second_root(lines: Lines) -> None:
    of(lines, "entry", kind="grant")[-1]["details"] = of(lines, "entry", kind="grant")[0]["details"]


def moved_account(lines: Lines) -> None:
    (visits,) = of(lines, "account", dataset="visits")
    of(lines, "account", name="anna")[0]["parent"] = visits["id"]


def smaller_balance(lines: Lines) -> None:
    of(lines, "account", name="anna")[0]["spent"][3] -= 1


def lost_account(lines: Lines) -> None:
    lines.remove(of(lines, "account", name="anna")[0])


def lost_query(lines: Lines) -> None:
    lines.remove(of(lines, "query", id=reserved(lines)["query"])[0])


def other_state(lines: Lines) -> None:
    of(lines, "query", state="failed_charged")[0]["state"] = "failed_void"


def payer_of_somebody_else(lines: Lines) -> None:
    (anna,) = of(lines, "account", name="anna")
    of(lines, "query", account=anna["id"])[0]["principal"] = "ben"


def release_of_a_void(lines: Lines) -> None:
    (void,) = of(lines, "query", state="failed_void")
    of(lines, "release")[0]["query"] = void["id"]


def release_with_less_noise(lines: Lines) -> None:
    of(lines, "release")[0]["events"] = []


def other_base(lines: Lines) -> None:
    charged = json.loads(of(lines, "entry", kind="reserve")[-1]["details"])["charged"]
    (base,) = (
        core["base"]["release"]
        for line in of(lines, "entry", kind="reserve")
        for core in json.loads(line["details"])["charged"]
        if "base" in core and line["account"] == of(lines, "account", name="anna")[0]["id"]
    )
    of(lines, "release", id=base)[0]["events"] = charged[0]["events"]


def lost_reading(lines: Lines) -> None:
    lines.remove(of(lines, "reading")[0])


def reading_of_another(lines: Lines) -> None:
    reading = of(lines, "reading")[0]
    reading["release"] = next(line["id"] for line in of(lines, "release") if line["id"] != reading["release"])


def lost_release(lines: Lines) -> None:
    read = of(lines, "reading")[0]["release"]
    lines.remove(of(lines, "release", id=read)[0])


def other_answer(lines: Lines) -> None:
    of(lines, "query", state="settled", principal="anna")[0]["answer"] = "0" * 64


def other_numbers(lines: Lines) -> None:
    of(lines, "release")[0]["body"] = "0" * 64


def other_owner(lines: Lines) -> None:
    (shared,) = of(lines, "account", name="lifetime", dataset="visits")
    query = of(lines, "query", account=shared["id"])[0]
    query["principal"] = "ben"


def release_put_in(lines: Lines) -> None:
    release = of(lines, "release")[0]
    lines.insert(lines.index(release), release | {"id": "r_other"})


def forged_checkpoint(lines: Lines) -> None:
    of(lines, "checkpoint")[1]["hash"] = of(lines, "entry")[0]["hash"]


def other_head(lines: Lines) -> None:
    lines[-1]["sequence"] -= 1


def asked_of_another_dataset(lines: Lines) -> None:
    for line in (*of(lines, "query", dataset="visits"), *of(lines, "release", dataset="visits")):
        line["dataset"] = "people"


def answer_of_what_failed(lines: Lines) -> None:
    of(lines, "query", state="failed_charged")[0]["answer"] = "0" * 64


def another_ledger(lines: Lines) -> None:
    lines.insert(2, lines[0] | {"ledger": "other"})


def cheap_reading(lines: Lines) -> None:
    for line in of(lines, "entry", kind="reserve"):
        stored = json.loads(line["details"])
        if stored.get("read"):
            for one in stored["read"]:
                one["events"][0]["parameters"]["variance"] = "1000/1"
            details(line, read=stored["read"])
            least, _ = Program.charge_of(line["details"])
            line["amounts"] = [0, 0, least[2], least[3], 1, 0, 0, 0, least[3], 0]


def charged_while_frozen(lines: Lines) -> None:
    (anna,) = of(lines, "account", name="anna")
    change = of(lines, "entry", kind="adjust", account=anna["id"])[0]
    details(change, action="freeze")
    for line in lines:
        if line["line"] == "account" and line["id"] == anna["id"]:
            line |= {"frozen": True, "revision": 1, "limit": line["greatest"]}


def _released(lines: Lines) -> dict[str, Any]:
    return next(line for line in of(lines, "release", principal="anna") if len(line["events"]) == 1)


def _measured(lines: Lines, release: dict[str, Any], **changes: object) -> None:
    """Changes what the query of a release says that it measured, wherever it says so."""
    (query,) = of(lines, "query", id=release["query"])
    stored = json.loads(query["cores"])
    stored["charged"] = [core | changes for core in stored["charged"]]
    query["cores"] = json.dumps(stored)
    for line in of(lines, "entry", kind="reserve", query=release["query"]):
        details(line, charged=stored["charged"])


def two_draws_for_one_charge(lines: Lines) -> None:
    release = _released(lines)
    lines.insert(lines.index(release), release | {"id": "r_other"})
    for line in of(lines, "entry", kind="post", query=release["query"]):
        if line["details"] != "{}":
            stored = json.loads(line["details"])["releases"]
            details(line, releases=stored | {"r_other": release["body"]})


def measured_for_nothing(lines: Lines) -> None:
    release = _released(lines)
    _measured(lines, release, events=[])
    for line in of(lines, "entry", kind="reserve", query=release["query"]):
        line["amounts"] = [0] * 10
    release["events"] = []


def rests_on_itself(lines: Lines) -> None:
    release = _released(lines)
    _measured(lines, release, base={"events": release["events"], "release": release["id"]})
    release["events"] = release["events"] * 2


def rests_on_nothing(lines: Lines) -> None:
    release = _released(lines)
    _measured(lines, release, base={"events": release["events"]})
    release["events"] = release["events"] * 2


def part_of_a_hit(lines: Lines) -> None:
    for line in (*of(lines, "entry", kind="reserve"), *of(lines, "query"), *of(lines, "release")):
        for name in {"details", "cores"} & line.keys():
            line[name] = line[name].replace('"hits":"3/1"', '"hits":"1/1000"')
        for event in line.get("events", ()):
            event["parameters"] |= {"hits": "1/1000"} if "hits" in event["parameters"] else {}


def two_prices(lines: Lines) -> None:
    for line in of(lines, "entry", kind="reserve", query=reserved(lines)["query"]):
        line["details"] = line["details"].replace('{"charged":', '{"charged":[],"charged":', 1)


def nothing_kept(lines: Lines) -> None:
    of(lines, "entry", kind="post")[-1]["details"] = "{}"
    for line in reversed(of(lines, "entry", kind="post")):
        if line["details"] != "{}":
            line["details"] = "{}"
            break


def end_without_an_answer(lines: Lines) -> None:
    line = next(line for line in of(lines, "entry", kind="post") if line["details"] != "{}")
    stored = json.loads(line["details"])
    line["details"] = json.dumps({name: value for name, value in stored.items() if name != "answer"})


Forgery = Callable[[Lines], None]

AS_IT_IS: list[tuple[Forgery, str]] = [
    (dropped, "missing_entry"),
    (altered, "changed_entry"),
    (reordered, "wrong_order"),
    (duplicated, "wrong_order"),
    (raised_grant, "changed_entry"),
    (limit_without_entry, "wrong_limit"),
    (greater_budget, "wrong_limit"),
    (moved_account, "wrong_tree"),
    (smaller_balance, "wrong_balance"),
    (lost_account, "wrong_account"),
    (lost_query, "wrong_state"),
    (other_state, "wrong_state"),
    (payer_of_somebody_else, "wrong_state"),
    (release_of_a_void, "uncharged_release"),
    (release_with_less_noise, "uncharged_release"),
    (other_base, "uncharged_release"),
    (lost_reading, "uncharged_reading"),
    (reading_of_another, "uncharged_reading"),
    (lost_release, "wrong_release"),
    (other_answer, "wrong_answer"),
    (other_numbers, "wrong_release"),
    (other_owner, "wrong_owner"),
    (release_put_in, "wrong_release"),
    (forged_checkpoint, "forged_checkpoint"),
    (other_head, "wrong_head"),
    (asked_of_another_dataset, "wrong_path"),
    (answer_of_what_failed, "wrong_state"),
    (another_ledger, "repeated_line"),
    (slower_clock, "wrong_time"),
    (window_that_forgets, "wrong_window"),
]
"""Forgeries of a file whose counts and last hash were made anew."""

WITH_A_NEW_CHAIN: list[tuple[Forgery, str]] = [
    (cheaper, "wrong_amounts"),
    (other_event, "wrong_amounts"),
    (unknown_event, "unknown_event"),
    (other_place, "wrong_place"),
    (earlier_moment, "wrong_time"),
    (outside_its_window, "over_window"),
    (greater_void, "wrong_amounts"),
    (void_of_what_ran, "wrong_state"),
    (closed_twice, "wrong_state"),
    (root_not_charged, "wrong_path"),
    (raised_grant, "wrong_limit"),
    (other_shares, "wrong_limit"),
    (forgotten_raise, "wrong_limit"),
    (beyond_the_limit, "over_limit"),
    (second_root, "wrong_tree"),
    (dropped, "wrong_state"),
    (cheap_reading, "uncharged_reading"),
    (charged_while_frozen, "over_limit"),
    (two_draws_for_one_charge, "uncharged_release"),
    (measured_for_nothing, "uncharged_release"),
    (rests_on_itself, "uncharged_release"),
    (rests_on_nothing, "unreadable_line"),
    (nothing_kept, "wrong_state"),
    (end_without_an_answer, "wrong_state"),
]
"""Forgeries after which both chains and all balances were made anew as well, by somebody who owns the server."""


def test_an_untouched_copy_agrees(lines: Lines) -> None:
    """Taking apart, sealing and chaining anew changes nothing by itself: the forgeries below are what is found."""
    assert codes(sealed(lines)) == set()
    assert codes(sealed(rechained(lines))) == set()


@pytest.mark.parametrize(("forge", "code"), AS_IT_IS, ids=lambda one: getattr(one, "__name__", ""))
def test_each_forgery_is_found_and_named(lines: Lines, forge: Forgery, code: str) -> None:
    """A file that somebody changed and sealed again."""
    forge(lines)
    assert code in codes(sealed(lines))


@pytest.mark.parametrize(("forge", "code"), WITH_A_NEW_CHAIN, ids=lambda one: getattr(one, "__name__", ""))
def test_each_forgery_of_the_chain_is_found_and_named(lines: Lines, forge: Forgery, code: str) -> None:
    """A history that somebody wrote anew: what it says does not add up, though every hash does."""
    forge(lines)
    found = codes(sealed(rechained(lines)))
    assert code in found
    assert not found & {"changed_entry", "broken_chain", "missing_entry", "changed_file", "wrong_balance"}


@pytest.mark.parametrize("forge", [part_of_a_hit, two_prices])
def test_a_charge_with_two_meanings_is_not_read(lines: Lines, forge: Forgery) -> None:
    """A thousandth of a hit, or two lists of what was measured: no charge that the ledger writes."""
    forge(lines)
    assert "unreadable_line" in codes(sealed(rechained(lines)))


def test_a_history_that_adds_up_is_found_by_a_noted_head(lines: Lines) -> None:
    """Who writes everything anew and consistently is caught by a head that somebody noted, and by nothing else."""
    noted = {of(lines, "entry")[8]["sequence"]: of(lines, "entry")[8]["hash"]}
    assert codes(sealed(lines), noted) == set()
    of(lines, "entry")[3]["created"] += 1
    forged = sealed(rechained(lines))
    assert codes(forged) == set()
    assert codes(forged, noted) == {"other_history"}
    assert codes(forged, {10**6: "0" * 64}) == {"other_history"}


def test_what_programs_read_differently_is_found(lines: Lines) -> None:
    """One name twice in a line, and what is not a number: whoever reads it with another program sees other values."""
    for old, new in ((b'"amounts":', b'"amounts":[1],"amounts":'), (b'"created":', b'"created":NaN,"was":')):
        raw = sealed(lines)
        place = raw.index(old, len(raw) // 2)
        assert "unreadable_line" in codes(raw[:place] + new + raw[place + len(old) :])


def test_a_reason_cannot_speak_for_the_program(lines: Lines) -> None:
    """Control characters in names and reasons neither begin a line nor clear a terminal."""
    details(of(lines, "entry", kind="adjust")[0], reason="\x1b[2J\nEverything agrees.")
    verifier = Program.Verifier()
    verifier.read(iter(sealed(rechained(lines)).splitlines(keepends=True)), {})
    (line,) = (line for line in verifier.words() if "x1b[2J" in line)
    assert line.startswith("20")
    assert line.isprintable()


def test_two_noted_heads_must_agree() -> None:
    """Of two that name one entry differently neither is dropped."""
    with pytest.raises(ValueError, match="differ"):
        Program.heads_of([], [f"3:{'0' * 64}", f"3:{'1' * 64}"])


def test_a_cut_file_is_recognised(lines: Lines) -> None:
    """At every line, and in the middle of one: a cut export is never taken for a whole one."""
    raw = sealed(lines)
    parts = raw.splitlines(keepends=True)
    for count in range(1, len(parts)):
        assert "cut_export" in codes(b"".join(parts[:count]))
    assert {"cut_export", "unreadable_line"} <= codes(raw[:-10])
    assert "cut_export" in codes(raw + parts[1])
    for cut in (b"", b"{}\n", raw[1:]):
        with pytest.raises(Program.NotAnExport):
            codes(cut)


def test_one_changed_byte_is_found(lines: Lines) -> None:
    """Without making the last line anew nothing can be changed, taken out or repeated, whatever it is."""
    raw = sealed(lines)
    for place in range(0, raw.rindex(b"\n", 0, -1), len(raw) // 60):
        changed = raw[:place] + bytes([raw[place] ^ 1]) + raw[place + 1 :]
        try:
            assert codes(changed), place
        except Program.NotAnExport:
            assert place < raw.index(b"\n")


def test_what_is_no_line_is_said_and_read_past(lines: Lines) -> None:
    """Lines without their fields, of unknown kinds, or with other types are findings, never a traceback."""
    for line, name in itertools.product(lines[1:-1], ("account", "details", "cores", "events", "amounts", "spent")):
        if name in line:
            broken = copy.deepcopy(lines)
            broken[lines.index(line)][name] = None
            assert codes(sealed(broken)), (line["line"], name)
    lines[3]["line"] = "surprise"
    assert "unreadable_line" in codes(sealed(lines))


def test_what_was_forged_in_the_database_is_exported_and_found(ledger: Ledger, url: str) -> None:
    """A tampered ledger can still be exported, as evidence: texts among bytes, events that are no JSON."""
    history(ledger)
    tamper(
        url,
        "UPDATE queries SET answer = 'a text' WHERE state = 'settled'",
        "UPDATE releases SET body = 'a text', events = 'none'",
    )
    found = codes(b"".join(ledger.export(now=1)))
    assert {"wrong_answer", "wrong_release", "uncharged_release"} <= found
    assert not found & {"cut_export", "changed_entry"}


def test_the_moment_is_one(ledger: Ledger) -> None:
    """What is spent while an export is read is not in it, neither as an entry nor in a balance."""
    leaf = analyst(ledger, root(ledger))
    spend(ledger, asked(leaf))
    reading = ledger.export(now=1)
    first = next(reading)
    spend(ledger, asked(leaf))
    assert codes(first + b"".join(reading)) == set()
    assert len(of(exported(ledger), "entry")) == 10
