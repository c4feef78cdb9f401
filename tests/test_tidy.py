"""The few rules of style that matter for privacy, as tests. Each rule is also shown to catch a breach of it."""

from __future__ import annotations

import ast
import io
import os
import re
import subprocess
import sys
import tokenize
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from tests.trees import CHECKOUT, files_of, sources, tree_of, walked

PRIVACY_ROOMS = ("privacy", "mechanisms", "accountant", "sql_rewrite", "engines")
ROOMS = (*PRIVACY_ROOMS, "server", "migrations")
Finding = tuple[int, str]


def tracked() -> list[Path]:
    """Files of the repository: what git knows or would add."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        timeout=60,
    )
    if listed.returncode == 0:
        names = [name for name in listed.stdout.split("\0") if name]
        return sorted({CHECKOUT / name for name in names if (CHECKOUT / name).is_file()})
    skipped = {".git", ".venv", ".noisegate", "__pycache__", "secrets", "data"}
    found = []
    for folder, folders, names in os.walk(CHECKOUT):
        folders[:] = [name for name in folders if name not in skipped and not name.endswith("_cache")]
        found += [Path(folder) / name for name in names]
    return sorted(found)


def report(rule: Callable[[str, ast.Module], Iterator[Finding]], *rooms: str) -> list[str]:
    """All breaches of a rule, as text."""
    return [f"{name}:{line}: {what}" for name, tree in sources(*rooms) for line, what in rule(name, tree)]


# --- Broad exception handlers ---------------------------------------------------------------------------------------

BROAD = {"Exception", "BaseException"}


def _caught(handler: ast.ExceptHandler) -> set[str]:
    if handler.type is None:
        return {"BaseException"}
    parts = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return {part.attr if isinstance(part, ast.Attribute) else getattr(part, "id", "") for part in parts}


def broad_handlers(name: str, tree: ast.Module) -> Iterator[Finding]:
    """Handlers of every exception that do not end in raising: an error swallowed here may be a wrong answer."""
    for node in walked(tree):
        if isinstance(node, ast.ExceptHandler) and _caught(node) & BROAD:
            last = node.body[-1]
            raises = isinstance(last, ast.Raise)
            # Ending the process is stronger than raising.
            exits = (
                isinstance(last, ast.Expr) and isinstance(last.value, ast.Call) and _called(last.value) == "os._exit"
            )
            if not raises and not exits:
                yield node.lineno, f"catches {', '.join(sorted(_caught(node) & BROAD))} and goes on"


def _called(call: ast.Call) -> str:
    parts: list[str] = []
    here: ast.expr = call.func
    while isinstance(here, ast.Attribute):
        parts.append(here.attr)
        here = here.value
    if isinstance(here, ast.Name):
        parts.append(here.id)
    return ".".join(reversed(parts))


# Each of these is a boundary that turns any failure into one constant outcome: how many handlers, and why.
BROAD_ALLOWED = {
    "accountant/writer.py": (
        2,
        "a writer works for several callers: a fault is handed to those who wait, and raised there",
    ),
    "engines/worker.py": (1, "the worker's outermost loop: every failure becomes one opaque word"),
    "server/catalogue.py": (1, "stored datasets are read one by one: a broken one is an entry, and logged as an error"),
    "server/journey/running.py": (
        1,
        "after the start of the engine there is one outcome, raised as ExecutionFailed below",
    ),
    "server/administration/profiles.py": (
        1,
        "after the start of the engine there is one outcome, raised as ProfileFailed below",
    ),
    "server/monitors/monitors.py": (
        1,
        "an evaluation whose outcome cannot be stored is ended, and raised as ExecutionFailed",
    ),
    "server/resources/resources.py": (
        2,
        "after the start of the engine there is one outcome, of every resource, raised as ExecutionFailed below",
    ),
    "server/statistics/asking.py": (
        2,
        "after the start of the engine there is one outcome, raised as ExecutionFailed below; one that cannot be "
        "stored is ended in the ledger, and raised so",
    ),
    "server/streams/streams.py": (
        2,
        "after the start of the engine there is one outcome, raised as ExecutionFailed below; an opening that fails "
        "after its charge is ended in the ledger, and raised again",
    ),
    "server/batches/batches.py": (1, "a charge whose batch cannot be stored is given back, and raised again"),
    "server/app.py": (1, "the edge of the process: one constant body"),
    "server/jobs.py": (1, "a thread that works for others: whatever the work raises is raised to whom it belongs"),
    "server/routes/operations.py": (1, "readiness: a check that fails in any way is not ready"),
    "server/cli/program.py": (1, "the edge of the command line: a message instead of a traceback, exit code 1"),
    "server/watching.py": (1, "the thread that notices new datasets goes on: a busy database is no reason to end"),
    "server/rounds.py": (1, "a thread that serves all: what one look or task raises is logged, and the next one comes"),
    "server/webhooks/delivering.py": (1, "whatever a receiver brings about is an attempt that failed, and is logged"),
    "server/cli/doctor.py": (1, "a check of the installation that fails in any way is a finding of the report"),
    "server/cli/up.py": (
        1,
        "the end of the thread that shows the first answer: a message, and the server goes on",
    ),
}


def test_nothing_swallows_every_exception() -> None:
    """`except Exception` goes on nowhere but at the listed boundaries, and not more often there than listed."""
    counts: dict[str, int] = {}
    for line in report(broad_handlers, *ROOMS):
        name = line.split(":")[0]
        counts[name] = counts.get(name, 0) + 1
    assert {name: count for name, count in counts.items() if count > BROAD_ALLOWED.get(name, (0, ""))[0]} == {}


def test_statistics_and_noise_never_swallow() -> None:
    """From the vocabulary to the noise there is no such boundary at all."""
    assert report(broad_handlers, "privacy", "mechanisms", "sql_rewrite") == []


# --- True values ----------------------------------------------------------------------------------------------------


def reveals(name: str, tree: ast.Module) -> Iterator[Finding]:
    """Calls or mentions of `.reveal`, which opens true values."""
    for node in walked(tree):
        if isinstance(node, ast.Attribute) and node.attr == "reveal":
            yield node.lineno, "opens true values"
        if isinstance(node, ast.Constant) and node.value == "reveal":
            yield node.lineno, "names the method that opens true values"


def test_true_values_are_opened_in_mechanisms_only() -> None:
    """`Exact.reveal` is called in mechanisms and nowhere else, not even by a name in a string."""
    outside = [room for room in ROOMS if room != "mechanisms"]
    assert report(reveals, *outside) == []
    assert report(reveals, "mechanisms") != []


# --- Randomness -----------------------------------------------------------------------------------------------------

RANDOM_MODULES = {"random", "numpy.random", "secrets"}
RANDOM_CALLS = {"os.urandom", "os.getrandom", "uuid.uuid1", "uuid.uuid4", "random.SystemRandom"}
RANDOM_ALLOWED = {
    "engines/private.py": {"secrets"},  # the name of a lease, which its worker compares and nobody else sees
    "mechanisms/randomness.py": RANDOM_CALLS | RANDOM_MODULES,
    "engines/handlers/private.py": {"secrets"},  # where hash tables put groups; nothing of an answer depends on it
    "server/datasets/invented.py": {"random"},  # rows of nobody with a fixed seed; never noise
    "server/demo.py": {"numpy.random"},  # synthetic data with a fixed seed; never noise
}
IDENTIFIERS_ALLOWED = ("server/", "accountant/", "migrations/")  # `secrets` and uuid4 for keys and identifiers of rows


def _names_of_numpy(tree: ast.Module) -> set[str]:
    return {
        alias.asname or alias.name
        for node in walked(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
        if alias.name == "numpy"
    }


def randomness(name: str, tree: ast.Module) -> Iterator[Finding]:
    """Sources of randomness outside the files that may use them."""
    numpy_names = _names_of_numpy(tree)
    for node in walked(tree):
        used: set[str] = set()
        if isinstance(node, ast.Import):
            used = {alias.name for alias in node.names} & RANDOM_MODULES
        elif isinstance(node, ast.ImportFrom) and node.module:
            used = {node.module} & RANDOM_MODULES
            used |= {f"{node.module}.{alias.name}" for alias in node.names} & (RANDOM_MODULES | RANDOM_CALLS)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if node.value.id in numpy_names and node.attr == "random":
                used = {"numpy.random"}
            else:
                used = {f"{node.value.id}.{node.attr}"} & RANDOM_CALLS
        for source in sorted(used - RANDOM_ALLOWED.get(name, set())):
            if source in ("secrets", "uuid.uuid4") and name.startswith(IDENTIFIERS_ALLOWED):
                continue
            yield node.lineno, f"uses {source}"


def test_random_bits_come_from_one_place() -> None:
    """Noise uses mechanisms/randomness.py; `random` and numpy's generators are for the synthetic demo data only."""
    assert report(randomness, *ROOMS) == []


