"""A journey without engines: real reservations on a real ledger, made-up noise. And a client that is easy to read."""

from __future__ import annotations

import asyncio
import functools
import hashlib
import json
import secrets
import threading
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import httpx
import jsonschema
from fastapi import FastAPI
from fastapi.routing import APIRoute
from starlette.routing import Match

from accountant.ledger import Ledger
from accountant.request import CoreCharge, QueryRecord, ReserveRequest, StoredRelease
from accountant.states import QueryStatus
from privacy.bounds import ContributionBound, ValueBounds
from privacy.events import LaplaceEvent
from privacy.policy import Column, ColumnType, Dataset, Limits, PublicKeys, Sharing, Table
from privacy.refusal import ExecutionFailed, Finding, Position, Refused
from privacy.unit import PrivacyUnit
from privacy.values import Json
from server.administration.profiles import ProfileDataset
from server.administration.refusal import ActRefused
from server.admitted import InFlight, Settled
from server.batches.batches import Choice, CountRow
from server.batches.terms import AskedBatch
from server.errors import Problem
from server.jobs import AdmittedQuery
from server.journey.query import Admitted
from server.models.models import ToTrain
from server.models.terms import TrainModel
from server.monitors.monitors import Evaluation
from server.monitors.terms import Evaluated, EvaluateMonitor, OpenMonitor
from server.question import Question
from server.services import DatasetRefused, OtherName
from server.statistics.asking import ToAsk
from server.statistics.terms import AskStatistic
from server.store.errors import NotReplaced, NotThere
from server.store.resources import BatchRow, MonitorRow, StreamRow, SyntheticRow
from server.store.versions import EITHER, version_tag
from server.store.webhooks import WebhookRow
from server.streams.sealing import Frame
from server.streams.streams import Standing, StreamQuestion
from server.streams.terms import AskStream, OpenStream, Told
from server.streams.terms import Terms as StreamTerms
from server.synthetic.making import ToDraw
from server.synthetic.terms import MakeSynthetic
from server.webhooks.webhooks import AddWebhook

SECRET_LITERAL = "Zebedee-7731"
"""A literal that tests put into queries and look for where it must not be."""


def clinic(name: str = "clinic", *, shared: bool = False) -> Dataset:
    """A small dataset."""
    bound = ContributionBound(rows_per_unit=1, groups_per_unit=1, rows_per_unit_and_group=1)
    return Dataset(
        name=name,
        unit=PrivacyUnit(table="patients", key="patient"),
        tables=(
            Table(
                name="patients",
                columns=(
                    Column("patient", ColumnType.INTEGER, nullable=False),
                    Column("age", ColumnType.INTEGER, bounds=ValueBounds(Fraction(0), Fraction(110))),
                    Column("sex", ColumnType.TEXT, keys=PublicKeys(("f", "m", None))),
                ),
                protected=True,
                key="patient",
                unit_column="patient",
                contribution=bound,
            ),
        ),
        policy_version=1,
        data_version="d1",
        limits=Limits(releases_shared=Sharing.FREE if shared else Sharing.NO),
    )


@dataclass(frozen=True)
class FakeAdmitted:
    """An admitted query."""

    query_id: str
    request: ReserveRequest | None = None
    question: Question | None = None


class FakeCatalogue:
    """Datasets in a dictionary, and names of those that cannot be served."""

    def __init__(self, *datasets: Dataset) -> None:
        self.datasets = {dataset.name: dataset for dataset in datasets}
        self.broken: list[str] = []

    def get(self, name: str) -> Dataset | None:
        return self.datasets.get(name)

    def all(self) -> Sequence[Dataset]:
        return [self.datasets[name] for name in sorted(self.datasets)]

    def unavailable(self) -> Sequence[str]:
        return sorted(self.broken)


