"""Reads the corpus: texts with what must become of them.

-- refused: code            or    -- refused, escaped: code (the text is written with \\x and \\u escapes)
-- answered: why            or    -- answered, unlike DuckDB: why
the text, up to an empty line
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.hostile.crossed import CROSSED

__all__ = ["Entry", "answered", "large", "refused"]

_FOLDER = Path(__file__).resolve().parent


@dataclass(frozen=True, slots=True)
class Entry:
    """A text: `expected` is a refusal's code, or why it is answered; `unlike` that DuckDB says something else."""

    place: str
    text: str
    expected: str
    unlike: bool = False


def _read(path: Path) -> Iterator[Entry]:
    lines = path.read_text(encoding="utf-8").split("\n")
    number = 0
    while number < len(lines):
        if not lines[number].startswith("-- "):
            assert not lines[number], f"{path.name}:{number + 1} is not a header"
            number += 1
            continue
        place = f"{path.stem}:{number + 1}"
        header, _, expected = lines[number].removeprefix("-- ").partition(": ")
        begun = number = number + 1
        while number < len(lines) and lines[number]:
            number += 1
        text = "\n".join(lines[begun:number])
        kind, _, option = header.partition(", ")
        assert kind in ("refused", "answered"), place
        assert option in ("", "escaped", "unlike DuckDB"), place
        if option == "escaped":
            text = codecs.decode(text.encode("ascii"), "unicode_escape")
        yield Entry(place, text, expected, unlike=option == "unlike DuckDB")


def refused() -> list[Entry]:
    """Every text of the corpus that must be refused, with its code."""
    written = [entry for path in sorted(_FOLDER.glob("*.sql")) if path.stem != "answered" for entry in _read(path)]
    known = {entry.text for entry in written}
    return [*written, *(entry for entry in _crossed() if entry.text not in known)]


def _crossed() -> Iterator[Entry]:
    """Hostile fragments in every place."""
    for name, family in CROSSED.items():
        for number, (text, code) in enumerate(family.texts()):
            yield Entry(f"crossed {name}:{number}", text, code)


def answered() -> list[Entry]:
    """Every text that looks hostile and is answered, with the reason."""
    return list(_read(_FOLDER / "answered.sql"))


def large() -> list[Entry]:
    """Texts that are too large to be read in a file: all of them are `too_large`."""
    count = "SELECT COUNT(*) FROM people WHERE "
    first = "WITH a0 AS (SELECT COUNT(*) AS n FROM people)"
    texts = {
        "brackets": f"{count}age > {'(' * 4_000}1{')' * 4_000}",
        "negations": f"{count}{'NOT ' * 4_900}smoker",
        "signs": f"{count}age > {'- ' * 4_900}1",
        "casts": f"{count}age{'::BIGINT' * 1_600} > 1",
        "members": f"{count}age IN ({', '.join(map(str, range(2_400)))})",
        "columns": f"SELECT {', '.join(['COUNT(*)'] * 1_100)} FROM people",
        "aggregates": "SELECT " + ", ".join(f"SUM(age + {i})" for i in range(400)) + " FROM people",
        "alternatives": count + " OR ".join(f"age = {i}" for i in range(1_200)),
        "additions": count + " + ".join(["age"] * 2_400) + " > 1",
        "pieces": f"{count}education = " + " || ".join(["'x'"] * 2_400),
        "branches": f"{count}CASE {'WHEN age = 1 THEN TRUE ' * 900} END",
        "unions": "SELECT COUNT(*) FROM people" + " UNION ALL SELECT COUNT(*) FROM people" * 600,
        "comment": f"SELECT COUNT(*) FROM people -- {'x' * 66_000}",
        "spaces": f"SELECT COUNT(*) FROM people{' ' * 66_000}",
        "name": f"SELECT COUNT(*) FROM people AS {'x' * 66_000}",
        "text": f"{count}education = '{'x' * 60_000}'",
        "number": f"{count}age = {'9' * 60_000}",
        "doubling CTEs": first
        + "".join(f", a{i} AS (SELECT x.n FROM a{i - 1} x, a{i - 1} y)" for i in range(1, 40))
        + " SELECT n FROM a39",
        "doubling subqueries": first
        + "".join(
            f", a{i} AS (SELECT (SELECT MAX(n) FROM a{i - 1}) + (SELECT MIN(n) FROM a{i - 1}) AS n)"
            for i in range(1, 40)
        )
        + " SELECT n FROM a39",
        "doubling unions": first
        + "".join(f", a{i} AS (SELECT n FROM a{i - 1} UNION ALL SELECT n FROM a{i - 1})" for i in range(1, 40))
        + " SELECT n FROM a39",
    }
    return [Entry(f"large:{name}", text, "too_large") for name, text in texts.items()]
