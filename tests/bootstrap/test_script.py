"""The root script: what it says, what it makes, and that it does so once."""

from __future__ import annotations

import ast
import importlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import NoReturn

import pytest

from tests.bootstrap.script import CHECKOUT, PYTHON, SCRIPT, load_script, make_checkout, run_script
from tests.work import counting_calls

# Empty locks make an environment in a moment and without a network: everything but the download is real.


@pytest.fixture
def script() -> ModuleType:
    return load_script()


@pytest.fixture(scope="module")
def ready(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout whose environment was made by a first start."""
    folder = make_checkout(tmp_path_factory.mktemp("ready"))
    done = run_script(folder, "doctor")
    assert done.returncode == 0, done.stderr
    return folder


def test_it_needs_only_the_standard_library() -> None:
    """It runs before anything is installed, so it imports nothing of ours and nothing of others."""
    names = set()
    for node in ast.walk(ast.parse(SCRIPT.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add((node.module or "").split(".")[0])
    assert names <= set(sys.stdlib_module_names)


def test_an_old_python_can_read_it() -> None:
    """An interpreter that is too old must reach the message that says so, so the syntax is that of Python 3.6."""
    tree = ast.parse(SCRIPT.read_text(), feature_version=(3, 6))
    first = [type(node).__name__ for node in tree.body[:4]]
    assert first == ["Expr", "Import", "Assign", "If"]  # the check comes before any annotation


def test_an_old_python_is_told_what_to_do() -> None:
    """The message names the version that is needed and how to get it; the exit code is that of a failed set-up."""
    source = SCRIPT.read_text().replace("OLDEST = (3, 11)", "OLDEST = (99, 0)")
    done = subprocess.run(
        [sys.executable, "-c", source], env={"PATH": "/nonexistent"}, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 3
    assert "needs Python 3.11 or newer" in done.stderr
    assert "apt install" in done.stderr


def test_help_teaches_without_installing(tmp_path: Path) -> None:
    """--help shows every command and examples on standard output, and makes nothing."""
    folder = make_checkout(tmp_path / "c")
    before = sorted(os.listdir(folder))
    for arguments in (["--help"], ["-h"], ["help"]):
        done = run_script(folder, *arguments)
        assert (done.returncode, done.stderr) == (0, "")
        assert "./noisegate up --data people.csv --unit person_id" in done.stdout
    assert sorted(os.listdir(folder)) == before
    assert run_script(folder).returncode == 2
    assert run_script(folder, "--version").stdout == "noisegate 9.9.9\n"


def test_every_command_is_in_the_help(script: ModuleType) -> None:
    """The list of commands and the text for people do not drift apart."""
    text = script.help_text()
    for command in (*script.FORWARDED, *script.OWN):
        assert command == "help" or f"  {command}" in text or f", {command}" in text, command


def test_the_forwarded_commands_are_those_of_the_server(script: ModuleType) -> None:
    """A command that server.cli offers can be started, and none is promised that it lacks."""
    application = importlib.import_module("server.cli.program").application
    offered = set(importlib.import_module("typer.main").get_command(application).commands)
    assert offered == set(script.FORWARDED)


def test_a_misspelt_command_installs_nothing(tmp_path: Path) -> None:
    """The nearest command is suggested at once."""
    folder = make_checkout(tmp_path / "c")
    done = run_script(folder, "bugdet", "show")
    assert done.returncode == 2
    assert 'unknown command "bugdet"; did you mean "budget"?' in done.stderr
    assert not (folder / ".venv").exists()


def test_the_first_start_says_what_it_makes(tmp_path: Path) -> None:
    """Standard output belongs to the command; what is made is said before, on standard error."""
    folder = make_checkout(tmp_path / "c")
    done = run_script(folder, "up", "--json", "--port", "0", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["arguments"] == ["up", "--json", "--port", "0"]
    assert answer["folder"] == str(tmp_path)  # relative paths mean what the user meant
    assert answer["python"] == str(folder / ".venv" / "bin" / "python")
    assert done.stderr.index(f"creates {folder}/.venv") < done.stderr.index("The environment is ready.")
    assert {"docs", "noisegate", "pyproject.toml", "requirements.lock", "requirements-dev.lock", "server"} | {
        ".venv",
        ".venv.lock",
    } == set(os.listdir(folder))


@pytest.mark.slow
def test_the_second_start_is_quick_and_silent(ready: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is made again, and no process is asked: a few files are looked at."""
    done = run_script(ready, "doctor")
    assert (done.returncode, done.stderr) == (0, "")
    script = load_script()
    script.ROOT = str(ready)
    os.environ.pop("NOISEGATE_VENV", None)
    monkeypatch.setattr(subprocess, "Popen", _never)
    before = _written(ready)
    found, calls = counting_calls(lambda: script.ready_environment("runtime"))
    assert found is not None
    assert _written(ready) == before
    # Not the thousands of files of the environment.
    assert calls < 1_000


def _never(*_: object, **__: object) -> NoReturn:
    raise AssertionError("a process is started")


def _written(folder: Path) -> dict[Path, int]:
    """When each file was written."""
    return {path: path.lstat().st_mtime_ns for path in folder.rglob("*")}


@pytest.mark.slow
def test_a_changed_lock_is_noticed(tmp_path: Path) -> None:
    """After an update of the checkout the environment is brought up to date, and --no-install says so instead."""
    folder = make_checkout(tmp_path / "c")
    assert run_script(folder, "setup").returncode == 0
    (folder / "requirements.lock").write_text("# changed\n")
    refused = run_script(folder, "--no-install", "doctor")
    assert refused.returncode == 3
    assert "the Python environment is not ready" in refused.stderr
    done = run_script(folder, "doctor")
    assert done.returncode == 0
    assert "brings up to date" in done.stderr


@pytest.mark.slow
def test_an_interrupted_set_up_is_made_again(tmp_path: Path) -> None:
    """The state of the environment survives kill -9; the next start throws the half-made environment away."""
    folder = make_checkout(tmp_path / "c")
    assert run_script(folder, "setup").returncode == 0
    (folder / ".venv" / "noisegate-environment.json").write_text(
        '{"format": 1, "state": "installing", "created": true}'
    )
    (folder / ".venv" / "half-made").write_text("")
    done = run_script(folder, "doctor")
    assert done.returncode == 0, done.stderr
    assert "An earlier set-up was interrupted" in done.stderr
    assert not (folder / ".venv" / "half-made").exists()
    assert json.loads((folder / ".venv" / "noisegate-environment.json").read_text())["state"] == "ready"


@pytest.mark.slow
def test_two_first_starts_at_once(tmp_path: Path) -> None:
    """One makes the environment, the other waits and uses it."""
    folder = make_checkout(tmp_path / "c")
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(folder)}
    both = [
        subprocess.Popen(
            [PYTHON, str(folder / "noisegate"), "doctor"],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    answers = [process.communicate(timeout=120) for process in both]
    assert [process.returncode for process in both] == [0, 0], answers
    assert sum("Setting up" in stderr for _, stderr in answers) == 1


@pytest.mark.slow
def test_an_environment_of_somebody_else_is_kept(tmp_path: Path) -> None:
    """A .venv that was made by hand is completed, never removed."""
    folder = make_checkout(tmp_path / "c")
    subprocess.run([PYTHON, "-m", "venv", "--without-pip", str(folder / ".venv")], check=True, timeout=120)
    (folder / ".venv" / "mine").write_text("kept")
    done = run_script(folder, "doctor")
    assert done.returncode == 0, done.stderr
    assert (folder / ".venv" / "mine").read_text() == "kept"
    assert json.loads((folder / ".venv" / "noisegate-environment.json").read_text())["created"] is False


def test_other_files_in_the_way_are_not_removed(tmp_path: Path) -> None:
    """A folder that is no environment is refused with what to do."""
    folder = make_checkout(tmp_path / "c")
    (folder / ".venv").mkdir()
    (folder / ".venv" / "thesis.txt").write_text("kept")
    done = run_script(folder, "doctor")
    assert done.returncode == 3
    assert "does not remove what it has not made" in done.stderr
    assert (folder / ".venv" / "thesis.txt").read_text() == "kept"


@pytest.mark.slow
def test_without_venv_an_environment_is_made(tmp_path: Path) -> None:
    """Where Python has no venv (some systems cut it out), the environment is made all the same."""
    folder = make_checkout(tmp_path / "c")
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    digest = make_wheel(wheels)
    (folder / "requirements.lock").write_text(f"probe==1.0 --hash=sha256:{digest}\n")
    (folder / "server" / "cli" / "__main__.py").write_text("import probe; print(probe.__file__)")
    blocked = tmp_path / "blocked"
    blocked.mkdir()
    (blocked / "sitecustomize.py").write_text(
        "import importlib.util as util\n"
        "find = util.find_spec\n"
        "util.find_spec = lambda name, package=None: None if name in ('venv', 'ensurepip') else find(name, package)\n"
    )
    if not has_pip():
        pytest.skip("this Python has no pip; enable: run the tests with a Python that has pip")
    variables = {"PYTHONPATH": str(blocked), "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheels)}
    script = [PYTHON, str(folder / "noisegate"), "doctor"]
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(folder), **variables}
    done = subprocess.run(script, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"{folder}/.venv/lib/python")
    again = subprocess.run(script, env=environment, capture_output=True, text=True, timeout=120)
    assert (again.returncode, again.stderr) == (0, "")


@pytest.mark.slow
def test_an_extra_is_not_left_to_the_user(tmp_path: Path) -> None:
    """`setup --extra arrow`, which answers in other formats advise, adds the locked package; other names are told."""
    if not has_pip():
        pytest.skip("this Python has no pip; enable: run the tests with a Python that has pip")
    folder = make_checkout(tmp_path / "c")
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    digest = make_wheel(wheels, name="pyarrow")
    (folder / "requirements-arrow.lock").write_text(f"pyarrow==1.0 --hash=sha256:{digest}\n")
    command = [PYTHON, str(folder / "noisegate"), "setup", "--extra"]
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheels)}
    done = subprocess.run([*command, "arrow"], env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    found = subprocess.run(
        [folder / ".venv" / "bin" / "python", "-c", "import pyarrow; print(pyarrow.__file__)"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert found.stdout.startswith(str(folder / ".venv")), found.stderr
    wrong = subprocess.run([*command, "arow"], env=environment, capture_output=True, text=True, timeout=120)
    assert wrong.returncode == 2
    assert "arrow" in wrong.stderr


@pytest.mark.slow
def test_a_wrong_hash_is_refused(tmp_path: Path) -> None:
    """A package that is not the locked one is not installed, and the message does not advise to go on."""
    if not has_pip():
        pytest.skip("this Python has no pip; enable: run the tests with a Python that has pip")
    folder = make_checkout(tmp_path / "c")
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    make_wheel(wheels)
    (folder / "requirements.lock").write_text(f"probe==1.0 --hash=sha256:{'0' * 64}\n")
    environment = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(folder),
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(wheels),
    }
    done = subprocess.run(
        [PYTHON, str(folder / "noisegate"), "doctor"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 3
    assert "not the one that was locked" in done.stderr
    assert "Do not go on by hand" in done.stderr


def make_wheel(folder: Path, *, name: str = "probe") -> str:
    """Writes a wheel of one module by hand and returns its hash."""
    import hashlib
    import zipfile

    path = folder / f"{name}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{name}.py", "")
        metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n"
        archive.writestr(f"{name}-1.0.dist-info/METADATA", metadata)
        archive.writestr(
            f"{name}-1.0.dist-info/WHEEL",
            "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        )
        archive.writestr(f"{name}-1.0.dist-info/RECORD", "")
    return hashlib.sha256(path.read_bytes()).hexdigest()


def has_pip() -> bool:
    return subprocess.run([PYTHON, "-m", "pip", "--version"], capture_output=True, timeout=60).returncode == 0


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere; enable: run the tests as an ordinary user")
def test_a_read_only_folder_is_one_clear_message(tmp_path: Path) -> None:
    """Nothing is half made, and the message says where else the environment can go."""
    folder = make_checkout(tmp_path / "c")
    folder.chmod(0o500)
    try:
        done = run_script(folder, "doctor")
    finally:
        folder.chmod(0o700)
    assert done.returncode == 3
    assert "could not write" in done.stderr
    assert "NOISEGATE_VENV" in done.stderr


def test_a_place_that_refuses_files_is_one_clear_message(tmp_path: Path) -> None:
    """The same for root: a file stands where a folder is needed."""
    folder = make_checkout(tmp_path / "c")
    (tmp_path / "file").write_text("")
    done = run_script(folder, "doctor", NOISEGATE_VENV=str(tmp_path / "file" / "venv"))
    assert done.returncode == 3
    assert "could not write" in done.stderr
    assert "What to do: Set NOISEGATE_VENV" in done.stderr


def test_too_little_space_is_said_before_any_work(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message has the numbers."""
    import shutil

    monkeypatch.setattr(shutil, "disk_usage", lambda path: type("Usage", (), {"free": 10 * 2**20})())
    with pytest.raises(script.SetupError) as refused:
        script.check_place(str(tmp_path / ".venv"), "runtime")
    assert "there is not enough free disk space" in str(refused.value)
    assert "has 10 MB left" in str(refused.value)


@pytest.mark.parametrize(
    ("output", "why"),
    [
        ("OSError: [Errno 28] No space left on device", "The disk is full"),
        ("ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE", "not the one that was locked"),
        (
            "NewConnectionError: Failed to establish a new connection: [Errno -3] Temporary failure",
            "could not be reached",
        ),
        ("error: Failed to fetch: `index`\n  Caused by: dns error: failed to lookup address", "could not be reached"),
        ("ERROR: No matching distribution found for duckdb==2.0.0", "no ready-made file"),
        ("PermissionError: [Errno 13] Permission denied: 'x'", "refuses new files"),
    ],
)
def test_the_installers_words_become_advice(script: ModuleType, output: str, why: str) -> None:
    """What pip and uv print is turned into why and what to do."""
    assert why in script.explain(output)
    assert why not in script.explain("something else went wrong")


@pytest.mark.slow
def test_no_network_is_one_clear_message(tmp_path: Path) -> None:
    """A package index that cannot be reached ends the set-up with advice and exit code 3, quickly."""
    folder = make_checkout(tmp_path / "c")
    (folder / "requirements.lock").write_text(f"duckdb==2.0.0 --hash=sha256:{'0' * 64}\n")
    index = "http://127.0.0.1:9/simple"
    done = run_script(
        folder,
        "doctor",
        PIP_INDEX_URL=index,
        PIP_EXTRA_INDEX_URL=index,
        PIP_FIND_LINKS=str(tmp_path),
        PIP_RETRIES="0",
        PIP_CONFIG_FILE="/dev/null",
        UV_INDEX_URL=index,
    )
    assert done.returncode == 3
    assert "could not install the packages" in done.stderr
    assert "The package index" in done.stderr


@pytest.mark.slow
def test_the_real_command_takes_over_the_process(ready: Path) -> None:
    """The pid of the script is the pid of the server, so SIGTERM reaches it directly."""
    (ready / "server" / "cli" / "__main__.py").write_text(
        "import os, signal, sys, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))\n"
        "print(os.getpid(), flush=True)\n"
        "time.sleep(60)\n"
    )
    process = subprocess.Popen(
        [PYTHON, str(ready / "noisegate"), "serve"],
        env={"PATH": "/usr/bin:/bin", "HOME": str(ready)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert int(process.stdout.readline()) == process.pid
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=60) == 7
    process.stdout.close()


def test_code_of_the_callers_folder_is_not_imported(ready: Path, tmp_path: Path) -> None:
    """A folder named "server" where the user stands, or PYTHONPATH, does not replace ours."""
    for place in (tmp_path, tmp_path / "path"):
        (place / "server" / "cli").mkdir(parents=True)
        for name in ("__init__.py", "cli/__init__.py", "cli/__main__.py"):
            (place / "server" / name).write_text("print('not ours')")
    (ready / "server" / "cli" / "__main__.py").write_text("print('ours')")
    done = run_script(ready, "doctor", cwd=tmp_path, PYTHONPATH=str(tmp_path / "path"))
    assert done.stdout == "ours\n"


def test_an_extra_is_locked_as_in_development() -> None:
    """What users add with --extra is what the tests run with: the same version, the same hashes."""
    development = (CHECKOUT / "requirements-dev.lock").read_text()
    for _, name in load_script().EXTRAS.values():
        text = (CHECKOUT / name).read_text()
        assert "--hash=sha256:" in text
        assert text in development


@pytest.mark.slow
def test_from_a_clean_copy_to_a_passing_test(tmp_path: Path) -> None:
    """The tracked files alone, with python3 and pip: the environment from the locks, then tests, then a tool."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        timeout=60,
    )
    if listed.returncode != 0:
        pytest.skip("this is not a git checkout; enable: run the tests in a clone")
    copy = tmp_path / "copy"
    for name in filter(None, listed.stdout.split("\0")):
        source, target = CHECKOUT / name, copy / name
        if source.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(source.read_bytes())
            target.chmod(source.stat().st_mode)
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("NOISEGATE_", "PYTEST_"))}
    environment.pop("PYTHONPATH", None)
    environment["PIP_COMPILE"] = "0"  # what the test does not import need not be compiled
    done = subprocess.run(
        [str(copy / "noisegate"), "test", "-n0", "-q", "-p", "no:cacheprovider", "tests/datasets/test_reading.py"],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=280,
    )
    if "The package index could not be reached" in done.stderr:
        pytest.skip("the package index could not be reached; enable: run with a network connection")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "passed" in done.stdout
    assert "Nothing was skipped." in done.stdout
    again = subprocess.run(
        [str(copy / "noisegate"), "dev", "ruff", "--version"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (again.returncode, again.stderr) == (0, "")
