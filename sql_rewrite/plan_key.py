"""Equal plans: one text for all spellings of one private question, and one identity for the releases that answer it.

Two cores with the same key ask for the same statistics of the same rows, so a stored release of one answers the
other. Aliases, order of keys and aggregates, ORDER BY, LIMIT and everything else of the shell do not take part.

**What is inside.** The meaning of a released number depends on the dataset's declarations, but only on those that its
plan read: types, value bounds, keys, nullability, references, the unit, and contribution bounds, declared or asked for.
They are not listed here, for a list can miss one. The statement that runs on the rows is a function of the bounded
core alone (`lower`), and so are encodings, sensitivities, cells and estimates (`BoundedCore.described`). So the key
holds the bounded core as it is, field by field, with

- each expression in its canonical form, and what the policy declares about each column that it reads;
- each table that it reads with everything that is declared about the table itself, but not its columns one by one;
- nothing of what is only shown to people: descriptions, positions, the texts of aggregates and arguments, the core's
  own name (its place in its query).

A new field of a bounded core is inside by itself. A declaration that changes nothing of this cannot have changed a
number's meaning: a description, a table or column that the plan does not read, a limit of one query. Besides there are
the version of the data (other rows under the same plan), the dataset's name and unit, the neighbouring relation, and
`VERSION`, to be raised when the same bounded core is lowered or released with another meaning. Noise and price are not
inside: the ledger compares them.
"""

from __future__ import annotations

import dataclasses
import datetime
import enum
import hashlib
import json
from collections.abc import Callable, Mapping
from fractions import Fraction
from operator import attrgetter
from types import NoneType

from privacy.norms import Norm
from privacy.policy import Dataset, Table
from privacy.rank_tree import Drawn, QuantileMechanism
from privacy.statistic import CoreStatistics, Estimate, Keys, Statistic
from sql_rewrite.bounded import BoundedCore, BoundedStatistic
from sql_rewrite.contribution import NormedContribution
from sql_rewrite.expressions import Call, ColumnRef, Expression, Literal, canonical, form_of
from sql_rewrite.plan import (
    Aggregate,
    Chosen,
    Constants,
    Core,
    Join,
    Source,
    UnitBranch,
    UnitGroups,
    UnitPlace,
    UnitRows,
    UnitUnion,
    UnitValue,
    WindowFrame,
)

__all__ = [
    "VERSION",
    "canonical_branch",
    "canonical_core",
    "canonical_groups",
    "canonical_union",
    "canonical_windows",
    "core_key",
    "identity_key",
    "norm_key",
]

VERSION = 2
"""Of the identity. Version 1 held the number of the whole policy, and the plan without its bounds."""

_OUTSIDE: dict[type, frozenset[str]] = {
    Aggregate: frozenset({"position", "text"}),
    BoundedCore: frozenset({"domains"}),
    ColumnRef: frozenset({"shown", "calendar"}),
    Core: frozenset({"name", "levels", "quantiles", "running"}),
    CoreStatistics: frozenset({"name", "levels", "running"}),
    Keys: frozenset({"domain"}),
    Norm: frozenset({"text"}),
    Statistic: frozenset({"argument"}),
    Table: frozenset({"columns", "description", "stored_norms", "stored_totals", "stored_units", "drawn"}),
}
"""Fields that only people read, those by which the same numbers are found sooner, and the cells, which are hashed
apart: there may be a hundred thousand.

By which mechanism quantiles are asked for is what its statistics draw (`Drawn.method`): by name or not, the same
numbers have one identity.

The levels and running sums that are read change the noise, not what is asked of the rows: the key of a release has them
(`server/journey/release_key.py`)."""

_LATER: dict[type, Mapping[str, object]] = {
    Aggregate: {"distinct": False, "second": None, "fraction": None},
    BoundedCore: {"norms": ()},
    BoundedStatistic: {"parts": 0, "distinct": None, "second": None},
    Core: {"choice": None, "counted": False, "met": (), "atoms": None},
    CoreStatistics: {"norms": (), "choice": None},
    Drawn: {"method": QuantileMechanism.EXPONENTIAL, "blocks": 0},
    Estimate: {"fraction": None},
    Constants: {"stored": False},
    Join: {"on_unit": False, "also": (), "most": 1, "tried": 1, "when": None},
    Source: {"groups": None, "only": None, "union": None, "constants": None, "windows": None},
    UnitPlace: {"ignores_null": False},
    UnitValue: {"by": None, "fraction": None},
    WindowFrame: {"by": "", "exclude": ""},
    Statistic: {
        "norm": None,
        "distinct": False,
        "second": None,
        "second_degree": 0,
        "tree": None,
        "drawn": None,
        "parts": 1,
    },
}
"""Fields that were added later, with the value that older plans have: with that value they do not count."""

