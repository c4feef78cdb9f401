"""Steps 2 and 3 of a question that stored releases make more of: its norms and value bounds, or its counts.

What is chosen follows from the text, declarations, the account and stored releases; no row is read for it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Protocol

from accountant.account import Account
from mechanisms.calibrate import part_of
from mechanisms.families import FAMILIES
from privacy.policy import Dataset
from privacy.refusal import Refused
from privacy.release import BoundsSource, NormSource
from server.answer_rows import from_stored
from server.journey.charges import HISTOGRAM_SERVES, charges_of, power_of
from server.journey.norms import choose_norms
from server.journey.preparing import Preparing
from server.journey.query import Prepared
from server.journey.quoting import Quoting
from server.journey.release_key import quality_of, release_key
from server.journey.reuse import Reusable, Stored, serves
from server.journey.sizes import Sizes
from server.journey.stages import by_counts, chooses_later_norms, refuse_width
from server.journey.value_stage import Told
from server.question import Question
from sql_rewrite.norms import norm_key

__all__ = ["Served", "StoredChoices"]


class Served(Protocol):
    """Where the journey finds datasets and their snapshots."""

    def get(self, name: str) -> Dataset | None:
        """The dataset of that name at its current version."""

    def snapshot(self, dataset: Dataset) -> Path:
        """The file of its rows."""

    def earlier_data(self, dataset: Dataset) -> Sequence[str]:
        """Versions of its data before this one, the latest first: a few."""


class StoredChoices:
    """Prepares questions with what is stored of the norms, bounds and counts that they ask for."""

    def __init__(self, *, served: Served, preparing: Preparing, stored: Stored, sizes: Sizes) -> None:
        self._served = served
        self._preparing = preparing
        self._stored = stored
        self._sizes = sizes

    def prepared(
        self, question: Question, dataset: Dataset, path: tuple[Account, ...]
    ) -> tuple[Question, Prepared, bool]:
        """Steps 2 and 3; where a width is asked for, at the norms that stored histograms choose. Errors: Refused.

        The question has a half width in place of a relative one. Last, whether its width can be priced: it cannot
        before histograms are bought that nobody stored.

        A width is promised before the charge, so its norm must be known by then. There a histogram of older data may
        choose it as well: then nothing is known of what is cut.
        """
        prepared = self._preparing.prepare(question, dataset, power_of(question, path[0]))
        if chooses_later_norms(question, prepared):
            # Its histogram would read released numbers, and a width is promised before there are any.
            prepared = self._preparing.prepare(by_counts(question, dataset), dataset, power_of(question, path[0]))
        refuse_width(question, prepared)
        if prepared.counted is not None and (question.half_width is not None or question.relative is not None):
            prepared = prepared.counted  # a choice of keys has no width
        question = self._sizes.resolved(question, prepared)
        if question.half_width is None:
            return question, prepared, True
        prepared = self.at_bounds(question, prepared, path)
        if prepared.values is not None:
            return question, prepared, False
        if not any(prepared.histograms):
            return question, prepared, True
        priced = Quoting(question, prepared, path).priced_by_default()
        reusable = Reusable(self._stored, question, dataset, (), path[0], cores=0)
        earlier = [replace(prepared.plan.dataset, data_version=one) for one in self._served.earlier_data(dataset)]
        chosen = {}
        for core, histogram in zip(prepared.cores, prepared.histograms, strict=True):
            if histogram is None:
                continue
            keys = [histogram.key, *(norm_key(core, of_data) for of_data in earlier)]
            found = [
                (reusable.histogram([release_key(key, family, delta=Fraction(0)) for family in FAMILIES]), key)
                for key in keys
            ]
            release, key = next(((one, key) for one, key in found if one is not None), (None, ""))
            if release is None:
                return question, prepared, False
            table = from_stored(release.body, histogram.described.name, question.confidence)
            chosen[core.described.name] = choose_norms(
                core, priced.calibration, table, source=NormSource.STORED, same_data=key == histogram.key
            )
        return question, self._preparing.at_norms(prepared, chosen), True

    def counted(self, question: Question, prepared: Prepared, path: tuple[Account, ...]) -> Prepared:
        """The query by counts, where stored ones answer it for free and no stored choice does; else as it is.

        What counts answered once they go on answering. Which of the two answers follows from the text, the account and
        what is stored.
        """
        counted = prepared.counted
        if counted is None or counted.values is not None:
            return prepared
        for one in (prepared, counted):
            with contextlib.suppress(Refused):
                charges = charges_of(one, Quoting(question, one, path).price())
                dataset, cores = one.plan.dataset, len(one.cores)
                if all(Reusable(self._stored, question, dataset, charges, path[0], cores=cores).serve()):
                    return one
        return prepared

    def at_bounds(self, question: Question, prepared: Prepared, path: tuple[Account, ...]) -> Prepared:
        """The query at the value bounds that stored histograms choose; as it is where some of them are not stored.

        Errors: Refused, as the query itself would be for its price.
        """
        stage = prepared.values
        if stage is None:
            return prepared
        quoting = Quoting(question, prepared, path)
        priced = quoting.priced_by_default() if question.half_width is not None else quoting.price()
        assert priced is not None
        reusable = Reusable(self._stored, question, prepared.plan.dataset, (), path[0], cores=0)
        told = []
        for place, histogram in enumerate(stage.histograms):
            described = histogram.bounded.described
            part = part_of(described, prepared.priced)
            found = [
                release
                for price in priced.enough
                for release in [reusable.histogram([stage.release_key(place, price.family)])]
                if release is not None and serves(release, quality_of(price, part) * HISTOGRAM_SERVES)
            ]
            if not found:
                return prepared
            told.append(Told(from_stored(found[0].body, described.name, question.confidence), BoundsSource.STORED))
        if question.half_width is not None:
            return self._preparing.at_bounds(prepared, priced.calibration, told, promised=True)
        norms = {}
        for core, one in zip(prepared.cores, prepared.histograms, strict=True):
            if one is None or core.described.name in stage.stepped:
                continue
            release = reusable.histogram([one.release_key(family) for family in FAMILIES])
            if release is not None:
                norms[core.described.name] = from_stored(release.body, one.described.name, question.confidence)
        return self._preparing.at_bounds(prepared, priced.calibration, told, promised=False, norms=norms)
