"""Profiles of data: made by the owner once for each version of the data, charged on the dataset's root, published.

The act takes the steps of a question (server/answer.py) with statements that follow from declarations: price,
reservation, rows in one slot until a visible moment, noise, releases and profile stored with the entry. What fails
after the reservation stays charged, and may be tried again.
"""

from __future__ import annotations

import hashlib
import json
import logging
import secrets
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

from accountant.account import Account, common_accounts
from accountant.errors import BudgetExhausted, LedgerError
from accountant.ledger import Ledger
from accountant.request import CoreCharge, ReserveRequest, Reuse, StoredRelease
from accountant.states import QueryStatus
from engines.protocol import EngineLease, StatementEngine, TwinPlanner
from engines.shell import PlanFailed
from mechanisms import release as releasing
from mechanisms.randomness import BitSource
from privacy.numbers import decimal_text
from privacy.policy import Dataset
from privacy.refusal import ExecutionFailed, Finding, Refused
from privacy.statement import Statement
from privacy.values import Json
from server import answer_rows, pricing
from server.administration.profile_refusals import (
    ProfiledAlready,
    ProfileFailed,
    ProfileRunning,
    RootNeeded,
    UnaffordableProfile,
    UnpricedProfile,
)
from server.administration.refusal import ActRefused, NoDataset
from server.calibrations import Calibrations
from server.journey.admission import Served
from server.journey.agreed_price import at_agreed_price
from server.journey.pace import Pace, VisibleRun
from server.journey.release_key import quality_of, release_key
from server.journey.wire_amounts import epsilon_text
from server.least_spend import refusal_of
from server.log import logger
from server.price_refusals import unreachable
from server.profile_body import CONFIDENCE, profiled_table_body
from server.profile_types import Profile
from server.published import ATTEMPTS_MAX, PROFILE, Published, attempt_id
from sql_rewrite.dialects import DIALECTS
from sql_rewrite.profile import ProfiledTable, lower_profile, profile_key, profile_work, profiled_tables

__all__ = ["ProfileDataset", "Profiles", "ServedDatasets"]

TABLES_MAX = 64
"""Most tables of a profile: as many cores as one reservation has."""

_TIMEOUT_SECONDS = 1800.0
"""Time limit of all statements: every row is read, and nobody waits for an answer."""


class ServedDatasets(Served, Protocol):
    """Where profiles find datasets, their snapshots and their names."""

    def all(self) -> Sequence[Dataset]:
        """Every dataset that is served."""

    def unavailable(self) -> Sequence[str]:
        """Names of those that are attached and cannot be served."""


@dataclass(frozen=True, slots=True)
class ProfileDataset:
    """A profile of the data that is served now, for a part of the root's epsilon."""

    dataset: str
    epsilon: Fraction


@dataclass(frozen=True, slots=True)
class _Priced:
    """What is asked of the ledger and of the engine."""

    dataset: Dataset
    tables: tuple[ProfiledTable, ...]
    statements: tuple[Statement, ...]
    root: Account
    priced: pricing.Priced
    charges: tuple[CoreCharge, ...]


