"""Regular expressions: random patterns and texts mean the same in the engine and in Python, and the rest is refused."""

from __future__ import annotations

import random

import duckdb
import pytest

from sql_rewrite.functions.regular import EXPANDED_MAX, Unreadable, engine_pattern, python_pattern

_ITEMS = [
    "a",
    "b",
    "c",
    ".",
    "é",
    "[ab]",
    "[^a]",
    r"\d",
    r"\w",
    r"\s",
    "^",
    "$",
    r"\b",
    "1",
    " ",
    r"\W",
    "-",
    r"\D",
    r"[\w-]",
]
_REPEATS = ["*", "+", "?", "*?", "+?", "??", "{2}", "{1,3}", "{2,}", "{0,2}?"]


def pattern(drawn: random.Random, depth: int = 0) -> str:
    """A random pattern, which may lie outside the subset."""
    kind = drawn.random()
    if depth > 3 or kind < 0.35:
        return drawn.choice(_ITEMS)
    if kind < 0.55:
        return pattern(drawn, depth + 1) + pattern(drawn, depth + 1)
    if kind < 0.7:
        return "(" + drawn.choice(["", "?:"]) + pattern(drawn, depth + 1) + ")"
    if kind < 0.85:
        return pattern(drawn, depth + 1) + drawn.choice(_REPEATS)
    return pattern(drawn, depth + 1) + "|" + pattern(drawn, depth + 1)


def test_random_patterns_mean_the_same_in_the_engine() -> None:
    """Whether they fit, what fits and what their groups hold, over hostile texts; a planted difference would be one."""
    drawn = random.Random(11)
    texts = ["".join(drawn.choice("aabbc1é -\n_日\v\x00") for _ in range(drawn.randint(0, 9))) for _ in range(60)]
    compared = 0
    with duckdb.connect(config={"threads": 1}) as connection:
        while compared < 120:
            written = pattern(drawn)
            try:
                engine = engine_pattern(written)
            except Unreadable:
                continue
            compared += 1
            group = drawn.randint(0, engine.replace("(?:", "").count("("))
            found = connection.execute(
                f"SELECT s, regexp_matches(s, '{engine}'), regexp_full_match(s, '{engine}'), "
                f"regexp_extract(s, '{engine}', {group}) FROM (SELECT unnest($1) AS s)",
                [texts],
            ).fetchall()
            python = python_pattern(written)
            for text, searched, full, extracted in found:
                match = python.search(text)
                expected = (
                    match is not None,
                    python.fullmatch(text) is not None,
                    (match[group] or "") if match else "",
                )
                assert expected == (searched, full, extracted), (written, engine, text)


@pytest.mark.parametrize(
    "written",
    [
        "(?i)a",
        "(?=a)",
        "(?P<n>a)",
        r"(a)\1",
        "[[:alpha:]]",
        r"\p{L}",
        r"\B",
        "(a*)*",
        "(^|a)+",
        "a**",
        "a{51}",
        "a{2,1}",
        *(
            "(",
            "a)",
            "[",
            "[]",
            "*a",
            "a{",
            r"\Z",
            "\\",
            "a" * 301,
            "(?:a{50}){50}",
            "(" * 11 + ")" * 11,
            "x{,3}",
            r"\C",
        ),
    ],
)
def test_what_is_read_differently_or_without_bound_is_refused(written: str) -> None:
    """Shows that the parts of regular expressions outside the subset are not read."""
    with pytest.raises(Unreadable):
        engine_pattern(written)


@pytest.mark.parametrize("written", ["a{3}b", "(?:ab|c){2,4}", r"^\d{1,3}$", "日+", r"[^\s,]+@", "x*?y"])
def test_what_engines_get_is_read_again_as_itself(written: str) -> None:
    """The plan holds the pattern as it is written out, in ASCII and within the limit."""
    engine = engine_pattern(written)
    assert engine.isascii()
    assert "'" not in engine
    assert len(engine) <= EXPANDED_MAX
    again = engine_pattern(engine)
    for text in ("", "aaab", "ababc", "12", "日日", "a@b", "xxy"):
        first, second = python_pattern(written).search(text), python_pattern(again).search(text)
        assert (first and first.span()) == (second and second.span())
