"""What a server says, in words and tables: answers, prices, estimates, declarations."""

from __future__ import annotations

import decimal
import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from server.cli.fields import of_path, with_options
from server.cli.merged import merged_lines
from server.cli.output import Json, as_commands, as_typed, painted, printable, short, table

if TYPE_CHECKING:
    from engines.stored import Snapshot

__all__ = ["answer_table", "dataset_lines", "datasets_lines",
           "estimate_lines", "key_text", "left_out_lines", "own_words", "part_words", "plan_lines", "price_lines",
           "profile_lines", "warning_lines"]  # fmt: skip

ROWS_SHOWN = 50
_KEYS_SHOWN = 6
_CURVE_ROWS = 1_000
_GROUPS_LEFT_OUT = frozenset(("no_group_shown", "empty_groups_left_out"))


# Answers


def answer_table(answer: Json) -> str:
    """The rows of a server's answer: keys as they are, noisy values with the half width of their interval."""
    columns, everything = answer["columns"], answer["rows"]
    kinds = [column["kind"] for column in columns]
    rows = [
        [
            _cell(value, low, high, key=kind == "key", derived=kind == "derived")
            for value, low, high, kind in zip(*parts, kinds, strict=True)
        ]
        for parts in zip(everything[:ROWS_SHOWN], answer["lows"], answer["highs"], strict=False)
    ]
    names = [printable(column["name"]) for column in columns]
    lines = [table(names, rows, right=[place for place, kind in enumerate(kinds) if kind != "key"])]
    if len(everything) > len(rows):
        lines.append(f"  ... and {len(everything) - len(rows):,} more rows (--json shows all)")
    if not everything:
        hidden = any(warning["code"] in _GROUPS_LEFT_OUT for warning in answer.get("warnings", []))
        lines.append("  (no group is large enough to be shown)" if hidden else "  (no rows)")
    for reason in answer.get("interval_reasons", []):
        some = "" if reason["rows"] is None else f" in {len(reason['rows']):,} of {len(everything):,} rows"
        lines.append(f"  no ± for {names[reason['column']]}{some}: {printable(reason['why'])}")
    return "\n".join(lines)


def _cell(value: object, low: float | None, high: float | None, *, key: bool = False, derived: bool = False) -> str:
    if value is None or isinstance(value, bool):
        return "NULL" if value is None else str(value).lower()
    # A key is a name: the year 2024 is not 2,024.
    if key or not isinstance(value, int | float):
        return printable(value)
    if low is None or high is None:
        return _number(value, _places(value, None))
    half = max(high - value, value - low)
    places = _places(value, half)
    # An interval that was cut at a natural end (a count is not negative) is not the same on both sides. The ends of a
    # count are rounded; those of a rank are not, and 1 within [1, 2] is not 1 ± 1. No number is exact: ± 0 is not said.
    rounded = 1.01 if isinstance(value, int) and not derived else 0.0
    if half > 0 and math.isclose(high - value, value - low, rel_tol=0.15, abs_tol=rounded):
        return f"{_number(value, places)} ± {_number(half, places)}"
    return f"{_number(value, places)} [{_number(low, places)}, {_number(high, places)}]"


def _places(value: float, half: float | None) -> int:
    """Decimals that are worth showing: two digits of the error."""
    if isinstance(value, int) and (half is None or half >= 1 or float(half).is_integer()):
        return 0
    if half is None:
        return 0 if float(value).is_integer() else 4
    if half <= 0 or not math.isfinite(half):
        return 2
    return min(8, max(0, 1 - math.floor(math.log10(half))))


def _number(value: float, places: int) -> str:
    return f"{value:,.{places}f}" if math.isfinite(value) else str(value)