# --- Kinds ----------------------------------------------------------------------------------------------------------


def open_matches(name: str, tree: ast.Module) -> Iterator[Finding]:
    """Matches on members of an enum or on classes that do not end in `case _:` with `assert_never` or an error.

    A kind that is added later would fall through, or get the numbers of another kind; so mypy has to find the match.
    """
    for node in walked(tree):
        if not isinstance(node, ast.Match):
            continue
        patterns = [pattern for case in node.cases for pattern in ast.walk(case.pattern)]
        if not any(
            isinstance(pattern, ast.MatchClass)
            or (isinstance(pattern, ast.MatchValue) and isinstance(pattern.value, ast.Attribute))
            for pattern in patterns
        ):
            continue
        last = node.cases[-1]
        final = last.body[0]
        closed = isinstance(last.pattern, ast.MatchAs) and last.pattern.pattern is None and last.guard is None
        ends = isinstance(final, ast.Raise) or (
            isinstance(final, ast.Expr)
            and isinstance(final.value, ast.Call)
            and _called(final.value).split(".")[-1] == "assert_never"
        )
        if not (closed and ends):
            yield node.lineno, "tells kinds apart with a default, or without an end"


def powers_told_apart(name: str, tree: ast.Module) -> Iterator[Finding]:
    """`x if power is NormPower.L1 else y`: a further power would get the value of another one."""
    for node in walked(tree):
        if isinstance(node, ast.IfExp) and any(map(_asks_for_a_power, ast.walk(node.test))):
            yield node.lineno, "takes one power of a norm for all others: NormPower.choose names each"


