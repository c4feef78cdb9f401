"""Why webhooks are refused."""

from __future__ import annotations

from server.errors import Problem

__all__ = ["mail_not_allowed", "not_allowed", "not_an_address", "private_address", "test_waits", "too_many"]

_WHAT = "the webhook is refused"


def not_an_address(why: str) -> Problem:
    """Why an address that cannot be read is refused."""
    return Problem(
        "invalid_request",
        what=_WHAT,
        why=f"Its url cannot be used: {why}.",
        instead=("Write an address such as https://hooks.example.com/path.",),
    )


def not_allowed(*, none: bool) -> Problem:
    """Why an address outside the setting is refused. The setting is not shown: it names the operator's hosts."""
    where = "No destination is allowed on this server." if none else "Its url is in none of those allowed here."
    return Problem(
        "policy_forbids",
        what=_WHAT,
        why=f"{where} What is sent leaves the server, so an administrator says where it may go.",
        instead=(
            'ask an administrator to set webhook_destinations, for instance ["https://hooks.example.com"]',
            "poll instead: POST /v1/monitors/{monitor_id}/evaluations with wait_ms",
        ),
    )


def mail_not_allowed(*, none: bool) -> Problem:
    """Why an address of mail outside the setting is refused. The setting is not shown."""
    where = "This server writes no mail." if none else "Its address is none of those allowed here."
    return Problem(
        "policy_forbids",
        what=_WHAT,
        why=f"{where} What is sent leaves the server, so an administrator says where it may go.",
        instead=('ask an administrator to set mail_directory and mail_addresses, for instance ["*@example.com"]',),
    )


def private_address() -> Problem:
    """Why an address that is written as a number and may not be reached is refused."""
    return Problem(
        "policy_forbids",
        what=_WHAT,
        why="Its address is private, link-local or of this machine, and the settings name no network with it.",
        instead=('ask an administrator to set webhook_networks, for instance ["10.1.2.0/24"]', "name a public host"),
    )


def too_many(most: int) -> Problem:
    """Why another webhook is refused."""
    return Problem(
        "conflict",
        what=_WHAT,
        why=f"You have {most} webhooks, which is as many as one principal may have.",
        instead=("Remove one with DELETE /v1/webhooks/{webhook_id}.",),
    )


def test_waits() -> Problem:
    """Why another test is refused."""
    return Problem(
        "conflict",
        what="a test is on its way already",
        why="One test of a webhook waits at a time.",
        instead=("Look what came of it: GET /v1/webhooks/{webhook_id}/deliveries.",),
    )
