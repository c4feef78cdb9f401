"""`noisegate key` and `noisegate budget`: who may ask, how much may be spent, and how much was."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from accountant.filter import DELTA_MAX, EPSILON_MAX, DeltaShares, FilterKind
from server.cli.budget_windows import statement_lines
from server.cli.client import Remote
from server.cli.failure import CommandFailed, UsageError
from server.cli.options import Here, amount, operator, option
from server.cli.output import Json, as_typed, printable, progress, short, table
from server.roles import Role

if TYPE_CHECKING:
    from accountant.ledger import Ledger
    from server.administration.budgets import Budgets
    from server.home import Home
    from server.settings import Settings
    from server.store.registry import Registry

__all__ = [
    "accept_secret",
    "budget_table",
    "create_key",
    "list_keys",
    "revoke_key",
    "rotate_key",
    "rotate_secret",
    "set_budget",
    "show_budgets",
]

_ONCE = option("--idempotency-key TEXT", "The same text carries the same command out once, for 30 days.")


# Keys

_REASON_MAX = 128
_UNREADABLE = (
    "Earlier monitors, streams, batches and webhooks cannot be read any more; what they were charged stays charged."
)


def create_key(
    *,
    name: str = option("NAME", "Principal: small letters, digits, _ . -"),
    role: Role | None = option("--role", "Role of a principal that does not exist yet. Default: analyst."),
    days: int | None = option("--days", "Life of the key in days. Default: 365.", min=1, max=3650),
    label: str = option("--label", "A note that is shown in lists.", ""),
    scopes: str | None = option("--scopes LIST", "What the key may be used for: read,ask. Default: all of its role."),
    idempotency_key: str | None = _ONCE,
    here: Here,
) -> None:
    """Make an API key, and its principal when there is none of that name."""
    from server.administration.people import GrantKey, People

    wanted = GrantKey(name, role, label, days, None if scopes is None else tuple(scopes.split(",")))
    with here.place().opened() as (settings, _, registry):
        people = People(registry, settings.key_days)

        def grant() -> Json:
            granted = people.grant_key(wanted, actor=operator())
            return {**asdict(granted.made.key), "role": granted.principal.role, "key": granted.made.text}

        asked = {"command": "key create", **asdict(wanted)}
        made = _carry_out(registry, idempotency_key, asked, grant, unkept="key")
    text = f"\n  {made['key']}\n\nIt is shown once and is not stored."
    if made["key"] is None:
        text = "It was made when this command ran before. Its text was shown then and is not stored."
    lines = [f'Key {made["id"]} for "{name}" ({made["role"]}), valid until {made["expires"][:10]}:', text]
    lines += ["Revoke it with:", f"  noisegate key revoke {made['id']}"]
    if made["role"] in ("analyst", "owner"):
        lines += ["An analyst also needs a budget:"]
        lines += [f"  noisegate budget set --dataset NAME --principal {name} --epsilon 5 --delta 0.000001"]
    here.show(made, lines)


def rotate_key(
    *,
    key: str = option("ID", "Identifier of the key, as `key list` shows it."),
    grace_minutes: int = option("--grace-minutes", "For how long the secret before works too. 0 stops it.", 0, min=0),
    days: int | None = option("--days", "A new life from now on. Default: the old expiry.", min=1, max=3650),
    here: Here,
) -> None:
    """Give an API key a new secret: the same key and scopes under a new text."""
    from server.administration.people import People, RotateKey

    with here.place().opened() as (settings, _, registry):
        wanted = RotateKey(_identifier(key), grace_minutes, days)
        rotated = People(registry, settings.key_days).rotate_key(wanted, actor=operator())
    until = rotated.key.previous_until
    lines = [f'Key {rotated.key.id} of "{rotated.key.principal}", valid until {rotated.key.expires[:10]}:']
    lines += [f"\n  {rotated.text}\n\nIt is shown once and is not stored."]
    lines += ["The secret before has stopped." if until is None else f"The secret before works until {until}."]
    here.show({**asdict(rotated.key), "key": rotated.text}, lines)


def _identifier(text: str) -> str:
    """The identifier of a key, where its whole text is given too."""
    from server.store.api_keys import split_key

    parts = split_key(text)
    return text if parts is None else parts[0]


def accept_secret(
    *,
    reason: str = option("--reason TEXT", "Why the earlier secret is gone; kept in the log of acts.", ...),
    here: Here,
) -> None:
    """Go on without the secret that keys were hashed with: they are refused from now on, and made anew."""
    from server.opening import accept_secret as accept

    place = here.place()
    settings = place.settings()
    place.require(settings)
    if not 0 < len(reason.strip()) <= _REASON_MAX:
        raise UsageError(f"""--reason is not accepted
            It has between 1 and {_REASON_MAX} characters.
            Write why the earlier secret is gone.""")
    if not accept(settings, actor=operator(), reason=reason.strip()):
        raise CommandFailed("""there is nothing to accept
            The secret is the one that the keys of this database were hashed with.
            See: noisegate key list""")
    lines = ["Accepted. Earlier keys are refused; make new ones: noisegate key create NAME", _UNREADABLE]
    here.show({"accepted": True}, lines)


def rotate_secret(
    *,
    reason: str = option("--reason TEXT", "Why; kept among the acts.", ...),
    days: int = option("--days", "For how many days keys are accepted under the secret before.", 30, min=0, max=90),
    new_secret: Path | None = option("--new-secret FILE", "The new one, where key_secret is a setting."),
    rehearse: bool = option("--rehearse", "Try it on a copy, and change nothing.", False),
    here: Here,
) -> None:
    """Replace the secret that keys are hashed with, and encrypt everything anew. No server may run."""
    from server import rotating
    from server.cli.serving import take_home
    from server.settings import SettingsRefused
    from server.store.errors import NotAlone, TooManySecrets

    place = here.place()
    settings = place.settings()
    place.require_migrated(settings)  # which also ends a rotation that was interrupted
    if not 0 < len(reason.strip()) <= _REASON_MAX:
        raise UsageError(f"""--reason is not accepted
            It has between 1 and {_REASON_MAX} characters.
            Write why the secret is replaced.""")
    if rehearse:
        with progress("trying it on a copy"):
            done, ok = rotating.rehearse_rotation(settings, days=days)
        told = f"On a copy {done.sealed:,} things were encrypted anew, and {_left(done.unreadable)}."
        body = {**asdict(done), "ok": ok, "rehearsed": True}
        verdict = "The copy agrees with itself." if ok else "The copy does not agree with itself: noisegate audit"
        here.show(body, [told, verdict, "Nothing was changed."], failed=not ok)
        return
    try:
        with take_home(place, settings), progress("encrypting anew"):
            done = rotating.rotate_secret(
                settings, given=new_secret, days=days, actor=operator(), reason=reason.strip()
            )
    except SettingsRefused as error:
        raise UsageError(f"""the secret cannot be replaced like this
            {error}.
            See: noisegate key rotate-secret --help""") from None
    except NotAlone as error:
        raise CommandFailed(f"""another process has the database open: {printable(str(error))}
            It would go on with the secret before. One that was killed counts for half a minute more.
            Stop every server of this database, and run the command again.""") from None
    except TooManySecrets as error:
        raise CommandFailed(f"""keys are accepted under three earlier secrets already
            The time of the oldest is over at {error}.
            Wait until then.""") from None
    lines = [f"Replaced. {done.sealed:,} things were encrypted anew, and {_left(done.unreadable)}."]
    lines += [
        f"API keys are accepted as before until {done.until}; each is hashed with the new secret when it is used."
    ]
    if done.by_setting:
        lines += ["Set key_secret to the new one now: nothing starts with the one before."]
    lines += ["Take a backup: earlier ones hold the secret before, and go with it alone."]
    here.show({**asdict(done), "rehearsed": False}, lines)


def _left(unreadable: int) -> str:
    return f"{unreadable:,} could not be read before and are left as they were" if unreadable else "nothing was left"


def revoke_key(*, key: str = option("ID", "Identifier of the key, as `key list` shows it."), here: Here) -> None:
    """Revoke a key. It stops working with the next request; revoking twice changes nothing."""
    from server.administration.people import People

    with here.place().opened() as (settings, _, registry):
        revoked = People(registry, settings.key_days).revoke_key(_identifier(key), actor=operator())
    here.show(asdict(revoked), [f'Key {revoked.id} of "{revoked.principal}" is revoked since {revoked.revoked}.'])


def list_keys(*, principal: str | None = option("--principal NAME", "Of this one only."), here: Here) -> None:
    """List keys without their texts, which are not stored."""
    from server.administration.people import People

    with here.place().opened() as (settings, ledger, registry):
        if principal is not None:
            _budgets(ledger, registry, settings).require_principal(principal)
        found = People(registry, settings.key_days).keys(principal)
    rows = []
    for key, role in found:
        used, state = key.last_used_day or "never", f"revoked {key.revoked[:10]}" if key.revoked else ""
        scopes = "all" if key.scopes is None else ",".join(key.scopes)
        rows.append([key.id, key.principal, role, scopes, key.created[:10], key.expires[:10], used, state, key.label])
    shown = table(["id", "principal", "role", "scopes", "created", "expires", "last used", "state", "label"], rows)
    none = as_typed("There are no keys yet. Make one with: noisegate key create NAME --role analyst")
    here.show([{**asdict(key), "role": role} for key, role in found], [shown if found else none], verbatim=True)


# Budgets


def set_budget(
    *,
    dataset: str = option("--dataset NAME", "The dataset.", ...),
    epsilon: str = option("--epsilon E", "Limit of epsilon, an exact decimal.", ...),
    delta: str | None = option("--delta D", "Limit of delta, for instance 0.000001. Not for pure."),
    principal: str | None = option("--principal NAME", "Who may spend it. Without: the root, for all together."),
    kind: FilterKind | None = option("--filter", "How losses add up; chosen once. Default: approximate."),
    delta_shares: str | None = option("--delta-shares G,C,M,S", "Percent of delta, chosen once. Default: 70,7,8,15."),
    parent: str | None = option("--parent ID", "Account above. Default: the dataset's root."),
    account: str | None = option("--account ID", "Change exactly this account."),
    reason: str | None = option("--reason TEXT", "Needed to change a limit; the ledger keeps it."),
    idempotency_key: str | None = _ONCE,
    here: Here,
) -> None:
    """Open an account, or change the limit of one that exists. What was spent stays spent."""
    from privacy.numbers import ATTO, PICO
    from server.administration.budget_refusals import whose
    from server.administration.budgets import SetBudget, account_body

    place = here.place()
    exact_delta = None
    if delta is not None:
        exact_delta = amount(delta, option="--delta", maximum=DELTA_MAX, unit=ATTO, zero_allowed=True)
    wanted = SetBudget(
        dataset=dataset,
        epsilon=amount(epsilon, option="--epsilon", maximum=EPSILON_MAX, unit=PICO),
        delta=exact_delta,
        filter=kind,
        shares=None if delta_shares is None else _shares(delta_shares),
        principal=principal,
        parent=parent,
        account=account,
        reason=reason,
    )
    with place.opened() as (settings, ledger, registry):

        def set_limit() -> Json:
            done = _budgets(ledger, registry, settings).set(wanted, actor=operator())
            return {"result": done.outcome.value, **account_body(done.account)}

        asked = {name: None if value is None else str(value) for name, value in asdict(wanted).items()}
        done = _carry_out(registry, idempotency_key, {"command": "budget set", **asked}, set_limit)
        made = ledger.account(done["id"])
    lines = [
        f"Account {made.id} of dataset {made.dataset} is {done['result']}: {whose(made)}, {made.filter.value}.",
        budget_table([account_body(made)]),
    ]
    if made.parent is None and done["result"] == "opened":
        lines += ["Next, somebody who may ask:", "  noisegate key create NAME --role analyst"]
        lines += [f"  noisegate budget set --dataset {dataset} --principal NAME --epsilon E --delta D"]
    here.show(done, lines)


def _shares(text: str) -> DeltaShares:
    try:
        gaussian, concentrated, *mixed, groups = (int(part) for part in text.split(","))
        if len(mixed) > 1:
            raise ValueError
        return DeltaShares(gaussian=gaussian, concentrated=concentrated, mixed=sum(mixed), groups=groups)
    except ValueError:
        raise UsageError("""--delta-shares is not accepted
            Four whole percents that add up to 100: for Gaussian noise, for noise that is counted as concentrated,
            for Laplace and Gaussian noise together, and for showing groups that are not public. Of three the third
            is left away.
            Write for instance --delta-shares 70,7,8,15""") from None


def show_budgets(
    *,
    dataset: str | None = option("--dataset NAME", "Of this dataset only."),
    principal: str | None = option("--principal NAME", "Of this one only."),
    remote: Remote,
    here: Here,
) -> None:
    """Show limits, what is used and what remains. Running queries count as spent."""
    place = here.place()
    elsewhere = remote != Remote(None, None, None)
    if elsewhere:
        with remote.connect(place) as client:
            everything = client.get("/v1/budgets")["budgets"]
    else:
        everything = _in_ledger(place, dataset, principal)
    wanted = {"dataset": dataset, "principal": principal}
    found = [item for item in everything if all(value in (None, item[name]) for name, value in wanted.items())]
    lines = (
        [budget_table(found), *statement_lines(found)]
        if found
        else ["There is no budget of yours on this server. Ask an administrator."]
    )
    if found and not elsewhere:
        lines += ["The root bounds what all analysts of a dataset learn together; an account below is one analyst's."]
    elif not elsewhere:
        lines = [
            as_typed(f"""There is no budget here yet. Open the root, then one for each analyst:
  noisegate budget set --dataset {dataset or "NAME"} --epsilon 20 --delta 0.00001""")
        ]
    here.show(found, lines, verbatim=True)


def budget_table(budgets: Sequence[Json]) -> str:
    """Accounts as the API shows them: limits, what is used, and what remains; each farther in than the one above."""
    head = ["dataset", "whose", "filter", "epsilon", "delta", "used", "epsilon left", "delta left", "account"]
    level: dict[str, int] = {}
    for item in budgets:
        # A server of an earlier version does not say what is above.
        level[item["id"]] = level.get(item.get("parent") or "", -1) + 1
    return table(head, [_budget_row(item, level[item["id"]]) for item in budgets], right=range(3, 8))


def _budget_row(item: Json, level: int) -> list[str]:
    amounts = [short(item[part][name]) for part in ("limit", "remaining") for name in ("epsilon", "delta")]
    whose, used = item["principal"] or f"({item['name']})", f"{float(item['used_share']) * 100:.1f} %"
    account = f"{item['id']} (frozen)" if item.get("frozen") else item["id"]
    if item.get("expires"):
        account += f" (until {item['expires'][:10]})"
    return [item["dataset"], "  " * level + whose, item["filter"], *amounts[:2], used, *amounts[2:], account]


def _in_ledger(place: Home, dataset: str | None, principal: str | None) -> list[Json]:
    """Every account of the home, as the API shows them. Errors: CommandFailed for a name that is not known."""
    from accountant.account import tree_order
    from server.administration.budgets import account_body

    with place.opened() as (settings, ledger, registry):
        accounts = ledger.accounts()
        if dataset is not None and dataset not in {account.dataset for account in accounts}:
            _budgets(ledger, registry, settings).require_dataset(dataset)
        if principal is not None:
            _budgets(ledger, registry, settings).require_principal(principal)
    return [account_body(account) for account in tree_order(accounts)]


def _budgets(ledger: Ledger, registry: Registry, settings: Settings) -> Budgets:
    from server.administration.budgets import Budgets
    from server.administration.registered import RegisteredDatasets

    two = settings.raises_need_two
    return Budgets(ledger, registry, RegisteredDatasets(registry).names, raises_need_two=two)


# Commands that make something new each time, carried out once as HTTP does


def _carry_out(
    registry: Registry, key: str | None, request: Json, act: Callable[[], Json], *, unkept: str | None = None
) -> Json:
    """What `act` returns, or what it returned when the same request was carried out under the same key.

    `unkept` names a member that is not kept: it is None then. Errors: CommandFailed for a text that is not a key;
    ActRefused, those of `server.administration.once` too.
    """
    if key is None:
        return act()
    from server.administration.once import KEY_FORM, once
    from server.body import canonical_hash
    from server.store.replies import Reply

    if KEY_FORM.match(key) is None:
        raise UsageError("""--idempotency-key is not accepted
            It is one text of 1 to 200 visible ASCII characters.
            Use a fresh UUID for every new command.""")

    def kept(made: Json) -> Reply:
        return Reply(201, {}, json.dumps({**made, unkept: None} if unkept else made))

    done = once(registry, actor=operator(), key=key, request_hash=canonical_hash(request), act=act, kept=kept)
    earlier: Json = json.loads(done.body) if isinstance(done, Reply) else done
    return earlier