def _asks_for_a_power(node: ast.AST) -> bool:
    if not isinstance(node, ast.Compare) or not isinstance(node.ops[0], ast.Is | ast.IsNot):
        return False
    side = node.comparators[0]
    return isinstance(side, ast.Attribute) and isinstance(side.value, ast.Name) and side.value.id == "NormPower"


def test_no_power_of_a_norm_stands_for_the_others() -> None:
    """What depends on the power of a norm names all of them."""
    assert report(powers_told_apart, *ROOMS) == []


def test_no_match_on_kinds_ends_in_a_default() -> None:
    """Every match on kinds names all of them and ends in assert_never."""
    assert report(open_matches, *ROOMS) == []


# --- Imports, prints, docstrings ------------------------------------------------------------------------------------


def relative_imports(name: str, tree: ast.Module) -> Iterator[Finding]:
    """`from . import x`."""
    for node in walked(tree):
        if isinstance(node, ast.ImportFrom) and node.level:
            yield node.lineno, "relative import"


def prints(name: str, tree: ast.Module) -> Iterator[Finding]:
    """Calls of print outside the command line."""
    if name.startswith("server/cli"):
        return
    for node in walked(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("print", "breakpoint"):
            yield node.lineno, f"calls {node.func.id}"


def missing_docstrings(name: str, tree: ast.Module) -> Iterator[Finding]:
    """Public modules, classes, functions and methods without a docstring. Private and nested ones need none."""
    if ast.get_docstring(tree) is None and tree.body:
        yield 1, "module without a docstring"

    def visit(nodes: list[ast.stmt], owner: str) -> Iterator[Finding]:
        for node in nodes:
            if not isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) or node.name.startswith("_"):
                continue
            if ast.get_docstring(node) is None and not _overload(node):
                yield node.lineno, f"{owner}{node.name} without a docstring"
            if isinstance(node, ast.ClassDef):
                yield from visit(node.body, f"{owner}{node.name}.")

    yield from visit(tree.body, "")


