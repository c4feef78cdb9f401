"""A link to PostgreSQL that swallows everything: a step fails soon, and the next one works soon after it heals."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import make_url

ROOT = Path(__file__).resolve().parents[2]
OWN_NETWORK = ["unshare", "-n"] if os.getuid() == 0 else ["unshare", "-Urn"]


def without_network() -> bool:
    """Whether this machine lets a process have a network of its own."""
    if shutil.which("unshare") is None:
        return False
    return subprocess.run([*OWN_NETWORK, "true"], capture_output=True).returncode == 0


@pytest.mark.postgresql
@pytest.mark.slow
@pytest.mark.skipif(
    not without_network(), reason="a process may not have a network of its own here; enable: allow user namespaces"
)
def test_a_link_that_swallows_everything(postgresql_url: str) -> None:
    """With two seconds of silence allowed, a step fails within some seconds (it hung for as long as the link was down),
    and works again within as many after the link is there; every charge that was made is in the ledger once.
    """
    assert make_url(postgresql_url).query.get("host"), "the test server listens on a socket in the file system"
    command = [*OWN_NETWORK, sys.executable, "-m", "tests.accountant.lost_link", postgresql_url, "2"]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=200)
    assert ran.returncode == 0, ran.stderr
    took = json.loads(ran.stdout)
    assert took["failed"] is not None
    assert took["failed"] < 20
    assert took["healed"] < 20
    assert took["ok"]
