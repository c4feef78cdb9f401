"""Shared vectors of the local encoders: `python -m tests.clients.make_vectors` writes them anew.

The bytes of a vector are SHA-256 of its seed and a counter: a stand-in for random bytes, so that two programs in two
languages can be compared. Reports are those of clients/local_encoder.py, whose law is audited exactly.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
from fractions import Fraction
from pathlib import Path

from mechanisms.local.encodings import ENCODINGS

__all__ = ["PATH", "stream"]

PATH = Path(__file__).parents[1] / "vectors" / "local_encoders.json"


def stream(seed: str) -> bytes:
    """Sixteen KiB that follow from the seed."""
    return b"".join(hashlib.sha256(f"{seed} {block}".encode()).digest() for block in range(512))


def main() -> None:
    """Writes the file."""
    spec = importlib.util.spec_from_file_location("client", Path(__file__).parents[2] / "clients" / "local_encoder.py")
    assert spec is not None
    assert spec.loader is not None
    client = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(client)
    vectors = []
    for kind in ENCODINGS:
        for size in (2, 3, 7, 64, 300):
            for epsilon in (Fraction(1, 2), Fraction(2), Fraction(5)):
                law = kind(size=size, epsilon=epsilon).law()
                for value in (0, size // 2, size - 1):
                    seed = f"{kind.name} {size} {epsilon} {value}"
                    data = iter(stream(seed))
                    draws = client.Draws(lambda count, data=data: bytes(next(data) for _ in range(count)))
                    vectors.append(
                        {"seed": seed, "law": law, "value": value, "report": client.encode(law, value, draws)}
                    )
    lines = ",\n".join(json.dumps(one) for one in vectors)
    PATH.write_text(f'{{"note": "made by python -m tests.clients.make_vectors", "vectors": [\n{lines}\n]}}\n', "utf-8")


if __name__ == "__main__":
    main()