_ESTIMATE_KIND = "EstimateKind"
"""The type of an estimate's aggregate in identities: stored ones were made when estimates had an enum of their own."""

_ALWAYS: dict[type, Mapping[str, int]] = {Statistic: Statistic.GONE}
"""Removed fields still count: what was released while they existed keeps its identity."""


def _inside(kind: type) -> tuple[str, ...]:
    """The fields of a dataclass that take part."""
    outside = _OUTSIDE.get(kind, frozenset())
    return tuple(field.name for field in dataclasses.fields(kind) if field.name not in outside)


def canonical_core(core: Core) -> tuple[object, ...]:
    """A nested tuple that is equal for equal cores, whatever their names."""
    return (
        tuple(map(_canonical_source, core.sources)),
        form_of(core.where),
        tuple(form_of(key) for _, key in core.keys),
        tuple(
            (
                a.function.value,
                *map(form_of, (a.argument, a.filter)),
                a.distinct,
                *([form_of(a.second)] if a.second else []),
                *([] if a.fraction is None else [str(a.fraction)]),
            )
            for a in core.aggregates
        ),
        *([] if core.choice is None else [_canonical_choice(core.choice)]),
        *([] if not core.met else [tuple(map(form_of, core.met))]),
        *([] if core.atoms is None else [("atoms", core.atoms)]),
    )


def _canonical_choice(choice: Chosen) -> tuple[object, ...]:
    score = choice.score
    asked = score.function.value, *map(form_of, (score.argument, score.filter))
    return (*asked, choice.count, choice.within, choice.least)


def _canonical_source(source: Source) -> tuple[object, ...]:
    join = source.join
    return (
        source.relation,
        source.table.name.lower(),
        None if join is None else _canonical_join(join),
        None if source.groups is None else canonical_groups(source.groups),
        form_of(source.only),
        *([] if source.union is None else [canonical_union(source.union)]),
        *([] if source.constants is None else [repr(source.constants)]),
        *([] if source.windows is None else [canonical_windows(source.windows)]),
    )


def canonical_union(union: UnitUnion) -> tuple[object, ...]:
    """A nested tuple that is equal for equal unions of units' rows."""
    return tuple(map(canonical_branch, union.branches))


def canonical_branch(branch: UnitBranch) -> tuple[object, ...]:
    """The same of one branch."""
    return (
        tuple(map(_canonical_source, branch.sources)),
        form_of(branch.where),
        tuple(map(form_of, branch.columns)),
    )


def _canonical_join(join: Join) -> tuple[object, ...]:
    also = tuple((form_of(child), form_of(parent)) for child, parent in join.also)
    many = [] if join.most == join.tried == 1 else [(join.most, join.tried)]
    when = [] if join.when is None else [("when", form_of(join.when))]
    return (form_of(join.child), form_of(join.parent), join.outer, join.on_unit, *also, *many, *when)


def canonical_windows(windows: UnitRows) -> tuple[object, ...]:
    """The same of rows with windows, whichever of their columns are read."""
    return (
        tuple(map(_canonical_source, windows.sources)),
        form_of(windows.where),
        tuple(name for name, _ in windows.cells),
        tuple(window.name for window in windows.windows),
        tuple(sorted(name for name, _ in windows.columns)),
    )


def canonical_groups(groups: UnitGroups) -> tuple[object, ...]:
    """A nested tuple that is equal for equal groups of units' rows. Which columns are read of them is no matter."""
    return (
        tuple(map(_canonical_source, groups.sources)),
        form_of(groups.where),
        tuple(sorted(repr(form_of(key)) for _, key in groups.keys)),
        tuple(sorted(value.name for value in groups.values)),
        form_of(groups.having),
        tuple(sorted(name for name, _ in groups.columns)),
    )


def core_key(bounded: BoundedCore, dataset: Dataset) -> str:
    """The identity of a core's release: SHA-256 (hex) over everything that gives its numbers their meaning.

    Of a core whose units are scaled to norms it is that of the nominal ones: whichever the question chooses, what is
    stored answers the same question again.
    """
    assert not isinstance(bounded.contribution, NormedContribution) or bounded.contribution.nominal
    return _key(bounded, bounded, dataset)


def norm_key(bounded: BoundedCore, dataset: Dataset) -> str:
    """The identity of the histogram of a core's norms: of the rows, cells and norms, whatever the aggregates are."""
    assert isinstance(bounded.contribution, NormedContribution)
    assert bounded.norms
    core = dataclasses.replace(bounded.core, aggregates=())
    contribution = dataclasses.replace(bounded.contribution, norms=())
    return _key(("norms", core, contribution, bounded.norms, bounded.described.keys), bounded, dataset)


def _key(what: object, bounded: BoundedCore, dataset: Dataset) -> str:
    return identity_key(what, dataset, cells=(bounded.domains, bounded.described.keys.domain))