def _overload(node: ast.AST) -> bool:
    names = [getattr(item, "id", getattr(item, "attr", "")) for item in getattr(node, "decorator_list", [])]
    return bool({"overload", "override", "setter"} & set(names))


def test_imports_are_absolute() -> None:
    """A module is named the same everywhere."""
    assert report(relative_imports, *ROOMS) == []


def test_nothing_prints() -> None:
    """Logs go through the logger, which drops values; only the command line talks to a terminal."""
    assert report(prints, *ROOMS) == []


def test_everything_public_is_documented() -> None:
    """In the rooms that carry the privacy argument every public name says what it is."""
    assert report(missing_docstrings, *PRIVACY_ROOMS) == []


def test_every_package_has_a_readme() -> None:
    """Each room says its question, its types, its calls in order and what it must never do."""
    packages = [path.parent for path in sorted(CHECKOUT.glob("*/__init__.py")) if path.parent.name in ROOMS]
    assert len(packages) == len(ROOMS)
    assert [path.name for path in packages if not (path / "README.md").is_file()] == []


# --- Administration ---------------------------------------------------------------------------------------------------

ACTS = {
    "ledger": {"create_account", "change_limit"},
    "registry": {
        "create_principal",
        "change_principal",
        "create_key",
        "revoke_key",
        "register_dataset",
        "remove_dataset",
        "claim_reply",
    },
    "registrar": {"register", "register_file", "attach_path", "remove"},
    "catalogue": {"register", "register_file", "attach_path", "remove"},
}


def acts(name: str, tree: ast.Module) -> Iterator[Finding]:
    """Administrative acts past `server.administration`, in what translates for people and programs."""
    if not name.startswith(("server/cli/", "server/routes/")):
        return
    for node in walked(tree):
        if isinstance(node, ast.Attribute):
            owner = getattr(node.value, "attr", getattr(node.value, "id", "")).removeprefix("_")
            if node.attr in ACTS.get(owner, set()):
                yield node.lineno, f"uses {owner}.{node.attr}"


def test_administrators_act_in_one_place() -> None:
    """Routes and commands translate; what they ask for is checked and carried out by server.administration."""
    assert report(acts, "server") == []


# --- Text of the repository -----------------------------------------------------------------------------------------

# The patterns are put together from pieces, so that this file does not hold what it looks for.
MACHINE_PATHS = re.compile(
    "|".join(
        (
            r"(?<![\w.~-])/(?:root|Users)/" + r"\w",
            r"(?<![\w.~-])/home/" + r"(?!user\b)\w",
            r"(?<![\w.-])/tmp/" + r"\w",
            r"(?<![\w.-])/work/" + r"\w",
            r"(?<![\w.-])/mnt/" + r"\w",
            r"[A-Z]:\\" + r"Users\\",
        )
    )
)
REGISTRY_HOSTS = re.compile(
    "|".join(
        (
            r"files\.python" + r"hosted\.org",
            r"(?<![\w/.])pypi\." + r"org/simple",
            r"(?:https?|file):/" + r"/[^\s'\"]*/(?:pypi|simple)(?:/|\b)",
            r"--(?:extra-)?index" + r"-url[ =]\S",
        )
    )
)
ELSEWHERE = re.compile(r"\b[Ll](?:ESSONS|esson)s?" + r" \d")
"""Numbers of a list that is not in the repository: whoever reads them cannot look them up."""

PIECES = "/ro|ot/ /Us|ers/ /ho|me/ /tm|p/ /wo|rk/ /mn|t/ Us|ers\\ ess|on ESS|ON host|ed py|pi sim|ple index|-url"
PIECES_FOUND = PIECES.replace("|", "").split()
"""Whatever the patterns find has one of these in it: most files have none."""

BINARY = {".png", ".ico", ".woff", ".woff2", ".gz", ".parquet", ".duckdb"}
REGISTRY_ALLOWED = {"tests/bootstrap/test_script.py"}  # an index that refuses, on the loopback address