class FakeRegistrar:
    """Attaches any document that has a name; remembers what it was given."""

    def __init__(self, catalogue: FakeCatalogue) -> None:
        self.catalogue = catalogue
        self.given: list[Any] = []

    def register(
        self, document: Mapping[str, Any], *, actor: str, name: str | None = None, replaces: str | None = EITHER
    ) -> Dataset:
        if name is not None and document.get("dataset") != name:
            raise OtherName(name)
        served = self.catalogue.datasets.get(str(document.get("dataset")))
        tag = None if served is None else version_tag(served.policy_version, served.data_version)
        if replaces not in (EITHER, tag):
            raise NotReplaced(str(document.get("dataset")), tag)
        self.given.append(document)
        if "tables" not in document:
            raise DatasetRefused(
                [
                    Finding("dataset_refused", "there are no tables", "A dataset has tables.", field="tables"),
                    Finding("dataset_refused", "there is no unit", "A dataset has a unit.", field="privacy_unit"),
                ]
            )
        dataset = clinic(str(document["dataset"]))
        self.catalogue.datasets[dataset.name] = dataset
        return dataset

    def register_file(
        self, path: str, *, actor: str, name: str | None = None, replaces: str | None = EITHER
    ) -> Dataset:
        document = {"dataset": path.rpartition(".")[0], "tables": {}}
        return self.register(document, actor=actor, name=name, replaces=replaces)

    def remove(self, name: str, *, actor: str, replaces: str = EITHER) -> None:
        served = self.catalogue.datasets.get(name)
        if served is None:
            raise NotThere(name)
        tag = version_tag(served.policy_version, served.data_version)
        if replaces not in (EITHER, "*", tag):
            raise NotReplaced(name, tag)
        del self.catalogue.datasets[name]


class FakeBatches:
    """A server without batches: none can be made, so none is found."""

    def estimate(self, asked: AskedBatch) -> tuple[Choice, Mapping[str, object]]:
        raise Problem("unavailable", what="this fake estimates no batches")

    def admit(self, asked: AskedBatch) -> Admitted:
        raise Problem("unavailable", what="this fake answers no batches")

    def texts(self, row: BatchRow) -> tuple[str, ...] | None:
        return None

    def rows(self, row: BatchRow, record: QueryRecord) -> tuple[CountRow, ...] | None:
        return None


class FakeResources:
    """A server in which nothing waits: nothing can be cancelled."""

    def abandon(self, begun: AdmittedQuery) -> None:
        raise AssertionError("nothing was begun")

    def cancel(self, identifier: str) -> QueryStatus | None:
        return None

    def cancel_all(self, principals: Collection[str]) -> int:
        return 0


class FakeMonitors:
    """A server without monitors: none can be opened, so none is found."""

    def estimate(self, request: OpenMonitor) -> Mapping[str, object]:
        raise Problem("unavailable", what="this fake opens no monitors")

    def open(self, request: OpenMonitor) -> Settled | InFlight:
        raise Problem("unavailable", what="this fake opens no monitors")

    def begin(self, row: MonitorRow, request: EvaluateMonitor, *, again: bool = True) -> Evaluated | Evaluation:
        raise Problem("unavailable", what="this fake evaluates no monitors")

    def complete(self, begun: Evaluation) -> Evaluated:
        raise Problem("unavailable", what="this fake evaluates no monitors")

    def question_of(self, row: MonitorRow) -> tuple[str, str] | None:
        return None


class FakeWebhooks:
    """A server without webhooks: none can be added, so none is found."""

    def add(self, request: AddWebhook) -> tuple[WebhookRow, str]:
        raise Problem("unavailable", what="this fake adds no webhooks")

    def url_of(self, row: WebhookRow) -> str | None:
        return None

    def test(self, row: WebhookRow, *, at: str) -> None:
        raise Problem("unavailable", what="this fake sends nothing")


