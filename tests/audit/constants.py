"""Random questions over rows about people beside rows of constants."""

from __future__ import annotations

import random
from itertools import pairwise

from privacy.policy import Column, ColumnType
from tests.audit.generate import Query, Scene
from tests.audit.relations import _Relations

__all__ = ["JOINS", "make_constants"]

T = ColumnType
JOINS: tuple[str, ...] = ("bands", "bands", "equal", "equal", "cross", "series", "loose")


def make_constants(scene: Scene, seed: int) -> Query:
    """A question over such a join. Some are refused; most are answered."""
    return _Beside(random.Random(seed), scene.dataset).question()


class _Beside(_Relations):
    def question(self) -> Query:
        """The block around the join, or around groups of its rows."""
        r = self.r
        table = r.choice(["people", "people", "visits"])
        letter = table[0]
        self.columns = []
        self._see(table, letter)
        constants, condition, made = self._constants(r.choice(JOINS))
        source = f"{table} AS {letter}"
        if table == "visits" and r.random() < 0.4:
            source += " JOIN people AS p ON v.person_id = p.person_id"
            self._see("people", "p")
        if condition and r.random() < 0.5:
            joined, where = source, []
            source = f"{constants} JOIN {joined} ON {condition}"
            if r.random() < 0.4:
                source = f"{joined} LEFT JOIN {constants} ON {condition}"
            elif "JOIN people" in joined:
                source = f"{table} AS {letter} JOIN {constants} ON {condition} JOIN people AS p USING (person_id)"
        else:
            source, where = f"{source} CROSS JOIN {constants}", [condition] if condition else []
        self.columns += made
        if r.random() < 0.4:
            where.append(f"({self.truth(1)})")
        clause = f" WHERE {' AND '.join(where)}" if where else ""
        if r.random() < 0.25:
            values = [self._value_of(f"n{place}") for place in range(2)]
            source = (
                f"(SELECT {letter}.person_id, {', '.join(f'{text} AS {c.name}' for text, c in values)} "
                f"FROM {source}{clause} GROUP BY {letter}.person_id) AS t"
            )
            self.columns, clause = [(f"t.{column.name}", column) for _, column in values], ""
        keys = [self._key() for _ in range(r.choice([0, 1, 1, 2]))]
        keys += [made[0][0]] if r.random() < 0.6 and " AS t" not in source else []
        aggregates = [self._aggregate() for _ in range(r.choice([1, 2, 3]))]
        listed = [f"{key} AS g{i}" for i, key in enumerate(keys)] + [f"{a} AS m{i}" for i, a in enumerate(aggregates)]
        group = f" GROUP BY {', '.join(f'g{i}' for i in range(len(keys)))}" if keys else ""
        return Query(f"SELECT {', '.join(listed)} FROM {source}{clause}{group}", self.parameters)

    def _constants(self, join: str) -> tuple[str, str, list[tuple[str, Column]]]:
        """Rows of constants under the name c, the condition of their join, and their columns."""
        r = self.r
        name = ("c.name", Column("name", T.TEXT))
        if join == "bands":
            ends = sorted(r.sample(range(-5, 60), r.choice([2, 3, 4])))
            rows = [f"('b{n % 3}', {low}, {high})" for n, (low, high) in enumerate(pairwise(ends))]
            if r.random() < 0.3:
                rows.append(f"('over', {r.randint(-5, 30)}, {r.choice(['NULL', '70'])})")
            value = self.whole(0)
            condition = r.choice([f"{value} >= c.low AND {value} < c.high", f"{value} BETWEEN c.low AND c.high"])
            return f"(VALUES {', '.join(rows)}) AS c(name, low, high)", condition, [name]
        if join == "equal":
            words = r.sample(["'a'", "'B'", "''", "'é'", "NULL", "'a'"], 3)
            rows = ", ".join(f"({word}, {place / 2})" for place, word in enumerate(words))
            weight = ("c.weight", Column("weight", T.NUMBER))
            return f"(VALUES {rows}) AS c(name, weight)", f"{self.words(0)} = c.name", [name, weight]
        if join == "series":
            number = ("c.n", Column("n", T.INTEGER))
            return f"generate_series(-2, {r.choice([1, 6])}) AS c(n)", f"c.n <= {self.whole(0)}", [number]
        if join == "loose":
            return (
                "(VALUES ('x', 0.5), ('y', 1e6)) AS c(name, least)",
                f"{self.real(0)} > c.least * 2 OR {self.truth(0)}",
                [name],
            )
        return (
            f"UNNEST([{', '.join(r.sample(['1', '2', '3', '3'], 2))}]) AS c(n)",
            "",
            [("c.n", Column("n", T.INTEGER))],
        )
