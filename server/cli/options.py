"""Options, each declared once, and groups of options that a command takes as one value."""

from __future__ import annotations

import enum
import functools
import getpass
import inspect
import os
import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, is_dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin, get_type_hints

import typer
from typer.models import ParameterInfo

from server.cli.explaining import explained
from server.cli.failure import EXIT_FAILED, UsageError
from server.cli.output import CHECKOUT, print_json, printable, say, use_home
from server.home import Home

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


__all__ = ["Here", "absolute", "amount", "one_of", "operator", "option", "spread"]


def option(declared: str, help: str, default: object = None, **more: Any) -> Any:
    """An option, declared as people see it ("--file -f FILE"), as the default of a parameter. `...` has none.

    What is declared without dashes is an argument; in brackets it may be left out.
    """
    names = [word for word in declared.split() if word.startswith("-")]
    metavar = declared.removeprefix(" ".join(names)).strip() or None
    if not names:
        return typer.Argument(None if declared.startswith("[") else ..., metavar=declared.strip("[]"), help=help)
    return typer.Option(default, *names, metavar=metavar, help=help, **more)


def spread(command: Callable[..., None]) -> Callable[..., None]:
    """The command, with the options of each dataclass that it takes in place of that parameter.

    Errors of the rooms below become messages here, which name the home in use.
    """
    hints = get_type_hints(command)
    flat: dict[str, inspect.Parameter] = {}
    groups: dict[str, type[DataclassInstance]] = {}
    for name, parameter in inspect.signature(command).parameters.items():
        if is_dataclass(hints[name]):
            groups[name] = hints[name]
            types = get_type_hints(hints[name])
            declared = {field.name: (types[field.name], field.default) for field in fields(hints[name])}
        else:
            declared = {name: (hints[name], parameter.default)}
        for key, (kind, default) in declared.items():
            if choice := _choice(kind):
                assert isinstance(default, ParameterInfo)
                default.parser = choice
            flat[key] = inspect.Parameter(key, inspect.Parameter.KEYWORD_ONLY, annotation=kind, default=default)

    @functools.wraps(command)
    def run(**given: object) -> None:
        for name, group in groups.items():
            given[name] = group(**{field.name: given.pop(field.name) for field in fields(group)})
        here = given.get("here")
        with explained(here.place().path if isinstance(here, Here) else None):
            command(**given)

    run.__signature__ = inspect.Signature(list(flat.values()))  # type: ignore[attr-defined]
    return run


def _choice(kind: object) -> Callable[[str], object] | None:
    """What reads an option that takes one of a few words, which may be left out; None for others."""
    for one in (kind, *get_args(kind)):
        if get_origin(one) is Literal:
            return functools.partial(one_of, get_args(one))
        if isinstance(one, type) and issubclass(one, enum.Enum):
            return functools.partial(_member, one)
    return None


def _member(kind: type[enum.Enum], text: str) -> enum.Enum:
    return kind(one_of([str(member.value) for member in kind], text))


def one_of(words: Sequence[str], text: str) -> str:
    """The word as it was typed. Errors: BadParameter, with the words there are and the one that is near."""
    from privacy.wording import nearest

    if text in words:
        return text
    near = nearest(text, words)
    hint = f" Did you mean '{near}'?" if near else ""
    raise typer.BadParameter(f"'{printable(text)}' is not one of {', '.join(map(repr, words))}.{hint}")


_HOME = "Folder of the ledger, datasets, snapshots and secrets. Default: .noisegate in the checkout."


@dataclass(frozen=True, slots=True)
class Here:
    """What nearly every command takes: the home, and whether a script reads the answer."""

    home: Path | None = option("--home DIR", _HOME, envvar="NOISEGATE_HOME", show_envvar=True)
    as_json: bool = option("--json", "One line of JSON on standard output, for scripts.", False)

    def place(self) -> Home:
        """The home that was given, else `.noisegate` in the checkout or where we stand.

        Commands in later messages name it where they would not find it by themselves.
        """
        home = _home(self.home)
        usual = _home(Path(os.environ["NOISEGATE_HOME"]) if os.environ.get("NOISEGATE_HOME") else None)
        use_home("" if home == usual else f" --home {shlex.quote(str(home))}")
        return Home(home)

    def show(self, value: object, lines: Iterable[str], *, verbatim: bool = False, failed: bool = False) -> None:
        """The outcome: JSON for a script, else lines for people; `verbatim` where they hold data.

        `failed` ends the command with exit code 1: it did what it was asked to, and found something.
        """
        if self.as_json:
            print_json(value)
        else:
            for line in lines:
                say(line, verbatim=verbatim)
        if failed:
            raise typer.Exit(EXIT_FAILED)


def absolute(path: Path) -> Path:
    """The path from the root, without "..", and with what the shell left of "~"."""
    whole = path.expanduser().absolute()
    # Resolved only where it must be: "a/../b" is not "b" when "a" is a link.
    return whole.resolve() if ".." in whole.parts else whole


def _home(given: Path | None) -> Path:
    if given is not None:
        return absolute(given)
    return (CHECKOUT if (CHECKOUT / "pyproject.toml").is_file() else Path.cwd()) / ".noisegate"


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
        example = "0.000001" if "delta" in name else "1"
        raise UsageError(f"""{option} is not accepted
            {error}.
            Write an ordinary decimal number, for instance {option} {example}""") from None
