"""What the routes work with, in one object: made once at the start, or by a test."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from accountant.ledger import Ledger
from accountant.request import QueryRecord
from accountant.states import QueryStatus
from engines.incidents import Incidents
from privacy.policy import Dataset
from privacy.refusal import Finding
from privacy.values import Json
from server.admitted import InFlight, Settled
from server.jobs import AdmittedQuery, JobPool
from server.question import Question
from server.settings import Settings
from server.store.budget_requests import BudgetRequestRow
from server.store.dashboards import DashboardRow, LinkRow
from server.store.people import Principal
from server.store.registry import Registry
from server.store.resources import BatchRow, MonitorRow, StreamRow, SyntheticRow
from server.store.versions import EITHER
from server.store.webhooks import WebhookRow

if TYPE_CHECKING:
    # Commands read this module, and few of them need the mathematics that a query is made of.
    from server.administration.budget_requests import AskBudget, Decide
    from server.administration.profiles import ProfileDataset
    from server.batches.batches import Choice, CountRow
    from server.batches.terms import AskedBatch
    from server.dashboards.reading import Reader, Seen
    from server.dashboards.terms import MakeDashboard
    from server.journey.query import Admitted, ToRun
    from server.models.models import ToTrain
    from server.models.terms import TrainModel
    from server.monitors.monitors import Evaluation
    from server.monitors.terms import Evaluated, EvaluateMonitor, OpenMonitor
    from server.profile_types import Profile
    from server.statistics.asking import ToAsk
    from server.statistics.terms import AskStatistic
    from server.streams.sealing import Frame
    from server.streams.streams import Standing, StreamQuestion
    from server.streams.terms import AskStream, OpenStream, Told
    from server.streams.terms import Terms as StreamTerms
    from server.synthetic.making import ToDraw
    from server.synthetic.terms import MakeSynthetic
    from server.webhooks.webhooks import AddWebhook

__all__ = [
    "BatchSteps",
    "Catalogue",
    "Check",
    "DashboardSteps",
    "DatasetRefused",
    "JourneySteps",
    "ModelSteps",
    "MonitorSteps",
    "OtherName",
    "ProfileSteps",
    "Registrar",
    "RequestSteps",
    "ResourceSteps",
    "Services",
    "StatisticSteps",
    "StreamSteps",
    "SyntheticSteps",
    "WebhookSteps",
]


class JourneySteps(Protocol):
    """The journey as HTTP sees it. Synchronous; called on threads."""

    def estimate(self, question: Question) -> Mapping[str, object]:
        """What the question would cost. Raises Refused, LedgerError."""

    def admit(self, question: Question) -> Admitted:
        """Everything up to the reservation. Raises Refused, LedgerError."""

    def sharpen(self, query_id: str, better: Question) -> Admitted:
        """The same of an earlier question with the wish of `better`, which has no text. Raises Refused, LedgerError."""

    def complete(self, query: ToRun) -> bytes:
        """Everything after it: the stored answer at its visible moment. Raises ExecutionFailed."""

    def abandon(self, query: ToRun) -> None:
        """Voids an admitted query that never got a slot."""

    def cancel(self, query_id: str, principal: str) -> QueryStatus | None:
        """Voids a query that did not start; the state afterwards, None when the principal has no such query."""

    def cancel_all(self, principals: Collection[str]) -> int:
        """Voids every query of these principals that did not start. Returns how many."""


class Catalogue(Protocol):
    """The datasets that are served, in memory."""

    def get(self, name: str) -> Dataset | None:
        """The dataset of that name at its current version, or None when none is served: see `unavailable` too."""

    def all(self) -> Sequence[Dataset]:
        """Every dataset that is served, in order of names."""

    def unavailable(self) -> Sequence[str]:
        """Names of the datasets that are attached and cannot be served, in order."""


class ProfileSteps(Protocol):
    """Profiles of data (server/administration/profiles.py). Synchronous; called on threads."""

    def of(self, dataset: Dataset) -> Profile | None:
        """The published profile of the version of the data that is served, None where there is none."""

    def make(self, request: ProfileDataset, *, actor: str) -> Profile:
        """Makes one. Raises ActRefused."""


class ResourceSteps(Protocol):
    """What all resources share (server/resources/resources.py). Synchronous; called on threads."""

    def abandon(self, begun: AdmittedQuery) -> None:
        """Voids a resource, or a statistic, that never got a slot."""

    def cancel(self, identifier: str) -> QueryStatus | None:
        """Voids a resource, or a statistic, that did not start; the state afterwards."""

    def cancel_all(self, principals: Collection[str]) -> int:
        """Voids every resource, and statistic, of these principals that did not start. Returns how many."""


class ModelSteps(Protocol):
    """Models (server/models/models.py). Synchronous; called on threads."""

    def estimate(self, request: TrainModel) -> Mapping[str, object]:
        """What a model would cost and measure. Raises Refused."""

    def admit(self, request: TrainModel) -> Settled | InFlight | ToTrain:
        """Charges a model. Raises Refused, LedgerError."""

    def complete(self, model: ToTrain) -> bytes:
        """Fits it, at a visible moment: the stored answer. Raises ExecutionFailed."""


class StatisticSteps(Protocol):
    """Registered statistics (server/statistics/asking.py). Synchronous; called on threads."""

    def listed(self, dataset: Dataset, *, trusted: bool) -> list[dict[str, Json]]:
        """The statistics that a caller may ask."""

    def estimate(self, request: AskStatistic) -> Mapping[str, object]:
        """What one would cost, test and promise. Raises Refused."""

    def admit(self, request: AskStatistic) -> Settled | InFlight | ToAsk:
        """Charges one. Raises Refused, LedgerError."""

    def complete(self, asked: ToAsk) -> bytes:
        """Tests and releases it, at a visible moment: the stored answer. Raises ExecutionFailed."""


class MonitorSteps(Protocol):
    """Monitors (server/monitors/monitors.py). Synchronous; called on threads."""

    def open(self, request: OpenMonitor) -> Settled | InFlight:
        """Charges a session and stores it. Raises Refused, Problem, LedgerError, ExecutionFailed."""

    def estimate(self, request: OpenMonitor) -> Mapping[str, object]:
        """What it would cost, and how exact it would be. Raises Refused."""

    def begin(self, row: MonitorRow, request: EvaluateMonitor, *, again: bool = True) -> Evaluated | Evaluation:
        """Plans an evaluation, and reads no row. Raises Refused, Problem."""

    def complete(self, begun: Evaluation) -> Evaluated:
        """Compares the data with the threshold, at a visible moment. Raises Problem, ExecutionFailed."""

    def question_of(self, row: MonitorRow) -> tuple[str, str] | None:
        """Text and threshold of a monitor, for its owner; None where its state cannot be read."""


class StreamSteps(Protocol):
    """Streams (server/streams/streams.py). Synchronous; called on threads."""

    def estimate(self, request: OpenStream) -> Mapping[str, object]:
        """What a stream would promise and cost. Raises Refused, Problem."""

    def open(self, request: OpenStream) -> Settled | InFlight:
        """Charges a stream and stores it. Raises Refused, Problem, LedgerError, ExecutionFailed."""

    def begin(self, row: StreamRow, asked: AskStream, *, by: str) -> tuple[Told, ...] | StreamQuestion:
        """The answers that need no rows, or the queries, planned. Raises Refused, Problem."""

    def complete(self, begun: StreamQuestion) -> tuple[Told, ...]:
        """Compares queries with the data, at a visible moment. Raises Problem, ExecutionFailed."""

    def standing(self, row: StreamRow, terms: StreamTerms) -> Standing:
        """Whether a stream compares."""

    def open_to(self, row: StreamRow, dataset: Dataset) -> bool:
        """Whether those who may ask the dataset may ask a stream of somebody else."""

    def beside(self, dataset: Dataset) -> Sequence[Mapping[str, object]]:
        """The streams that everybody who may ask the dataset may ask, as it describes them."""

    def close(self, row: StreamRow, *, actor: str) -> None:
        """Ends a stream, and deletes what it answered."""

    def frame_for(self, row: StreamRow) -> Frame | None:
        """What a stream is about, for those who may ask it; None where it cannot be read."""


class SyntheticSteps(Protocol):
    """Synthetic tables (server/synthetic/making.py). Synchronous; called on threads."""

    def estimate(self, request: MakeSynthetic) -> Mapping[str, Json]:
        """What a table would be and cost. Raises Refused, Problem."""

    def admit(self, request: MakeSynthetic) -> Settled | InFlight | ToDraw:
        """Charges a table. Raises Refused, Problem, LedgerError."""

    def complete(self, table: ToDraw) -> bytes:
        """Makes it. Raises ExecutionFailed."""

    def cancel(self, row: SyntheticRow) -> QueryStatus | None:
        """Voids a table that did not start; the state afterwards."""

    def close(self, row: SyntheticRow, *, actor: str) -> None:
        """Deletes the rows of a table, and frees its name."""

    def readable(self, row: SyntheticRow, dataset: Dataset, principal: str) -> bool:
        """Whether somebody who may ask the dataset may read a table that another one made."""

    def beside(self, dataset: Dataset, principal: str) -> Dataset:
        """The dataset with the synthetic tables that the principal may read."""


class BatchSteps(Protocol):
    """Batches (server/batches/batches.py). Synchronous; called on threads."""

    def estimate(self, asked: AskedBatch) -> tuple[Choice, Mapping[str, object]]:
        """Which ways there are to answer a batch, and what the chosen one would cost. Raises Refused."""

    def admit(self, asked: AskedBatch) -> Admitted:
        """Everything up to the reservation, as `JourneySteps.admit`. Raises Refused, LedgerError."""

    def texts(self, row: BatchRow) -> tuple[str, ...] | None:
        """The queries of a batch, for its owner; None where they cannot be read."""

    def rows(self, row: BatchRow, record: QueryRecord) -> tuple[CountRow, ...] | None:
        """The counts of a batch; None until it is settled."""


class WebhookSteps(Protocol):
    """Webhooks (server/webhooks/webhooks.py). Synchronous; called on threads."""

    def add(self, request: AddWebhook) -> tuple[WebhookRow, str]:
        """Stores a webhook; returns it with its secret. Raises Problem."""

    def url_of(self, row: WebhookRow) -> str | None:
        """Its address, for its owner."""

    def test(self, row: WebhookRow, *, at: str) -> None:
        """Sends an event without content. Raises Problem."""


class RequestSteps(Protocol):
    """Budget requests (server/administration/budget_requests.py). Synchronous; called on threads."""

    def ask(self, asked: AskBudget) -> BudgetRequestRow:
        """Stores a request. Raises ActRefused."""

    def decide(self, row: BudgetRequestRow, wanted: Decide) -> BudgetRequestRow:
        """Ends one. Raises ActRefused, LedgerError."""

    def content(self, row: BudgetRequestRow) -> Mapping[str, Json]:
        """Question, estimate and reason."""


class DashboardSteps(Protocol):
    """Dashboards (server/dashboards/dashboards.py). Synchronous, but for what reads; called on threads."""

    @property
    def reader(self) -> Reader:
        """What tiles are read with."""

    def check(self, request: MakeDashboard) -> None:
        """Whether its tiles would be answered. Raises Refused, Problem."""

    def make(self, request: MakeDashboard) -> DashboardRow:
        """Opens its envelope and stores it. Raises Problem, ActRefused."""

    def change(self, row: DashboardRow, request: MakeDashboard) -> None:
        """Makes it what was asked for. Raises Problem."""

    def close(self, row: DashboardRow, *, actor: str) -> None:
        """Ends it. Raises NotThere."""

    def describe(self, seen: Seen, *, owner: bool, trusted: bool) -> dict[str, object]:
        """A dashboard as JSON."""

    def add_link(self, dashboard: str, *, label: str, days: int, actor: str) -> tuple[LinkRow, str]:
        """A link with its token. Raises Problem."""

    async def opened_by(self, token: str, dashboard: str) -> LinkRow:
        """The link whose token opens a dashboard. Raises LinkRefused."""


class DatasetRefused(Exception):
    """A dataset that cannot be attached, with every finding at once. Findings hold no values of rows."""

    def __init__(self, findings: Sequence[Finding]) -> None:
        self.findings = tuple(findings)
        assert self.findings
        super().__init__(self.findings[0].what)


class OtherName(Exception):
    """A dataset file with another name than it was to be attached under."""


class Registrar(Protocol):
    """Attaches datasets: checks the description, builds the snapshot, stores the version, serves it."""

    def register(
        self, document: Mapping[str, object], *, actor: str, name: str | None = None, replaces: str | None = EITHER
    ) -> Dataset:
        """Attaches a dataset file given as JSON.

        `name` is what the dataset must be called, if anything. `replaces` is what must be served under its name, as in
        `Registry.register_dataset`. Raises DatasetRefused, NotReplaced, OtherName.
        """

    def register_file(
        self, path: str, *, actor: str, name: str | None = None, replaces: str | None = EITHER
    ) -> Dataset:
        """Attaches the file of that name in the home's folder of datasets. Raises as `register`."""

    def attach_path(self, path: Path, *, actor: str, name: str | None = None, replaces: str | None = EITHER) -> Dataset:
        """Attaches a dataset file from anywhere on this machine: for its operator only. Raises as `register`."""

    def remove(self, name: str, *, actor: str, replaces: str = EITHER) -> None:
        """Stops serving a dataset; its ledger stays.

        `replaces` is what must be served under its name, as in `Registry.remove_dataset`. Raises NotThere, NotReplaced.
        """


