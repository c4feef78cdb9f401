"""Value bounds that a model chooses for features that have none: what that costs, and what is chosen.

A quarter of the model's price buys a noisy histogram of each column's values (mechanisms/value_bounds.md), in the same
reservation as the model; what is left fits it. A histogram is stored and found again as that of any question: one that
is there serves for free. The bounds are a function of released histograms alone (mechanisms/private_descent.md, 7).
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from accountant.request import CoreCharge, Reuse, StoredRelease
from mechanisms.calibrate import VALUES_SHARE, Calibration, Price, calibrate, part_of
from mechanisms.families import NoiseFamily
from mechanisms.released_table import ReleasedTable
from mechanisms.value_bounds import BoundsChoice
from privacy.bounds import ValueBounds
from privacy.events import Event
from privacy.numbers import decimal_text
from privacy.policy import Dataset, Sharing
from privacy.release import BoundsNote, BoundsSource
from privacy.statement import Statement
from privacy.value_grid import values_name
from privacy.values import Json
from server import answer_rows
from server.journey.charges import HISTOGRAM_SERVES
from server.journey.release_key import quality_of, release_key
from server.journey.value_bounds import bounds_note, chosen_by
from sql_rewrite.automatic_bounds import Place
from sql_rewrite.dialects.dialect import Dialect
from sql_rewrite.plan_key import core_key
from sql_rewrite.training import Training
from sql_rewrite.value_histogram import ValueHistogram, lower_histogram, value_histogram

__all__ = ["BoundsStage", "Histograms", "bounds_json", "histograms_of", "left_for_model", "reuse_of"]

_FAMILY = NoiseFamily.GAUSSIAN


@dataclass(frozen=True, slots=True)
class Histograms:
    """The histograms that a model needs: of each column without bounds, its statement and what it asks."""

    places: tuple[Place, ...]
    histograms: tuple[ValueHistogram, ...]
    statements: tuple[Statement, ...]
    keys: tuple[str, ...]

    def priced(self, mu_squared: Fraction) -> BoundsStage:
        """The histograms beside a model, both for so much. Errors: ValueError for noise out of range."""
        price = Price(_FAMILY, mu_squared, Fraction(0))
        return BoundsStage(self, price, calibrate([one.bounded.described for one in self.histograms], price))


@dataclass(frozen=True, slots=True)
class BoundsStage:
    """The histograms of a model with their noise. `price` is that of the model with them."""

    of: Histograms
    price: Price
    calibration: Calibration

    @property
    def charges(self) -> tuple[CoreCharge, ...]:
        """What the ledger is asked for: a stored histogram of a quarter of the quality serves, as in a question."""
        cores = self.calibration.cores
        found = []
        for core, key in zip(cores, self.of.keys, strict=True):
            quality = quality_of(self.price, part_of(core, cores))
            found.append(
                CoreCharge(
                    core_key=key,
                    quality=quality,
                    events=self.calibration.events_of(core.name),
                    serving=((key, quality * HISTOGRAM_SERVES),),
                    lent=False,
                )
            )
        return tuple(found)

    def events(self, served: Mapping[str, StoredRelease]) -> tuple[Event, ...]:
        """What is charged for the histograms that nothing stored serves."""
        return tuple(event for charge in self.charges if charge.core_key not in served for event in charge.events)

    def release(
        self, place: int, table: ReleasedTable, *, principal: str, dataset: str, query_id: str
    ) -> StoredRelease:
        """A fresh histogram as it is stored."""
        charge = self.charges[place]
        return StoredRelease(
            id=f"r_{secrets.token_hex(12)}",
            core_key=charge.core_key,
            quality=charge.quality,
            principal=principal,
            dataset=dataset,
            query_id=query_id,
            events=charge.events,
            body=answer_rows.to_stored(table),
        )

    def chosen(
        self, tables: Sequence[ReleasedTable], *, columns: int, mu_squared: Fraction
    ) -> dict[Place, BoundsChoice]:
        """The bounds that the histograms choose: a function of what was released, and of public facts.

        They minimise what clipping and noise do together to the mean of the column, with the noise that one coordinate
        of `columns` has in a mean of encoded rows for `mu_squared`: half the width is one in an encoded row.
        Errors: ExecutionFailed for a table of something else.
        """
        noise = math.sqrt(columns) / (2 * math.sqrt(float(mu_squared)))
        return {
            place: chosen_by(histogram, table, noise=noise, from_zero=False, cells=1)
            for place, histogram, table in zip(self.of.places, self.of.histograms, tables, strict=True)
        }

    def notes(
        self, used: Mapping[Place, ValueBounds], choices: Mapping[Place, BoundsChoice], sources: Sequence[BoundsSource]
    ) -> tuple[BoundsNote, ...]:
        """What the answer says of each column."""
        return tuple(
            bounds_note(place, used[place], histogram.column.type, source, choices[place])
            for place, histogram, source in zip(self.of.places, self.of.histograms, sources, strict=True)
        )


def histograms_of(training: Training, dataset: Dataset, dialect: Dialect) -> Histograms | None:
    """The histograms of the columns whose bounds are open; None where none is."""
    if not training.open:
        return None
    histograms = tuple(
        value_histogram(values_name(number), table, column, dataset)
        for number, (table, column) in enumerate(training.open)
    )
    return Histograms(
        training.open,
        histograms,
        tuple(lower_histogram(one, dialect) for one in histograms),
        tuple(release_key(core_key(one.bounded, dataset), _FAMILY, delta=Fraction(0)) for one in histograms),
    )


def left_for_model(mu_squared: Fraction, histograms: Histograms | None) -> Fraction:
    """What of a price fits the model: all of it where no histogram is bought beside it."""
    return mu_squared if histograms is None else mu_squared * (1 - VALUES_SHARE)


def reuse_of(dataset: Dataset) -> Reuse:
    """Which stored histograms serve a model: others' only where the policy shares them for free."""
    return Reuse.ANY if dataset.limits.releases_shared is Sharing.FREE else Reuse.OWN


def bounds_json(notes: Sequence[BoundsNote]) -> list[Json]:
    """Chosen bounds as an answer has them; of an estimate, before there are any, their columns alone."""
    share = decimal_text(VALUES_SHARE / max(1, len(notes)), places=6)
    return [
        {
            "table": note.table,
            "column": note.column,
            "lower": note.lower or None,
            "upper": note.upper or None,
            "source": note.source.value,
            "certain": note.certain,
            "share": share if note.source is BoundsSource.CHOSEN else "0",
            "cut": None if note.share is None or note.error is None else {"share": note.share, "error": note.error},
        }
        for note in notes
    ]
