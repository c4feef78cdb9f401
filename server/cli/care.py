"""`noisegate migrate` and `noisegate audit`: looking after the ledger."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

from server.cli.explaining import explained
from server.cli.failure import CommandFailed, usage_error
from server.cli.options import Here, flag, option
from server.cli.output import print_json, printable, say, table

if TYPE_CHECKING:
    from accountant.audit import AuditReport

__all__ = ["audit", "migrate"]


def migrate(here: Here) -> None:
    """Bring the ledger to the schema of this version.

    Makes it when there is none. Safe to run again; all of it happens or nothing.

    \b
    examples
      noisegate migrate
      NOISEGATE_DATABASE_URL_FILE=/run/secrets/database_url noisegate migrate
    """
    place = here.place()
    settings = place.settings()
    place.create()
    with explained(place.path):
        from migrations.upgrade import current, upgrade

        before = current(settings.database()) if place.has_ledger(settings) else None
        after = upgrade(settings.database())
    if here.as_json:
        print_json({"before": before, "after": after})
    elif before == after:
        say(f"The ledger has schema {after} already; nothing to do.")
    else:
        say(f"The ledger has schema {after} now{f' (before: {before})' if before else ''}.")


def audit(
    *,
    acknowledge_restore: bool = flag(
        "--acknowledge-restore", "Accept that a restored ledger has forgotten charges; recorded."
    ),
    actor: str | None = option("--actor NAME", "With --acknowledge-restore: who accepts it."),
    reason: str | None = option("--reason TEXT", "With --acknowledge-restore: why."),
    here: Here,
) -> None:
    """Recompute every balance from the ledger's entries.

    Checks the chain of hashes too; exit code 1 on findings.

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
    with here.place().opened() as (_, ledger, _):
        if acknowledge_restore:
            if not ledger.behind:
                raise CommandFailed(
                    "there is nothing to acknowledge",
                    why="The ledger is not behind its high-water mark: no charge is missing.",
                    instead="See: noisegate audit",
                )
            try:
                ledger.acknowledge_restore(actor=actor or "", reason=reason or "")
            except ValueError as error:
                raise usage_error("could not acknowledge", why=f"{error}.", instead="Shorten the texts.") from None
        report = ledger.audit()
        behind = ledger.behind
    ok = report.ok and not behind
    if here.as_json:
        print_json(
            {
                "ok": ok,
                "behind": behind,
                "acknowledged": acknowledge_restore,
                **{name: getattr(report, name) for name in ("entries", "accounts", "queries", "releases")},
                "head": {"sequence": report.sequence, "hash": report.hash},
                "findings": [asdict(finding) for finding in report.findings],
            }
        )
    else:
        _say_report(report, behind=behind, acknowledged=acknowledge_restore)
    if not ok:
        raise typer.Exit(1)


def _say_report(report: AuditReport, *, behind: bool, acknowledged: bool) -> None:
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
