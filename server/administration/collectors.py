"""Local collection: questions whose answers people randomise themselves. The server never sees a true answer.

A collector is opened with its domain and its epsilon. What one report costs its owner is charged then, once, to a root
of the ledger of its own: one event of the encoder that clients will use (mechanisms/local_encoders.md). Each report
uses a token, so that one handed to each person bounds what is learned of a person; reports are kept as counts alone.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING

from accountant.account import FilterKind, Limit
from accountant.ledger import Ledger
from accountant.request import CoreCharge, ReserveRequest, Reuse, storable
from privacy.numbers import decimal_text
from privacy.values import Json
from server.administration.collector_refusals import (
    ClosedCollector,
    FullCollector,
    NoCollector,
    NoReports,
    RefusedToken,
    UnsuitableCollector,
    UnsuitableReport,
)
from server.administration.refusal import ActRefused
from server.store.collectors import TOKENS_MAX, StoredCollector, token_digest
from server.store.errors import CollectorClosed, NotThere, TokenRefused, TooManyTokens
from server.store.registry import Registry

if TYPE_CHECKING:
    from mechanisms.local.encoder import LocalEncoder
    from mechanisms.local.estimates import Estimates
    from mechanisms.local.postprocess import Postprocess

__all__ = ["COLLECTOR", "DOMAIN_MAX", "MISSING", "Collectors", "OpenCollector", "Report", "encoder_for"]

COLLECTOR = "collector"
"""In the description of a charge: the collector that it opened."""

DOMAIN_MAX = 100_000
"""Most values of a domain."""

VALUE_MAX = 200
"""Longest value of a domain."""

QUESTION_MAX = 1000
"""Longest question."""

MISSING = "(no answer)"
"""The value of those who give none, where the domain says nothing else: leaving it out would reveal who they are."""

_DELTA_NONE = Fraction(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenCollector:
    """A question with its public domain. `missing` adds a value for no answer; without `encoding` one is chosen."""

    question: str
    domain: tuple[str, ...]
    epsilon: Fraction
    missing: bool = True
    encoding: str | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """One randomised report with the token that it uses."""

    token: str = field(repr=False)
    numbers: tuple[int, ...]


def encoder_for(collector: StoredCollector) -> LocalEncoder:
    """The encoder of a collector: the same for its clients, its charge and its estimates."""
    from mechanisms.local.encodings import encoder_of

    return encoder_of(collector.encoding, size=len(collector.domain), epsilon=collector.epsilon)


@dataclass(frozen=True, slots=True)
class Collectors:
    """The acts on collectors. Every act raises ActRefused, or the errors of the ledger and of the registry."""

    ledger: Ledger
    registry: Registry

    def open(self, request: OpenCollector, *, actor: str) -> StoredCollector:
        """Charges the epsilon of a report to a new root, then opens the question. Refused: UnsuitableCollector.

        A server that dies in between leaves a root that was charged for a question nobody can answer.
        """
        from mechanisms.local.encodings import best_encoder, encoder_of

        domain = _domain(request)
        try:
            if request.encoding is None:
                encoder = best_encoder(size=len(domain), epsilon=request.epsilon)
            else:
                encoder = encoder_of(request.encoding, size=len(domain), epsilon=request.epsilon)
        except ValueError as error:
            raise ActRefused(UnsuitableCollector(_sentence(error), "See docs/collectors.md for the limits.")) from None
        identifier = f"c_{secrets.token_hex(10)}"
        account = self.ledger.create_account(
            dataset=f"{COLLECTOR}:{identifier}",
            parent=None,
            principal=None,
            name="root",
            limit=Limit(request.epsilon, _DELTA_NONE),
            filter=FilterKind.PURE,
            actor=actor,
        )
        made = StoredCollector(
            id=identifier,
            question=request.question,
            domain=domain,
            missing=MISSING if request.missing else None,
            encoding=encoder.name,
            epsilon=request.epsilon,
            account=account.id,
            created="",
            actor=actor,
        )
        self._charge(made, encoder)
        return self.registry.add_collector(made)

    def _charge(self, made: StoredCollector, encoder: LocalEncoder) -> None:
        """One event on the collector's root, settled at once: there is nothing to run."""
        law: dict[str, Json] = dict(encoder.law())
        described: dict[str, Json] = {COLLECTOR: made.id, "law": law, "domain": list(made.domain)}
        identity = json.dumps(described, sort_keys=True, separators=(",", ":")).encode()
        key = hashlib.sha256(identity).hexdigest()
        query_id = f"q_{secrets.token_hex(12)}"
        self.ledger.reserve(
            ReserveRequest(
                query_id=query_id,
                principal=made.actor,
                account=made.account,
                body_hash=key,
                cores=(CoreCharge(core_key=key, quality=made.epsilon, events=(encoder.event(),), lent=False),),
                reuse=Reuse.NONE,
                most=made.epsilon,
                description={COLLECTOR: made.id, "cores": [], "noise": encoder.name},
            )
        )
        self.ledger.post(query_id, (), _record(query_id, made, law))

    def one(self, identifier: str) -> StoredCollector:
        """The collector. Refused: NoCollector."""
        found = self.registry.collector(identifier)
        if found is None:
            raise ActRefused(NoCollector())
        return found

    def make_tokens(self, identifier: str, count: int, *, actor: str) -> tuple[str, ...]:
        """New single-use tokens, stored as digests. Refused: NoCollector, ClosedCollector, FullCollector."""
        tokens = tuple(f"ngt_{secrets.token_urlsafe(24)}" for _ in range(count))
        try:
            self.registry.add_tokens(identifier, [token_digest(identifier, token) for token in tokens], actor=actor)
        except NotThere:
            raise ActRefused(NoCollector()) from None
        except CollectorClosed:
            raise ActRefused(ClosedCollector()) from None
        except TooManyTokens:
            raise ActRefused(FullCollector(TOKENS_MAX)) from None
        return tokens

    def accept(self, identifier: str, reports: Sequence[Report]) -> None:
        """Counts reports, all or none, each under a token that was not used.

        Refused: NoCollector, ClosedCollector, UnsuitableReport, RefusedToken.
        """
        collector = self.one(identifier)
        encoder = encoder_for(collector)
        counts: Counter[int] = Counter()
        for place, report in enumerate(reports):
            if not encoder.is_report(report.numbers):
                raise ActRefused(UnsuitableReport(place, _rule(encoder)))
            counts.update(report.numbers)
        digests = [token_digest(identifier, report.token) for report in reports]
        try:
            self.registry.accept_reports(identifier, digests, counts)
        except NotThere:
            raise ActRefused(NoCollector()) from None
        except CollectorClosed:
            raise ActRefused(ClosedCollector()) from None
        except TokenRefused as refused:
            raise ActRefused(RefusedToken(refused.place, refused.used)) from None

    def close(self, identifier: str, *, actor: str) -> StoredCollector:
        """Takes no more reports; the charge stays, and so do the estimates. Refused: NoCollector."""
        try:
            return self.registry.close_collector(identifier, actor=actor)
        except NotThere:
            raise ActRefused(NoCollector()) from None

    def estimates(
        self, identifier: str, *, way: Postprocess, confidence: Fraction
    ) -> tuple[StoredCollector, Estimates]:
        """Shares of the values among the reports so far. Free. Refused: NoCollector, NoReports."""
        import numpy as np

        from mechanisms.local.estimates import estimate

        try:
            collector, counts = self.registry.collector_tally(identifier)
        except NotThere:
            raise ActRefused(NoCollector()) from None
        if collector.reports == 0:
            raise ActRefused(NoReports())
        encoder = encoder_for(collector)
        tally = np.zeros(encoder.tally_size, dtype=np.int64)
        if counts:
            tally[np.array(list(counts), dtype=np.int64)] = np.array(list(counts.values()), dtype=np.int64)
        return collector, estimate(encoder, tally, collector.reports, way=way, confidence=float(confidence))


