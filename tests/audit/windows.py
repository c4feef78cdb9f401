"""Random questions over windows within each unit."""

from __future__ import annotations

import random

from privacy.policy import Column, ColumnType
from tests.audit.generate import Query, Scene
from tests.audit.relations import _Relations

__all__ = ["make_windows"]

T = ColumnType

_FRAMES = (
    "ROWS BETWEEN 1 PRECEDING AND CURRENT ROW",
    "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
    "ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING",
    "ROWS BETWEEN 1 FOLLOWING AND 3 FOLLOWING",
    "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
    "RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
    "RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
)


def make_windows(scene: Scene, seed: int) -> Query:
    """A question over blocks of which most have windows. Some are refused; most are answered."""
    return _Windows(random.Random(seed), scene.dataset).question()


class _Windows(_Relations):
    """Blocks of which most have windows."""

    def _block(self, depth: int) -> tuple[str, list[Column]]:
        r = self.r
        if r.random() < 0.25:
            return super()._block(depth)
        self._blocks += 1
        number = self._blocks
        if depth and r.random() < 0.25:
            below, columns = self._block(depth - 1)
            self.columns = [(f"b.{column.name}", column) for column in columns]
            source, unit = f"({below}) AS b", "b.person_id"
        else:
            self.columns = []
            self._see("visits", "v")
            source, unit = "visits AS v", "v.person_id"
            if r.random() < 0.3:
                source += " JOIN people AS p ON v.person_id = p.person_id"
                self._see("people", "p")
        where = f" WHERE {self.truth(1)}" if r.random() < 0.3 else ""
        names = self.columns
        listed, columns = [f"{unit} AS person_id"], [Column("person_id", T.INTEGER)]
        for i, (name, column) in enumerate(r.sample(names, min(len(names), r.choice([0, 1, 3])))):
            listed.append(f"{name} AS e{number}_{i}")
            columns.append(Column(f"e{number}_{i}", column.type, column.bounds))
        for i in range(r.choice([1, 1, 2, 3])):
            text, column = self._windowed(f"w{number}_{i}", unit)
            listed.append(f"{text} AS {column.name}")
            columns.append(column)
        select = f"SELECT {', '.join(listed)} FROM {source}{where}"
        shape = r.random()
        if shape < 0.3:
            place = f"ROW_NUMBER() OVER ({self._over(unit, apart=False)})"
            select += f" QUALIFY {place} {r.choice(['= 1', '<= 2', '< 4', '> 1', 'IN (1, 3)'])}"
        elif shape < 0.4:
            keys = [unit] + ([self.words(0)] if r.random() < 0.3 else [])
            chosen = f"SELECT DISTINCT ON ({', '.join(keys)}) " + select.removeprefix("SELECT ")
            select = f"{chosen} ORDER BY {', '.join([*keys, *self._terms()])}"
        elif shape < 0.5:
            select = select.replace("SELECT ", "SELECT DISTINCT ", 1)
        return select, columns

    def _terms(self) -> list[str]:
        r = self.r
        makers = [self.whole, self.real, self.words, self.day]
        ends = ["", " DESC", " NULLS FIRST", " DESC NULLS FIRST"]
        return [f"{r.choice(makers)(r.choice([0, 0, 1]))}{r.choice(ends)}" for _ in range(r.choice([1, 1, 2]))]

    def _over(self, unit: str, *, apart: bool = True) -> str:
        keys = [unit]
        if apart and self.r.random() < 0.3:
            keys.append(self.r.choice([self.words, self.whole, self.day])(0))
        order = f" ORDER BY {', '.join(self._terms())}" if self.r.random() < 0.85 else ""
        return f"PARTITION BY {', '.join(keys)}{order}"

    def _windowed(self, name: str, unit: str) -> tuple[str, Column]:
        r, over = self.r, self._over(unit)
        kind = r.choice(["place", "place", "neighbour", "neighbour", "end", "value", "value", "value"])
        if kind == "place":
            call = r.choice(["ROW_NUMBER()", "ROW_NUMBER()", "RANK()", "DENSE_RANK()", "NTILE(3)"])
            return f"{call} OVER ({over})", self._made(name, T.INTEGER)
        if kind == "neighbour":
            maker, result = r.choice([(self.bounded, T.NUMBER), (self.words, T.TEXT), (self.day, T.DATE)])
            more = r.choice(["", ", 2", ", 0"])
            return f"{r.choice(['LAG', 'LEAD'])}({maker(1)}{more}) OVER ({over})", self._made(name, result)
        if kind == "end":
            maker, result = r.choice([(self.bounded, T.NUMBER), (self.words, T.TEXT), (self.day, T.DATE)])
            call, frame = r.choice(
                [
                    (f"FIRST_VALUE({maker(1)})", ""),
                    (f"FIRST_VALUE({maker(1)})", f" {_FRAMES[3]}"),
                    (f"LAST_VALUE({maker(1)})", f" {_FRAMES[4]}"),
                    (f"NTH_VALUE({maker(1)}, 2)", f" {_FRAMES[4]}"),
                ]
            )
            return f"{call} OVER ({over}{frame})", self._made(name, result)
        text, column = self._value_of(name)
        if "DISTINCT" in text or " / " in text:
            text, column = "COUNT(*)", self._made(name, T.INTEGER)
        frame = f" {r.choice(_FRAMES)}" if r.random() < 0.5 and "ORDER BY" in over else ""
        return f"{text} OVER ({over}{frame})", column
