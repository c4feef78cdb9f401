"""What an analyst makes of a line of advice: the texts that come of pasting it, or nothing where it is a sentence."""

from __future__ import annotations

import re
from collections.abc import Iterator

from privacy.refusal import Finding

__all__ = ["SENTENCES", "offered", "pasted"]

SENTENCES = re.compile(
    "|".join(
        (
            r"(aggregate|ask|attach|cast|check|choose|clip|compare|compute|count|declare|drop|give|group|join) .*",
            r"(leave|limit|make|name|put|read|remove|say|see|select|send|shorten|spend|start|to|use|wait|where) .*",
            r"write .*",
            r"(tables|columns|aggregate): .*", r"(GET|POST) /v1.*", r'"parameters": .*', r"CAST (it|one side) .*",
            r"(the nearest one is|the request has|the same|a truth value|the extreme value) .*",
            r"(the value beside|a string stands) .*",
            r"(a number|an administrator) .*",
            r"for (a|two) (number|whole number|date|dates|text|condition|value) .*", r"(comments|datasets) are .*",
            r"(it|leave it|make it) is .*", r"age > \$age", r"\(SELECT \.\.\.\)",
        )
    )
)  # fmt: skip
"""Lines that offer no SQL to paste: they say what to do."""

_WHOLE = re.compile(r"(?:^|: )((?:SELECT|WITH|FROM) .*)$")
_JOINED = re.compile(r"[\w.\"]+(?: \w+)? (?:LEFT )?JOIN .* (?:ON|USING) .*")
_CLAUSE = re.compile(r"\b(?:WHERE|GROUP BY|HAVING|QUALIFY|ORDER BY|LIMIT)\b", re.IGNORECASE)
_WORDS = (" is as in DuckDB", " is ", " counts", " for ", " where ", ", where", ": ", " in place of ", ", which")
_ENDS = {"<lowest>": "0", "<highest>": "100"}


def offered(line: str) -> str:
    """What a line offers to paste; empty where it is a sentence."""
    whole = _WHOLE.search(line)
    if whole is not None and "..." not in line and " FROM " in line:
        return whole[1]
    return "" if SENTENCES.fullmatch(line) else line


def pasted(text: str, finding: Finding, line: str) -> Iterator[list[str]]:
    """Of each thing that a line offers the texts of which one must be accepted: it replaces what is marked."""
    qualified = re.fullmatch(r"write it with its table: (.*)", line)
    if qualified:
        for name in qualified[1].split(" or "):
            yield list(_replaced(text, finding, name))
        return
    if line == "write the number without quotes":
        yield [re.sub(r"'(-?[0-9.]+)'", r"\1", text)]
        return
    piece = offered(line)
    if not piece:
        return
    for placeholder, value in _ENDS.items():
        piece = piece.replace(placeholder, value)
    if piece.startswith(("SELECT ", "WITH ")):
        yield [piece]
        return
    within = re.fullmatch(r"(FROM .* GROUP BY .*) groups within each person", piece)
    if within:
        position = finding.position
        end = 0 if position is None else position.column - 1 + len(position.text)
        begun = text.upper().rindex("FROM", 0, end)
        yield [text[:begun] + within[1] + text[end:]]
        return
    if _JOINED.fullmatch(piece):
        yield [f"SELECT COUNT(*) FROM {piece}"]
        return
    beside = re.fullmatch(r"(.*\)) beside it has an interval, and is free", piece)
    if beside:
        yield list(_replaced(text, finding, f"{_marked(finding)}, {beside[1]}"))
        return
    quantile = re.fullmatch(r"(QUANTILE_CONT\(.*\)) is a quantile that many people share", piece)
    if quantile:
        yield list(_replaced(text, finding, quantile[1]))
        return
    if piece.startswith("HAVING "):  # in place of the nested query's own, and of its LIMIT
        position = finding.position
        end = 0 if position is None else position.column - 1 + len(position.text)
        begun = max(text.upper().rfind(word, 0, end) for word in ("HAVING", "GROUP BY", "LIMIT"))
        begun = min(begun, text.upper().rfind("LIMIT", 0, end))
        yield [text[:begun] + piece + text[end:], text[: text.upper().rfind("HAVING", 0, end)] + piece + text[end:]]
        return
    if piece.startswith("GROUP BY "):
        piece = piece.partition(" groups within")[0]
        key, marked = piece.removeprefix("GROUP BY "), _marked(finding)
        everywhere = [re.sub(rf"(?<![\w.]){re.escape(marked)}(?!\w)", lambda _: key, text)] if marked else []
        renamed = _replaced(text, finding, f"{key} AS {marked}")
        yield [*_replaced(text, finding, key), *renamed, *everywhere, *_around(text, "GROUP BY", key)]
        return
    each = re.fullmatch(r"(JOIN \(.*\) each_person ON .*), and write (each_person.value) in its place", piece)
    if each:
        yield list(_joined(text, finding, each[1], each[2]))
        return
    added = re.match(r"add (.*) to (GROUP BY|the select list)", piece)
    if added and added[2] == "GROUP BY":
        yield list(_grouped(text, added[1]))
        return
    if added and not re.search(r"\b(UNION|EXCEPT|INTERSECT)\b", text):  # whose other branches have as many columns
        counted = re.sub(r"\bFROM\b", f", {added[1]} FROM", text, count=1)
        yield [counted, counted.replace("DISTINCT ", "") + " GROUP BY ALL"]
    if added:
        return
    if piece.startswith("a name stands in double quotes"):
        yield [text.replace("`", '"')]
        return
    top = re.fullmatch(r"(LIMIT \d+) at the end of the query", piece)
    if top:
        yield [re.sub(r"TOP \d+ ", "", text, flags=re.IGNORECASE) + f" {top[1]}"]
        return
    if re.fullmatch(r"(\(VALUES .*\)|\w+\(.*\)) AS t\(.*\)", piece):
        yield [f"SELECT * FROM {piece}"]
        return
    named = re.fullmatch(r'did you mean "(.*)"\?', piece)
    if named:
        yield list(_replaced(text, finding, named[1]))
        return
    for word in _WORDS:
        piece = piece.partition(word)[0]
    for part in _apart(piece):
        yield list(_replaced(text, finding, part))


