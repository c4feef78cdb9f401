"""One query, step by step, as the journey sees it before any row is read: what to look at when a step is changed.

    ./noisegate dev trace "SELECT sex, AVG(age) FROM patients GROUP BY sex" [--file dataset.yaml] [--epsilon 0.1]

Prints the plan, the bounds, the statement, the work and its moments, the measurements and the price. No engine and no
ledger take part, so nothing is spent; the account is made up, with the limit that `--limit` and `--delta` name. Group
keys that a dataset takes from a public table are hidden here, for there is no data to read them from.
"""

from __future__ import annotations

import argparse
import datetime
import sys
from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import assert_never

from accountant.account import Account, FilterKind, Limit
from privacy.currency import MU_SQUARED
from privacy.norms import NormPower
from privacy.numbers import decimal_text
from privacy.own import own_figure
from privacy.policy import Dataset
from privacy.refusal import Refused
from privacy.statement import Statement
from server import pricing
from server.calibrations import Calibrations
from server.datasets.check import load_text
from server.datasets.convert import to_dataset
from server.datasets.finding import DatasetFileRefused
from server.demo import DATASET_FILE
from server.journey.pace import Pace
from server.journey.within_time import bound_within_time
from server.settings import Settings
from sql_rewrite.bound import BoundedCore
from sql_rewrite.contribution import Contribution, NormedContribution
from sql_rewrite.dialects.duckdb import DUCKDB
from sql_rewrite.expressions import describe
from sql_rewrite.lift import lift
from sql_rewrite.lower import lower
from sql_rewrite.norms import lower_norms, norm_core
from sql_rewrite.plan import Core
from sql_rewrite.plan_key import core_key

__all__ = ["main", "trace"]


def trace(sql: str, dataset: Dataset, account: Account, epsilon: Fraction | None = None) -> Iterator[str]:
    """The lines of a query's way from its text to its price. Errors: Refused."""
    plan = lift(sql, dataset, {})
    yield "2 lift: the plan"
    for core in plan.cores:
        yield from _core(core)
    yield f"  shell: {'none, the core is the answer' if plan.shell.trivial else plan.shell.sql}"
    power = NormPower.L2 if MU_SQUARED.pays(account) else NormPower.L1
    plan, cores, values, work = bound_within_time(plan, power, DUCKDB)
    of_values = () if values is None else values.histograms
    yield "3 bound: what one unit can change"
    for bounded in cores:
        yield from _bounds(bounded)
        yield f"    identity {core_key(bounded, dataset)[:16]}"
    for one, statement in zip(of_values, () if values is None else values.statements, strict=True):
        name = one.bounded.described.name
        yield f"  two stages: {name} chooses the bounds of {one.table}.{one.column.name}, nominal here"
        yield from _statement(name, statement)
    for bounded in cores:
        histogram = norm_core(bounded)
        if histogram is not None:
            yield f"  two stages: {histogram.name} chooses the norms of {bounded.described.name}, nominal here"
            yield from _statement(histogram.name, lower_norms(bounded))
        yield from _statement(bounded.described.name, lower(bounded))
    moments = Pace(tick_seconds=Settings.model_fields["answer_tick_ms"].default / 1000).moments(work)
    yield (
        f"  work: one unit's rows take at most {work.unit_nanoseconds / 1e6:.3f} ms "
        f"({work.costliest or 'no operators'}); "
        f"tick {moments.tick * 1e3:.1f} ms, first moment {moments.first * 1e3:.1f} ms"
    )
    histograms = [histogram for bounded in cores if (histogram := norm_core(bounded)) is not None]
    described = [*(bounded.described for bounded in cores), *histograms, *(one.bounded.described for one in of_values)]
    if not described:
        yield "4 calibrate: nothing is read, nothing is paid"
        return
    wish = pricing.Wish(epsilon=epsilon)
    priced = pricing.price(described, wish, path=[account], dataset=dataset, known=Calibrations())
    yield f"4 calibrate: {priced.family} noise"
    for measurement in priced.calibration.measurements:
        spread = measurement.variance() ** 0.5 * measurement.grid
        yield (
            f"  {measurement.core}.{measurement.statistic.name}: {measurement.name}, share "
            f"{float(measurement.share):.3g}, grid {measurement.grid}, standard deviation {spread:.4g} units"
        )
    for bounded in cores:
        widths = priced.calibration.predicted_half_widths(bounded.described.name, Fraction(95, 100))
        for aggregate in bounded.core.aggregates:
            width = widths[aggregate.name]
            each = " for each unit of the norm" if bounded.norms else ""
            if values is not None and bounded.described.name in values.places:
                each += " at nominal bounds"
            yield f"  {aggregate.text}: {'depends on the answer' if width is None else f'±{width:.4g} at 95 %{each}'}"
    own = own_figure(priced.calibration.events(), **pricing.own_deltas(account, dataset))
    yield (
        f"  price: epsilon {decimal_text(priced.cost)} of {decimal_text(account.limit.epsilon)}, delta "
        f"{decimal_text(priced.delta)}; by itself ({decimal_text(own.epsilon)}, {decimal_text(own.delta)})"
    )
    yield "5 reserve, 6 run, 7 release, 8 post: need a ledger and rows"


