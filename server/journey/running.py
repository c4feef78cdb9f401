"""Steps 6 to 8: rows to noisy tables, then the answer, stored and sent.

From the first statement on every failure is one opaque outcome, and the charge stays. Everything that anybody can watch
(the slot that others wait for, the shell's workers, the ledger's entries and their times, a poll, the log) comes after
the visible moment of the run.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial

from accountant.errors import BudgetExhausted, LedgerError
from accountant.ledger import Ledger
from accountant.request import CoreCharge, StoredRelease
from accountant.states import QueryStatus
from engines.protocol import EngineLease, StatementEngine
from engines.shell import ShellEngine
from mechanisms import release as releasing
from mechanisms.calibrate import Calibration
from mechanisms.randomness import BitSource
from mechanisms.released_table import ReleasedTable
from mechanisms.sharpening import mean_of
from privacy.norms import norms_name
from privacy.refusal import ExecutionFailed, Refused
from privacy.release import BoundsSource, NormSource
from privacy.statement import Released, StageValue, Statement
from privacy.statistic import CoreStatistics
from server import answer_rows
from server.errors import Problem, SumsRefused, problem_of_ledger, problem_of_refusal
from server.free_answers import Allowances
from server.journey.admission import Admission, Served
from server.journey.charges import repeat_key
from server.journey.held import is_joined, stored_table
from server.journey.holding import for_others
from server.journey.merging import MergedRows, merged_table
from server.journey.nobody import without_guesses
from server.journey.nonempty import without_empty
from server.journey.nonnegative import assembled
from server.journey.norms import choose_norms, require_reserved
from server.journey.pace import Pace, VisibleRun
from server.journey.query import ToRun
from server.journey.repeats import Repeats
from server.journey.stages import stage_values
from server.journey.two_charges import Learned, sums_refused
from server.journey.value_bounds import at_chosen_bounds
from server.journey.value_stage import Told, ValueStage
from server.journey.wire_answer import answer, parts_of
from server.log import logger
from server.public_tables import PublicTables
from sql_rewrite.dialects import DIALECTS
from sql_rewrite.lower import lower

__all__ = ["Running"]

SHELL_SECONDS = 5.0
"""Time of a shell over released numbers: they are small, and its workers are shared by all analysts."""


@dataclass(slots=True)
class _Made:
    """What a run has made so far, in the order of the cores.

    `fresh` are releases that were paid for; `kept` are those that a failure does not lose, once the visible moment has
    passed: all of them where what fails comes after the last statement, and is not secret, or where a statement reached
    the time limit, because which one did may show (moments.py). Nothing bounds what one unit does to other failures.
    """

    tables: list[ReleasedTable] = field(default_factory=list)
    fresh: list[StoredRelease] = field(default_factory=list)
    kept: list[StoredRelease] = field(default_factory=list)
    used: dict[str, StoredRelease] = field(default_factory=dict)
    """Fresh and stored ones without their bodies, by core key."""
    histograms: dict[str, tuple[ReleasedTable, NormSource]] = field(default_factory=dict)
    """Histograms of norms, fresh and stored ones, by core key."""
    values: dict[StageValue, Released] = field(default_factory=dict)
    """The numbers that later stages read, once they are released."""
    merged: MergedRows | None = None
    """Which of its groups the question's only table merged."""
    kept_of: str = ""
    """The histogram whose shared tables the engine keeps, until the next statement."""


