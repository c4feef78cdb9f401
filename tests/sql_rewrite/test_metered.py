"""Reading a text is bounded: in steps by the meter, and in stack by the number of its words."""

from __future__ import annotations

import ast
import contextlib
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import sqlglot
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.errors import ParseError
from sqlglot.parsers.duckdb import DuckDBParser

from server.jobs import STACK_BYTES
from sql_rewrite import metered
from sql_rewrite.syntax import TOKENS_MAX
from tests.hostile.good import GOOD

_SOURCES = Path(sqlglot.__file__).parent
COUNT = "SELECT COUNT(*) FROM people WHERE age > "
DOUBLING = {
    "types as functions": lambda n: f"{COUNT}{'DATE(' * n}x{')' * n}",
    "brackets and types": lambda n: f"{COUNT}{'(CHAR(' * n}x{'))' * n}",
    "open brackets and types": lambda n: f"{COUNT}{'( CHAR ' * n}",
    "joins without ON": lambda n: f"SELECT COUNT(*) FROM people{' JOIN visits' * n}",
    "left joins without ON": lambda n: f"SELECT COUNT(*) FROM people{' LEFT JOIN visits' * n}",
}
# A prefix, what nests after it, and how many words the latter has: the deepest per word among the pairs of the parser's
# words that were tried, each behind eight beginnings. The worst needs 2 KiB of stack per word.
DEEP = {
    "brackets": (COUNT, "(", 1),
    "bracketed CASE": ("SELECT f(", "( CASE ", 2),
    "CASE words": ("SELECT f(", "CASE ", 1),
    "CASE and IF": ("SELECT f(", "CASE IF ", 2),
    "negations": (COUNT, "NOT ", 1),
    "exclamations and brackets": ("SELECT f(", "! ( ", 2),
    "exclamations and IF": ("SELECT f(", "! IF ", 2),
    "exclamations and ANY": ("SELECT f(", "! ANY ", 2),
    "square brackets": (COUNT, "[", 1),
    "derived tables": ("SELECT * FROM ", "(SELECT * FROM ", 4),
    "scalar subqueries": (COUNT, "(SELECT ", 2),
    "negated comparisons": (COUNT, "a = NOT ", 3),
    "functions": (COUNT, "ABS(", 2),
}


def rules() -> dict[str, ast.AST]:
    """The parser's methods, tables and functions, with those of the dialect in the place of the ones they replace."""
    found: dict[str, ast.AST] = {}
    for path, owner in (("parser.py", "Parser"), ("parsers/duckdb.py", "DuckDBParser")):
        tree = ast.parse((_SOURCES / path).read_text(encoding="utf-8"))
        found |= {f"function {node.name}": node for node in tree.body if isinstance(node, ast.FunctionDef)}
        [body] = [node.body for node in tree.body if isinstance(node, ast.ClassDef) and node.name == owner]
        members: dict[str, ast.AST] = {}
        for node in body:
            if isinstance(node, ast.FunctionDef):
                members[node.name] = node
            elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                members[node.targets[0].id] = node.value
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
                members[node.target.id] = node.value
        replaced = {f"inherited {name}": found[name] for name in found if not name.startswith("function ")}
        found |= replaced | members
    return found


def mentions(node: ast.AST) -> set[str]:
    """Every name that a rule could reach: attributes of anything, and plain names."""
    names: set[str] = set()
    for part in ast.walk(node):
        if isinstance(part, ast.Attribute):
            owner = ast.unparse(part.value)
            if owner in ("super()", "Parser", "parser.Parser"):
                names.add(f"inherited {part.attr}")
            if owner != "super()":
                names.add(part.attr)
        elif isinstance(part, ast.Name):
            names |= {part.id, f"function {part.id}"}
    return names


def cycles(rules: dict[str, ast.AST], tables: tuple[str, ...]) -> set[str]:
    """The parser's methods that can come back to themselves without a look into one of the tables."""
    counting = {"_match_text_seq", "_match_texts"} if "TEXT_MATCH_EXCLUDED_TOKENS" in tables else set()
    calls = {
        name: mentions(node) & set(rules)
        for name, node in rules.items()
        if not (isinstance(node, ast.FunctionDef) and mentions(node) & (set(tables) | counting))
    }
    cyclic = set()
    for name in calls:
        reached: set[str] = set()
        stack = [name]
        while stack:
            for called in calls.get(stack.pop(), ()):
                if called in calls and called not in reached:
                    reached.add(called)
                    stack.append(called)
        if name in reached and name.startswith(("_parse", "parse", "inherited _parse")):
            cyclic.add(name)
    return cyclic


@pytest.mark.slow
def test_every_cycle_of_the_parser_takes_a_step() -> None:
    """Shows that no rule of the parser comes back to itself without a look into a metered table, but for the exempt."""
    found = rules()
    assert len(found) > 700
    assert cycles(found, metered.METERED) == metered.EXEMPT
    assert len(cycles(found, ())) > 200


