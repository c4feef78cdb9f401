"""Between price and reservation an account may pay for other queries: nothing is charged above what was asked then.

What a spend takes depends on what its account paid for before. Fourteen questions of both families at once were charged
0.541 for 0.5 and 0.441 for 0.4.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from mechanisms.families import NoiseFamily
from mechanisms.private_descent import Method
from server.administration.budgets import root_of
from server.administration.profiles import ProfileDataset
from server.errors import Problem
from server.journey import agreed_price
from server.models.terms import TrainModel
from server.resources.resources import Begun
from server.services import Services
from server.store.resources import STREAMS
from server.streams.terms import OpenStream
from server.synthetic.terms import ColumnWish, MakeSynthetic
from sql_rewrite.stream_text import StreamColumn
from tests.journey.clinic import answer_to, clinic_in, open_account, question

GAUSSIAN, LAPLACE = NoiseFamily.GAUSSIAN, NoiseFamily.LAPLACE


def charged(answer: dict[str, Any]) -> Fraction:
    """What an answer took of the caller's account."""
    (one,) = answer["accounting"]["charged"]
    return Fraction(one["epsilon"])


def between(services: Services, monkeypatch: pytest.MonkeyPatch, happens: Callable[[], object], times: int) -> None:
    """Something happens between price and reservation, so many times."""
    ledger: Any = services.ledger
    genuine, left = ledger.reserve, [None] * times

    def reserve(request: Any) -> Any:
        if left:
            left.pop()
            with monkeypatch.context() as inner:
                inner.setattr(ledger, "reserve", genuine)
                happens()
        return genuine(request)

    monkeypatch.setattr(ledger, "reserve", reserve)


