"""`noisegate budget`: how much may be told, and how much was."""

from __future__ import annotations

from dataclasses import asdict
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal

from server.cli.answers import budget_table
from server.cli.once import ONCE, carry_out
from server.cli.options import Here, amount, operator, option
from server.cli.output import print_json, say
from server.cli.remote import Remote

if TYPE_CHECKING:
    from accountant.ledger import Ledger
    from server.administration.budgets import Budgets
    from server.cli.home import Home
    from server.store.registry import Registry

__all__ = ["set_budget", "show"]


def set_budget(
    *,
    dataset: str = option("--dataset NAME", "The dataset.", ...),
    epsilon: str = option("--epsilon E", "Limit of epsilon, an exact decimal.", ...),
    delta: str | None = option("--delta D", "Limit of delta, for instance 0.000001. Not for pure."),
    principal: str | None = option("--principal NAME", "Who may spend it. Without: the root, for all together."),
    kind: Literal["approximate", "pure"] | None = option(
        "--filter", "How losses add up; chosen once. Default: approximate."
    ),
    parent: str | None = option("--parent ID", "Account above. Default: the dataset's root."),
    account: str | None = option("--account ID", "Change exactly this account."),
    reason: str | None = option("--reason TEXT", "Needed to change a limit; the ledger keeps it."),
    idempotency_key: str | None = ONCE,
    here: Here,
) -> None:
    """Open an account, or change the limit of one that exists. What was spent stays spent.

    A dataset has one root account: the only limit that holds when analysts put their answers together. It comes first.

    \b
    examples
      noisegate budget set --dataset clinic --epsilon 20 --delta 0.00001
      noisegate budget set --dataset clinic --principal research --epsilon 5 --delta 0.000001
      noisegate budget set --dataset clinic --principal research --epsilon 8 --delta 0.000001 --reason "second phase"
    """
    from accountant.account import FilterKind
    from server.administration.budgets import SetBudget, account_body
    from server.administration.refusal import whose

    place = here.place()
    exact_epsilon, exact_delta = _amounts(epsilon, delta)
    wanted = SetBudget(
        dataset=dataset,
        epsilon=exact_epsilon,
        delta=exact_delta,
        filter=None if kind is None else FilterKind(kind),
        principal=principal,
        parent=parent,
        account=account,
        reason=reason,
    )
    with place.opened() as (_, ledger, registry):

        def set_limit() -> dict[str, Any]:
            done = _budgets(ledger, registry).set(wanted, actor=operator())
            return {"result": done.outcome.value, **account_body(done.account)}

        asked = {name: None if value is None else str(value) for name, value in asdict(wanted).items()}
        shown = carry_out(registry, idempotency_key, {"command": "budget set", **asked}, set_limit)
        made = ledger.account(shown["id"])
    if here.as_json:
        print_json(shown)
        return
    told = shown["result"]
    say(f"Account {made.id} of dataset {made.dataset} is {told}: {whose(made)}, {made.filter.value}.")
    say(budget_table([account_body(made)]))
    if made.parent is None and told == "opened":
        say("Next, somebody who may ask:")
        say("  noisegate key create NAME --role analyst")
        say(f"  noisegate budget set --dataset {dataset} --principal NAME --epsilon E --delta D")


def show(
    *,
    dataset: str | None = option("--dataset NAME", "Of this dataset only."),
    principal: str | None = option("--principal NAME", "Of this one only."),
    remote: Remote,
    here: Here,
) -> None:
    """Show limits, what is used and what remains. Running queries count as spent.

    With an address or a key it asks that server for your own budgets; without, it reads the ledger of the home.

    \b
    examples
      noisegate budget show
      noisegate budget show --dataset clinic --principal research --json
      NOISEGATE_URL=https://stats.example NOISEGATE_KEY=ngk_... noisegate budget show
    """
    place = here.place()
    elsewhere = remote != Remote(None, None, None)
    if elsewhere:
        with remote.connect(place) as client:
            everything = client.call("GET", "/v1/budgets")[1]["budgets"]
    else:
        everything = _in_ledger(place, dataset, principal)
    found = [
        item for item in everything if dataset in (None, item["dataset"]) and principal in (None, item["principal"])
    ]
    if here.as_json:
        print_json(found)
    elif found:
        say(budget_table(found), verbatim=True)
        if not elsewhere:
            say(
                "The root bounds what all analysts of a dataset learn together; each account below it is one analyst's."
            )
    elif elsewhere:
        say("There is no budget of yours on this server. Ask an administrator for one.")
    else:
        say("There is no budget here yet. Open the root, then one for each analyst:")
        say(f"  noisegate budget set --dataset {dataset or 'NAME'} --epsilon 20 --delta 0.00001")


def _in_ledger(place: Home, dataset: str | None, principal: str | None) -> list[dict[str, Any]]:
    """Every account of the home, as the API shows them. Errors: CommandFailed for a name that is not known."""
    from server.administration.budgets import account_body

    with place.opened() as (_, ledger, registry):
        accounts = ledger.accounts()
        if dataset is not None and dataset not in {account.dataset for account in accounts}:
            _budgets(ledger, registry).require_dataset(dataset)
        if principal is not None:
            _budgets(ledger, registry).require_principal(principal)
    return [account_body(account) for account in accounts]


def _amounts(epsilon: str, delta: str | None) -> tuple[Fraction, Fraction | None]:
    from accountant.filter import DELTA_MAX, EPSILON_MAX
    from privacy.numbers import ATTO, PICO

    exact_epsilon = amount(epsilon, option="--epsilon", maximum=EPSILON_MAX, unit=PICO)
    if delta is None:
        return exact_epsilon, None
    return exact_epsilon, amount(delta, option="--delta", maximum=DELTA_MAX, unit=ATTO, zero_allowed=True)


def _budgets(ledger: Ledger, registry: Registry) -> Budgets:
    from server.administration.budgets import Budgets
    from server.administration.registered import RegisteredDatasets

    return Budgets(ledger, registry, RegisteredDatasets(registry).names)
