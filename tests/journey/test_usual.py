"""First moments follow what the same asker's answers of the same plan showed, and nothing else."""

from __future__ import annotations

import random

import pytest

from server.journey.moments import Moments
from server.journey.usual import Usual

GRID = 0.004
PLAN = Moments(first=0.012, tick=0.004)


def answers(usual: Usual, times: list[float], *, key: str = "a", seed: int = 1) -> list[float]:
    """The moments at which runs of these times show, one after the other."""
    source = random.Random(seed)
    shown = []
    for time in times:
        used = usual.moments(key, PLAN)
        moment = used.next(time, source.random())
        usual.showed(key, PLAN, used, moment)
        shown.append(moment)
    return shown


@pytest.mark.parametrize("time", [0.001, 0.009, 0.0143, 0.03, 0.47, 5.0])
def test_after_a_few_answers_nearly_every_one_shows_at_its_first_moment(time: float) -> None:
    """The first of them may show twice as late as it ran; later ones a quarter later, the draw apart."""
    shown = answers(Usual(GRID), [time] * 400)[-100:]
    late = max(PLAN.first, 1.25 * (time + PLAN.tick) + GRID)
    assert sum(moment <= late for moment in shown) >= 90


def test_one_slow_answer_is_forgotten() -> None:
    """A machine that stopped for a moment does not make answers late for ever."""
    usual = Usual(GRID)
    answers(usual, [0.007] * 10)
    assert answers(usual, [1.0])[0] > 0.5
    assert answers(usual, [0.007] * 400)[-1] <= PLAN.first + GRID


def test_moments_are_never_before_those_of_the_plan() -> None:
    """Shows that what is learned cannot take away what covers the prediction and the draw."""
    assert min(answers(Usual(GRID), [0.0001] * 1_000)) == PLAN.first


def test_moments_depend_on_what_showed_and_not_on_how_long_runs_took() -> None:
    """Two worlds whose answers showed at the same moments have the same moments afterwards, whatever ran."""
    one, other = Usual(GRID), Usual(GRID)
    for time in (0.02, 0.05, 0.3, 0.001):
        used = one.moments("a", PLAN)
        assert used == other.moments("a", PLAN)
        moment = used.next(time, 0.5)
        one.showed("a", PLAN, used, moment)
        other.showed("a", PLAN, used, moment)
    assert one.moments("a", PLAN) == other.moments("a", PLAN)


def test_nobody_learns_from_the_answers_of_another() -> None:
    """Else the time of an answer would tell that somebody asked the same."""
    usual = Usual(GRID)
    answers(usual, [0.5] * 3, key="a")
    assert usual.moments("b", PLAN) == PLAN


def test_plans_not_asked_for_longest_are_forgotten() -> None:
    """Shows that askers cannot fill the memory."""
    usual = Usual(GRID, kept_max=3)
    for key in "abcd":
        answers(usual, [0.5], key=key)
    assert usual.moments("a", PLAN) == PLAN
    assert usual.moments("d", PLAN) != PLAN


def test_a_run_beside_another_of_the_same_plan_changes_only_its_own_moments() -> None:
    """An answer that was given other moments than those in use now tells nothing about these."""
    usual = Usual(GRID)
    early = usual.moments("a", PLAN)
    answers(usual, [0.5])
    known = usual.moments("a", PLAN)
    usual.showed("a", PLAN, early, early.first * 2)
    assert usual.moments("a", PLAN) == known
