"""What the journey needs of an engine. `PrivateEngine` and `ShellEngine` are DuckDB's; the next one fulfils the same.

Two roles, because two places answer: a `StatementEngine` is near true data and runs statements after the charge; a
`TwinPlanner` holds no true data and says before the charge whether a statement can be planned. What a statement costs
in time is not measured while it runs: it follows from the plan and the costs that belong to the dialect
(sql_rewrite/dialects/costs.py), times how much slower this engine is than on the machine of that table, which
`probe_nanoseconds` says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from engines.encoding import DesignRows
from engines.texts import AskedText
from privacy.exact import Exact
from privacy.policy import Dataset
from privacy.statement import Statement
from privacy.training import Wanted

__all__ = ["Capabilities", "EngineLease", "StatementEngine", "TwinPlanner"]


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What may be asked of an engine, and what it promises.

    `dialect` names the dialect of `sql_rewrite.dialects` in which statements are written. `snapshots` says that data is
    read from immutable files that the engine opens by path; `stops_at_once` that a statement ends within a moment of
    its timeout, whatever it does.
    """

    dialect: str
    snapshots: bool
    stops_at_once: bool


class EngineLease(Protocol):
    """A slot of the engine for all statements of one question. It is given back at the question's visible moment."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None: ...

    def release(self) -> None:
        """Gives the slot back. What shows that statements have ended shows it now, and not before."""
        ...


class StatementEngine(Protocol):
    """Runs statements on snapshots of true data."""

    @property
    def capabilities(self) -> Capabilities:
        """What it can do: a constant of the engine."""
        ...

    def warm(self, snapshot: Path) -> None:
        """Opens a snapshot ahead of the first statement. Never fails: what cannot be opened fails when it is run."""
        ...

    def lease(self, *, owner: str = "") -> EngineLease:
        """A slot, waited for as long as it takes. Errors: ExecutionFailed with `started` False when there is none."""
        ...

    def run(
        self,
        snapshot: Path,
        statement: Statement,
        *,
        timeout_seconds: float,
        owner: str = "",
        lease: EngineLease | None = None,
    ) -> Exact:
        """The exact groups and sums of a statement, as it declares them, in the slot of a lease of this engine.

        Errors: ExecutionFailed and nothing else, without cause or context. Its `started` is False only when no row can
        have been read.
        """
        ...

    def read_rows(self, snapshot: Path, rows: DesignRows, *, timeout_seconds: float, lease: EngineLease) -> None:
        """Reads the rows of a model, which stay where they are read until the lease ends. Errors: as `run`."""
        ...

    def add_up(
        self,
        wanted: Wanted,
        weights: Sequence[int],
        *,
        sums: int,
        bound: int,
        timeout_seconds: float,
        lease: EngineLease,
    ) -> Exact:
        """So many exact sums of what was read in this lease, under the name `sums`. Errors: as `run`."""
        ...

    def measure(self) -> None:
        """Runs the fixed work by which `probe_nanoseconds` is known. Takes no slot from a question."""
        ...

    def probe_nanoseconds(self) -> float:
        """How long that work takes here; a slow machine's time until it was measured. Never waits."""
        ...

    def wait_ready(self, *, timeout_seconds: float = 10.0) -> bool:
        """Waits until statements can be run. Returns whether they can."""
        ...

    def usable(self) -> bool:
        """Whether statements can be run, without waiting, and without revealing whether one runs."""
        ...

    def close(self) -> None:
        """Ends everything that the engine has started."""
        ...


class TwinPlanner(Protocol):
    """Plans statements where no row is in reach."""

    def plan(
        self,
        dataset: Dataset,
        statements: Sequence[Statement],
        *,
        text: AskedText | None = None,
        timeout_seconds: float = 5.0,
        owner: str = "",
    ) -> None:
        """Plans statements on the dataset's empty twin and runs them on no rows; binds the `text` they come from first.

        Errors: TextRefused when the engine does not read the text; PlanFailed when a statement is refused;
        ExecutionFailed with `started` False when there was no place for it.
        """
        ...