class TokenSteps(Protocol):
    """Bearer tokens of a provider (server/tokens.py)."""

    def verify(self, text: str) -> tuple[Principal, str]:
        """The principal that a token stands for, and until when it does. Errors: KeyRefused, KeysUnavailable."""


@dataclass(frozen=True, slots=True)
class Check:
    """One check of readiness: returns when all is well, raises otherwise."""

    name: str
    run: Callable[[], object]


@dataclass(slots=True)
class Services:
    """Everything the routes need. `closing` is called at the end, in order, after the running queries."""

    settings: Settings
    registry: Registry
    ledger: Ledger
    catalogue: Catalogue
    journey: JourneySteps
    registrar: Registrar
    jobs: JobPool
    profiles: ProfileSteps
    resources: ResourceSteps
    monitors: MonitorSteps
    streams: StreamSteps
    models: ModelSteps
    statistics: StatisticSteps
    synthetic: SyntheticSteps
    batches: BatchSteps
    webhooks: WebhookSteps
    requests: RequestSteps
    dashboards: DashboardSteps
    tokens: TokenSteps | None = None
    checks: tuple[Check, ...] = ()
    sql_matrix: Mapping[str, object] = field(default_factory=dict)
    incidents: Incidents = field(default_factory=Incidents)
    closing: tuple[Callable[[], object], ...] = ()

    def served(self) -> tuple[str, ...]:
        """Names of the attached datasets, in order, those too that cannot be served at the moment."""
        return tuple(sorted([*(dataset.name for dataset in self.catalogue.all()), *self.catalogue.unavailable()]))
