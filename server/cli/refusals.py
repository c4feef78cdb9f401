"""Refused administrative acts as messages of a command."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from privacy.numbers import decimal_text
from privacy.wording import nearest
from server.administration import refusal as refused
from server.cli.failure import CommandFailed, usage_error
from server.datasets import DatasetFileRefused

if TYPE_CHECKING:
    from collections.abc import Sequence

    from accountant.account import Account
    from privacy.refusal import Finding

__all__ = ["failure_of", "failure_of_act", "whose"]


def failure_of(error: Exception) -> CommandFailed:
    """The message of a refused act, or of a dataset file with errors. Nothing was changed."""
    if isinstance(error, DatasetFileRefused):
        return _findings_failure(error.errors)
    assert isinstance(error, refused.ActRefused)
    return failure_of_act(error.refusal)


def failure_of_act(refusal: refused.Refusal) -> CommandFailed:
    """The message of a refused act. Nothing was changed."""
    if isinstance(refusal, refused.Absent):
        return _of_absent(refusal)
    if isinstance(refusal, refused.BudgetRefusal):
        return _of_budget(refusal)
    if isinstance(refusal, refused.PeopleRefusal):
        return _of_people(refusal)
    if isinstance(refusal, refused.DatasetRefusal):
        return _of_dataset(refusal)
    return _of_once(refusal)


def whose(account: Account) -> str:
    """Whom an account is for, in words."""
    if account.parent is None:
        return "the root (all analysts together)"
    return f'"{account.principal}"' if account.principal is not None else f'the group "{account.name}"'


def _findings_failure(findings: Sequence[Finding]) -> CommandFailed:
    """The message about a dataset that is not attached."""
    count = "1 finding" if len(findings) == 1 else f"{len(findings)} findings"
    reasons = [
        f"{found.what}{f' ({found.field})' if found.field and found.field not in found.what else ''}: {found.why}"
        for found in findings
    ]
    advice = dict.fromkeys(line for found in findings for line in found.instead)
    return CommandFailed(
        f"the dataset is not attached: {count}",
        why="\n".join(reasons),
        instead=[*advice, "What is served stays as it was."],
    )


def _of_absent(refusal: refused.Absent) -> CommandFailed:
    match refusal:
        case refused.NoDataset(name, known):
            near = nearest(name, known)
            return CommandFailed(
                f'there is no dataset "{name}"',
                why=f"Attached are: {', '.join(known)}." if known else "No dataset is attached yet.",
                instead=f'Did you mean "{near}"?' if near else "Attach one with: noisegate dataset add FILE",
            )
        case refused.NoPrincipal(name):
            return CommandFailed(
                f'there is no principal "{name}"',
                why="A budget belongs to somebody who can ask.",
                instead=f"Make it together with its key: noisegate key create {name} --role analyst",
            )
        case refused.NoKey(identifier):
            return CommandFailed(
                # A secret that was pasted with a typo is not repeated.
                "there is no such key" if identifier.startswith("ngk_") else f'there is no key "{identifier}"',
                why="No key of this home has this identifier.",
                instead="See: noisegate key list",
            )
        case refused.NoAccount(account, dataset):
            return CommandFailed(
                f'there is no account "{account}"' + ("" if dataset is None else f' of dataset "{dataset}"'),
                why="No account has this identifier.",
                instead="See: noisegate budget show",
            )
        case refused.NoParent(account, dataset):
            return CommandFailed(
                f'there is no account "{account}" of dataset "{dataset}"',
                why="The account above must belong to the same dataset.",
                instead=f"See: noisegate budget show --dataset {dataset}",
            )
        case _:
            assert_never(refusal)


def _of_budget(refusal: refused.BudgetRefusal) -> CommandFailed:
    match refusal:
        case refused.NoRoot(dataset, limit):
            epsilon, delta = decimal_text(limit.epsilon), decimal_text(limit.delta)
            return CommandFailed(
                f'could not open the account: dataset "{dataset}" has no root account yet',
                why="Only the root bounds what all analysts learn together, so you choose it first.",
                instead=(
                    "Open the root with a limit for everybody together (this one is for a single analyst), then "
                    "repeat:",
                    f"noisegate budget set --dataset {dataset} --epsilon {epsilon} --delta {delta}",
                ),
            )
        case refused.SecondRoot(dataset):
            return CommandFailed(
                f'could not open the account: dataset "{dataset}" has a root account',
                why="A second root would double what may be disclosed about the same people.",
                instead="Change its limit: noisegate budget set without --principal and --parent",
            )
        case refused.SecondAccount(account):
            return CommandFailed(
                "could not open the account: the principal has one below the same account",
                why="A second one would be a second limit for the same person.",
                instead=f"Change its limit: --account {account}",
            )
        case refused.AmbiguousAccount(dataset, principal, accounts):
            return CommandFailed(
                f'"{principal}" has {len(accounts)} accounts of dataset "{dataset}"',
                why="It is not clear which one is meant.",
                instead=[f"--account {account}" for account in accounts],
            )
        case refused.DeltaOfPure():
            return usage_error(
                "--delta is not accepted",
                why="A pure account has no delta.",
                instead=("Leave --delta away,", "or choose --filter approximate."),
            )
        case refused.DeltaNeeded(given):
            return usage_error(
                "--delta is not accepted" if given else "--delta is missing",
                why="An approximate account needs a delta above zero: the chance that its limit of epsilon may fail.",
                instead=(
                    "Use a delta far below 1 divided by the number of people, for instance --delta 0.000001,",
                    "or choose --filter pure (no Gaussian noise, groups must have public keys).",
                ),
            )
        case (
            refused.FilterFixed()
            | refused.ReasonNeeded()
            | refused.FrozenAccount()
            | refused.ChangedBudget()
            | refused.UnsuitableBudget()
            | refused.UnsuitableLimit()
        ):
            return _of_limit(refusal)
        case _:
            assert_never(refusal)


_OfLimit = (
    refused.FilterFixed | refused.ReasonNeeded | refused.FrozenAccount | refused.ChangedBudget
    | refused.UnsuitableBudget | refused.UnsuitableLimit
)  # fmt: skip


def _of_limit(refusal: _OfLimit) -> CommandFailed:
    match refusal:
        case refused.FilterFixed(account):
            return CommandFailed(
                f"could not change account {account.id}: its filter is {account.filter.value}",
                why="How losses add up is chosen once: what was spent was counted that way.",
                instead="Leave --filter away. Another filter needs another dataset.",
            )
        case refused.ReasonNeeded(account):
            delta = f" and delta {decimal_text(account.limit.delta)}" if account.limit.delta else ""
            limit = f"epsilon {decimal_text(account.limit.epsilon)}{delta}"
            return CommandFailed(
                f"account {account.id} exists with another limit",
                why=f"{whose(account)} of dataset {account.dataset} has {limit}. The ledger keeps why it changes.",
                instead='Repeat with: --reason "why it changes"',
            )
        case refused.FrozenAccount(identifier):
            return CommandFailed(
                f"could not change account {identifier}: it is frozen",
                why="It was a second account of one principal below one parent, and pays for nothing more.",
                instead="Change the one that pays: noisegate budget set without --account",
            )
        case refused.ChangedBudget(identifier):
            return CommandFailed(
                f"could not change account {identifier}: somebody else changed its limit just now",
                why="The change was made for the earlier limit.",
                instead="See: noisegate budget show, and repeat the command if it is still meant",
            )
        case refused.UnsuitableBudget(dataset, why):
            return CommandFailed(
                "could not open the account", why=f"{why}.", instead=f"See: noisegate budget show --dataset {dataset}"
            )
        case refused.UnsuitableLimit(_, why):
            return usage_error(
                "could not change the limit", why=f"{why}.", instead='Give a reason: --reason "why it changes"'
            )
        case _:
            assert_never(refusal)


def _of_people(refusal: refused.PeopleRefusal) -> CommandFailed:
    match refusal:
        case refused.NameInUse(name):
            return CommandFailed(
                f'there is a principal "{name}"',
                why="Names are kept forever, also of disabled principals: the ledger refers to them.",
                instead="Choose another name.",
            )
        case refused.OtherRole(name, role, wanted):
            return CommandFailed(
                f'could not make the key: "{name}" is {role}, not {wanted}',
                why="A principal has one role, and all its keys have that role.",
                instead=("Leave --role away,", "or choose another name for the other role."),
            )
        case refused.DisabledPrincipal(name):
            return CommandFailed(
                f'could not make the key: "{name}" is disabled',
                why="Keys of a disabled principal do not work.",
                instead=f"Enable it first: PATCH /v1/principals/{name} with an administrator's key.",
            )
        case refused.LastAdmin():
            return CommandFailed(
                "the last administrator cannot be disabled or lose the role",
                why="Nobody could administrate this server any more.",
                instead="Make another administrator first: noisegate key create NAME --role admin",
            )
        case refused.UnsuitablePrincipal(why) | refused.UnsuitableKey(why):
            return usage_error("could not make the key", why=f"{why}.", instead="See: noisegate key list")
        case _:
            assert_never(refusal)


def _of_dataset(refusal: refused.DatasetRefusal) -> CommandFailed:
    match refusal:
        case refused.FaultyDataset(findings):
            return _findings_failure(findings)
        case refused.ServedAlready(name) | refused.ChangedDataset(name):
            return CommandFailed(
                f"could not attach {name}: somebody else attached another version just now",
                why="This one was to replace what was served before. What is served now stays.",
                instead="See: noisegate dataset list, and repeat the command if it is still meant",
            )
        case refused.OtherDatasetName():
            return CommandFailed(
                "could not attach: the file describes a dataset of another name",
                why="It was to replace one of a certain name.",
                instead="Change the name in the file.",
            )
        case refused.StoredVersion():
            return CommandFailed(
                "cannot attach: this version of the dataset is stored with other contents",
                why="A version never changes, because releases and charges refer to it.",
                instead="Give the changed dataset another name.",
            )
        case _:
            assert_never(refusal)


def _of_once(refusal: refused.OnceRefusal) -> CommandFailed:
    match refusal:
        case refused.KeyUsed():
            return usage_error(
                "--idempotency-key was used before for another command",
                why="It stands for one command with one set of options.",
                instead="Choose a new one for a new command.",
            )
        case refused.OutcomeUnknown():
            return CommandFailed(
                "the command was run before under this --idempotency-key, and its outcome is not known",
                why="It is running, or it was ended in the middle. It is not carried out a second time.",
                instead="Look at what there is now. Then do what is missing with a new --idempotency-key.",
            )
        case _:
            assert_never(refusal)
