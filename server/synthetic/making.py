"""Making synthetic tables: planned on empty tables, charged once, measured in one slot, drawn, and stored.

The steps are those of every resource (server/resources/resources.py). Rows are read by three statements, one after the
other, of which the second and the third follow from what was released before; one event on the ledger covers all of
them. The table, which is a function of released numbers, is made after the visible moment.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from accountant.states import QueryStatus
from engines.protocol import EngineLease, TwinPlanner
from engines.shell import PlanFailed, ShellColumn
from mechanisms.synthetic.counts import Noisy, paired
from mechanisms.synthetic.model import Model
from mechanisms.synthetic.rounds import measured
from mechanisms.synthetic.values import values_of
from privacy.binned import BinnedColumn, Marginal
from privacy.exact import Exact
from privacy.policy import Dataset
from privacy.refusal import ExecutionFailed, Refused
from privacy.values import Json
from server.admitted import InFlight, Settled
from server.answer import Journey
from server.journey.admission import Served
from server.journey.pace import VisibleRun
from server.question import Question, plain_question
from server.resources.kinds import ResourceKind, ResourceState
from server.resources.resources import Begun, Resources
from server.store.errors import UNAVAILABLE
from server.store.registry import Registry
from server.store.resources import SYNTHETICS, ResourceRow, SyntheticRow
from server.store.synthetic import NameTaken, slot_of
from server.synthetic.content import packed
from server.synthetic.planning import plan, sample_statements
from server.synthetic.refusals import NOT_PLANNED, name_taken, unit_too_long
from server.synthetic.report import estimated, report_of, rows_drawn
from server.synthetic.tables import DrawnTables
from server.synthetic.terms import MakeSynthetic, Planned
from sql_rewrite.cost import UNIT_NANOSECONDS_MAX, Work
from sql_rewrite.dialects import DIALECTS
from sql_rewrite.dialects.dialect import Dialect
from sql_rewrite.marginals import lower_marginals, marginals_work

__all__ = ["Synthetics", "ToDraw"]

_TIMEOUT_SECONDS = 600.0
"""Time limit of all statements: every row is counted in every pair of columns."""


ToDraw = Begun[Planned, SyntheticRow]
"""A table that is charged, holds its name and has read no row."""


@dataclass(slots=True)
class Synthetics:
    """The synthetic tables of a server. Safe to use from many threads."""

    resources: Resources
    registry: Registry
    journey: Journey
    served: Served
    twins: TwinPlanner
    drawn: DrawnTables

    # Before anything is charged

    def plan(self, request: MakeSynthetic) -> Planned:
        """What the table would be and cost; plans its statements on empty tables. Errors: Refused, Problem."""
        dataset, path = self.journey.admission.paying(_question(request))
        planned = plan(request, dataset, path)
        slot = slot_of(dataset.name, request.principal, request.name)
        if dataset.table(request.name) is not None or not self._is_free(slot):
            raise name_taken(request.name)
        self._work(planned)
        try:
            self.twins.plan(dataset, sample_statements(planned, self._dialect), owner=request.principal)
        except PlanFailed:
            raise Refused([NOT_PLANNED]) from None
        return planned

    def estimate(self, request: MakeSynthetic) -> dict[str, Json]:
        """What is known of the table before it is made. Reads no row and costs nothing. Errors: as `plan`."""
        return estimated(self.plan(request))

    def _is_free(self, slot: str) -> bool:
        """Whether no table has the name. One that failed, or whose process ended, gives it back."""
        row = self.registry.synthetic_in(slot)
        if row is None:
            return True
        record = self.resources.ledger.query(row.id)
        if ResourceState.of(None if record is None else record.state, closed=False) not in _FAILED:
            return False
        self.registry.free_synthetic(row.id)
        return True

    def _work(self, planned: Planned) -> Work:
        """What counting every marginal takes. Errors: Refused where one unit's rows would take too long."""
        count = len(planned.columns)
        listed = count + len(paired(planned.binned)) + 4 * count
        work = marginals_work(planned.table, planned.binned, listed=listed, costs=self._dialect.costs)
        if work.unit_nanoseconds > UNIT_NANOSECONDS_MAX:
            raise Refused([unit_too_long(work.unit_nanoseconds)])
        return work

    # The charge, and the rows

    def admit(self, request: MakeSynthetic) -> Settled | InFlight | ToDraw:
        """Charges a table and takes its name. Errors: Refused, Problem and the ledger's; nothing is charged then.

        ExecutionFailed for an earlier request under the same idempotency key that failed.
        """
        return self.resources.charge(ResourceKind.SYNTHETIC, request, lambda: self.plan(request), store=self._named)

    def _named(self, row: ResourceRow, planned: Planned) -> SyntheticRow:
        """Takes the name, before rows are read. Errors: Problem when another request was faster."""
        name = planned.request.name
        slot = slot_of(row.dataset, row.principal, name)
        made = row.of(SyntheticRow, name=name, slot=slot, data_version=planned.dataset.data_version)
        try:
            return self.registry.add_synthetic(made)
        except NameTaken:
            raise name_taken(name) from None

    def complete(self, table: ToDraw) -> bytes:
        """Reads, draws and stores: waits for a slot of the engine, and a visible moment. Errors: ExecutionFailed."""
        planned = table.planned
        try:
            content = self.resources.make(
                table,
                self._work(planned),
                lambda lease, visible: self._read(planned, lease, visible),
                lambda found: self._drawn(table.row, *found),
            )
        except ExecutionFailed:
            self._forget(table.row)
            raise
        self.drawn.forget()
        return content

    def cancel(self, row: SyntheticRow) -> QueryStatus | None:
        """Voids a table that did not begin to read rows. Returns its state afterwards."""
        state = self.resources.cancel(row.id)
        if state is QueryStatus.FAILED_VOID:
            self._forget(row)
        return state

    def _forget(self, row: SyntheticRow) -> None:
        """Gives the name of a table back that is not made; else the next request of that name does."""
        with suppress(*UNAVAILABLE):
            self.registry.free_synthetic(row.id)

    def _read(self, planned: Planned, lease: EngineLease, visible: VisibleRun) -> tuple[Sequence[Noisy], Planned]:
        """Columns, then pairs, then triples: each statement follows from what was released before it."""
        synthesis = planned.synthesis

        def counted(columns: Sequence[BinnedColumn], marginals: Sequence[Marginal]) -> Exact:
            statement = lower_marginals(
                planned.table, columns, marginals, rows_per_unit=synthesis.rows, dialect=self._dialect
            )
            seconds = visible.seconds_left(_TIMEOUT_SECONDS)
            snapshot = self.served.snapshot(planned.dataset)
            return self.resources.private.run(snapshot, statement, timeout_seconds=seconds, lease=lease)

        noisy, columns = measured(synthesis, planned.binned, counted, self.resources.bits)
        return noisy, replace(planned, binned=columns)

    def _drawn(self, row: SyntheticRow, noisy: Sequence[Noisy], planned: Planned) -> bytes:
        """The table, a function of released numbers, as it is kept; and what the ledger says of it."""
        bits = self.resources.bits
        model = Model.of(planned.binned, noisy)
        rows = rows_drawn(model.total, len(planned.columns))
        places = model.drawn(rows, bits)
        columns = [
            ShellColumn(column.name, column.type, values_of(column, binned, places[:, number], bits))
            for number, (column, binned) in enumerate(zip(planned.columns, planned.binned, strict=True))
        ]
        report = json.dumps(report_of(planned, noisy, model, rows))
        self.registry.fill_synthetic(row.id, report=report, content=packed(columns))
        return json.dumps({ResourceKind.SYNTHETIC.value: row.id}).encode()

    # What became of it

    def readable(self, row: SyntheticRow, dataset: Dataset, principal: str) -> bool:
        """Whether somebody who may ask the dataset may read a table that another one made."""
        return self.drawn.made(row) and self.drawn.readable(row, dataset, principal)

    def beside(self, dataset: Dataset, principal: str) -> Dataset:
        """The dataset with the synthetic tables that the principal may read."""
        return self.drawn.beside(dataset, principal)

    def close(self, row: SyntheticRow, *, actor: str) -> None:
        """Deletes the rows of a table and frees its name; what was charged stays charged."""
        self.registry.close_resource(SYNTHETICS, row.id, actor=actor, slot=None, content=None)
        self.drawn.forget()

    @property
    def _dialect(self) -> Dialect:
        return DIALECTS[self.resources.private.capabilities.dialect]


_FAILED = (ResourceState.FAILED_CHARGED, ResourceState.FAILED_VOID)


def _question(request: MakeSynthetic) -> Question:
    """The request as the journey reads who pays."""
    return plain_question(
        principal=request.principal,
        dataset=request.dataset,
        sql="",
        account=request.account,
        body_hash=request.body_hash,
    )
