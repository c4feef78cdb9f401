"""All commands, and the edge of the process: exit codes and messages instead of tracebacks."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from server.cli import asking, budgets, care, completion, datasets, doctor, people, remote, serving, up
from server.cli.failure import EXIT_FAILED, EXIT_INTERRUPTED, CommandFailed, Interrupted
from server.cli.output import painted, say, use_home

__all__ = ["application", "run"]

application = typer.Typer(
    name="noisegate",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    epilog="Exit codes: 0 done, 1 the command failed, 2 wrong usage, 130 interrupted. More: docs/cli.md",
)
application.command("up", short_help="Everything at once: data, keys, a budget, a first answer.")(up.up)
application.command("serve")(serving.serve)
application.command("migrate", short_help="Bring the ledger to the schema of this version.")(care.migrate)
application.command("init", short_help="Propose a dataset file from a data file.")(datasets.init)
application.add_typer(datasets.commands)
application.add_typer(people.commands)
application.add_typer(budgets.commands)
application.command("query", short_help="Ask a question, pay, and show the noisy answer.")(asking.query)
application.command("estimate", short_help="Tell what a question would cost. Free.")(asking.estimate)
application.command("datasets", short_help="List the datasets that you may ask.")(remote.datasets)
application.command("describe", short_help="Show what a dataset declares: columns, types, bounds.")(remote.describe)
application.command("audit", short_help="Recompute every balance from the ledger's entries.")(care.audit)
application.command("doctor", short_help="Check this installation.")(doctor.doctor)
application.command("completion", short_help="What makes your shell complete commands.")(completion.completion)


def _show_version(wanted: bool) -> None:
    if wanted:
        import importlib.metadata

        try:
            version = importlib.metadata.version("noisegate")
        except importlib.metadata.PackageNotFoundError:
            from server.routes.operations import server_version

            version = server_version()
        say(f"noisegate {version}")
        raise typer.Exit


@application.callback()
def _noisegate(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="The version, and nothing else.")
    ] = False,
) -> None:
    """Noisegate answers SQL questions about people with noise, and keeps the account of what has been told.

    \b
    first steps
      noisegate up                                          everything at once, with invented data
      noisegate up --data people.csv --unit person_id       the same with your own file
      noisegate query "SELECT COUNT(*) AS n FROM patients"  from another terminal
    """


def run(arguments: Sequence[str] | None = None) -> int:
    """Runs one command line and returns the exit code."""
    # Ledger, secrets and snapshots are nobody else's, also in a home that was there before with open permissions.
    os.umask(0o077)
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, ValueError):
            stream.reconfigure(errors="replace")  # type: ignore[union-attr]
    if "_NOISEGATE_COMPLETE" in os.environ:
        from typer.completion import get_completion_inspect_parameters

        get_completion_inspect_parameters()  # makes the shells known
    try:
        application(args=None if arguments is None else list(arguments), prog_name="noisegate")
    except SystemExit as leave:
        return leave.code if isinstance(leave.code, int) else EXIT_FAILED if leave.code else 0
    except CommandFailed as failure:
        say(painted(str(failure), "bad", error=True), error=True)
        return failure.exit_code
    except (Interrupted, KeyboardInterrupt):
        say("\nnoisegate: interrupted. Run the same command again; nothing is lost.", error=True)
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has gone; the interpreter must not complain about it at the end.
        with contextlib.suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_FAILED
    except Exception as error:  # noqa: BLE001 - the edge of the process: no traceback, whose text may hold values
        say(str(_unforeseen(error)), error=True)
        return EXIT_FAILED
    finally:
        use_home("")
    return 0


def _unforeseen(error: Exception) -> CommandFailed:
    """A fault of this program: its class and the places it passed, which hold no data."""
    from server.log import where

    return CommandFailed(
        f"the command failed in a way that nobody foresaw ({type(error).__name__})",
        why=f"It happened at {where(error) or 'an unknown place'}. What was stored is not lost.",
        instead=("See: noisegate doctor", "If it stays, report it with the line above."),
    )
