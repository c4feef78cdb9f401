"""The report of an estimate as text that fits on one screen: verdict, plan, bounds, noise, errors, prices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

__all__ = ["report_text"]

_WIDTH = 100
_LINES = 8
"""The most lines of one part: a longer one says how many more there are."""

_IN_ROWS = 1_000
"""In a group of how many rows the errors of quantiles are shown: one of those that estimates have."""

_VERDICTS = {
    "affordable": "It would be answered",
    "free": "It would be answered for free",
    "rejected_budget": "It would be refused: the budget does not cover it",
}

Json = Mapping[str, Any]


def report_text(estimate: Json, report: Json, *, confidence: float) -> str:
    """The lines of a report, made of the bodies of the estimate and of the report itself."""
    price = estimate["price"]
    parts = [_VERDICTS[estimate["verdict"]]]
    if estimate["noise"] is not None:
        share = f"{100 * float(price['share']):.3g} %"
        delta = f", delta {float(price['delta']):g}" if float(price["delta"]) else ""
        parts.append(
            f": epsilon {_short(price['epsilon'])} of {_short(price['of']['epsilon'])} ({share}){delta}, "
            f"{estimate['noise']} noise; {_short(estimate['remaining_after']['epsilon'])} would remain"
        )
    lines = ["".join(parts) + "."]
    lines += [f"Warning: {warning['what']}." for warning in estimate["warnings"]]
    lines += ["", "Plan", *_most(list(_tree(report["nodes"], 1)), 2 * _LINES)]
    if len(report["stages"]) > 1:
        lines += [f"  {one['stage']}. {one['does']}{_stored(one)}" for one in report["stages"]]
    if report["bounds"]:
        rows = [[one["table"], one["of"], _value(one), _source(one)] for one in report["bounds"]]
        lines += ["", "Bounds", *_most(_table(rows), _LINES)]
    if report["statistics"]:
        lines += ["", "Noise", *_most(_table([*_noise(report["statistics"])]), _LINES + 1)]
    if report["quantiles"]:
        lines += ["", "Quantiles by name, expected errors in 1,000 rows", *_most(_table([*_named(report)]), _LINES)]
    curve = report["curve"]["by_epsilon"]
    if curve:
        lines += ["", f"Price and ± half width at {100 * confidence:g} %"]
        lines += _curve(report["curve"], price["epsilon"], estimate["noise"])
    if report["alternatives"]:
        lines += ["", "Cheaper"]
        lines += _most([_alternative(one) for one in report["alternatives"]], _LINES)
    return "\n".join(_fitted(line) for line in lines)


def _tree(node: Json, depth: int) -> Iterator[str]:
    facts = []
    if node["rows_per_unit"] is not None:
        most = node["rows_per_unit"]
        facts.append("1 row per unit" if most == 1 else f"at most {most:,} rows per unit")
    if node["unique"]:
        facts.append(f"unique {', '.join(node['unique'])}")
    for one in node["ranges"]:
        ends = "no bounds" if one["lower"] is None and one["upper"] is None else f"{one['lower']} to {one['upper']}"
        facts.append(f"{one['of']} {ends}")
    if node["kind"] == "scan" and node["unit"] is None:
        facts.insert(0, "public")
    said = f"  [{'; '.join(facts)}]" if facts else ""
    yield f"{'  ' * depth}{node['kind']} {node['text']}{said}"
    for inner in node["inputs"]:
        yield from _tree(inner, depth + 1)


def _stored(stage: Json) -> str:
    return "" if stage["paid"] or stage["of"] == "outer_query" else " (stored)"


def _value(bound: Json) -> str:
    value = bound["value"]
    if value is None:
        return "not chosen yet"
    if isinstance(value, list):
        return " to ".join(map(_end, value))
    return f"{value:,}" if isinstance(value, int) else _end(value)


def _end(value: str) -> str:
    """A number without needless digits; a date as it is."""
    try:
        return f"{float(value):,.9g}"
    except ValueError:
        return value


def _source(bound: Json) -> str:
    return bound["source"] if bound["why"] is None else f"{bound['source']}: {bound['why']}"


def _noise(statistics: Sequence[Json]) -> Iterator[list[str]]:
    yield ["statistic", "for", "one unit moves it by", "mechanism", "scale", "share"]
    for one in statistics:
        held = one["sensitivity"]
        moves = "not known yet" if held["l1"] is None else f"{_short(held['l1'])} (L1), {_short(held['l2'])} (L2)"
        scale = "not known yet" if one["scale"] is None else _short(one["scale"])
        answers = ", ".join(one["answers"]) or ("selecting groups" if one["selects_groups"] else "choosing a bound")
        yield [one["of"], answers, moves, one["mechanism"], scale, f"{100 * float(one['share']):.3g} %"]


def _curve(curve: Json, asked: str, noise: str) -> Iterator[str]:
    points = curve["by_epsilon"]
    names = [column["name"] for column in points[0]["columns"]]
    sized = {column["name"] for column in points[0]["columns"] if column["in_a_group_of_rows"] is not None}
    heads = [f"{name}, {points[0]['columns'][place]['in_a_group_of_rows']:,} rows" if name in sized else name
             for place, name in enumerate(names)]  # fmt: skip
    rows = [["epsilon", *heads]]
    rows += [[f"{_short(point['epsilon'])}{_marked(point, asked)}", *map(_width, point["columns"])] for point in points]
    yield from _table(rows)
    if any(not point["affordable"] for point in points):
        yield "  (* more than the budget covers now)"
    if curve["by_half_width"]:
        said = [
            f"±{point['half_width']} for {_short(point['epsilon'])}"
            + ("" if point["noise"] == noise else f" ({point['noise']})")
            for point in curve["by_half_width"]
        ]
        yield from _wrapped(f"  By accuracy: {', '.join(said)}.")


def _named(report: Json) -> Iterator[list[str]]:
    """Each mechanism with the error of its quantiles in a thousand rows, if their values lie evenly."""
    for one in report["quantiles"]:
        if one["refused"] is not None:
            yield [one["mechanism"], "refused", one["refused"]]
        for column in one["columns"]:
            (error,) = (size["standard_error"] for size in column["by_rows"] if size["rows"] == _IN_ROWS)
            yield [one["mechanism"], column["answers"], f"{error:.3g}"]


def _marked(point: Json, asked: str) -> str:
    return " *" if not point["affordable"] else " (this)" if point["epsilon"] == asked else ""


def _width(column: Json) -> str:
    return "not known yet" if column["half_width"] is None else f"±{_short(column['half_width'])}"


def _alternative(one: Json) -> str:
    price = "" if one["epsilon"] == "0" else f": epsilon {_short(one['epsilon'])} for the same ±"
    return f"  {one['what']}{price}"


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Columns side by side, each as wide as its longest cell; long cells are cut."""
    cells = [[_cut(cell, 34) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [
        "  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells
    ]


def _most(lines: list[str], most: int) -> list[str]:
    return lines if len(lines) <= most else [*lines[: most - 1], f"  ... and {len(lines) - most + 1} more"]


def _wrapped(line: str) -> Iterator[str]:
    begun = ""
    for word in line.split(", "):
        if begun and len(begun) + len(word) > _WIDTH:
            yield f"{begun},"
            begun = f"    {word}"
        else:
            begun = f"{begun}, {word}" if begun else word
    yield begun


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 3]}..."


def _fitted(line: str) -> str:
    return line if line.startswith("Warning") else _cut(line, 2 * _WIDTH)


def _short(value: object) -> str:
    """Four digits of a number."""
    number = float(f"{float(str(value)):.4g}")
    return f"{number:,.0f}" if 1_000 <= abs(number) < 1e15 else f"{number:.4g}"
