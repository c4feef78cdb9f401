"""The house words: the list of CONTRIBUTING.md is what the lint checks."""

from __future__ import annotations

import pytest

from tests import words
from tests.words import ROOT, breaches, main, never

FORBIDDEN = never((ROOT / "CONTRIBUTING.md").read_text("utf-8"))


@pytest.mark.slow
def test_no_file_says_what_is_never_written(capsys: pytest.CaptureFixture[str]) -> None:
    """Every tracked page and module keeps to the list."""
    assert main() == 0, capsys.readouterr().out


@pytest.mark.parametrize("said", FORBIDDEN)
def test_each_expression_is_found(said: str) -> None:
    """In any case, over the end of a line, and within a comment; not as a part of other words."""
    plain = said.replace("...", "number")
    first, _, others = plain.partition(" ")
    for text in (plain, plain.upper(), f"x\n{first}\n# {others}" if others else plain):
        assert [breach.instead for breach in breaches(text, FORBIDDEN)] == [FORBIDDEN[said]]
    assert not list(breaches(f"x{plain}", {said: FORBIDDEN[said]}))


def test_the_line_is_named() -> None:
    """A breach says where it is."""
    (breach,) = breaches("a\nb\n  it stays for\n  ever\n", {"for ever": "forever"})
    assert (breach.line, breach.found) == (3, "for ever")


def test_a_page_without_the_list_is_refused() -> None:
    """Without its list the check could not fail."""
    with pytest.raises(ValueError, match="no table"):
        words.never("# Working on Noisegate\n")
