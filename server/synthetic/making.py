"""Making synthetic tables: planned on empty tables, charged once, measured in one slot, drawn, and stored.

The steps are those of a question (server/answer.py). Rows are read by three statements, one after the other, of which
the second and the third follow from what was released before; one event on the ledger covers all of them. The table,
which is a function of released numbers, is made after the visible moment.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from fractions import Fraction

from accountant.errors import LedgerError
from accountant.ledger import Ledger
from accountant.request import CoreCharge, ReserveRequest, Reuse
from accountant.states import QueryStatus
from engines.protocol import EngineLease, StatementEngine, TwinPlanner
from engines.shell import PlanFailed, ShellColumn
from mechanisms.randomness import BitSource
from mechanisms.synthetic.counts import Noisy, paired
from mechanisms.synthetic.model import Model
from mechanisms.synthetic.rounds import measured
from mechanisms.synthetic.values import values_of
from privacy.binned import BinnedColumn, Marginal
from privacy.exact import Exact
from privacy.policy import Dataset
from privacy.refusal import ExecutionFailed, Refused
from privacy.values import Json
from server.answer import Journey
from server.errors import Problem
from server.journey.admission import Served
from server.journey.agreed_price import at_agreed_price, moved
from server.journey.visible import VisibleRun
from server.log import logger
from server.published import SYNTHETIC
from server.question import Question
from server.store.registry import Registry
from server.store.synthetic import NameTaken, SyntheticRow, slot_of
from server.synthetic.content import packed
from server.synthetic.planning import plan, sample_statements
from server.synthetic.refusals import NOT_PLANNED, name_taken, not_made
from server.synthetic.report import estimated, report_of, rows_drawn, terms_of
from server.synthetic.tables import DrawnTables
from server.synthetic.terms import MakeSynthetic, Planned
from sql_rewrite.dialects import DIALECTS
from sql_rewrite.marginals import lower_marginals, marginals_work

__all__ = ["Synthetics"]

_TIMEOUT_SECONDS = 600.0
"""Time limit of all statements: every row is counted in every pair of columns."""


@dataclass(slots=True)
class Synthetics:
    """The synthetic tables of a server. Safe to use from many threads."""

    ledger: Ledger
    registry: Registry
    journey: Journey
    served: Served
    private: StatementEngine
    twins: TwinPlanner
    bits: BitSource
    drawn: DrawnTables

    # Before anything is charged

    def plan(self, request: MakeSynthetic) -> Planned:
        """What the table would be and cost; plans its statements on empty tables. Errors: Refused, Problem."""
        dataset, path = self.journey.admission.paying(_question(request))
        planned = plan(request, dataset, path)
        slot = slot_of(dataset.name, request.principal, request.name)
        if dataset.table(request.name) is not None or not self._is_free(slot):
            raise name_taken(request.name)
        statements = sample_statements(planned, DIALECTS[self.private.capabilities.dialect])
        try:
            self.twins.plan(dataset, statements, owner=request.principal)
        except PlanFailed:
            raise Refused([NOT_PLANNED]) from None
        return planned

    def estimate(self, request: MakeSynthetic) -> dict[str, Json]:
        """What is known of the table before it is made. Reads no row and costs nothing. Errors: as `plan`."""
        return estimated(self.plan(request))

    def earlier(self, request: MakeSynthetic) -> SyntheticRow | None:
        """The table of an earlier request of this idempotency key. Errors: the ledger's; Problem if it is not there."""
        if request.idempotency_key is None:
            return None
        found = self.ledger.earlier(request.principal, request.idempotency_key, request.body_hash)
        return None if found is None else self._made(found.query_id)

    def _is_free(self, slot: str) -> bool:
        """Whether no table has the name. One that failed, or whose process ended, gives it back."""
        row = self.registry.synthetic_in(slot)
        if row is None:
            return True
        if self.status(row) != "failed":
            return False
        self.registry.free_synthetic(row.id)
        return True

    # The charge, and the rows

    def make(self, planned: Planned) -> SyntheticRow:
        """Charges, reads, draws and stores. The same request under an idempotency key finds the same table.

        Errors: Refused, Problem and the ledger's, before anything is charged; ExecutionFailed.
        """
        begun = self.journey.pace.clock()
        reserved_as, planned = self._reserved(planned)
        if reserved_as is None:
            assert planned.request.idempotency_key is not None
            earlier = self.earlier(planned.request)
            assert earlier is not None
            return earlier
        row = self._named(reserved_as, planned)
        with ExitStack() as slot:
            try:
                lease = slot.enter_context(self.private.lease(owner=row.principal))
            except ExecutionFailed:
                # No row was read, so no visible moment is needed, and the charge is given back.
                self._void(row)
                raise
            noisy, planned = self._measured(row, planned, lease, begun)
        return self._stored(row, planned, noisy)

    def _reserved(self, planned: Planned) -> tuple[str | None, Planned]:
        """The identifier of a fresh reservation, or None for an earlier one; at another price where that has moved."""
        query_id = f"s_{secrets.token_hex(12)}"

        def attempt() -> tuple[str | None, Planned]:
            dataset, path = self.journey.admission.paying(_question(planned.request))
            now = plan(planned.request, dataset, path)
            reserved = self.ledger.reserve(_reservation(query_id, now))
            return (reserved.query_id if reserved.fresh else None), now

        return at_agreed_price(attempt, refused=lambda: moved("the synthetic table"))

    def _named(self, query_id: str, planned: Planned) -> SyntheticRow:
        """Takes the name, before rows are read. Errors: Problem when another request was faster."""
        request = planned.request
        row = SyntheticRow(
            id=query_id,
            principal=request.principal,
            dataset=planned.dataset.name,
            account=planned.account,
            created="",
            name=request.name,
            slot=slot_of(planned.dataset.name, request.principal, request.name),
            data_version=planned.dataset.data_version,
            terms=json.dumps(terms_of(planned)),
        )
        try:
            return self.registry.add_synthetic(row)
        except NameTaken:
            self.ledger.void(query_id)
            raise name_taken(request.name) from None
        except Exception:
            # No row was read, and nothing will be: the charge goes back.
            self._void(row)
            raise

    def _measured(
        self, row: SyntheticRow, planned: Planned, lease: EngineLease, begun: float
    ) -> tuple[Sequence[Noisy], Planned]:
        """Every noisy marginal, at a visible moment. Errors: ExecutionFailed, at a visible moment too."""
        count = len(planned.columns)
        costs = DIALECTS[self.private.capabilities.dialect].costs
        listed = count + len(paired(planned.binned)) + 4 * count
        work = marginals_work(planned.table, planned.binned, listed=listed, costs=costs)
        visible = self.journey.pace.visible(work, begun, self.bits)
        found: tuple[Sequence[Noisy], Planned] | None = None
        try:
            found = self._read(planned, lease, visible)
        except Exception as error:  # noqa: BLE001 - whatever it is, nothing of it may travel further
            failed = type(error).__name__
        visible.wait()
        if found is None:
            logger().warning("query_failed", query_id=row.id, exception=failed)
            self._fail(row)
            raise ExecutionFailed
        return found

    def _read(self, planned: Planned, lease: EngineLease, visible: VisibleRun) -> tuple[Sequence[Noisy], Planned]:
        """Columns, then pairs, then triples: each statement follows from what was released before it."""
        synthesis = planned.synthesis

        def counted(columns: Sequence[BinnedColumn], marginals: Sequence[Marginal]) -> Exact:
            dialect = DIALECTS[self.private.capabilities.dialect]
            statement = lower_marginals(
                planned.table, columns, marginals, rows_per_unit=synthesis.rows, dialect=dialect
            )
            seconds = visible.seconds_left(_TIMEOUT_SECONDS)
            snapshot = self.served.snapshot(planned.dataset)
            return self.private.run(snapshot, statement, timeout_seconds=seconds, lease=lease)

        noisy, columns = measured(synthesis, planned.binned, counted, self.bits)
        return noisy, replace(planned, binned=columns)

    def _stored(self, row: SyntheticRow, planned: Planned, noisy: Sequence[Noisy]) -> SyntheticRow:
        """The table, a function of released numbers, as it is kept. Errors: ExecutionFailed."""
        try:
            model = Model.of(planned.binned, noisy)
            rows = rows_drawn(model.total, len(planned.columns))
            places = model.drawn(rows, self.bits)
            columns = [
                ShellColumn(column.name, column.type, values_of(column, binned, places[:, number], self.bits))
                for number, (column, binned) in enumerate(zip(planned.columns, planned.binned, strict=True))
            ]
            report = json.dumps(report_of(planned, noisy, model, rows))
            self.registry.fill_synthetic(row.id, report=report, content=packed(columns))
            self.ledger.post(row.id, (), json.dumps({SYNTHETIC: row.id}).encode())
        except Exception as error:  # noqa: BLE001 - rows were read: the charge stays, and there is one outcome
            logger().error("query_unsettled", query_id=row.id, exception=type(error).__name__)
            self._fail(row)
            raise ExecutionFailed from None
        self.drawn.forget()
        return replace(row, report=report)

    # What became of it

    def status(self, row: SyntheticRow) -> str:
        """`running`, `ready`, `failed` or `archived`."""
        if row.archived is not None:
            return "archived"
        if self.drawn.made(row):
            return "ready"
        record = self.ledger.query(row.id)
        return "running" if record is not None and record.state is QueryStatus.RESERVED else "failed"

    def readable(self, row: SyntheticRow, dataset: Dataset, principal: str) -> bool:
        """Whether somebody who may ask the dataset may read a table that another one made."""
        return self.drawn.made(row) and self.drawn.readable(row, dataset, principal)

    def beside(self, dataset: Dataset, principal: str) -> Dataset:
        """The dataset with the synthetic tables that the principal may read."""
        return self.drawn.beside(dataset, principal)

    def archive(self, row: SyntheticRow, *, actor: str) -> SyntheticRow:
        """Deletes the rows of a table and frees its name; what was charged stays charged. Errors: Problem."""
        if self.status(row) == "running":
            raise Problem(
                "conflict",
                what="a synthetic table that is being made is not deleted",
                why="Its rows are read at this moment.",
                instead=("Delete it when it is ready.",),
            )
        self.registry.archive_synthetic(row.id, actor=actor)
        self.drawn.forget()
        found = self.registry.synthetic(row.id)
        assert found is not None
        return found

    def _made(self, table_id: str) -> SyntheticRow:
        row = self.registry.synthetic(table_id)
        if row is None or self.status(row) not in ("ready", "archived"):
            raise not_made()
        return row

    def _fail(self, row: SyntheticRow) -> None:
        """Keeps the charge, and gives the name back."""
        try:
            self.ledger.fail(row.id)
            self.registry.free_synthetic(row.id)
        except LedgerError as error:
            # The reservation counts as spent until a restart ends it.
            logger().error("query_unsettled", query_id=row.id, exception=type(error).__name__)

    def _void(self, row: SyntheticRow) -> None:
        try:
            self.ledger.void(row.id)
            self.registry.free_synthetic(row.id)
        except LedgerError as error:
            logger().error("query_unsettled", query_id=row.id, exception=type(error).__name__)


def _question(request: MakeSynthetic) -> Question:
    """The request as the journey reads who pays."""
    return Question(
        principal=request.principal,
        dataset=request.dataset,
        sql="",
        parameters={},
        epsilon=request.epsilon,
        half_width=None,
        confidence=Fraction(95, 100),
        reuse=Reuse.NONE,
        max_staleness_s=None,
        account=request.account,
        idempotency_key=None,
        body_hash=request.body_hash,
    )


def _reservation(query_id: str, planned: Planned) -> ReserveRequest:
    request = planned.request
    key = hashlib.sha256(f"{SYNTHETIC} {query_id}".encode()).hexdigest()
    charge = CoreCharge(core_key=key, quality=Fraction(1), events=(planned.synthesis.event(),), lent=False)
    return ReserveRequest(
        query_id=query_id,
        principal=request.principal,
        account=planned.account,
        body_hash=request.body_hash,
        cores=(charge,),
        idempotency_key=request.idempotency_key,
        reuse=Reuse.NONE,
        most=request.epsilon,
        description={SYNTHETIC: query_id, "cores": [], "noise": "gaussian"},
    )
