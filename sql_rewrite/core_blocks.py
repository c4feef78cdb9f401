"""Blocks that aggregate rows about people: a core of the plan each, and the block of the outer query above it.

    SELECT sex, COUNT(*) AS n FROM people GROUP BY sex HAVING COUNT(*) > 10
    core c0:  people grouped by k0 = sex, a0 = rows
    above:    SELECT k0 AS sex, a0 AS n FROM c0 WHERE a0 > 10

A core that is there already is not asked again. Levels of groups, choices of keys and declared groups begin here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache, partial, reduce

from sqlglot import exp

from privacy.policy import Table
from privacy.release import ColumnKind
from sql_rewrite.arrangement import arrangement_of
from sql_rewrite.atoms import Atoms, atoms_of
from sql_rewrite.choices import HiddenChoice, chosen_of, mode_of_levels, mode_of_stage, only_columns
from sql_rewrite.core_block import CoreBlock
from sql_rewrite.declared_groups import declared_groups, distinct_keys, group_rows, groups_of_declaration
from sql_rewrite.from_items import mixed
from sql_rewrite.geometric_mean import write_out
from sql_rewrite.joins import resolve_sources
from sql_rewrite.keys import cells_most
from sql_rewrite.levels import Levels, MixedLevels, levels_of, with_levels_of
from sql_rewrite.lift_expression import ExpressionLift
from sql_rewrite.lifting import ByAtoms, Lifting
from sql_rewrite.plan import Arrangement, Core, ShellOutput
from sql_rewrite.plan_key import canonical_core
from sql_rewrite.quantile_lists import spread
from sql_rewrite.released import Form, Released, core_relation
from sql_rewrite.rows import Rows
from sql_rewrite.scope import Scope
from sql_rewrite.syntax import populated
from sql_rewrite.union import unite

__all__ = ["CoreBlocks"]


class CoreBlocks:
    """Makes the cores of one text."""

    def __init__(self, lift: Lifting) -> None:
        self._lift = lift
        self.chosen = False
        """Whether a choice of keys stands for counts."""
        self.split = True
        """Whether aggregates that follow from the finest of several levels are asked apart from others."""
        self.by_atoms = True
        """Whether conditions of one block may be measured as groups: not where its table is read as it is."""
        self.shown: set[str] = set()
        """The cores that the outer query reads."""

    def released(self, node: exp.Select, tables: Sequence[tuple[exp.Expr, Table | Rows]], scope: Scope) -> Released:
        """What a block over these tables releases, its outer part included. Errors: Refused."""
        levels = levels_of(node, self._lift.text)
        block = self._block(node if levels is None else levels.finest(node), tables, scope, levels)
        core = self._numbered(block)
        self._lift.warnings.extend(block.lifter.warnings)
        if levels is not None and core.choice is not None:
            raise mode_of_levels(core.choice)
        if core.choice is not None and cells_most(core, self._lift.dataset) is None:
            raise HiddenChoice(core)
        public = levels is None or cells_most(core, self._lift.dataset) is not None
        if self.split and levels is not None and public and not self._lift.nonempty and levels.mixed(core):
            raise MixedLevels
        if levels is not None and levels.apart(core, public=public):
            above = block.shell_block(core.name)
            return self._lift.blocks.block(above, [(core.name, self._apart(levels, node, block, tables, scope))], scope)
        groups = groups_of_declaration(core, self._lift.dataset) if levels is None else None
        if groups is not None:
            self._lift.warnings.append(declared_groups(self._lift.text.position(node)))
            name = self._lift.new_name("keys")
            listed_groups = self._lift.public.rows(*group_rows(core, groups, block.numbers))
            return self._lift.blocks.block(block.shell_block(name), [(name, listed_groups)], scope)
        chosen = None
        if self._lift.choose and levels is None and node.args.get("order") and node.args.get("limit"):
            chosen = chosen_of(core, block.shell_block(core.name), self._lift.dataset)
            self.chosen = self.chosen or chosen is not None
        if levels is not None and not self._lift.nonempty:
            # Groups that are left out by their counts would be missing from what is measured with them.
            core = levels.read_by(core, [name for _, name in block.keys.trees])
        atoms = None
        plain = chosen is None and levels is None and not self._lift.nonempty and not block.names.preserved
        if self.by_atoms and self._lift.atoms is not ByAtoms.NONE and plain and len(core.aggregates) > 1:
            atoms = atoms_of(core, self._lift.dataset, alone=self._lift.atoms is ByAtoms.ALONE)
        if atoms is not None:
            return self._by_atoms(atoms, core, block, scope)
        known, relation = self._known(core if chosen is None else chosen, block)
        above = block.shell_block(known.name)
        if chosen is not None:
            above = only_columns(above)
        if levels is not None:
            relation = self._at_levels(levels, known, relation, [name for _, name in block.keys.trees], scope)
        result = self._lift.blocks.block(above, [(known.name, relation)], scope)
        as_it_is = levels is None and not (populated(above) - {"expressions"})
        if as_it_is and all(output.column is not None for output in result.outputs):
            result.bare = known.name
        return result

    def _block(
        self, node: exp.Select, tables: Sequence[tuple[exp.Expr, Table | Rows]], scope: Scope, levels: Levels | None
    ) -> CoreBlock:
        """A block over tables, whose keys are those of one level. Errors: Refused."""
        spread(node, self._lift.text)
        write_out(node, self._lift.text.folded)
        if distinct_keys(node):
            node.set("distinct", None)
            node.set("group", exp.Group(all=True))
        names = resolve_sources(node, tables, self._lift.dataset, self._lift.text)
        named = {source.relation: source.table.name for source in names.sources}
        lifter = ExpressionLift(
            self._lift.text,
            names.resolve,
            self._lift.parameters,
            named,
            names.joins_to,
            self._lift.member(node, names, scope),
        )
        return CoreBlock(
            node,
            dataset=self._lift.dataset,
            names=names,
            lifter=lifter,
            nodes=self._lift.nodes,
            count_rows=self._lift.nonempty,
            levels=levels,
        )

    def _numbered(self, block: CoreBlock) -> Core:
        """The core of a block, named after those that are there when all of it is lifted, its earlier stages too."""
        core = block.core()
        return replace(core, name=f"c{len(self._lift.cores)}")

    def _kept(self, core: Core) -> Core:
        """The plan's core that asks the same, the new one if there is none."""
        form = canonical_core(core) if self._lift.cores else ()
        known = next((c for c in self._lift.cores if canonical_core(c) == form), None)
        if known is None:
            self._lift.cores.append(core)
            return core
        read = with_levels_of(known, core)
        self._lift.cores[self._lift.cores.index(known)] = read
        return read

    def stage(self, node: exp.Select, scope: Scope) -> tuple[Core, CoreBlock]:
        """The core of a block whose numbers a later stage reads, and the block."""
        tables, released = self._lift.listed(node, scope, 0, people=True)
        if released:
            raise mixed(node, self._lift.text)
        block = self._block(node, tables, scope, None)
        core = self._kept(self._numbered(block))
        if core.choice is not None:
            raise mode_of_stage(core.choice)
        self._lift.warnings.extend(block.lifter.warnings)
        return core, block

    def arranged(self, node: exp.Select, scope: Scope) -> tuple[Core | None, Arrangement | None]:
        """The core of a block whose keys a later stage reads, and what else it does, where that needs no engine."""
        shown, counted, choose = set(self.shown), len(self._lift.blocks.counting), self._lift.choose
        by_atoms, self.by_atoms = self.by_atoms, False
        self._lift.choose = False  # a choice releases no table that could be cut
        try:
            released = self._lift.query(node, scope)
        finally:
            self._lift.choose, self.by_atoms = choose, by_atoms
            self.shown = shown
            del self._lift.blocks.counting[counted:]
        tree = released.form(Form.IDENTIFIED) or released.form(Form.PLAIN)
        core = next((core for core in self._lift.cores if released.rows == {core.name}), None)
        return core, None if core is None or tree is None else arrangement_of(tree, core, filtered=True)

    def _by_atoms(self, atoms: Atoms, core: Core, block: CoreBlock, scope: Scope) -> Released:
        """A block whose conditions are atoms: its outer part over the released groups, those of each row together."""
        known = self._kept(replace(atoms.core, name=core.name))
        self.shown.add(known.name)
        most = cache(partial(cells_most, core, self._lift.dataset))
        sums = replace(atoms, core=known).relation(block.numbers, most)
        return self._lift.blocks.block(block.shell_block(core.name), [(core.name, sums)], scope)

    def _known(self, core: Core, block: CoreBlock) -> tuple[Core, Released]:
        """The plan's core that asks the same, a new one if there is none, and its relation in the shell."""
        known = self._kept(core)
        self.shown.add(known.name)
        outputs = [ShellOutput(name=name, kind=ColumnKind.KEY, core=known.name, column=name) for name, _ in known.keys]
        outputs += [
            ShellOutput(name=a.name, kind=ColumnKind.RELEASED, core=known.name, column=a.name) for a in known.aggregates
        ]
        most = cache(partial(cells_most, known, self._lift.dataset))
        return known, core_relation(known.name, outputs, block.numbers, most)

    def _at_levels(self, levels: Levels, core: Core, relation: Released, keys: Sequence[str], scope: Scope) -> Released:
        """All levels of a block over the relation of its core."""
        counted = len(self._lift.blocks.counting)

        def block(tree: exp.Select, over: Released) -> Released:
            return self._lift.blocks.block(tree, [(core.name, over)], scope)

        found = levels.relation(core, relation, keys, block=block, unite=self._united)
        # Sums of public groups: empty ones add nothing to them but noise.
        del self._lift.blocks.counting[counted:]
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
            return self._lift.blocks.block(tree, [(known.name, relation)], scope)

        found = reduce(self._united, map(one, levels.sets))
        self._lift.warnings.append(levels.warning(self._lift.text.position(node.args["group"])))
        return found

    def _united(self, left: Released, right: Released) -> Released:
        """The rows of two levels, one after another."""
        read = self._lift.nodes.instances(left.instances + right.instances, exp.Null())
        return unite(left, right, exp.Union(distinct=False), copy=lambda node: node, ordered=False, instances=read)
