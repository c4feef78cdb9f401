"""The command line: what an owner, an operator and an analyst do without writing a program.

    program   the table of commands, their help (from docs/cli.md), and `main`
    options   options declared once, and groups of them that a command takes as one value
    failure   one clear message for everything that can go wrong; `explaining` makes it of errors and refusals
    output    lines and tables for people; JSON for scripts; commands in messages as people here type them
    client    one connection to a server; `answers` puts into words what it says
    access, asking, care, datasets, doctor, serving, up    the commands

A command talks to the ledger's database itself (key, budget, audit, ...) or to a server over HTTP (query, estimate).
Several processes may have the ledger open; what a running server keeps in memory, the datasets, is changed over HTTP.
Heavy modules are imported inside the commands that need them, so that help and refusals come at once.
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command line (`sys.argv` by default) and returns the exit code. Never shows a traceback."""
    from server.cli.program import run

    return run(arguments)
