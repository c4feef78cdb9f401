"""Why an administrative act was not carried out: facts, and the one table of words for them.

    ActRefused     carries one `Refusal`; nothing was changed

Each refusal is a class: its fields are facts, its constants what is said of them. In the words `{it.name}` stands for a
fact, and `<name>` for what HTTP and the command line call differently: a field or an option, a route or a command.
`server.routes.refusals` and `server.cli.explaining` name these, and say the words in their form. Those of budgets are
in `budget_refusals.py`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from privacy.refusal import Finding
from privacy.wording import nearest
from server.roles import Role

__all__ = [
    "Absent",
    "ActRefused",
    "ChangedDataset",
    "DisabledPrincipal",
    "EndedKey",
    "FaultyDataset",
    "KeyUsed",
    "LastAdmin",
    "NameInUse",
    "NoDataset",
    "NoKey",
    "NoPrincipal",
    "OtherDatasetName",
    "OtherRole",
    "OutcomeUnknown",
    "Refusal",
    "ServedAlready",
    "StoredVersion",
    "UnsuitableKey",
    "UnsuitablePrincipal",
]

_NAMED = re.compile(r"<(\w+)>")


class Refusal:
    """One reason. `code` is the code of its problem over HTTP; `usage` says that the command was written wrongly."""

    __slots__ = ()

    code: ClassVar[str] = "conflict"
    usage: ClassVar[bool] = False
    what: ClassVar[str]
    why: ClassVar[str]
    instead: ClassVar[str]  # one line of advice in each line

    def finding(self, names: Mapping[str, str]) -> Finding:
        """The words for it; `names` is what this side calls things, in which `{it.name}` stands for a fact too."""

        def said(words: str) -> str:
            # The names come first: what a fact says is text, whatever it holds.
            return _NAMED.sub(lambda match: names[match[1]], words).format(it=self)

        advice = filter(None, said(self.instead).splitlines())
        return Finding(self.code, said(self.what), said(self.why), tuple(advice))


class ActRefused(Exception):
    """An administrative act that was not carried out, with the reason."""

    def __init__(self, refusal: Refusal) -> None:
        self.refusal = refusal
        super().__init__(type(refusal).__name__)


# What is not there


class Absent(Refusal):
    """Something that is named and is not there. HTTP says no more than `thing`: it may belong to others."""

    __slots__ = ()

    code = "not_found"
    thing: ClassVar[str]


@dataclass(frozen=True, slots=True)
class NoDataset(Absent):
    """No dataset of that name is served; `known` are the ones that are."""

    name: str
    known: tuple[str, ...]

    thing = "dataset"
    what = 'there is no dataset "{it.name}"'
    why = "{it.attached}"
    instead = "{it.near}\nAttach one with: <attach>"

    @property
    def attached(self) -> str:
        """The datasets that are there."""
        return f"Attached are: {', '.join(self.known)}." if self.known else "No dataset is attached yet."

    @property
    def near(self) -> str:
        """The dataset that may be meant, or nothing."""
        near = nearest(self.name, self.known)
        return f'Did you mean "{near}"?' if near else ""


@dataclass(frozen=True, slots=True)
class NoPrincipal(Absent):
    """There is no principal of that name."""

    name: str

    thing = "principal"
    what = 'there is no principal "{it.name}"'
    why = "A budget belongs to somebody who can ask."
    instead = "Make it together with its key: <create_key>"


@dataclass(frozen=True, slots=True)
class NoKey(Absent):
    """There is no key of that identifier."""

    id: str

    thing = "key"
    what = "there is no {it.named}"
    why = "No key of this home has this identifier."
    instead = "See: <keys>"

    @property
    def named(self) -> str:
        """The key that was asked for. A secret that was pasted with a typo is not repeated."""
        return "such key" if self.id.startswith("ngk_") else f'key "{self.id}"'


# People


@dataclass(frozen=True, slots=True)
class NameInUse(Refusal):
    """There is a principal of this name. Names are kept forever."""

    name: str

    what = 'there is a principal "{it.name}"'
    why = "Names are kept forever, also of disabled principals: the ledger refers to them."
    instead = "Choose another name."


@dataclass(frozen=True, slots=True)
class OtherRole(Refusal):
    """The principal has `role`, and a key of the role `wanted` was asked for."""

    name: str
    role: Role
    wanted: Role

    what = 'could not make the key: "{it.name}" is {it.role.value}, not {it.wanted.value}'
    why = "A principal has one role, and all its keys have that role."
    instead = "Leave <role> away,\nor choose another name for the other role."


@dataclass(frozen=True, slots=True)
class DisabledPrincipal(Refusal):
    """The principal is disabled: a key of it would not work."""

    name: str

    what = 'could not make the key: "{it.name}" is disabled'
    why = "Keys of a disabled principal do not work."
    instead = "Enable it first: PATCH /v1/principals/{it.name} with an administrator's key."


@dataclass(frozen=True, slots=True)
class EndedKey(Refusal):
    """The key is revoked or has expired: there is nothing to go on with."""

    id: str

    what = 'key "{it.id}" is revoked or has expired'
    why = "A new secret is for a key that still works."
    instead = "Make a new key: <new_key>"


@dataclass(frozen=True, slots=True)
class LastAdmin(Refusal):
    """Without this principal nobody could administer the server."""

    what = "the last administrator cannot be disabled or lose the role"
    why = "Nobody could administer this server any more."
    instead = "Make another administrator first: <create_admin>"


@dataclass(frozen=True, slots=True)
class UnsuitablePrincipal(Refusal):
    """The name or the role is not allowed; `rule` is the one that it breaks."""

    rule: str

    usage = True
    what = "could not make the principal"
    why = "{it.rule}."
    instead = "Choose another name."


@dataclass(frozen=True, slots=True)
class UnsuitableKey(Refusal):
    """The label, the lifetime, a scope, a grace or one more key is not allowed; `rule` is the one that it breaks."""

    rule: str

    usage = True
    what = "could not make the key or its secret"
    why = "{it.rule}."
    instead = "See: <keys>"


# Datasets


@dataclass(frozen=True, slots=True)
class FaultyDataset(Refusal):
    """The dataset file or its data contradict themselves; every finding at once, at least one, with its own words."""

    findings: tuple[Finding, ...]

    def __post_init__(self) -> None:
        assert self.findings, "a refusal says why"


@dataclass(frozen=True, slots=True)
class ServedAlready(Refusal):
    """A new dataset was to be attached, and one of this name is served, at the version `tag`."""

    name: str
    tag: str | None

    what = 'could not attach: dataset "{it.name}" is served already'
    why = "It was to be a new one, and what is served is not replaced by accident."
    instead = "<replace_dataset>"


@dataclass(frozen=True, slots=True)
class ChangedDataset(Refusal):
    """What is served is not the version that was to be replaced."""

    name: str

    code = "precondition_failed"
    what = 'could not change dataset "{it.name}": another version was attached, or it was removed, since it was read'
    why = "The change was meant for what was served before. Nothing was changed now."
    instead = "<reread_dataset>"


@dataclass(frozen=True, slots=True)
class OtherDatasetName(Refusal):
    """The file describes a dataset of another name than the one that was to be replaced."""

    what = "could not attach: the file describes a dataset of another name"
    why = "It was to replace one of a certain name."
    instead = "Change the name in the file."


@dataclass(frozen=True, slots=True)
class StoredVersion(Refusal):
    """This version of the dataset is stored with other contents, and versions never change."""

    what = "could not attach: this version of the dataset is stored with other contents"
    why = "A version never changes: releases and charges refer to it."
    instead = "Give the changed dataset another name."


# Acts that are carried out once


@dataclass(frozen=True, slots=True)
class KeyUsed(Refusal):
    """The idempotency key was used before for another request."""

    code = "idempotency_conflict"
    usage = True
    what = "<idempotency_key> was used before for another <request>"
    why = "It stands for one <request>, with all that belongs to it."
    instead = "Choose a new one for a new <request>.\nThe same <request> has the outcome that it had."


@dataclass(frozen=True, slots=True)
class OutcomeUnknown(Refusal):
    """The request was begun before under this key, and nobody knows what became of it."""

    what = "this <request> was begun before under its <idempotency_key>, and its outcome is not known"
    why = "It is being carried out, or it was ended in the middle. It is not carried out a second time."
    instead = "Look at what there is now. Then do what is missing with a new <idempotency_key>."
