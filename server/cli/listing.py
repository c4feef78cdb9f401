"""What commands about things in lists share: the newest of a list, one line for each, and one of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from server.cli.client import Remote
from server.cli.options import Here
from server.cli.output import Json, printable

__all__ = ["show_lines", "show_list", "show_one"]


def show_list(
    remote: Remote, here: Here, plural: str, line: Callable[[Json], str], *, none: str, member: str | None = None
) -> None:
    """The newest hundred of a list, by the name of its path and of its member, where that is another one."""
    with remote.connect(here.place()) as client:
        found = client.get(f"/v1/{plural}?count=100")[member or plural]
    show_lines(here, found, map(line, found), none=none)


def show_lines(here: Here, found: Sequence[Json], lines: Iterable[str], *, none: str) -> None:
    """These lines, or that there is none."""
    here.show(found, [printable(line) for line in lines] or [none], verbatim=True)


def show_one(
    remote: Remote, here: Here, path: str, identifier: str, lines: Callable[[Json], Sequence[str]], *, end: bool = False
) -> None:
    """One member of a list; with `end` what is left of it once it is closed."""
    with remote.connect(here.place()) as client:
        answer = client.end(path, identifier) if end else client.one(path, identifier)
    here.show(answer, lines(answer), verbatim=True)
