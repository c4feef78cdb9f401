"""Refused administrative acts as problem documents."""

from __future__ import annotations

from typing import assert_never

from server.administration.refusal import (
    Absent,
    AmbiguousAccount,
    BudgetRefusal,
    ChangedBudget,
    ChangedDataset,
    DatasetRefusal,
    DeltaNeeded,
    DeltaOfPure,
    DisabledPrincipal,
    FaultyDataset,
    FilterFixed,
    FrozenAccount,
    KeyUsed,
    LastAdmin,
    NameInUse,
    NoAccount,
    NoDataset,
    NoKey,
    NoParent,
    NoPrincipal,
    NoRoot,
    OnceRefusal,
    OtherDatasetName,
    OtherRole,
    OutcomeUnknown,
    PeopleRefusal,
    ReasonNeeded,
    Refusal,
    SecondAccount,
    SecondRoot,
    ServedAlready,
    StoredVersion,
    UnsuitableBudget,
    UnsuitableKey,
    UnsuitableLimit,
    UnsuitablePrincipal,
)
from server.errors import Problem
from server.preconditions import changed_meanwhile
from server.routes.common import not_found

__all__ = ["problem_of_act"]


def problem_of_act(refusal: Refusal) -> Problem:
    """The problem document of a refused act. Nothing was changed."""
    if isinstance(refusal, Absent):
        return not_found(_absent(refusal))
    if isinstance(refusal, BudgetRefusal):
        return _of_budget(refusal)
    if isinstance(refusal, PeopleRefusal):
        return _of_people(refusal)
    if isinstance(refusal, DatasetRefusal):
        return _of_dataset(refusal)
    return _of_once(refusal)


def _absent(refusal: Absent) -> str:
    match refusal:
        case NoDataset():
            return "dataset"
        case NoPrincipal():
            return "principal"
        case NoKey():
            return "key"
        case NoAccount():
            return "budget"
        case NoParent():
            return "parent budget of this dataset"
        case _:
            assert_never(refusal)


def _of_budget(refusal: BudgetRefusal) -> Problem:
    match refusal:
        case SecondRoot():
            return Problem(
                "conflict",
                what="the dataset has a root budget",
                why="A second root would double what may be disclosed about the same people.",
                instead=("Change the limit of the root with PATCH.", "Name a principal or a parent."),
            )
        case NoRoot():
            return Problem(
                "conflict",
                what="the dataset has no root budget",
                why="Only the root bounds what all analysts learn together, so it comes first.",
                instead=("Create it first: the same request without principal.",),
            )
        case SecondAccount(account):
            return Problem(
                "conflict",
                what="the principal has a budget below this parent",
                why="A second one would be a second limit for the same person.",
                instead=(f"Change its limit: PATCH /v1/budgets/{account}.",),
            )
        case AmbiguousAccount():
            return Problem(
                "conflict",
                what="the principal has several budgets of this dataset",
                why="It is not clear which one is meant.",
                instead=("Name one by its identifier: GET /v1/budgets lists them.",),
            )
        case DeltaOfPure():
            return Problem(
                "invalid_request",
                what='field "limit.delta" is not accepted',
                why="A pure account has no delta.",
                instead=('Leave limit.delta away, or choose the filter "approximate".',),
            )
        case DeltaNeeded():
            return Problem(
                "invalid_request",
                what='field "limit.delta" is not accepted',
                why="An approximate account needs a delta above zero.",
                instead=('Set limit.delta, for instance "0.000001", or choose the filter "pure".',),
            )
        case FilterFixed():
            return Problem(
                "conflict",
                what="the budget has another filter",
                why="How losses add up is chosen once: what was spent was counted that way.",
            )
        case ReasonNeeded():
            return Problem(
                "invalid_request",
                what='field "reason" is missing',
                why="The budget has another limit, and the ledger keeps why it changes.",
            )
        case FrozenAccount():
            return Problem(
                "conflict",
                what="the budget is frozen",
                why="Its principal has another one below the same parent, which is the one that pays.",
                instead=("Change the limit of that one: GET /v1/budgets lists it.",),
            )
        case ChangedBudget(account):
            return changed_meanwhile("budget", f"/v1/budgets/{account}")
        case UnsuitableBudget():
            return Problem(
                "conflict",
                what="the ledger does not accept this budget",
                why="The limit does not suit the filter, or the accounts are nested too deeply.",
            )
        case UnsuitableLimit():
            return Problem("conflict", what="the ledger does not accept this limit")
        case _:
            assert_never(refusal)


def _of_people(refusal: PeopleRefusal) -> Problem:
    match refusal:
        case NameInUse():
            return Problem(
                "conflict",
                what="there is a principal of this name",
                why="Names are kept forever, also of disabled principals: the ledger refers to them.",
                instead=("Choose another name.",),
            )
        case OtherRole():
            return Problem(
                "conflict",
                what="the principal has another role",
                why="A principal has one role, and all its keys have that role.",
            )
        case DisabledPrincipal(name):
            return Problem(
                "conflict",
                what="the principal is disabled",
                why="Keys of a disabled principal do not work.",
                instead=(f"Enable it first: PATCH /v1/principals/{name}.",),
            )
        case LastAdmin():
            return Problem(
                "conflict",
                what="the last administrator cannot be disabled or lose the role",
                why="Nobody could administrate this server any more.",
                instead=("Create another administrator first.",),
            )
        case UnsuitablePrincipal():
            return Problem("conflict", what="the registry does not accept this principal")
        case UnsuitableKey():
            return Problem(
                "conflict",
                what="the key cannot be created",
                why="The label has characters that cannot be printed, or the principal has 100 keys already.",
                instead=("Revoke keys that are not used.",),
            )
        case _:
            assert_never(refusal)


def _of_dataset(refusal: DatasetRefusal) -> Problem:
    match refusal:
        case FaultyDataset(findings):
            return Problem.of(findings)
        case ServedAlready(name, tag):
            return Problem(
                "conflict",
                what=f'dataset "{name}" is served already',
                why="POST attaches a new dataset. It does not replace one by accident.",
                instead=(
                    f"To replace it: PUT /v1/datasets/{name}.",
                    f'Or send the header If-Match: "{tag}", the ETag of GET /v1/datasets/{name}.',
                ),
            )
        case ChangedDataset(name):
            return changed_meanwhile("dataset", f"/v1/datasets/{name}")
        case OtherDatasetName():
            return Problem(
                "conflict",
                what="the dataset has another name than the address",
                instead=("Use the same name in both places.",),
            )
        case StoredVersion():
            return Problem(
                "conflict",
                what="this version of the dataset is stored with other contents",
                why="A version never changes: releases and charges refer to it.",
                instead=("Raise the version of the policy in the file.",),
            )
        case _:
            assert_never(refusal)


def _of_once(refusal: OnceRefusal) -> Problem:
    match refusal:
        case KeyUsed():
            return Problem(
                "idempotency_conflict",
                what="the Idempotency-Key was used before for another request",
                why="A key stands for one request.",
                instead=("Use a new key for a new request.", "Send the same request to get the stored answer."),
            )
        case OutcomeUnknown():
            return Problem(
                "conflict",
                what="the request was sent before, and its outcome is not known",
                why="It is being carried out, or the server stopped in the middle. It is not carried out a second "
                "time.",
                instead=("Read what there is now (GET). Then send what is missing with a new Idempotency-Key.",),
            )
        case _:
            assert_never(refusal)
