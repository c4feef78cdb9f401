"""The journey of a query: eight steps, each a call downward, in this order and nowhere else.

    1 ask        HTTP makes a Question (routes/)
    2 lift       text to plan                     nothing spent when it refuses
    3 bound      plan to statistics               nothing spent when it refuses
    4 calibrate  statistics to noise and price    nothing spent when it refuses
    5 reserve    price to a reservation           nothing spent when the budget refuses
    6 run        statement to exact sums          from here on the charge stays
    7 release    exact sums to noisy rows, and the shell over them
    8 post       releases and answer stored with the entry, in one transaction; then the reply

Steps 2 to 4 read the text, public metadata and balances; they also make the estimate.
"""

from __future__ import annotations

import datetime
import logging
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any, Protocol

from accountant.account import Account
from accountant.errors import BudgetExhausted, LedgerError, Nominal
from accountant.ledger import Ledger
from accountant.request import CoreCharge, Reserved, Reuse, StoredRelease
from engines.private import PrivateEngine, PrivateLease
from engines.shell import PlanFailed, ShellEngine, ShellInvalid
from mechanisms import release as releasing
from mechanisms.calibrate import GaussianPrice, LaplacePrice
from mechanisms.randomness import BitSource
from privacy.policy import Dataset
from privacy.refusal import ExecutionFailed, Finding, Refused
from privacy.release import ReleasedTable
from privacy.statement import Statement
from server import answer_rows, pricing, wire_answer
from server.admitted import (
    Admitted,
    Prepared,
    charges_of,
    fresh_work,
    reads_rows,
    repeat_key,
    request_of,
    reuse_of,
    text_key,
    wish_of,
)
from server.answer_block import block_of
from server.errors import Problem
from server.free_answers import FreeAnswers
from server.log import logger
from server.moments import Moments, moments_of
from server.nonempty import without_empty
from server.pure_noise import refuse_pure_noise
from server.question import Question
from server.release_key import release_key
from server.repeats import Repeats, Told
from server.visible import VisibleRun
from sql_rewrite.bound import BoundedCore, bound
from sql_rewrite.cost import Work, check_work
from sql_rewrite.lift import lift
from sql_rewrite.lower import lower
from sql_rewrite.memory import check_memory
from sql_rewrite.plan_key import core_key
from sql_rewrite.plan_warnings import plan_warnings

__all__ = ["Journey", "Served"]

PLANS_KEPT = 512
SHELL_SECONDS = 5.0
"""Time of a shell over released numbers: they are small, and its workers are shared by all analysts."""


class Served(Protocol):
    """Where the journey finds datasets and their snapshots."""

    def get(self, name: str) -> Dataset | None: ...

    def snapshot(self, dataset: Dataset) -> Path: ...


