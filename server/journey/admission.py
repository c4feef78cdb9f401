"""Step 5: who pays, what was asked before, what can be repeated, and the reservation; and the way back from it.

A retry is looked up before anything else: its answer was paid for, whatever became of the dataset, the policy or the
limits since.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from fractions import Fraction

from accountant.account import Account, common_accounts
from accountant.errors import BudgetExhausted, LedgerError, Nominal, UnknownAccount
from accountant.ledger import Ledger
from accountant.request import CoreCharge, Reserved, Reuse
from accountant.states import QueryStatus
from privacy.policy import Dataset
from privacy.refusal import ExecutionFailed, Finding, Refused
from server import pricing
from server.admitted import retried
from server.errors import Problem
from server.free_answers import Allowances
from server.journey.agreed_price import at_agreed_price, moved
from server.journey.charges import charges_of, repeat_key, request_of
from server.journey.held import less_exact, with_derived
from server.journey.norms import choose_norms
from server.journey.pace import Pace
from server.journey.preparing import Preparing
from server.journey.query import Admitted, Asked, Paid, Prepared, Quote, ToRun
from server.journey.quoting import Quoting
from server.journey.repeats import AnswerParts, Repeats
from server.journey.reuse import Reusable, Stored
from server.journey.sharpening import Offered, offered_means, refuse_cost, refuse_unsharpened, sharpened
from server.journey.sizes import Sizes
from server.journey.stages import at_origins
from server.journey.stored_choices import Served, StoredChoices
from server.journey.two_charges import Learned, first_priced
from server.journey.wire_amounts import stated_epsilon
from server.journey.wire_answer import answer, shared_part
from server.journey.wire_sharpened import with_means
from server.log import logger
from server.question import Question

__all__ = ["Admission", "Served"]


class Admission:
    """Admits questions: from the question to a reservation, or to an answer that is stored already."""

    def __init__(
        self,
        *,
        ledger: Ledger,
        served: Served,
        preparing: Preparing,
        stored: Stored,
        repeats: Repeats,
        free: Allowances,
        pace: Pace,
        sizes: Sizes,
        beside: Callable[[Dataset, str], Dataset],
    ) -> None:
        """`beside` puts the synthetic tables that a principal may read beside those of a dataset."""
        self._ledger = ledger
        self._served = served
        self._beside = beside
        self._preparing = preparing
        self._stored = stored
        self._repeats = repeats
        self._free = free
        self._pace = pace
        self._choices = StoredChoices(served=served, preparing=preparing, stored=stored, sizes=sizes)
        self._lock = threading.Lock()
        self._waiting: dict[str, str] = {}

    def quote(self, question: Question) -> tuple[Prepared, Quote]:
        """Steps 2 to 4, for an estimate. Touches no private row, spends nothing. Errors: Refused."""
        dataset, path = self.paying(question)
        question, prepared, known = self._choices.prepared(question, dataset, path)
        prepared = self._choices.counted(question, prepared, path)
        if not known:
            return prepared, self._first_quote(question, prepared, path)
        prepared = self._choices.at_bounds(question, prepared, path)
        quoting = Quoting(question, prepared, path)
        repeated = self._repeatable(question, prepared, path)
        if repeated is not None:
            earlier, reusable = repeated
            return prepared, quoting.quote(earlier.priced, reusable, earlier.charges[: len(prepared.cores)])
        priced = quoting.price()
        question, prepared, _ = at_origins(question, prepared, priced, path[0], self._stored)
        offered = self._offered(question, prepared, priced, path[0])
        found = sharpened(question, prepared, priced, offered, path)
        if priced is not None:
            quoting.refuse(priced, self._stored, found.reusable)
        refuse_cost(question, found.needed(prepared), found.reusable, path[0])
        quote = quoting.quote(found.priced, found.reusable, found.charges[: len(prepared.cores)])
        prepared = self._preparing.at_stored(prepared, found.by_name)
        if question.report and priced is not None:
            less = less_exact(
                question, prepared, priced, offered.charges, found.reusable, self._stored, path[0], quoting.at_spend
            )
            quote = replace(quote, offer=None if less is None else (less.release, less.errors, less.epsilon))
        return prepared, with_means(replace(quote, raised=found.raised, whole=found.whole))

    def _offered(
        self, question: Question, prepared: Prepared, priced: pricing.Priced | None, account: Account
    ) -> Offered:
        """The charges of a question, and the stored releases that serve it: its own ones, and those of others."""
        dataset, cores = prepared.plan.dataset, len(prepared.cores)
        charges = charges_of(prepared, priced)
        reusable = Reusable(self._stored, question, dataset, charges, account, cores=cores)
        found = offered_means(question, prepared, priced, charges, reusable)
        more = with_derived(found.charges, reusable, self._stored, question, prepared, priced, account)
        inputs = {**found.inputs, **more.inputs}
        return replace(found, charges=more.charges, reusable=reusable.beside(more.charges), inputs=inputs)

    def priced(self, question: Question) -> tuple[Prepared, pricing.Priced | None]:
        """Steps 2 to 4 of one of several texts that are compared: noise and price, and no more. Errors: Refused."""
        dataset, path = self.paying(question)
        question, prepared, _ = self._choices.prepared(question, dataset, path)
        quoting = Quoting(question, prepared, path)
        priced = quoting.price()
        if priced is not None:
            quoting.refuse_price(priced)
        return prepared, priced

    def admit(self, question: Question) -> Admitted:
        """Steps 2 to 5. Errors: Refused, Problem, and the ledger's (BudgetExhausted, IdempotencyConflict, ...)."""
        started = self._pace.clock()
        if question.idempotency_key is not None:
            earlier = self._ledger.earlier(question.principal, question.idempotency_key, question.body_hash)
            if earlier is not None:
                return retried(earlier)
        query_id = f"q_{secrets.token_hex(12)}"
        return at_agreed_price(lambda: self._admitted(question, query_id, started), refused=lambda: moved("the query"))

    def _admitted(self, question: Question, query_id: str, started: float) -> Admitted:
        """Steps 2 to 5 of a question that is not retried, on the accounts as they are now. Errors: PriceMoved."""
        dataset, path = self.paying(question)
        question, prepared, known = self._choices.prepared(question, dataset, path)
        prepared = self._choices.counted(question, prepared, path)
        if not known:
            return self._first(question, prepared, path, query_id, started)
        repeated = self._repeat(question, prepared, path, query_id)
        if repeated is not None:
            return retried(repeated)
        prepared = self._choices.at_bounds(question, prepared, path)
        return self._charged(question, prepared, path, query_id, started)

    def _charged(
        self, question: Question, prepared: Prepared, path: tuple[Account, ...], query_id: str, started: float
    ) -> Admitted:
        """Steps 4 and 5 of a question whose bounds and norms are known, or are its own to choose."""
        quoting = Quoting(question, prepared, path)
        priced = quoting.price()
        question, prepared, inputs = at_origins(question, prepared, priced, path[0], self._stored, query_id)
        offered = self._offered(question, prepared, priced, path[0])
        found = sharpened(question, prepared, priced, offered, path)
        reusable, charges = found.reusable, found.charges
        asked = Asked(
            query_id=query_id,
            question=question,
            prepared=self._preparing.at_stored(prepared, found.by_name),
            priced=found.priced,
            charges=charges if len(charges) == len(prepared.cores) else found.needed(prepared),
            path=path,
            inputs={**inputs, **found.inputs},
            raised=found.raised,
            whole=found.whole,
        )
        if self._free.wait_seconds(question.principal) and all(reusable.serve()):
            self._refuse_free_answer(question)
        if priced is not None:
            quoting.refuse(priced, self._stored, reusable)
        refuse_cost(question, asked.charges, reusable, path[0])
        refuse_unsharpened(question, asked.charges, found, reusable)
        return self._reserved(asked, reusable, started)

    def _reserved(self, asked: Asked, reusable: Reusable, started: float) -> Admitted:
        """Step 5: what the ledger decides. The query waits for its run, or an earlier one answers it."""
        try:
            reserved = self._ledger.reserve(request_of(asked, reusable.reuse))
        except BudgetExhausted as error:
            _explain(error, asked.priced, asked.path)
            raise
        if reserved.answer is not None or not reserved.fresh:
            return retried(reserved)
        with self._lock:
            self._waiting[asked.query_id] = asked.question.principal
        return ToRun(asked, Paid.of(reserved), started)

    def _first(
        self, question: Question, prepared: Prepared, path: tuple[Account, ...], query_id: str, started: float
    ) -> Admitted:
        """Step 5 of a question of two charges: the first one. Errors: PriceMoved besides.

        It is never nothing: what a query was charged follows from its own charge, and who repeats the request finds the
        first query. Where stored histograms serve by now, the question is priced again, and is one charge.
        """
        priced, charges = self._first_priced(question, prepared, path)
        reusable = Reusable(self._stored, question, prepared.plan.dataset, charges, path[0], cores=0)
        refuse_cost(question, charges, reusable, path[0])
        asked = Asked(
            query_id=query_id,
            question=question,
            prepared=prepared,
            priced=priced,
            charges=charges,
            path=path,
            histograms_only=True,
        )
        return self._reserved(asked, reusable, started)

    def _first_priced(
        self, question: Question, prepared: Prepared, path: tuple[Account, ...]
    ) -> tuple[pricing.Priced, tuple[CoreCharge, ...]]:
        """The price of the first of two charges. Errors: Refused for what no norm and no bounds could make affordable.

        At nominal norms and bounds noise is the least there is: a width that costs too much even there, or that has no
        price at all, is refused before anything is charged.
        """
        quoting = Quoting(question, prepared, path)
        least = quoting.price()
        assert least is not None
        quoting.refuse_price(least)
        return first_priced(prepared, quoting.priced_by_default(), path)

    def _first_quote(self, question: Question, prepared: Prepared, path: tuple[Account, ...]) -> Quote:
        """What an estimate says of a question of two charges."""
        priced, charges = self._first_priced(question, prepared, path)
        reusable = Reusable(self._stored, question, prepared.plan.dataset, charges, path[0], cores=0)
        refuse_cost(question, charges, reusable, path[0])
        return Quote(priced, path, reusable.serving, [], (), None, [""] * len(prepared.cores), histograms_only=True)

    def second(self, query: ToRun, learned: Learned) -> ToRun:
        """The second charge of a query, whose histograms are released: its sums, at the width that was asked for.

        It is a query of its own, without an Idempotency-Key: a repeated request finds the first one.
        Errors: Refused, and the ledger's; nothing of the sums is charged then.
        """
        return at_agreed_price(lambda: self._second(query, learned), refused=lambda: moved("the query"))

    def _second(self, query: ToRun, learned: Learned) -> ToRun:
        """The second charge, on the accounts as they are now. Errors: as of `second`, and PriceMoved."""
        first = query.asked
        spent = sum((one.epsilon for one in query.paid.charged if one.account == first.path[0].id), Fraction(0))
        most, told = first.question.max_cost, stated_epsilon(spent, first.path[0])
        left = None if most is None else max(most - told, Fraction(0))
        question = replace(first.question, idempotency_key=None, max_cost=left)
        path = tuple(self._ledger.path(first.path[0].id))
        prepared = first.prepared
        if learned.values:
            priced = Quoting(question, prepared, path).priced_by_default()
            prepared = self._preparing.at_bounds(prepared, priced.calibration, learned.values, promised=True)
        if any(prepared.histograms):
            priced = Quoting(question, prepared, path).priced_by_default()
            chosen = {
                core.described.name: choose_norms(core, priced.calibration, table, source=source)
                for core in prepared.cores
                if core.described.name in learned.norms
                for table, source in [learned.norms[core.described.name]]
            }
            prepared = self._preparing.at_norms(prepared, chosen)
        query_id = f"q_{secrets.token_hex(12)}"
        admitted = self._charged(question, prepared, path, query_id, self._pace.clock())
        if not isinstance(admitted, ToRun) or not self.take(query_id):
            raise ExecutionFailed  # cancelled in the meantime
        return admitted

    def cancel(self, query_id: str, principal: str) -> QueryStatus | None:
        """Voids a query of this process that did not reach the engine; returns its state afterwards.

        None when the principal has no such query. FAILED_VOID is said only when the ledger has it: until then nobody
        knows that the charge is given back.
        """
        if self.take(query_id, principal):
            return QueryStatus.FAILED_VOID if self.void(query_id) else QueryStatus.RESERVED
        record = self._ledger.query(query_id)
        return None if record is None or record.principal != principal else record.state

    def cancel_all(self, principals: Collection[str]) -> int:
        """As `cancel`, of everything that these principals have waiting. Returns how many were voided."""
        with self._lock:
            found = [query_id for query_id, principal in self._waiting.items() if principal in principals]
        return sum(self.take(query_id) and self.void(query_id) for query_id in found)

    def abandon(self, query_id: str) -> None:
        """Voids an admitted query whose turn never came (shutdown), cancelled or not."""
        if self.take(query_id):
            self.void(query_id)

    def take(self, query_id: str, principal: str | None = None) -> bool:
        """Ends a query's waiting, for one caller only: it runs, or it is voided. Returns False to all later ones."""
        with self._lock:
            if principal is not None and self._waiting.get(query_id) != principal:
                return False
            return self._waiting.pop(query_id, None) is not None

    def void(self, query_id: str) -> bool:
        """Gives back the charge of a query that no engine saw. Returns whether the ledger has it."""
        try:
            self._ledger.void(query_id)
        except LedgerError as error:
            # The reservation counts as spent until a restart ends it.
            logger().error("query_unsettled", query_id=query_id, exception=type(error).__name__)
            return False
        return True

    def _repeat(
        self, question: Question, prepared: Prepared, path: tuple[Account, ...], query_id: str
    ) -> Reserved | None:
        """Steps 4 to 8 in one transaction, for an earlier answer whose releases still serve.

        No row is read and no shell runs: it is the earlier answer under a new identifier. None when this process has
        no such answer, or when the ledger would take other releases or charge.
        """
        key = repeat_key(question, prepared, path[0])
        earlier = None if question.reuse is Reuse.NONE else self._repeats.get(key)
        if earlier is None:
            return None
        reuse = Reusable(
            self._stored, question, prepared.plan.dataset, earlier.charges, path[0], cores=len(prepared.cores)
        ).reuse
        if reuse is Reuse.NONE:
            return None
        asked = Asked(
            query_id=query_id,
            question=question,
            prepared=prepared,
            priced=earlier.priced,
            charges=earlier.charges,
            path=path,
        )
        # What the answer says beside the numbers that are kept: without a change of it, it is the same to the letter.
        state = (path[0].id, path[0].limit, path[0].spent)
        again = self._repeats.again(key, state) if question.idempotency_key is None else None
        content, shared = b"", None
        if again is None:
            self._refuse_free_answer(question)
            content = answer(asked, Paid((), earlier.releases), earlier, path[0])
            shared = shared_part(earlier, query_id)
        reserved = self._ledger.repeat(
            request_of(asked, reuse),
            {key: release.id for key, release in earlier.releases.items()},
            content,
            shared=shared,
            again=again,
        )
        if reserved is not None and reserved.fresh:
            self._free.take(question.principal, len(content) if shared is None else len(shared.own_part(content)))
            if question.idempotency_key is None:
                self._repeats.keep_again(key, state, query_id)
        return reserved

    def _repeatable(
        self, question: Question, prepared: Prepared, path: tuple[Account, ...]
    ) -> tuple[AnswerParts, Reusable] | None:
        """An earlier answer that `_repeat` would give once more, and its releases, which all serve for free.

        Its price is that of the first time: what was bought then may be less than the same spend buys now.
        """
        key = repeat_key(question, prepared, path[0])
        earlier = None if question.reuse is Reuse.NONE else self._repeats.get(key)
        if earlier is None:
            return None
        reusable = Reusable(
            self._stored, question, prepared.plan.dataset, earlier.charges, path[0], cores=len(prepared.cores)
        )
        same = {key: release.id for key, release in earlier.releases.items()}
        if not same or {key: release.id for key, release in reusable.serving.items()} != same:
            return None
        return earlier, reusable

    def _refuse_free_answer(self, question: Question) -> None:
        """Errors: Problem rate_limited when the principal has had too much stored for free lately."""
        seconds = self._free.wait_seconds(question.principal)
        if seconds:
            raise Problem(
                "rate_limited",
                what="too many answers were stored for free",
                why="Answers are kept forever, also those that cost nothing, so their size is limited by the hour.",
                instead=("Send the question again later.", "Read stored answers with GET /v1/queries/{query_id}."),
                headers={"Retry-After": str(seconds)},
            )

    def paying(self, question: Question) -> tuple[Dataset, tuple[Account, ...]]:
        """The dataset and the path of accounts that pays; a stranger learns nothing, not even that it exists."""
        dataset = self._served.get(question.dataset)
        # Read in either case: the time of the refusal must not reveal whether the dataset exists.
        paths = self._ledger.spendable(question.dataset, question.principal, named=question.account)
        if dataset is None or not paths:
            raise Refused([_unknown(question.dataset)])
        if any(path[-1].space != dataset.space for path in paths):
            raise Refused([_unsettled(dataset)])
        dataset = self._beside(dataset, question.principal)
        if question.envelope:
            return dataset, self._envelope(question, paths)
        if question.account is None:
            return dataset, tuple(paths[0])
        own = next((path for path in paths if path[0].id == question.account), None)
        if own is None:
            raise Refused([_NOT_ASKED])
        return dataset, tuple(own)

    def _envelope(self, question: Question, paths: Sequence[tuple[Account, ...]]) -> tuple[Account, ...]:
        """The path of an account of nobody's own right below one of the principal's. Errors: Refused."""
        assert question.account is not None
        try:
            path = tuple(self._ledger.path(question.account))
        except UnknownAccount:
            raise Refused([_NOT_ASKED]) from None
        above = {own[0].id for own in paths}
        if path[0].principal is not None or path[0].frozen or path[0].parent not in above:
            raise Refused([_NOT_ASKED])
        return path

    def granting(self, name: str, account: str | None) -> tuple[Dataset, tuple[Account, ...]]:
        """The dataset and the path of accounts from which an administrator pays for everybody.

        They are nobody's own: the root's without an `account`, else the group's of that identifier. Errors: Refused.
        """
        dataset = self._served.get(name)
        space = name if dataset is None else dataset.space
        common = common_accounts(self._ledger.accounts(space=space), name)
        if dataset is None or not common:
            raise Refused([_unknown(name)])
        # Roots come first.
        chosen = common[0] if account is None else next((one for one in common if one.id == account), None)
        if chosen is None:
            raise Refused([_NOT_ASKED])
        return dataset, tuple(self._ledger.path(chosen.id))


