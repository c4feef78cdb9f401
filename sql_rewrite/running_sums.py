"""Sums over neighbouring groups that the outer query reads: windows in the order of a public key.

    SELECT bin, SUM(COUNT(*)) OVER (ORDER BY bin) AS below FROM people GROUP BY age // 10 AS bin
    core c0:  people grouped by k0 = age // 10, a0 = rows; running: of k0 from the first group to each

Claim. Nothing that is released depends on it but by the choice of what noise is drawn on (mechanisms/trees.md): the
statement on the rows, the groups, the sensitivities and the outer query are the same. So a window that is not
recognised here is answered as before, from the noise of every single group, and one that is read wrongly would cost
precision and nothing else: the errors that an answer states follow from the measurement and from the outer query as it
runs, not from what is read here.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from privacy.policy import KeyValue
from privacy.release import ColumnKind
from privacy.statistic import RunningSums
from sql_rewrite.bounded import BoundedStatistic
from sql_rewrite.levels import adds_up
from sql_rewrite.plan import Core, Running, ShellOutput
from sql_rewrite.syntax import whole_number

__all__ = ["measured_running", "with_running"]

ENDS_MAX = 128
"""Most sums by whose errors trees are compared with each other, evenly among all that are read."""

_SUMS = (exp.Sum, exp.Avg)
"""Calls that add up over their window."""

_FAR = 1_000_000


def with_running(cores: Sequence[Core], tree: exp.Expr, outputs: Sequence[ShellOutput]) -> list[Core]:
    """The cores with the windows over their groups that an outer query has. Reads its tree, and changes nothing."""
    found: dict[str, dict[str, list[tuple[int | None, int | None]]]] = {}
    names = {core.name: core for core in cores}
    for window in tree.find_all(exp.Window):
        read = _read(window, names)
        if read is not None:
            core, key, frame = read
            found.setdefault(core, {}).setdefault(key, []).append(frame)
    shown = {core for output in outputs for core in _single(output)}
    return [_with(core, found[core.name], cells=core.name in shown) if core.name in found else core for core in cores]


def _with(core: Core, frames: Mapping[str, Sequence[tuple[int | None, int | None]]], *, cells: bool) -> Core:
    """The core with the windows in the order of one key, the first that has any."""
    place, key = next((place, name) for place, (name, _) in enumerate(core.keys) if name in frames)
    return replace(core, running=Running(place, tuple(dict.fromkeys(frames[key])), cells))


def _single(output: ShellOutput) -> Iterator[str]:
    """The cores of which an output shows numbers of single groups."""
    for branch in output.branches:
        yield from _single(branch)
    if output.kind == ColumnKind.RELEASED and output.core is not None:
        yield output.core
    for core, _, at in output.trace.reads:
        if at is not None:
            yield core


def _read(window: exp.Window, cores: Mapping[str, Core]) -> tuple[str, str, tuple[int | None, int | None]] | None:
    """The core, the key and the frame of a window that adds up released numbers in the order of one key."""
    block = window.find_ancestor(exp.Select)
    if block is None or not isinstance(window.this, _SUMS):
        return None
    named = {one.name.lower(): one for one in block.args.get("windows") or ()}
    spec = named.get(window.alias.lower()) if window.alias else window
    order = None if spec is None else spec.args.get("order")
    if spec is None or order is None or len(order.expressions) != 1:
        return None
    origins = {_origin(one, block) for one in window.this.find_all(exp.Column)}
    (term,) = order.expressions
    key, frame = _origin(term.this, block), _frame(spec.args.get("spec"))
    if len(origins) != 1 or key is None or frame is None:
        return None
    (number,) = origins
    if number is None or number[0] != key[0] or key[0] not in cores:
        return None
    core = cores[key[0]]
    names = {name for name, _ in core.keys}
    within = {
        one and _plain(one[1], core) for one in (_origin(part, block) for part in spec.args.get("partition_by") or ())
    }
    name = _plain(key[1], core)
    if name not in names or within != names - {name}:
        return None
    start, end = frame
    if term.args.get("desc"):
        start, end = None if end is None else -end, None if start is None else -start
    return core.name, name, (start, end)


def _plain(name: str, core: Core) -> str:
    """The name of a key, which as a number has a second one."""
    return name if any(name == one for one, _ in core.keys) else name.removesuffix("_number")


def _origin(node: exp.Expr | None, block: exp.Select) -> tuple[str, str] | None:
    """Of which core's column a column of a block is a copy; None where it is none, or that is not seen at once."""
    while isinstance(node, exp.Paren | exp.Cast):
        node = node.this
    if not isinstance(node, exp.Column):
        return None
    from_ = block.args.get("from_")
    sources = [] if from_ is None else [from_.this, *(join.this for join in block.args.get("joins") or ())]
    if node.table:
        sources = [one for one in sources if one.alias_or_name == node.table]
    if len(sources) != 1:
        return None
    (source,) = sources
    if isinstance(source, exp.Table):
        return source.name, node.name
    inner = source.this if isinstance(source, exp.Subquery) else None
    if not isinstance(inner, exp.Select):
        return None
    same = [one for one in inner.expressions if one.alias_or_name == node.name]
    return _origin(same[0].unalias(), inner) if len(same) == 1 else None


