"""An engine fulfils the protocol that the journey is written against: every call, with the same arguments."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import pytest

from engines.private import PrivateEngine, PrivateLease
from engines.protocol import EngineLease, StatementEngine, TwinPlanner
from engines.shell import ShellEngine
from sql_rewrite.dialects import DIALECTS

PAIRS: list[tuple[type, type]] = [
    (PrivateEngine, StatementEngine),
    (PrivateLease, EngineLease),
    (ShellEngine, TwinPlanner),
]


def asked(protocol: type) -> Iterator[str]:
    """The calls of a protocol."""
    for name, member in vars(protocol).items():
        if inspect.isfunction(member) and (not name.startswith("_") or name in ("__enter__", "__exit__")):
            yield name


def differences(engine: type, protocol: type) -> list[str]:
    """What the protocol asks for and the class does not have: a call, a parameter, or a parameter's kind or default.

    What the class has beside it has to be optional.
    """
    found = []
    for name in asked(protocol):
        if not hasattr(engine, name) or getattr(engine, name) is getattr(object, name, None):
            found.append(name)
            continue
        wanted = inspect.signature(getattr(protocol, name)).parameters
        given = inspect.signature(getattr(engine, name)).parameters
        if any(parameter.kind is parameter.VAR_POSITIONAL for parameter in given.values()):
            continue
        for key, parameter in wanted.items():
            if key not in given:
                found.append(f"{name}({key})")
            elif given[key].kind is not parameter.kind or given[key].default != parameter.default:
                found.append(f"{name}({key}) otherwise")
        found += [
            f"{name}({key}) more"
            for key, parameter in given.items()
            if key not in wanted and parameter.default is parameter.empty
        ]
    return found


@pytest.mark.parametrize(("engine", "protocol"), PAIRS, ids=lambda cls: cls.__name__)
def test_the_engine_has_every_call_of_the_protocol(engine: type, protocol: type) -> None:
    """Names, parameters, kinds and defaults are those of the protocol (mypy compares the types)."""
    assert list(asked(protocol))
    assert differences(engine, protocol) == []


def test_an_engine_that_lacks_something_is_noticed() -> None:
    """A call that is missing, a renamed parameter, another default and a further obligation are each found."""

    class Broken:
        def lease(self, *, owner: str = "") -> None:
            """As asked for."""

        def run(
            self, snapshot: object, statement: object, *, timeout_seconds: float = 5.0, lease: object = None
        ) -> None:
            """Has a default of its own, and does not know the owner."""

        def measure(self, rounds: int) -> None:
            """Asks for more."""

    found = differences(Broken, StatementEngine)
    assert {"warm", "close", "run(owner)", "run(timeout_seconds) otherwise", "measure(rounds) more"} <= set(found)
    assert not any(difference.startswith("lease") for difference in found)


def test_the_engine_is_spoken_to_in_a_dialect_that_is_there() -> None:
    """The capabilities name a dialect by its key."""
    assert PrivateEngine.capabilities.dialect in DIALECTS