@pytest.mark.parametrize(
    "left_out", ["UNARY_PARSERS", "PRIMARY_PARSERS", "TEXT_MATCH_EXCLUDED_TOKENS", "RANGE_PARSERS"]
)
@pytest.mark.slow
def test_the_search_for_cycles_sees_a_table_that_is_left_out(left_out: str) -> None:
    """Shows that the test above fails for a meter with a hole."""
    tables = tuple(name for name in metered.METERED if name != left_out)
    assert cycles(rules(), tables) > metered.EXEMPT


def steps(text: str, limit: int = metered.STEPS_MAX) -> int:
    """The steps of a text, also of one that the parser cannot read."""
    meter = metered._Metered(limit)
    with contextlib.suppress(ParseError):
        meter.parser().parse(DuckDB().tokenize(text), text)
    return limit - meter.left


@pytest.mark.parametrize("name", list(DOUBLING))
def test_texts_that_double_the_work_run_out_of_steps(name: str) -> None:
    """Shows that steps grow exponentially with such a text, and that the meter ends the work: not after 2^30 steps."""
    text = DOUBLING[name]
    grown = [steps(text(n)) for n in (4, 6, 8, 10)]
    assert grown[3] / grown[2] > 1.8
    with pytest.raises(metered.TooManySteps):
        steps(text(30))


def test_steps_depend_on_the_text_only() -> None:
    """Shows equal steps in every reading, and that one step less than needed is too few."""
    for text in GOOD:
        needed = steps(text)
        assert needed == steps(text, needed)
        with pytest.raises(metered.TooManySteps):
            steps(text, needed - 1)


def test_metered_tables_are_the_parsers_own() -> None:
    """Shows that every table is metered, and that parsers without a meter find its contents and count nothing."""
    parser = DuckDB().parser()
    assert type(parser) is DuckDBParser
    for name in metered.METERED:
        assert isinstance(DuckDBParser.__dict__[name], property), name
        assert isinstance(getattr(parser, name), dict | set | frozenset | tuple), name
    assert sqlglot.parse_one("SELECT -a::INT", dialect="duckdb").sql("duckdb") == "SELECT -CAST(a AS INT)"


def test_a_text_leaves_nothing_behind_for_the_next() -> None:
    """Shows that a text with half a CONNECT BY does not teach the parser a word for all texts that follow."""
    text = "SELECT a FROM b CONNECT BY PRIOR x = ("
    with pytest.raises(ParseError):
        metered.read(DuckDB().tokenize(text), text)
    assert "PRIOR" not in metered._Metered(1).parser().NO_PAREN_FUNCTION_PARSERS
    with pytest.raises(ParseError):
        sqlglot.parse_one(text, dialect="duckdb")
    left = DuckDB().parser().NO_PAREN_FUNCTION_PARSERS.pop("PRIOR", None)
    assert left is not None  # a parser without a meter keeps it: this is what the meter's own table is for


# Reads deep texts of as many words as are ever given to the parser, without any other guard.
_PROGRAM = """
import sys, threading
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.errors import ParseError
from sql_rewrite import metered
from tests.sql_rewrite.test_metered import DEEP

def work():
    for name in sys.argv[3:]:
        start, piece, words = DEEP[name]
        text = start + piece * (int(sys.argv[2]) // words)
        try:
            metered.read(DuckDB().tokenize(text), text, steps=10**7)
        except ParseError:
            pass
    print("read")

sys.setrecursionlimit(10**8)
threading.stack_size(int(sys.argv[1]))
thread = threading.Thread(target=work)
thread.start()
thread.join()
"""


def read_deep(stack: int, words: int, *names: str) -> subprocess.CompletedProcess[str]:
    """Reads deep texts in a process of its own, in a thread of so much stack."""
    arguments = [sys.executable, "-X", "faulthandler=0", "-c", _PROGRAM, str(stack), str(words), *names]
    return subprocess.run(
        arguments, capture_output=True, text=True, timeout=60, check=False, cwd=Path(__file__).parents[2]
    )


@pytest.mark.slow
def test_no_number_of_words_that_is_read_needs_a_quarter_of_the_stack() -> None:
    """Shows that the deepest texts of the greatest number of words fit a quarter of the stack, without other guards."""
    done = read_deep(STACK_BYTES // 4, TOKENS_MAX, *DEEP)
    assert (done.returncode, done.stdout) == (0, "read\n"), done.stderr


def test_more_words_would_run_over_the_end_of_the_stack() -> None:
    """Shows that the test above can fail: forty times the words end the process."""
    done = read_deep(STACK_BYTES // 4, 40 * TOKENS_MAX, "negations")
    assert (done.returncode, done.stdout) == (-signal.SIGSEGV, "")
