"""The root script as a module, and a small checkout in which it can run without a network."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType

__all__ = ["CHECKOUT", "PYTHON", "SCRIPT", "load_script", "make_checkout", "run_script"]

CHECKOUT = Path(__file__).resolve().parents[2]
SCRIPT = CHECKOUT / "noisegate"

PYTHON = os.path.realpath(sys.executable)
"""The interpreter from which the tests' environment was made: a user's python3."""

CLI = """
import json, os, sys
print(json.dumps({"arguments": sys.argv[1:], "folder": os.getcwd(), "pid": os.getpid(), "python": sys.executable}))
"""


def load_script() -> ModuleType:
    """A fresh module made of the script, without writing byte code beside it."""
    loader = SourceFileLoader("noisegate_script", str(SCRIPT))
    spec = importlib.util.spec_from_loader(loader.name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        loader.exec_module(module)
    finally:
        sys.dont_write_bytecode = before
    return module


def make_checkout(folder: Path, *, cli: str = CLI) -> Path:
    """A folder with the script, its page, empty locks and a stand-in for server.cli."""
    (folder / "server" / "cli").mkdir(parents=True)
    (folder / "docs").mkdir()
    shutil.copy(CHECKOUT / "docs" / "cli.md", folder / "docs" / "cli.md")
    shutil.copy(SCRIPT, folder / "noisegate")
    for name in ("requirements.lock", "requirements-dev.lock"):
        (folder / name).write_text("")
    (folder / "pyproject.toml").write_text('[project]\nname = "noisegate"\nversion = "9.9.9"\n')
    (folder / "server" / "__init__.py").write_text("")
    (folder / "server" / "cli" / "__init__.py").write_text("")
    (folder / "server" / "cli" / "__main__.py").write_text(cli)
    return folder


def run_script(
    folder: Path, *arguments: str, cwd: Path | None = None, timeout: float = 120, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Runs the script of a checkout with a small, known environment."""
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "LANG": "C.UTF-8", **variables}
    return subprocess.run(
        [PYTHON, str(folder / "noisegate"), *arguments],
        cwd=cwd or folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=timeout,
    )
