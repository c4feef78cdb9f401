"""An analyst's text on its way to the engine that judges it, and where the engine stopped reading.

The text is bound on empty tables in a worker without data, files or network (handlers/judge.py). What comes back is a
step and a number.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from engines.encoding import encode_parameters, is_unicode
from engines.frames import FrameFault
from engines.records import read_record
from privacy.statement import Parameter, Step
from privacy.values import Json

__all__ = ["AskedText", "Stopped", "TextRefused", "encode_text", "read_stopped"]


@dataclass(frozen=True, slots=True)
class AskedText:
    """The analyst's own text, which the lift has accepted, and the values of its named parameters."""

    sql: str = field(repr=False)
    parameters: Mapping[str, Parameter] = field(default_factory=dict, repr=False)


class TextRefused(Exception):
    """The engine does not read a text that the lift reads. Carries no message of the engine.

    `place` is the character of the text at which it stopped, None where it does not say.
    """

    def __init__(self, step: Step, place: int | None = None) -> None:
        super().__init__("the text is not the engine's dialect")
        self.step = step
        self.place = place


@dataclass(frozen=True, slots=True)
class Stopped:
    """Where the engine stopped reading a text, and at which byte."""

    step: Step
    place: int | None

    def __post_init__(self) -> None:
        if self.step is Step.END or (self.place is not None and self.place < 0):
            raise FrameFault

    def refusal(self, text: AskedText) -> TextRefused:
        """The refusal of the text, at a character instead of a byte."""
        before = None if self.place is None else text.sql.encode()[: self.place]
        return TextRefused(self.step, None if before is None else len(before.decode(errors="ignore")))


def encode_text(text: AskedText) -> dict[str, Json]:
    """A text for a worker.

    Errors: TextRefused for half a surrogate pair. A parameter that cannot be sent is left out: no text that the lift
    accepts uses it.
    """
    if not is_unicode(text.sql):
        raise TextRefused(Step.READ)
    items = {name: encode_parameters([value]) for name, value in text.parameters.items() if is_unicode(name)}
    return {"sql": text.sql, "parameters": {name: item[0] for name, item in items.items() if item is not None}}


def read_stopped(stopped: object) -> Stopped:
    """Where a worker says that it stopped. Errors: FrameFault for what is not such an answer."""
    return read_record(Stopped, stopped)