class Journey:
    """Answers questions. One per server process; safe to use from many threads."""

    def __init__(
        self,
        *,
        ledger: Ledger,
        private: PrivateEngine,
        shell: ShellEngine,
        served: Served,
        bits: BitSource,
        tick_seconds: float = 0.01,
        engine_threads: int = 1,
        slowness: Callable[[], float] = lambda: 1.0,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime.datetime] = lambda: datetime.datetime.now(datetime.UTC),
        sleep: Callable[[float], None] = time.sleep,
        free_answers: FreeAnswers | None = None,
    ) -> None:
        self._ledger = ledger
        self._private = private
        self._shell = shell
        self._served = served
        self._bits = bits
        self._tick = tick_seconds
        self._engine_threads = engine_threads
        self._slowness = slowness
        self._clock = clock
        self._now = now
        self._sleep = sleep
        self._plans: OrderedDict[Any, Prepared] = OrderedDict()
        self._repeats = Repeats()
        self._free = free_answers if free_answers is not None else FreeAnswers()
        self._lock = threading.Lock()
        self._waiting: dict[str, str] = {}

    # Steps 2 to 4: free, and the same for estimates

    def prepare(self, question: Question, dataset: Dataset) -> Prepared:
        """Steps 2 and 3. Errors: Refused. A pure function of the text and public metadata, so it is cached."""
        key = text_key(question, dataset)
        with self._lock:
            known = self._plans.get(key)
            if known is not None:
                self._plans.move_to_end(key)
                return known
        dataset = dataset.bounded_by(question.contribution)
        plan = lift(question.sql, dataset, question.parameters, nonempty=question.nonempty)
        cores = bound(plan)
        # Before anything is written out, which may be long.
        work = check_work(cores)
        check_memory(cores)
        types = None
        if not plan.shell.trivial:
            try:
                types = self._shell.check(answer_rows.shapes(cores), plan.shell.sql, owner=question.principal)
            except ShellInvalid:
                raise Refused([_shell_refusal()]) from None
            answer_rows.check_types(types, plan.shell)
        statements = tuple(lower(core) for core in cores)
        self._plannable(statements, dataset, owner=question.principal)
        prepared = Prepared(
            plan=plan,
            cores=cores,
            statements=statements,
            keys=tuple(core_key(core, dataset) for core in cores),
            types=types,
            work=work,
            warnings=plan_warnings(plan, cores),
        )
        with self._lock:
            self._plans[key] = prepared
            while len(self._plans) > PLANS_KEPT:
                self._plans.popitem(last=False)
        return prepared

    def _plannable(self, statements: Sequence[Statement], dataset: Dataset, *, owner: str) -> None:
        """Refuses what the engine cannot plan: on true data its error would be an outcome, and charged."""
        if not statements:
            return
        try:
            self._shell.plan(dataset, statements, owner=owner)
        except PlanFailed:
            raise Refused(
                [
                    Finding(
                        code="cannot_be_planned",
                        what="the query is refused",
                        why="The engine cannot plan it on an empty copy of the tables. That is a fault of this server.",
                        instead=("write the expression in another way, or ask for its parts", "tell the operator"),
                    )
                ]
            ) from None

    def price(self, question: Question, prepared: Prepared, path: Sequence[Account]) -> pricing.Priced | None:
        """Step 4. None for a query that reads no rows. Errors: Refused."""
        if not prepared.cores:
            return None
        return self._price(wish_of(question), prepared, path)

    def _price(self, wish: pricing.Wish, prepared: Prepared, path: Sequence[Account]) -> pricing.Priced:
        return pricing.price(
            prepared.described, wish, path=path, dataset=prepared.plan.dataset, known=prepared.calibrations
        )

    def estimate(self, question: Question) -> dict[str, Any]:
        """What a question would cost and how exact its answer would be. Touches no private row, spends nothing."""
        dataset, path = self._admission(question)
        prepared = self.prepare(question, dataset)
        priced = self.price(question, prepared, path)
        charges = charges_of(prepared, priced)
        reusable: dict[str, StoredRelease] = {}
        curve: list[pricing.Priced] = []
        families: tuple[pricing.Priced, ...] = ()
        least: Fraction | None = None
        if priced is not None:
            reusable = self._reusable(question, dataset, charges, path[0])
            self._refuse_below_floor(question, prepared, priced, path, reusable)
            self._refuse_pure_noise(question, prepared, priced, lambda: [c.core_key in reusable for c in charges])
            families = self._families(question, priced, prepared, path)
            curve = self._curve(priced, question, prepared, path)
            least = self._least(priced, prepared, path)
        keys = [charge.core_key for charge in charges]
        quote = wire_answer.Quote(priced, path, reusable, curve, families, least, keys)
        return wire_answer.estimate(question, prepared, quote)

    def _least(self, priced: pricing.Priced, prepared: Prepared, path: Sequence[Account]) -> Fraction | None:
        """The least spend of a fresh run with this noise, None where no price would do."""
        try:
            return pricing.least_spend(
                prepared.described,
                priced.family,
                priced.price.delta,
                path=path,
                dataset=prepared.plan.dataset,
                known=prepared.calibrations,
            )[0]
        except ValueError:
            return None

    def _families(
        self, question: Question, priced: pricing.Priced, prepared: Prepared, path: Sequence[Account]
    ) -> tuple[pricing.Priced, ...]:
        """The query with each family of noise that could answer the wish, the chosen one first."""
        try:
            both = pricing.candidates(
                prepared.described,
                replace(wish_of(question), noise=None),
                path=path,
                dataset=prepared.plan.dataset,
                known=prepared.calibrations,
            )
        except Refused:
            return (priced,)
        return (priced, *(other for other in both if other.family != priced.family))

    def _curve(
        self, priced: pricing.Priced, question: Question, prepared: Prepared, path: Sequence[Account]
    ) -> list[pricing.Priced]:
        dataset = prepared.plan.dataset
        points = []
        for factor in (Fraction(1, 4), Fraction(1, 2), Fraction(1), Fraction(2), Fraction(4)):
            epsilon = priced.epsilon * factor
            if epsilon <= dataset.limits.epsilon_max and (epsilon * 10**12).denominator == 1:
                wish = pricing.Wish(epsilon=epsilon, noise=question.noise, delta=question.delta)
                try:
                    point = self._price(wish, prepared, path)
                except Refused:
                    continue
                if not point.below_floor:
                    points.append(point)
        return points

    def _refuse_below_floor(
        self,
        question: Question,
        prepared: Prepared,
        priced: pricing.Priced,
        path: Sequence[Account],
        reusable: Mapping[str, StoredRelease],
    ) -> None:
        """Errors: Refused for a spend below the dataset's floor, unless stored releases answer for nothing."""
        if priced.below_floor and len(reusable) < len(prepared.cores):
            raise pricing.below_floor(
                priced,
                prepared.described,
                wish_of(question),
                path=path,
                dataset=prepared.plan.dataset,
                known=prepared.calibrations,
            )

    def _refuse_pure_noise(
        self, question: Question, prepared: Prepared, priced: pricing.Priced, served: Callable[[], Sequence[bool]]
    ) -> None:
        """Errors: Refused for columns that would surely be noise alone, unless they are asked for or cost nothing."""
        if question.accept_noise:
            return

        def stored_rows(core: BoundedCore) -> float | None:
            if core.described.keys.domain is None:
                return None
            key = prepared.counting_key(core)
            for price in (LaplacePrice(Fraction(1), Fraction(0)), GaussianPrice(Fraction(1), Fraction(0))):
                found = self._ledger.find_release(
                    release_key(key, price, delta=Fraction(0)), principal=question.principal
                )
                if found is not None:
                    (counted,) = (
                        column
                        for column in answer_rows.from_stored(found.body, "c0", question.confidence).columns
                        if column.role != "key"
                    )
                    return max((float(high) for high in counted.highs or () if high is not None), default=None)
            return None

        dataset = prepared.plan.dataset
        refuse_pure_noise(prepared.cores, priced, question.confidence, dataset, stored_rows=stored_rows, served=served)

    # Step 5

    def admit(self, question: Question) -> Admitted:
        """Steps 2 to 5. Errors: Refused, and the ledger's (BudgetExhausted, IdempotencyConflict, ...).

        A retry is looked up before anything else: its answer was paid for, whatever became of the dataset, the policy
        or the limits since.
        """
        started = self._clock()
        if question.idempotency_key is not None:
            earlier = self._ledger.earlier(question.principal, question.idempotency_key, question.body_hash)
            if earlier is not None:
                return _retried(earlier)
        dataset, path = self._admission(question)
        prepared = self.prepare(question, dataset)
        query_id = f"q_{secrets.token_hex(12)}"
        reserved = self._repeat(question, prepared, path, query_id)
        priced = None
        charges: tuple[CoreCharge, ...] = ()
        if reserved is None:
            priced = self.price(question, prepared, path)
            charges = charges_of(prepared, priced)
            # Looked up when one of the checks needs it, which is seldom, and once.
            stored = cache(lambda: self._reusable(question, dataset, charges, path[0]))
            reuse = self._reuse(question, dataset, stored)
            if self._free.wait_seconds(question.principal) and len(stored()) == len(prepared.cores):
                self._refuse_free_answer(question)
            if priced is not None:
                reused = stored if reuse != "none" else dict[str, StoredRelease]
                if priced.below_floor:
                    self._refuse_below_floor(question, prepared, priced, path, reused())
                self._refuse_pure_noise(question, prepared, priced, lambda: [c.core_key in reused() for c in charges])
            try:
                reserved = self._ledger.reserve(request_of(question, prepared, priced, charges, path, query_id, reuse))
            except BudgetExhausted as error:
                if priced is not None:
                    error.delta_fits = pricing.delta_that_fits(path, priced.loss)
                    if error.account == path[0].id:
                        error.nominal = Nominal(
                            priced.epsilon, priced.delta, path[0].remaining_epsilon(), path[0].remaining_delta()
                        )
                raise
        if reserved.answer is not None or not reserved.fresh:
            return _retried(reserved)
        with self._lock:
            self._waiting[query_id] = question.principal
        return Admitted(
            query_id=query_id,
            question=question,
            prepared=prepared,
            priced=priced,
            charges=charges,
            reserved=reserved,
            path=tuple(path),
            started=started,
        )

    def _repeat(
        self, question: Question, prepared: Prepared, path: Sequence[Account], query_id: str
    ) -> Reserved | None:
        """Steps 4 to 8 in one transaction, for an answer that was told before and whose releases still serve.

        No row is read and no shell runs: the answer is that of before under a new identifier. None when this process
        has not told it, or when the ledger would take other releases or charge.
        """
        told = None if question.reuse == "none" else self._repeats.get(repeat_key(question, prepared, path[0]))
        if told is None:
            return None
        dataset = prepared.plan.dataset
        stored = cache(lambda: self._reusable(question, dataset, told.charges, path[0]))
        reuse = self._reuse(question, dataset, stored)
        if reuse == "none":
            return None
        served = Admitted(
            query_id=query_id,
            question=question,
            prepared=prepared,
            priced=told.priced,
            charges=told.charges,
            reserved=Reserved(
                query_id=query_id, state="settled", fresh=True, answer=None, reused=told.releases, charged=()
            ),
            path=tuple(path),
        )
        key = repeat_key(question, prepared, path[0])
        # What the answer says beside the numbers that are kept: without a change of it, it is the same to the letter.
        state = (path[0].id, path[0].limit, path[0].spent)
        again = self._repeats.again(key, state) if question.idempotency_key is None else None
        if again is None:
            self._refuse_free_answer(question)
        answer = wire_answer.answer(served, told, path[0])
        block = block_of(query_id, answer)
        shared = told.block.shared_with(block) if told.block is not None and block is not None else None
        reserved = self._ledger.repeat(
            request_of(question, prepared, told.priced, told.charges, path, query_id, reuse),
            {key: release.id for key, release in told.releases.items()},
            answer,
            shared=shared,
            again=again,
        )
        if reserved is not None and reserved.fresh:
            self._free.take(question.principal, len(answer) if shared is None else len(shared.own_part(answer)))
            if question.idempotency_key is None:
                self._repeats.keep_again(key, state, query_id)
        return reserved

    def _refuse_free_answer(self, question: Question) -> None:
        """Errors: Problem rate_limited when the principal has had too much stored for nothing lately."""
        seconds = self._free.wait_seconds(question.principal)
        if seconds:
            raise Problem(
                "rate_limited",
                what="too many answers were stored for nothing",
                why="Answers are kept forever, also those that cost nothing, so their size is limited by the hour.",
                instead=("Send the question again later.", "Read stored answers with GET /v1/queries/{query_id}."),
                headers={"Retry-After": str(seconds)},
            )

    def _admission(self, question: Question) -> tuple[Dataset, tuple[Account, ...]]:
        """The dataset and the path of accounts that pays; a stranger learns nothing, not even that it exists."""
        dataset = self._served.get(question.dataset)
        # Read in either case: the time of the refusal must not tell whether the dataset exists.
        paths = self._ledger.spendable(question.dataset, question.principal)
        if dataset is None or not paths:
            raise Refused(
                [
                    Finding(
                        code="unknown_dataset",
                        what=f'dataset "{question.dataset[:63]}" is refused',
                        why="It does not exist, or you have no account for it.",
                        instead=(
                            "GET /v1/datasets lists those you may ask",
                            "ask an administrator for a budget: "
                            "noisegate budget set --dataset NAME --principal YOU --epsilon 5 --delta 0.000001",
                        ),
                    )
                ]
            )
        if question.account is None:
            return dataset, paths[0]
        own = next((path for path in paths if path[0].id == question.account), None)
        if own is None:
            raise Refused(
                [
                    Finding(
                        code="no_budget",
                        what="the asked account is refused",
                        why="It is not an account of yours for this dataset, or it is frozen.",
                        instead=("see GET /v1/budgets",),
                    )
                ]
            )
        return dataset, own

    def _reuse(self, question: Question, dataset: Dataset, stored: Callable[[], Mapping[str, StoredRelease]]) -> Reuse:
        """How far stored releases may serve: others' only when the policy shares them, old ones only when allowed."""
        if question.max_staleness_s is not None:
            oldest = self._now() - datetime.timedelta(seconds=question.max_staleness_s)
            if any(release.created is not None and release.created < oldest for release in stored().values()):
                return "none"
        return reuse_of(question, dataset)

    def _reusable(
        self, question: Question, dataset: Dataset, charges: Sequence[CoreCharge], account: Account
    ) -> dict[str, StoredRelease]:
        """The stored releases that would serve for nothing, by core key: also those that the account paid to read."""
        reuse = reuse_of(question, dataset)
        if reuse == "none":
            return {}
        principal = None if reuse == "any" else question.principal
        result: dict[str, StoredRelease] = {}
        for charge in charges:
            for key, least in charge.served_by:
                release = self._ledger.find_release(key, quality=least, principal=principal)
                if release is None and reuse == "charged":
                    release = self._ledger.find_read(account.id, key, quality=least)
                if release is not None:
                    result[charge.core_key] = release
                    break
        return result

    def cancel(self, query_id: str, principal: str) -> str:
        """Voids a query of this process that did not reach the engine; returns its state afterwards.

        "failed_void" is said only when the ledger has it: until then nobody knows that the charge is given back.
        """
        if self._take(query_id, principal):
            return "failed_void" if self._void(query_id) else "reserved"
        record = self._ledger.query(query_id)
        return "unknown" if record is None or record.principal != principal else record.state

    def abandon(self, admitted: Admitted) -> None:
        """Voids an admitted query whose turn never came (shutdown), cancelled or not."""
        if self._take(admitted.query_id):
            self._void(admitted.query_id)

    def _take(self, query_id: str, principal: str | None = None) -> bool:
        """Ends a query's waiting, for one caller only: it runs, or it is voided. False for all who come later."""
        with self._lock:
            if principal is not None and self._waiting.get(query_id) != principal:
                return False
            return self._waiting.pop(query_id, None) is not None

    def _void(self, query_id: str) -> bool:
        """Gives the charge of a query back that no engine saw; whether the ledger has it."""
        try:
            self._ledger.void(query_id)
        except LedgerError as error:
            # The reservation counts as spent until a restart ends it.
            logger().error("query_unsettled", query_id=query_id, exception=type(error).__name__)
            return False
        return True

    # Steps 6 to 8: from here on every failure is one opaque outcome, and the charge stays

    def complete(self, admitted: Admitted) -> bytes:
        """Steps 6 to 8. Returns the stored answer at its visible moment. Errors: ExecutionFailed, nothing else."""
        if not self._take(admitted.query_id):
            # Cancelled: what the ledger says is certain, and nothing else is.
            record = self._ledger.query(admitted.query_id)
            raise ExecutionFailed(started=record is None or record.state != "failed_void")
        with ExitStack() as slot:
            lease: PrivateLease | None = None
            refused = False
            if reads_rows(admitted):
                assert admitted.question is not None
                try:
                    lease = slot.enter_context(self._private.lease(owner=admitted.question.principal))
                except ExecutionFailed:
                    refused = True
            if refused:
                # The engine closes, or cannot start a worker: no row was read, so no visible moment is needed.
                raise ExecutionFailed(started=not self._void(admitted.query_id))
            return self._complete(replace(admitted, started=self._begun(admitted.started)), lease, slot)

    def _complete(self, admitted: Admitted, lease: PrivateLease | None, slot: ExitStack) -> bytes:
        """Steps 6 to 8 in a slot, which is given back at the visible moment, by `slot.close()`."""
        assert admitted.prepared is not None
        answer: bytes | None = None
        untouched = False
        kept: list[StoredRelease] = []
        visible = self._visible(admitted)
        try:
            answer = self._answer(admitted, kept, lease, slot, visible)
        except ExecutionFailed as failure:
            untouched = not failure.started and len(admitted.prepared.cores) == 1
            failed = (logging.WARNING, {"code": "execution_failed"})
        except BaseException as error:  # noqa: BLE001 - whatever it is, nothing of it may travel further
            failed = (logging.ERROR, {"exception": type(error).__name__})
        if answer is None:
            # Before the ledger and the log are told, which others can read. A success waited in `_answer`.
            self._until_visible(visible)
            slot.close()
            level, fields = failed
            logger().log(level, "query_failed", query_id=admitted.query_id, **fields)
            voided = untouched and self._void(admitted.query_id)
            if not untouched:
                self._fail(admitted.query_id, kept)
            raise ExecutionFailed(started=not voided)
        return answer

    def _fail(self, query_id: str, kept: Sequence[StoredRelease]) -> None:
        """Keeps the charge, and what it bought."""
        try:
            self._ledger.fail(query_id, kept)
        except LedgerError as error:
            # The reservation counts as spent until a restart ends it.
            logger().error("query_unsettled", query_id=query_id, exception=type(error).__name__)

    def _answer(
        self,
        admitted: Admitted,
        kept: list[StoredRelease],
        lease: PrivateLease | None,
        slot: ExitStack,
        visible: VisibleRun,
    ) -> bytes:
        """Steps 6 to 8. `kept` gets the fresh releases once all are made: what fails afterwards is no secret."""
        question, prepared, reserved = admitted.question, admitted.prepared, admitted.reserved
        assert question is not None
        assert prepared is not None
        assert reserved is not None
        dataset = prepared.plan.dataset
        released: list[ReleasedTable] = []
        fresh: list[StoredRelease] = []
        releases: dict[str, StoredRelease] = {}
        for core, statement, charge in zip(prepared.cores, prepared.statements, admitted.charges, strict=True):
            key = charge.core_key
            stored = reserved.reused.get(key)
            if stored is not None:
                table = answer_rows.from_stored(stored.body, core.described.name, question.confidence)
                releases[key] = replace(stored, body=b"")
            else:
                assert admitted.priced is not None
                exact = self._private.run(
                    self._served.snapshot(dataset),
                    statement,
                    timeout_seconds=visible.seconds_left(dataset.limits.timeout_seconds),
                    lease=lease,
                )
                table = releasing.release(
                    core.described,
                    admitted.priced.calibration,
                    exact,
                    bits=self._bits,
                    confidence=question.confidence,
                )
                fresh.append(
                    StoredRelease(
                        id=f"r_{secrets.token_hex(12)}",
                        core_key=key,
                        quality=charge.quality,
                        principal=question.principal,
                        dataset=dataset.name,
                        query_id=admitted.query_id,
                        events=charge.events,
                        body=answer_rows.to_stored(table),
                    )
                )
                releases[key] = replace(fresh[-1], body=b"")
            count = dict(prepared.plan.nonempty).get(core.core.name)
            if count is not None and core.core.keys and core.described.keys.domain is not None:
                table = without_empty(table, count)
            released.append(table)
        if fresh:
            # Everything that anybody can watch (the slot that others wait for, the shell's workers, the ledger's
            # entries and their times, a poll) comes after the visible moment: what follows is a function of released
            # numbers alone.
            self._until_visible(visible)
            slot.close()
            # A shell that fails does not lose what was paid for: the next question is served by these releases.
            kept.extend(fresh)
        try:
            rows = answer_rows.assemble(
                prepared.plan.shell,
                prepared.types,
                released,
                shell=self._shell,
                confidence=question.confidence,
                timeout_seconds=SHELL_SECONDS,
                owner=question.principal,
            )
        except ExecutionFailed as failure:
            # A shell that never started does not undo that rows were read: a refund would be a free answer.
            raise ExecutionFailed(started=failure.started or bool(fresh)) from None
        told = Told(rows, tuple(table.notes for table in released), releases, admitted.priced, admitted.charges)
        answer = wire_answer.answer(admitted, told, self._ledger.standing(admitted.path[0].id))
        self._ledger.post(admitted.query_id, fresh, answer)
        if not reserved.charged:
            self._free.take(question.principal, len(answer))
        told = replace(told, block=block_of(admitted.query_id, answer))
        if releases:
            self._repeats.keep(repeat_key(question, prepared, admitted.path[0]), told)
        return answer

    def _begun(self, started: float) -> float:
        """The moment from which visible moments are counted: that of the question, and the whole ticks it waited.

        A thread waits with its query and becomes free at a visible moment, so how long others waited for it is no
        secret. Counted from the question, every query that waits in line would wait that long once more, with its
        thread: the line would take twice as long with each one.
        """
        return started + self._tick * max(0.0, (self._clock() - started) // self._tick)

    def _visible(self, admitted: Admitted) -> VisibleRun:
        """The visible moments of an admitted query, with the draw of its run."""
        moments = self.moments(fresh_work(admitted))
        part = (int(self._bits.words(1)[0]) >> 11) * 2.0**-53
        return VisibleRun(moments, part, admitted.started, clock=self._clock, sleep=self._sleep)

    def _until_visible(self, visible: VisibleRun) -> None:
        """Waits for the next visible moment of a run."""
        visible.wait()

    def moments(self, work: Work) -> Moments:
        """The visible moments of that work on this machine: a function of plans and declarations."""
        slowness = max(1.0, self._slowness())
        rows = work.row_nanoseconds / self._engine_threads
        return moments_of(
            unit_seconds=work.unit_nanoseconds * slowness * 1e-9,
            expected_seconds=(rows + work.plan_nanoseconds) * slowness * 1e-9,
            tick_seconds=self._tick,
        )


def _retried(reserved: Reserved) -> Admitted:
    """A query that is settled or runs already. Errors: ExecutionFailed for one that ended without an answer."""
    if reserved.answer is None and reserved.state not in ("reserved", "running"):
        raise ExecutionFailed(started=reserved.state != "failed_void")
    return Admitted(reserved.query_id, stored=reserved.answer, running=reserved.answer is None)


def _shell_refusal() -> Finding:
    return Finding(
        code="unsupported_sql",
        what="the part above the aggregates is refused",
        why="It does not fit the names and types of the released columns.",
        instead=("check the types of comparisons and function arguments", "see docs/sql.md"),
    )
