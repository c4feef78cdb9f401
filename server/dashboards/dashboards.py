"""Dashboards: making and changing them, their envelopes, and what their owners see of them."""

from __future__ import annotations

import datetime
import json
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Protocol

from accountant.account import Account, Limit
from accountant.ledger import Ledger
from privacy.numbers import decimal_text
from privacy.refusal import Refused
from server.administration.budgets import account_body
from server.administration.lending import LendBudget, Lending
from server.body import canonical_hash
from server.dashboards import refusals
from server.dashboards.links import LinkFault, LinkRefused, Signer
from server.dashboards.projection import Rate, exhausted_on, versions_per_day
from server.dashboards.reading import Reader, Seen
from server.dashboards.schedule import Schedule, read_schedule
from server.dashboards.terms import MakeDashboard, TileText, TileWish
from server.question import Question
from server.sealing import Seal, SealBroken
from server.store.dashboards import DashboardRow, LinkRow, TileRow
from server.store.registry import Registry
from server.store.transactions import iso
from sql_rewrite.lift_clock import started as clock_of

__all__ = ["DASHBOARDS_MAX", "LINKS_MAX", "Asking", "Dashboards", "question_of", "text_of"]

DASHBOARDS_MAX = 50
"""Most dashboards of a principal."""

LINKS_MAX = 100
"""Most links of a dashboard that were not revoked."""

_CONFIDENCE = Fraction(95, 100)


class Asking(Protocol):
    """What estimates questions."""

    def estimate(self, question: Question) -> Mapping[str, object]:
        """Raises Refused for a question that would not be answered."""