def _core(core: Core) -> Iterator[str]:
    yield f"  {core.name}: {' + '.join(source.table.name for source in core.sources)}"
    if core.where is not None:
        yield f"    where {describe(core.where)}"
    for name, key in core.keys:
        yield f"    key {name} = {describe(key)}"
    for aggregate in core.aggregates:
        yield f"    {aggregate.name} = {aggregate.text}"
    if core.choice is not None:
        within = f" within {', '.join(core.choice.within)}" if core.choice.within else ""
        side = "least" if core.choice.least else "greatest"
        yield f"    chosen: {core.choice.count} of the {side} {core.choice.score.text}{within}"


def _bounds(bounded: BoundedCore) -> Iterator[str]:
    most = bounded.contribution
    match most:
        case Contribution():
            yield (
                f"  {bounded.described.name}: {most.groups} groups of a unit, {most.rows} rows of it in each, "
                f"{'one row in all' if most.one_row else f'{most.total} rows in all'}"
            )
        case NormedContribution():
            norms = ", ".join(f"{norm.norm.text} ({norm.norm.power.value})" for norm in bounded.norms) or "none"
            yield f"  {bounded.described.name}: {most.cells} groups of a unit, scaled to norms of: {norms}"
        case _:
            assert_never(most)
    domain = bounded.described.keys.domain
    if bounded.core.keys:
        yield f"    groups: {'hidden, shown above a threshold' if domain is None else f'{len(domain)} public ones'}"
    for statistic in bounded.described.statistics:
        held = statistic.sensitivity
        yield (
            f"    {statistic.name}: {statistic.kind.value} of {statistic.argument or 'rows'}, {statistic.coordinates} "
            f"sums; one unit moves them by at most {float(held.l1):.6g} (L1), {float(held.l2_squared) ** 0.5:.6g} (L2)"
        )


def _statement(name: str, statement: Statement) -> Iterator[str]:
    yield f"  statement of {name}, {len(statement.parameters)} parameters {list(statement.parameters)}"
    yield f"    {statement.sql}"


def _account(dataset: Dataset, limit: Fraction, delta: Fraction) -> Account:
    return Account.opened(
        id="trace",
        dataset=dataset.name,
        parent=None,
        principal=None,
        name="trace",
        limit=Limit(limit, delta),
        filter=FilterKind.APPROXIMATE if delta else FilterKind.PURE,
        created=datetime.datetime.now(datetime.UTC),
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """The command. Returns its exit code: 0, or 1 for what is refused."""
    parser = argparse.ArgumentParser(
        prog="noisegate dev trace", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sql")
    parser.add_argument("--file", type=Path, help="a dataset file; the demo's when there is none")
    parser.add_argument("--epsilon", type=Fraction, help="what is spent; the policy's default when there is none")
    parser.add_argument("--limit", type=Fraction, default=Fraction(10), help="epsilon of the account")
    parser.add_argument("--delta", type=Fraction, default=Fraction(1, 10**6), help="its delta; 0 for a pure account")
    options = parser.parse_args(arguments)
    try:
        # Only what is declared is read: the data may be elsewhere.
        file = load_text(DATASET_FILE if options.file is None else options.file.read_text())
        dataset = to_dataset(file, policy_version=1, data_version="none", public_values=None)
        account = _account(dataset, options.limit, options.delta)
        print(*trace(options.sql, dataset, account, options.epsilon), sep="\n")
    except Refused as refused:
        for finding in refused.findings:
            print(f"{finding.code}: {finding.what}. {finding.why}", *finding.instead, sep="\n  ", file=sys.stderr)
        return 1
    except DatasetFileRefused as refused:
        print(refused, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
