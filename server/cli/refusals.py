"""Refused administrative acts as messages of a command."""

from __future__ import annotations

from collections.abc import Sequence

from privacy.refusal import Finding
from server.administration.profile_refusals import UnpricedProfile
from server.administration.refusal import ActRefused, FaultyDataset, Refusal
from server.cli.failure import CommandFailed, UsageError
from server.datasets import DatasetFileRefused

__all__ = ["failure_of"]

_COMMANDS = {
    "account": "--account",
    "approximate": "--filter approximate",
    "attach": "noisegate dataset add FILE",
    "budgets": "noisegate budget show",
    "budgets_of": "noisegate budget show --dataset {it.dataset}",
    "change_account": "--account {it.account}",
    "change_other": "noisegate budget set without --account",
    "change_root": "noisegate budget set without --principal and --parent",
    "change_root_of": "noisegate budget set --dataset {it.dataset} --epsilon MORE --delta D --reason WHY",
    "create_admin": "noisegate key create NAME --role admin",
    "create_key": "noisegate key create {it.name} --role analyst",
    "delta": "--delta",
    "describe": "noisegate describe {it.dataset}",
    "filter": "--filter",
    "idempotency_key": "--idempotency-key",
    "keys": "noisegate key list",
    "less": "--epsilon",
    "open_root_of": "noisegate budget set --dataset {it.dataset} --epsilon 20 --delta 0.00001",
    "open_root": "noisegate budget set --dataset {it.dataset} --epsilon {it.epsilon} --delta {it.delta}",
    "pure": "--filter pure",
    "reason": '--reason "why it changes"',
    "replace_dataset": "See: noisegate dataset list, and repeat the command to replace it",
    "request": "command",
    "reread_account": "See: noisegate budget show, and repeat the command if it is still meant",
    "reread_dataset": "See: noisegate dataset list, and repeat the command if it is still meant",
    "role": "--role",
    "small_delta": "--delta 0.000001",
}
"""What the words of refusals call options and commands."""


def failure_of(refused: Exception | Refusal) -> CommandFailed:
    """The message of a refused act, or of a dataset file with errors. Nothing was changed."""
    if isinstance(refused, DatasetFileRefused):
        return _findings_failure(refused.errors)
    refusal = refused.refusal if isinstance(refused, ActRefused) else refused
    if isinstance(refusal, FaultyDataset):
        return _findings_failure(refusal.findings)
    if isinstance(refusal, UnpricedProfile):
        return CommandFailed(refusal.findings[0])
    assert isinstance(refusal, Refusal)
    return (UsageError if refusal.usage else CommandFailed)(refusal.finding(_COMMANDS))


def _findings_failure(findings: Sequence[Finding]) -> CommandFailed:
    """The message about a dataset that is not attached."""
    count = "1 finding" if len(findings) == 1 else f"{len(findings)} findings"
    reasons = [
        f"{found.what}{f' ({found.field})' if found.field and found.field not in found.what else ''}: {found.why}"
        for found in findings
    ]
    advice = dict.fromkeys(line for found in findings for line in found.instead)
    advised = (*advice, "What is served stays as it was.")
    return CommandFailed(
        Finding(findings[0].code, f"the dataset is not attached: {count}", "\n".join(reasons), advised)
    )
