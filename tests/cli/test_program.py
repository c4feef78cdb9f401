"""The edge of the process: help, usage, versions, failures that nobody foresaw, and the page about commands."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer

from accountant.account import FilterKind
from mechanisms.families import NoiseFamily
from privacy.refusal import Finding
from server.cli import answers, output
from server.cli.failure import CommandFailed
from server.cli.program import application
from server.roles import Role
from tests.cli.support import ROOT, cli, environment, misused


def commands() -> list[tuple[str, ...]]:
    found = [(item.name or "",) for item in application.registered_commands]
    for group in application.registered_groups:
        assert isinstance(group.typer_instance, typer.Typer)
        assert isinstance(group.typer_instance.info.name, str)
        found += [
            (group.typer_instance.info.name, item.name or "") for item in group.typer_instance.registered_commands
        ]
    return found


def test_words_of_options_are_those_of_the_server() -> None:
    """Options take every role and every filter that the server knows, by the values that it stores."""
    found = {option: known for _, option, known in words()}
    assert found["--role"] == [role.value for role in Role]
    assert set(found["--filter"]) == {kind.value for kind in FilterKind}


@pytest.mark.sparse(4)
@pytest.mark.parametrize("command", commands(), ids=" ".join)
def test_help_teaches_with_examples(command: tuple[str, ...]) -> None:
    """Every command has a help text with at least one example of itself, and a chapter in docs/cli.md."""
    ran = cli(*command, "--help")
    assert ran.code == 0
    assert "examples" in ran.out
    assert f"noisegate {' '.join(command)}" in ran.out.split("examples")[1]
    assert f"`{' '.join(command)}`" in (ROOT / "docs" / "cli.md").read_text("utf-8")


def test_every_option_is_in_the_page() -> None:
    """Every option of every command has its word in docs/cli.md, and an argument stands in one pair of brackets."""
    page = (ROOT / "docs" / "cli.md").read_text("utf-8")
    for command in commands():
        usage, *lines = cli(*command, "--help").out.splitlines()
        assert "[[" not in usage
        for line in lines:
            words = line.split()
            if words and words[0].startswith("-") and words[0] != "-h,":
                option = next(word for word in words if word.startswith("--"))
                assert f"`{option.rstrip(',')}" in page, (command, option)


def test_without_a_command() -> None:
    """The list of commands, as wrong usage."""
    ran = cli()
    assert ran.code == 2
    assert "Commands:" in ran.out + ran.err


def test_near_commands_and_options_are_suggested() -> None:
    """A misspelt command or option names the near one."""
    misused(cli("quary"), "query")
    misused(cli("key", "creat"), "create")
    misused(cli("audit", "--jsn"), "--json")


def words() -> list[tuple[tuple[str, ...], str, list[str]]]:
    """Every option and argument that takes one of a few words: its command, what comes before the word, the words."""
    found = []
    for path in commands():
        command: Any = typer.main.get_command(application)
        for name in path:
            command = command.commands[name]
        for parameter in command.params:
            choices = parameter.type_descriptor.choices
            if choices:
                option = next((name for name in parameter.opts if name.startswith("--")), "")
                found.append((path, option, [str(getattr(choice, "value", choice)) for choice in choices]))
    return found


def test_a_misspelt_word_is_not_answered_in_the_words_of_a_library() -> None:
    """`--noise gausian` said "Value error, ..."; now the words there are, and the one that was meant."""
    misused(cli("query", "SELECT 1", "--noise", "gausian"), "'--noise'", "Did you mean 'gaussian'?")
    # The families of noise are read when one is named, so its option does not hold them.
    found = [*words(), (("query",), "--noise", ["auto", *(family.value for family in NoiseFamily)])]
    assert {option for _, option, _ in found} >= {"--noise", "--reuse", "--format", "--filter", "--role", ""}
    for path, option, known in found:
        for typed, near in ((known[0] + "x", f"Did you mean '{known[0]}'?"), ("zebra\x1b[2J", "is not one of")):
            needed = ("--dataset", "d", "--epsilon", "1") if path == ("budget", "set") else ()
            name = ("name",) if path == ("key", "create") else ()
            ran = cli(*path, *name, *needed, *((option, typed) if option else (typed,)))
            misused(ran, near, *known)
            assert "Value error" not in ran.err
            assert "\x1b" not in ran.err


def test_version() -> None:
    """The version, and nothing else."""
    ran = cli("--version")
    assert ran.code == 0
    assert ran.out.startswith("noisegate 0.")


def test_unforeseen_failures_are_one_message(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No traceback and no text of the error, which may hold values; the place in our files is told."""

    def explode(*_: object, **__: object) -> None:
        raise RuntimeError("private value 42")

    monkeypatch.setattr("server.home.Home.create", explode)
    ran = cli("migrate", "--home", str(tmp_path / "home"))
    assert ran.code == 1
    assert "nobody foresaw (RuntimeError)" in ran.err
    assert "server/cli/care.py" in ran.err
    assert "private value" not in ran.err


