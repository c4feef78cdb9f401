"""Random questions over set operations on rows about people."""

from __future__ import annotations

import random

from privacy.policy import Column, ColumnType
from tests.audit.generate import Query, Scene
from tests.audit.relations import _Relations

__all__ = ["OPERATIONS", "make_union"]

T = ColumnType
OPERATIONS: tuple[str, ...] = ("UNION ALL", "UNION ALL", "UNION ALL", "UNION", "INTERSECT", "EXCEPT")
_KINDS = (T.TEXT, T.INTEGER, T.NUMBER, T.DATE, T.BOOLEAN)


def make_union(scene: Scene, seed: int) -> Query:
    """A question over a set operation. Some are refused; most are answered."""
    return _Unions(random.Random(seed), scene.dataset).question()


class _Unions(_Relations):
    def question(self) -> Query:
        """The block around the set operation, or around groups of its rows."""
        r = self.r
        operation = r.choice(OPERATIONS)
        kinds = [r.choice(_KINDS) for _ in range(r.choice([1, 2, 3]))]
        text, units = self._operation(operation, kinds), operation != "UNION ALL" or r.random() < 0.5
        if not units:
            text = text.replace("AS person_id, ", "AS nobody, ")
        columns = [Column(f"c{place}", kind) for place, kind in enumerate(kinds)]
        columns += [Column("person_id", T.INTEGER)] if units else []
        self.columns = [(f"t.{column.name}", column) for column in columns]
        source = f"({text}) AS t"
        if units and r.random() < 0.3:
            source += " JOIN people AS p ON t.person_id = p.person_id"
            self._see("people", "p")
        elif units and r.random() < 0.3:
            made = [self._value_of(f"n{place}") for place in range(2)]
            source = (
                f"(SELECT t.person_id, {', '.join(f'{value} AS {c.name}' for value, c in made)} "
                f"FROM {source} GROUP BY t.person_id) AS t"
            )
            self.columns = [(f"t.{column.name}", column) for _, column in made]
        keys = [self._key() for _ in range(r.choice([0, 1, 1, 2]))]
        aggregates = [self._aggregate() for _ in range(r.choice([1, 2, 3]))]
        where = f" WHERE {self.truth(1)}" if r.random() < 0.4 else ""
        listed = [f"{key} AS g{i}" for i, key in enumerate(keys)] + [f"{a} AS m{i}" for i, a in enumerate(aggregates)]
        group = f" GROUP BY {', '.join(f'g{i}' for i in range(len(keys)))}" if keys else ""
        return Query(f"SELECT {', '.join(listed)} FROM {source}{where}{group}", self.parameters)

    def _operation(self, operation: str, kinds: list[ColumnType]) -> str:
        """Two or three branches; of INTERSECT and EXCEPT some of whose rows are equal."""
        select = self._branch(kinds)
        if operation.startswith(("INTERSECT", "EXCEPT")):
            return f"{select}{self._where()} {operation} {select}{self._where()}"
        branches = [f"{select}{self._where()}"]
        for _ in range(self.r.choice([1, 1, 2])):
            branches.append(f"{self._branch(kinds)}{self._where()}")
        return f" {operation} ".join(branches)

    def _where(self) -> str:
        return f" WHERE {self.truth(1)}" if self.r.random() < 0.4 else ""

    def _branch(self, kinds: list[ColumnType]) -> str:
        root = self.r.choice(["visits", "visits", "people"])
        letter = root[0]
        self.columns = []
        self._see(root, letter)
        makers = {T.TEXT: self.words, T.INTEGER: self.whole, T.DATE: self.day, T.BOOLEAN: self.truth}
        listed = [f"{letter}.person_id AS person_id"]
        for place, kind in enumerate(kinds):
            if kind is T.NUMBER:
                listed.append(f"{self.r.choice([self.bounded, self.real])(1)} AS c{place}")
            else:
                listed.append(f"{makers[kind](1)} AS c{place}")
        return f"SELECT {', '.join(listed)} FROM {root} AS {letter}"
