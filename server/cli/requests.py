"""Budget requests over HTTP: `noisegate request make`, `list`, `show`, `approve`, `reject` and `withdraw`."""

from __future__ import annotations

from urllib.parse import quote

from accountant.filter import DELTA_MAX, EPSILON_MAX
from server.cli.asking import Question
from server.cli.client import Remote
from server.cli.failure import UsageError
from server.cli.listing import show_list, show_one
from server.cli.options import Here, amount, option
from server.cli.output import Json, printable, short

__all__ = ["approve", "list_requests", "make", "reject", "show", "withdraw"]

_PATH = "/v1/budget-requests"


def make(
    *,
    question: Question,
    reason: str = option("--reason TEXT", "What it is for. Whoever decides reads it.", ...),
    limit_epsilon: str | None = option("--limit-epsilon E", "The whole limit. Default: what the question lacks."),
    limit_delta: str | None = option("--limit-delta D", "The whole limit of delta. Default: as it is."),
    remote: Remote,
    here: Here,
) -> None:
    """Ask for a budget, for a question that yours does not cover."""
    # A limit may be asked for without a question, and then nothing is read from a pipe.
    alone = limit_epsilon is not None and question.sql is None and question.file is None
    body: Json = {"reason": reason} if alone else {"reason": reason, "question": question.body()}
    if limit_epsilon is not None:
        body["limit"] = _limit(limit_epsilon, limit_delta)
    elif limit_delta is not None:
        raise UsageError("""--limit-delta needs --limit-epsilon
            A limit is both.
            Give the whole limit that you would like, or none for what the question lacks.""")
    with remote.connect(here.place()) as client:
        body["dataset"] = question.dataset or client.only_dataset("Name one with --dataset NAME.")
        if alone:
            body |= {} if question.budget is None else {"budget": question.budget}
        else:
            body["question"]["dataset"] = body["dataset"]
        made = client.post(_PATH, body)
    here.show(made, [printable(line) for line in _lines(made)], verbatim=True)


def list_requests(remote: Remote, here: Here) -> None:
    """List budget requests: yours, and those that you may decide."""

    def line(item: Json) -> str:
        limit = f"epsilon {short(item['limit']['epsilon'])}"
        return f"{item['id']}  {item['created']}  {item['state']}  {item['dataset']}  {item['principal']}  {limit}"

    show_list(remote, here, "budget-requests", line, none="no requests", member="requests")


def show(
    remote: Remote,
    here: Here,
    request: str = option("ID", "The request, as `noisegate request list` names it."),
) -> None:
    """Show a budget request: the question, its price, what was missing, and the decision."""
    show_one(remote, here, _PATH, request, lambda answer: [printable(line) for line in _lines(answer)])


def approve(
    *,
    request: str = option("ID", "The request, as `noisegate request list` names it."),
    reason: str | None = option("--reason TEXT", "Kept by the ledger with the limit."),
    limit_epsilon: str | None = option("--limit-epsilon E", "Another whole limit than the one that was asked for."),
    limit_delta: str | None = option("--limit-delta D", "Its delta; needed with --limit-epsilon, but for pure."),
    remote: Remote,
    here: Here,
) -> None:
    """Approve a budget request: the limit is changed, or the budget opened, together with it."""
    limit = None if limit_epsilon is None else _limit(limit_epsilon, limit_delta)
    _decide(remote, here, request, {"state": "approved", "reason": reason, "limit": limit})


def reject(
    *,
    request: str = option("ID", "The request, as `noisegate request list` names it."),
    reason: str = option("--reason TEXT", "Why; whoever asked reads it.", ...),
    remote: Remote,
    here: Here,
) -> None:
    """Reject a budget request."""
    _decide(remote, here, request, {"state": "rejected", "reason": reason})


def withdraw(
    remote: Remote,
    here: Here,
    request: str = option("ID", "The request, as `noisegate request list` names it."),
) -> None:
    """Withdraw a budget request of yours."""
    _decide(remote, here, request, {"state": "withdrawn"})


def _decide(remote: Remote, here: Here, request: str, body: Json) -> None:
    with remote.connect(here.place()) as client:
        given = {name: value for name, value in body.items() if value is not None}
        answer = client.change(f"{_PATH}/{quote(request, safe='')}", given)
    here.show(answer, [printable(line) for line in _lines(answer)], verbatim=True)


def _limit(epsilon: str, delta: str | None) -> Json:
    from privacy.numbers import ATTO, PICO

    amount(epsilon, option="--limit-epsilon", maximum=EPSILON_MAX, unit=PICO)
    if delta is not None:
        amount(delta, option="--limit-delta", maximum=DELTA_MAX, unit=ATTO, zero_allowed=True)
    return {"epsilon": epsilon.strip(), **({} if delta is None else {"delta": delta.strip()})}


def _lines(answer: Json) -> list[str]:
    """A request for people."""
    limit, estimate, question, decision = (answer[name] for name in ("limit", "estimate", "question", "decision"))
    lines = [f"{answer['id']}  {answer['state']}  {answer['principal']} of {answer['dataset']}, {answer['created']}"]
    given = "given" if answer["state"] == "approved" else "asked for"
    lines += [f"{given}: a limit of epsilon {limit['epsilon']}, delta {limit['delta']}"]
    lines += [f"for: {answer['reason']}"] if answer["reason"] else []
    lines += [question["sql"]] if question else []
    if estimate:
        price, missing = estimate["price"], estimate["missing"]
        lines += [f"price: epsilon {price['epsilon']}, delta {price['delta']}"]
        lines += [f"missing: epsilon {missing['epsilon']}, delta {missing['delta']}"]
    if decision:
        why = f": {decision['reason']}" if decision["reason"] else ""
        lines += [f"{answer['state']} by {decision['by']}, {decision['at']}{why}"]
    return lines
