"""Random questions over rows about people beside a public table, joined by columns that are no key of it."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from privacy.policy import Column, ColumnType
from privacy.values import Cell
from tests.audit.generate import Query, Row, Scene, make_scene
from tests.audit.interpreter import stored
from tests.audit.relations import _Relations

__all__ = ["JOINS", "make_joined", "make_public_scene"]

T = ColumnType
JOINS: tuple[str, ...] = ("equal", "equal", "both", "between", "between", "left", "kept", "right", "where", "member")


@dataclass(frozen=True)
class _Rows:
    """The rows of public tables in memory."""

    tables: Mapping[str, Sequence[Row]]

    def rows(self, table: str, columns: Sequence[str], most: int) -> tuple[tuple[Cell, ...], ...] | None:
        """As `PublicRows.rows`."""
        found = self.tables[table]
        return None if len(found) > most else tuple(tuple(stored(row[name]) for name in columns) for row in found)

    def agreeing(self, table: str, columns: Sequence[str]) -> int | None:
        """As `PublicRows.agreeing`."""
        groups = Counter(tuple(row[name] for name in columns) for row in self.tables[table])
        return max((number for group, number in groups.items() if None not in group), default=0)


def make_public_scene(seed: int) -> Scene:
    """A scene with more hospitals, of which several have as many beds, some none, and people of those ages."""
    scene, r = make_scene(seed), random.Random(seed + 1)
    regions = [row["region"] for row in scene.rows["hospitals"]]
    hospitals = [
        {"hospital_id": 1_000 + number, "region": r.choice(regions), "beds": r.choice([0, 1, 1, 3, 3, 3, 20, 50, None])}
        for number in range(r.randint(4, 9))
    ]
    more = [*scene.rows["hospitals"], *hospitals]
    beds = [row["beds"] for row in hospitals]
    people = [{**row, "age": r.choice([row["age"], r.choice(beds) or 1])} for row in scene.rows["people"]]
    visits = [{**row, "days": r.choice([row["days"], r.choice(beds) or 1])} for row in scene.rows["visits"]]
    rows = {**scene.rows, "hospitals": more, "people": people, "visits": visits}
    public = _Rows({"hospitals": more})
    return replace(scene, rows=rows, dataset=replace(scene.dataset, public=public))


def make_joined(scene: Scene, seed: int) -> Query:
    """A question over such a join. Some are refused; most are answered."""
    return _Beside(random.Random(seed), scene.dataset).question()


class _Beside(_Relations):
    def question(self) -> Query:
        """The block around the join, or around groups of its rows."""
        r = self.r
        table, value = r.choice([("people", "p.age"), ("visits", "v.days")])
        letter = table[0]
        self.columns = []
        self._see(table, letter)
        source, where = f"{table} AS {letter}", []
        if table == "visits" and r.random() < 0.4:
            source += " JOIN people AS p ON v.person_id = p.person_id"
            self._see("people", "p")
        join = r.choice(JOINS)
        public = [("h.region", Column("region", T.TEXT)), ("h.beds", Column("beds", T.INTEGER))]
        match join:
            case "equal":
                source += f" JOIN hospitals AS h ON {value} = h.beds"
            case "both":
                source += f" JOIN hospitals AS h ON {value} = h.beds AND {letter}.hospital_id <> h.hospital_id"
            case "between":
                source += f" JOIN hospitals AS h ON {value} BETWEEN h.beds AND h.beds + {r.choice([0, 5])}"
            case "left":
                source += f" LEFT JOIN hospitals AS h ON {value} = h.beds{r.choice(['', ' AND h.hospital_id > 1001'])}"
            case "kept":
                source += f" LEFT JOIN hospitals AS h ON {value} > h.beds AND {value} < h.beds + 30"
            case "right":
                source = f"hospitals AS h JOIN {table} AS {letter} ON {letter}.{value[2:]} = h.beds"
                public = public[:1]
                self.columns = []
                self._see(table, letter)
            case "where":
                source, where = f"{source}, hospitals AS h", [f"{value} >= h.beds", f"{value} - 2 < h.beds"]
            case _:
                same = r.choice([f"{value} = h.beds", f"{value} BETWEEN h.beds - 1 AND h.beds + 1"])
                no = r.choice(["", "NOT "])
                where, public = [f"{no}EXISTS (SELECT 1 FROM hospitals AS h WHERE {same})"], []
        self.columns += public
        if r.random() < 0.3:
            where.append(f"({self.truth(1)})")
        clause = f" WHERE {' AND '.join(where)}" if where else ""
        if r.random() < 0.25:
            values = [self._value_of(f"n{place}") for place in range(2)]
            source = (
                f"(SELECT {letter}.person_id, {', '.join(f'{text} AS {c.name}' for text, c in values)} "
                f"FROM {source}{clause} GROUP BY {letter}.person_id) AS t"
            )
            self.columns, clause, public = [(f"t.{column.name}", column) for _, column in values], "", []
        keys = [self._key() for _ in range(r.choice([0, 1, 1]))]
        keys += [r.choice(public)[0]] if public and r.random() < 0.6 else []
        aggregates = [self._aggregate() for _ in range(r.choice([1, 2, 3]))]
        listed = [f"{key} AS g{i}" for i, key in enumerate(keys)] + [f"{a} AS m{i}" for i, a in enumerate(aggregates)]
        group = f" GROUP BY {', '.join(f'g{i}' for i in range(len(keys)))}" if keys else ""
        return Query(f"SELECT {', '.join(listed)} FROM {source}{clause}{group}", self.parameters)
