"""Every kind of event on a ledger: charged as its loss says, kept as it was, and recomputed alike by the audit."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from accountant.entry import Amounts
from accountant.filter import DEFAULT_SHARES, FilterKind, Sums, split_limit
from accountant.ledger import Ledger
from accountant.states import EntryKind
from privacy.composition import compose
from privacy.events import KINDS, Event, event_from_json, event_to_json
from tests.accountant.making import analyst, core, limit, request, root, spend
from tests.accountant.test_ledger_audit import tamper
from tests.privacy.test_events import FALLS, GROWS, SAMPLES


def grown(event: Any) -> list[Event]:
    """The event with each of its parameters changed for the worse."""
    worse: list[Event] = []
    for name in GROWS[type(event)]:
        value = getattr(event, name)
        worse.append(dataclasses.replace(event, **{name: (1 + value) / 2 if name == "delta" else value * 2}))
    for name in FALLS[type(event)]:
        worse.append(dataclasses.replace(event, **{name: getattr(event, name) / 2}))
    for name in {"hits", "draws", "count"} & {field.name for field in dataclasses.fields(event)}:
        worse.append(dataclasses.replace(event, **{name: getattr(event, name) + 1}))
    return worse


def test_every_event_is_charged_kept_and_audited_alike(ledger: Ledger) -> None:
    """Shows for one charge of every kind, and for one of all kinds together, amounts that are its loss rounded up, an
    entry whose events read back to it, and an audit that recomputes the same; nothing is cheaper for the worse."""
    events = [SAMPLES[kind] for kind in KINDS]
    top = root(ledger, epsilon=10_000, delta="0.01", pure=False)
    leaf = analyst(ledger, top, epsilon=10_000, delta="0.01", pure=False)
    charges: list[tuple[Event, ...]] = [*((event,) for event in events), tuple(events)]
    for number, charge in enumerate(charges):
        spend(ledger, request(leaf, core(str(number), *charge)))
    entries = [entry for entry in ledger.entries(leaf.id) if entry.kind is EntryKind.RESERVE]
    assert len(entries) == len(charges) == len(KINDS) + 1
    spent = Amounts()
    for entry, charge in zip(entries, charges, strict=True):
        (charged,) = json.loads(entry.details)["charged"]
        assert tuple(event_from_json(one) for one in charged["events"]) == charge
        assert entry.amounts == Amounts.of_charge(Sums.of(compose(charge)), spent=spent, branches=leaf.branches)
        spent = spent.plus(entry.amounts)
    assert ledger.account(leaf.id).spent == spent.sums() == ledger.account(top.id).spent
    assert ledger.audit().findings == ()


def test_no_worse_event_is_cheaper() -> None:
    """Shows in the units of the ledger that more sensitivity, epsilon, delta or draws, or less noise, costs no less in
    any measure and more in one."""
    branches = split_limit(limit(1, "0.000001"), FilterKind.APPROXIMATE, DEFAULT_SHARES)
    for event in SAMPLES.values():
        before = Amounts.of_charge(Sums.of(event.loss()), spent=Amounts(), branches=branches)
        worse = grown(event)
        assert worse
        for other in worse:
            after = Amounts.of_charge(Sums.of(other.loss()), spent=Amounts(), branches=branches)
            finite = zip(before[:4], after[:4], strict=True)
            assert all(left <= right for left, right in finite), (event, other)
            assert before != after, (event, other)


def test_an_entry_whose_events_were_changed_is_found(ledger: Ledger, url: str) -> None:
    """Shows that amounts which its events do not have are found for every kind, whatever the hash says."""
    top = root(ledger, epsilon=10_000, delta="0.01", pure=False)
    for number, kind in enumerate(KINDS):
        spend(ledger, request(top, core(str(number), SAMPLES[kind])))
    statements = []
    entries = [entry for entry in ledger.entries(top.id) if entry.kind is EntryKind.RESERVE]
    for entry, kind in zip(entries, KINDS, strict=True):
        details = json.loads(entry.details)
        details["charged"][0]["events"] = [event_to_json(grown(SAMPLES[kind])[0])]
        statements.append(f"UPDATE entries SET details = '{json.dumps(details)}' WHERE sequence = {entry.sequence}")
    tamper(url, *(statement.replace(":", "\\:") for statement in statements))
    wrong = [finding.subject for finding in ledger.audit().findings if finding.code == "wrong_amounts"]
    assert wrong == [str(entry.sequence) for entry in entries]
