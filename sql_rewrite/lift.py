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
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial

from sqlglot import exp

from privacy.policy import Dataset
from privacy.refusal import Finding, Refused
from privacy.release import ColumnKind
from sql_rewrite.aggregate_calls import aggregate_calls, counts_rows, is_mode
from sql_rewrite.apart import set_apart
from sql_rewrite.arrangement import arrangement_of
from sql_rewrite.base_tables import base_table
from sql_rewrite.choices import HiddenChoice, hidden_candidates
from sql_rewrite.core_blocks import CoreBlocks
from sql_rewrite.from_items import FromItems, alias_columns, mixed, renamed
from sql_rewrite.joins import resolve_sources
from sql_rewrite.known_queries import KnownQueries
from sql_rewrite.levels import MixedLevels, levels_of
from sql_rewrite.lifter import ParameterValue
from sql_rewrite.lifting import SELECT_SLOTS, ByAtoms
from sql_rewrite.nested_rows import NestedRows
from sql_rewrite.outer_keys import by_outer_keys
from sql_rewrite.pivots import write_pivots
from sql_rewrite.plain_calls import spell_calls
from sql_rewrite.plain_spelling import spell_plainly
from sql_rewrite.plan import Core, Plan, Shell, ShellOutput, Simulation
from sql_rewrite.public import PublicRelations
from sql_rewrite.quantile_lists import spread
from sql_rewrite.refuse import refuse
from sql_rewrite.released import Form, Released
from sql_rewrite.rows import Rows
from sql_rewrite.rows_block import RowsSeeker, listed, named_rows
from sql_rewrite.running_sums import with_running
from sql_rewrite.scope import Cte, Names, Scope
from sql_rewrite.shell import ShellNodes, generate, output_name
from sql_rewrite.shell_block import ShellBlocks
from sql_rewrite.shell_form import NodeWriter
from sql_rewrite.shell_size import check_sizes
from sql_rewrite.spelling import check_gaps, check_words
from sql_rewrite.stage_values import lists_of
from sql_rewrite.stages import Stages, kept_cores
from sql_rewrite.syntax import consume, parse, populated
from sql_rewrite.text import Text
from sql_rewrite.top_rows import best_of_groups, first_values, may_be_top_rows
from sql_rewrite.union import unite

__all__ = ["lift"]