def price_lines(answer: Json) -> list[str]:
    """What the answer cost, what it promises by itself, what remains, and what ± means."""
    accounting = answer["accounting"]
    price = ", ".join(f"{part_words(part['epsilon'], accounting)}{_delta(part)}" for part in accounting["charged"])
    if accounting.get("reused"):
        derived = answer.get("provenance", {}).get("derived")
        by = "its numbers follow from a stored release of another question"
        price = f"nothing: {by if derived else 'an equal question was answered before, and its release serves again'}"
    return [
        f"± is the interval of the noise at {round(float(answer['confidence']) * 100, 4):g} % confidence.",
        *merged_lines(answer.get("merged")),
        *_bound_lines(answer),
        f"Price: {price or 'nothing'}.",
        *_part_lines(accounting),
        *_added_lines(accounting.get("sharpened")),
        *own_words(accounting.get("own")),
        f"Remains: epsilon {short(accounting['remaining']['epsilon'])}{_delta(accounting['remaining'])}.",
        *([f"The answer is {printable(answer['id'])}."] if answer.get("id") else []),
    ]


def _bound_lines(answer: Json) -> list[str]:
    """Says that ± leaves out what is beyond the bounds: rows where one unit may have several, and clipped values.

    Without this, a count that lacks a third of its rows would look exact to one percent.
    """
    cut = [printable(text) for text in answer.get("provenance", {}).get("cut", [])]
    return [*dict.fromkeys(cut), "± does not show what the bounds leave out."] if cut else []


def warning_lines(answer: Json, *, error: bool = False) -> list[str]:
    """The warnings of an answer or estimate: what, why, and what to write instead."""
    lines = []
    for warning in answer.get("warnings", []):
        lines.append(painted(f"Warning: {printable(warning['what'])}.", "careful", error=error))
        lines += _advice(warning)
    return lines


def _advice(problem: Json) -> list[str]:
    options = of_path("/v1/queries")
    known = filter(None, (with_options(as_commands(printable(line)), options) for line in problem["instead"]))
    return [f"  {printable(problem['why'])}", *(f"  - {as_typed(line)}" for line in known)]


# Prices


def part_words(epsilon: str, accounting: Json) -> str:
    """`epsilon 0.1 of 10 (1 %)`; without the account's limit, as in answers of the first version, the epsilon alone."""
    of = accounting.get("of")
    if of is None or float(of["epsilon"]) <= 0:
        return f"epsilon {short(epsilon)}"
    share = float(epsilon) / float(of["epsilon"]) * 100
    return f"epsilon {short(epsilon)} of {short(of['epsilon'])} ({_digits(share)} %)"


_PARTS = {"value_histograms": "histograms of values", "norm_histograms": "histograms of norms", "sums": "the sums"}


def _part_lines(accounting: Json) -> list[str]:
    """What of a price bought histograms, and what would have saved it; nothing where they cost nothing."""
    parts = accounting.get("parts") or []
    if all(part["for"] == "sums" for part in parts):
        return []
    bought = ", ".join(f"epsilon {short(part['epsilon'])} for {_PARTS[part['for']]}" for part in parts)
    return [f"Of it {bought}.", *(f"  - {part['saved_by']}" for part in parts if part["saved_by"])]


def _added_lines(sharpened: Json | None) -> list[str]:
    """That precision is added to what is stored, and what it would cost anew."""
    if not sharpened:
        return []
    anew = short(sharpened["anew"]["epsilon"])
    return [f"It adds to a stored release, and its ± holds however often you do so; anew it would cost epsilon {anew}."]


def own_words(own: Json | None) -> list[str]:
    """`By itself it promises epsilon 0.53 at delta 1e-06; ...`, nothing where nothing of people was read."""
    if own is None or not float(own["epsilon"]):
        return []
    said = f"By itself it promises epsilon {_promise(own['epsilon'])}"
    if not float(own["delta"]):  # of a pure account, where the figures are the parts taken, and do add up
        return [f"{said}."]
    return [f"{said} at delta {float(own['delta']):g}; such figures of several answers do not add up."]


