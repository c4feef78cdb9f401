"""`noisegate budget`."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from server.home import Home
from tests.cli.support import Ran, cli, refused

LIMIT = ("--epsilon", "5", "--delta", "0.000001")


def budget(home: Path, *arguments: str) -> Ran:
    return cli("budget", "set", "--dataset", "people", *arguments, "--home", str(home))


@pytest.fixture
def with_root(home: Path) -> Path:
    assert budget(home, "--epsilon", "20", "--delta", "0.00001").code == 0
    assert cli("key", "create", "research", "--home", str(home)).code == 0
    return home


def test_root_then_analyst(with_root: Path) -> None:
    """The root comes first, an analyst's account hangs below it, and both are exact in the ledger."""
    made = budget(with_root, "--principal", "research", *LIMIT, "--json").json
    assert made["result"] == "opened"
    with Home(with_root).opened() as (_, ledger, _):
        path = ledger.path(made["id"])
    assert [account.parent is None for account in path] == [False, True]
    assert (path[0].limit.epsilon, path[0].limit.delta) == (Fraction(5), Fraction(1, 10**6))
    assert path[0].principal == "research"


def test_analyst_before_root_is_told_how(home: Path) -> None:
    """Without a root the message holds the command that opens it, and nothing is opened."""
    assert cli("key", "create", "research", "--home", str(home)).code == 0
    ran = budget(home, "--principal", "research", *LIMIT)
    refused(ran, "no root account", f"budget set --home {home} --dataset people --epsilon 5 --delta 0.000001")
    assert cli("budget", "show", "--json", "--home", str(home)).json == []


def test_change_needs_a_reason_and_keeps_it(with_root: Path) -> None:
    """Another limit without a reason is refused; with one it is written to the ledger with it."""
    made = budget(with_root, "--principal", "research", *LIMIT, "--json").json
    refused(budget(with_root, "--principal", "research", "--epsilon", "8", "--delta", "0.000001"), "--reason")
    changed = budget(
        with_root, "--principal", "research", "--epsilon", "8", "--delta", "0.000001", "--reason", "phase 2", "--json"
    ).json
    assert (changed["result"], changed["id"], changed["limit"]["epsilon"]) == ("changed", made["id"], "8")
    with Home(with_root).opened() as (_, ledger, _):
        last = ledger.entries(made["id"])[-1]
    assert last.kind == "adjust"
    assert "phase 2" in last.details


def test_same_limit_again_changes_nothing(with_root: Path) -> None:
    """The same command may be run twice, as scripts do."""
    first = budget(with_root, "--principal", "research", *LIMIT, "--json").json
    again = budget(with_root, "--principal", "research", *LIMIT, "--json").json
    assert again["result"] == "unchanged"
    assert again["id"] == first["id"]


@pytest.mark.parametrize(
    "text", ["nan", "NaN", "-1", "0", "inf", "-inf", "Infinity", "1e9", "1e999", "0x10", "1_000", "", " ", "1,5", "½"]
)
@pytest.mark.sparse(4)
def test_bad_epsilons_are_refused(home: Path, text: str) -> None:
    """Every text that is no amount gets one message, and no account is opened."""
    refused(budget(home, "--epsilon", text, "--delta", "0.000001"), "--epsilon is not accepted", code=2)
    assert cli("budget", "show", "--json", "--home", str(home)).json == []


@pytest.mark.parametrize("text", ["nan", "-0.1", "1", "1.5", "inf", "1e-19", "0", "tiny"])
@pytest.mark.sparse(3)
def test_bad_deltas_are_refused(home: Path, text: str) -> None:
    """A delta is between 0 and 0.01, above zero for an approximate account, and no finer than the ledger."""
    refused(budget(home, "--epsilon", "1", "--delta", text), "--delta is not accepted", code=2)
    assert cli("budget", "show", "--json", "--home", str(home)).json == []


def test_delta_fits_the_filter(home: Path) -> None:
    """An approximate account needs a delta, a pure one has none, and the filter stays."""
    refused(budget(home, "--epsilon", "1"), "--delta is missing", code=2)
    refused(budget(home, "--epsilon", "1", "--delta", "0.001", "--filter", "pure"), "pure account has no delta", code=2)
    assert budget(home, "--epsilon", "1", "--filter", "pure").code == 0
    refused(budget(home, "--epsilon", "1", "--delta", "0.001", "--filter", "approximate"), "its filter is pure")


