"""Prices in words: the part of the paying account, and what the answer promises by itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from server.cli.output import printable, short, table

__all__ = ["family_lines", "own_words", "part_words"]


def part_words(epsilon: str, accounting: Mapping[str, Any]) -> str:
    """`epsilon 0.1 of 10 (1 %)`; without the account's limit, as in answers of the first version, the epsilon alone."""
    of = accounting.get("of")
    if of is None or float(of["epsilon"]) <= 0:
        return f"epsilon {short(epsilon)}"
    return f"epsilon {short(epsilon)} of {short(of['epsilon'])} ({_percent(float(epsilon) / float(of['epsilon']))})"


def own_words(own: Mapping[str, Any] | None) -> str | None:
    """`By itself this answer promises epsilon 0.53 at delta 1e-06.`, None where the server does not say it."""
    if own is None:
        return None
    said = f"By itself it promises epsilon {_three(own['epsilon'])}"
    if not float(own["delta"]):  # of a pure account, where the figures are the parts taken, and do add up
        return f"{said}."
    return f"{said} at delta {float(own['delta']):g}; such figures of several answers do not add up."


def family_lines(families: list[dict[str, Any]]) -> list[str]:
    """Both kinds of noise side by side: price, error of each column, and what would be left for later questions."""
    if len(families) < 2:
        return []
    names = [str(column["name"]) for column in families[0]["columns"]]
    kinds = list(dict.fromkeys(kind for family in families for kind in family["questions_left_after"]))
    shown = names if len(names) <= 4 else []
    rows = []
    for family in families:
        widths = {str(column["name"]): column for column in family["columns"]}
        marks = (" (this)" if family["chosen"] else "") + ("" if family["affordable"] else " *")
        left = family["questions_left_after"]
        rows.append(
            [
                f"{family['noise']}{marks}",
                short(family["price"]["epsilon"]),
                _three(family["price"]["own"]["epsilon"]),
                *(_width(widths[name]) for name in shown),
                *(f"{left.get(kind, 0):,}" for kind in kinds),
            ]
        )
    heads = [
        "noise",
        "epsilon",
        "by itself",
        *(f"± {printable(name)}" for name in shown),
        *(f"{kind} questions left" for kind in kinds),
    ]
    lines = ["", "With either kind of noise, and how many questions at the default spend would fit afterwards:"]
    lines.append(table(heads, rows, right=frozenset(range(1, len(heads)))))
    if not all(family["affordable"] for family in families):
        lines.append("  (* more than the budget covers now)")
    return lines


def _width(column: Mapping[str, Any]) -> str:
    width = column["half_width"]
    if width is None and column.get("by_rows"):
        width = column["by_rows"][1]["half_width"]
    return "unknown" if width is None else f"{float(f'{float(width):.3g}'):g}"


def _three(text: str) -> str:
    """Three significant digits, rounded up: a promise is not made smaller than it is."""
    import decimal

    exact = decimal.Decimal(text)
    if not exact:
        return "0"
    rounded = exact.quantize(decimal.Decimal(1).scaleb(exact.adjusted() - 2), rounding=decimal.ROUND_CEILING)
    return f"{float(rounded):g}"


def _percent(share: float) -> str:
    return f"{float(f'{share * 100:.3g}'):g} %"
