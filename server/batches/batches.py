"""Answering batches: one text, chosen among several, takes the journey of a question; then its answer is read off.

A batch is one query of the ledger, and has its identifier: one reservation, one charge, one run in one slot until its
visible moment, one stored answer, and the same opaque failure. What is added is before it, a function of the texts and
of what is public (which text is sent: strategies.py), and after it, a function of released numbers (which cells each
count is the sum of). So nothing is said here about anybody that the query does not say.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from accountant.ledger import Ledger
from accountant.request import QueryRecord
from accountant.states import QueryStatus
from mechanisms.interval import two_sided_alpha
from mechanisms.released_table import ReleasedTable
from mechanisms.weighted_cells import weighted_sums
from privacy.norms import NormPower
from privacy.policy import Dataset
from privacy.refusal import Refused
from privacy.release import ColumnKind
from server.admitted import InFlight, Settled
from server.answer import Journey
from server.answer_rows import from_stored
from server.batches.strategies import Way, best, cell_weights, ways_of
from server.batches.terms import AskedBatch, Terms
from server.journey.query import Admitted, ToRun
from server.resources.offer import price_json
from server.sealing import Seal, SealBroken
from server.store.registry import Registry
from server.store.resources import BATCHES, BatchRow
from sql_rewrite.batch_text import Counted, ReadBatch, numbered, read_batch

__all__ = ["Batches", "Choice", "CountRow"]


@dataclass(frozen=True, slots=True)
class Choice:
    """How a batch would be answered: the ways, the one that is taken, and which count each query is."""

    dataset: Dataset
    ways: tuple[Way, ...]
    chosen: Way
    places: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class CountRow:
    """The answer to one query of a batch."""

    value: int | float
    standard_error: float
    low: int | float
    high: int | float


@dataclass(slots=True)
class Batches:
    """The batches of a server. Safe to use from many threads."""

    ledger: Ledger
    registry: Registry
    journey: Journey
    seal: Seal
    _read: dict[str, tuple[CountRow, ...]] = field(default_factory=dict)

    def choice(self, asked: AskedBatch) -> Choice:
        """Steps 1 to 4: which ways there are, and which is taken. Touches no private row, spends nothing.

        Errors: Refused.
        """
        # A stranger learns nothing of the dataset, not even that it exists.
        dataset, _ = self.journey.admission.paying(asked.question(asked.queries[0]))
        read = read_batch(asked.queries, dataset)
        different = tuple(dict.fromkeys(read.queries))
        numbers = {query: number for number, query in enumerate(different)}
        ways = ways_of(self.journey, asked, ReadBatch(read.source, different), different)
        try:
            chosen = best(ways)
        except Refused:
            self._refuse_one(asked, dataset)
            raise
        return Choice(dataset, ways, chosen, _places(read.queries, numbers))

    def _refuse_one(self, asked: AskedBatch, dataset: Dataset) -> None:
        """Where no way answers a batch: the refusal of the first query that is refused by itself, in its own words."""
        for number, text in enumerate(dict.fromkeys(asked.queries)):
            if number >= _ALONE:
                return
            try:
                self.journey.preparing.prepare(asked.question(text), dataset, NormPower.L2)
            except Refused as refused:
                raise Refused([numbered(finding, asked.queries.index(text)) for finding in refused.findings]) from None

    def estimate(self, asked: AskedBatch) -> tuple[Choice, Mapping[str, object]]:
        """The same, and the estimate of the text that is taken. Errors: Refused."""
        found = self.choice(asked)
        return found, self.journey.estimate(asked.question(found.chosen.text))

    def admit(self, asked: AskedBatch) -> Admitted:
        """Steps 1 to 5, and the batch is stored. Errors: Refused, Problem, and the ledger's, as of a question.

        The same request under an idempotency key finds the same batch, whatever would be chosen by now.
        """
        if asked.idempotency_key is not None:
            earlier = self.ledger.earlier(asked.principal, asked.idempotency_key, asked.body_hash)
            if earlier is not None:
                return self.journey.admit(asked.question(asked.queries[0]))
        choice = self.choice(asked)
        admitted = self.journey.admit(asked.question(choice.chosen.text))
        if isinstance(admitted, InFlight):
            return admitted
        try:
            if isinstance(admitted, ToRun) or self.registry.resource(BATCHES, admitted.query_id) is None:
                size = self._store(asked, choice, admitted)
                if isinstance(admitted, Settled) or not admitted.paid.charged:
                    self.journey.free.take(asked.principal, size)
        except Exception:
            if isinstance(admitted, ToRun):
                # No engine has seen it, so the charge is given back.
                self.journey.abandon(admitted)
            raise
        return admitted

    def _store(self, asked: AskedBatch, choice: Choice, admitted: ToRun | Settled) -> int:
        """Stores a batch. Returns how many bytes it takes: an allowance bounds what is stored without a charge."""
        batch, chosen = admitted.query_id, choice.chosen
        terms = Terms(
            strategy=chosen.strategy, confidence=asked.confidence, places=choice.places, cells=chosen.cells
        ).to_json()
        sealed = self.seal.encrypted(json.dumps(asked.queries).encode(), bound_to=batch)
        if isinstance(admitted, ToRun):
            account, charged = admitted.asked.path[0], admitted.paid.charged
            events = tuple(event for charge in admitted.asked.charges for event in charge.events)
        else:
            # An answer that was given before is given again for nothing.
            record = self.ledger.query(batch)
            assert record is not None, "it is settled"
            account, charged = self.ledger.account(record.account), record.charged
            events = () if chosen.priced is None else tuple(chosen.priced.calibration.events())
        price = price_json(account, charged[0].epsilon if charged else Fraction(0), events, choice.dataset)
        self.registry.add_resource(
            BATCHES,
            BatchRow(
                id=batch,
                principal=asked.principal,
                dataset=asked.dataset,
                account=account.id,
                price=json.dumps(price),
                terms=terms,
                sealed=sealed,
            ),
        )
        return len(terms) + len(sealed)

    def texts(self, row: BatchRow) -> tuple[str, ...] | None:
        """The queries of a batch, for its owner; None where they cannot be read."""
        try:
            return tuple(json.loads(self.seal.decrypted(row.sealed, bound_to=row.id)))
        except SealBroken:
            return None

    def rows(self, row: BatchRow, record: QueryRecord) -> tuple[CountRow, ...] | None:
        """The counts of a batch, in the order of its queries; None until it is settled. It reads what is stored."""
        if record.state is not QueryStatus.SETTLED or record.answer is None:
            return None
        known = self._read.get(row.id)
        if known is None:
            terms, answer = Terms.from_json(row.terms), json.loads(record.answer)
            found = _columns(answer) if terms.cells is None else self._sums(terms, answer)
            known = tuple(found[place] for place in terms.places)
            if len(self._read) >= _KEPT:
                self._read.clear()
            self._read[row.id] = known
        return known

    def _sums(self, terms: Terms, answer: Mapping[str, object]) -> tuple[CountRow, ...]:
        """The counts of cells, from the one release that the query has."""
        provenance = answer["provenance"]
        assert isinstance(provenance, dict)
        (name,) = provenance["releases"]
        release = self.ledger.release(str(name))
        assert release is not None, "releases are never removed"
        assert terms.cells is not None
        table = from_stored(release.body, "c0", terms.confidence)
        weights = cell_weights(terms.cells, _groups(table))
        (sums,) = table.sums or ()
        (estimate,) = sums.estimates
        # The law of the noise, and no other number, says how far each sum is off.
        told = weighted_sums(sums, estimate, weights, two_sided_alpha(terms.confidence))
        return tuple(
            CountRow(_plain(value), error, _plain(value - Fraction(reach)), _plain(value + Fraction(reach)))
            for value, error, reach in zip(told.values, told.errors.tolist(), told.reaches.tolist(), strict=True)
        )


_ALONE = 32
"""Most queries that are tried by themselves to find the one that is refused."""

_KEPT = 256
"""Batches whose counts are kept once they are read off."""


def _plain(value: Fraction) -> int | float:
    return value.numerator if value.denominator == 1 else float(value)


def _places(queries: tuple[Counted, ...], numbers: Mapping[Counted, int]) -> tuple[int, ...]:
    return tuple(numbers[query] for query in queries)


def _groups(table: ReleasedTable) -> list[tuple[object, ...]]:
    keys = [column.values for column in table.columns if column.role == ColumnKind.KEY]
    return list(zip(*keys, strict=True))


def _columns(answer: Mapping[str, object]) -> tuple[CountRow, ...]:
    """The counts of the one row of an answer, column by column."""
    rows = []
    for name in ("rows", "standard_errors", "lows", "highs"):
        table = answer[name]
        assert isinstance(table, list)
        (row,) = table
        rows.append(row)
    return tuple(CountRow(value, error, low, high) for value, error, low, high in zip(*rows, strict=True))
