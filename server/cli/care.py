"""`noisegate migrate` and `noisegate audit`: looking after the ledger."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING

from server.cli.backups import audit_words
from server.cli.failure import CommandFailed, UsageError
from server.cli.options import Here, option
from server.cli.output import progress, table

if TYPE_CHECKING:
    from accountant.audit import AuditReport
    from server.administration.proposals import Proposals
    from server.home import Home
    from server.settings import Settings

__all__ = ["audit", "migrate"]


def migrate(
    *,
    rehearse: bool = option("--rehearse", "Try it on a copy, audit that, and change nothing.", False),
    here: Here,
) -> None:
    """Bring the ledger to the schema of this version."""
    from migrations.upgrade import current, upgrade

    place = here.place()
    settings = place.settings()
    if rehearse:
        _rehearse(place, settings, here)
        return
    place.create()
    before = current(settings.database()) if place.has_ledger(settings) else None
    after = upgrade(settings.database())
    outcome = "already; nothing to do" if before == after else f"now (before: {before})" if before else "now"
    here.show({"before": before, "after": after}, [f"The ledger has schema {after} {outcome}."])


def _rehearse(place: Home, settings: Settings, here: Here) -> None:
    from server.backups import rehearse

    place.require(settings)
    with progress("upgrading a copy of the ledger"):
        done = rehearse(settings)
    lines = [
        f"On a copy the ledger got schema {done.after} (now: {done.before}). {audit_words(done.audit)}",
        "Nothing was changed. Before the real one: noisegate backup FILE",
    ]
    findings = [asdict(finding) for finding in done.audit.findings]
    body = {"before": done.before, "after": done.after, "ok": done.audit.ok, "findings": findings}
    here.show(body, lines, failed=not done.audit.ok)


def audit(
    *,
    acknowledge_restore: bool = option("--acknowledge-restore", "Accept that a backup has forgotten charges.", False),
    actor: str | None = option("--actor NAME", "With --acknowledge-restore: who accepts it."),
    reason: str | None = option("--reason TEXT", "With --acknowledge-restore: why."),
    here: Here,
) -> None:
    """Recompute every balance from the ledger's entries."""
    if not acknowledge_restore and (actor is not None or reason is not None):
        raise UsageError("""--actor and --reason need --acknowledge-restore
            An ordinary audit changes nothing and records nobody.
            Leave them away.""")
    if acknowledge_restore and not ((actor or "").strip() and (reason or "").strip()):
        raise UsageError("""--actor and --reason are missing
            The ledger keeps who accepted that charges were forgotten, and why.
            Repeat with: --acknowledge-restore --actor YOU --reason "why"
            """)
    place = here.place()
    if acknowledge_restore:
        from server.administration.proposals import Proposals
        from server.cli.proposals import caps_of

        with place.opened() as (settings, ledger, registry):
            if not ledger.behind:
                raise CommandFailed("""there is nothing to acknowledge
                    The ledger is not behind its high-water mark: no charge is missing.
                    See: noisegate audit""")
            _acknowledge(Proposals(ledger, registry, caps_of(settings)), actor=actor or "", reason=reason or "")
    with place.read() as reader:
        report = reader.audit()
        behind = reader.behind
    ok = report.ok and not behind
    body = {
        "ok": ok,
        "behind": behind,
        "acknowledged": acknowledge_restore,
        **{name: getattr(report, name) for name in ("entries", "accounts", "queries", "releases")},
        "head": {"sequence": report.sequence, "hash": report.hash},
        "findings": [asdict(finding) for finding in report.findings],
    }
    here.show(body, _report_lines(report, behind=behind, acknowledged=acknowledge_restore), failed=not ok)


def _acknowledge(proposals: Proposals, *, actor: str, reason: str) -> None:
    """Both halves of the act, where there is nobody else who could confirm. Errors: CommandFailed, UsageError."""
    administrators = proposals.registry.administrators()
    if len(administrators) > 1:
        raise CommandFailed(f"""it takes two administrators to acknowledge
            There are several: {", ".join(administrators[:3])}. One proposes, and another one confirms.
            Start the server, which spends nothing until then, and run: noisegate proposal restore --reason "why"
            Another administrator runs: noisegate proposal confirm ID""")
    try:
        row = proposals.acknowledge(reason, actor=administrators[0] if administrators else actor)
        proposals.confirm(row.id, actor=actor, local=True)
    except ValueError as error:
        raise UsageError(f"""could not acknowledge
            {error}.
            Shorten the texts.""") from None


def _report_lines(report: AuditReport, *, behind: bool, acknowledged: bool) -> Iterator[str]:
    if acknowledged:
        yield "Acknowledged, and recorded in every root account. Restart a server that was running."
    if report.findings:
        rows = [[finding.code, finding.subject, finding.text] for finding in report.findings]
        yield table(["finding", "subject", "what does not agree"], rows)
    if behind:
        yield "The ledger is older than its high-water mark: charges are missing, and nothing is spent until"
        yield 'somebody accepts it: noisegate audit --acknowledge-restore --actor YOU --reason "why"'
    verdict = "everything agrees" if report.ok else f"{len(report.findings):,} findings"
    read = f"Read {report.entries:,} entries of {report.accounts:,} accounts, {report.acts:,} acts"
    yield f"{read}, {report.queries:,} queries, {report.releases:,} releases: {verdict}."
    yield f"Head of the chain, to be noted elsewhere: {report.sequence} {report.hash}"
    if report.findings:
        yield "Balances that do not agree may mean that a charge was lost. Stop the server, keep a copy of the"
        yield "ledger, and compare with your backups before anybody asks again."