def _promise(text: str) -> str:
    """Three significant digits, rounded up: a promise is not made smaller than it is."""
    exact = decimal.Decimal(text)
    if not exact:
        return "0"
    rounded = exact.quantize(decimal.Decimal(1).scaleb(exact.adjusted() - 2), rounding=decimal.ROUND_CEILING)
    return f"{float(rounded):g}"


def _digits(value: float, digits: int = 3) -> str:
    return f"{float(f'{value:.{digits}g}'):g}"


def _delta(amounts: Json) -> str:
    return f", delta {float(amounts['delta']):g}" if float(amounts["delta"]) else ""


# Estimates

_VERDICTS = {
    "affordable": "It would be answered.",
    "free": "It would be answered from stored releases, for free.",
    "rejected_budget": "It would be refused: the budget does not cover it.",
}


def plan_lines(answer: Json) -> Iterator[str]:
    """The report of a plan as the server wrote it."""
    yield from map(printable, answer["plan"]["text"].split("\n"))


def estimate_lines(answer: Json) -> Iterator[str]:
    """A price and its errors: whether it would be answered, what it costs and leaves, and other prices."""
    price, left, after = answer["price"], answer["remaining"]["epsilon"], answer["remaining_after"]["epsilon"]
    yield _VERDICTS.get(answer["verdict"], printable(answer["verdict"]))
    yield from warning_lines(answer)
    if answer.get("refusal") is not None:
        yield from _advice(answer["refusal"])
    words = f"{part_words(price['epsilon'], price)}{_delta(price)}"
    yield f"Price: {words}. Remains: {short(left)} now, {short(after)} afterwards."
    if price.get("raised"):
        yield "It is the least price of an answer that reads rows: the answer is more exact than was asked for."
    yield from _part_lines(price)
    yield from _added_lines(answer.get("sharpening"))
    yield from own_words(price.get("own"))
    yield from _error_lines([column for column in answer["columns"] if column["kind"] != "key"])
    yield from _size_lines(answer.get("expected") or [])
    for item in answer.get("contribution", []):
        if item.get("cut"):
            yield f"{printable(item['table'])}: {printable(item['cut'])}"
        if item.get("keys") == "thresholded":
            yield f"Groups with few units are not shown, because the list of groups is not public{_half(item)}."
    yield from _curve_lines(answer.get("curve") or [])
    yield from _family_lines(answer.get("families") or [], free=answer["verdict"] == "free")


def _half(item: Json) -> str:
    """From how many units on a hidden group is shown."""
    needed = item.get("shown_from") or []
    if len(needed) == 1:
        return f": one of {needed[0]['units']:,} is, as often as not"
    each = ", ".join(f"{one['units']:,} units of {_groups(one['groups_per_unit'])} each" for one in needed)
    return f": one of {each}, is, as often as not" if each else ""


def _groups(number: int) -> str:
    return "one group" if number == 1 else f"{number:,} groups"


def _size_lines(expected: Sequence[Json]) -> Iterator[str]:
    """How large the groups are by the dataset's profile, and how wide the intervals of counts are beside that."""
    for item in expected:
        rows = item["rows"]
        if rows is None:
            yield f"By the profile of the data the groups of {printable(item['table'])} may all be empty."
            continue
        many = f"{rows['least']:,} to {rows['greatest']:,} rows each (median {rows['median']:,})"
        words = f"{rows['greatest']:,} rows" if item["groups"] == 1 else many
        empty = f", and {item['perhaps_empty']:,} of {item['groups']:,} may be empty" if item["perhaps_empty"] else ""
        if_so = f", if {printable(item['assumed'])}" if item.get("assumed") else ""
        yield f"By the profile of the data its groups have {words}{empty}{if_so}."
        for text, parts in item["relative"].items():
            ends = f"{_digits(100 * parts['greatest'], 2)} % to {_digits(100 * parts['least'], 2)} %"
            yield f"  ± of {printable(text)} is {ends if item['groups'] > 1 else ends.split(' to ')[0]} of that."


