"""The messages of foreign errors: a table by the full names of classes, so that no module is loaded for it."""

from __future__ import annotations

import importlib
import string

import pytest

from server.cli import explaining
from server.cli.failure import CommandFailed


@pytest.mark.parametrize("name", [*explaining._PROGRAM, *sorted(explaining._REFUSALS), explaining._ANY_DATABASE])
def test_every_name_in_the_table_is_a_class(name: str) -> None:
    """A class that was renamed would lose its message without a sign."""
    module, _, kind = name.rpartition(".")
    found = getattr(importlib.import_module(module), kind)
    assert issubclass(found, Exception)
    assert f"{found.__module__}.{found.__qualname__}" == name


@pytest.mark.parametrize(
    ("words", "known"),
    [
        *((words, {"about", "where", "said", "reason"})
          for words in (*explaining._SYSTEM.values(), explaining._SYSTEM_OTHER)),
        *((words, {"error", "error.account", "findings"})
          for words in explaining._PROGRAM.values()),
        *((words, {"kind"}) for words in explaining._DATABASE.values()),
    ],
)  # fmt: skip
def test_every_message_can_be_filled_in(words: str, known: set[str]) -> None:
    """What, why and what to do, with no field that nobody fills."""
    what, why, *instead = map(str.strip, words.splitlines())
    assert all((what, why, instead, *instead[:-1]))
    fields = {field for _, field, _, _ in string.Formatter().parse(words) if field is not None}
    assert fields <= known


def test_a_subclass_has_the_message_of_its_nearest_base() -> None:
    """An error without words of its own has those of what it is a kind of."""
    from accountant.errors import LedgerError, SchemaTooNew

    class Narrower(SchemaTooNew):
        pass

    class Other(LedgerError):
        pass

    for error, words in ((Narrower("x"), "newer version of Noisegate"), (Other("it is so"), "refused the step")):
        with pytest.raises(CommandFailed, match=words), explaining.explained():
            raise error
