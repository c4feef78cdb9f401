"""The closed part of YAML that dataset files are written in."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
import yaml

from server.datasets.reading import DEPTH_MAX, SIZE_MAX, read


def whats(text: str | bytes) -> list[str]:
    content = text if isinstance(text, bytes) else text.encode()
    return [problem.what for problem in read(content).findings]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("no", "no"),
        ("yes", "yes"),
        ("on", "on"),
        ("true", True),
        ("False", False),
        ("~", None),
        ("", None),
        ("010", 10),
        ("-7", -7),
        ("1:30", "1:30"),
        ("0x1F", "0x1F"),
        ("1_000", "1_000"),
        ("2024-12-31", "2024-12-31"),
        ("0.1", Decimal("0.1")),
        ("1e-7", Decimal("1e-7")),
        ("'010'", "010"),
        ('"true"', "true"),
        (".inf", Decimal("Infinity")),
        ("-.inf", Decimal("-Infinity")),
    ],
)
def test_plain_scalars_are_read_without_guessing(text: str, expected: object) -> None:
    """Only the core schema: no dates, no sexagesimal, no `no` that means false; numbers are exact."""
    value = read(f"a: {text}\n".encode()).data["a"]
    assert expected == value
    assert type(expected) is type(value)


def test_names_are_always_text() -> None:
    """A column may be called no, 1 or null."""
    assert read(b"{no: 1, 1: 2, null: 3, true: 4}").data == {"no": 1, "1": 2, "null": 3, "true": 4}


def test_every_entry_has_its_place() -> None:
    """Lines and columns count from 1; a mapping's entry is placed at its name."""
    document = read(b"a:\n  b: [5, 6]\n  c: x\n")
    assert (document.positions) == {
        ("a",): (1, 1),
        ("a", "b"): (2, 3),
        ("a", "b", 0): (2, 7),
        ("a", "b", 1): (2, 10),
        ("a", "c"): (3, 3),
    }


def test_repeated_names_are_all_found() -> None:
    """Each repetition is a finding at its own place, and the first value counts."""
    document = read(b"a: 1\nb: {c: 1, c: {d: 1, d: 2}}\na: 2\n")
    found = document.findings
    assert [(problem.what, problem.position and problem.position.line) for problem in found] == [
        ('"c" is given twice', 2),
        ('"d" is given twice', 2),
        ('"a" is given twice', 3),
    ]
    assert document.data == {"a": 1, "b": {"c": 1}}


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"", "the dataset file does not describe a dataset"),
        (b"- a\n- b\n", "the dataset file does not describe a dataset"),
        (b"text", "the dataset file does not describe a dataset"),
        (b"a: [1, 2\n", "the dataset file is not valid YAML"),
        (b"a: 1\n\tb: 2\n", "the dataset file is not valid YAML"),
        (b"a: \x01\n", "the dataset file is not valid YAML"),
        (b"\xff\xfe\x00", "the dataset file is not UTF-8 text"),
        (b"PAR1\x15\x04\x15\x80\xfe", "the dataset file is not UTF-8 text"),
        (b"a: 1\n---\nb: 2\n", "the file holds more than one document"),
        (b"a: &x [1]\nb: *x\n", "anchors and aliases (& and *) are not read"),
        (b"a: *x\n", "anchors and aliases (& and *) are not read"),
        (b"a: !!python/object/apply:os.system [ls]\n", "tags (words that begin with !) are not read"),
        (b"!!map {a: 1}\n", "tags (words that begin with !) are not read"),
        (b"? [1, 2]\n: 3\n", "a name is missing before a colon"),
        (b"a: 1e999999999\n", "a number is too long"),
        (b"a: " + b"9" * 5000 + b"\n", "a number is too long"),
    ],
)
def test_hostile_or_wrong_files_give_one_clear_finding(content: bytes, what: str) -> None:
    """Whatever the file is, reading ends with a finding and never with an exception."""
    assert [what] == whats(content)


def test_a_billion_laughs_never_grow() -> None:
    """Aliases are refused before anything is built from them."""
    lines = ["a0: &a0 [x, x]"] + [f"a{index}: &a{index} [*a{index - 1}, *a{index - 1}]" for index in range(1, 40)]
    assert whats("\n".join(lines)) == ["anchors and aliases (& and *) are not read"]


def test_depth_and_size_are_limited_before_the_rest_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Deep nesting is refused where it passes the limit, and a huge file before it is parsed."""
    parse, taken = yaml.parse, [0]

    def counted(*arguments: Any, **options: Any) -> Iterator[yaml.Event]:
        for event in parse(*arguments, **options):
            taken[0] += 1
            yield event

    monkeypatch.setattr(yaml, "parse", counted)
    for text in ("[" * 200_000, "a: " + "{a: " * DEPTH_MAX + "1" + "}" * DEPTH_MAX):
        taken[0] = 0
        assert whats(text) == ["the dataset file is nested too deeply"]
        assert taken[0] <= 2 * DEPTH_MAX + 8
    taken[0] = 0
    assert whats(b"#" * (SIZE_MAX + 1)) == ["the dataset file is too large"]
    assert taken[0] == 0


def test_a_byte_order_mark_is_ignored() -> None:
    """Files saved by some editors begin with one."""
    assert read("\ufeffa: 1\n".encode()).data == {"a": 1}