def test_answers_in_between_do_not_raise_what_a_spend_is_charged(
    services: Services, analyst: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Laplace noise that was priced before three Gaussian answers would be charged 2.79 for 1: it is priced anew."""
    who = analyst(epsilon="10")

    def others() -> None:
        for age in range(3):
            sql = f"SELECT COUNT(*) AS n FROM people WHERE age > {30 + age}"
            answer_to(services, question(sql, who, epsilon="0.5", noise=GAUSSIAN))

    between(services, monkeypatch, others, 1)
    answer = answer_to(services, question("SELECT COUNT(*) AS n FROM people", who, epsilon="1", noise=LAPLACE))
    assert Fraction(9, 10) < charged(answer) <= 1
    assert services.ledger.audit().ok


def test_an_account_that_never_rests_is_told_so_and_not_charged(
    services: Services, analyst: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A price that moves at each try is a refusal without a charge."""
    who = analyst(epsilon="10")
    places = iter(range(agreed_price.PRICINGS_MAX + 1))

    def another() -> None:
        sql = f"SELECT COUNT(*) AS n FROM people WHERE age > {20 + next(places)}"
        answer_to(services, question(sql, who, epsilon="0.03", noise=GAUSSIAN))

    between(services, monkeypatch, another, agreed_price.PRICINGS_MAX + 1)
    asked = question("SELECT COUNT(*) AS n FROM people", who, epsilon="1", noise=LAPLACE)
    with pytest.raises(Problem) as refused:
        answer_to(services, asked)
    assert refused.value.code == "conflict"
    (account,) = services.ledger.accounts(dataset="clinic", principal=who)
    assert account.reserved.pure == 0
    assert len([entry for entry in services.ledger.entries(account.id) if entry.kind == "reserve"]) == (
        agreed_price.PRICINGS_MAX
    )


@pytest.mark.parametrize("seed", range(2))
def test_questions_at_once_are_charged_what_they_ask_for(
    services: Services, analyst: Callable[..., str], seed: int
) -> None:
    """Both families from many threads on one account."""
    who = analyst(epsilon="10")

    def ask(number: int) -> tuple[Fraction, Fraction]:
        family = (None, LAPLACE)[(number + seed) % 2]
        spend = ("0.4", "0.5", "0.1")[number % 3]
        sql = f"SELECT COUNT(*) AS n FROM people WHERE age > {number}"
        answer = answer_to(services, question(sql, who, epsilon=spend, noise=family))
        return charged(answer), Fraction(spend)

    with ThreadPoolExecutor(8) as threads:
        for cost, most in threads.map(ask, range(16)):
            assert cost <= most
    assert services.ledger.audit().ok


@pytest.mark.slow
def test_a_profile_is_charged_no_more_than_was_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A question that the root pays for between price and reservation of a profile has it priced anew."""
    with clinic_in(tmp_path) as (services, _):
        open_account(services.ledger, "ada", epsilon="1000")

        def another() -> None:
            sql = "SELECT COUNT(*) AS n FROM people"
            answer_to(services, question(sql, "ada", epsilon="50", noise=LAPLACE))

        between(services, monkeypatch, another, 1)
        profile = services.profiles.make(ProfileDataset("clinic", Fraction(2)), actor="owner")
        root = root_of(services.ledger.accounts(dataset="clinic"))
        record = services.ledger.query(str(profile["query"]))
        assert root is not None
        assert record is not None
        (paid,) = record.charged
        assert paid.account == root.id
        assert 0 < paid.epsilon <= 2


def three_laplace_answers(services: Services, who: str) -> Callable[[], None]:
    """What makes Gaussian noise that was priced before it more expensive: it closes the branch that was used least."""

    def others() -> None:
        for age in range(3):
            sql = f"SELECT COUNT(*) AS n FROM people WHERE age > {30 + age}"
            answer_to(services, question(sql, who, epsilon="0.5", noise=LAPLACE))

    return others


def test_a_model_is_not_charged_more_than_its_spend(
    services: Services, analyst: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model that was priced before three Laplace answers is priced anew."""
    who = analyst(epsilon="10")
    request = TrainModel(
        principal=who,
        dataset="clinic",
        sql="SELECT age, age >= 54 AS label FROM people",
        method=Method.INPUT_CLIPPING,
        iterations=10,
        held_out=Fraction(0),
        clip=Fraction(1),
        epsilon=Fraction(1),
        own_epsilon=None,
        confidence=Fraction(95, 100),
        account=None,
        idempotency_key=None,
        body_hash="0" * 64,
    )
    between(services, monkeypatch, three_laplace_answers(services, who), 1)
    model = services.models.admit(request)
    assert isinstance(model, Begun)
    taken = [part.epsilon for part in model.charged if part.account == model.row.account]
    services.resources.abandon(model)
    assert Fraction(9, 10) < sum(taken) <= 1


def test_a_stream_takes_no_more_of_its_account_than_was_agreed(
    services: Services, analyst: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stream has no rho, so beside Gaussian answers it takes more of the account than it promises. Answers that come
    between its price and the charge make it dearer: it is not charged for that, and may be asked for again."""
    who = analyst(epsilon="1000")
    request = OpenStream(
        principal=who,
        dataset="clinic",
        table="people",
        columns=(StreamColumn(name="sex"),),
        epsilon=Fraction(60),
        updates=1,
        queries=2,
        tolerance=None,
        account=None,
        body_hash="2" * 64,
    )

    def price() -> Fraction:
        told: Any = services.streams.estimate(request)
        return Fraction(told["price"]["epsilon"])

    ages, prices = itertools.count(30), [price()]

    def others() -> None:
        for _ in range(2):
            sql = f"SELECT COUNT(*) AS n FROM people WHERE age > {next(ages)}"
            answer_to(services, question(sql, who, epsilon="90", noise=GAUSSIAN))
        prices.append(price())

    monkeypatch.setattr(agreed_price, "PRICINGS_MAX", 1)
    between(services, monkeypatch, others, 1)
    with pytest.raises(Problem) as refused:
        services.streams.open(request)
    assert refused.value.finding.code == "conflict"
    assert prices[1] > prices[0] + 10
    assert services.registry.resources(STREAMS, who, dataset=None, after=None, count=1) == ()
    services.streams.open(request)
    assert len(services.registry.resources(STREAMS, who, dataset=None, after=None, count=2)) == 1


def test_a_synthetic_table_is_not_charged_more_than_its_spend(
    services: Services, analyst: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table that was priced before three Laplace answers is priced anew."""
    who = analyst(epsilon="10")
    request = MakeSynthetic(
        principal=who,
        dataset="clinic",
        table="people",
        name="priced_anew",
        columns=(ColumnWish(name="age"),),
        epsilon=Fraction(1),
        rows_per_unit=None,
        account=None,
        body_hash="1" * 64,
    )
    between(services, monkeypatch, three_laplace_answers(services, who), 1)
    table = services.synthetic.admit(request)
    assert isinstance(table, Begun)
    taken = [part.epsilon for part in table.charged if part.account == table.row.account]
    services.resources.abandon(table)
    assert Fraction(9, 10) < sum(taken) <= 1
