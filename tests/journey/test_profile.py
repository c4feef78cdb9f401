"""A profile of real data: charged once on the root, published, refused a second time, opaque when it fails."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from accountant.account import Account, FilterKind, Limit
from accountant.request import StoredRelease
from accountant.states import QueryStatus
from engines.private import PrivateEngine
from privacy.refusal import ExecutionFailed
from server.administration import profile_refusals as refusals
from server.administration import profiles as profiles_module
from server.administration.budgets import root_of
from server.administration.profiles import ProfileDataset, Profiles
from server.administration.refusal import ActRefused, NoDataset, Refusal
from server.services import Services
from tests.journey.clinic import attach, clinic_in, services_of

FILTER = {FilterKind.APPROXIMATE: Fraction(1, 10**5), FilterKind.PURE: Fraction(0)}


def _root(services: Services, dataset: str, *, epsilon: str = "20", kind: FilterKind = FilterKind.APPROXIMATE) -> str:
    limit = Limit(Fraction(epsilon), FILTER[kind])
    return services.ledger.create_account(
        dataset=dataset, parent=None, principal=None, name="root", limit=limit, filter=kind, actor="test"
    ).id


def _profiles(services: Services) -> Profiles:
    assert isinstance(services.profiles, Profiles)
    return services.profiles


def _attach(services: Services, home: Path, text: str, rows: str) -> None:
    (home / "small.csv").write_text(rows)
    path = home / "small.yaml"
    path.write_text(text)
    attach(services, path)


@contextlib.contextmanager
def _refused(kind: type[Refusal]) -> Iterator[None]:
    with pytest.raises(ActRefused) as caught:
        yield
    assert type(caught.value.refusal) is kind


def _by_name(items: list[dict[str, Any]], name: str) -> dict[str, Any]:
    return next(item for item in items if item["name"] == name)


def _has(told: dict[str, Any], true: float) -> bool:
    """Whether the interval has the true value, with room for the one time in twenty, when it may be narrow as well."""
    room = max(told["high"] - told["low"], true / 10)
    return bool(told["low"] - room <= true <= told["high"] + room)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Services, dict[str, Any], Account]]:
    """Services with a clinic that has a profile, the profile, and its root before it."""
    with clinic_in(tmp_path_factory.mktemp("profiled")) as (services, _):
        _root(services, "clinic")
        before = root_of(services.ledger.accounts(dataset="clinic"))
        assert before is not None
        profile = services.profiles.make(ProfileDataset("clinic", Fraction(2)), actor="owner")
        yield services, json.loads(json.dumps(profile)), before


def test_what_it_says_is_near_the_truth(made: tuple[Services, dict[str, Any], Account]) -> None:
    """Units, rows, quantiles, keys and NULL of the clinic's 3,000 people, whose figures are known."""
    tables = made[1]["tables"]
    people, visits = _by_name(tables, "people"), _by_name(tables, "visits")
    assert _has(people["units"], 3_000)
    assert people["rows"] == people["units"]
    assert _has(visits["units"], 3_000)
    assert _has(visits["rows"], 7_500)
    median = visits["rows_per_unit"][0]
    assert median["low"] <= 3 <= median["high"] + 1
    age = _by_name(people["columns"], "age")
    assert [one["level"] for one in age["quantiles"]] == [0.05, 0.25, 0.5, 0.75, 0.95]
    assert abs(age["quantiles"][2]["value"] - 54) < 12
    sizes = {one["key"]: one["units"] for one in _by_name(people["columns"], "sex")["keys"]}
    assert set(sizes) == {"female", "male", None}
    assert _has(sizes["female"], 1_500)
    assert _by_name(people["columns"], "town")["quantiles"] is None
    assert _has(_by_name(people["columns"], "town")["null"], 0)
    assert _by_name(people["columns"], "income")["quantiles"] is not None