@dataclass(frozen=True, slots=True)
class Dashboards:
    """The dashboards of a server. Safe to use from many threads."""

    ledger: Ledger
    registry: Registry
    journey: Asking
    seal: Seal
    signer: Signer
    now: Callable[[], datetime.datetime]
    reader: Reader

    def check(self, request: MakeDashboard) -> None:
        """Whether each tile would be answered, and the envelope lies within its owner's budget. Spends nothing.

        Errors: Refused, with the tile's name; Problem.
        """
        for tile in request.tiles:
            try:
                self.journey.estimate(question_of(request.principal, request.dataset, None, tile.text, self.now()))
            except Refused as refused:
                named = [replace(one, what=f'tile "{tile.name}": {one.what}') for one in refused.findings]
                raise Refused(named) from None
        above, envelope = self._above(request), request.envelope
        if envelope.epsilon > above.limit.epsilon or (envelope.delta or 0) > above.limit.delta:
            raise refusals.too_large(envelope, above)
        for tile in request.tiles:
            if tile.text.epsilon is not None and tile.text.epsilon > envelope.epsilon:
                raise refusals.too_expensive(tile, envelope)

    def make(self, request: MakeDashboard) -> DashboardRow:
        """Opens the envelope and stores the dashboard. What was checked is not checked again.

        Errors: Problem; ActRefused, as of lending.
        """
        mine = self.registry.dashboards(request.principal, after=None, count=DASHBOARDS_MAX)
        if len(mine) >= DASHBOARDS_MAX:
            raise refusals.too_many(DASHBOARDS_MAX)
        above, dashboard = self._above(request), f"d_{secrets.token_hex(10)}"
        limit = self._limit(request, above)
        envelope = LendBudget(
            account=above.id,
            principal=None,
            epsilon=limit.epsilon,
            delta=limit.delta,
            expires=None,
            name=f"dashboard {dashboard}",
        )
        account = Lending(self.ledger).lend(envelope, actor=request.principal)
        row = DashboardRow(
            id=dashboard,
            principal=request.principal,
            dataset=request.dataset,
            account=account.id,
            sealed=self.seal.encrypted(json.dumps({"title": request.title}).encode(), bound_to=dashboard),
        )
        tiles = [self._tile(dashboard, place, wish) for place, wish in enumerate(request.tiles)]
        stored = self.registry.add_dashboard(row, tiles, request.readers, most=DASHBOARDS_MAX)
        if stored is None:
            self.ledger.end(account.id, actor=request.principal, reason="there are too many dashboards")
            raise refusals.too_many(DASHBOARDS_MAX)
        self.reader.forget(dashboard)
        return stored

    def close(self, row: DashboardRow, *, actor: str) -> None:
        """Ends a dashboard, its links and its envelope. What was charged stays. Errors: NotThere where it is closed."""
        self.registry.close_dashboard(row.id, actor=actor)
        self.reader.forget(row.id)
        self.ledger.end(row.account, actor=actor, reason=f"{row.id} was removed")

    def change(self, row: DashboardRow, request: MakeDashboard) -> None:
        """Makes a dashboard what was asked for. A tile whose text, spend or bounds change begins anew.

        Errors: Problem; NotThere for a closed one.
        """
        account = self.ledger.account(row.account)
        limit = self._limit(request, self._above(request))
        if limit != account.limit:
            try:
                self.ledger.change_limit(account.id, limit, actor=request.principal, reason=f"envelope of {row.id}")
            except ValueError as error:
                raise refusals.unsuitable(str(error)) from None
        there = {tile.name: tile for tile in self.registry.tiles(row.id)}
        kept: dict[str, Mapping[str, object]] = {}
        added = []
        for place, wish in enumerate(request.tiles):
            tile = there.get(wish.name)
            if tile is None or text_of(self.seal, tile) != wish.text:
                added.append(self._tile(row.id, place, wish))
                continue
            sealed = self.seal.encrypted(wish.sealed(), bound_to=tile.id)
            kept[tile.id] = {"place": place, "sealed": sealed, "schedule": wish.schedule.text()}
        self.registry.replace_dashboard(
            replace(row, sealed=self.seal.encrypted(json.dumps({"title": request.title}).encode(), bound_to=row.id)),
            removed=[tile.id for tile in there.values() if tile.id not in kept],
            kept=kept,
            added=added,
            readers=request.readers,
            actor=request.principal,
        )
        self.reader.forget(row.id)

    def describe(self, seen: Seen, *, owner: bool, trusted: bool) -> dict[str, object]:
        """A dashboard as JSON. `owner` sees texts, `trusted` (owner and overseers) envelope, readers and charges."""
        row = seen.row
        texts = {tile.id: self._text(tile) for tile in seen.tiles.values()}
        account = self.ledger.account(row.account)
        return {
            "id": row.id,
            "title": seen.title,
            "dataset": row.dataset,
            "principal": row.principal if trusted else None,
            "created": row.created,
            "paused": row.paused,
            "readers": sorted(seen.readers) if trusted else None,
            "envelope": account_body(account) if trusted else None,
            "exhausted_on": self._exhausted_on(seen, account, texts) if trusted else None,
            "tiles": [self._described(seen, tile, texts[tile.id], owner=owner, trusted=trusted) for tile in seen],
            "links": {"self": f"/v1/dashboards/{row.id}"},
        }

    def add_link(self, dashboard: str, *, label: str, days: int, actor: str) -> tuple[LinkRow, str]:
        """A link, and its token, which is shown nowhere else. Errors: Problem."""
        expires = (self.now() + datetime.timedelta(days=days)).replace(microsecond=0)
        row = LinkRow(id=f"k_{secrets.token_hex(8)}", dashboard=dashboard, label=label, expires=iso(expires))
        stored = self.registry.add_link(row, most=LINKS_MAX, actor=actor)
        if stored is None:
            raise refusals.too_many_links(LINKS_MAX)
        self.reader.forget(dashboard)
        return stored, self.signer.token(row.id, dashboard, expires)

    async def opened_by(self, token: str, dashboard: str) -> LinkRow:
        """The link whose token opens a dashboard now. Errors: LinkRefused."""
        link = self.signer.link_of(token, dashboard, self.now())
        seen = await self.reader.seen(dashboard)
        row = None if seen is None else seen.links.get(link)
        if row is None:
            raise LinkRefused(LinkFault.INVALID)
        if row.revoked is not None:
            raise LinkRefused(LinkFault.REVOKED)
        return row

    def _above(self, request: MakeDashboard) -> Account:
        """The account of the owner that the envelope lies in. Errors: Problem."""
        paths = self.ledger.spendable(request.dataset, request.principal)
        if not paths:
            raise refusals.unsuitable("you have no budget for this dataset")
        return paths[0][0]

    def _limit(self, request: MakeDashboard, above: Account) -> Limit:
        envelope = request.envelope
        if envelope.epsilon > above.limit.epsilon or (envelope.delta or 0) > above.limit.delta:
            raise refusals.too_large(envelope, above)
        return Limit(envelope.epsilon, above.limit.delta if envelope.delta is None else envelope.delta)

    def _tile(self, dashboard: str, place: int, wish: TileWish) -> TileRow:
        tile = f"t_{secrets.token_hex(10)}"
        return TileRow(
            id=tile,
            dashboard=dashboard,
            name=wish.name,
            place=place,
            sealed=self.seal.encrypted(wish.sealed(), bound_to=tile),
            schedule=wish.schedule.text(),
        )

    def _text(self, tile: TileRow) -> TileText | None:
        return text_of(self.seal, tile)

    def _exhausted_on(self, seen: Seen, account: Account, texts: Mapping[str, TileText | None]) -> str | None:
        versions = [
            datetime.datetime.fromisoformat(one.created) for one in self.registry.dataset_versions(seen.row.dataset)
        ]
        now = self.now()
        coming = versions_per_day(versions, now)
        rates = [
            Rate(cost, _per_day(read_schedule(tile.schedule), text, coming))
            for tile in seen
            for text in [texts[tile.id]]
            if text is not None
            for cost in [self._cost(tile, text)]
        ]
        left = min(one.remaining_epsilon() for one in self.ledger.path(account.id)[:2])
        day = exhausted_on(rates, left, now.date())
        return None if day is None else day.isoformat()

    def _cost(self, tile: TileRow, text: TileText) -> Fraction:
        """What a refresh costs the envelope: what the last charged one did, or the spend."""
        charged = [Fraction(one.charged or 0) for one in self.registry.refreshes(tile.id, count=20)]
        return next((one for one in reversed(charged) if one > 0), text.epsilon or text.own_epsilon or Fraction(0))

    def _described(
        self, seen: Seen, tile: TileRow, text: TileText | None, *, owner: bool, trusted: bool
    ) -> dict[str, object]:
        schedule = read_schedule(tile.schedule)
        coming = schedule.next(self.now())
        address = f"/v1/dashboards/{seen.row.id}/tiles/{tile.name}"
        spend = None if text is None else {"epsilon": _shown(text.epsilon), "own_epsilon": _shown(text.own_epsilon)}
        return {
            "name": tile.name,
            "title": seen.titles[tile.name],
            "state": tile.state,
            "as_of": tile.as_of,
            "refreshed": tile.refreshed,
            "next": None if coming is None or seen.row.paused is not None else iso(coming),
            "schedule": schedule.body(),
            "sql": text.sql if owner and text is not None else None,
            "spend": spend if trusted else None,
            "refused": tile.code if trusted else None,
            "query": tile.query if trusted else None,
            "links": {
                "self": address,
                **{kind: f"{address}.{kind}" for kind in ("csv", "arrow")},
                "history": f"{address}/history",
            },
        }


