"""`noisegate budget`: how much may be told, and how much was."""

from __future__ import annotations

from enum import StrEnum
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any

import typer

from server.cli.failure import CommandFailed, usage_error
from server.cli.home import Home
from server.cli.options import (
    HomeOption,
    JsonOption,
    KeyFileOption,
    KeyOption,
    UrlOption,
    amount,
    default_home,
    operator,
)
from server.cli.output import print_json, say, short, table

if TYPE_CHECKING:
    from accountant.account import Account, Limit
    from accountant.ledger import Ledger
    from server.store.registry import Registry

__all__ = ["commands"]

commands = typer.Typer(
    name="budget",
    help="How much may be spent, and what has been.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


class Filter(StrEnum):
    """The filters of an account."""

    approximate = "approximate"
    pure = "pure"


@commands.command("set")
def set_budget(
    dataset: Annotated[str, typer.Option("--dataset", metavar="NAME", help="The dataset.")],
    epsilon: Annotated[str, typer.Option("--epsilon", metavar="E", help="Limit of epsilon, an exact decimal.")],
    delta: Annotated[
        str | None, typer.Option("--delta", metavar="D", help="Limit of delta, for instance 0.000001. Not for pure.")
    ] = None,
    principal: Annotated[
        str | None,
        typer.Option("--principal", metavar="NAME", help="Who may spend it. Without: the root, for all together."),
    ] = None,
    kind: Annotated[
        Filter | None,
        typer.Option("--filter", help="How losses add up; chosen once. Default: approximate."),
    ] = None,
    parent: Annotated[
        str | None, typer.Option("--parent", metavar="ID", help="Account above. Default: the dataset's root.")
    ] = None,
    account: Annotated[str | None, typer.Option("--account", metavar="ID", help="Change exactly this account.")] = None,
    reason: Annotated[
        str | None, typer.Option("--reason", metavar="TEXT", help="Needed to change a limit; the ledger keeps it.")
    ] = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Open an account, or change the limit of one that exists. What was spent stays spent.

    A dataset has one root account: the only limit that holds when analysts put their answers together. It comes first.

    \b
    examples
      noisegate budget set --dataset clinic --epsilon 20 --delta 0.00001
      noisegate budget set --dataset clinic --principal research --epsilon 5 --delta 0.000001
      noisegate budget set --dataset clinic --principal research --epsilon 8 --delta 0.000001 --reason "second phase"
    """
    place = Home(default_home(home))
    given = _amounts(epsilon, delta)
    with place.opened() as (_, ledger, registry):
        found = _find(ledger, dataset=dataset, principal=principal, parent=parent, account=account)
        if found is None:
            limit = _limit(given, pure=kind is Filter.pure, delta_given=delta is not None)
            made = _create(
                ledger, registry, dataset=dataset, principal=principal, kind=kind, parent=parent, limit=limit
            )
            told = "opened"
        else:
            made, told = _change(ledger, found, given=given, delta_given=delta is not None, kind=kind, reason=reason)
    if as_json:
        print_json({"result": told, **_body(made)})
        return
    say(f"Account {made.id} of dataset {made.dataset} is {told}: {_who(made)}, {made.filter.value}.")
    say(_account_table([made]))
    if made.parent is None and told == "opened":
        say("Next, somebody who may ask:")
        say("  noisegate key create NAME --role analyst")
        say(f"  noisegate budget set --dataset {dataset} --principal NAME --epsilon E --delta D")


@commands.command("show")
def show(
    dataset: Annotated[str | None, typer.Option("--dataset", metavar="NAME", help="Of this dataset only.")] = None,
    principal: Annotated[str | None, typer.Option("--principal", metavar="NAME", help="Of this one only.")] = None,
    url: UrlOption = None,
    key: KeyOption = None,
    key_file: KeyFileOption = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show limits, what is used and what remains. Running queries count as spent.

    With an address or a key it asks that server for your own budgets; without, it reads the ledger of the home.

    \b
    examples
      noisegate budget show
      noisegate budget show --dataset clinic --principal research --json
      NOISEGATE_URL=https://stats.example NOISEGATE_KEY=ngk_... noisegate budget show
    """
    if url is not None or key is not None or key_file is not None:
        from server.cli.remote import connect, show_remote_budgets

        with connect(home, url, key, key_file) as client:
            show_remote_budgets(client, dataset=dataset, principal=principal, as_json=as_json)
        return
    place = Home(default_home(home))
    with place.opened() as (_, ledger, registry):
        everything = ledger.accounts()
        if dataset is not None and dataset not in {item.dataset for item in everything}:
            _require_dataset(registry, dataset)
        if principal is not None and registry.principal(principal) is None:
            raise _unknown_principal(principal)
        found = [
            item
            for item in everything
            if dataset in (None, item.dataset) and (principal is None or item.principal == principal)
        ]
    if as_json:
        print_json([_body(item) for item in found])
    elif found:
        say(_account_table(found))
        say("The root bounds what all analysts of a dataset learn together; each account below it is one analyst's.")
    else:
        say("There is no budget here yet. Open the root, then one for each analyst:")
        say(f"  noisegate budget set --dataset {dataset or 'NAME'} --epsilon 20 --delta 0.00001")


# Steps


def _amounts(epsilon: str, delta: str | None) -> tuple[Fraction, Fraction]:
    from accountant.filter import DELTA_MAX, EPSILON_MAX
    from privacy.numbers import ATTO, PICO

    exact_epsilon = amount(epsilon, option="--epsilon", maximum=EPSILON_MAX, unit=PICO)
    exact_delta = Fraction(0)
    if delta is not None:
        exact_delta = amount(delta, option="--delta", maximum=DELTA_MAX, unit=ATTO, zero_allowed=True)
    return exact_epsilon, exact_delta


def _limit(given: tuple[Fraction, Fraction], *, pure: bool, delta_given: bool) -> Limit:
    from accountant.account import Limit

    epsilon, delta = given
    if pure and delta != 0:
        raise usage_error(
            "--delta is not accepted",
            why="A pure account has no delta.",
            instead=("Leave --delta away,", "or choose --filter approximate."),
        )
    if not pure and delta == 0:
        raise usage_error(
            "--delta is not accepted" if delta_given else "--delta is missing",
            why="An approximate account needs a delta above zero: the chance that its limit of epsilon may fail.",
            instead=("Use a delta far below 1 divided by the number of people, for instance --delta 0.000001,",
                     "or choose --filter pure (no Gaussian noise, groups must have public keys)."),
        )  # fmt: skip
    return Limit(epsilon, delta)


def _find(
    ledger: Ledger, *, dataset: str, principal: str | None, parent: str | None, account: str | None
) -> Account | None:
    """The account that is meant, None when it does not exist yet."""
    accounts = ledger.accounts(dataset=dataset)
    if account is not None:
        found = next((item for item in accounts if item.id == account), None)
        if found is None:
            raise CommandFailed(
                f'there is no account "{account}" of dataset "{dataset}"',
                why="No account has this identifier.",
                instead="See: noisegate budget show",
            )
        return found
    if parent is not None and parent not in {item.id for item in accounts}:
        raise CommandFailed(
            f'there is no account "{parent}" of dataset "{dataset}"',
            why="The account above must belong to the same dataset.",
            instead=f"See: noisegate budget show --dataset {dataset}",
        )
    if principal is None and parent is None:
        return next((item for item in accounts if item.parent is None), None)
    same = [
        item for item in accounts
        if item.principal == principal and item.parent is not None and parent in (None, item.parent)
        and not item.frozen
    ]  # fmt: skip
    if principal is None:
        # A group without a principal is always a new one; an old one is changed by its identifier.
        return None
    if len(same) > 1:
        raise CommandFailed(
            f'"{principal}" has {len(same)} accounts of dataset "{dataset}"',
            why="It is not clear which one is meant.",
            instead=[f"--account {item.id}" for item in same],
        )
    return same[0] if same else None


def _create(
    ledger: Ledger,
    registry: Registry,
    *,
    dataset: str,
    principal: str | None,
    kind: Filter | None,
    parent: str | None,
    limit: Limit,
) -> Account:
    from accountant.account import FilterKind
    from privacy.numbers import decimal_text

    _require_dataset(registry, dataset)
    if principal is not None and registry.principal(principal) is None:
        raise _unknown_principal(principal)
    root = next((item for item in ledger.accounts(dataset=dataset) if item.parent is None), None)
    if root is None and principal is not None:
        epsilon, delta = decimal_text(limit.epsilon), decimal_text(limit.delta)
        raise CommandFailed(
            f'could not open the account: dataset "{dataset}" has no root account yet',
            why="Only the root bounds what all analysts learn together, so you choose it first.",
            instead=(
                "Open the root with a limit for everybody together (this one is for a single analyst), then repeat:",
                f"noisegate budget set --dataset {dataset} --epsilon {epsilon} --delta {delta}",
            ),
        )
    try:
        return ledger.create_account(
            dataset=dataset,
            parent=parent or (None if root is None else root.id),
            principal=principal,
            name=principal or ("root" if root is None else "group"),
            limit=limit,
            filter=FilterKind((kind or Filter.approximate).value),
            actor=operator(),
        )
    except ValueError as error:
        raise CommandFailed(
            "could not open the account", why=f"{error}.", instead=f"See: noisegate budget show --dataset {dataset}"
        ) from None


def _change(
    ledger: Ledger,
    found: Account,
    *,
    given: tuple[Fraction, Fraction],
    delta_given: bool,
    kind: Filter | None,
    reason: str | None,
) -> tuple[Account, str]:
    if kind is not None and kind.value != found.filter.value:
        raise CommandFailed(
            f"could not change account {found.id}: its filter is {found.filter.value}",
            why="How losses add up is chosen once: what was spent was counted that way.",
            instead="Leave --filter away. Another filter needs another dataset.",
        )
    limit = _limit(given, pure=found.filter.value == "pure", delta_given=delta_given)
    if limit == found.limit:
        return found, "unchanged"
    if reason is None:
        raise CommandFailed(
            f"account {found.id} exists with another limit",
            why=f"{_who(found)} of dataset {found.dataset} has {_limit_text(found)}. The ledger keeps why it changes.",
            instead='Repeat with: --reason "why it changes"',
        )
    from accountant.errors import AccountChanged, AccountFrozen

    try:
        changed = ledger.change_limit(found.id, limit, actor=operator(), reason=reason, expected=found.revision)
        return changed, "changed"
    except AccountFrozen:
        raise CommandFailed(
            f"could not change account {found.id}: it is frozen",
            why="It was a second account of one principal below one parent, and pays for nothing more.",
            instead="Change the one that pays: noisegate budget set without --account",
        ) from None
    except AccountChanged:
        raise CommandFailed(
            f"could not change account {found.id}: somebody else changed its limit just now",
            why="The change was made for the earlier limit.",
            instead="See: noisegate budget show, and repeat the command if it is still meant",
        ) from None
    except ValueError as error:
        raise usage_error(
            "could not change the limit", why=f"{error}.", instead='Give a reason: --reason "why it changes"'
        ) from None


def _require_dataset(registry: Registry, name: str) -> None:
    if registry.dataset_versions(name):
        return
    from privacy.wording import nearest

    known = [version.name for version in registry.datasets()]
    near = nearest(name, known)
    raise CommandFailed(
        f'there is no dataset "{name}"',
        why=f"Attached are: {', '.join(known)}." if known else "No dataset is attached yet.",
        instead=(f'Did you mean "{near}"?' if near else "Attach one with: noisegate dataset add FILE",),
    )


def _unknown_principal(name: str) -> CommandFailed:
    return CommandFailed(
        f'there is no principal "{name}"',
        why="A budget belongs to somebody who can ask.",
        instead=f"Make it together with its key: noisegate key create {name} --role analyst",
    )


# Words


def _who(account: Account) -> str:
    if account.parent is None:
        return "the root (all analysts together)"
    return f'"{account.principal}"' if account.principal is not None else f'the group "{account.name}"'


def _limit_text(account: Account) -> str:
    from privacy.numbers import decimal_text

    delta = f" and delta {decimal_text(account.limit.delta)}" if account.limit.delta else ""
    return f"epsilon {decimal_text(account.limit.epsilon)}{delta}"


def _body(account: Account) -> dict[str, Any]:
    from privacy.numbers import decimal_text

    return {
        "id": account.id,
        "dataset": account.dataset,
        "parent": account.parent,
        "principal": account.principal,
        "name": account.name,
        "filter": account.filter.value,
        "limit": {"epsilon": decimal_text(account.limit.epsilon), "delta": decimal_text(account.limit.delta)},
        "used_share": decimal_text(min(account.used_share(), Fraction(1)), places=6),
        "remaining": {
            "epsilon": decimal_text(max(account.remaining_epsilon(), Fraction(0)), places=12, up=False),
            "delta": decimal_text(account.remaining_delta(), up=False),
        },
        "frozen": account.frozen,
    }


def _account_table(accounts: list[Account]) -> str:
    rows = []
    for account in accounts:
        body = _body(account)
        rows.append(
            [
                account.dataset,
                "(root)" if account.parent is None else account.principal or f"({account.name})",
                body["filter"],
                body["limit"]["epsilon"],
                _scientific(account.limit.delta),
                f"{float(account.used_share()) * 100:.1f} %",
                short(body["remaining"]["epsilon"]),
                _scientific(account.remaining_delta()),
                f"{account.id} (frozen)" if account.frozen else account.id,
            ]
        )
    head = ["dataset", "whose", "filter", "epsilon", "delta", "used", "epsilon left", "delta left", "account"]
    return table(head, rows, right=frozenset({3, 4, 5, 6, 7}))


def _scientific(value: Fraction) -> str:
    return "0" if value == 0 else f"{float(value):g}"
