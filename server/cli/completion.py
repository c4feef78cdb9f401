"""`noisegate completion`: what makes a shell complete commands and options."""

from __future__ import annotations

import re
import shlex
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from server.cli.output import program, say

__all__ = ["completion"]


class Shell(StrEnum):
    """Shells that can complete."""

    bash = "bash"
    zsh = "zsh"
    fish = "fish"


def completion(shell: Annotated[Shell, typer.Argument(metavar="SHELL", help="bash, zsh or fish.")]) -> None:
    """Print what makes your shell complete commands and options.

    \b
    examples
      source <(noisegate completion bash)                   for this shell, or as a line of ~/.bashrc
      noisegate completion fish > ~/.config/fish/completions/noisegate.fish
    """
    from typer.completion import get_completion_script  # type: ignore[attr-defined]

    text = get_completion_script(prog_name="noisegate", complete_var="_NOISEGATE_COMPLETE", shell=shell.value)
    # In a checkout the program is not on the PATH: zsh and fish call it where it is; bash calls what was typed.
    own = re.sub(r"(?<=complete_zsh )noisegate|(?<=\(commandline -cp\) )noisegate", _where(), text)
    say(own, verbatim=True)


def _where() -> str:
    """This program as a shell finds it from any folder."""
    return (
        shlex.quote(str(Path(__file__).resolve().parents[2] / "noisegate")) if program() != "noisegate" else "noisegate"
    )
