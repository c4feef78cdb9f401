"""`noisegate migrate` and `noisegate audit`: looking after the ledger."""

from __future__ import annotations

from typing import Annotated

import typer

from server.cli.failure import CommandFailed, explained, usage_error
from server.cli.home import Home
from server.cli.options import HomeOption, JsonOption, default_home
from server.cli.output import print_json, printable, say, table

__all__ = ["audit", "migrate"]


def migrate(home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Make the ledger, or bring it to the schema of this version. Safe to run again; all of it happens or nothing.

    \b
    examples
      noisegate migrate
      NOISEGATE_DATABASE_URL_FILE=/run/secrets/database_url noisegate migrate
    """
    place = Home(default_home(home))
    settings = place.settings()
    place.create()
    with explained(place.path):
        from migrations.upgrade import current, upgrade

        before = current(settings.database()) if place.has_ledger(settings) else None
        after = upgrade(settings.database())
    if as_json:
        print_json({"before": before, "after": after})
    elif before == after:
        say(f"The ledger has schema {after} already; nothing to do.")
    else:
        say(f"The ledger has schema {after} now{f' (before: {before})' if before else ''}.")


def audit(
    acknowledge_restore: Annotated[
        bool,
        typer.Option("--acknowledge-restore", help="Accept that a restored ledger has forgotten charges; recorded."),
    ] = False,
    actor: Annotated[
        str | None, typer.Option("--actor", metavar="NAME", help="With --acknowledge-restore: who accepts it.")
    ] = None,
    reason: Annotated[
        str | None, typer.Option("--reason", metavar="TEXT", help="With --acknowledge-restore: why.")
    ] = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Recompute every balance from the ledger's entries and check the chain of hashes. Exit code 1 on findings.

    Changes nothing, also while a server is running. A ledger that is older than its high-water mark (a restored
    backup) spends nothing until somebody accepts with name and reason that charges were forgotten. Nothing is given
    back by that: lower the limits by what you know was spent.

    \b
    examples
      noisegate audit
      noisegate audit --json
      noisegate audit --acknowledge-restore --actor research --reason "disk failed, backup of Monday"
    """
    if not acknowledge_restore and (actor is not None or reason is not None):
        raise usage_error(
            "--actor and --reason need --acknowledge-restore",
            why="An ordinary audit changes nothing and records nobody.",
            instead="Leave them away.",
        )
    if acknowledge_restore and not ((actor or "").strip() and (reason or "").strip()):
        raise usage_error(
            "--actor and --reason are missing",
            why="The ledger keeps who accepted that charges were forgotten, and why.",
            instead='Repeat with: --acknowledge-restore --actor YOU --reason "why"',
        )
    place = Home(default_home(home))
    with place.opened() as (_, ledger, _):
        acknowledged = False
        if acknowledge_restore:
            if not ledger.behind:
                raise CommandFailed(
                    "there is nothing to acknowledge",
                    why="The ledger is not behind its high-water mark: no charge is missing.",
                    instead="See: noisegate audit",
                )
            assert actor is not None
            assert reason is not None
            try:
                ledger.acknowledge_restore(actor=actor, reason=reason)
            except ValueError as error:
                raise usage_error("could not acknowledge", why=f"{error}.", instead="Shorten the texts.") from None
            acknowledged = True
        report = ledger.audit()
        behind = ledger.behind
    ok = report.ok and not behind
    if as_json:
        print_json(
            {
                "ok": ok,
                "behind": behind,
                "acknowledged": acknowledged,
                "entries": report.entries,
                "accounts": report.accounts,
                "queries": report.queries,
                "releases": report.releases,
                "head": {"sequence": report.sequence, "hash": report.hash},
                "findings": [
                    {"code": finding.code, "subject": finding.subject, "text": finding.text}
                    for finding in report.findings
                ],
            }
        )
    else:
        if acknowledged:
            say("Acknowledged, and recorded in every root account. Restart a server that was running.")
        if report.findings:
            rows = [[finding.code, printable(finding.subject), printable(finding.text)] for finding in report.findings]
            say(table(["finding", "subject", "what does not agree"], rows))
        if behind:
            say("The ledger is older than its high-water mark: charges are missing, and nothing is spent until")
            say('somebody accepts it: noisegate audit --acknowledge-restore --actor YOU --reason "why"')
        say(
            f"Read {report.entries:,} entries of {report.accounts:,} accounts, {report.queries:,} queries, "
            f"{report.releases:,} releases: "
            + ("everything agrees." if report.ok else f"{len(report.findings):,} findings.")
        )
        say(f"Head of the chain, to be noted elsewhere: {report.sequence} {report.hash}")
        if report.findings:
            say("Balances that do not agree may mean that a charge was lost. Stop the server, keep a copy of the")
            say("ledger, and compare with your backups before anybody asks again.")
    if not ok:
        raise typer.Exit(1)
