"""The documentation page lets people try operations: it asks before it spends."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
OPENAPI = ROOT / "docs" / "openapi.json"


def test_only_the_operation_that_spends_is_marked() -> None:
    """Programs that read the description know where to ask first."""
    document = json.loads(OPENAPI.read_text("utf-8"))
    marked = [
        (method, path)
        for path, item in document["paths"].items()
        for method, operation in item.items()
        if operation.get("x-spends")
    ]
    assert marked == [("post", "/v1/queries")]


def test_the_page_does_not_spend_with_one_click() -> None:
    """The first click shows the price of exactly this body; only the second one spends, once, and not after an edit."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("no JavaScript engine was found; enable: install node")
    done = subprocess.run(
        [node, str(HERE / "docs_page.js"), str(ROOT / "server" / "static" / "docs.js"), str(OPENAPI)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    steps: dict[str, dict[str, Any]] = {step["name"]: step for step in json.loads(done.stdout)}
    sent = {name: [call["address"] for call in step["sent"]] for name, step in steps.items()}
    assert sent == {
        "first": ["/v1/estimates"],
        "second": ["/v1/queries"],
        "third": ["/v1/estimates"],
        "edited": ["/v1/estimates"],
        "edited in silence": ["/v1/estimates"],
        "twice at once": ["/v1/queries"],
        "refused": ["/v1/estimates"],
        "refused again": ["/v1/estimates"],
        "estimate": ["/v1/estimates"],
    }
    assert steps["first"]["button"] == "Spend epsilon 0.25 and send"
    assert "Nothing is spent yet" in steps["first"]["answer"]
    assert steps["second"]["button"] == "Show the price"
    assert steps["refused"]["answer"].startswith("No price, so nothing was spent.")
    assert steps["refused"]["button"] == "Show the price"
    assert steps["estimate"]["button"] == "Send"
    first, second = steps["first"]["sent"][0], steps["second"]["sent"][0]
    assert first["body"] == second["body"]
    assert first["headers"]["Authorization"] == second["headers"]["Authorization"] == "Bearer ngk_a_b"
    keys = [steps[name]["sent"][0]["headers"]["Idempotency-Key"] for name in ("second", "twice at once")]
    assert all(len(key) == 32 for key in keys)
    assert keys[0] != keys[1]