def test_help_comes_at_once() -> None:
    """The help does not load the engines, the ledger or the web framework."""
    program = (
        "import sys\nfrom server.cli import main\nmain(['up', '--help'])\n"
        "heavy = {'sqlalchemy', 'fastapi', 'numpy', 'duckdb', 'sqlglot', 'httpx', 'alembic', 'uvicorn'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment(), timeout=60, check=True
    )
    assert ran.stdout.splitlines()[-1] == "[]"


@pytest.mark.slow
def test_module_runs(tmp_path: Path) -> None:
    """`python -m server.cli` passes on the exit code, and standard output is free of messages of failure."""
    ran = subprocess.run(
        [sys.executable, "-m", "server.cli", "key", "list", "--home", str(tmp_path / "none")],
        capture_output=True,
        text=True,
        env=environment(),
        timeout=60,
    )
    assert (ran.returncode, ran.stdout) == (1, "")
    assert "there is no ledger" in ran.stderr


# Words


def test_message_of_a_failure() -> None:
    """What, why and every line of advice, in this order."""
    failure = CommandFailed(Finding("command_failed", "could not", "Because\nof two.", ("do this", "or that")))
    assert str(failure).splitlines() == [
        "noisegate: could not",
        "  Why: Because",
        "    of two.",
        "  What to do: do this",
        "              or that",
    ]
    written = """could not
        Because of one.
        do this

        or that"""
    assert CommandFailed(written).finding == Finding(
        "command_failed", "could not", "Because of one.", ("do this", "or that")
    )


@pytest.mark.parametrize(
    ("value", "low", "high", "expected"),
    [
        (5357, 5351, 5363, "5,357 ± 6"),
        (12, 0, 40, "12 [0, 40]"),
        (-5, -16, 6, "-5 ± 11"),
        (38.9123, 38.87, 38.95, "38.912 ± 0.042"),
        (1234567.891, 1230000.0, 1239135.782, "1,234,568 ± 4,568"),
        (0.5, None, None, "0.5000"),
        (7, None, None, "7"),
        (None, None, None, "NULL"),
        (True, None, None, "true"),
        ("a\nb", None, None, "a\N{REPLACEMENT CHARACTER}b"),
        (3.0, 3.0, 3.0, "3.00 [3.00, 3.00]"),
    ],
)
def test_cells(value: object, low: float | None, high: float | None, expected: str) -> None:
    """Two digits of the error, thousands apart, both ends where the interval is not even, no control characters."""
    assert answers._cell(value, low, high) == expected


@pytest.mark.parametrize(
    ("value", "low", "high", "expected"), [(1, 1.0, 1.0, "1 [1, 1]"), (1, 1.0, 2.0, "1 [1, 2]"), (3, 2.0, 4.0, "3 ± 1")]
)
def test_a_rank_has_the_ends_of_its_interval(value: int, low: float, high: float, expected: str) -> None:
    """A computed integer is shown with both ends where ± would say too much, or that it is exact."""
    assert answers._cell(value, low, high, derived=True) == expected


def test_a_number_that_is_a_key_is_a_name() -> None:
    """The year 2024 as a group is not written as 2,024."""
    assert answers._cell(2024, None, None, key=True) == "2024"


def test_bounds_that_leave_rows_out_are_said() -> None:
    """± is the noise alone: where rows of one unit are left out, the answer says so once, and only there."""
    assert answers._bound_lines({"provenance": {"cut": []}}) == []
    cut = "A unit counts with at most 40 rows (rows_per_unit): where units have more, counts and sums are too low."
    lines = answers._bound_lines({"provenance": {"cut": [cut, cut]}})
    assert lines[0] == cut
    assert len(lines) == 2
    assert "±" in lines[1]


def test_commands_in_messages_can_be_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    """`noisegate up` becomes what starts it here; text with data stays as it is."""
    monkeypatch.setattr(output, "program", lambda: "./noisegate")
    assert output._COMMAND.sub(output._as_typed, "try noisegate up, noisegate: x") == "try ./noisegate up, noisegate: x"


