"""Simulated figures against those that other programs computed, and what is wrong in books."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path

import pytest

from accountant.filter import Limit
from accountant.simulation import WAYS, Figures, Kind, Repeated, Standing, distribution, renyi, simulate
from accountant.simulation.ways import QUESTIONS_MAX

VECTORS = Path(__file__).resolve().parent.parent / "vectors"
LAPLACE = Repeated(Kind.LAPLACE, Fraction(1, 100))
GAUSSIAN = Repeated.with_deviation(Kind.GAUSSIAN, Fraction(math.sqrt(2)) * 100)
SELECTION = Repeated(Kind.SELECTION, Fraction(1, 100))
PURE = Repeated(Kind.PURE, Fraction(1, 100))
MILLIONTH = Fraction(1, 10**6)


def read(name: str) -> dict[str, list[dict[str, float]]]:
    """A file of vectors."""
    found: dict[str, list[dict[str, float]]] = json.loads((VECTORS / name).read_text())
    return found


def figures(question: Repeated, epsilon: str = "1", delta: Fraction = MILLIONTH) -> dict[str, Figures]:
    """What every way says, by its name."""
    limit = Limit(Fraction(epsilon), delta)
    return {found.way.name: found for found in simulate(question, limit, (1, 10, 1000))}


@pytest.mark.sparse(5)
@pytest.mark.parametrize(
    ("question", "way", "questions"),
    [
        (LAPLACE, "sum", 100),
        (LAPLACE, "advanced_of_books", 90),
        (LAPLACE, "advanced", 337),
        (LAPLACE, "filter_rogers", 147),
        (LAPLACE, "filter_whitehouse", 349),
        (PURE, "concentrated", 487),
        (LAPLACE, "concentrated", 488),
        (LAPLACE, "renyi", 492),
        (PURE, "gaussian", 356),
        (PURE, "distribution", 562),
        (LAPLACE, "distribution", 564),
        (GAUSSIAN, "classical", 24),
        (GAUSSIAN, "classical_of_books", 5),
        (GAUSSIAN, "concentrated_first", 698),
        (GAUSSIAN, "concentrated", 974),
        (GAUSSIAN, "renyi", 974),
        (GAUSSIAN, "gaussian", 1120),
        (GAUSSIAN, "distribution", 1120),
        (SELECTION, "sum", 100),
        (SELECTION, "concentrated", 1948),
    ],
)
def test_as_many_questions_as_other_programs_say(question: Repeated, way: str, questions: int) -> None:
    """Compares with `queries_allowed.json`: (1, 10^-6), a count with standard deviation 141.4, or epsilon 0.01."""
    rows = read("queries_allowed.json")["rows"]
    assert questions in {row["queries"] for row in rows}
    assert figures(question)[way].questions == questions


def test_an_account_is_a_filter_of_this_server() -> None:
    """Shows that an account admits less than the best way for its kind, and at least four fifths of it."""
    for question in (LAPLACE, GAUSSIAN, SELECTION, PURE):
        found = figures(question)
        best = max(found[name].questions for name in ("gaussian", "concentrated"))
        assert 0.8 * best < found["account"].questions < best
    assert figures(LAPLACE, delta=Fraction(0))["account"].questions == 100
    assert set(figures(LAPLACE, delta=Fraction(0))) == {"account", "sum"}
    # A pure account does not admit a Gaussian, however small.
    assert figures(GAUSSIAN, delta=Fraction(0))["account"].questions == 0


@pytest.mark.parametrize("row", read("laplace_composition.json")["laplace_k_fold"], ids=str)
def test_the_distribution_of_the_loss(row: dict[str, float]) -> None:
    """Compares with numerical composition by another program, and with the optimum for pure mechanisms: never below."""
    size, count, delta = Fraction(str(row["eps0"])), int(row["k"]), row["delta"]
    for kind, name in ((Kind.LAPLACE, "pld_laplace"), (Kind.PURE, "kov_pure")):
        found = distribution.epsilon_of_many(Repeated(kind, size), count, delta)
        assert row[name] * (1 - 1e-7) < found < row[name] * (1 + 2e-4)


@pytest.mark.parametrize("row", read("rdp_curves.json")["vectors"], ids=lambda row: str(row["alpha"]))
def test_renyi_curves(row: dict[str, dict[str, float]]) -> None:
    """Compares with the curves of two other programs."""
    order = float(str(row["alpha"]))
    for kind, name in ((Kind.LAPLACE, "laplace"), (Kind.PURE, "randomized_response")):
        for size, expected in row[name].items():
            assert renyi.divergence(Repeated(kind, Fraction(size)), order) == pytest.approx(expected, rel=1e-9)
    for size, expected in row["exp_mech_bounded_range_bound"].items():
        found = renyi.divergence(Repeated(Kind.SELECTION, Fraction(size)), order)
        assert found == pytest.approx(min(expected, float(size)), rel=1e-9)


@pytest.mark.parametrize("row", read("rdp_fixed_order_budget.json")["vectors"], ids=str)
def test_the_order_that_follows_from_a_limit(row: dict[str, float]) -> None:
    """Compares with the order at which the limit is worth the most rho."""
    order = renyi.best_order(row["eps"], row["delta"])
    assert order == pytest.approx(row["alpha_star"], rel=1e-3)
    assert renyi.budget(row["eps"], row["delta"], order) / order >= row["rho_equiv"] * (1 - 1e-12)


@pytest.mark.parametrize("row", read("gaussian_composition.json")["vectors"][:24], ids=str)
def test_gaussian_questions(row: dict[str, float]) -> None:
    """Compares exact, concentrated and Renyi figures with those of other programs."""
    question = Repeated.with_deviation(Kind.GAUSSIAN, Fraction(str(row["sigma"])))
    limit = Limit(Fraction(1), Fraction(str(row["delta"])))
    found = {
        figure.way.name: figure.epsilons[0]
        for figure in simulate(question, limit, (int(row["k"]),))
        if figure.way.name in {"gaussian", "concentrated", "concentrated_first", "renyi_best"}
    }
    assert found["gaussian"] == pytest.approx(row["eps_exact_gdp"], rel=1e-6, abs=1e-9)
    assert found["concentrated"] == pytest.approx(max(row["eps_zcdp_cks"], 0), rel=1e-6, abs=1e-9)
    assert found["renyi_best"] == pytest.approx(max(row["eps_zcdp_cks"], 0), rel=1e-6, abs=1e-9)
    assert found["concentrated_first"] == pytest.approx(row["eps_zcdp_bun_steinke"], rel=1e-9)


def test_the_averaging_attack_on_the_formula_of_books() -> None:
    """E1: 500 answers at epsilon 1 are said to be (214.6, 10^-5)-DP; their delta there is 0.0395."""
    one = Repeated(Kind.LAPLACE, Fraction(1))
    found = {figure.way.name: figure for figure in simulate(one, Limit(Fraction(1), Fraction(1, 10**5)), (500,))}
    claimed = found["advanced_of_books"].epsilons[0]
    assert claimed == pytest.approx(214.59660262893473)
    assert found["advanced_of_books"].way.standing is Standing.WRONG
    assert claimed is not None
    assert distribution.delta_of_many(one, 500, claimed) == pytest.approx(0.0395368, rel=1e-3)
    assert found["distribution"].epsilons[0] == pytest.approx(258.3045866, rel=1e-4)
    # What holds for every mechanism of its epsilon is more than what holds for Laplace noise.
    assert distribution.epsilon_of_many(Repeated(Kind.PURE, Fraction(1)), 500, 1e-5) == pytest.approx(
        311.7676, rel=1e-4
    )


@pytest.mark.parametrize(
    ("size", "kind", "first"), [("1", Kind.PURE, 176), ("1", Kind.LAPLACE, 295), ("0.5", Kind.PURE, 525)]
)
def test_where_the_formula_of_books_begins_to_fail(size: str, kind: Kind, first: int) -> None:
    """E1: the number of questions from which on it promises too much, at delta 10^-5."""
    question = Repeated(kind, Fraction(size))
    broken = []
    for count in (first - 1, first):
        claimed = 2 * float(size) * math.sqrt(2 * count * math.log(1e5))
        broken.append(distribution.epsilon_of_many(question, count, 1e-5) > claimed * (1 + 2e-4))
    assert broken[0] is False
    beyond = first + first // 20
    assert distribution.epsilon_of_many(question, beyond, 1e-5) > 2 * float(size) * math.sqrt(
        2 * beyond * math.log(1e5)
    )


def test_wrong_noise_is_caught_by_the_distribution() -> None:
    """Shows that a claimed epsilon smaller than the truth would not pass: noise for 0.009 is not noise for 0.01."""
    assert distribution.epsilon_of_many(Repeated(Kind.LAPLACE, Fraction(9, 1000)), 564, 1e-6) < 0.91
    assert distribution.epsilon_of_many(LAPLACE, 565, 1e-6) > 1


def test_filters_never_promise_more_than_the_optimum() -> None:
    """Shows that no way that holds admits more questions than the distribution of the loss, for any kind and limit."""
    for question in (LAPLACE, PURE, GAUSSIAN, Repeated(Kind.LAPLACE, Fraction(1, 4)), Repeated(Kind.PURE, Fraction(1))):
        for epsilon in ("0.5", "1", "8"):
            found = figures(question, epsilon)
            for name, figure in found.items():
                if figure.way.standing is not Standing.WRONG:
                    assert figure.questions <= found["distribution"].questions, (question, epsilon, name)


@pytest.mark.parametrize("count", [0, QUESTIONS_MAX + 1])
def test_counts_out_of_range_are_refused(count: int) -> None:
    """Shows that nothing is computed for numbers that cannot be meant."""
    with pytest.raises(ValueError, match="count of questions"):
        simulate(LAPLACE, Limit(Fraction(1), MILLIONTH), (count,))


def test_what_cannot_be_simulated_is_refused() -> None:
    """Shows that a delta beyond double precision, a size of zero and a selection with a deviation are refused."""
    with pytest.raises(ValueError, match="delta must be"):
        simulate(LAPLACE, Limit(Fraction(1), Fraction(1, 10**12)), (1,))
    with pytest.raises(ValueError, match="size of a question"):
        Repeated(Kind.LAPLACE, Fraction(0))
    with pytest.raises(ValueError, match="standard deviation"):
        Repeated.with_deviation(Kind.SELECTION, Fraction(1))


def test_counting_stops_where_it_says() -> None:
    """Shows that a limit that affords more than ten million says ten million."""
    assert figures(Repeated(Kind.LAPLACE, Fraction(1, 10**6)), "1000")["sum"].questions == QUESTIONS_MAX


def test_every_way_has_a_name_of_its_own() -> None:
    """Shows that names can be keys."""
    assert len({way.name for way in WAYS}) == len(WAYS)