def text_findings(name: str, text: str) -> Iterator[Finding]:
    """Traces of the machine on which the text was written, and of lists that its writer had."""
    if not any(piece in text for piece in PIECES_FOUND):
        return
    for number, line in enumerate(text.splitlines(), 1):
        if MACHINE_PATHS.search(line):
            yield number, "a path of some machine"
        if REGISTRY_HOSTS.search(line) and name not in REGISTRY_ALLOWED:
            yield number, "the address of a package registry"
        if ELSEWHERE.search(line):
            yield number, "a number of a list that is kept elsewhere"


def test_no_trace_of_a_machine() -> None:
    """No tracked text names a folder of somebody's machine or a package registry: it would be wrong elsewhere."""
    found = []
    for path in tracked():
        name = path.relative_to(CHECKOUT).as_posix()
        if path.suffix in BINARY or name.startswith("server/static/"):
            continue
        text = path.read_text(encoding="utf-8")
        found += [f"{name}:{line}: {what}" for line, what in text_findings(name, text)]
    assert found == []


def test_text_files_are_clean() -> None:
    """UTF-8, Unix line ends, a final newline, no tabs in Python, no conflict markers."""
    found = []
    for path in tracked():
        name = path.relative_to(CHECKOUT).as_posix()
        if path.suffix in BINARY or name.startswith(("server/static/", "tests/vectors/")):
            continue
        content = path.read_bytes()
        if b"\r" in content:
            found.append(f"{name}: carriage returns")
        if content and not content.endswith(b"\n"):
            found.append(f"{name}: no final newline")
        if re.search(rb"^(<{7}|>{7}) ", content, re.MULTILINE):
            found.append(f"{name}: a conflict marker")
        if path.suffix == ".py" and b"\t" in content:
            found.append(f"{name}: tabs")
        if len(content) > 2 * 2**20:
            found.append(f"{name}: larger than 2 MB")
    assert found == []


def test_unfinished_work_has_an_issue() -> None:
    """A comment that promises work names its issue."""
    word = re.compile(r"\b(TO" + r"DO|FIX" + r"ME|XX" + r"X)\b(?!.*#\d)")
    found = []
    for name in (name for room in (*ROOMS, "tests", "benchmarks") for name in files_of(room)):
        text = (CHECKOUT / name).read_text(encoding="utf-8")
        if word.search(text) is None:
            continue
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT and word.search(token.string):
                found.append(f"{name}:{token.start[0]}")
    assert found == []


