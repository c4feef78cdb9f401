"""Rows grouped by hidden keys, so that nobody knows in advance where an engine puts a group.

    several keys, or texts  a column more, made from the keys and a number that is drawn for each run (`Salted`)
    one whole number k      k XOR that number in its place, and the same again once rows are grouped (`Masked`)

Claim 1. Masked or not, the groups are the same. Proof. XOR with one number is its own inverse on 64 bits, and NULL
stays NULL: two keys are equal if and only if they are equal when masked. A statement draws no number of its own: the
engine's variable is the same wherever it is read, so that the second XOR gives back the key. A table that statements
share has the keys themselves. QED.

Claim 2. Nobody finds more keys that fall together than with a column more. Proof. That column is p(k) XOR H, p the
engine's hash of a number and a mixing step after it, both of which can be undone on 64 bits, and H the hash of the
number that was drawn. It decides about the place of a group by its own hash. So keys k1, k2, ... are masked where that
column has them for the keys that p makes of them, up to the number drawn: whoever can choose the one can choose the
other. QED.

A column less is written and compared for each row: a third of the time of an aggregate by unit and hidden key.
"""

from __future__ import annotations

from sql_rewrite.relations import Grouped, HiddenKey, Masked, Output, Relation, Salted

__all__ = ["grouped_by_hidden", "masked_key", "names_of", "salted"]


def masked_key(hidden: tuple[HiddenKey, ...]) -> str | None:
    """The hidden key that is masked; None where a column more says what groups are."""
    return hidden[0].name if len(hidden) == 1 and hidden[0].whole else None


def grouped_by_hidden(
    rows: Relation,
    alias: str,
    shown: tuple[str, ...],
    by: tuple[str, ...],
    hidden: tuple[HiddenKey, ...],
    outputs: tuple[Output, ...],
) -> Relation:
    """One row for each group of the columns `by`, of rows that are `salted`; of public keys `hidden` is empty."""
    masked = masked_key(hidden)
    if masked is None:
        return Grouped(rows, alias, shown, by, outputs, hidden=bool(hidden))
    return Masked(Grouped(Masked(rows, masked), alias, shown, by, outputs, hidden=True), masked)


def salted(rows: Relation, hidden: tuple[HiddenKey, ...]) -> Relation:
    """The rows, with a salt where their hidden keys have one."""
    return rows if not hidden or masked_key(hidden) is not None else Salted(rows, hidden)


def names_of(keys: tuple[str, ...], hidden: tuple[HiddenKey, ...]) -> tuple[str, ...]:
    """The columns by which groups are found: the salt of hidden keys that have one, and the keys."""
    return keys if not hidden or masked_key(hidden) is not None else ("s", *keys)
