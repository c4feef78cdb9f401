"""Text to plan: reads the whole syntax tree or refuses.

A SELECT block that reads tables becomes a private core plus a shell block over the core's released table; a
SELECT block that reads released relations is shell. Nothing of the analyst's text reaches the private engine: cores are
lowered from the typed plan, and the shell is generated from checked nodes.

    SELECT sex, COUNT(*) AS n FROM people GROUP BY sex HAVING COUNT(*) > 10 ORDER BY n DESC
    core c0:  people grouped by k0 = sex, a0 = rows
    shell:    SELECT k0 AS sex, a0 AS n FROM c0 WHERE a0 > 10 ORDER BY n DESC
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial, reduce

from sqlglot import exp

from privacy.policy import Dataset, Table
from privacy.refusal import Finding, Refused
from privacy.release import ColumnKind
from sql_rewrite.aggregate_calls import counts_rows
from sql_rewrite.arrangement import arrangement_of
from sql_rewrite.choices import chosen_of, mode_of_levels, mode_of_stage, only_columns
from sql_rewrite.constant_rows import rows_of_constants
from sql_rewrite.core_block import CoreBlock
from sql_rewrite.declared_groups import declared_groups, distinct_keys, group_rows, groups_of_declaration
from sql_rewrite.expressions import Expression
from sql_rewrite.full_joins import Side, full_join
from sql_rewrite.full_joins import write_out as write_full
from sql_rewrite.geometric_mean import write_out
from sql_rewrite.joins import SOURCES_MAX, resolve_sources
from sql_rewrite.keys import cells_most
from sql_rewrite.levels import Levels, levels_of
from sql_rewrite.lift_expression import ExpressionLift, Member
from sql_rewrite.lifter import ParameterValue
from sql_rewrite.membership import Membership
from sql_rewrite.outer_keys import by_outer_keys
from sql_rewrite.plain_spelling import spell_plainly
from sql_rewrite.plan import Arrangement, Core, Plan, Shell, ShellOutput, Simulation, Source, names_unit
from sql_rewrite.plan_key import canonical_core
from sql_rewrite.public import PublicRelations, is_constant_relation
from sql_rewrite.quantile_lists import spread
from sql_rewrite.refuse import refuse
from sql_rewrite.released import Form, Released, check_name, column, core_relation, hidden_columns, quoted
from sql_rewrite.row_unions import united
from sql_rewrite.rows import Rows
from sql_rewrite.rows_block import RowsBlock, RowsSeeker, listed, named_rows, too_many_names
from sql_rewrite.scope import Cte, Names, Scope
from sql_rewrite.shell import ShellNodes, generate, output_name
from sql_rewrite.shell_block import ShellBlocks
from sql_rewrite.shell_form import NodeWriter
from sql_rewrite.shell_size import check_sizes
from sql_rewrite.sources import SourceNames, base_table, reference
from sql_rewrite.spelling import check_gaps, check_words
from sql_rewrite.stages import Stages, kept_cores
from sql_rewrite.syntax import consume, parse, populated
from sql_rewrite.text import Text
from sql_rewrite.top_rows import best_of_groups, first_values, may_be_top_rows
from sql_rewrite.union import unite
from sql_rewrite.unit_groups import UnitBlock
from sql_rewrite.unit_windows import windowed
from sql_rewrite.window_blocks import window_block

__all__ = ["lift"]

NESTED_MAX = 200
"""Most nested blocks of rows that are read, each as often as it is used."""

_SELECT_SLOTS = (
    "expressions", "from_", "joins", "where", "group", "having", "qualify", "windows", "order", "limit", "offset",
    "distinct", "with_",
)  # fmt: skip


def lift(
    sql: str,
    dataset: Dataset,
    parameters: Mapping[str, ParameterValue] | None = None,
    *,
    nonempty: bool = False,
    started: datetime.datetime | None = None,
    choose: bool = True,
) -> Plan:
    """The typed plan of a text. With `nonempty` every core with keys has an aggregate that counts all rows.

    Without `choose`, what counts can answer is no choice of keys (choices.py).

    `started` is what CURRENT_DATE and NOW() say (`lift_clock.started`); without it they are refused.
    Errors: Refused with every finding that could be established; depends on the text and public metadata only.
    """
    tree, text = parse(sql)
    text.started = started
    try:
        plan = _Lift(text, dataset, parameters or {}, nonempty=nonempty, choose=choose).plan(tree)
        check_gaps(text.tokens, text)
    except Refused as refused:
        if any(finding.code == "correlated_subquery" for finding in refused.findings):
            unknown = _unknown_table(tree, dataset, text)
            if unknown is not None:
                raise unknown from None
        raise
    except RecursionError:
        raise refuse("too_large", "the query is refused", "It is nested too deeply.", "write it flatter") from None
    if plan.chosen and len(plan.cores) > 1:
        # Counts may be shared with another part of the query, and a choice is not.
        return lift(sql, dataset, parameters, nonempty=nonempty, started=started, choose=False)
    return plan


def _unknown_table(tree: exp.Expr, dataset: Dataset, text: Text) -> Refused | None:
    """The refusal of a table that neither the dataset nor a WITH has: what is said of a subquery of it is no help."""
    ctes = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
    for item in tree.find_all(exp.Table):
        if item.args.get("db") or item.name.lower() not in ctes:
            try:
                base_table(item, dataset, text, sorted(ctes))
            except Refused as refused:
                return refused
    return None


class _Lift:
    def __init__(
        self,
        text: Text,
        dataset: Dataset,
        parameters: Mapping[str, ParameterValue],
        *,
        nonempty: bool = False,
        choose: bool = True,
    ) -> None:
        self.nonempty = nonempty
        self.choose = choose and not nonempty
        self.chosen = False
        self.text = text
        self.dataset = dataset
        self.parameters = parameters
        self.nodes = ShellNodes(text, parameters)
        self.cores: list[Core] = []
        self.warnings: list[Finding] = []
        self.public = PublicRelations(text, self.cores)
        self.blocks = ShellBlocks(self.nodes, self.cores, self.query)
        self.ctes: list[Cte] = []
        self.seeker = RowsSeeker(dataset, self._with, lambda node, scope: self._by_unit(node, scope) is not None)
        self.stages = Stages(
            text, parameters, self.seeker,
            core=self._stage_core, arranged=self._arranged, dataset=dataset, with_=self._with,
        )  # fmt: skip
        self._shown: set[str] = set()
        """The cores that the outer query reads."""
        self._unit_blocks: dict[int, UnitBlock | None] = {}
        self._scopes: dict[int, Mapping[str, Cte]] = {}
        """The CTEs that are visible below each WITH, by the identity of its node: it is read at every use of rows."""
        self._made: list[exp.Select] = []
        """Blocks that stand for others: kept, because blocks are known by the identity of their nodes."""
        self._derived = 0
        self._nested = 0

    def _check_parameters(self) -> None:
        """Refuses two parameters whose names differ only in case: to DuckDB they are one, with one value."""
        known: dict[str, str] = {}
        for name in self.parameters:
            other = known.setdefault(name.lower(), name)
            if other != name:
                raise refuse(
                    "unsupported_sql",
                    f"the parameters ${other[:63]} and ${name[:63]} are refused",
                    "Their names differ only in case, and DuckDB does not distinguish such names.",
                    "give one of them another name",
                    position=self.text.parameter(name),
                )

    def _fill_limits(self, tree: exp.Expr) -> None:
        """Writes the values of parameters into LIMIT and OFFSET: the number decides whether they leave out rows."""
        if not self.parameters:
            return
        for clause in tree.find_all(exp.Limit, exp.Offset):
            asked = clause.args.get("expression")
            if not isinstance(asked, exp.Placeholder):
                continue
            value = self.parameters.get(str(asked.this))
            if type(value) is int and 0 <= value < 2**63:
                number = exp.Literal.number(value)
                number.meta.update(asked.meta)
                clause.set("expression", number)

    def plan(self, tree: exp.Expr) -> Plan:
        if not isinstance(tree, exp.Query) or isinstance(tree, exp.Table):
            raise self._not_a_query(tree)
        check_words(self.text.tokens, self.text)
        self._check_parameters()
        self._fill_limits(tree)
        spell_plainly(tree, self.text.sql)
        top = self.query(tree, Scope({}))
        outputs = top.outputs
        if not self.cores:
            # Nothing in it is noisy: every column is as public as a key.
            outputs = tuple(ShellOutput(name=output.name, kind=ColumnKind.KEY) for output in outputs)
        if top.bare is not None and len(self.cores) == 1:
            self._check_ctes()
            shell = Shell(sql="", outputs=outputs, identities=0, trivial=True, simulation=None)
            return self._plan(shell)
        # Building a form checks every node of the shell, nested queries included; one form at least is built.
        identified = top.form(Form.IDENTIFIED) if any(output.kind != ColumnKind.KEY for output in outputs) else None
        tree_to_run = identified if identified is not None else top.form(Form.PLAIN)
        assert tree_to_run is not None
        self._check_ctes()
        check_sizes(tree_to_run, tree, self.text)
        simulation = None
        if identified is not None and self.cores and any(map(_computed, outputs)):
            simulated = top.form(Form.SIMULATED)
            simulation = None if simulated is None else Simulation(generate(simulated))
        if identified is None:
            outputs = tuple(replace(output, identity=None, branch=None, branches=()) for output in outputs)
        arrangement = arrangement_of(tree_to_run, self.cores[0].name) if len(self.cores) == 1 else None
        shell = Shell(
            sql=generate(tree_to_run),
            outputs=outputs,
            identities=(top.identities or 0) if identified is not None else 0,
            trivial=False,
            simulation=simulation,
            identified=identified is not None,
            chosen=top.chosen,
            arrangement=arrangement,
        )
        return self._plan(shell)

    def _plan(self, shell: Shell) -> Plan:
        stages: dict[str, tuple[str, ...]] = {}
        if self.stages.warnings:
            self.cores[:], stages = kept_cores(self.cores, self._shown)
        warnings = tuple(dict.fromkeys((*self.warnings, *(self.stages.warnings if stages else ()))))
        counts = {core.name: next((a.name for a in core.aggregates if counts_rows(a)), None) for core in self.cores}
        return Plan(
            dataset=self.dataset,
            cores=tuple(self.cores),
            shell=shell,
            warnings=warnings,
            counting=tuple(dict.fromkeys(self.blocks.counting)),
            nonempty=tuple((core, name) for core, name in counts.items() if name) if self.nonempty else (),
            public=tuple(self.public.read),
            stages=tuple(stages.items()),
            lists=tuple((core, name, found) for (core, name), found in self.stages.lists.items()),
            chosen=self.chosen,
        )

    def _check_ctes(self) -> None:
        for cte in self.ctes:
            if not cte.used:
                raise refuse(
                    "unsupported_sql",
                    f'the CTE "{cte.node.alias[:63]}" is refused',
                    "It is never read, and nothing is ever ignored.",
                    "leave it out",
                    position=self.text.position(cte.node),
                )

    def _not_a_query(self, tree: exp.Expr) -> Refused:
        nested = tree.parent is not None
        return refuse(
            "not_a_query",
            "a part of the query is refused" if nested else "the statement is refused",
            "There is no SELECT query where one is needed."
            if nested
            else "Only SELECT queries are answered; nothing here can change, describe or export data.",
            "(SELECT ...)" if nested else "write a SELECT query",
            position=self.text.position(tree),
        )

    # Queries and their relations

    def query(self, node: exp.Expr, scope: Scope) -> Released:
        """A query of any form as a relation of released numbers."""
        if isinstance(node, exp.Subquery):
            consume(node, "this", "alias", "with_", text=self.text, what="a bracketed query")
            return self.query(node.this, self._with(node, scope))
        if isinstance(node, exp.SetOperation):
            return self._set_operation(node, self._with(node, scope))
        if not isinstance(node, exp.Select):
            raise self._not_a_query(node)
        consume(node, *_SELECT_SLOTS, text=self.text, what="SELECT")
        return self._select(node, self._with(node, scope))

    def _with(self, node: exp.Expr, scope: Scope) -> Scope:
        with_ = node.args.get("with_")
        if with_ is None:
            return scope
        if with_.args.get("recursive"):
            raise refuse(
                "unsupported_sql",
                "a recursive query is refused",
                "The number of its steps has no proved bound.",
                position=self.text.position(with_),
            )
        consume(with_, "expressions", text=self.text, what="WITH")
        known = self._scopes.get(id(with_))
        if known is not None:
            return Scope(known, scope.outer)
        ctes = dict(scope.ctes)
        for cte in with_.expressions:
            consume(cte, "this", "alias", "materialized", text=self.text, what="a CTE")
            inner = Scope(dict(ctes))
            name = cte.alias.lower()
            rows = partial(self._cte_rows, cte, inner) if self.seeker.of_rows(cte.this, inner) else None
            ctes[name] = Cte(cte, partial(self._cte, cte, inner), rows, inner)
            self.ctes.append(ctes[name])
        self._scopes[id(with_)] = ctes
        return Scope(ctes, scope.outer)

    # Rows about people, which nested blocks select

    def _by_unit(self, node: exp.Select, scope: Scope) -> UnitBlock | None:
        """The block as one that groups rows within each unit, None for any other block. Each block is read once."""
        distinct = node.args.get("distinct")
        if node.args.get("group") is None and (distinct is None or distinct.args.get("on") is not None):
            return None
        if id(node) not in self._unit_blocks:
            self._unit_blocks[id(node)] = self._read_by_unit(node, scope)
        return self._unit_blocks[id(node)]

    def _read_by_unit(self, node: exp.Select, scope: Scope) -> UnitBlock | None:
        if not all(
            self.seeker.reads_rows(item, scope) or self.seeker.constants(item, scope) is not None
            for item in listed(node)
        ):
            return None
        try:
            tables, _ = self._listed(node, scope, 0, people=True)
            names = resolve_sources(node, tables, self.dataset, self.text)
        except Refused:
            return None  # read as any other block it is refused for the same reason
        block = UnitBlock(
            node,
            dataset=self.dataset,
            names=names,
            text=self.text,
            parameters=self.parameters,
            member=self._member(names, scope),
            scalar=partial(self.stages.scalar, scope=Scope(scope.ctes), outside=names),
        )
        return block if block.by_unit() else None

    def rows(self, node: exp.Expr, scope: Scope, first: int) -> Rows:
        """The rows of a nested query; its tables are called r and a number, from `first` on. Errors: Refused."""
        if isinstance(node, exp.Subquery):
            consume(node, "this", "alias", "with_", text=self.text, what="a bracketed query")
            return self.rows(node.this, self._with(node, scope), first)
        if isinstance(node, exp.SetOperation):
            scope = self._with(node, scope)
            left, right = self.rows(node.this, scope, 0), self.rows(node.expression, scope, 0)
            return united(node, left, right, f"r{first}", self.dataset, self.text)
        assert isinstance(node, exp.Select)
        # A CTE is read at every use, and what it reads as well: without a limit their number doubles with each of them.
        self._nested += 1
        if self._nested > NESTED_MAX:
            raise refuse(
                "too_large",
                "the query is refused",
                f"Written out it has more than {NESTED_MAX} nested queries.",
                "use fewer CTEs, or each of them once",
                position=self.text.position(node),
            )
        consume(node, *_SELECT_SLOTS, text=self.text, what="SELECT")
        scope = self._with(node, scope)
        # What windows compute is a source of its own, in which tables have names of their own.
        own = windowed(node)
        grouped = None if own else self._by_unit(node, scope)
        if grouped is not None:
            rows = grouped.rows(f"r{first}")
            self.warnings.extend(grouped.warnings)
            return rows
        tables, released = self._listed(node, scope, 0 if own else first, people=True)
        if released:
            raise self._mixed(node)
        names = resolve_sources(node, tables, self.dataset, self.text, first=0 if own else first)
        made = window_block if own else RowsBlock
        block = made(
            node,
            dataset=self.dataset,
            names=names,
            text=self.text,
            parameters=self.parameters,
            member=self._member(names, scope),
        )
        rows = block.rows() if isinstance(block, RowsBlock) else block.rows(f"r{first}")
        self.warnings.extend(block.warnings)
        return rows

    def _member(self, names: SourceNames, scope: Scope) -> Member:
        """What reads nested queries in the private expressions of a block with these names."""
        inside = Scope(scope.ctes)

        def rows(node: exp.Expr) -> Rows | None:
            return self.rows(node, inside, 0) if self.seeker.of_rows(node, inside) else None

        def public(item: exp.Table) -> Table | None:
            if not item.args.get("db") and item.name.lower() in inside.ctes:
                return None
            table = base_table(item, self.dataset, self.text)
            return None if table.protected else table

        def inner(node: exp.Select) -> SourceNames | None:
            items = listed(node)
            if not all(self.seeker.reads_rows(item, inside) for item in items):
                return None
            if not any(self.seeker.reads_people(item, inside) for item in items):
                return None
            tables, _ = self._listed(node, inside, 0, people=True)
            return resolve_sources(node, tables, self.dataset, self.text)

        def scalar(node: exp.Subquery) -> Expression | None:
            return self.stages.scalar(node, inside, names)

        def keys(lifter: ExpressionLift, node: exp.In) -> Expression | None:
            return None if self.nonempty else self.stages.member(lifter, node, inside)

        return Membership(
            names, self.dataset, self.text, rows=rows, inner=inner, public=public, scalar=scalar, listed=keys
        ).read

    def _cte_rows(self, node: exp.CTE, scope: Scope, first: int) -> Rows:
        alias = node.args["alias"]
        consume(alias, "this", "columns", text=self.text, what="a CTE's name")
        return named_rows(self.rows(node.this, scope, first), self._columns(alias), self.text, node)

    def _aliased_rows(self, item: exp.Expr, rows: Rows) -> Rows:
        alias = item.args.get("alias")
        if alias is None:
            return rows
        consume(alias, "this", "columns", text=self.text, what="an alias")
        check_name(alias.name, self.text, item)
        return named_rows(rows, self._columns(alias), self.text, item)

    def _mixed(self, node: exp.Select) -> Refused:
        return refuse(
            "unsupported_sql",
            "a join of a table of people with released numbers is refused",
            "It is not answered yet.",
            "aggregate each side in its own query and join the results",
            position=self.text.position(node.args["from_"]),
        )

    def _cte(self, node: exp.CTE, scope: Scope) -> Released:
        released = self.query(node.this, scope)
        alias = node.args["alias"]
        consume(alias, "this", "columns", text=self.text, what="a CTE's name")
        names = self._columns(alias)
        return self._renamed(released, names, node) if names else released

    def _columns(self, alias: exp.Expr) -> list[str]:
        """The column names of an alias, which are names and nothing else."""
        columns = alias.args.get("columns") or []
        for identifier in columns:
            if not isinstance(identifier, exp.Identifier):
                raise refuse(
                    "parse_error",
                    "a list of column names is refused",
                    "It contains something that is not a name.",
                    position=self.text.position(alias),
                )
        return [identifier.name for identifier in columns]

    def _renamed(self, released: Released, names: list[str], node: exp.Expr) -> Released:
        if len(names) > len(released.outputs):
            raise too_many_names(names, len(released.outputs), self.text, node)
        for name in names:
            check_name(name, self.text, node)
        new = tuple(
            replace(output, name=names[i]) if i < len(names) else output for i, output in enumerate(released.outputs)
        )

        def build(form: Form) -> exp.Query | None:
            tree = released.form(form)
            if tree is None:
                return None
            names = [output.name for output in new] + hidden_columns(form, released.identities or 0)
            inner = exp.Subquery(
                this=tree.copy(),
                alias=exp.TableAlias(this=quoted("renamed$"), columns=[quoted(name) for name in names]),
            )
            select = exp.Select(expressions=[column(name) for name in names])
            select.set("from_", exp.From(this=inner))
            return select

        return Released(
            new,
            identities=released.identities,
            build=build,
            instances=released.instances,
            rows=released.rows,
            chosen=released.chosen,
            ordered=released.ordered,
            rows_most=released.rows_most,
        )

    def _set_operation(self, node: exp.SetOperation, scope: Scope) -> Released:
        consume(
            node, "this", "expression", "distinct", "with_", "order", "limit", "offset",
            text=self.text, what="a set operation",
        )  # fmt: skip
        left, right = self.query(node.this, scope), self.query(node.expression, scope)
        if len(left.outputs) != len(right.outputs):
            raise refuse(
                "unsupported_sql",
                "a set operation is refused",
                "Its two sides have different numbers of columns.",
                position=self.text.position(node),
            )
        names = Names({"": [output.name for output in left.outputs]}, ())
        keys = {output.name.lower() for output in left.outputs if output.kind == ColumnKind.KEY}
        order = node.args.get("order")
        # A position, or a name of a key, sorts by no noise when it is one; anything else is taken to.
        noisy = order is not None and not all(
            isinstance(item.this, exp.Column) and item.this.name.lower() in keys for item in order.expressions
        )
        return unite(
            left,
            right,
            node,
            copy=NodeWriter(self.nodes, self.blocks.nested, names, scope).copy,
            ordered=noisy or left.ordered or right.ordered,
            instances=self.nodes.instances(left.instances + right.instances, node),
        )

    def _select(self, node: exp.Select, scope: Scope) -> Released:
        top = self._top_rows(node, scope) if may_be_top_rows(node) else None
        return self._read(node, scope) if top is None else top

    def _top_rows(self, node: exp.Select, scope: Scope) -> Released | None:
        """The relation of a block that is another spelling of one that sorts groups and takes the first ones."""
        names = [node.expressions[0].alias or output_name(self.text, node.expressions[0])]
        items = listed(node)
        if any(self.seeker.reads_people(item, scope) for item in items):
            block = first_values(node)
            if block is None:
                return None
            self._made.append(block)
            return self._renamed(self._read(block, scope), names, node)
        inside: list[tuple[exp.Expr, Scope]] = []

        def inner() -> exp.Expr | None:
            if len(items) != 1:
                return None
            (item,) = items
            if isinstance(item, exp.Subquery) and not populated(item) - {"this", "alias"}:
                inside.append((item.this, Scope(scope.ctes)))
            cte = scope.ctes.get(item.name.lower()) if isinstance(item, exp.Table) and not item.args.get("db") else None
            if cte is not None and not cte.node.args["alias"].args.get("columns"):
                inside.append((cte.written(), cte.scope))
            alias = item.args.get("alias")
            if not inside or (alias is not None and alias.args.get("columns")):
                return None
            return inside[0][0]

        block = best_of_groups(node, inner)
        if not self.choose or block is None:
            return None
        if not all(self.seeker.reads_people(item, inside[0][1]) for item in listed(block)):
            return None
        chosen = self._choice(block, inside[0][1])
        return None if chosen is None else self._renamed(chosen, names, node)

    def _choice(self, block: exp.Select, scope: Scope) -> Released | None:
        """A block where it is a choice; None, and nothing is known of it afterwards, where it is not."""
        self._made.append(block)
        before = len(self.cores), len(self.warnings), len(self.blocks.counting)
        chosen, self.chosen = self.chosen, False
        shown = set(self._shown)
        found: Released | None = None
        with suppress(Refused):
            found = self._read(block, scope)
        if found is not None and self.chosen:
            return found
        self.chosen, self._shown = chosen, shown
        del self.cores[before[0] :], self.warnings[before[1] :], self.blocks.counting[before[2] :]
        return None

    def _read(self, node: exp.Select, scope: Scope) -> Released:
        # Of people: the block is a core, and all that it reads are rows. Else everybody knows what is not released.
        people = any(self.seeker.reads_people(item, scope) for item in listed(node))
        tables, released = self._listed(node, scope, 0, people=people)
        if tables and released:
            raise self._mixed(node)
        if tables:
            around = None
            if scope.outer and node.args.get("where") is not None:
                names = resolve_sources(node, tables, self.dataset, self.text)
                around = by_outer_keys(node, names, scope.outer, self.text)
            return self._core(node, tables, scope) if around is None else self.query(around, scope)
        return self.blocks.block(node, released, scope)

    def _listed(
        self, node: exp.Select, scope: Scope, first: int, *, people: bool
    ) -> tuple[list[tuple[exp.Expr, Table | Rows]], list[tuple[str, Released]]]:
        """What FROM lists: tables and rows of a block that reads some of people, and relations of the outer query."""
        tables: list[tuple[exp.Expr, Table | Rows]] = []
        released: list[tuple[str, Released]] = []
        if node.args.get("joins") and not node.args.get("from_"):
            raise refuse(
                "parse_error",
                "a join without FROM is refused",
                "There is nothing that it could join to.",
                position=self.text.position(node.args["joins"][0]),
            )
        if node.args.get("from_") is not None:
            consume(node.args["from_"], "this", text=self.text, what="FROM")
        if people and full_join(node) is not None:
            self._write_full(node, scope)
        for item in listed(node):
            found = self._relation(item, scope, first, people=people)
            if isinstance(found, tuple):
                released.append(found)
            else:
                tables.append((item, found))
                first += len(found.sources) if isinstance(found, Rows) else 1
        return tables, released

    def _write_full(self, node: exp.Select, scope: Scope) -> None:
        """Writes out a FULL JOIN of rows about people; any other one is refused as it stands."""
        sides = []
        for item in listed(node):
            found = self._relation(item, scope, 0, people=True)
            if isinstance(found, Table):
                source = Source("r0", found)
                columns = [(c.name, reference(source, c, self.dataset)) for c in found.columns]
                rows = Rows((source,), None, tuple(columns))
            elif isinstance(found, Rows):
                rows = found
            else:
                return
            if not rows.sources[0].table.protected:
                return
            units = tuple(name for name, column in rows.columns if names_unit(column, rows.sources))
            sides.append(Side(item, tuple(name for name, _ in rows.columns), units))
        write_full(node, (sides[0], sides[1]), self.text)

    def _relation(
        self, item: exp.Expr, scope: Scope, first: int, *, people: bool
    ) -> Table | Rows | tuple[str, Released]:
        if first >= SOURCES_MAX:
            raise refuse(
                "too_large",
                "FROM is refused",
                f"It joins more than {SOURCES_MAX} tables.",
                position=self.text.position(item),
            )
        if people and self.seeker.constants(item, scope) is not None:
            return self._constants(item, scope, first)
        if isinstance(item, exp.Subquery):
            consume(item, "this", "alias", "with_", text=self.text, what="a derived table")
            inner = self._with(item, Scope(scope.ctes))
            if people and self.seeker.of_rows(item.this, inner):
                return self._aliased_rows(item, self.rows(item.this, inner, first))
            row = self._row(item, scope) if people else None
            if row is not None:
                return row
            released = self.query(item.this, inner)
            self._derived += 1
            return self._aliased(item, released, f"derived{self._derived}$")
        if is_constant_relation(item):
            copy = NodeWriter(self.nodes, self.blocks.nested, Names({}, ()), scope).copy
            self._derived += 1
            relation = self.public.constants(item, copy)
            default = (
                relation.outputs[0].name if isinstance(item, exp.Unnest | exp.Table) else f"derived{self._derived}$"
            )
            return self._aliased(item, relation, default)
        if isinstance(item, exp.Table):
            name = item.name
            cte = scope.ctes.get(name.lower()) if not item.args.get("db") else None
            if cte is not None:
                consume(item, "this", "alias", text=self.text, what="a table")
                if people and cte.of_rows:
                    return self._aliased_rows(item, cte.rows(first))
                row = self._row(item, scope) if people else None
                if row is not None:
                    return row
                return self._aliased(item, cte.released(), name)
            table = base_table(item, self.dataset, self.text, [cte.node.alias for cte in scope.ctes.values()])
            return table if people else self._aliased(item, self.public.table(table), item.name)
        raise refuse(
            "unsupported_sql",
            "a relation in FROM is refused",
            "Only tables of the dataset, CTEs and bracketed queries can be read.",
            position=self.text.position(item),
        )

    def _constants(self, item: exp.Expr, scope: Scope, first: int) -> Rows:
        """Rows of constants beside rows about people. Errors: Refused."""
        found = self.seeker.constants(item, scope)
        assert found is not None
        lift = ExpressionLift(self.text, partial(_no_column, self.text), self.parameters).lift
        rows = rows_of_constants(found, f"r{first}", lift, self.dataset, self.text)
        cte = scope.ctes.get(item.name.lower()) if found is not item and isinstance(item, exp.Table) else None
        if cte is not None:
            cte.read()
            consume(item, "this", "alias", text=self.text, what="a table")
            rows = named_rows(rows, self._columns(cte.node.args["alias"]), self.text, item)
        return self._aliased_rows(item, rows)

    def _row(self, item: exp.Expr, scope: Scope) -> Rows | None:
        """An item of FROM beside people as the row, or the rows by public keys, that it releases; None for others."""
        row = self.stages.item(item, scope)
        table = self.stages.table(item, scope) if row is None and not self.nonempty else None
        if row is None and table is None:
            return None
        self.stages.warn(item)
        return self._aliased_rows(item, Rows((), None, row or (), table))

    def _aliased(self, item: exp.Expr, released: Released, default: str) -> tuple[str, Released]:
        alias = item.args.get("alias")
        if alias is None:
            return default, released
        consume(alias, "this", "columns", text=self.text, what="an alias")
        names = self._columns(alias)
        if names:
            released = self._renamed(released, names, item)
        check_name(alias.name, self.text, item)
        return alias.name or default, released

    # The private part of a block

    def _core(self, node: exp.Select, tables: Sequence[tuple[exp.Expr, Table | Rows]], scope: Scope) -> Released:
        levels = levels_of(node, self.text)
        block = self._block(node if levels is None else levels.finest(node), tables, scope, levels)
        core = self._numbered(block)
        self.warnings.extend(block.lifter.warnings)
        if levels is not None and core.choice is not None:
            raise mode_of_levels(core.choice)
        if levels is not None and levels.apart(core, public=cells_most(core, self.dataset) is not None):
            above = block.shell_block(core.name)
            return self.blocks.block(above, [(core.name, self._apart(levels, node, block, tables, scope))], scope)
        groups = groups_of_declaration(core, self.dataset) if levels is None else None
        if groups is not None:
            self.warnings.append(declared_groups(self.text.position(node)))
            self._derived += 1
            name = f"keys{self._derived}$"
            listed_groups = self.public.rows(*group_rows(core, groups, block.numbers))
            return self.blocks.block(block.shell_block(name), [(name, listed_groups)], scope)
        chosen = None
        if self.choose and levels is None and node.args.get("order") and node.args.get("limit"):
            chosen = chosen_of(core, block.shell_block(core.name), self.dataset)
            self.chosen = self.chosen or chosen is not None
        known, relation = self._known(core if chosen is None else chosen, block)
        above = block.shell_block(known.name)
        if chosen is not None:
            above = only_columns(above)
        if levels is not None:
            relation = self._at_levels(levels, known, relation, [name for _, name in block.keys.trees], scope)
        result = self.blocks.block(above, [(known.name, relation)], scope)
        as_it_is = levels is None and not (populated(above) - {"expressions"})
        if as_it_is and all(output.column is not None for output in result.outputs):
            result.bare = known.name
        return result

    def _block(
        self, node: exp.Select, tables: Sequence[tuple[exp.Expr, Table | Rows]], scope: Scope, levels: Levels | None
    ) -> CoreBlock:
        """A block over tables, whose keys are those of one level. Errors: Refused."""
        spread(node, self.text)
        write_out(node, self.text.sql)
        if distinct_keys(node):
            node.set("distinct", None)
            node.set("group", exp.Group(all=True))
        names = resolve_sources(node, tables, self.dataset, self.text)
        named = {source.relation: source.table.name for source in names.sources}
        lifter = ExpressionLift(
            self.text, names.resolve, self.parameters, named, names.joins_to, self._member(names, scope)
        )
        return CoreBlock(
            node,
            dataset=self.dataset,
            names=names,
            lifter=lifter,
            nodes=self.nodes,
            count_rows=self.nonempty,
            levels=levels,
        )

    def _numbered(self, block: CoreBlock) -> Core:
        """The core of a block, named after those that are there when all of it is lifted, its earlier stages too."""
        core = block.core()
        return replace(core, name=f"c{len(self.cores)}")

    def _kept(self, core: Core) -> Core:
        """The plan's core that asks the same, the new one if there is none."""
        known = next((c for c in self.cores if canonical_core(c) == canonical_core(core)), None)
        if known is None:
            self.cores.append(core)
        return core if known is None else known

    def _stage_core(self, node: exp.Select, scope: Scope) -> tuple[Core, CoreBlock]:
        """The core of a block whose numbers a later stage reads, and the block."""
        tables, released = self._listed(node, scope, 0, people=True)
        if released:
            raise self._mixed(node)
        block = self._block(node, tables, scope, None)
        core = self._kept(self._numbered(block))
        if core.choice is not None:
            raise mode_of_stage(core.choice)
        self.warnings.extend(block.lifter.warnings)
        return core, block

    def _arranged(self, node: exp.Select, scope: Scope) -> tuple[Core | None, Arrangement | None]:
        """The core of a block whose keys a later stage reads, and what else it does, where that needs no engine."""
        shown, counted = set(self._shown), len(self.blocks.counting)
        released = self.query(node, scope)
        tree = released.form(Form.IDENTIFIED) or released.form(Form.PLAIN)
        self._shown = shown
        del self.blocks.counting[counted:]
        core = next((core for core in self.cores if released.rows == {core.name}), None)
        return core, None if core is None or tree is None else arrangement_of(tree, core.name)

    def _known(self, core: Core, block: CoreBlock) -> tuple[Core, Released]:
        """The plan's core that asks the same, a new one if there is none, and its relation in the shell."""
        known = self._kept(core)
        self._shown.add(known.name)
        outputs = [ShellOutput(name=name, kind=ColumnKind.KEY, core=known.name, column=name) for name, _ in known.keys]
        outputs += [
            ShellOutput(name=a.name, kind=ColumnKind.RELEASED, core=known.name, column=a.name) for a in known.aggregates
        ]
        most = cache(partial(cells_most, known, self.dataset))
        return known, core_relation(known.name, outputs, block.numbers, most)

    def _at_levels(self, levels: Levels, core: Core, relation: Released, keys: Sequence[str], scope: Scope) -> Released:
        """All levels of a block over the relation of its core."""
        counted = len(self.blocks.counting)

        def block(tree: exp.Select, over: Released) -> Released:
            return self.blocks.block(tree, [(core.name, over)], scope)

        found = levels.relation(core, relation, keys, block=block, unite=self._united)
        # Sums of public groups: empty ones add nothing to them but noise.
        del self.blocks.counting[counted:]
        return found

    def _apart(
        self,
        levels: Levels,
        node: exp.Select,
        finest: CoreBlock,
        tables: Sequence[tuple[exp.Expr, Table | Rows]],
        scope: Scope,
    ) -> Released:
        """All levels of a block, each of them the relation of a core of its own."""

        def one(places: Sequence[int]) -> Released:
            block = self._block(levels.only(node, places), tables, scope, None)
            known, relation = self._known(self._numbered(block), block)
            keys = {
                finest.keys.trees[place][1]: mine for place, (_, mine) in zip(places, block.keys.trees, strict=True)
            }
            values = {named.name: block.aggregates[call].name for call, named in finest.aggregates.items()}
            tree = levels.own(known.name, [name for _, name in finest.keys.trees], keys, values)
            return self.blocks.block(tree, [(known.name, relation)], scope)

        found = reduce(self._united, map(one, levels.sets))
        self.warnings.append(levels.warning(self.text.position(node.args["group"])))
        return found

    def _united(self, left: Released, right: Released) -> Released:
        """The rows of two levels, one after another."""
        read = self.nodes.instances(left.instances + right.instances, exp.Null())
        return unite(left, right, exp.Union(distinct=False), copy=lambda node: node, ordered=False, instances=read)


def _no_column(text: Text, node: exp.Column) -> Expression:
    """The refusal of a column among constants."""
    raise refuse(
        "unsupported_sql",
        "a relation of constants is refused",
        "Constants stand there, and neither columns nor queries.",
        position=text.position(node),
    )


def _computed(output: ShellOutput) -> bool:
    """Whether the shell computes the column, in any branch of a UNION ALL."""
    return output.kind == ColumnKind.DERIVED or any(map(_computed, output.branches))