class FakeStreams:
    """A server without streams: none can be opened, so none is found."""

    def estimate(self, request: OpenStream) -> Mapping[str, object]:
        raise Problem("unavailable", what="this fake opens no streams")

    def open(self, request: OpenStream) -> Settled | InFlight:
        raise Problem("unavailable", what="this fake opens no streams")

    def begin(self, row: StreamRow, asked: AskStream, *, by: str) -> tuple[Told, ...] | StreamQuestion:
        raise Problem("unavailable", what="this fake answers no streams")

    def complete(self, begun: StreamQuestion) -> tuple[Told, ...]:
        raise Problem("unavailable", what="this fake answers no streams")

    def standing(self, row: StreamRow, terms: StreamTerms) -> Standing:
        return Standing(comparing=True)

    def close(self, row: StreamRow, *, actor: str) -> None:
        raise Problem("unavailable", what="this fake closes no streams")

    def open_to(self, row: StreamRow, dataset: Dataset) -> bool:
        return False

    def beside(self, dataset: Dataset) -> Sequence[Mapping[str, object]]:
        return ()

    def frame_for(self, row: StreamRow) -> Frame | None:
        return None


class FakeModels:
    """A server without models: none can be fitted, so none is found."""

    def estimate(self, request: TrainModel) -> Mapping[str, object]:
        raise Problem("unavailable", what="this fake fits no models")

    def admit(self, request: TrainModel) -> Settled | InFlight | ToTrain:
        raise Problem("unavailable", what="this fake fits no models")

    def complete(self, model: ToTrain) -> bytes:
        raise Problem("unavailable", what="this fake fits no models")


class FakeStatistics:
    """A server without registered statistics: none can be asked, so none is listed."""

    def listed(self, dataset: Dataset, *, trusted: bool) -> list[dict[str, Json]]:
        return []

    def estimate(self, request: AskStatistic) -> Mapping[str, object]:
        raise Problem("unavailable", what="this fake asks no statistics")

    def admit(self, request: AskStatistic) -> Settled | InFlight | ToAsk:
        raise Problem("unavailable", what="this fake asks no statistics")

    def complete(self, asked: ToAsk) -> bytes:
        raise Problem("unavailable", what="this fake asks no statistics")


class FakeSynthetic:
    """A server without synthetic tables: none can be made, so none is found."""

    def estimate(self, request: MakeSynthetic) -> dict[str, Any]:
        raise Problem("unavailable", what="this fake estimates no synthetic tables")

    def admit(self, request: MakeSynthetic) -> Settled | InFlight | ToDraw:
        raise Problem("unavailable", what="this fake makes no synthetic tables")

    def complete(self, table: ToDraw) -> bytes:
        raise Problem("unavailable", what="this fake makes no synthetic tables")

    def cancel(self, row: SyntheticRow) -> QueryStatus | None:
        return None

    def close(self, row: SyntheticRow, *, actor: str) -> None:
        raise Problem("unavailable", what="this fake closes no synthetic tables")

    def readable(self, row: SyntheticRow, dataset: Dataset, principal: str) -> bool:
        return False

    def beside(self, dataset: Dataset, principal: str) -> Dataset:
        return dataset


class FakeProfiles:
    """Profiles in a dictionary. The act says what it was asked, and publishes it."""

    def __init__(self) -> None:
        self.made: dict[str, Any] = {}
        self.refusal: ActRefused | None = None

    def of(self, dataset: Dataset) -> Any:
        return self.made.get(dataset.name)

    def make(self, request: ProfileDataset, *, actor: str) -> Any:
        if self.refusal is not None:
            raise self.refusal
        self.made[request.dataset] = {
            "query": "q_1",
            "data_version": "d1",
            "created": "2026-01-01T00:00:00+00:00",
            "epsilon": str(request.epsilon),
            "noise": "gaussian",
            "confidence": "0.95",
            "tables": [],
        }
        return self.made[request.dataset]