def test_delta_is_divided_once(home: Path) -> None:
    """The shares that were chosen stay with every later limit; others are refused, and so is what is no division."""
    limit = ("--epsilon", "1", "--delta", "0.000001")
    for wrong in ("70,10", "70,10,21", "a,b,c", "70,30,-0.5", "110,-10,0"):
        refused(budget(home, *limit, "--delta-shares", wrong), "--delta-shares is not accepted", code=2)
    opened = budget(home, *limit, "--delta-shares", "60,15,25", "--json").json
    assert opened["delta_shares"] == {"gaussian": 60, "concentrated": 15, "mixed": 0, "groups": 25}
    assert opened["remaining"]["delta"] == "0.00000025"
    more = ("--epsilon", "2", "--delta", "0.000002", "--reason", "more")
    refused(budget(home, *more, "--delta-shares", "70,10,20"), "its delta is divided for good")
    changed = budget(home, *more, "--delta-shares", "60,15,25", "--json").json
    assert (changed["delta_shares"], changed["remaining"]["delta"]) == (opened["delta_shares"], "0.0000005")


def test_unknown_names_are_told(with_root: Path) -> None:
    """Unknown dataset (with the nearest name), principal, parent and account."""
    at = ("--home", str(with_root))
    refused(cli("budget", "set", "--dataset", "peple", *LIMIT, *at), 'no dataset "peple"', 'Did you mean "people"?')
    refused(
        budget(with_root, "--principal", "nobody", *LIMIT),
        'no principal "nobody"',
        f"key create --home {with_root} nobody",
    )
    refused(budget(with_root, "--principal", "research", "--parent", "b_0", *LIMIT), 'no account "b_0"')
    refused(budget(with_root, "--account", "b_0", *LIMIT), 'no account "b_0"')
    refused(cli("budget", "show", "--dataset", "nothing", *at), 'no dataset "nothing"')
    refused(cli("budget", "show", "--principal", "nobody", *at), 'no principal "nobody"')


def test_show_tells_limits_and_rest(with_root: Path) -> None:
    """Both accounts with what remains; filters of the list apply."""
    assert budget(with_root, "--principal", "research", *LIMIT).code == 0
    shown = cli("budget", "show", "--json", "--home", str(with_root)).json
    assert [(item["principal"], item["remaining"]["epsilon"]) for item in shown] == [(None, "20"), ("research", "5")]
    only = cli("budget", "show", "--principal", "research", "--json", "--home", str(with_root)).json
    assert [item["principal"] for item in only] == ["research"]
    text = cli("budget", "show", "--home", str(with_root)).out
    assert "(root)" in text
    assert "research" in text


def test_a_window_from_the_command_line(with_root: Path) -> None:
    """Set with a reason, shown in words beside the lifetime's loss, refused without the acknowledgement, taken away."""
    made = budget(with_root, "--principal", "research", *LIMIT, "--json").json

    def window(*arguments: str) -> Ran:
        return cli("budget", "window", "--account", made["id"], *arguments, "--home", str(with_root))

    reset = ("--kind", "daily", "--mode", "reset", "--epsilon", "1", "--delta", "0.0000001", "--reason", "daily")
    for wrong, why in (
        (reset, "the losses of windows add up"),
        (("--kind", "daily", "--slices", "3", "--ends", "1-1", "--reason", "x"), "A day is written"),
    ):
        ran = window(*wrong)
        assert ran.code == 2
        assert why in ran.err
    assert window("--kind", "monthly", "--slices", "12", "--reason", "a part each month").code == 0
    shown = cli("budget", "show", "--principal", "research", "--home", str(with_root)).out
    assert "lost 0 of 5 in its lifetime; at the pace of its 1 day 0 in a year." in shown
    assert "monthly slices, 1 of 12 slices unlocked: lost 0 in this window, 0.416667 may be spent now" in shown
    assert "at any time now" in window("--reason", "the study ends").out
    with Home(with_root).opened() as (_, ledger, _):
        assert [entry.kind.value for entry in ledger.entries(made["id"])] == ["grant", "adjust", "adjust"]