def test_suggested_commands_never_leave_the_home_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A suggested command finds the home that is in use, unless it names one; commands of files name none."""
    monkeypatch.setattr(output, "program", lambda: "./noisegate")
    monkeypatch.delenv("NOISEGATE_HOME", raising=False)
    ran = cli("budget", "show", "--home", str(tmp_path / "my home"))
    assert f"--home '{tmp_path / 'my home'}'" in ran.err
    output.use_home(" --home /x")
    try:
        for text, typed in (
            ("noisegate key create NAME --role analyst", "./noisegate key create --home /x NAME --role analyst"),
            ("See: noisegate doctor", "See: ./noisegate doctor --home /x"),
            ("noisegate up --home /y", "./noisegate up --home /y"),
            ("noisegate dataset check a.yaml", "./noisegate dataset check a.yaml"),
        ):
            assert output._COMMAND.sub(output._as_typed, text) == typed
    finally:
        output.use_home("")


def test_home_and_json_are_options_of_every_command() -> None:
    """What the page says of all commands is true of each; only the text for a shell has neither."""
    for command in commands():
        if command == ("completion",):
            continue
        text = cli(*command, "--help").out
        assert "--home" in text, command
        assert "--json" in text, command


def test_examples_never_lose_their_parameters_in_a_shell() -> None:
    """Every example of query and estimate, read by a shell, still holds its statement and its $name."""
    pages = [cli("query", "--help").out, cli("estimate", "--help").out]
    pages += [(ROOT / name).read_text("utf-8") for name in ("README.md", "docs/cli.md", "docs/sql.md", "docs/api.md")]
    lines = [line.strip() for page in pages for line in page.splitlines()]
    examples = [line for line in lines if re.match(r"(\$ )?(\./)?noisegate (query|estimate) ", line)]
    assert len(examples) > 8
    for line in examples:
        command = re.sub(r"^(\$ )?(\./)?noisegate", "printf '%s\\n'", line.split(" > ")[0].rstrip("\\"))
        done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=20)
        assert done.returncode == 0, line
        assert ("$" in line.removeprefix("$ ")) == ("$" in done.stdout), line


def test_completion_knows_the_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    """A shell that asks gets the commands that begin so; the texts for three shells are offered."""
    done = subprocess.run(
        [sys.executable, "-m", "server.cli"],
        env={**environment(), "_NOISEGATE_COMPLETE": "complete_bash", "COMP_WORDS": "noisegate bud", "COMP_CWORD": "1"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout.split() == ["budget"]
    for shell in ("bash", "zsh", "fish"):
        assert "_NOISEGATE_COMPLETE" in cli("completion", shell).out


@pytest.mark.parametrize(
    ("terminal", "variables", "coloured"), [(True, {}, True), (False, {}, False), (True, {"NO_COLOR": "1"}, False)]
)
def test_colours_only_where_a_terminal_shows_them(
    monkeypatch: pytest.MonkeyPatch, terminal: bool, variables: dict[str, str], coloured: bool
) -> None:
    """A failure is red at a terminal, and plain in files, pipes and where NO_COLOR is set."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal, raising=False)
    assert ("\x1b[" in output.painted("noisegate: x", "bad", error=True)) is coloured


def test_a_free_answer_says_of_which_question_it_is() -> None:
    """A release of the same question is told from one of another question, of which the numbers follow."""
    paid = {"epsilon": "9.5", "delta": "0"}
    same = {"confidence": 0.95, "accounting": {"charged": [], "reused": True, "remaining": paid}, "provenance": {}}
    assert any("an equal question was answered before" in line for line in answers.price_lines(same))
    other = {**same, "provenance": {"derived": [{"columns": ["AVG(age)"], "release": "/v1/releases/r_1"}]}}
    lines = answers.price_lines(other)
    assert "Price: nothing: its numbers follow from a stored release of another question." in lines


def test_a_free_estimate_calls_no_noise_its_own() -> None:
    """What would be bought anew is not what answers, where a stored release does."""
    family = {
        "noise": "gaussian",
        "chosen": True,
        "affordable": True,
        "price": {"epsilon": "1", "own": {"epsilon": "1"}},
    }
    families = [{**family, "columns": [], "questions_left_after": {}}] * 2
    assert "Bought anew, with either kind" in "".join(answers._family_lines(families, free=True))
    assert "(this)" not in "".join(answers._family_lines(families, free=True))
    assert "gaussian (this)" in "".join(answers._family_lines(families, free=False))