class FakeJourney:
    """Reserves on the ledger like the real one. Words in the text choose what happens."""

    def __init__(self, ledger: Ledger, catalogue: FakeCatalogue) -> None:
        self.ledger = ledger
        self.catalogue = catalogue
        self.asked: list[Question] = []
        self.completed = 0
        self.gate = threading.Event()
        self.admit_error: BaseException | None = None
        self.cancelled: set[str] = set()
        self.estimated: dict[str, Any] = {}
        self.table: dict[str, Any] = {
            "columns": [{"name": "n", "type": "BIGINT", "kind": "released"}],
            "rows": [[1]],
            "standard_errors": [[2.8]],
            "lows": [[-4]],
            "highs": [[6]],
        }
        self.release_body = b'{"rows":1}'

    def estimate(self, question: Question) -> dict[str, Any]:
        self.asked.append(question)
        if self.catalogue.get(question.dataset) is None:
            raise Refused([Finding("unknown_dataset", "there is no such dataset", "It does not exist for you.")])
        price = {"epsilon": "0.1", "delta": "0"}
        body = {"verdict": "answered", "price": price, "warnings": [], "families": [], "refusal": None}
        return {**body, **self.estimated}

    def sharpen(self, query_id: str, better: Question) -> Settled | InFlight | FakeAdmitted:
        raise Refused([Finding("text_not_kept", "this fake keeps no texts", "It keeps none.", ("ask again",))])

    def admit(self, question: Question) -> Settled | InFlight | FakeAdmitted:
        self.asked.append(question)
        if self.admit_error is not None:
            raise self.admit_error
        accounts = self.ledger.accounts(dataset=question.dataset, principal=question.principal)
        if self.catalogue.get(question.dataset) is None or not accounts:
            raise Refused([Finding("unknown_dataset", "there is no such dataset", "It does not exist for you.")])
        if "unreadable" in question.sql:
            position = Position(line=1, column=8, text="unreadable")
            raise Refused([Finding("parse_error", "the text cannot be read", "It is no SQL.", position=position)])
        if "secret_column" in question.sql:
            raise Refused(
                [
                    Finding("unknown_column", "column one is not there", "Not in the table.", ("use age",)),
                    Finding("column_without_bounds", "SUM is refused", "No bounds.", ("use COUNT(*)",)),
                ]
            )
        epsilon = question.epsilon or Fraction(1, 10)
        core = CoreCharge(
            core_key=hashlib.sha256(question.sql.encode()).hexdigest(),
            quality=epsilon,
            events=(LaplaceEvent(l1_sensitivity=Fraction(1), scale=1 / epsilon),),
        )
        request = ReserveRequest(
            query_id=f"q_{secrets.token_hex(8)}",
            principal=question.principal,
            account=question.account if question.envelope and question.account else accounts[0].id,
            body_hash=question.body_hash,
            cores=(core,),
            idempotency_key=question.idempotency_key,
            reuse="none",
        )
        reserved = self.ledger.reserve(request)
        if not reserved.fresh:
            if reserved.answer is None and reserved.state != "reserved":
                raise ExecutionFailed(started=reserved.state != "failed_void")
            return (
                InFlight(reserved.query_id) if reserved.answer is None else Settled(reserved.query_id, reserved.answer)
            )
        return FakeAdmitted(reserved.query_id, request=request, question=question)

    def complete(self, admitted: FakeAdmitted) -> bytes:
        assert admitted.request is not None
        assert admitted.question is not None
        if "slow" in admitted.question.sql:
            self.gate.wait(20)
        if admitted.query_id in self.cancelled:
            self.ledger.void(admitted.query_id)
            raise ExecutionFailed(started=False)
        if "broken" in admitted.question.sql:
            self.ledger.fail(admitted.query_id)
            raise ExecutionFailed
        if "crash" in admitted.question.sql:
            raise RuntimeError(f"could not convert {SECRET_LITERAL}")
        release_id = f"r_{secrets.token_hex(8)}"
        answer = json.dumps(
            {
                "id": admitted.query_id,
                "status": "settled",
                **self.table,
                "confidence": 0.95,
                "warnings": [],
                "accounting": {"charged": [], "reused": False, "remaining": {"epsilon": "1", "delta": "0"}},
                "provenance": {"releases": [release_id], "policy_version": 1, "data_version": "d1"},
            }
        ).encode()
        core = admitted.request.cores[0]
        release = StoredRelease(
            id=release_id,
            core_key=core.core_key,
            quality=core.quality,
            principal=admitted.request.principal,
            dataset=admitted.question.dataset,
            query_id=admitted.query_id,
            events=core.events,
            body=self.release_body,
        )
        self.completed += 1
        self.ledger.post(admitted.query_id, [release], answer)
        return answer

    def abandon(self, admitted: FakeAdmitted) -> None:
        self.ledger.void(admitted.query_id)

    def cancel_all(self, principals: Collection[str]) -> int:
        self.cancelled |= set(principals)
        return 1

    def cancel(self, query_id: str, principal: str) -> str:
        self.cancelled.add(query_id)
        return "failed_void"