def identity_key(what: object, dataset: Dataset, *, cells: object = None) -> str:
    """SHA-256 (hex) over values of a plan, over what is declared of the columns that they read, and over the data.

    `cells` are hashed as they are printed: there may be a hundred thousand. Errors: TypeError for what has no place in
    an identity.
    """
    identity = _Identity()
    body = _as_text(
        {
            "bounded": identity.plain(what),
            "data": dataset.data_version,
            "dataset": dataset.name,
            "read": sorted(identity.read),
            "relation": dataset.neighbouring.value,
            "unit": identity.plain(dataset.unit),
            "version": VERSION,
        }
    )
    digest = hashlib.sha256(body.encode())
    digest.update(repr(cells).encode())
    return digest.hexdigest()


_as_text = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode


class _Identity:
    """Values as JSON that is equal for equal values of equal types only; collects what is declared about columns."""

    def __init__(self) -> None:
        self.read: set[str] = set()
        self._noted: set[int] = set()
        """The columns that are in `read`, by identity: what is written holds them all, so none is gone meanwhile."""

    def plain(self, value: object) -> object:
        """One value. Errors: TypeError for a kind of value that has no place in an identity."""
        return _WRITERS[type(value)](self, value)

    def expression(self, value: Expression) -> object:
        """An expression in its canonical form, which holds names and types, with what is declared of its columns."""
        noted = self._noted
        parts = [value]
        for part in parts:  # which grow meanwhile
            if type(part) is Call:
                parts += part.arguments
            elif type(part) is ColumnRef and id(part) not in noted:
                noted.add(id(part))
                declared = dict(zip(_DECLARED, _declared(part), strict=True))
                declared["name"] = part.name.lower()
                self.read.add(repr(list(declared.items())))
        return canonical(value)


_DECLARED = sorted(_inside(ColumnRef))
_declared = attrgetter(*_DECLARED)


_Writer = Callable[[_Identity, object], object]


class _Writers(dict[type, _Writer]):
    """What writes the values of a type, for the types that have been met."""

    def __missing__(self, kind: type) -> _Writer:
        found = self[kind] = _writer(kind)
        return found


_WRITERS = _Writers()


def _writer(kind: type) -> _Writer:
    """What writes the values of a type. Errors: TypeError."""
    if issubclass(kind, (NoneType, bool, int, str)):
        return _itself
    if issubclass(kind, enum.Enum):
        return _member
    if issubclass(kind, (float, Fraction, datetime.date)):
        return lambda identity, value: [kind.__name__, repr(value)]
    if issubclass(kind, (tuple, list)):
        return _items
    if issubclass(kind, (ColumnRef, Literal, Call)):
        return _expression
    if dataclasses.is_dataclass(kind):
        return _record_writer(kind)
    raise TypeError(f"a {kind.__name__} has no place in an identity")


_value = attrgetter("value")

_ITSELF = frozenset({NoneType, bool, int, str})
"""Types whose values are written as they are."""


def _itself(_: _Identity, value: object) -> object:
    assert value is None or isinstance(value, (bool, int, str))
    return value


def _member(_: _Identity, value: object) -> object:
    return [type(value).__name__, _value(value)]


def _items(identity: _Identity, value: object) -> object:
    assert isinstance(value, (tuple, list))
    return [item if (kind := type(item)) in _ITSELF else _WRITERS[kind](identity, item) for item in value]


def _expression(identity: _Identity, value: object) -> object:
    assert isinstance(value, (ColumnRef, Literal, Call))
    return identity.expression(value)


def _reader(names: tuple[str, ...]) -> Callable[[object], tuple[object, ...]]:
    """What reads fields of a value, all at once where there are several."""
    return attrgetter(*names) if len(names) > 1 else lambda value: tuple([getattr(value, name) for name in names])


def _record_writer(kind: type) -> _Writer:
    """What writes the values of a dataclass: the fields that take part."""
    later, always = _LATER.get(kind, {}), _ALWAYS.get(kind, {})
    # In the order of the names, in which they are written in the end.
    names = tuple(sorted(_inside(kind)))
    read, called = _reader(names), kind.__name__

    def write(identity: _Identity, value: object) -> object:
        fields: dict[str, object] = {}
        for name, one in zip(names, read(value), strict=True):
            if name in later and one == later[name]:
                continue
            of = type(one)
            fields[name] = one if of in _ITSELF else _WRITERS[of](identity, one)
        if always:
            fields.update(always)
        return [called, fields]

    if kind is not Estimate:
        return write

    def write_estimate(identity: _Identity, value: object) -> object:
        assert isinstance(value, Estimate)
        written = write(identity, value)
        assert isinstance(written, list)
        assert isinstance(written[1], dict)
        written[1]["kind"] = [_ESTIMATE_KIND, value.kind.value]
        return written

    return write_estimate