def test_the_root_pays_once_by_the_ordinary_path(made: tuple[Services, dict[str, Any], Account]) -> None:
    """A settled query of the ledger with releases, charged on the root and nowhere else; the audit agrees."""
    services, profile, before = made
    record = services.ledger.query(profile["query"])
    assert record is not None
    assert record.state is QueryStatus.SETTLED
    assert [one.account for one in record.charged] == [before.id]
    assert abs(record.charged[0].epsilon - 2) < Fraction(1, 10**6)
    releases = services.ledger.releases_of(profile["query"])
    assert sorted(release.core_key for release in releases) == sorted(record.core_keys)
    assert len(releases) == 2
    assert all(isinstance(release, StoredRelease) and release.principal == "owner" for release in releases)
    assert services.ledger.audit().ok


def test_it_is_published_and_read_for_free(made: tuple[Services, dict[str, Any], Account]) -> None:
    """The same bytes for whoever reads the dataset, also in another process, and nothing more is charged."""
    services, profile, _ = made
    dataset = services.catalogue.get("clinic")
    assert dataset is not None
    left = services.ledger.standing(profile_root(services)).remaining_epsilon()
    assert services.profiles.of(dataset) == profile
    again = _profiles(services)
    other = Profiles(again.ledger, again.served, again.private, again.twins, again.bits, again.pace)
    assert other.of(dataset) == profile
    assert services.ledger.standing(profile_root(services)).remaining_epsilon() == left
    assert services.profiles.of(replace(dataset, data_version="other")) is None


def profile_root(services: Services) -> str:
    """The root of the clinic."""
    root = root_of(services.ledger.accounts(dataset="clinic"))
    assert root is not None
    return root.id


@pytest.mark.slow
def test_a_second_one_is_refused(made: tuple[Services, dict[str, Any], Account]) -> None:
    """With what stands there, and no charge."""
    services, profile, _ = made
    left = services.ledger.standing(profile_root(services)).remaining_epsilon()
    with pytest.raises(ActRefused) as caught:
        services.profiles.make(ProfileDataset("clinic", Fraction(1)), actor="somebody")
    refused = caught.value.refusal
    assert isinstance(refused, refusals.ProfiledAlready)
    assert refused.epsilon == "2"
    assert refused.data_version == profile["data_version"]
    assert services.ledger.standing(profile_root(services)).remaining_epsilon() == left


SMALL = """\
version: 2
dataset: small
unit: {table: people, key: id}
tables:
  people:
    source: {file: small.csv}
    key: id
    columns:
      id: {type: integer, nullable: false}
      age: {type: integer, bounds: [0, 100]}
      size: {type: number}
      kind: {type: text, keys: [a, b]}
      day: {type: date}
"""
HEAD = "id,age,size,kind,day\n"


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Callable[[str], Services]]:
    """Services with a small dataset of these rows."""
    with contextlib.ExitStack() as stack:

        def start(rows: str) -> Services:
            home = tmp_path / "home"
            home.mkdir()
            services = stack.enter_context(services_of(home))
            _attach(services, tmp_path, SMALL, HEAD + rows)
            return services

        yield start


@pytest.mark.slow
def test_no_units_and_nothing_but_null(small: Callable[[str], Services]) -> None:
    """Nobody, or columns without a value: numbers near zero, and null for what nothing can be said of."""
    services = small("1,,,,\n")
    _root(services, "small", epsilon="1000")
    for _ in range(8):
        (people,) = services.profiles.make(ProfileDataset("small", Fraction(1)), actor="owner")["tables"]  # type: ignore[misc]
        if people["units"]["low"] == 0:
            break  # as in 19 of 20 profiles at least: these are intervals of 95%
    assert people["units"]["low"] == 0
    for column in people["columns"]:
        assert column["quantiles"] is None
        assert column["null"] is None