def _frame(spec: exp.Expr | None) -> tuple[int | None, int | None] | None:
    """From how many groups before its own to how many behind it a window reaches; None where that is not seen."""
    if spec is None:
        return None, 0
    ends = []
    for name in ("start", "end"):
        end, side = spec.args.get(name) or "CURRENT ROW", str(spec.args.get(f"{name}_side") or "").upper()
        if isinstance(end, str):
            ends.append(0 if end.upper() == "CURRENT ROW" else -_FAR if side == "PRECEDING" else _FAR)
        else:
            number = whole_number(end)
            if number is None or str(spec.args.get("kind") or "").upper() == "RANGE":
                return None
            ends.append(-number if side == "PRECEDING" else number)
    start, end_ = ends
    return None if start <= -_FAR else start, None if end_ >= _FAR else end_


def measured_running(
    core: Core,
    statistics: Sequence[BoundedStatistic],
    cells: Sequence[tuple[KeyValue, ...]] | None,
    *,
    normed: bool,
) -> RunningSums | None:
    """The sums over neighbouring cells that may be measured by a tree: None where they are not sums of single ones.

    None also where the cells are not in the order of the key, in one direction or the other.
    """
    running = core.running
    if running is None or cells is None or core.levels or not adds_up(statistics, normed=normed):
        return None
    values = list(dict.fromkeys(cell[running.key] for cell in cells))
    ordered = _ordered(values)
    if ordered is None or values not in (ordered, ordered[::-1]):
        return None
    count, backwards, ends = len(values), values != ordered, []
    for start, end in running.frames:
        low, high = (start, end) if not backwards else (_minus(end), _minus(start))
        found = ((0 if low is None else i + low, count if high is None else i + high + 1) for i in range(count))
        within = [(max(0, one), min(count, behind)) for one, behind in found]
        ends += [one for one in within if one[0] < one[1]]
    ends = list(dict.fromkeys(ends))
    if not ends:
        return None
    return RunningSums(running.key, tuple(ends[:: -(-len(ends) // ENDS_MAX)]), running.cells)


def _minus(end: int | None) -> int | None:
    return None if end is None else -end


def _ordered(values: Sequence[KeyValue]) -> list[KeyValue] | None:
    """Values in the order of SQL, NULL behind them; None for values that have no order here."""
    known = [value for value in values if value is not None]
    kinds = set(map(type, known))
    numbers = [value for value in known if isinstance(value, int)]
    texts = [value for value in known if isinstance(value, str)]
    days = [value for value in known if isinstance(value, datetime.date)]
    if len(kinds) != 1 or not (numbers or texts or days):
        return None
    missing = [None] if len(known) < len(values) else []
    return [*sorted(numbers), *sorted(texts), *sorted(days), *missing]