@dataclass(slots=True)
class Profiles:
    """The act, and the profiles that were made. Safe to use from many threads."""

    ledger: Ledger
    served: ServedDatasets
    private: StatementEngine
    twins: TwinPlanner
    bits: BitSource
    pace: Pace
    _published: Published | None = None

    def __post_init__(self) -> None:
        self._published = Published(self.ledger)

    def of(self, dataset: Dataset) -> Profile | None:
        """The profile of the version of the data that is served, None where none was made. Never spends."""
        assert self._published is not None
        return self._published.of(dataset)

    def make(self, request: ProfileDataset, *, actor: str) -> Profile:
        """Charges the root, reads every row, and stores the profile.

        Refused: NoDataset, RootNeeded, ProfiledAlready, ProfileRunning, UnpricedProfile, UnaffordableProfile, and
        ProfileFailed, which says whether the charge stays.
        """
        dataset = self.served.get(request.dataset)
        if dataset is None:
            names = sorted([*(one.name for one in self.served.all()), *self.served.unavailable()])
            raise ActRefused(NoDataset(request.dataset, tuple(names)))
        root = next(iter(common_accounts(self.ledger.accounts(space=dataset.space), dataset.name)), None)
        if root is None:
            raise ActRefused(RootNeeded(dataset.name))
        query_id = self._unused(dataset)
        asked = self._reserved(query_id, dataset, root, request.epsilon, actor)
        started = self.pace.clock()
        with ExitStack() as slot:
            try:
                lease = slot.enter_context(self.private.lease(owner=actor))
            except ExecutionFailed:
                # The engine closes, or cannot start a worker: no row was read, so no visible moment is needed.
                raise ActRefused(ProfileFailed(dataset.name, charged=not self._void(query_id))) from None
            return self._complete(query_id, asked, actor, lease, slot, started)

    # Once for each version of the data

    def _unused(self, dataset: Dataset) -> str:
        """The identifier of the next attempt. Refused: ProfiledAlready, ProfileRunning."""
        for number in range(1, ATTEMPTS_MAX):
            query_id = attempt_id(dataset.name, dataset.data_version, number)
            earlier = self.ledger.query(query_id)
            if earlier is None:
                return query_id
            if earlier.state is QueryStatus.SETTLED:
                charged = decimal_text(sum((one.epsilon for one in earlier.charged), Fraction(0)), places=6)
                made = earlier.created.date().isoformat()
                raise ActRefused(ProfiledAlready(dataset.name, dataset.data_version, made, charged))
            if earlier.state is QueryStatus.RESERVED:
                break
        raise ActRefused(ProfileRunning(dataset.name))

    # Steps 3 to 5

    def _reserved(self, query_id: str, dataset: Dataset, root: Account, epsilon: Fraction, actor: str) -> _Priced:
        """The price, and its reservation; anew where the root paid for a question in between."""

        def attempt() -> _Priced:
            asked = self._price(dataset, self.ledger.standing(root.id), epsilon)
            self._reserve(query_id, asked, actor)
            return asked

        return at_agreed_price(attempt, refused=lambda: ActRefused(UnpricedProfile(dataset.name, (_MOVED,))))

    def _price(self, dataset: Dataset, root: Account, epsilon: Fraction) -> _Priced:
        dialect = DIALECTS[self.private.capabilities.dialect]
        tables = profiled_tables(dataset)
        if len(tables) > TABLES_MAX:
            raise ActRefused(UnpricedProfile(dataset.name, (_TOO_MANY_TABLES,)))
        statements = tuple(lower_profile(table, dialect) for table in tables)
        try:
            self.twins.plan(dataset, statements, owner="profile")
        except PlanFailed:
            raise ActRefused(UnpricedProfile(dataset.name, (_NOT_PLANNED,))) from None
        except ExecutionFailed:
            raise ActRefused(ProfileFailed(dataset.name, charged=False)) from None
        cores, known = tuple(table.described for table in tables), Calibrations()
        wish = pricing.Wish(epsilon=epsilon)
        try:
            priced = pricing.price(cores, wish, path=(root,), dataset=dataset, known=known)
            refused = refusal_of(priced, cores, wish, path=(root,), dataset=dataset, known=known)
        except Refused as refusal:
            refused = refusal
        except ValueError as error:
            refused = unreachable([str(error)])
        if refused is not None:
            raise ActRefused(UnpricedProfile(dataset.name, refused.findings)) from None
        part = Fraction(1, len(cores))
        charges = tuple(
            CoreCharge(
                core_key=release_key(profile_key(dataset, table), priced.family, delta=Fraction(0)),
                quality=quality_of(priced.price, part),
                events=priced.calibration.events_of(table.described.name),
            )
            for table in tables
        )
        return _Priced(dataset, tables, statements, root, priced, charges)

    def _reserve(self, query_id: str, asked: _Priced, actor: str) -> None:
        request = ReserveRequest(
            query_id=query_id,
            principal=actor,
            account=asked.root.id,
            body_hash=hashlib.sha256(f"{PROFILE} {query_id}".encode()).hexdigest(),
            cores=asked.charges,
            reuse=Reuse.NONE,
            most=asked.priced.cost,
            description={
                PROFILE: asked.dataset.data_version,
                "cores": [{"tables": [table.table.name], "keys": 2, "aggregates": [PROFILE]} for table in asked.tables],
                "noise": asked.priced.family,
            },
        )
        try:
            self.ledger.reserve(request)
        except BudgetExhausted:
            left = epsilon_text(max(asked.root.remaining_epsilon(), Fraction(0)), asked.root, up=False)
            wanted = epsilon_text(asked.priced.cost, asked.root)
            raise ActRefused(UnaffordableProfile(asked.dataset.name, wanted, left)) from None
        except ValueError:
            # Another process began the same attempt since it was looked for.
            raise ActRefused(ProfileRunning(asked.dataset.name)) from None

    def _void(self, query_id: str) -> bool:
        """Gives back the charge of a profile that no engine saw. Returns whether the ledger has it."""
        try:
            self.ledger.void(query_id)
        except LedgerError as error:
            logger().error("query_unsettled", query_id=query_id, exception=type(error).__name__)
            return False
        return True

    # Steps 6 to 8

    def _complete(
        self, query_id: str, asked: _Priced, actor: str, lease: EngineLease, slot: ExitStack, started: float
    ) -> Profile:
        visible = self._visible(asked, started)
        name = asked.dataset.name
        fresh: list[StoredRelease] = []
        failed: dict[str, str] | None = None
        try:
            bodies = self._release(query_id, asked, actor, lease, visible, fresh)
        except ExecutionFailed:
            failed = {"code": "execution_failed"}
        except Exception as error:  # noqa: BLE001 - whatever it is, nothing of it may travel further
            failed = {"exception": type(error).__name__}
        visible.wait()
        slot.close()
        if failed is not None:
            logger().log(logging.WARNING, "query_failed", query_id=query_id, **failed)
            # Of several tables all or none are published, so nothing is kept.
            self._fail(query_id)
            raise ActRefused(ProfileFailed(name, charged=True))
        body: dict[str, Json] = {
            "query": query_id,
            "data_version": asked.dataset.data_version,
            "epsilon": epsilon_text(asked.priced.cost, asked.root),
            "noise": asked.priced.family,
            "confidence": decimal_text(CONFIDENCE),
            "tables": bodies,
        }
        try:
            self.ledger.post(query_id, fresh, json.dumps(body, separators=(",", ":")).encode())
        except LedgerError as error:
            logger().error("query_unsettled", query_id=query_id, exception=type(error).__name__)
            raise ActRefused(ProfileFailed(name, charged=True)) from None
        profile: Profile = self.of(asked.dataset) or json.loads(json.dumps(body))
        return profile

    def _visible(self, asked: _Priced, started: float) -> VisibleRun:
        work = profile_work(asked.tables, DIALECTS[self.private.capabilities.dialect].costs)
        return self.pace.visible(work, started, self.bits)

    def _release(
        self,
        query_id: str,
        asked: _Priced,
        actor: str,
        lease: EngineLease,
        visible: VisibleRun,
        fresh: list[StoredRelease],
    ) -> list[Json]:
        """A noisy table for each table, and what it says."""
        bodies: list[Json] = []
        snapshot = self.served.snapshot(asked.dataset)
        for profiled, statement, charge in zip(asked.tables, asked.statements, asked.charges, strict=True):
            exact = self.private.run(
                snapshot, statement, timeout_seconds=visible.seconds_left(_TIMEOUT_SECONDS), lease=lease
            )
            table = releasing.release(
                profiled.described, asked.priced.calibration, exact, bits=self.bits, confidence=CONFIDENCE
            )
            fresh.append(
                StoredRelease(
                    id=f"r_{secrets.token_hex(12)}",
                    core_key=charge.core_key,
                    quality=charge.quality,
                    principal=actor,
                    dataset=asked.dataset.name,
                    query_id=query_id,
                    events=charge.events,
                    body=answer_rows.to_stored(table),
                )
            )
            bodies.append(profiled_table_body(profiled, table))
        return bodies

    def _fail(self, query_id: str) -> None:
        """Keeps the charge."""
        try:
            self.ledger.fail(query_id)
        except LedgerError as error:
            # The reservation counts as spent until a restart ends it.
            logger().error("query_unsettled", query_id=query_id, exception=type(error).__name__)


_TOO_MANY_TABLES = Finding(
    code="too_large",
    what="the profile is refused",
    why=f"The dataset has more than {TABLES_MAX} tables with rows of units, the most that one charge may name.",
    instead=("split the data into several datasets",),
)
_MOVED = Finding(
    code="conflict",
    what="the profile could not be priced",
    why="The root account paid for questions again and again in between, and each changed the price.",
    instead=("ask for the profile again",),
)
_NOT_PLANNED = Finding(
    code="cannot_be_planned",
    what="the profile is refused",
    why="The engine cannot plan it on an empty copy of the tables. That is a fault of this server.",
    instead=("tell the operator",),
)
