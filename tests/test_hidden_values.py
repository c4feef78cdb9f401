"""Values that nobody may read by accident: no dataclass shows a secret, or numbers before their noise, in its repr.

A repr is what an f-string, a log line, an assertion and a debugger show. The walk is over every dataclass of the
program; a field is of this kind by its name or by its type.
"""

from __future__ import annotations

import ast
import re
import traceback
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest

from mechanisms.samplers.threshold import NoisyThreshold
from mechanisms.samplers.undecided import Magnitude
from mechanisms.sparse_vector import SparseRun, SparseVector
from mechanisms.streams.asking import StreamState
from mechanisms.streams.synopsis import Measured, Synopsis
from server.administration.collectors import Report
from server.cli.client import Remote
from server.monitors.sealing import SecretState
from server.webhooks.destinations import read_target
from tests.trees import CHECKOUT, files_of, tree_of

ROOMS = ("accountant", "engines", "mechanisms", "privacy", "server", "sql_rewrite")

_NAMES = re.compile(r"(^|_)(secret|salt|seed|token|password|pepper|plain|draw_key|draw_secret|api_key|url)$")
_KEYS = re.compile(r"^keys?$")
_TYPES = re.compile(
    r"\b(Magnitude|Exact|Perturbed|Gathered|Synopsis|Integers|Whole|memoryview)\b|NDArray\[np\.(int|bool)"
)

SHOWN = {
    "mechanisms.noisy_sums.NoisySums.values": "sums with their noise",
    "mechanisms.subsampling.PoissonSample.secret": "whether a sample is secret",
    "server.streams.streams.Streams._synopses": "a synopsis shows nothing of itself",
    "sql_rewrite.dialects.costs.EngineCosts.salt": "nanoseconds of a salt",
}
"""Fields of such a name or type that may be shown, and why."""


_FIELD = re.compile(r"^    (\w+): (.+)$", re.MULTILINE)


def _of_kind(name: str, type_: str) -> bool:
    return bool(_NAMES.search(name) or _TYPES.search(type_))


def _decorated(node: ast.ClassDef) -> ast.expr | None:
    """The decorator that makes a class a dataclass."""
    for one in node.decorator_list:
        called = one.func if isinstance(one, ast.Call) else one
        if isinstance(called, ast.Name) and called.id == "dataclass":
            return one
    return None


def _without_repr(called: ast.expr | None) -> bool:
    """Whether `repr=False` is given to a decorator, or to `field`."""
    return isinstance(called, ast.Call) and any(
        word.arg == "repr" and isinstance(word.value, ast.Constant) and word.value.value is False
        for word in called.keywords
    )


def shown(name: str, tree: ast.Module) -> Iterator[str]:
    """The fields of dataclasses that their reprs show, and that they should not; and every dataclass, as a line."""
    room = name.removesuffix(".py").replace("/", ".")
    for node in tree.body:
        made = _decorated(node) if isinstance(node, ast.ClassDef) else None
        if made is None or not isinstance(node, ast.ClassDef):
            continue
        own = any(isinstance(part, ast.FunctionDef) and part.name == "__repr__" for part in node.body)
        if own or _without_repr(made):
            continue
        for part in node.body:
            if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name) and not _without_repr(part.value):
                field = part.target.id
                commands = room.startswith("server.cli.") and _KEYS.search(field)
                if commands or _of_kind(field, ast.unparse(part.annotation)):
                    yield f"{room}.{node.name}.{field}"


def test_no_dataclass_shows_secrets_or_numbers_before_their_noise() -> None:
    """Shows that every field of such a name or type is left out of the repr, or is listed with a reason, and that
    nothing is listed that is not there."""
    found: set[str] = set()
    for name in (name for room in ROOMS for name in files_of(room)):
        text = (CHECKOUT / name).read_text(encoding="utf-8")
        # Most files have no field of such a name or type, and need no tree.
        if "@dataclass" in text and ("/cli/" in name or any(_of_kind(*line) for line in _FIELD.findall(text))):
            found |= set(shown(name, tree_of(name)))
    assert found == set(SHOWN)


def test_a_dataclass_that_shows_them_is_caught() -> None:
    """Shows that the walk finds a secret, true scores and the key of a command, and leaves out what is hidden."""
    fields = """
    draw_key: str
    scores: npt.NDArray[np.int64]
    cells: Integers = field(repr=False)
    key: str = option("--key KEY")
    """
    of = {f"@dataclass{options}\nclass A:{fields}" for options in ("", "(frozen=True, slots=True)")}
    for text in of:
        assert list(shown("server/cli/a.py", ast.parse(text))) == [
            f"server.cli.a.A.{name}" for name in ("draw_key", "scores", "key")
        ]
    hidden = (f"@dataclass(repr=False)\nclass A:{fields}", f"@dataclass\nclass A:{fields}def __repr__(self): return ''")
    assert not [field for text in hidden for field in shown("server/cli/a.py", ast.parse(text))]


_MARK = 70_000_000_123
_KEPT = SparseVector.for_epsilon(Fraction(1), sensitivity=Fraction(1), hits=1, one_way=True, interactive=True)
_NOISE = NoisyThreshold(Fraction(1), Magnitude(_MARK, 64))
_SYNOPSIS = Synopsis(str(_MARK), np.array([float(_MARK)]), 1.0, 1.0, updates=(Measured(((0, 1),), (_MARK,)),))


@pytest.mark.parametrize(
    "value",
    [
        _NOISE.noise,
        _NOISE,
        _SYNOPSIS,
        SparseRun(_KEPT, _NOISE, 1),
        StreamState(_NOISE, 1, _SYNOPSIS),
        SecretState("SELECT 1", str(_MARK), _MARK, 64),
        Report(str(_MARK), (1,)),
        Remote(None, str(_MARK), None),
        read_target(f"https://hooks.example.com/{_MARK}"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_kept_for_long_has_no_text(value: object) -> None:
    """Shows by values that repr, str, an f-string and a traceback with the variables of its frames have none of it."""

    def fail(inside: object) -> None:
        raise ValueError(f"{inside}")

    try:
        fail(value)
    except ValueError as error:
        told = "".join(traceback.TracebackException.from_exception(error, capture_locals=True).format())
    assert str(_MARK) not in f"{value!r} {value} {told} {[value]}".replace("_", "")
