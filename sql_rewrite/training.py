"""SELECT of features and a label: the rows that a model is fitted to, as a statement for the private worker.

    SELECT age, sex, hours, smoker AS label FROM people WHERE age >= 18

The text is read as the query that counts the different values of each expression: so every name, type, function, join
and nested query goes the way of all questions, and what is no aggregation of one unit's rows is refused. Of that core
the sources, the condition and the typed expressions are kept. The statement selects them row by row: numbers in whole
steps between their proved bounds, texts as the place of their declared key, nothing else. Its rows stay in the worker
(mechanisms/private_descent.md): what leaves it is sums over units.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from sqlglot import exp

from privacy.aggregate import AggregateFunction
from privacy.bounds import ValueBounds
from privacy.policy import ColumnType, Dataset
from privacy.refusal import Collector, Position, Refused
from privacy.statement import Statement, StatementKey
from privacy.training import COLUMNS_MAX, HELD_PLACES, FeatureKind, TrainingFeature, TrainingStatement, width_of
from sql_rewrite.automatic_bounds import Place, bound_with, nominal_bounds, places_of, unbounded_columns, with_bounds
from sql_rewrite.bound import bound_core
from sql_rewrite.bounded import BoundedCore
from sql_rewrite.conditions_first import conditions_first
from sql_rewrite.cost import check_work
from sql_rewrite.dialects.dialect import Dialect
from sql_rewrite.encodings import coarser, moment_encoding
from sql_rewrite.expressions import ColumnRef, Expression, Literal, columns_of
from sql_rewrite.functions import build, clip_columns
from sql_rewrite.join_tree import unit_source
from sql_rewrite.layer_values import Steps
from sql_rewrite.lift import lift
from sql_rewrite.lifter import ParameterValue
from sql_rewrite.lower_expression import ParameterList
from sql_rewrite.lower_expression import lower as lower_expression
from sql_rewrite.lower_unit_groups import DRAW, UNIT, lowered_sources, read_columns
from sql_rewrite.memory import check_memory
from sql_rewrite.plan import Aggregate, Core, Plan
from sql_rewrite.refuse import refuse
from sql_rewrite.relations import Output, TableRows
from sql_rewrite.scalars import Cast, Column, EngineType, TotalDivision, Whole
from sql_rewrite.shell import output_name
from sql_rewrite.syntax import populated
from sql_rewrite.text import Text
from sql_rewrite.unit_facts import rows_of_unit
from sql_rewrite.value_bounds import proved_range

__all__ = ["LABEL", "Training", "lift_training"]

LABEL = "label"
"""The name of the column that is predicted."""

STEP_BITS = 12
"""Most binary places of a number: what it is standardised to has a few more."""

_CLAUSES = frozenset({"expressions", "from_", "joins", "where", "with_"})
_EXAMPLE = "SELECT age, sex, income > 50000 AS label FROM people"


@dataclass(frozen=True, slots=True)
class Training:
    """What a text asks to fit a model to: its rows as a statement, and the core whose cost is that of reading them."""

    statement: TrainingStatement
    bounded: BoundedCore
    plan: Plan
    rows_of_unit: int
    label_whole: bool
    """Whether the label is a condition, or whole numbers."""
    open: tuple[Place, ...] = ()
    """The columns whose bounds the model chooses from histograms of their values."""
    used: Mapping[Place, ValueBounds] = field(default_factory=dict)
    """Of these the bounds that features have: nominal ones before any is chosen."""


@dataclass(frozen=True, slots=True)
class _Read:
    """A feature as it is read, without its bounds; of a text its keys."""

    name: str
    column: str
    keys: tuple[str | None, ...]
    aggregate: Aggregate


def lift_training(
    sql: str,
    dataset: Dataset,
    dialect: Dialect,
    parameters: Mapping[str, ParameterValue] | None = None,
    *,
    started: datetime.datetime | None = None,
    chosen: Mapping[Place, ValueBounds] | None = None,
) -> Training:
    """The rows of a model. Depends on the text and on declarations only. Errors: Refused, with all findings.

    Where features need bounds that nothing declares, and the policy allows it, they have nominal ones; or `chosen`
    ones, of the columns that are `open` without them: then nothing is refused that was not.
    """
    roomy = replace(dataset, limits=replace(dataset.limits, statistics_max=COLUMNS_MAX + 1))
    plan = lift(sql, roomy, parameters, started=started, choose=False, write=_as_counts)
    if len(plan.cores) != 1 or plan.stages or plan.public or plan.cores[0].keys or plan.cores[0].choice is not None:
        raise _unsupported("It reads released or public numbers beside the rows of people.")
    core = plan.cores[0]
    findings = Collector()
    core, raw, places, used = _at_bounds(core, _raw(plan, core), dataset, chosen)
    read: list[tuple[TrainingFeature, Aggregate]] = []
    for one in raw:
        with findings:
            is_open = any(not places.isdisjoint(places_of(column, core)) for column in _columns(one))
            read.append(_encoded(one, is_open=is_open))
    findings.refuse()
    labels = [pair for pair in read if pair[0].name.lower() == LABEL]
    features = tuple(feature for feature, _ in read if feature.name.lower() != LABEL)
    if len(labels) != 1 or not features:
        raise _unsupported("It needs features, and one column that is named label.")
    label, of_label = labels[0]
    if label.kind is not FeatureKind.NUMBER:
        raise refuse(
            "unsupported_sql", "the label is refused", "A text has no value to predict.",
            "write a condition: income_group = 'high' AS label", position=of_label.position,
        )  # fmt: skip
    if width_of(features) > COLUMNS_MAX:
        raise refuse(
            "too_large",
            "the model is refused",
            f"Its features have {width_of(features)} encoded columns with the intercept; {COLUMNS_MAX} are allowed.",
            "leave out features with many keys, or put keys together: (country = 'France') AS french",
        )
    summed = tuple(replace(aggregate, function=AggregateFunction.SUM, distinct=False) for _, aggregate in read)
    bounded = bound_core(replace(core, aggregates=summed), dataset)
    if chosen is None:
        check_memory((bounded,), dialect.costs)
        check_work((bounded,), dialect.costs)
    # The same plan as the one whose cost was counted: an operator on a joined table is computed there, once for a row.
    statement = _statement(conditions_first(core), read, dialect, features=features, label=label)
    of_unit = rows_of_unit(core.sources)
    whole = of_label.argument is not None and of_label.argument.type is ColumnType.INTEGER
    return Training(statement, bounded, plan, of_unit, whole, tuple(sorted(places)), used)


def _raw(plan: Plan, core: Core) -> list[_Read]:
    """The features and the label as the text has them. Errors: Refused where two are the same."""
    by_name = {aggregate.name: aggregate for aggregate in core.aggregates}
    findings = Collector()
    raw: list[_Read] = []
    seen: dict[str, str] = {}
    for place, output in enumerate(plan.shell.outputs):
        with findings:
            aggregate = by_name[str(output.column)]
            known = seen.setdefault(aggregate.name, output.name)
            if known != output.name:
                raise refuse(
                    "unsupported_sql",
                    f'the feature "{output.name}" is refused',
                    f'It is the same as "{known}": what both say together could not be told apart.',
                    "leave one of them out",
                    position=aggregate.position,
                )
            raw.append(_read(output.name, f"f{place}", aggregate))
    findings.refuse()
    return raw


def _columns(read: _Read) -> tuple[ColumnRef, ...]:
    return () if read.aggregate.argument is None else columns_of(read.aggregate.argument)


def _at_bounds(
    core: Core, raw: list[_Read], dataset: Dataset, chosen: Mapping[Place, ValueBounds] | None
) -> tuple[Core, list[_Read], frozenset[Place], Mapping[Place, ValueBounds]]:
    """The core and its features with bounds of the columns that have none: chosen ones, or nominal ones."""
    # Averages, because a feature needs bounds always, and a sum none where the norm of what a unit adds is chosen.
    averages = [replace(one.aggregate, function=AggregateFunction.AVERAGE, distinct=False) for one in raw]
    whole = replace(core, aggregates=tuple(averages))
    try:
        places = unbounded_columns(whole, dataset)
    except Refused:
        # No bounds of columns help, or the policy allows none to be chosen: each feature says so by itself.
        return core, raw, frozenset(), {}
    if not places:
        return core, raw, frozenset(), {}
    used: Mapping[Place, ValueBounds]
    if chosen is None:
        used = {place: nominal_bounds(_type_of(place, dataset)) for place in places}
        made = with_bounds(whole, used)
    else:
        bounded, used = bound_with(whole, dataset, {place: chosen[place] for place in places})
        made = bounded.core
    held = [
        replace(one, aggregate=replace(one.aggregate, argument=aggregate.argument))
        for one, aggregate in zip(raw, made.aggregates, strict=True)
    ]
    return core, held, frozenset(places), used


def _type_of(place: Place, dataset: Dataset) -> ColumnType:
    table = dataset.table(place[0])
    assert table is not None
    column = table.column(place[1])
    assert column is not None
    return column.type


def _as_counts(tree: exp.Expr, text: Text) -> exp.Expr:
    """The same query with COUNT(DISTINCT x) for each x that it selects. Errors: Refused for another form of query."""
    if not isinstance(tree, exp.Select):
        raise _unsupported("It is not one SELECT of features.")
    beyond = sorted(populated(tree) - _CLAUSES)
    if beyond:
        named = beyond[0].rstrip("_").upper()
        raise _unsupported(f"The rows of a model are not grouped, sorted, chosen or cut: it has {named}.")
    made = []
    names: set[str] = set()
    for item in tree.expressions:
        value = item.this if isinstance(item, exp.Alias) else item
        place = text.position(item)
        if isinstance(value, exp.Star) or (isinstance(value, exp.Column) and isinstance(value.this, exp.Star)):
            raise _unsupported("Features are named one by one: a star would change with the table.", place)
        if value.find(exp.AggFunc, exp.Window) is not None and not isinstance(value, exp.Subquery):
            raise _unsupported("A feature follows from one row: it has an aggregate.", place)
        name = item.alias if isinstance(item, exp.Alias) else output_name(text, item)
        if name.lower() in names:
            raise _unsupported(f'Two columns are named "{name[:63]}".', place)
        names.add(name.lower())
        counted = exp.Count(this=exp.Distinct(expressions=[value]))
        alias = exp.Alias(this=counted, alias=exp.to_identifier(name, quoted=True))
        for node in (counted, alias):
            node.meta.update(value.meta)
        made.append(alias)
    tree.set("expressions", made)
    return tree


def _unsupported(why: str, position: Position | None = None) -> Refused:
    return refuse("unsupported_sql", "the rows of the model are refused", why, _EXAMPLE, position=position)


def _read(name: str, column: str, aggregate: Aggregate) -> _Read:
    """A feature, and the sum of what it reads: of a condition one and zero, of a text the place of its key.

    Errors: Refused.
    """
    argument = aggregate.argument
    if argument is None or (isinstance(argument, ColumnRef) and argument.is_unit):
        raise refuse(
            "group_by_unit",
            f'the feature "{name}" is refused',
            "It names the privacy unit: a model may depend on people, and not on who they are.",
            "leave it out",
            position=aggregate.position,
        )
    if argument.type is ColumnType.TEXT:
        keys = argument.domain if isinstance(argument, ColumnRef) and argument.other is None else None
        if not keys:
            raise refuse(
                "unsupported_sql",
                f'the feature "{name}" is refused',
                "A text becomes one column for each of its values, so these have to be declared keys.",
                f"write conditions: (x = 'a') AS {name}_a",
                "ask an administrator to declare the keys of the column",
                position=aggregate.position,
            )
        if len(keys) >= COLUMNS_MAX:
            raise refuse(
                "too_large",
                f'the feature "{name}" is refused',
                f"It has {len(keys)} keys; a model has at most {COLUMNS_MAX} encoded columns.",
                position=aggregate.position,
            )
        listed = tuple([None if key is None else str(key) for key in keys])
        placed = replace(aggregate, argument=_places(argument, listed), text=f"SUM({name})")
        return _Read(name, column, listed, placed)
    if argument.type is ColumnType.BOOLEAN:
        one, zero = Literal(1, ColumnType.INTEGER), Literal(0, ColumnType.INTEGER)
        nothing = Literal(None, ColumnType.INTEGER)
        branches = (argument, one, build("not", (argument,)), zero, nothing)
        aggregate = replace(aggregate, argument=build("case", branches), text=f"SUM({name})")
    elif argument.type not in (ColumnType.INTEGER, ColumnType.NUMBER):
        raise refuse(
            "unsupported_sql",
            f'the feature "{name}" is refused',
            "A date is not a number.",
            f"write a number: year(x) AS {name}, or days since a date",
            position=aggregate.position,
        )
    else:
        aggregate = replace(aggregate, text=aggregate.text.replace("COUNT(DISTINCT ", "SUM(", 1))
    return _Read(name, column, (), aggregate)


def _encoded(read: _Read, *, is_open: bool) -> tuple[TrainingFeature, Aggregate]:
    """A feature with its ends, and the sum that it is. Errors: Refused."""
    name, column, aggregate = read.name, read.column, read.aggregate
    if read.keys:
        return TrainingFeature(name, column, FeatureKind.KEYS, len(read.keys), keys=read.keys), aggregate
    assert aggregate.argument is not None
    try:
        lower, upper = proved_range(aggregate, clip_columns(aggregate.argument))
    except Refused as refused:
        raise refuse(
            "column_without_bounds",
            f'the feature "{name}" is refused',
            refused.findings[0].why,
            f"GREATEST(<lowest>, LEAST({aggregate.text}, <highest>)) AS {name}",
            "ask an administrator to declare bounds for the column",
            position=aggregate.position,
        ) from None
    if lower == upper and is_open:
        # Where a histogram shows one value alone: a column that says nothing, as one that is declared so would.
        upper += 1
    if lower == upper:
        raise refuse(
            "unsupported_sql",
            f'the feature "{name}" is refused',
            "It has one value alone, by its declaration: it is the intercept again.",
            "leave it out",
            position=aggregate.position,
        )
    encoding = moment_encoding(lower, upper, integer=aggregate.argument.type is ColumnType.INTEGER)
    encoding = coarser(encoding, STEP_BITS)
    feature = TrainingFeature(
        name, column, FeatureKind.NUMBER, encoding.highest, encoding.offset, encoding.step, chosen=is_open
    )
    return feature, aggregate


def _places(argument: Expression, keys: tuple[str | None, ...]) -> Expression:
    """The place of a text among declared keys, from one; zero for none of them."""
    branches: list[Expression] = []
    for place, key in enumerate(keys, 1):
        literal = Literal(key, ColumnType.TEXT)
        branches.append(build("is_null", (argument,)) if key is None else build("=", (argument, literal)))
        branches.append(Literal(place, ColumnType.INTEGER))
    return build("case", (*branches, Literal(0, ColumnType.INTEGER)))


def _part(draw: Column) -> Cast:
    """Which of HELD_PLACES parts of the units the one with this draw is in: a function of its key and our secret."""
    whole = TotalDivision("%", Cast(draw, EngineType.WIDE), Whole(HELD_PLACES), EngineType.WIDE, zero=False)
    return Cast(whole, EngineType.INTEGER)


def _statement(
    core: Core,
    read: list[tuple[TrainingFeature, Aggregate]],
    dialect: Dialect,
    *,
    features: tuple[TrainingFeature, ...],
    label: TrainingFeature,
) -> TrainingStatement:
    """The rows: unit, draw, and the whole numbers of each column."""
    parameters = ParameterList()
    root = unit_source(core.sources, draw=True).relation
    columns = [Output(Cast(Column(root, UNIT), EngineType.INTEGER), "u"), Output(_part(Column(root, DRAW)), "d")]
    arguments = []
    for feature, aggregate in read:
        assert aggregate.argument is not None
        argument = clip_columns(aggregate.argument)
        arguments.append(argument)
        value = lower_expression(argument, parameters)
        steps = Steps(value, feature.offset, feature.step, 0, feature.highest)
        columns.append(Output(Cast(steps, EngineType.INTEGER), feature.column))
    sources = lowered_sources(core.sources, read_columns(core.sources, core.where, *arguments), parameters, draw=True)
    where = None if core.where is None else lower_expression(core.where, parameters)
    tree = TableRows(tuple(columns), sources, where)
    names = ("u", "d", *(feature.column for feature, _ in read))
    keys = tuple(StatementKey(name, ColumnType.INTEGER) for name in names)
    rows = Statement(sql=dialect.write(tree), parameters=tuple(parameters.values), keys=keys, sums=())
    return TrainingStatement(rows, features, label)
