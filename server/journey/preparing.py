"""Steps 2 and 3: a text becomes cores with proved sensitivities and statements that the engine can plan, or is refused.

The lift reads what a text means. DuckDB then says whether it reads the text at all, on empty tables, in the round
trip that plans the statements.

A pure function of the text and public metadata, so what was prepared is kept.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace

from engines.arrays import CELL_BYTES
from engines.protocol import TwinPlanner
from engines.shell import CHECK_SECONDS, PlanFailed, ShellEngine, ShellInvalid, ShellSlow, ShellTable
from engines.texts import AskedText, TextRefused
from mechanisms.calibrate import Calibration
from mechanisms.released_table import ReleasedTable
from privacy.norms import NormPower
from privacy.policy import Dataset
from privacy.refusal import ExecutionFailed, Finding, Refused
from privacy.statement import Statement
from privacy.statistic import CoreStatistics
from server import answer_rows
from server.calibrations import Calibrations
from server.journey.charges import text_key
from server.journey.google import check_clause, check_groups
from server.journey.merging import with_forest
from server.journey.nonnegative import check_nonnegative
from server.journey.norms import Chosen, key_at_norms
from server.journey.query import Histogram, Prepared, Raised
from server.journey.stages import sampled
from server.journey.value_bounds import NO_NORMS, at_chosen_bounds
from server.journey.value_stage import Told, ValueStage
from server.journey.within_time import bound_within_time
from server.public_tables import public_shapes
from server.question import Question
from sql_rewrite.bound import BoundedCore, bound_core
from sql_rewrite.cost import check_work
from sql_rewrite.cut_groups import bounds_partly_asked
from sql_rewrite.dialects.dialect import Dialect
from sql_rewrite.drawn import check_drawn
from sql_rewrite.foreign import foreign_text, place_of_value
from sql_rewrite.lift import lift
from sql_rewrite.lower import lower
from sql_rewrite.memory import check_memory
from sql_rewrite.named_ranks import by_mechanism
from sql_rewrite.norms import lower_norms, norm_core, norm_key, shares_tables
from sql_rewrite.plan import Plan
from sql_rewrite.plan_key import core_key
from sql_rewrite.plan_warnings import plan_warnings

__all__ = ["Preparing"]

PLANS_KEPT = 512


class Preparing:
    """Prepares questions, and keeps the plans of those asked last. Safe to use from many threads."""

    def __init__(
        self, shell: ShellEngine, twins: TwinPlanner, dialect: Dialect, public: Callable[[Plan], Sequence[ShellTable]]
    ) -> None:
        """Statements are written in the dialect of the engine that runs them, and planned on its empty twins.

        `public` reads the public tables of a plan.
        """
        self._public = public
        self._shell = shell
        self._twins = twins
        self._dialect = dialect
        self._kept: OrderedDict[Hashable, Prepared] = OrderedDict()
        self._lock = threading.Lock()

    def prepare(self, question: Question, dataset: Dataset, power: NormPower) -> Prepared:
        """Steps 2 and 3; `power` is that of norms which the question chooses. Errors: Refused."""
        # Each analyst's own: how long it takes must not reveal that somebody else asked the same.
        key = (question.principal, text_key(question, dataset, power))
        with self._lock:
            known = self._kept.get(key)
            if known is not None:
                self._kept.move_to_end(key)
        if known is not None:
            if question.nonnegative:
                check_nonnegative(question, known)
            return known
        prepared = self._prepared(question, dataset.bounded_by(question.contribution), power)
        partly = tuple(bounds_partly_asked(question.contribution, dataset, prepared.cores))
        prepared = replace(prepared, warnings=(*prepared.warnings, *partly))
        with self._lock:
            self._kept[key] = prepared
            while len(self._kept) > PLANS_KEPT:
                self._kept.popitem(last=False)
        if question.nonnegative:
            check_nonnegative(question, prepared)
        return prepared

    def forget(self) -> None:
        """Forgets what was prepared."""
        with self._lock:
            self._kept.clear()

    def _prepared(self, question: Question, dataset: Dataset, power: NormPower, *, choose: bool = True) -> Prepared:
        check_clause(question.clause, dataset)
        plan = lift(
            question.sql,
            dataset,
            question.parameters,
            nonempty=question.nonempty,
            started=question.started,
            choose=choose,
            atoms=question.atoms,
        )
        check_drawn(plan)
        plan = by_mechanism(plan, question.mechanism)
        # Before anything is written out, which may be long.
        plan, cores, values, work = bound_within_time(plan, power, self._dialect)
        check_groups(question.clause, cores)
        if question.merge is not None:
            cores = with_forest(plan, cores, question, open_bounds=values is not None)
        histograms = tuple(norm_core(core) for core in cores)
        check_memory(cores, self._dialect.costs)
        types = None if plan.shell.trivial else self._shell_types(question, plan, cores)
        statements = tuple(lower(core, self._dialect) for core in cores)
        of_norms = tuple(
            None if described is None else _histogram(core, described, dataset, values, self._dialect)
            for core, described in zip(cores, histograms, strict=True)
        )
        first = [histogram.statement for histogram in of_norms if histogram is not None]
        # Their sums at other norms, where they read the tables that their histograms make.
        first += [
            lower(core, self._dialect, shared=True)
            for core, histogram in zip(cores, of_norms, strict=True)
            if histogram is not None and histogram.shared
        ]
        first += () if values is None else values.statements
        self._check_plannable(question, sampled(plan, (*statements, *first)), dataset)
        keys = tuple(core_key(core, dataset) for core in cores)
        if values is not None:
            keys = tuple(values.key(core.described.name, key) for core, key in zip(cores, keys, strict=True))
        earlier = {
            core.described.name: _earlier_key(core, dataset, power, values) for core in cores if core.joins_averages
        }
        return Prepared(
            plan=plan,
            cores=cores,
            statements=statements,
            keys=keys,
            earlier=earlier,
            types=types,
            work=work,
            warnings=(*(() if question.clause is None else question.clause.warnings), *plan_warnings(plan, cores)),
            histograms=of_norms,
            power=power,
            values=values,
            counted=self._prepared(question, dataset, power, choose=False) if plan.chosen else None,
        )

    def _shell_types(self, question: Question, plan: Plan, cores: Sequence[BoundedCore]) -> tuple[tuple[str, str], ...]:
        """The types of the columns of the shell, bound and tried on made-up numbers. Errors: Refused."""
        public = self._public(plan)
        try:
            types = self._shell.check(
                [*answer_rows.shapes(cores), *public_shapes(public)],
                plan.shell.sql,
                samples=answer_rows.samples(cores, plan.shell, public),
                others=answer_rows.spread_samples(cores, public),
                owner=question.principal,
            )
        except ShellInvalid as invalid:
            if invalid.fails:
                raise Refused([_SHELL_FAILS]) from None
            position = place_of_value(question.sql, plan.shell.sql, invalid.place)
            raise Refused([replace(_SHELL_REFUSED, position=position)]) from None
        except ShellSlow:
            raise Refused([_SHELL_SLOW]) from None
        answer_rows.check_types(types, plan.shell)
        if not cores:
            self._check_public(question, plan, public)
        return types

    def at_norms(self, prepared: Prepared, norms: Mapping[str, Chosen]) -> Prepared:
        """A query whose norms are known before its price, by core: it is priced at them, and chooses none by itself.

        Its releases are others than those of a question that chooses: only these promise a width.
        """
        cores = tuple(
            norms[core.described.name].core if core.described.name in norms else core for core in prepared.cores
        )
        return replace(
            prepared,
            cores=cores,
            statements=tuple(lower(core, self._dialect) for core in cores),
            keys=tuple(
                key_at_norms(key, norms[core.described.name].norms) if core.described.name in norms else key
                for core, key in zip(cores, prepared.keys, strict=True)
            ),
            work=check_work(cores, self._dialect.costs),
            calibrations=Calibrations(),
            histograms=(None,) * len(cores),
            notes={name: chosen.notes for name, chosen in norms.items()},
        )

    def at_stored(self, prepared: Prepared, raised: Mapping[str, Raised]) -> Prepared:
        """A query of which some cores are measured beside stored releases, at the norms and value bounds of these.

        The keys stay.

        `raised` is by the name of the core.
        """
        places = [place for place, core in enumerate(prepared.described) if core.name in raised]
        if not any(prepared.histograms[place] or prepared.described[place].name in prepared.bounds for place in places):
            return prepared
        cores = tuple(
            raised[core.described.name].core if place in places else core for place, core in enumerate(prepared.cores)
        )
        return replace(
            prepared,
            cores=cores,
            statements=tuple(
                lower(core, self._dialect) if place in places else statement
                for place, (core, statement) in enumerate(zip(cores, prepared.statements, strict=True))
            ),
            calibrations=Calibrations(),
            histograms=tuple(None if place in places else one for place, one in enumerate(prepared.histograms)),
            notes={**prepared.notes, **{name: one.table.norms for name, one in raised.items()}},
            bounds={**prepared.bounds, **{name: one.table.bounds for name, one in raised.items() if one.table.bounds}},
        )

    def at_bounds(
        self,
        prepared: Prepared,
        calibration: Calibration,
        told: Sequence[Told],
        *,
        promised: bool,
        norms: Mapping[str, ReleasedTable] = NO_NORMS,
    ) -> Prepared:
        """A query whose value bounds are chosen before its price, from stored histograms: it releases none by itself.

        With `promised`, its releases are others than those of a question that chooses: only these promise a width. They
        are found by their bounds, which must not follow from which histograms of norms are there: it takes none.
        """
        assert not (promised and norms)
        bound, _ = at_chosen_bounds(prepared, calibration, told, self._dialect, norms=norms)
        first = [core for core, histogram in zip(bound.cores, bound.histograms, strict=True) if histogram is not None]
        dataset, power = prepared.plan.dataset, prepared.power
        keys = tuple(core_key(core, dataset) for core in bound.cores) if promised else bound.keys
        if promised:
            joined = [core for core in bound.cores if core.joins_averages]
            bound = replace(bound, earlier={core.described.name: _earlier_key(core, dataset, power) for core in joined})
        return replace(
            bound,
            keys=keys,
            work=check_work(bound.cores, self._dialect.costs, first=first, apart=bound.apart),
            spared=frozenset() if promised else frozenset(bound.bounds),
            told=None if promised or prepared.values is None else (prepared.values, tuple(told)),
        )

    def _check_public(self, question: Question, plan: Plan, public: Sequence[ShellTable]) -> None:
        """Refuses a query of public relations alone that cannot be computed, or is too long: all of it is known.

        Errors: Refused.
        """
        try:
            (row,) = self._shell.run(
                public,
                f"SELECT COUNT(*) AS n, {_LENGTHS} FROM ({plan.shell.sql}) AS t",
                timeout_seconds=CHECK_SECONDS,
                owner=question.principal,
            ).rows
        except ExecutionFailed as failure:
            if not failure.started:
                raise
            raise Refused([_PUBLIC_FAILS]) from None
        rows, *sizes = (int(str(value)) for value in row)
        if rows > answer_rows.ROWS_MIN:
            raise Refused([replace(_PUBLIC_LONG, what=f"an answer of {rows:,} rows is refused")])
        if sum(sizes) > max(answer_rows.TEXT_MIN, CELL_BYTES * rows * len(sizes)):
            raise Refused([replace(_PUBLIC_LONG, what=f"an answer of {sum(sizes):,} bytes of text is refused")])

    def _check_plannable(self, question: Question, statements: Sequence[Statement], dataset: Dataset) -> None:
        """Refuses a text that is not DuckDB's dialect, and what the engine cannot plan.

        On true data an error of planning would be an outcome, and charged.
        """
        text = AskedText(question.sql, question.parameters)
        try:
            self._twins.plan(dataset, statements, text=text, owner=question.principal)
        except TextRefused as refused:
            raise foreign_text(question.sql, refused.step, refused.place) from None
        except PlanFailed:
            raise Refused([_NOT_PLANNED]) from None


def _earlier_key(core: BoundedCore, dataset: Dataset, power: NormPower, values: ValueStage | None = None) -> str:
    """What a core asked while each of its averages had a statistic of its own."""
    key = core_key(bound_core(core.core, dataset, power=power, joined=False), dataset)
    return key if values is None else values.key(core.described.name, key)


def _histogram(
    core: BoundedCore, described: CoreStatistics, dataset: Dataset, values: ValueStage | None, dialect: Dialect
) -> Histogram:
    """The histogram of a core's norms, with its statement.

    Tables at nominal value bounds would serve no sums within the chosen ones.
    """
    shared = shares_tables(core) and (values is None or core.described.name not in values.norms_first)
    key = _norm_key(core, dataset, values)
    return Histogram(described, lower_norms(core, dialect, shared=shared), key, shared)


def _norm_key(core: BoundedCore, dataset: Dataset, values: ValueStage | None) -> str:
    """What the histogram of a core's norms asks."""
    key = norm_key(core, dataset)
    return key if values is None else values.norm_key(core.described.name, key)