def _error_lines(noisy: Sequence[Json]) -> Iterator[str]:
    if not noisy:
        return
    # Averages and the like are the more exact the more rows a group has: the table below says how much.
    ratios = [column for column in noisy if column.get("by_rows")]
    errors = ("half_width", "standard_error")
    rows, unknown = [], []
    for column in noisy:
        known = [_known(column[name]) for name in errors]
        rows.append([column["name"], *(["by rows, below"] * 2 if column in ratios else known)])
        if column.get("half_width_reason") is not None:
            unknown.append(printable(column["half_width_reason"]["why"]))
        elif column["half_width"] is None and column not in ratios:
            unknown.append("it is computed from other noisy numbers; the answer has it")
    yield "\n" + table(["column", "± half width", "standard error"], rows, right=(1, 2))
    for why in dict.fromkeys(unknown):
        yield f"  (unknown: {why})"
    if not ratios:
        return
    sizes = [f"{int(size['rows']):,}" for size in ratios[0]["by_rows"]]
    rows, worst = [], []
    for column in ratios:
        by_rows = [[_known(size[name]) for name in errors] for size in column["by_rows"]]
        rows.append([column["name"], *(f"{width} ({error})" for width, error in by_rows)])
        worst.append(f"{printable(column['name'])} {_known(column['by_rows'][-1]['standard_error_at_most'])}")
    yield "\n± half width (standard error) in a group of so many rows:"
    yield table(["column", *sizes], rows, right=range(1, len(sizes) + 1))
    even = "if the values are spread evenly over their bounds"
    yield f"  ({even}; whatever they are, the standard error in {sizes[-1]} rows is at most: {', '.join(worst)})"


def _curve_lines(curve: Sequence[Json]) -> Iterator[str]:
    names = list(dict.fromkeys(name for point in curve for name in point["standard_errors"]))
    if len(curve) < 2 or len(names) > 6:
        return
    yield "\nPrice and standard errors:"
    rows = [[short(point["epsilon"]), *(_at_price(point, name) for name in names)] for point in curve]
    ratios = {name for point in curve for name in point.get("by_rows", {})}
    heads = [name + (f" of {_CURVE_ROWS:,} rows" if name in ratios else "") for name in names]
    yield _starred(["epsilon", *heads], rows, curve, right=range(len(names) + 1))


def _at_price(point: Json, name: str) -> str:
    sizes = point.get("by_rows", {}).get(name, [])
    of_rows = next((size["standard_error"] for size in sizes if size["rows"] == _CURVE_ROWS), None)
    return _known(of_rows if sizes else point["standard_errors"].get(name))


def _family_lines(families: Sequence[Json], *, free: bool) -> Iterator[str]:
    """Both kinds of noise side by side: price, error of each column, and what would be left for later questions."""
    if len(families) < 2:
        return
    names = [column["name"] for column in families[0]["columns"]]
    shown = names if len(names) <= 4 else []
    kinds = list(dict.fromkeys(kind for family in families for kind in family["questions_left_after"]))
    # A server before 0.13.0 does not say it.
    later = families[0].get("later")
    rows = []
    for family in families:
        widths = {column["name"]: column for column in family["columns"]}
        row = [family["noise"] + (" (this)" if family["chosen"] and not free else "")]
        row += [short(family["price"]["epsilon"]), _promise(family["price"]["own"]["epsilon"])]
        row += [_width(widths[name]) for name in shown]
        row += [f"{family['questions_left_after'].get(kind, 0):,}" for kind in kinds]
        rows.append([*row, _known(family["later"]["standard_error"])] if later else row)
    heads = ["noise", "epsilon", "by itself", *(f"± {name}" for name in shown)]
    heads += [f"{kind} questions left" for kind in kinds]
    heads += [f"error of a count for {short(later['epsilon'])}"] if later else []
    start = "Bought anew, with" if free else "With"
    yield f"\n{start} either kind of noise, and how many questions at the default spend would fit afterwards:"
    yield _starred(heads, rows, families, right=range(1, len(heads)))