def _record(query_id: str, made: StoredCollector, law: Json) -> bytes:
    """What the ledger keeps of the opening: an answer without a table, for whoever reads it among queries."""
    nothing: dict[str, Json] = {
        part: [] for part in ("columns", "rows", "standard_errors", "lows", "highs", "warnings")
    }
    charged: dict[str, Json] = {"budget": made.account, "epsilon": decimal_text(made.epsilon), "delta": "0"}
    record: dict[str, Json] = {
        "id": query_id,
        "status": "settled",
        **nothing,
        "confidence": 0.95,
        "accounting": {"charged": [charged], "reused": False, "remaining": {"epsilon": "0", "delta": "0"}},
        "provenance": {"releases": [], COLLECTOR: made.id, "law": law},
    }
    return json.dumps(record, separators=(",", ":")).encode()


def _domain(request: OpenCollector) -> tuple[str, ...]:
    """The values of the question, with that of no answer. Refused: UnsuitableCollector."""
    if not _clean(request.question, QUESTION_MAX):
        rule = f"A question has between 1 and {QUESTION_MAX} characters, no spaces around it and no control characters"
        raise ActRefused(UnsuitableCollector(rule, "Write the question in plain text."))
    domain = request.domain
    if request.missing and MISSING not in domain:
        domain = (*domain, MISSING)
    if not 2 <= len(domain) <= DOMAIN_MAX:
        rule = f"A domain has between 2 and {DOMAIN_MAX} values, and this one has {len(domain)}"
        raise ActRefused(UnsuitableCollector(rule, "List every possible answer once, or group rare ones."))
    for place, value in enumerate(domain):
        if not _clean(value, VALUE_MAX):
            rule = (
                f"Value {place} of the domain is not a text of 1 to {VALUE_MAX} characters without spaces around it "
                "and control characters"
            )
            raise ActRefused(UnsuitableCollector(rule, "Write each value in plain text."))
    seen: dict[str, int] = {}
    for place, value in enumerate(domain):
        # People read them: values that look alike would split one answer in two.
        first = seen.setdefault(unicodedata.normalize("NFKC", value).casefold(), place)
        if first != place:
            rule = f"Values {first} and {place} of the domain are the same, or differ in case or in form only"
            raise ActRefused(UnsuitableCollector(rule, "List every possible answer once."))
    return domain


def _clean(value: str, longest: int) -> bool:
    printable = all(unicodedata.category(letter) not in ("Cc", "Cs", "Zl", "Zp") for letter in value)
    return 1 <= len(value) <= longest and value == value.strip() and printable and storable(value)


def _sentence(error: ValueError) -> str:
    words = str(error)
    return words[:1].upper() + words[1:]


def _rule(encoder: LocalEncoder) -> str:
    """What a report of the encoder is."""
    one = f"A report of the encoding {encoder.name} over this domain"
    if encoder.name in ("randomised_response", "hadamard"):
        return f"{one} is one number from 0 to {encoder.report_max}."
    exactly = f"{encoder.report_bits // (encoder.size - 1).bit_length()} " if encoder.name == "subset_selection" else ""
    return f"{one} is a list of {exactly}different numbers from 0 to {encoder.report_max}, ascending."