_DOCUMENTS: list[dict[str, Any]] = []


def _document(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI document, made once: it is the same for every application."""
    if not _DOCUMENTS:
        _DOCUMENTS.append(app.openapi())
    return _DOCUMENTS[0]


@functools.cache
def _validator(schema: str) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator({**json.loads(schema), "components": _DOCUMENTS[0]["components"]})


def check_words(body: Mapping[str, Any]) -> None:
    """No problem leaves its reader without a reason or a next step."""
    for part in (body, *body["findings"]):
        assert part["what"], body
        assert part["why"], body
        assert part["instead"], body
        assert all(isinstance(line, str) and line for line in part["instead"]), body
    assert body["title"], body
    assert body["detail"], body


class Api:
    """A synchronous client of one application; `key` is sent as the bearer."""

    def __init__(self, app: FastAPI, runner: asyncio.Runner, keys: Mapping[str, str]) -> None:
        self.app = app
        self.keys = keys
        self._runner = runner
        self._document = _document(app)
        self._client = httpx.AsyncClient(
            transport=httpx.ASGITransport(app, raise_app_exceptions=True), base_url="http://localhost"
        )

    def call(self, method: str, path: str, *, who: str | None = "analyst", **arguments: Any) -> httpx.Response:
        """One request as the principal `who` (None: without a key)."""
        return self._runner.run(self._call(method, path, who, arguments))

    def calls(self, *requests: tuple[str, str, str | None, dict[str, Any]]) -> list[httpx.Response]:
        """Several requests at the same time."""

        async def all_of_them() -> list[httpx.Response]:
            return list(await asyncio.gather(*(self._call(*request) for request in requests)))

        return self._runner.run(all_of_them())

    async def _call(self, method: str, path: str, who: str | None, arguments: dict[str, Any]) -> httpx.Response:
        headers = dict(arguments.pop("headers", {}))
        if who is not None:
            headers["Authorization"] = f"Bearer {self.keys[who]}"
        response = await self._client.request(method, path, headers=headers, **arguments)
        self._check(method, path, response)
        return response

    def _check(self, method: str, path: str, response: httpx.Response) -> None:
        """Every response is described by the OpenAPI document: its status, its media type and its shape."""
        if method == "HEAD":
            # The answer to the GET, without its body: nothing else to describe.
            assert response.content == b""
            return
        scope = {"type": "http", "method": method, "path": path.split("?")[0], "root_path": "", "headers": []}
        route = next((item for item in self.app.routes if item.matches(scope)[0] is Match.FULL), None)
        schema = {"$ref": "#/components/schemas/ProblemAnswer"}
        media_type = response.headers.get("content-type", "").split(";")[0]
        if isinstance(route, APIRoute):
            described = self._document["paths"][route.path_format][method.lower()]["responses"]
            content = described[str(response.status_code)].get("content", {})
            if not response.content:
                assert content == {}
                return
            schema = content[media_type]["schema"]
        if media_type in ("application/json", "application/problem+json"):
            _validator(json.dumps(schema)).validate(response.json())
        if response.status_code >= 400:
            assert media_type == "application/problem+json" or response.status_code == 503
            assert "charged" in response.json() or response.status_code == 503
        if media_type == "application/problem+json":
            check_words(response.json())

    def get(self, path: str, **arguments: Any) -> httpx.Response:
        return self.call("GET", path, **arguments)

    def post(self, path: str, **arguments: Any) -> httpx.Response:
        return self.call("POST", path, **arguments)

    def close(self) -> None:
        self._runner.run(self._client.aclose())


def query(sql: str = "SELECT COUNT(*) FROM patients", **more: Any) -> dict[str, Any]:
    """A query's body."""
    return {"dataset": "clinic", "sql": sql, "spend": {"epsilon": "0.5"}, **more}
