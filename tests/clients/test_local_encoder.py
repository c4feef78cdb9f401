"""The clients of local collectors: the law of the server's encoders, and the same draws in Python and JavaScript."""

from __future__ import annotations

import importlib.util
import json
import math
import shutil
import subprocess
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from types import ModuleType

import pytest

from mechanisms.local.encoder import Report
from mechanisms.local.encodings import ENCODINGS
from tests.clients.make_vectors import PATH, stream
from tests.mechanisms.local_laws import Paths, greatest_ratio, stated_law

ROOT = Path(__file__).resolve().parents[2]
VECTORS = json.loads(PATH.read_text("utf-8"))


def client() -> ModuleType:
    """The Python client, loaded as a file that somebody copied."""
    spec = importlib.util.spec_from_file_location("local_encoder", ROOT / "clients" / "local_encoder.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


CLIENT = client()


class _AllPaths:
    """Draws that follow every path."""

    def __init__(self, paths: Paths) -> None:
        self.below = paths.below
        self._paths = paths

    def happens(self, weight: int, against: int) -> bool:
        return self._paths.happens(Fraction(weight, weight + against))


def law_of_client(law: dict[str, object], value: int) -> dict[Report, Fraction]:
    """The exact law of the client's reports."""
    paths, found = Paths(), dict[Report, Fraction]()

    def run() -> Report:
        report = CLIENT.encode(law, value, _AllPaths(paths))
        return report[0] if law["encoding"] in ("randomised_response", "hadamard") else tuple(report)

    for report, probability in paths.each(run):
        found[report] = found.get(report, Fraction(0)) + probability
    return found


@pytest.mark.parametrize("kind", ENCODINGS, ids=lambda one: one.name)
def test_the_client_has_exactly_the_law_of_the_server(kind: type) -> None:
    """Every input of small domains, every report: what the server decodes is what clients draw."""
    for size in (2, 3, 5):
        for epsilon in (Fraction(1, 2), Fraction(3, 2), Fraction(4)):
            encoder = kind(size=size, epsilon=epsilon)
            laws = [law_of_client(encoder.law(), value) for value in range(size)]
            for value, law in enumerate(laws):
                assert law == stated_law(encoder, value)
            assert greatest_ratio(laws) == encoder.worst_ratio
            assert CLIENT.epsilon_of(encoder.law()) == pytest.approx(float(epsilon), abs=1e-8)
            assert CLIENT.epsilon_of(encoder.law()) <= float(epsilon) + 1e-12


def feed(data: bytes) -> Callable[[int], bytes]:
    """A source that returns the bytes in order and complains when they end."""
    left = iter(data)

    def taken(count: int) -> bytes:
        return bytes(next(left) for _ in range(count))

    return taken


def test_python_draws_the_shared_vectors() -> None:
    """Byte for byte."""
    assert len(VECTORS["vectors"]) > 100
    for one in VECTORS["vectors"]:
        draws = CLIENT.Draws(feed(stream(one["seed"])))
        assert CLIENT.encode(one["law"], one["value"], draws) == one["report"]


def test_javascript_draws_the_shared_vectors() -> None:
    """The file a browser loads, run by Node: the same reports from the same bytes, and refusals of the same input."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("no JavaScript engine was found; enable: install node")
    cases = [{**one, "bytes": stream(one["seed"]).hex()} for one in VECTORS["vectors"]]
    ran = subprocess.run(
        [node, str(Path(__file__).with_name("run_encoder.js")), str(ROOT / "clients" / "local_encoder.js")],
        input=json.dumps({"cases": cases, "refused": list(refused())}),
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    found = json.loads(ran.stdout)
    assert found["reports"] == [one["report"] for one in VECTORS["vectors"]]
    assert found["refused"] == [True] * len(list(refused()))
    assert found["epsilons"] == pytest.approx([CLIENT.epsilon_of(one["law"]) for one in VECTORS["vectors"]])
    # The report is kept: the same again, whatever is answered later; another question has its own (equal: 2^-50).
    assert found["once"][0] == found["once"][1] == found["once"][2] != found["other"]
    # Without a source of its own, it takes the browser's.
    assert all(0 <= number < 8 for number in found["system"])


def refused() -> Iterator[dict[str, object]]:
    """Laws and values that no client encodes."""
    law: dict[str, object] = {"encoding": "hadamard", "size": 8, "ratio": str(2**33)}
    for value in (-1, 8, 1.5, "1", None):
        yield {"law": law, "value": value}
    for change in (
        {"encoding": "other"},
        {"encoding": "constructor"},
        {"size": 1},
        {"size": 2**20 + 1},
        {"ratio": str(2**32)},
        {"ratio": str(2**56)},
        {"ratio": "-8589934592"},
        {"ratio": 2**33},
    ):
        yield {"law": {**law, **change}, "value": 0}


def test_python_refuses_what_it_does_not_understand() -> None:
    """Values outside the domain, unknown encodings, ratios of no noise or no privacy."""
    for one in refused():
        with pytest.raises(ValueError, match=r"the (value|law)"):
            CLIENT.encode(one["law"], one["value"])


def test_the_clients_take_random_bytes_of_the_system() -> None:
    """No seed, no other generator."""
    javascript = (ROOT / "clients" / "local_encoder.js").read_text("utf-8")
    assert "crypto.getRandomValues" in javascript
    assert "Math.random" not in javascript
    assert CLIENT.Draws()._bytes.__module__ == "secrets"
    report = CLIENT.encode({"encoding": "rappor", "size": 64, "ratio": str(round(math.exp(0.5) * 2**32))}, 3)
    assert set(report) <= set(range(64))
