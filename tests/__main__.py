"""`./noisegate test`, `lint` and `dev`: what runs in the development environment.

    test [ARGUMENTS OF PYTEST]                every test that this machine can run, three at once unless told otherwise;
                                              says which were skipped, why, and how to enable them
    lint [format] [lint] [types] [imports] [words]
                                              the static checks, all of them or the named ones; reports every failure
    dev TOOL [ARGUMENTS]                      a tool of the environment, where you stand
    dev trace SQL                             one query on its way to its price, step by step: plan, bounds, statement,
                                              noise
    dev check [ARGUMENTS OF PYTEST]           the static checks beside the tests: what `make check` and .ci/run do

examples
    ./noisegate test tests/privacy -q
    ./noisegate test -k ledger -n 0
    ./noisegate test --nightly                only the tests that measure time, on a machine that does nothing else
    ./noisegate dev ruff check .
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.memory import folder_in_memory

__all__ = ["main", "pytest_arguments", "tool_command"]

ROOT = Path(__file__).resolve().parents[1]

LINT = {
    "format": ["ruff", "format", "--check", ".", "noisegate"],
    "lint": ["ruff", "check", ".", "noisegate"],
    "types": ["mypy"],
    "imports": ["lint-imports", "--no-cache", "--no-logo"],
    "words": ["python", "-m", "tests.words"],
}


WORKERS = ["-n", "3", "--dist", "worksteal"]
"""Three parts of the list, so that most modules are set up in one process only; whoever ends first takes more.

One more than the processors of a small machine: a fifth of the time of two went to waiting for visible moments and for
workers that start."""


def main(command: str, arguments: list[str]) -> int:
    """Runs one of the three commands and returns its exit code."""
    if arguments[:1] in (["-h"], ["--help"]):
        print(__doc__, flush=True)
        return 0
    # Tests start Python several hundred times, and each start would compile the project anew.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    # Where pytest makes its folders; it removes those of tests that pass (pyproject.toml).
    if command in ("test", "dev") and (folder := folder_in_memory()) is not None:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", folder)
    if command == "test":
        os.chdir(ROOT)
        _replace(["pytest", *pytest_arguments(arguments)])
    if command == "lint":
        return _lint(arguments)
    if not arguments:
        return _usage("dev needs the name of a tool, for instance: ./noisegate dev ruff check .")
    if arguments[0] == "trace":
        arguments = ["python", "-m", "server.cli.trace", *arguments[1:]]
    if arguments[0] == "check":
        return _check(arguments[1:])
    _replace(arguments)
    return 0


def pytest_arguments(given: list[str]) -> list[str]:
    """Arguments for pytest. Nightly tests measure time, so they run one after the other, without the rest."""
    if "--nightly" in given:
        return ["-n", "0", *([] if "-m" in given else ["-m", "nightly"]), *given]
    chosen = any(
        argument.startswith(("-n", "--numprocesses", "--pdb", "--trace")) or argument in ("no:xdist", "-pno:xdist")
        for argument in given
    )
    return [*([] if chosen else WORKERS), *given]


def tool_command(tool: str) -> list[str]:
    """The command of a tool: its script in the environment, or the module of that name."""
    if tool == "python":
        return [sys.executable]
    script = shutil.which(tool, path=os.path.dirname(sys.executable))
    if script is None:
        return [sys.executable, "-m", tool]
    # Scripts carry the interpreter of the moment they were written; running them by name of the interpreter
    # keeps them working when the checkout was moved.
    with open(script, "rb") as stream:
        return [sys.executable, script] if stream.read(2) == b"#!" else [script]


def _replace(arguments: list[str]) -> None:
    command = tool_command(arguments[0]) + arguments[1:]
    os.execv(command[0], command)


def _lint(arguments: list[str]) -> int:
    unknown = [argument for argument in arguments if argument not in LINT]
    if unknown:
        return _usage(f'lint does not know "{unknown[0]}"; it has {", ".join(LINT)}')
    return _reported(_started(arguments or list(LINT)))


def _check(arguments: list[str]) -> int:
    """The static checks beside the tests: the types are read by one process, which would leave the others idle."""
    running = _started(list(LINT))
    tested = subprocess.run([*tool_command("pytest"), *pytest_arguments(arguments)], cwd=ROOT).returncode
    return _reported(running) or tested


def _started(names: list[str]) -> dict[str, subprocess.Popen[bytes]]:
    """The named checks, all at once: the types take as long as the others together."""
    running = {}
    variables = {**os.environ, **({"FORCE_COLOR": "1", "MYPY_FORCE_COLOR": "1"} if sys.stdout.isatty() else {})}
    for name in names:
        tool, *rest = LINT[name]
        command = [*tool_command(tool), *rest]
        running[name] = subprocess.Popen(
            command, cwd=ROOT, env=variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
    return running


def _reported(running: dict[str, subprocess.Popen[bytes]]) -> int:
    """Shows what the checks say, in the order of their names, and returns 1 when one of them failed."""
    failed = []
    for name, process in running.items():
        print(f"== {name}: {' '.join(LINT[name])}", file=sys.stderr, flush=True)
        said, _ = process.communicate()
        sys.stdout.buffer.write(said)
        sys.stdout.flush()
        if process.returncode != 0:
            failed.append(name)
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def _usage(message: str) -> int:
    print(f"noisegate: {message}\n  ./noisegate --help lists the commands.", file=sys.stderr)
    return 2


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1], sys.argv[2:]))
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # whoever read our output has gone
        sys.exit(1)