@pytest.mark.slow
def test_a_pure_account_pays_in_epsilon(small: Callable[[str], Services]) -> None:
    """With Laplace noise, whose sums have longer tails; the charge is the epsilon that was asked for."""
    services = small("".join(f"{n},{n % 90},{n}.5,a,2020-01-01\n" for n in range(500)))
    root = _root(services, "small", kind=FilterKind.PURE, epsilon="200")
    profile = services.profiles.make(ProfileDataset("small", Fraction(1)), actor="owner")
    assert profile["noise"] == "laplace"
    assert services.ledger.standing(root).remaining_epsilon() == 199


@pytest.mark.slow
def test_refusals_before_a_charge(small: Callable[[str], Services], monkeypatch: pytest.MonkeyPatch) -> None:
    """No dataset, no root, more than the policy allows or than is left: nothing is charged."""
    services = small("1,2,3,a,2020-01-01\n")
    make = services.profiles.make
    with _refused(NoDataset):
        make(ProfileDataset("smal", Fraction(1)), actor="owner")
    with _refused(refusals.RootNeeded):
        make(ProfileDataset("small", Fraction(1)), actor="owner")
    root = _root(services, "small", epsilon="1")
    with _refused(refusals.UnpricedProfile):
        make(ProfileDataset("small", Fraction(50)), actor="owner")
    with _refused(refusals.UnpricedProfile):
        make(ProfileDataset("small", Fraction(1, 10**12)), actor="owner")
    with monkeypatch.context() as few:
        few.setattr(profiles_module, "TABLES_MAX", 0)
        with _refused(refusals.UnpricedProfile):
            make(ProfileDataset("small", Fraction(1)), actor="owner")
    services.ledger.change_limit(root, Limit(Fraction(1, 2), Fraction(1, 10**5)), actor="test", reason="less")
    with _refused(refusals.UnaffordableProfile):
        make(ProfileDataset("small", Fraction(1)), actor="owner")
    assert services.ledger.standing(root).remaining_epsilon() == Fraction(1, 2)


@pytest.mark.slow
def test_a_failure_is_opaque_charged_and_may_be_tried_again(
    small: Callable[[str], Services], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The engine fails: one refusal for every cause, after the visible moment; the charge stays. The next try works."""
    services = small("1,2,3,a,2020-01-01\n")
    root = _root(services, "small")
    profiles = _profiles(services)
    waited: list[float] = []
    monkeypatch.setattr(profiles.pace, "sleep", waited.append)

    def fails(self: PrivateEngine, *arguments: object, **options: object) -> None:
        raise ExecutionFailed(started=False)

    with monkeypatch.context() as broken:
        broken.setattr(PrivateEngine, "run", fails)
        with pytest.raises(ActRefused) as caught:
            profiles.make(ProfileDataset("small", Fraction(1)), actor="owner")
    assert caught.value.refusal == refusals.ProfileFailed("small", charged=True)
    assert len(waited) == 1
    assert waited[0] > 0
    assert services.ledger.standing(root).remaining_epsilon() < 20
    dataset = services.catalogue.get("small")
    assert dataset is not None
    assert profiles.of(dataset) is None
    profiles.make(ProfileDataset("small", Fraction(1)), actor="owner")
    assert profiles.of(dataset) is not None
    assert len(waited) == 2


@pytest.mark.slow
def test_a_profile_that_is_being_made_is_not_begun_twice(
    small: Callable[[str], Services], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both would pay, and one would be for nothing."""
    services = small("1,2,3,a,2020-01-01\n")
    _root(services, "small")
    profiles = _profiles(services)
    seen: list[type[Refusal]] = []
    run = PrivateEngine.run

    def meanwhile(self: PrivateEngine, *arguments: Any, **options: Any) -> object:
        with pytest.raises(ActRefused) as caught:
            profiles.make(ProfileDataset("small", Fraction(1)), actor="other")
        seen.append(type(caught.value.refusal))
        return run(self, *arguments, **options)

    monkeypatch.setattr(PrivateEngine, "run", meanwhile)
    profiles.make(ProfileDataset("small", Fraction(1)), actor="owner")
    assert seen == [refusals.ProfileRunning]