def text_of(seal: Seal, tile: TileRow) -> TileText | None:
    """What a tile asks; None where it cannot be read."""
    try:
        return TileText.read(json.loads(seal.decrypted(tile.sealed, bound_to=tile.id)))
    except SealBroken:
        return None


def question_of(
    principal: str,
    dataset: str,
    account: str | None,
    text: TileText,
    moment: datetime.datetime,
    *,
    key: str | None = None,
) -> Question:
    """The question of a tile at a moment of its schedule; with an account it is asked from the envelope."""
    said = {"dashboard": text.stored(), "account": account, "at": iso(moment), "dataset": dataset}
    return Question(
        principal=principal,
        dataset=dataset,
        sql=text.sql,
        parameters={},
        epsilon=text.epsilon,
        own_epsilon=text.own_epsilon,
        half_width=None,
        confidence=_CONFIDENCE,
        reuse=None,
        max_staleness_s=None,
        account=account,
        envelope=account is not None,
        contribution=text.contribution,
        idempotency_key=key,
        body_hash=canonical_hash(said),
        started=clock_of(text.sql, moment),
    )


def _per_day(schedule: Schedule, text: TileText, coming: Fraction) -> Fraction:
    """Charged refreshes in a day: of unchanged data none is, unless the text reads the clock."""
    planned = Fraction(schedule.per_day).limit_denominator(10_000)
    if schedule.each_version:
        return coming
    reads_clock = clock_of(text.sql, datetime.datetime.now(datetime.UTC)) is not None
    return planned if reads_clock else min(planned, coming)


def _shown(amount: Fraction | None) -> str | None:
    return None if amount is None else decimal_text(amount)