class Running:
    """Runs admitted queries. Safe to use from many threads."""

    def __init__(
        self,
        *,
        ledger: Ledger,
        admission: Admission,
        private: StatementEngine,
        shell: ShellEngine,
        served: Served,
        bits: BitSource,
        pace: Pace,
        repeats: Repeats,
        free: Allowances,
        public: PublicTables,
    ) -> None:
        self._ledger = ledger
        self._admission = admission
        self._private = private
        self._shell = shell
        self._served = served
        self._bits = bits
        self._pace = pace
        self._repeats = repeats
        self._free = free
        self._public = public
        self._dialect = DIALECTS[private.capabilities.dialect]

    def complete(self, query: ToRun) -> bytes:
        """Steps 6 to 8. Returns the stored answer at its visible moment. Errors: ExecutionFailed, or SumsRefused."""
        if not self._admission.take(query.query_id):
            # Cancelled: what the ledger says is certain, and nothing else is.
            record = self._ledger.query(query.query_id)
            raise ExecutionFailed(started=record is None or record.state is not QueryStatus.FAILED_VOID)
        return self._in_slot(query)

    def _in_slot(self, query: ToRun, before: tuple[ToRun, _Made] | None = None) -> bytes:
        """Steps 6 to 8. `before` is the query of the first charge, where this is the second one, and what it made."""
        with ExitStack() as slot:
            lease: EngineLease | None = None
            refused = False
            if query.reads_rows:
                try:
                    lease = slot.enter_context(self._private.lease(owner=query.asked.question.principal))
                except ExecutionFailed:
                    refused = True
            if refused:
                # The engine closes, or cannot start a worker: no row was read, so no visible moment is needed.
                raise ExecutionFailed(started=not self._admission.void(query.query_id))
            return self._complete(query, lease, slot, before)

    def visible(self, query: ToRun) -> VisibleRun:
        """The visible moments of a query that begins now, with the draw of its run."""
        return self._pace.visible(query.work, query.started, self._bits)

    def _complete(
        self, query: ToRun, lease: EngineLease | None, slot: ExitStack, before: tuple[ToRun, _Made] | None
    ) -> bytes:
        """Steps 6 to 8 in a slot, which is given back at the visible moment, by `slot.close()`."""
        made = _Made()
        visible = self.visible(query)
        learned = None
        try:
            if query.asked.histograms_only:
                learned = self._learn(query, made, lease, visible)
            else:
                query = self._at_bounds(query, made, lease, visible)
                self._release(query, made, lease, visible)
            if made.fresh:
                visible.wait()
                slot.close()
                made.kept = made.fresh
            return self._post(query, made, before) if learned is None else self._go_on(query, made, learned)
        except SumsRefused as refused:
            # What is refused follows from what was released, and everything of that is visible already.
            slot.close()
            logger().info("sums_refused", query_id=query.query_id, code=refused.problem.code)
            self._fail(query.query_id, made.kept)
            raise
        except ExecutionFailed as failure:
            # No row was read: neither for a core nor for a histogram before the statement that failed. A first charge
            # for reading others' histograms has no fresh release either, and the second one's price shows what it read.
            unread = learned is None and not made.fresh and len(query.asked.prepared.cores) == 1
            untouched = unread and not failure.started
            if visible.outlasted():
                made.kept = made.fresh
            level, fields = logging.WARNING, {"code": "execution_failed"}
        except BaseException as error:  # noqa: BLE001 - whatever it is, nothing of it may travel further
            untouched = False
            level, fields = logging.ERROR, {"exception": type(error).__name__}
        # Before the ledger and the log have it, which others can read.
        visible.wait()
        slot.close()
        logger().log(level, "query_failed", query_id=query.query_id, **fields)
        if not query.paid.charged and not query.reads_rows:
            # Stored releases served all of it: nothing was charged, and what failed is a function of their numbers.
            untouched = True
        voided = untouched and self._admission.void(query.query_id)
        if not untouched:
            self._fail(query.query_id, made.kept)
        raise ExecutionFailed(started=not voided)

    def _learn(self, query: ToRun, made: _Made, lease: EngineLease | None, visible: VisibleRun) -> Learned:
        """The histograms of a first charge."""
        asked = query.asked
        stage, priced = asked.prepared.values, asked.priced
        assert priced is not None
        values: list[Told] = []
        if stage is not None:
            values = [
                self._values(query, stage.release_key(place, priced.family), stage, place, made, lease, visible)
                for place in range(len(stage.histograms))
            ]
            prepared, calibration = at_chosen_bounds(asked.prepared, priced.calibration, values, self._dialect)
            asked = replace(asked, prepared=prepared, priced=replace(priced, calibration=calibration))
            query = replace(query, asked=asked)
        norms = {
            core.described.name: self._histogram(query, histogram.release_key(priced.family), made, lease, visible)
            for core, histogram in zip(asked.prepared.cores, asked.prepared.histograms, strict=True)
            if histogram is not None
        }
        return Learned(tuple(values), norms)

    def _go_on(self, query: ToRun, made: _Made, learned: Learned) -> bytes:
        """The second charge of a query whose histograms are released, and its answer. Errors: SumsRefused besides."""
        try:
            second = self._admission.second(query, learned)
        except Refused as refused:
            raise SumsRefused(sums_refused(problem_of_refusal(refused))) from None
        except Problem as problem:
            raise SumsRefused(sums_refused(problem)) from None
        except BudgetExhausted as exhausted:
            own = self._ledger.standing(exhausted.account).principal == query.asked.question.principal
            raise SumsRefused(sums_refused(problem_of_ledger(exhausted, spending=True, own_account=own))) from None
        return self._in_slot(second, (query, made))

    def _fail(self, query_id: str, kept: Sequence[StoredRelease]) -> None:
        """Keeps the charge, and what it bought."""
        try:
            self._ledger.fail(query_id, kept)
        except LedgerError as error:
            # The reservation counts as spent until a restart ends it.
            logger().error("query_unsettled", query_id=query_id, exception=type(error).__name__)

    def _at_bounds(self, query: ToRun, made: _Made, lease: EngineLease | None, visible: VisibleRun) -> ToRun:
        """The query with the value bounds that histograms choose, which are released here unless stored ones serve.

        Stored ones have chosen bounds before the price; where norms are known by now that were not, they choose again.
        The query as it is where it chooses none, or where stored releases serve every core that would need some.
        """
        asked = query.asked
        prepared, priced = asked.prepared, asked.priced
        stage, told = prepared.told or (prepared.values, None)
        if stage is None or priced is None:
            return query
        charges = zip(prepared.described, asked.charges, strict=False)
        if all(charge.core_key in query.paid.reused for core, charge in charges if core.name in stage.places):
            return query
        norms = self._norms_first(query, stage, made, lease, visible)
        if told is None:
            told = tuple(
                self._values(query, stage.release_key(place, priced.family), stage, place, made, lease, visible)
                for place in range(len(stage.histograms))
            )
        elif not norms:
            return query
        prepared, calibration = at_chosen_bounds(
            replace(prepared, values=stage), priced.calibration, told, self._dialect, norms=norms
        )
        try:
            for core, charge in zip(prepared.described, asked.charges, strict=False):
                require_reserved(charge.events, calibration.events_of(core.name))
        except ExecutionFailed:
            if asked.prepared.told is None:
                raise
            # At other bounds a quantile may be measured in another way, which is not what was priced: those stay.
            return query
        return replace(query, asked=replace(asked, prepared=prepared, priced=replace(priced, calibration=calibration)))

    def _norms_first(
        self, query: ToRun, stage: ValueStage, made: _Made, lease: EngineLease | None, visible: VisibleRun
    ) -> dict[str, ReleasedTable]:
        """The histograms of norms, by core, that do not follow from value bounds: they say how much noise there is.

        Not those of later stages, which come when the numbers that they read are released: bounds are chosen before.
        """
        asked = query.asked
        priced = asked.priced
        assert priced is not None
        needed, later = {charge.core_key for charge in asked.charges}, {name for name, _ in asked.prepared.plan.stages}
        found = {}
        for core, histogram in zip(asked.prepared.cores, asked.prepared.histograms, strict=True):
            name = core.described.name
            if histogram is None or name not in stage.norms_first or name in later:
                continue
            key = histogram.release_key(priced.family)
            if key in needed:
                found[name] = self._histogram(query, key, made, lease, visible)[0]
        return found

    def _values(
        self,
        query: ToRun,
        key: str,
        stage: ValueStage,
        place: int,
        made: _Made,
        lease: EngineLease | None,
        visible: VisibleRun,
    ) -> Told:
        """A histogram of values: the stored one that serves, or a fresh one."""
        asked = query.asked
        assert asked.priced is not None
        described, stored = stage.histograms[place].bounded.described, query.paid.reused.get(key)
        if stored is not None:
            told = Told(
                answer_rows.from_stored(stored.body, described.name, asked.question.confidence), BoundsSource.STORED
            )
        else:
            charge = next((charge for charge in asked.charges if charge.core_key == key), None)
            if charge is None:
                raise ExecutionFailed  # what was not charged is not released
            table = self._measured(
                query, described, stage.statements[place], asked.priced.calibration, made, lease, visible
            )
            told = Told(table, BoundsSource.CHOSEN)
            stored = self._stored(query, charge, table)
            made.fresh.append(stored)
        made.used[key] = replace(stored, body=b"")
        return told

    def _release(self, query: ToRun, made: _Made, lease: EngineLease | None, visible: VisibleRun) -> None:
        """Steps 6 and 7: a noisy table for each core, from rows or from a stored release."""
        asked = query.asked
        prepared = asked.prepared
        nonempty = dict(prepared.plan.nonempty)
        charges = asked.charges[: len(prepared.cores)]
        for place, (core, charge) in enumerate(zip(prepared.cores, charges, strict=True)):
            stored = query.paid.reused.get(charge.core_key)
            if stored is not None:
                reused = query.paid.reused
                table = stored_table(
                    stored, charge, core, question=asked.question, prepared=prepared, priced=asked.priced, beside=reused
                )
                if is_joined(charge, stored):
                    together = [key for key, _ in charge.joined[1:]]
                    made.used.update({key: replace(reused[key], body=b"", held=None) for key in together})
            else:
                table, raised = self._fresh(query, place, made, lease, visible), asked.raised.get(charge.core_key)
                stored = self._stored(query, charge, table)
                base = None if raised is None else raised.base
                stored = for_others(stored, core, prepared, charge, table, base)
                made.fresh.append(stored)
            made.used[charge.core_key] = replace(stored, body=b"", held=None)
            count = nonempty.get(core.core.name)
            if count is not None and core.core.keys and core.described.keys.domain is not None:
                table = without_empty(table, count)
            table = without_guesses(core, table)
            if (relative := asked.question.merge) is not None:
                table, made.merged = merged_table(table, core.described, relative, asked.question.confidence)
            if prepared.plan.stages:
                try:
                    made.values.update(stage_values(core, table, prepared.plan.lists))
                except Refused as refused:
                    # It follows from released numbers, and what was released is kept, as after a whole answer.
                    visible.wait()
                    made.kept, problem = made.fresh, problem_of_refusal(refused)
                    problem.charged = True
                    raise SumsRefused(problem) from None
            made.tables.append(table)

    def _stored(self, query: ToRun, charge: CoreCharge, table: ReleasedTable) -> StoredRelease:
        """A fresh release as the ledger keeps it."""
        return StoredRelease(
            id=f"r_{secrets.token_hex(12)}",
            core_key=charge.core_key,
            quality=charge.quality,
            principal=query.asked.question.principal,
            dataset=query.asked.prepared.plan.dataset.name,
            query_id=query.query_id,
            events=charge.released,
            body=answer_rows.to_stored(table),
        )

    def _fresh(
        self, query: ToRun, place: int, made: _Made, lease: EngineLease | None, visible: VisibleRun
    ) -> ReleasedTable:
        """One core's noisy table, from rows; at the norms that its histogram chooses, where it has one."""
        prepared, priced = query.asked.prepared, query.asked.priced
        assert priced is not None
        core, histogram = prepared.cores[place], prepared.histograms[place]
        raised = query.asked.raised.get(query.asked.charges[place].core_key)
        name = core.described.name
        bounds, ends = prepared.bounds.get(name, ()), prepared.ends.get(name, ())
        if raised is not None:
            drawn = raised.difference.drawn
            table = self._measured(query, core.described, prepared.statements[place], drawn, made, lease, visible)
            return mean_of(core.described, raised.table, table, query.asked.question.confidence)
        if histogram is None:
            table = self._measured(
                query, core.described, prepared.statements[place], priced.calibration, made, lease, visible
            )
            return replace(table, norms=prepared.notes.get(name, ()), bounds=bounds, clipped_to=ends)
        told, source = self._histogram(query, histogram.release_key(priced.family), made, lease, visible)
        chosen = choose_norms(core, priced.calibration, told, source=source)
        require_reserved(query.asked.charges[place].events, chosen.calibration.events_of(core.described.name))
        shared = histogram.shared and made.kept_of == histogram.described.name
        made.kept_of = ""
        statement = lower(chosen.core, self._dialect, shared=shared)
        table = self._measured(query, chosen.core.described, statement, chosen.calibration, made, lease, visible)
        scaled = tuple(chosen.norms.items())
        return replace(table, norms=chosen.notes, bounds=bounds, scaled_to=scaled, clipped_to=ends)

    def _histogram(
        self, query: ToRun, key: str, made: _Made, lease: EngineLease | None, visible: VisibleRun
    ) -> tuple[ReleasedTable, NormSource]:
        """The histogram of norms of that key: the stored one that serves, or a fresh one, made once for all cores."""
        known = made.histograms.get(key)
        if known is not None:
            return known
        asked = query.asked
        assert asked.priced is not None
        histogram = asked.prepared.histograms_by_key(asked.priced.family)[key]
        name, stored = histogram.described.name, query.paid.reused.get(key)
        if stored is not None:
            table, source = answer_rows.from_stored(stored.body, name, asked.question.confidence), NormSource.STORED
        else:
            charge = next((charge for charge in asked.charges if charge.core_key == key), None)
            if charge is None:
                raise ExecutionFailed  # what was not charged is not released
            # The sums of a first charge are read in another lease, and a lease that ends with tables ends its worker.
            statement, kept = histogram.statement, histogram.shared and not asked.histograms_only
            if statement.shared is not None:
                statement = replace(statement, shared=replace(statement.shared, kept=kept))
            table = self._measured(
                query, histogram.described, statement, asked.priced.calibration, made, lease, visible
            )
            made.kept_of = name if kept else ""
            steps = [
                (norm.name, norm.step)
                for core in asked.prepared.described
                if norms_name(core.name) == name
                for norm in core.norms
            ]
            table, source = replace(table, steps=tuple(steps)), NormSource.CHOSEN
            stored = self._stored(query, charge, table)
            made.fresh.append(stored)
        made.used[key] = replace(stored, body=b"")
        made.histograms[key] = table, source
        return table, source

    def _measured(
        self,
        query: ToRun,
        described: CoreStatistics,
        statement: Statement,
        calibration: Calibration,
        made: _Made,
        lease: EngineLease | None,
        visible: VisibleRun,
    ) -> ReleasedTable:
        """What a statement counts, with its noise. The numbers of earlier stages are bound here, and nowhere else."""
        dataset = query.asked.prepared.plan.dataset
        if query.asked.prepared.plan.stages:
            statement = statement.filled(made.values)
        exact = self._private.run(
            self._served.snapshot(dataset),
            statement,
            timeout_seconds=visible.seconds_left(dataset.limits.timeout_seconds),
            lease=lease,
        )
        return releasing.release(
            described, calibration, exact, bits=self._bits, confidence=query.asked.question.confidence
        )

    def _post(self, query: ToRun, made: _Made, before: tuple[ToRun, _Made] | None) -> bytes:
        """Step 8: a function of released numbers alone. The shell over them, then the answer, stored and kept.

        Where there was a charge `before`, its query has the same answer, with both charges.
        """
        asked = query.asked
        question, prepared = asked.question, asked.prepared
        try:
            assemble = partial(
                answer_rows.assemble,
                prepared.plan.shell,
                prepared.types,
                shell=self._shell,
                confidence=question.confidence,
                timeout_seconds=SHELL_SECONDS,
                owner=question.principal,
                public=self._public.of(prepared.plan),
            )
            rows = assembled(made.tables, prepared, assemble) if question.nonnegative else assemble(made.tables)
        except ExecutionFailed as failure:
            # A shell that never started does not undo that rows were read: a refund would be a free answer.
            raise ExecutionFailed(started=failure.started or bool(made.fresh)) from None
        parts = parts_of(asked, rows, made.tables, made.used, made.merged)
        content = answer(asked, query.paid, parts, self._ledger.standing(asked.path[0].id))
        self._ledger.post(query.query_id, made.fresh, content)
        if not query.paid.charged:
            self._free.take(question.principal, len(content))
        if made.used:
            kept = replace(parts, told_by=query.query_id)
            self._repeats.keep(repeat_key(question, prepared, asked.path[0]), kept)
        if before is None:
            return content
        first, learned = before
        both = parts_of(asked, rows, made.tables, {**learned.used, **made.used}, made.merged)
        content = answer(asked, query.paid, both, self._ledger.standing(asked.path[0].id), first=first)
        self._ledger.post(first.query_id, learned.fresh, content)
        return content