def _width(column: Json) -> str:
    width = column["half_width"]
    if width is None and column.get("by_rows"):
        width = column["by_rows"][1]["half_width"]
    return "unknown" if width is None else _digits(float(width))


def _starred(head: list[str], rows: list[list[str]], items: Sequence[Json], *, right: range) -> str:
    """A table of prices, with a star beside what the budget does not cover."""
    beyond = [row for row, item in zip(rows, items, strict=True) if not item.get("affordable", True)]
    for row in beyond:
        row[0] += " *"
    return table(head, rows, right=right) + ("\n  (* more than the budget covers now)" if beyond else "")


def _known(value: float | str | None) -> str:
    """A number with four digits, thousands apart; of large ones the remaining digits are zeros."""
    if value is None:
        return "unknown"
    rounded = float(f"{float(value):.4g}")
    return f"{rounded:,.0f}" if 1_000 <= abs(rounded) < 1e15 else f"{rounded:.4g}"


# Declarations and budgets


def datasets_lines(body: Json) -> Iterator[str]:
    """The datasets that may be asked."""
    listed, broken = body["datasets"], printable(", ".join(body.get("unavailable", [])))
    if broken:
        yield f"Not available at the moment: {broken}. Tell the operator of the server."
    elif not listed:
        yield "You have a budget for no dataset. Ask an administrator for one."
    if listed:
        rows = [[item["name"], ", ".join(item["tables"]), item["description"]] for item in listed]
        yield table(["dataset", "tables", "description"], rows)
        yield as_typed("Columns, types and bounds: noisegate describe DATASET")


def dataset_lines(body: Json) -> Iterator[str]:
    """What a dataset declares: privacy unit, prices, and each table with its columns."""
    unit, limits = body["privacy_unit"], body["limits"]
    protected = f"each row of {unit['table']}" if unit["key"] is None else f"{unit['key']} of {unit['table']}"
    yield f"{printable(body['name'])}: {printable(body['description'])}".rstrip(": ")
    if body.get("unit_space") not in (None, body["name"]):
        protected += f", as in all of unit space {body['unit_space']}"
    yield (
        f"Protected: {printable(protected)}. One query costs epsilon {short(limits['epsilon_default'])} by default, "
        f"{short(limits['epsilon_max'])} at most."
    )
    for item in body["tables"]:
        kind = ("protected" if item["protected"] else "public") + (f", key {item['key']}" if item["key"] else "")
        yield ""
        yield printable(f"{item['name']} ({kind}) {item['description']}".rstrip())
        for part in item["references"]:
            yield printable(f"  {part['column']} refers to {part['table']}.{part['key']}")
        bounds = item["contribution"]
        numbers = {name: bound for name, bound in (bounds or {}).items() if name != "automatic"}
        if numbers and bounds.get("automatic"):
            yield "  each question chooses how much of one unit counts; of hidden groups Laplace noise needs numbers:"
            counted, groups = bounds["rows_per_unit"], bounds["groups_per_unit"]
            yield f"  at most {counted:,} of its rows count, in {groups:,} groups"
        elif numbers and numbers != dict.fromkeys(numbers, 1):
            yield (
                f"  of one unit count at most {bounds['rows_per_unit']:,} rows, in "
                f"{bounds['groups_per_unit']:,} groups, {bounds['rows_per_unit_and_group']:,} in each"
            )
        yield table(["column", "type", "bounds", "public groups", "description"], map(_column_row, item["columns"]))
    if body.get("profile") is not None:
        yield ""
        yield from profile_lines(body["profile"])


