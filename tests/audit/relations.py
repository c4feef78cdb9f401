"""Random questions over rows that are computed within each unit, and over joins of rows of one unit."""

from __future__ import annotations

import random
from fractions import Fraction

from privacy.bounds import ValueBounds
from privacy.policy import Column, ColumnType, Dataset
from tests.audit.generate import Query, Scene, _Grammar

__all__ = ["SHAPES", "make_relation"]

T = ColumnType
SHAPES: tuple[str, ...] = (
    "one",
    "one",
    "one",
    "two",
    "two",
    "people",
    "left",
    "stored",
    "pairs",
    "only",
    "others",
    "others",
)
"""What the block around all others reads."""

_ENDS = {T.INTEGER: ValueBounds(Fraction(0), Fraction(9)), T.NUMBER: ValueBounds(Fraction(-1), Fraction(1))}


def make_relation(scene: Scene, seed: int) -> Query:
    """A question over a tree of such relations. Some are refused; most are answered."""
    return _Relations(random.Random(seed), scene.dataset).question()


class _Relations(_Grammar):
    """Blocks in blocks: each has the unit's key and some columns."""

    def __init__(self, r: random.Random, dataset: Dataset) -> None:
        super().__init__(r, dataset)
        self._blocks = 0

    def question(self) -> Query:
        """The block around all others."""
        shape = self.r.choice(SHAPES)
        if shape == "pairs":
            self.columns = []
            source = "visits AS v JOIN visits AS w ON v.person_id = w.person_id AND v.visit_id < w.visit_id"
            self._see("visits", "v")
            self._see("visits", "w")
        elif shape == "others":
            self.columns = []
            source = "visits AS v"
            self._see("visits", "v")
        elif shape == "only":
            self.columns = []
            self._see("visits", "v")
            beside = f"v.days IS NOT NULL AND ({self.truth(1)})"
            source = f"people AS p LEFT JOIN visits AS v ON p.person_id = v.person_id AND {beside}"
            self._see("people", "p")
        else:
            text, columns = self._block(2)
            source = f"({text}) AS t"
            found = [(f"t.{column.name}", column) for column in columns]
            if shape == "two":
                other, more = self._block(1)
                source += f" {self._join()} ({other}) AS s {self._on('s')}"
                found += [(f"s.{column.name}", column) for column in more]
            elif shape in ("people", "left"):
                self.columns = []
                self._see("people", "p")
                found += self.columns
                if shape == "people":
                    source += " JOIN people AS p ON t.person_id = p.person_id"
                else:
                    source = f"people AS p LEFT JOIN {source} ON t.person_id = p.person_id"
            elif shape == "stored":
                self.columns = []
                self._see("visits", "v")
                found += self.columns
                source = f"visits AS v {self._join()} {source} ON v.person_id = t.person_id"
            self.columns = found
        keys = [self._key() for _ in range(self.r.choice([0, 0, 1, 1, 2]))]
        aggregates = [self._aggregate() for _ in range(self.r.choice([1, 2, 3]))]
        conditions = [f"({self.truth(1)})"] if self.r.random() < 0.4 else []
        if self.r.random() < 0.35:
            conditions.append(
                self._member({"pairs": "v", "left": "p", "stored": "v", "only": "p", "others": "v"}.get(shape, "t"))
            )
        if shape == "others":
            conditions.append(self._other_rows())
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        listed = [f"{key} AS g{i}" for i, key in enumerate(keys)] + [f"{a} AS m{i}" for i, a in enumerate(aggregates)]
        group = f" GROUP BY {', '.join(f'g{i}' for i in range(len(keys)))}" if keys else ""
        return Query(f"SELECT {', '.join(listed)} FROM {source}{where}{group}", self.parameters)

    def _member(self, letter: str) -> str:
        """A condition on the unit's rows elsewhere."""
        outside, self.columns = self.columns, []
        self._see("visits", "e")
        inside = self.truth(1)
        self.columns = outside
        negated = self.r.choice(["", "NOT "])
        if self.r.random() < 0.5:
            return f"{letter}.person_id {negated}IN (SELECT e.person_id FROM visits AS e WHERE {inside})"
        return f"{negated}EXISTS (SELECT 1 FROM visits AS e WHERE e.person_id = {letter}.person_id AND {inside})"

    def _other_rows(self) -> str:
        """A condition that compares a visit with other rows of its unit."""
        r = self.r
        kind = r.choice(["equal", "ordered", "value", "value", "items", "count", "in", "visit"])
        outside, self.columns = self.columns, []
        root = "items" if kind in ("items", "count", "in") else "visits"
        self._see(root, "e")
        own = [column for _, column in self.columns if column.name not in ("person_id", "item_id")]
        inside = self.truth(1) if r.random() < 0.6 else "TRUE"
        argument = self.bounded(1)
        self.columns = outside
        column, order = r.choice(own).name, r.choice(["<", "<=", ">", ">=", "<>"])
        negated = r.choice(["", "NOT "])
        same = f"""e.person_id = v.person_id AND {inside}"""
        if kind == "equal":
            return f"""{negated}EXISTS (SELECT 1 FROM visits AS e WHERE e."{column}" = v."{column}" AND {same})"""
        if kind == "ordered":
            other = r.choice(own).name
            beside = f"""AND v."{other}" = e."{other}" """ if r.random() < 0.3 else ""
            compared = f"""e."{column}" {order} v."{column}" {beside}"""
            return f"{negated}EXISTS (SELECT 1 FROM visits AS e WHERE {compared}AND {same})"
        if kind == "value":
            made = r.choice([f"AVG({argument})", f"SUM({argument})", "COUNT(*) + 1", f"MAX({argument}) / COUNT(*)"])
            beside = f"""AND v."{column}" = e."{column}" """ if r.random() < 0.4 else ""
            return f"""v.cost {order} (SELECT {made} FROM visits AS e WHERE {same} {beside})"""
        if kind == "items":
            return f"{negated}EXISTS (SELECT 1 FROM items AS e WHERE e.visit_id = v.visit_id AND {inside})"
        if kind == "count":
            return (
                f"(SELECT COUNT(*) FROM items AS e WHERE v.visit_id = e.visit_id AND {inside}) {order} {r.randrange(3)}"
            )
        if kind == "in":
            return f"v.visit_id {negated}IN (SELECT e.visit_id FROM items AS e WHERE {inside})"
        return (
            f"v.visit_id {negated}IN (SELECT e.visit_id FROM items AS e GROUP BY e.visit_id "
            f"HAVING COUNT(*) > {r.randrange(3)})"
        )

    def _on(self, other: str) -> str:
        return self.r.choice([f"ON t.person_id = {other}.person_id", "USING (person_id)"])

    def _block(self, depth: int) -> tuple[str, list[Column]]:
        """A block that groups by the unit, or has its different rows; with the columns that it has."""
        r = self.r
        self._blocks += 1
        number = self._blocks
        if depth and r.random() < 0.3:
            below, columns = self._block(depth - 1)
            self.columns = [(f"b.{column.name}", column) for column in columns]
            source, unit = f"({below}) AS b", "b.person_id"
        else:
            self.columns = []
            root = r.choice(["visits", "visits", "visits", "items", "people"])
            if root == "items":
                source, unit = "items AS i JOIN visits AS v ON i.visit_id = v.visit_id", "v.person_id"
                self._see("items", "i")
                self._see("visits", "v")
            elif root == "visits" and r.random() < 0.3:
                source, unit = "visits AS v JOIN people AS p ON v.person_id = p.person_id", "v.person_id"
                self._see("visits", "v")
                self._see("people", "p")
            else:
                source, unit = f"{root} AS {root[0]}", f"{root[0]}.person_id"
                self._see(root, root[0])
        where = f" WHERE {self.truth(1)}" if r.random() < 0.4 else ""
        keys = [self._key() for _ in range(r.choice([0, 0, 0, 1, 2]))]
        listed, columns = [f"{unit} AS person_id"], [Column("person_id", T.INTEGER)]
        for i, key in enumerate(keys):
            listed.append(f"{key} AS k{number}_{i}")
        for kind, maker in ((T.TEXT, self.words), (T.INTEGER, self.whole), (T.DATE, self.day)):
            if r.random() < 0.15:
                keys.append(maker(0))
                listed.append(f"{keys[-1]} AS k{number}_{len(keys) - 1}")
                columns.append(Column(f"k{number}_{len(keys) - 1}", kind))
        if r.random() < 0.15:
            return f"SELECT DISTINCT {', '.join(listed)} FROM {source}{where}", columns
        made = [self._value_of(f"n{number}_{i}") for i in range(r.choice([1, 2, 3]))]
        listed += [f"{text} AS {column.name}" for text, column in made]
        columns += [column for _, column in made]
        by = ", ".join([unit, *(f"k{number}_{i}" for i in range(len(keys)))])
        having = f" HAVING COUNT(*) > {r.choice([0, 1, 4])}" if r.random() < 0.3 else ""
        return f"SELECT {', '.join(listed)} FROM {source}{where} GROUP BY {by}{having}", columns

    def _value_of(self, name: str) -> tuple[str, Column]:
        r = self.r
        kind = r.choice(
            ["ROWS", "ROWS", "SUM", "SUM", "AVG", "AVG", "ENDS", "ENDS", "DISTINCT", "TRUTH", "RATIO", "VALUES"]
        )
        filtered = f" FILTER (WHERE {self.truth(1)})" if r.random() < 0.2 else ""
        if kind == "ROWS":
            return f"COUNT(*){filtered}", self._made(name, T.INTEGER)
        if kind == "VALUES":
            return f"COUNT({self.r.choice([self.whole, self.real, self.words])(1)}){filtered}", self._made(
                name, T.INTEGER
            )
        if kind in ("SUM", "AVG"):
            return f"{kind}({self.bounded(1)}){filtered}", self._made(name, T.NUMBER)
        if kind == "RATIO":
            return f"SUM({self.bounded(0)}) / COUNT(*) + 1", self._made(name, T.NUMBER)
        if kind == "DISTINCT":
            argument = r.choice([self.whole, self.words, self.day])(0)
            return f"COUNT(DISTINCT {argument}){filtered}", self._made(name, T.INTEGER)
        if kind == "TRUTH":
            return f"{r.choice(['BOOL_OR', 'BOOL_AND'])}({self.truth(1)}){filtered}", self._made(name, T.BOOLEAN)
        maker, result = r.choice(
            [(self.bounded, T.NUMBER), (self.real, T.NUMBER), (self.words, T.TEXT), (self.day, T.DATE)]
        )
        bounds = maker == self.bounded
        return f"{r.choice(['MIN', 'MAX'])}({maker(1)}){filtered}", self._made(name, result, bounds=bounds)

    @staticmethod
    def _made(name: str, kind: ColumnType, *, bounds: bool = True) -> Column:
        return Column(name, kind, _ENDS.get(kind) if bounds else None)
