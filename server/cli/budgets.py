"""`noisegate budget`: how much may be told, and how much was."""

from __future__ import annotations

import dataclasses
from enum import StrEnum
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any

import typer

from server.cli.home import Home
from server.cli.once import OnceOption, carry_out
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
    from accountant.account import Account, FilterKind
    from accountant.ledger import Ledger
    from server.administration.budgets import Budgets
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
    idempotency_key: OnceOption = None,
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
    from server.administration.budgets import SetBudget, account_body

    place = Home(default_home(home))
    exact_epsilon, exact_delta = _amounts(epsilon, delta)
    wanted = SetBudget(
        dataset=dataset,
        epsilon=exact_epsilon,
        delta=exact_delta,
        filter=_filter(kind),
        principal=principal,
        parent=parent,
        account=account,
        reason=reason,
    )
    with place.opened() as (_, ledger, registry):
        budgets = _budgets(ledger, registry)

        def set_limit() -> dict[str, Any]:
            done = budgets.set(wanted, actor=operator())
            return {"result": done.outcome.value, **account_body(done.account)}

        asked = {name: None if value is None else str(value) for name, value in dataclasses.asdict(wanted).items()}
        shown = carry_out(registry, idempotency_key, {"command": "budget set", **asked}, set_limit)
        made = ledger.account(shown["id"])
    if as_json:
        print_json(shown)
        return
    from server.cli.refusals import whose

    told = shown["result"]
    say(f"Account {made.id} of dataset {made.dataset} is {told}: {whose(made)}, {made.filter.value}.")
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
        budgets = _budgets(ledger, registry)
        if dataset is not None and dataset not in {item.dataset for item in everything}:
            budgets.require_dataset(dataset)
        if principal is not None:
            budgets.require_principal(principal)
        found = [
            item
            for item in everything
            if dataset in (None, item.dataset) and (principal is None or item.principal == principal)
        ]
    if as_json:
        from server.administration.budgets import account_body

        print_json([account_body(item) for item in found])
    elif found:
        say(_account_table(found))
        say("The root bounds what all analysts of a dataset learn together; each account below it is one analyst's.")
    else:
        say("There is no budget here yet. Open the root, then one for each analyst:")
        say(f"  noisegate budget set --dataset {dataset or 'NAME'} --epsilon 20 --delta 0.00001")


# Steps


def _amounts(epsilon: str, delta: str | None) -> tuple[Fraction, Fraction | None]:
    from accountant.filter import DELTA_MAX, EPSILON_MAX
    from privacy.numbers import ATTO, PICO

    exact_epsilon = amount(epsilon, option="--epsilon", maximum=EPSILON_MAX, unit=PICO)
    if delta is None:
        return exact_epsilon, None
    return exact_epsilon, amount(delta, option="--delta", maximum=DELTA_MAX, unit=ATTO, zero_allowed=True)


def _filter(kind: Filter | None) -> FilterKind | None:
    from accountant.account import FilterKind

    return None if kind is None else FilterKind(kind.value)


def _budgets(ledger: Ledger, registry: Registry) -> Budgets:
    from server.administration.budgets import Budgets
    from server.administration.registered import RegisteredDatasets

    return Budgets(ledger, registry, RegisteredDatasets(registry).names)


# Words


def _account_table(accounts: list[Account]) -> str:
    from server.administration.budgets import account_body

    rows = []
    for account in accounts:
        body = account_body(account)
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