def _joined(text: str, finding: Finding, join: str, value: str) -> Iterator[str]:
    """The text with one more join behind its FROM, and its value in place of the subquery that is marked."""
    assert finding.position is not None
    begun = text.index(f"(SELECT {finding.position.text}")
    end = text.index(")", begun + len("(SELECT ") + len(finding.position.text) - 1)
    rest = _CLAUSE.search(text)
    assert rest is not None
    yield text[: rest.start()] + join + " " + text[rest.start() : begun] + value + text[end + 1 :]


def _grouped(text: str, key: str) -> Iterator[str]:
    """The text with one more key of GROUP BY."""
    begun = re.search(r"\bGROUP BY\b", text, re.IGNORECASE)
    if begun is None:
        rest = re.search(r"\b(?:HAVING|QUALIFY|ORDER BY|LIMIT)\b", text, re.IGNORECASE)
        end = len(text) if rest is None else rest.start()
        yield f"{text[:end]} GROUP BY {key} {text[end:]}"
    else:
        yield f"{text[: begun.end()]} {key}, {text[begun.end() :]}"


def _marked(finding: Finding) -> str:
    return "" if finding.position is None else finding.position.text


def _replaced(text: str, finding: Finding, piece: str) -> Iterator[str]:
    """The text with a piece in the marked place, and with it everywhere where the same is written."""
    position = finding.position
    if position is None or not position.text:
        return
    lines = text.split("\n")
    start = sum(len(line) + 1 for line in lines[: position.line - 1]) + position.column - 1
    yield text[:start] + piece + text[start + len(position.text) :]
    yield text.replace(position.text, piece)


def _around(text: str, clause: str, piece: str) -> Iterator[str]:
    """The text with another FROM or GROUP BY."""
    begun = re.search(rf"\b{clause}\b", text, re.IGNORECASE)
    if begun is None:
        yield f"{text} {clause} {piece}"
        return
    rest = _CLAUSE.search(text, begun.end())
    end = len(text) if rest is None else rest.start()
    yield f"{text[: begun.end()]} {piece} {text[end:]}"


def _apart(line: str) -> list[str]:
    """The pieces of a line between commas and "or" that stand in no bracket."""
    pieces, depth, begun = [], 0, 0
    for place, sign in enumerate(line):
        depth += (sign in "([") - (sign in ")]")
        parting = next((word for word in (", or ", ", ", " or ") if depth == 0 and line.startswith(word, place)), None)
        if parting is not None and place >= begun:
            pieces.append(line[begun:place])
            begun = place + len(parting)
    return [piece for piece in (*pieces, line[begun:]) if piece]
