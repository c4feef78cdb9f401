"""Datasets: public metadata for those who have an account, attaching and removing for administrators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Annotated

from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from privacy.bounds import AutomaticContribution, date_at, timestamp_at
from privacy.numbers import decimal_text
from privacy.policy import Column, ColumnType, Dataset, Table, key_as_json
from server.administration.budgets import root_of
from server.administration.datasets import AttachDataset, Document, ServedFile, attach, remove
from server.administration.profiles import ProfileDataset
from server.auth import Caller, roles, services_of
from server.floor import RUNS, epsilon_min
from server.once import ONCE_TEXT, once
from server.preconditions import if_match
from server.roles import OVERSEEING, Role
from server.routes.common import body_of, describe, identifier, in_thread, json_response, not_found
from server.routes.sight import visible_dataset
from server.services import Services
from server.store.versions import EITHER, version_tag
from server.wire.dataset_answers import (
    DatasetAnswer,
    DatasetList,
    ProfileAnswer,
    TableAnswer,
)
from server.wire.requests import DatasetBody, ProfileBody

__all__ = ["dataset_body", "floor_of", "router"]

router = APIRouter()

_BODY_EXAMPLES = {"file": {"path": "demo.yaml"}}


def _bound_text(kind: ColumnType, bound: Fraction) -> str:
    if kind is ColumnType.DATE:
        return date_at(bound).isoformat()
    return timestamp_at(bound).isoformat() if kind is ColumnType.TIMESTAMP else decimal_text(bound)


def _column(column: Column) -> dict[str, object]:
    bounds, keys = column.bounds, column.keys
    return {
        "name": column.name,
        "type": column.type.value,
        "nullable": column.nullable,
        "unique": column.unique,
        "bounds": None
        if bounds is None
        else {"lower": _bound_text(column.type, bounds.lower), "upper": _bound_text(column.type, bounds.upper)},
        "keys": None if keys is None else [key_as_json(value) for value in keys.values],
        "other": None if keys is None or keys.other is None else {"key": key_as_json(keys.other.value)},
        "description": column.description,
    }


def table_body(table: Table) -> dict[str, object]:
    """Public metadata of a table: what was declared, nothing that was counted."""
    return {
        "name": table.name,
        "description": table.description,
        "protected": table.protected,
        "key": table.key,
        "unit_column": table.unit_column,
        "references": [
            {"column": reference.column, "table": reference.table, "key": reference.key}
            for reference in table.references
        ],
        "contribution": _contribution(table),
        "columns": [_column(column) for column in table.columns],
    }


def _contribution(table: Table) -> dict[str, object] | None:
    """How much of one unit counts. `automatic`: of public groups the question chooses, and counts hold for others."""
    counted = table.counted
    if counted is None:
        return None
    return {
        "automatic": isinstance(table.contribution, AutomaticContribution),
        "rows_per_unit": counted.rows_per_unit,
        "groups_per_unit": counted.groups_per_unit,
        "rows_per_unit_and_group": counted.rows_per_unit_and_group,
    }


def floor_of(services: Services, dataset: Dataset) -> Fraction | None:
    """The least epsilon of the dataset's root that an answer takes which reads rows, declared or not.

    None where nothing is declared and there is no root yet: then nobody can ask.
    """
    if dataset.limits.epsilon_min is not None:
        return dataset.limits.epsilon_min
    root = root_of(services.ledger.accounts(space=dataset.space))
    return None if root is None else epsilon_min(dataset, root)


def limits_body(dataset: Dataset, *, floor: Fraction | None) -> dict[str, object]:
    """What one question may be and cost. `floor` is `floor_of`."""
    limits = dataset.limits
    return {
        "epsilon_default": decimal_text(limits.epsilon_default),
        "epsilon_max": decimal_text(limits.epsilon_max),
        "epsilon_min": None if floor is None else decimal_text(floor),
        "delta_per_query": decimal_text(limits.delta_per_query),
        "cells_max": limits.cells_max,
        "statistics_max": limits.statistics_max,
        "timeout_seconds": limits.timeout_seconds,
        "automatic_bounds": limits.automatic_bounds,
        "releases_shared": limits.releases_shared.value,
        "releases_shared_means": limits.releases_shared.said,
    }


def dataset_body(
    dataset: Dataset,
    *,
    floor: Fraction | None,
    profile: Mapping[str, object] | None,
    streams: Sequence[Mapping[str, object]],
) -> dict[str, object]:
    """Public metadata of a dataset. Never its source, and of its rows only the profile. `floor` is `floor_of`."""
    return {
        "name": dataset.name,
        "description": dataset.description,
        "privacy_unit": {"table": dataset.unit.table, "key": dataset.unit.key},
        "unit_space": dataset.space,
        "neighbouring": dataset.neighbouring.value,
        "policy_version": dataset.policy_version,
        "data_version": dataset.data_version,
        "limits": limits_body(dataset, floor=floor),
        "tables": [table_body(table) for table in dataset.tables],
        "profile": profile,
        "streams": streams,
        "links": {"self": f"/v1/datasets/{dataset.name}"},
    }


def _whole_body(services: Services, dataset: Dataset) -> dict[str, object]:
    """The dataset with what the ledger knows of it. Reads, so it is called on a thread."""
    streams, profile = services.streams.beside(dataset), services.profiles.of(dataset)
    return dataset_body(dataset, floor=floor_of(services, dataset), profile=profile, streams=streams)


def _etag(dataset: Dataset) -> str:
    return f'"{version_tag(dataset.policy_version, dataset.data_version)}"'


@router.get(
    "/v1/datasets",
    **describe(
        "listDatasets",
        "List datasets",
        "Those for which the caller has a budget; all for administrators and auditors. `unavailable` names those that "
        "cannot be served at the moment.",
        tag="Datasets",
        answers={200: (DatasetList, None)},
    ),
)
async def list_datasets(request: Request, caller: Annotated[Caller, Depends(roles(*Role))]) -> Response:
    """GET /v1/datasets."""
    services = services_of(request)
    accounts = await in_thread(lambda: services.ledger.accounts(principal=None if caller.oversees else caller.name))
    accounts = [account for account in accounts if account.expires is None]
    known = {account.dataset for account in accounts}
    shown = [dataset for dataset in services.catalogue.all() if caller.oversees or dataset.name in known]
    broken = [name for name in services.catalogue.unavailable() if caller.oversees or name in known]
    return json_response(
        {
            "datasets": [
                {
                    "name": dataset.name,
                    "description": dataset.description,
                    "tables": [table.name for table in dataset.tables],
                    "links": {"self": f"/v1/datasets/{dataset.name}"},
                }
                for dataset in shown
            ],
            "unavailable": broken,
        }
    )


@router.get(
    "/v1/datasets/{dataset}",
    **describe(
        "getDataset",
        "Read a dataset's public metadata",
        "Tables, columns, types, declared bounds and keys, limits per query, versions; synthetic tables that the "
        "caller may read are among them, and `streams` has those that everybody with a budget asks for nothing. "
        "Nothing is read from rows, except for `profile`: noisy figures about the data with error bars, null where the "
        "owner made none. "
        "`limits.epsilon_min` is the least epsilon of the dataset's root budget that an answer takes which reads rows: "
        f"the declared one, or the share that affords {RUNS:,} such answers; null while there is no budget.",
        tag="Datasets",
        answers={200: (DatasetAnswer, None)},
        headers={"ETag": "Tag of the version that is served."},
        problems=("not_found",),
    ),
)
async def get_dataset(
    request: Request,
    caller: Annotated[Caller, Depends(roles(*Role))],
    found: Annotated[Dataset, Depends(visible_dataset)],
) -> Response:
    """GET /v1/datasets/{dataset}."""
    services = services_of(request)
    body = await in_thread(lambda: _whole_body(services, services.synthetic.beside(found, caller.name)))
    return json_response(body, headers={"ETag": _etag(found)})


@router.get(
    "/v1/datasets/{dataset}/tables/{table}",
    **describe(
        "getTable",
        "Read a table's public metadata",
        "Columns, types, declared bounds and keys.",
        tag="Datasets",
        answers={200: (TableAnswer, None)},
        problems=("not_found",),
    ),
)
async def get_table(
    request: Request,
    caller: Annotated[Caller, Depends(roles(*Role))],
    dataset: Annotated[Dataset, Depends(visible_dataset)],
    table: str,
) -> Response:
    """GET /v1/datasets/{dataset}/tables/{table}."""
    services = services_of(request)
    found = await in_thread(lambda: services.synthetic.beside(dataset, caller.name).table(table))
    if found is None:
        raise not_found("table")
    return json_response(table_body(found))


def _source(body: DatasetBody) -> Document | ServedFile:
    if body.dataset is not None:
        return Document(body.dataset)
    assert body.path is not None
    return ServedFile(body.path)


@router.post(
    "/v1/datasets",
    **describe(
        "createDataset",
        "Attach a dataset",
        "Checks the description, builds an immutable snapshot of the data, and serves it. All findings come at once. "
        "A dataset that is served already is replaced only with its ETag in the header `If-Match`; otherwise 409. "
        + ONCE_TEXT,
        tag="Datasets",
        body=DatasetBody,
        body_examples=_BODY_EXAMPLES,
        answers={201: (DatasetAnswer, None)},
        headers={"Location": "Address of the dataset.", "ETag": "Tag of the version that is served."},
        problems=("dataset_refused", "conflict", "idempotency_conflict", "precondition_failed", "not_found"),
    ),
)
async def create_dataset(request: Request, caller: Annotated[Caller, Depends(roles(Role.ADMIN))]) -> Response:
    """POST /v1/datasets."""
    wanted = if_match(request)
    body, raw = await body_of(request, DatasetBody, large=True)
    services = services_of(request)
    attachment = AttachDataset(_source(body), replaces=wanted)

    def create() -> Response:
        dataset = attach(services.registrar, attachment, actor=caller.name)
        headers = {"Location": f"/v1/datasets/{dataset.name}", "ETag": _etag(dataset)}
        return json_response(_whole_body(services, dataset), status=201, headers=headers)

    return await once(request, caller, raw, create)


@router.put(
    "/v1/datasets/{dataset}",
    **describe(
        "replaceDataset",
        "Attach a new version of a dataset",
        "New data or a new policy for a dataset of this name. Its budgets stay what they are. With the header "
        "`If-Match` only when the version that is served has this ETag.",
        tag="Datasets",
        body=DatasetBody,
        body_examples=_BODY_EXAMPLES,
        answers={200: (DatasetAnswer, None)},
        headers={"ETag": "Tag of the version that is served."},
        problems=("dataset_refused", "conflict", "precondition_failed", "not_found"),
    ),
)
async def replace_dataset(
    request: Request, dataset: str, caller: Annotated[Caller, Depends(roles(Role.ADMIN))]
) -> Response:
    """PUT /v1/datasets/{dataset}."""
    name = identifier(dataset, "dataset")
    wanted = if_match(request)
    body, _ = await body_of(request, DatasetBody, large=True)
    services = services_of(request)
    attachment = AttachDataset(_source(body), name=name, replaces=EITHER if wanted is None else wanted)
    replaced = await in_thread(lambda: attach(services.registrar, attachment, actor=caller.name))
    changed = await in_thread(lambda: _whole_body(services, replaced))
    return json_response(changed, headers={"ETag": _etag(replaced)})


@router.delete(
    "/v1/datasets/{dataset}",
    **describe(
        "removeDataset",
        "Stop serving a dataset",
        "Its budgets, entries and releases stay: a dataset that comes back under this name finds what was spent. With "
        "the header `If-Match` only when the version that is served has this ETag.",
        tag="Datasets",
        answers={204: ("", None)},
        problems=("not_found", "precondition_failed"),
    ),
)
async def remove_dataset(
    request: Request, dataset: str, caller: Annotated[Caller, Depends(roles(Role.ADMIN))]
) -> Response:
    """DELETE /v1/datasets/{dataset}."""
    services = services_of(request)
    name = identifier(dataset, "dataset")
    wanted = if_match(request)
    replaces = EITHER if wanted is None else wanted
    await in_thread(
        lambda: remove(services.registrar, name, served=services.served, actor=caller.name, replaces=replaces)
    )
    return Response(status_code=204, headers={"Cache-Control": "no-store"})


@router.post(
    "/v1/datasets/{dataset}/profile",
    **describe(
        "profileDataset",
        "Make a private profile of the data",
        "Once for each version of the data: numbers of units and rows, shares of NULL, quantiles, sizes of declared "
        "keys, with noise. Charged on the dataset's root account, before a row is read; published with the dataset "
        "to everyone who may ask it. " + ONCE_TEXT,
        tag="Datasets",
        body=ProfileBody,
        body_examples={"tenth": {"epsilon": "0.1"}},
        answers={201: (ProfileAnswer, None)},
        headers={"Location": "Address of the dataset, which has the profile."},
        problems=(
            *("not_found", "conflict", "idempotency_conflict", "budget_exhausted", "policy_forbids"),
            *("accuracy_unreachable", "cannot_be_planned", "execution_failed"),
        ),
    ),
)
async def profile_dataset(
    request: Request, dataset: str, caller: Annotated[Caller, Depends(roles(Role.ADMIN))]
) -> Response:
    """POST /v1/datasets/{dataset}/profile."""
    name = identifier(dataset, "dataset")
    body, raw = await body_of(request, ProfileBody)
    services = services_of(request)
    wanted = ProfileDataset(name, body.epsilon)

    def create() -> Response:
        profile = services.profiles.make(wanted, actor=caller.name)
        return json_response(dict(profile), status=201, headers={"Location": f"/v1/datasets/{name}"})

    return await once(request, caller, raw, create)


@router.get(
    "/v1/datasets/{dataset}/versions",
    **describe(
        "listDatasetVersions",
        "List a dataset's versions",
        "Every version of policy and data that was attached, oldest first.",
        tag="Datasets",
        answers={200: ("application/json", None)},
        problems=("not_found",),
    ),
)
async def list_versions(
    request: Request, dataset: str, caller: Annotated[Caller, Depends(roles(*OVERSEEING))]
) -> Response:
    """GET /v1/datasets/{dataset}/versions."""
    registry = services_of(request).registry
    versions = await in_thread(lambda: registry.dataset_versions(identifier(dataset, "dataset")))
    if not versions:
        raise not_found("dataset")
    return json_response(
        {
            "versions": [
                {
                    "policy_version": version.policy_version,
                    "data_version": version.data_version,
                    "current": version.current,
                    "created": version.created,
                    "actor": version.actor,
                }
                for version in versions
            ]
        }
    )