def lift(
    sql: str,
    dataset: Dataset,
    parameters: Mapping[str, ParameterValue] | None = None,
    *,
    nonempty: bool = False,
    started: datetime.datetime | None = None,
    choose: bool = True,
    atoms: ByAtoms = ByAtoms.SUMS,
    write: Callable[[exp.Expr, Text], exp.Expr] | None = None,
) -> Plan:
    """The typed plan of a text. With `nonempty` every core with keys has an aggregate that counts all rows.

    Without `choose`, what counts can answer is no choice of keys (choices.py). `atoms` says whether conditions
    may be measured as the groups that they make.

    `started` is what CURRENT_DATE and NOW() say (`lift_clock.started`); without it they are refused.
    `write` writes the tree as another one, which is read in its place (training.py).
    Errors: Refused with every finding that could be established; depends on the text and public metadata only.
    """
    tree, text = parse(sql)
    text.started = started
    try:
        tree = tree if write is None else write(tree, text)
        plan = _Lift(text, dataset, parameters or {}, nonempty=nonempty, choose=choose, atoms=atoms).plan(tree)
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
        return lift(
            sql, dataset, parameters, nonempty=nonempty, started=started, choose=False, atoms=atoms, write=write
        )
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
        atoms: ByAtoms = ByAtoms.SUMS,
    ) -> None:
        self.nonempty = nonempty
        self.atoms = atoms
        self.choose = choose and not nonempty
        self.text = text
        self.dataset = dataset
        self.parameters = parameters
        self.nodes = ShellNodes(text, parameters)
        self.cores: list[Core] = []
        self.warnings: list[Finding] = []
        self.public = PublicRelations(text, self.cores)
        self.blocks = ShellBlocks(self.nodes, self.cores, self.query)
        self.ctes: list[Cte] = []
        items, nested, self.core_blocks = FromItems(self), NestedRows(self), CoreBlocks(self)
        self.listed, self.new_name = items.listed, items.new_name
        self.rows, self.member, self.by_unit = nested.rows, nested.member, nested.by_unit
        self.known = KnownQueries(text, parameters, dataset, self.with_)
        self.seeker = RowsSeeker(
            dataset, self.with_, lambda node, scope: self.by_unit(node, scope) is not None, self.known
        )
        self.stages = Stages(
            text, parameters, self.seeker,
            core=self.core_blocks.stage, arranged=self.core_blocks.arranged, dataset=dataset, with_=self.with_,
            known=self.known,
        )  # fmt: skip
        self._scopes: dict[int, Mapping[str, Cte]] = {}
        """The CTEs that are visible below each WITH, by the identity of its node: it is read at every use of rows."""
        self._made: list[exp.Select] = []
        """Blocks that stand for others: kept, because blocks are known by the identity of their nodes."""

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
        tree = write_pivots(tree, self.dataset, self.text)
        if not isinstance(tree, exp.Query) or isinstance(tree, exp.Table):
            raise self._not_a_query(tree)
        check_words(self.text.tokens, self.text)
        self._check_parameters()
        self._fill_limits(tree)
        spell_plainly(tree, self.text)
        of_calls = spell_calls(tree, self.text, self.dataset)
        top = self.query(tree, Scope({}))
        self.warnings.extend(of_calls if self.cores else ())
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
        arrangement = arrangement_of(tree_to_run, self.cores[0]) if len(self.cores) == 1 else None
        if self.atoms is ByAtoms.SUMS and not self.nonempty:
            # A width that is asked for is that of single groups; groups that are left out would be missing from sums.
            self.cores[:] = with_running(self.cores, tree_to_run, outputs)
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
            self.cores[:], stages = kept_cores(self.cores, self.core_blocks.shown)
        warnings = tuple(dict.fromkeys((*self.warnings, *(self.stages.warnings if stages else ()))))
        lists = self.stages.groups.lists
        read = {key for core in self.cores for key in lists_of(core)} if lists else ()
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
            unshown=tuple(core.name for core in self.cores if stages and core.name not in self.core_blocks.shown),
            lists=tuple((*key, found) for key, found in lists.items() if key in read),
            chosen=self.core_blocks.chosen,
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
            return self.query(node.this, self.with_(node, scope))
        if isinstance(node, exp.SetOperation):
            return self._set_operation(node, self.with_(node, scope))
        if not isinstance(node, exp.Select):
            raise self._not_a_query(node)
        consume(node, *SELECT_SLOTS, text=self.text, what="SELECT")
        return self._select(node, self.with_(node, scope))

    def with_(self, node: exp.Expr, scope: Scope) -> Scope:
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

    def _cte_rows(self, node: exp.CTE, scope: Scope, first: int) -> Rows:
        alias = node.args["alias"]
        consume(alias, "this", "columns", text=self.text, what="a CTE's name")
        return named_rows(self.rows(node.this, scope, first), alias_columns(alias, self.text), self.text, node)

    def _cte(self, node: exp.CTE, scope: Scope) -> Released:
        released = self.query(node.this, scope)
        alias = node.args["alias"]
        consume(alias, "this", "columns", text=self.text, what="a CTE's name")
        names = alias_columns(alias, self.text)
        return renamed(released, names, node, self.text) if names else released

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
        if top is not None:
            return top
        people = any(self.seeker.reads_people(item, scope) for item in listed(node))
        block = set_apart(node, self.text, partial(output_name, self.text), people=people)
        if block is None:
            return self._counted(node, scope)
        levels = levels_of(node, self.text) if any(map(is_mode, aggregate_calls(node.expressions))) else None
        if levels is not None:
            self.warnings.append(levels.warning(self.text.position(node.args["group"])))
        self._made.append(block)
        return self._read(block, Scope(scope.ctes))

    def _counted(self, node: exp.Select, scope: Scope) -> Released:
        """The relation of a block; that of MODE of values which are not public by the counts of the shown ones."""
        try:
            return self._read(node, scope)
        except HiddenChoice as hidden:
            name = partial(output_name, self.text)
            block = set_apart(node, self.text, name, people=True, counted=True)
            if block is None:
                raise hidden_candidates(hidden.core) from None
            self._made.append(block)
            return self._read(block, Scope(scope.ctes))
        except MixedLevels:
            return self._levels_apart(node, scope)

    def _levels_apart(self, node: exp.Select, scope: Scope) -> Released:
        """The relation of a block of which some aggregates add up over its levels: these are one release for all."""
        name, levels = partial(output_name, self.text), levels_of(node, self.text)
        spread(node, self.text)
        block = set_apart(node, self.text, name, people=True, levels=True)
        if block is None or levels is None:
            self.core_blocks.split = False
            try:
                return self._read(node, scope)
            finally:
                self.core_blocks.split = True
        self.warnings.append(levels.warning(self.text.position(node.args["group"])))
        self._made.append(block)
        return self._read(block, Scope(scope.ctes))

    def _top_rows(self, node: exp.Select, scope: Scope) -> Released | None:
        """The relation of a block that is another spelling of one that sorts groups and takes the first ones."""
        names = [node.expressions[0].alias or output_name(self.text, node.expressions[0])]
        items = listed(node)
        if any(self.seeker.reads_people(item, scope) for item in items):
            block = first_values(node)
            if block is None:
                return None
            self._made.append(block)
            return renamed(self._read(block, scope), names, node, self.text)
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
        return None if chosen is None else renamed(chosen, names, node, self.text)

    def _choice(self, block: exp.Select, scope: Scope) -> Released | None:
        """A block where it is a choice; None, and nothing is known of it afterwards, where it is not."""
        self._made.append(block)
        before = len(self.cores), len(self.warnings), len(self.blocks.counting)
        chosen, self.core_blocks.chosen = self.core_blocks.chosen, False
        shown = set(self.core_blocks.shown)
        found: Released | None = None
        with suppress(Refused):
            found = self._read(block, scope)
        if found is not None and self.core_blocks.chosen:
            return found
        self.core_blocks.chosen, self.core_blocks.shown = chosen, shown
        del self.cores[before[0] :], self.warnings[before[1] :], self.blocks.counting[before[2] :]
        return None

    def _read(self, node: exp.Select, scope: Scope) -> Released:
        # Of people: the block is a core, and all that it reads are rows. Else everybody knows what is not released.
        people = any(self.seeker.reads_people(item, scope) for item in listed(node))
        tables, released = self.listed(node, scope, 0, people=people)
        if tables and released:
            raise mixed(node, self.text)
        if tables:
            around = None
            if scope.outer and node.args.get("where") is not None:
                names = resolve_sources(node, tables, self.dataset, self.text)
                around = by_outer_keys(node, names, scope.outer, self.text)
            return self.core_blocks.released(node, tables, scope) if around is None else self.query(around, scope)
        return self.blocks.block(node, released, scope)

    # The private part of a block


def _computed(output: ShellOutput) -> bool:
    """Whether the shell computes the column, in any branch of a UNION ALL."""
    return output.kind == ColumnKind.DERIVED or any(map(_computed, output.branches))
