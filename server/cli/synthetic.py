"""Synthetic tables over HTTP: `noisegate synthetic make`, `list`, `show` and `delete`."""

from __future__ import annotations

from fractions import Fraction

from server.cli.client import Remote
from server.cli.failure import CommandFailed
from server.cli.listing import show_list, show_one
from server.cli.options import Here, amount, option
from server.cli.output import Json, printable

__all__ = ["delete", "list_tables", "make", "show"]


def make(
    *,
    table: str = option("TABLE", "The table about people that it stands for."),
    name: str = option("NAME", "What queries will call it, such as synthetic_people."),
    epsilon: str = option("--epsilon E", "What of your account it may cost."),
    dataset: str | None = option("--dataset NAME", "The dataset. Default: the only one you may ask."),
    column: list[str] = option("--column NAME", "A column, again for each. Default: all that can be had.", []),
    rows_per_unit: int | None = option("--rows-per-unit N", "Rows of one unit that count.", min=1),
    budget: str | None = option("--budget ID", "The account that pays, if you have several."),
    price_only: bool = option("--estimate", "Report its columns, noise and cost, for free, and make nothing.", False),
    idempotency_key: str | None = option("--idempotency-key TEXT", "The same text pays once. Default: a new one."),
    remote: Remote,
    here: Here,
) -> None:
    """Make a synthetic table, pay, and show its report."""
    amount(epsilon.strip(), option="--epsilon", maximum=Fraction(10**6), unit=Fraction(1, 10**12))
    body: Json = {"table": table, "name": name, "epsilon": epsilon.strip()}
    wishes = {"rows_per_unit": rows_per_unit, "budget": budget}
    body |= {wish: value for wish, value in wishes.items() if value is not None}
    if column:
        body["columns"] = [{"name": one} for one in column]
    with remote.connect(here.place()) as client:
        body["dataset"] = dataset or client.only_dataset("Name one with --dataset NAME.")
        if price_only:
            answer = client.price_of("/v1/synthetic", body)
            here.show(answer, _price_lines(answer), verbatim=True)
            return
        made = client.make("/v1/synthetic", body, idempotency_key=idempotency_key)
    if made["measured"] is None:
        raise CommandFailed(f"""the synthetic table failed
            It was charged: {printable(made["status"])}. What went wrong is not said, for it may depend on rows.
            See: noisegate synthetic show {printable(made["id"])}""")
    here.show(made, _table_lines(made), verbatim=True)


def list_tables(remote: Remote, here: Here) -> None:
    """List your synthetic tables, the newest first."""

    def line(item: Json) -> str:
        return f"{item['id']}  {item['status']}  {item['dataset']}.{item['name']}"

    show_list(remote, here, "synthetic", line, none="no synthetic tables")


def show(
    remote: Remote,
    here: Here,
    synthetic: str = option("ID", "The synthetic table, as `noisegate synthetic list` names it."),
) -> None:
    """Show the report of a synthetic table."""
    show_one(remote, here, "/v1/synthetic", synthetic, _table_lines)


def delete(
    remote: Remote,
    here: Here,
    synthetic: str = option("ID", "The synthetic table, as `noisegate synthetic list` names it."),
) -> None:
    """Delete the rows of a synthetic table, and free its name. Its report and its charge stay."""
    show_one(remote, here, "/v1/synthetic", synthetic, lambda answer: _table_lines(answer)[:1], end=True)


def _price_lines(answer: Json) -> list[str]:
    """What an estimate says."""
    lines = [f"it would cost epsilon {answer['price']['epsilon']} of the account"]
    lines += [f"  {one['name']}  {one['type']}  {one['bins']} bins" for one in answer["columns"]]
    lines += [f"  without {one['name']}: {one['why']}" for one in answer["left_out"]]
    lines += [
        f"at most {one['marginals']} marginals of {one['of']}, standard error {one['standard_error']:.1f} rows a cell"
        for one in answer["measured_at_most"]
    ]
    return [printable(line) for line in lines]


def _table_lines(answer: Json) -> list[str]:
    """A synthetic table for people."""
    lines = [f"{answer['id']}  {answer['status']}  {answer['dataset']}.{answer['name']}"]
    if answer["measured"] is not None:
        lines.append(f"{answer['rows']:,} rows in place of those of {answer['table']}, epsilon {answer['epsilon']}")
        lines += [
            f"  {', '.join(one['columns'])}: expected error {one['expected_error']:.1%}, {one['cells']:,} cells"
            for one in answer["measured"]
        ]
        lines += [f"warning: {warning}" for warning in answer["warnings"]]
    return [printable(line) for line in lines]
