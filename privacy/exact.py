"""True values on their way from an engine to a mechanism, wrapped so that they cannot leak by accident."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NoReturn

from privacy.values import Cell

__all__ = ["Exact"]


class Exact:
    """True group keys and sums of one core. Has no text form, cannot be compared, copied or serialised.

    Holds `keys`: for each key column a list with one Python value per group, and `sums`: for each statement sum a
    list (or integer array) with one exact integer per group. Opened only in `mechanisms`; a test reads every
    source file for other callers of `reveal`.
    """

    __slots__ = ("_keys", "_rows", "_sums")

    def __init__(self, *, keys: Mapping[str, Sequence[Cell]], sums: Mapping[str, Iterable[object]], rows: int) -> None:
        self._keys = keys
        self._sums = sums
        self._rows = rows

    def reveal(self) -> tuple[Mapping[str, Sequence[Cell]], Mapping[str, Iterable[object]], int]:
        """Keys, sums and number of groups. For `mechanisms` only."""
        return self._keys, self._sums, self._rows

    def _refuse(self, *_: object) -> NoReturn:
        raise TypeError("true values cannot be shown, compared, copied or stored")

    def __repr__(self) -> str:
        return "<Exact>"

    __str__ = __repr__
    __eq__ = _refuse
    __lt__ = __le__ = __gt__ = __ge__ = _refuse
    __bool__ = __len__ = __iter__ = __hash__ = _refuse
    __reduce__ = __reduce_ex__ = __copy__ = __deepcopy__ = __getstate__ = _refuse
    __format__ = _refuse
