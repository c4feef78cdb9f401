"""Models over HTTP: `noisegate model fit`, `list` and `show`."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Literal

from server.cli.answers import key_text
from server.cli.asking import read_sql
from server.cli.client import Remote
from server.cli.failure import CommandFailed, UsageError
from server.cli.listing import show_list, show_one
from server.cli.options import Here, amount, option
from server.cli.output import Json, printable

__all__ = ["fit", "list_models", "show"]

_FOUND = {
    "chosen": "chosen by a noisy histogram, which is in the price",
    "stored": "chosen by a histogram that is there, for free",
}


def fit(
    *,
    sql: str | None = option("[SQL]", 'One SELECT of features and a label; "-", or a pipe, reads it from the input.'),
    file: Path | None = option("--file -f FILE", 'Read the statement from this file; "-" is the input.'),
    dataset: str | None = option("--dataset NAME", "The dataset. Default: the only one you may ask."),
    own_epsilon: str | None = option("--own-epsilon E", "What the model may promise by itself, in any account."),
    epsilon: str | None = option("--epsilon E", "What of your account it may cost."),
    method: Literal["input_clipping", "gradient_clipping", "sufficient_statistics"] | None = option(
        "--method", "How it is fitted. Default: input_clipping."
    ),
    iterations: int | None = option("--iterations N", "Steps of the descent. Default: 100.", min=1, max=1000),
    held_out: str | None = option("--held-out SHARE", "The part of the units that it is tested on. Default: 0.1."),
    clip: str | None = option("--clip SHARE", "The norm of a unit, as a part of the greatest norm of a row."),
    budget: str | None = option("--budget ID", "The account that pays, if you have several."),
    price_only: bool = option("--estimate", "Report what it would cost, for free, and fit nothing.", False),
    idempotency_key: str | None = option("--idempotency-key TEXT", "The same text pays once. Default: a new one."),
    remote: Remote,
    here: Here,
) -> None:
    """Fit a model, pay, and show its weights."""
    if (own_epsilon is None) == (epsilon is None):
        raise UsageError("""the price is not named once
            A model is charged in whole, so its price is yours to say.
            Give --own-epsilon, for instance 0.5, or --epsilon.""")
    most = {"epsilon": Fraction(10**6), "own_epsilon": Fraction(10**6), "held_out": Fraction(1, 2), "clip": Fraction(1)}
    amounts = {"epsilon": epsilon, "own_epsilon": own_epsilon, "held_out": held_out, "clip": clip}
    given = {name: text.strip() for name, text in amounts.items() if text is not None}
    for name, text in given.items():
        amount(text, option=f"--{name.replace('_', '-')}", maximum=most[name], unit=Fraction(1, 10**12))
    body: Json = {
        "sql": read_sql(sql, file),
        "spend": {name: given.pop(name) for name in ("epsilon", "own_epsilon") if name in given},
        **given,
    }
    wishes = {"method": method, "iterations": iterations, "budget": budget}
    body |= {name: wish for name, wish in wishes.items() if wish is not None}
    with remote.connect(here.place()) as client:
        body["dataset"] = dataset or client.only_dataset("Name one with --dataset NAME.")
        if price_only:
            answer = client.price_of("/v1/models", body)
            here.show(answer, _price_lines(answer), verbatim=True)
            return
        model = client.make("/v1/models", body, idempotency_key=idempotency_key)
    if model["model"] is None:
        raise CommandFailed(f"""the model failed
            It was charged: {printable(model["status"])}. What went wrong is not said, for it may depend on rows.
            See: noisegate model show {printable(model["id"])}""")
    here.show(model, _model_lines(model), verbatim=True)


def list_models(remote: Remote, here: Here) -> None:
    """List your models, the newest first."""

    def line(item: Json) -> str:
        return f"{item['id']}  {item['status']}  {item['dataset']}  {item['method']}"

    show_list(remote, here, "models", line, none="no models")


def show(
    remote: Remote,
    here: Here,
    model: str = option("ID", "The model, as `noisegate model list` names it."),
) -> None:
    """Show a model: its state, its weights, and SQL that predicts."""
    show_one(remote, here, "/v1/models", model, _model_lines)


def _price_lines(answer: Json) -> list[str]:
    """What an estimate says."""
    price = answer["price"]
    return [
        f"{answer['verdict']}: epsilon {price['epsilon']} of the account",
        f"by itself the model promises epsilon {price['own']['epsilon']}, delta {price['own']['delta']}",
        f"{answer['columns']} columns, {answer['measurements']} measurements, "
        f"there after {answer['first_moment_seconds']} s",
        *(f"bounds of {one['column']} are {_FOUND[one['source']]}" for one in answer.get("bounds", ())),
    ]


def _model_lines(answer: Json) -> list[str]:
    """A model for people."""
    lines = [f"{answer['id']}  {answer['status']}  {answer['dataset']}  {answer['method']}"]
    model = answer["model"]
    if model is None:
        return [printable(line) for line in lines]
    columns = [model["intercept"], *model["weights"]]
    names = [
        "intercept"
        if item["feature"] is None
        else item["feature"] + ("" if item["kind"] == "number" else f" = {key_text(item['key'])}")
        for item in columns
    ]
    wide = max(map(len, names))
    for name, item in zip(names, columns, strict=True):
        lines.append(f"  {name:<{wide}}  {item['weight']:>9.3f}  [{item['low']:.3f}, {item['high']:.3f}]")
    tested = model["held_out"] or {}
    for what in ("accuracy", "explained_variance"):
        if tested.get(what) is not None:
            error = tested["value_standard_error"]
            lines.append(f"{what.replace('_', ' ')} of held-out units {tested[what]:.4f}, standard error {error:.4f}")
    lines += [
        f"bounds of {one['column']}: {one['lower']} to {one['upper']}, by a noisy histogram"
        for one in model.get("bounds", ())
    ]
    lines += [f"warning: {warning['text']}" for warning in model["warnings"]]
    lines.append(f"charged {', '.join(part['epsilon'] for part in answer['charged'])} of the account")
    return [printable(line) for line in lines]
