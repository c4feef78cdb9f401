"""Commands that make something new each time, carried out once under `--idempotency-key`, as HTTP does."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from server.cli.failure import usage_error
from server.cli.options import operator, option

if TYPE_CHECKING:
    from server.store.registry import Registry

__all__ = ["ONCE", "carry_out"]

ONCE = option("--idempotency-key TEXT", "The same text carries the same command out once, for 30 days.")


def carry_out(
    registry: Registry,
    key: str | None,
    request: dict[str, Any],
    act: Callable[[], dict[str, Any]],
    *,
    unkept: str | None = None,
) -> dict[str, Any]:
    """What `act` returns, or what it returned when the same request was carried out under the same key.

    `unkept` names a member that is not kept: it is None then. Errors: CommandFailed for a text that is no key;
    ActRefused, those of `server.administration.once` too.
    """
    if key is None:
        return act()
    import json

    from server.administration.once import KEY_FORM, once
    from server.body import canonical_hash
    from server.store.replies import Reply

    if KEY_FORM.match(key) is None:
        raise usage_error(
            "--idempotency-key is not accepted",
            why="It is one text of 1 to 200 visible ASCII characters.",
            instead="Use a fresh UUID for every new command.",
        )
    done = once(
        registry,
        actor=operator(),
        key=key,
        request_hash=canonical_hash(request),
        act=act,
        kept=lambda made: Reply(201, {}, json.dumps({**made, unkept: None} if unkept else made)),
    )
    if not isinstance(done, Reply):
        return done
    earlier: dict[str, Any] = json.loads(done.body)
    return earlier