_SHELL_REFUSED = Finding(
    code="unsupported_sql",
    what="the part above the aggregates is refused",
    why="It does not fit the names and types of the released columns, or of their values.",
    instead=(
        "compare numbers with numbers, texts with texts and dates with dates ('2024-01-31')",
        "check the types of casts and function arguments",
        "see docs/sql.md",
    ),
)

_SHELL_FAILS = Finding(
    code="unsupported_sql",
    what="the part above the aggregates is refused",
    why="It fails on made-up rows whatever their numbers are: a constant or an argument of a function is out of range.",
    instead=(
        "check its constants, and what its functions accept: NTILE(4), SQRT and LN of what is not negative",
        "see docs/sql.md",
    ),
)

_PUBLIC_FAILS = Finding(
    code="unsupported_sql",
    what="the query of public tables is refused",
    why=f"It fails on their values, or took more than {CHECK_SECONDS:g} seconds or the memory of one worker.",
    instead=("check casts and the arguments of functions: TRY_CAST gives NULL", "join on keys, or ask it in parts"),
)

_LENGTHS = "COALESCE(SUM(strlen(CAST(COLUMNS(*) AS VARCHAR))), 0)"
"""Bytes of the values of each column, as text."""

_PUBLIC_LONG = Finding(
    code="too_large",
    what="an answer is refused",
    why=f"Every answer is kept. An answer from public tables has at most {answer_rows.ROWS_MIN:,} rows and "
    f"{answer_rows.TEXT_MIN >> 20} MiB of text.",
    instead=("aggregate, or filter with WHERE", "ask it in parts, with ORDER BY, LIMIT and OFFSET"),
)

_SHELL_SLOW = Finding(
    code="too_large",
    what="the part above the aggregates is refused",
    why=f"It could not be checked on made-up rows within {CHECK_SECONDS:g} seconds and the memory of one check.",
    instead=("use fewer or shorter strings and expressions", "ask it in parts"),
)

_NOT_PLANNED = Finding(
    code="cannot_be_planned",
    what="the query is refused",
    why="The engine cannot plan it on an empty copy of the tables. That is a fault of this server.",
    instead=("write the expression in another way, or ask for its parts", "tell the operator"),
)
