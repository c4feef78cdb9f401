"""What several commands understand: the home, JSON output, exact amounts, names."""

from __future__ import annotations

import getpass
import os
import shlex
from fractions import Fraction
from pathlib import Path
from typing import Annotated

import typer

from server.cli.failure import usage_error
from server.cli.output import use_home

__all__ = [
    "HomeOption",
    "JsonOption",
    "KeyFileOption",
    "KeyOption",
    "UrlOption",
    "absolute",
    "amount",
    "default_home",
    "home_option",
    "operator",
]

HomeOption = Annotated[
    Path | None,
    typer.Option(
        "--home",
        metavar="DIR",
        envvar="NOISEGATE_HOME",
        help="Folder of the ledger, datasets, snapshots and secrets. Default: .noisegate in the checkout.",
        show_envvar=True,
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="One line of JSON on standard output, for scripts.")]
UrlOption = Annotated[
    str | None,
    typer.Option(
        "--url",
        metavar="URL",
        envvar="NOISEGATE_URL",
        help="Address of the server. Default: the one that serves this home, else http://127.0.0.1:8765.",
    ),
]
KeyOption = Annotated[
    str | None,
    typer.Option(
        "--key",
        metavar="KEY",
        envvar="NOISEGATE_KEY",
        help="API key. Others on this machine may see arguments: prefer the variable or --key-file.",
    ),
]
KeyFileOption = Annotated[
    Path | None, typer.Option("--key-file", metavar="FILE", help="File that holds the API key, and nothing else.")
]


def absolute(path: Path) -> Path:
    """The path from the root, without "..", and with what the shell left of "~"."""
    whole = path.expanduser().absolute()
    # Resolved only where it must be: "a/../b" is not "b" when "a" is a link.
    return whole.resolve() if ".." in whole.parts else whole


def default_home(given: Path | None) -> Path:
    """The home as an absolute path: the one that was given, else `.noisegate` in the checkout or where we stand.

    Commands in later messages name it where they would not find it by themselves.
    """
    home = _home(given)
    use_home(home_option(home))
    return home


def _home(given: Path | None) -> Path:
    if given is not None:
        return absolute(given)
    checkout = Path(__file__).resolve().parents[2]
    base = checkout if (checkout / "pyproject.toml").is_file() else Path.cwd()
    return base / ".noisegate"


def home_option(home: Path) -> str:
    """What other commands need in order to find this home; nothing for the usual one."""
    usual = _home(Path(os.environ["NOISEGATE_HOME"]) if os.environ.get("NOISEGATE_HOME") else None)
    return "" if home == usual else f" --home {shlex.quote(str(home))}"


def operator() -> str:
    """Who acts, for the records of ledger and registry: the system's user name. No proof, only a trace."""
    try:
        name = getpass.getuser()
    except (KeyError, OSError):
        name = str(os.getuid())
    return f"os:{name}"[:64]


def amount(text: str, *, option: str, maximum: Fraction, unit: Fraction, zero_allowed: bool = False) -> Fraction:
    """The exact value of a decimal that was typed. Errors: CommandFailed (wrong usage) with the reason."""
    from privacy.numbers import parse_decimal

    name = option.removeprefix("--")
    try:
        return parse_decimal(text.strip(), name=name, maximum=maximum, unit=unit, zero_allowed=zero_allowed)
    except ValueError as error:
        raise usage_error(
            f"{option} is not accepted",
            why=f"{error}.",
            instead=f"Write an ordinary decimal number, for instance {option} {'0.000001' if 'delta' in name else '1'}",
        ) from None