def profile_lines(profile: Json) -> Iterator[str]:
    """A profile: each table with its units and rows, then its columns."""
    yield (
        f"Profile of data version {printable(profile['data_version'][:16])}: noisy figures, charged epsilon "
        f"{short(profile['epsilon'])} on the root. Each unit weighs one; [ ] are the intervals of the noise at "
        f"{round(float(profile['confidence']) * 100, 4):g} % confidence."
    )
    for item in profile["tables"]:
        yield ""
        rows = "" if item["rows"] is None else f", rows {_told(item['rows'])}"
        yield f"{printable(item['name'])}: units {_told(item['units'])}{rows}"
        if item["rows_per_unit"] is not None:
            yield f"  rows per unit: {_quantiles(item['rows_per_unit'])}"
        yield from _profiled_columns(item["columns"])


def _profiled_columns(columns: Sequence[Json]) -> Iterator[str]:
    rows = []
    for column in columns:
        missing = "" if column["null"] is None else f"{_percent(column['null'])}"
        parts: list[str] = []
        if column["quantiles"] is not None:
            parts.append(_quantiles(column["quantiles"]))
        if column["keys"] is not None:
            shown = column["keys"][:_KEYS_SHOWN]
            more = "" if len(shown) == len(column["keys"]) else f", ... ({len(column['keys']):,})"
            sizes = [f"{_cell(one['key'], None, None, key=True)} {_told(one['units'])}" for one in shown]
            parts.append(", ".join(sizes) + more)
        for name, words in (("groups_per_unit", "keys per unit"), ("months_per_unit", "months per unit")):
            if column[name] is not None:
                parts.append(f"{words}: {_quantiles(column[name])}")
        if missing or parts:
            rows.append([column["name"], missing, parts[0] if parts else ""])
            rows += [["", "", part] for part in parts[1:]]
    if rows:
        yield table(["column", "NULL", "values"], rows)


def _told(told: Json) -> str:
    return _cell(told["value"], told["low"], told["high"], derived=True)


def _percent(told: Json) -> str:
    return f"{_digits(100 * told['value'])} % [{_digits(100 * told['low'])}, {_digits(100 * told['high'])}]"


def _quantiles(quantiles: Sequence[Json]) -> str:
    """As in `5 %: 18 [17, 19], median: 44 [43, 45]`."""
    words = []
    for one in quantiles:
        level = "median" if one["level"] == 0.5 else f"{100 * one['level']:g} %"
        words.append(f"{level}: {_plain(one['value'])} [{_plain(one['low'])}, {_plain(one['high'])}]")
    return ", ".join(words)


def _plain(value: object) -> str:
    """A number as it is: a year has no thousands apart."""
    return f"{value:.6g}" if isinstance(value, float) else printable(value)


def _column_row(column: Json) -> list[str]:
    ends, keys = column["bounds"], column["keys"] or []
    kind = column["type"] + ("" if column["nullable"] else ", never NULL")
    bounds = "" if ends is None else f"{short(ends['lower'])} to {short(ends['upper'])}"
    groups = ", ".join(map(key_text, keys[:_KEYS_SHOWN]))
    more = "" if len(keys) <= _KEYS_SHOWN else f", ... ({len(keys):,})"
    if (other := column.get("other")) is not None:
        more += f"; any other value is {key_text(other['key'])}"
    return [column["name"], kind, bounds, groups + more, column["description"]]


def key_text(key: object) -> str:
    """A key of groups as the tables of answers write it."""
    return "NULL" if key is None else str(key)


def left_out_lines(snapshot: Snapshot | None) -> Iterator[str]:
    """For administrators: true counts of what the limits of a snapshot left out, and of values read as missing ones."""
    for item in () if snapshot is None else snapshot.report.tables:
        where = f"In table {item.name},"
        if item.rows_beyond:
            rows = f"{item.rows_beyond:,} of {item.rows_read:,} rows were left out, and no answer counts them"
            yield f"{where} {rows}: see rows_stored_per_unit in docs/datasets.md."
        for column, count in item.texts_cut:
            yield f"{where} {count:,} texts of column {column} were cut: see length_max in docs/datasets.md."
        for column, count in item.non_finite:
            if count:
                yield f"{where} infinite or NaN values of column {column} are read as NULL: {count:,}."