@pytest.mark.slow
def test_the_rooms_know_only_whom_they_may() -> None:
    """The import contracts in pyproject.toml are kept."""
    command = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    done = subprocess.run(
        [sys.executable, "-c", command, "--no-cache", "--no-logo"],
        cwd=CHECKOUT,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 broken" in done.stdout


# --- The rules catch what they are for --------------------------------------------------------------------------------

BREACHES = [
    (broad_handlers, "try:\n    x()\nexcept Exception:\n    pass\n"),
    (broad_handlers, "try:\n    x()\nexcept:\n    log()\n"),
    (broad_handlers, "try:\n    x()\nexcept (ValueError, BaseException) as error:\n    answer = None\n"),
    (reveals, "exact.reveal()\n"),
    (reveals, "getattr(exact, 'reveal')()\n"),
    (randomness, "import random\n"),
    (randomness, "import numpy as n\nn.random.laplace()\n"),
    (randomness, "from numpy import random\n"),
    (randomness, "from numpy.random import default_rng\n"),
    (randomness, "import os\nos.urandom(8)\n"),
    (randomness, "from os import urandom\n"),
    (randomness, "import secrets\n"),
    (open_matches, "match kind:\n    case Kind.A:\n        f()\n"),
    (open_matches, "match kind:\n    case Kind.A:\n        f()\n    case _:\n        g()\n"),
    (open_matches, "match kind:\n    case Kind.A:\n        f()\n    case Kind.B if x:\n        assert_never(kind)\n"),
    (powers_told_apart, "copies = 2 if power is NormPower.L1 else 1\n"),
    (open_matches, "match kind:\n    case A():\n        f()\n    case other:\n        g(other)\n"),
    (relative_imports, "from . import x\n"),
    (prints, "print(1)\n"),
    (missing_docstrings, '"""M."""\ndef public():\n    pass\n'),
    (missing_docstrings, '"""M."""\nclass C:\n    """C."""\n    def public(self):\n        pass\n'),
]


@pytest.mark.parametrize(
    "code",
    ["registry.create_key('ana')\n", "services.ledger.change_limit(x)\n", "attach = services.registrar.attach_path\n"],
)
def test_an_act_past_the_administration_is_caught(code: str) -> None:
    """In routes and commands; the administration itself may."""
    assert list(acts("server/cli/planted.py", ast.parse(code))) != []
    assert list(acts("server/administration/planted.py", ast.parse(code))) == []


@pytest.mark.parametrize(("rule", "code"), BREACHES)
def test_each_rule_catches_its_breach(rule: Callable[[str, ast.Module], Iterator[Finding]], code: str) -> None:
    """A rule that finds nothing anywhere would pass forever."""
    assert list(rule("mechanisms/planted.py", ast.parse(code))) != []


@pytest.mark.parametrize(
    ("rule", "code"),
    [
        (broad_handlers, "try:\n    x()\nexcept Exception:\n    close()\n    raise ExecutionFailed() from None\n"),
        (broad_handlers, "try:\n    x()\nexcept ValueError:\n    pass\n"),
        (missing_docstrings, '"""M."""\ndef _private():\n    pass\n'),
        (randomness, "from mechanisms.randomness import BitSource\n"),
        (open_matches, "match kind:\n    case Kind.A:\n        f()\n    case _:\n        assert_never(kind)\n"),
        (open_matches, "match text:\n    case 'a':\n        f()\n"),
    ],
)
def test_no_rule_forbids_what_is_right(rule: Callable[[str, ast.Module], Iterator[Finding]], code: str) -> None:
    """What the style page recommends passes."""
    assert list(rule("mechanisms/planted.py", ast.parse(code))) == []


@pytest.mark.parametrize(
    "text",
    [
        "see /" + "root/x",
        "open('/" + "home/alice/x')",
        "cache in /" + "tmp/abc",
        "C:" + "\\Users\\x",
        "https:/" + "/host/pypi/simple",
        "--index" + "-url https://x",
        "before the charge (LESS" + "ONS 4)",
        "Less" + "on 18: the exact chance",
    ],
)
def test_traces_are_recognised(text: str) -> None:
    """Each kind of trace is found in a line of text."""
    assert list(text_findings("x.md", text)) != []
    assert list(text_findings("x.md", "GET /v1/queries, mkdir data, ~/.cache, /data/people.yaml, /run/secrets/x")) == []


# --- Circles --------------------------------------------------------------------------------------------------------


def circles(imports: Mapping[str, frozenset[str]]) -> list[tuple[str, ...]]:
    """Groups of modules each of which imports the others, directly or through others."""
    reached = {name: frozenset(_reached(name, imports)) for name in imports}
    around = {name: sorted(other for other in reached[name] if name in reached[other]) for name in imports}
    return sorted({tuple(group) for group in around.values() if group})


def _reached(name: str, imports: Mapping[str, frozenset[str]]) -> set[str]:
    seen: set[str] = set()
    stack = [name]
    while stack:
        for other in imports[stack.pop()] - seen:
            seen.add(other)
            stack.append(other)
    return seen


def imports_of_rooms() -> dict[str, frozenset[str]]:
    """Every module of the rooms with the modules of the rooms that it imports, wherever the import stands."""
    paths = {_module(Path(file)): file for room in ROOMS for file in files_of(room)}
    found = {}
    for name, path in paths.items():
        names: set[str] = set()
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.ImportFrom) and node.module:
                whole = {f"{node.module}.{alias.name}" for alias in node.names}
                names |= (whole & paths.keys()) or ({node.module} & paths.keys())
            elif isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names} & paths.keys()
        found[name] = frozenset(names - {name})
    return found


def _module(path: Path) -> str:
    return ".".join(path.with_suffix("").parts).removesuffix(".__init__")


def test_no_modules_import_each_other_in_a_circle() -> None:
    """A circle is two files with one purpose, or one purpose in two files."""
    assert circles({"a": frozenset({"b"}), "b": frozenset({"c"}), "c": frozenset({"b"})}) == [("b", "c")]
    assert circles(imports_of_rooms()) == []
