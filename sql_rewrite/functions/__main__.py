"""Writes the tables of docs/functions.md: `python -m sql_rewrite.functions`."""

from __future__ import annotations

import sys

from sql_rewrite.functions import REGISTRY
from sql_rewrite.functions.operator import Operator

__all__ = ["tables"]


def tables() -> str:
    """One Markdown table per section, every operator once, in the order of the registry."""
    sections: dict[str, list[Operator]] = {}
    for operator in REGISTRY.values():
        sections.setdefault(operator.section, []).append(operator)
    pieces = []
    for section, operators in sections.items():
        pieces.append(f"### {section}\n")
        pieces.append("| name | SQL | types | value | why it never raises |\n|---|---|---|---|---|")
        pieces.extend(
            f"| `{operator.name}` | {_cell(f'`{operator.forms}`')} | {_cell(operator.signature)} "
            f"| {_cell(operator.meaning)} | {_cell(operator.totality)} |"
            for operator in operators
        )
        pieces.append("")
    return "\n".join(pieces)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    sys.stdout.write(tables())
