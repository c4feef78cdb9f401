"""All commands, and the edge of the process: exit codes and messages instead of tracebacks."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import sys
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Literal

import typer

from server.cli import (
    access,
    asking,
    auditing,
    backups,
    batches,
    budget_windows,
    care,
    dashboards,
    datasets,
    doctor,
    lending,
    models,
    monitors,
    preview,
    proposals,
    requests,
    risk,
    serving,
    statistics,
    streams,
    synthetic,
    team,
    up,
    webhooks,
)
from server.cli.failure import EXIT_FAILED, EXIT_INTERRUPTED, CommandFailed
from server.cli.options import option, spread
from server.cli.output import CHECKOUT, painted, program, say, use_home

__all__ = ["COMMANDS", "application", "run"]

application = typer.Typer(
    name="noisegate",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    epilog="Exit codes: 0 done, 1 the command failed, 2 wrong usage, 130 interrupted. More: docs/cli.md",
)


def completion(shell: Literal["bash", "zsh", "fish"] = option("SHELL", "bash, zsh or fish.")) -> None:
    """Print what makes your shell complete commands and options."""
    from typer.completion import get_completion_script  # type: ignore[attr-defined]

    text = get_completion_script(prog_name="noisegate", complete_var="_NOISEGATE_COMPLETE", shell=shell)
    # In a checkout the program is not on the PATH: zsh and fish call it where it is; bash calls what was typed.
    own = "noisegate" if program() == "noisegate" else shlex.quote(str(CHECKOUT / "noisegate"))
    say(re.sub(r"(?<=complete_zsh )noisegate|(?<=\(commandline -cp\) )noisegate", own, text), verbatim=True)


COMMANDS: dict[str, Callable[..., None]] = {
    "up": up.up, "serve": serving.serve, "migrate": care.migrate, "init": datasets.init,
    "query": asking.query, "sharpen": asking.sharpen, "estimate": asking.estimate,
    "queries": asking.queries, "datasets": asking.datasets, "describe": asking.describe,
    "batch": batches.batch,
    "model fit": models.fit, "model list": models.list_models, "model show": models.show,
    "statistic list": statistics.list_statistics, "statistic ask": statistics.ask,
    "synthetic make": synthetic.make, "synthetic list": synthetic.list_tables,
    "synthetic show": synthetic.show, "synthetic delete": synthetic.delete,
    "monitor open": monitors.open_monitor, "monitor check": monitors.check,
    "monitor list": monitors.list_monitors, "monitor show": monitors.show,
    "dashboard make": dashboards.make, "dashboard change": dashboards.change,
    "dashboard list": dashboards.list_dashboards, "dashboard show": dashboards.show,
    "dashboard tile": dashboards.tile, "dashboard refresh": dashboards.refresh,
    "dashboard pause": dashboards.pause, "dashboard resume": dashboards.resume,
    "dashboard remove": dashboards.remove, "dashboard link": dashboards.link,
    "dashboard links": dashboards.links, "dashboard revoke": dashboards.revoke,
    "webhook add": webhooks.add, "webhook test": webhooks.check, "webhook list": webhooks.list_webhooks,
    "webhook show": webhooks.show, "webhook remove": webhooks.remove,
    "stream open": streams.open_stream, "stream ask": streams.ask, "stream list": streams.list_streams,
    "stream show": streams.show, "stream close": streams.close,
    "backup": backups.backup, "restore": backups.bring_back,
    "ledger export": auditing.export_ledger, "verify": auditing.verify,
    "audit": care.audit, "doctor": doctor.doctor, "completion": completion,
    "dataset check": datasets.check_file, "dataset upgrade": datasets.upgrade_file, "dataset add": datasets.add,
    "dataset list": datasets.list_datasets, "dataset remove": datasets.remove,
    "dataset profile": datasets.profile, "dataset risk": risk.risk,
    "dataset preview": preview.preview,
    "key create": access.create_key, "key rotate": access.rotate_key, "key revoke": access.revoke_key,
    "key list": access.list_keys,
    "key accept-secret": access.accept_secret, "key rotate-secret": access.rotate_secret,
    "request make": requests.make, "request list": requests.list_requests, "request show": requests.show,
    "request approve": requests.approve, "request reject": requests.reject, "request withdraw": requests.withdraw,
    "team spent": team.spent, "team running-out": team.running_out, "team left": team.left,
    "team stop": team.stop, "team resume": team.resume,
    "proposal list": proposals.list_proposals, "proposal restore": proposals.restore,
    "proposal confirm": proposals.confirm, "proposal reject": proposals.reject,
    "proposal withdraw": proposals.withdraw, "budget adjust": proposals.adjust,
    "budget set": access.set_budget, "budget window": budget_windows.set_window,
    "budget show": access.show_budgets,
    "budget lend": lending.lend, "budget recall": lending.recall,
}  # fmt: skip
GROUPS = {
    "dataset": "Check, attach, profile, list and remove datasets.",
    "key": "API keys for administrators and analysts.",
    "synthetic": "Synthetic tables: make, list, show and delete.",
    "statistic": "Statistics that the owner registered: list and ask.",
    "stream": "Streams of range queries: open, ask, list, show and close.",
    "model": "Regression with noise: fit, list and show models.",
    "monitor": "Thresholds that are watched: open, check, list and show monitors.",
    "dashboard": "Tiles that are refreshed by a schedule and polled for free.",
    "webhook": "Where events are sent: add, test, list, show and remove webhooks.",
    "ledger": "The ledger as a file for auditors.",
    "request": "Ask for a budget, and decide who gets one.",
    "team": "An administrator's day: who spent, what runs out, what is left; stop somebody.",
    "proposal": "What takes two administrators: list, confirm, reject and withdraw.",
    "budget": "How much may be spent, and what has been.",
}


def _page() -> str:
    """docs/cli.md, from the checkout or from where a package puts it."""
    for folder in (CHECKOUT / "docs", Path(sys.prefix) / "share" / "noisegate"):
        with contextlib.suppress(OSError):
            return (folder / "cli.md").read_text("utf-8")
    return ""


def _help(page: str, command: str) -> str | None:
    """What the page says of a command before its options: the beginning of its chapter, and its examples."""
    chapter = page.partition(f"\n### `{command}`\n")[2]
    words, _, after = chapter.partition("```\n")
    # A link whose words are the name of a page becomes its path; of other links only the words are left.
    words = re.sub(r"\[(?:([^]]+\.md)|([^]]+))\]\([^)]+\)", lambda link: link[2] or f"docs/{link[1]}", words.strip())
    examples = textwrap.indent(after.partition("```")[0], "  ")
    return f"{words}\n\n\b\nexamples\n{examples}" if chapter else None


def _add_commands() -> None:
    page, groups = _page(), {"": application}
    for name, words in GROUPS.items():
        groups[name] = typer.Typer(name=name, help=words, no_args_is_help=True, rich_markup_mode=None)
        application.add_typer(groups[name])
    for name, function in COMMANDS.items():
        group, _, own = name.rpartition(" ")
        summary = (function.__doc__ or "").partition(".")[0]
        groups[group].command(own, help=_help(page, name), short_help=summary)(spread(function))


_add_commands()


def _show_version(wanted: bool) -> None:
    if wanted:
        from server.installed import program_version

        say(f"noisegate {program_version()}")
        raise typer.Exit


@application.callback()
def _noisegate(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="The version, and nothing else.")
    ] = False,
) -> None:
    """Noisegate answers SQL questions about people with noise, and keeps an account of what has been revealed.

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
        if leave.code == EXIT_INTERRUPTED:  # what typer makes of a KeyboardInterrupt
            say("\nnoisegate: interrupted. Run the same command again; nothing is lost.", error=True)
        return leave.code if isinstance(leave.code, int) else EXIT_FAILED if leave.code else 0
    except CommandFailed as failure:
        say(painted(str(failure), "bad", error=True), error=True)
        return failure.exit_code
    except BrokenPipeError:
        # Whoever read our output has gone; the interpreter must not complain about it at the end.
        with contextlib.suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_FAILED
    except Exception as error:  # noqa: BLE001 - the edge of the process: no traceback, whose text may hold values
        from server.log import where

        # A fault of this program: its class and its path through the code, which hold no data.
        unforeseen = f"""the command failed in a way that nobody foresaw ({type(error).__name__})
            It happened at {where(error) or "an unknown place"}. What was stored is not lost.
            See: noisegate doctor
            If it stays, report it with the line above."""
        say(str(CommandFailed(unforeseen)), error=True)
        return EXIT_FAILED
    finally:
        use_home("")
    return 0