def _unknown(dataset: str) -> Finding:
    """Why a dataset is refused that is not there, or not for the caller."""
    return Finding(
        code="unknown_dataset",
        what=f'dataset "{dataset[:63]}" is refused',
        why="It does not exist, or you have no account for it.",
        instead=(
            "GET /v1/datasets lists those you may ask",
            "ask an administrator for a budget: "
            "noisegate budget set --dataset NAME --principal YOU --epsilon 5 --delta 0.000001",
        ),
    )


def _unsettled(dataset: Dataset) -> Finding:
    """Why a dataset is refused whose file names another unit space than its accounts are in."""
    return Finding(
        code="no_budget",
        what=f'dataset "{dataset.name}" is refused',
        why="Its file names another unit space than its budgets protect, so nobody can say what has been spent.",
        instead=("Tell the operator: noisegate dataset add FILE puts its budgets there, or says why it does not.",),
    )


_NOT_ASKED = Finding(
    code="no_budget",
    what="the asked account is refused",
    why="It is not an account of yours for this dataset, or it is frozen.",
    instead=("see GET /v1/budgets",),
)


def _explain(error: BudgetExhausted, priced: pricing.Priced | None, path: tuple[Account, ...]) -> None:
    """Adds to the ledger's refusal what would fit, in the analyst's own words."""
    if priced is None:
        return
    error.delta_fits = pricing.delta_that_fits(path, priced.loss)
    if error.account == path[0].id:
        error.nominal = Nominal(priced.epsilon, priced.delta, path[0].remaining_epsilon(), path[0].remaining_delta())
