"""Webhooks of monitors with real parts: an outbox that loses nothing, signed bodies, receivers that fail."""

from __future__ import annotations

import asyncio
import base64
import datetime
import hashlib
import hmac
import json
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.exc import OperationalError

from accountant.ledger import utc_now
from server.monitors.monitors import Monitors
from server.store.outbox import WAITING_MAX, Notice
from server.store.resources import MONITORS
from server.webhooks.addresses import read_network
from server.webhooks.delivering import Deliveries
from server.webhooks.destinations import read_destination
from server.webhooks.sending import Sender
from server.webhooks.webhooks import WEBHOOKS_MAX, Webhooks
from tests.journey.clinic import clinic_in
from tests.journey.watched import Clinic
from tests.webhooks.receiving import Got, Receiver, receiver_beside, status

HOST = "http://hooks.test"


class Post:
    """The webhooks of a clinic, with destinations and a clock of the test's."""

    def __init__(self, clinic: Clinic) -> None:
        self.clinic = clinic
        self.later = datetime.timedelta()
        services = clinic.services
        assert isinstance(services.webhooks, Webhooks)
        self.seal = services.webhooks.seal
        self.allow()
        self.deliveries = self.process()

    def allow(self, *receivers: Receiver, seconds: float = 5.0) -> None:
        """Allows these destinations, and no other ones."""
        sender = Sender(
            destinations=tuple(read_destination(f"{HOST}:{one.port}") for one in receivers),
            networks=(read_network("127.0.0.0/8"),),
            resolve=self.resolve,
            seconds_max=seconds,
        )
        self.later = datetime.timedelta()
        self.clinic.services.webhooks = Webhooks(self.clinic.services.registry, self.seal, sender)
        self.deliveries = self.process()

    def process(self) -> Deliveries:
        """What a server process sends with."""
        webhooks = self.clinic.services.webhooks
        assert isinstance(webhooks, Webhooks)
        return Deliveries(self.clinic.services.registry, webhooks.seal, webhooks.sender, self.now)

    def now(self) -> datetime.datetime:
        """The clock of the outbox."""
        return utc_now() + self.later

    async def resolve(self, name: str, port: int) -> tuple[str, ...]:
        """All names are this machine."""
        return ("127.0.0.1",)

    def turn(self, **later: float) -> int:
        """Moves the clock, makes the attempts that are due, and waits for their ends. Returns how many those were."""
        self.later += datetime.timedelta(**later)

        async def run() -> int:
            begun = await self.deliveries.look()
            await self.deliveries.rounds.finished()
            return begun

        registry = self.clinic.services.registry
        registry._clock = self.now
        try:
            return asyncio.run(run())
        finally:
            # Keys do not outlast the days that the test lets pass.
            registry._clock = utc_now

    def hook(self, who: str, receiver: Receiver, **options: Any) -> Any:
        """A webhook of somebody's at a receiver."""
        body = {"url": f"{HOST}:{receiver.port}/in", **options}
        made = self.clinic.call(who, "POST", "/v1/webhooks", body)
        assert made.status_code == 201, made.text
        return made.json()

    def deliveries_of(self, who: str, hook: Any) -> list[Any]:
        """What its owner reads of its deliveries, the newest first."""
        return list(self.clinic.call(who, "GET", f"{hook['links']['deliveries']}?count=100").json()["deliveries"])

    def passed(self, who: str, **options: Any) -> Any:
        """A monitor that passed, and what its evaluation said."""
        monitor = self.clinic.open(who, **{"threshold": "100", **options}).json()["id"]
        return monitor, self.clinic.evaluate(who, monitor).json()


@pytest.fixture(scope="module")
def post(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Post]:
    """A clinic whose data stay as they are, for tests with analysts of their own."""
    home = tmp_path_factory.mktemp("hooked")
    with clinic_in(home) as (services, path):
        yield Post(Clinic(home, services, path))


@contextmanager
def received(post: Post, behave: Any = None, **options: Any) -> Iterator[Receiver]:
    """A receiver that is allowed, and answers 200 unless it is told another thing."""
    with receiver_beside(behave or status(200)) as receiver:
        post.allow(receiver, **options)
        try:
            yield receiver
        finally:
            # What one test left waiting would be sent in the next one.
            registry = post.clinic.services.registry
            for row in registry.webhooks(None, after=None, count=100):
                registry.remove_webhook(row.id, actor="test")


def documented() -> Callable[[str, dict[str, str], bytes], bool]:
    """The check of a signature that the documentation shows to receivers."""
    page = (Path(__file__).parents[2] / "docs" / "webhooks.md").read_text("utf-8")
    names: dict[str, Any] = {}
    exec(page.partition("```python\n")[2].partition("```")[0], names)
    genuine: Callable[[str, dict[str, str], bytes], bool] = names["genuine"]
    return genuine


def read(got: Got, secret: str) -> Any:
    """The body of a request whose signature is right. Errors: AssertionError."""
    signed = f"{got.headers['webhook-id']}.{got.headers['webhook-timestamp']}.".encode() + got.body
    key = base64.b64decode(secret.removeprefix("whsec_"))
    expected = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    assert got.headers["webhook-signature"] == f"v1,{expected}"
    return json.loads(got.body)


def test_the_check_in_the_documentation_is_right(post: Post) -> None:
    """Shows that it takes what is sent, and neither another body, secret or moment."""
    ann, _ = post.clinic.somebody()
    with received(post) as receiver:
        hook = post.hook(ann, receiver)
        post.clinic.call(ann, "POST", f"{hook['links']['self']}:test")
        assert post.turn() == 1
        (got,) = receiver.got
        genuine, secret = documented(), hook["secret"]
        assert genuine(secret, got.headers, got.body)
        assert not genuine(secret, got.headers, got.body + b" ")
        assert not genuine("whsec_" + "A" * 43 + "=", got.headers, got.body)
        assert not genuine(secret, {**got.headers, "webhook-timestamp": "1614265330"}, got.body)


def test_a_hit_is_sent_signed_and_says_what_a_poll_says(post: Post) -> None:
    """Shows one delivery of one hit: its signature, its body, and that neither question nor threshold is in it."""
    ann, _ = post.clinic.somebody()
    with received(post) as receiver:
        hook = post.hook(ann, receiver)
        monitor, said = post.passed(ann)
        assert post.turn() == 1
        (got,) = receiver.got
        body = read(got, hook["secret"])
        assert body.pop("data") == {"monitor": monitor, "dataset": "clinic", **said}
        assert body == {"type": "monitor.passed", "timestamp": said["at"]}
        shown = post.clinic.call(ann, "GET", f"/v1/monitors/{monitor}").json()
        assert shown["last"] == said
        assert abs(int(got.headers["webhook-timestamp"]) - post.now().timestamp()) < 5
        for private in ("SELECT", "people", '"100"', ann):
            assert private not in got.body.decode()
        assert post.turn(hours=1) == 0, "what was received is not sent again"
        (delivery,) = post.deliveries_of(ann, hook)
        assert (delivery["state"], delivery["attempts"], delivery["status"]) == ("delivered", 1, 200)
        assert delivery["id"] == got.headers["webhook-id"]


def test_outcomes_that_nobody_subscribed_to_are_not_sent(post: Post) -> None:
    """Shows kinds of events and subjects, and that nobody gets the events of others."""
    ann, _ = post.clinic.somebody()
    bob, _ = post.clinic.somebody()
    with received(post) as receiver:
        first, _ = post.passed(ann)
        every = post.hook(ann, receiver, events=["monitor.not_passed", "monitor.passed", "monitor.failed"])
        one = post.hook(ann, receiver, subjects=[first])
        foreign = post.hook(bob, receiver, subjects=[first])
        post.passed(ann)
        post.passed(ann, threshold="3500")
        while post.turn():
            pass
        kinds = [json.loads(got.body)["type"] for got in receiver.got]
        assert kinds == ["monitor.passed", "monitor.not_passed"]
        assert len(post.deliveries_of(ann, every)) == 2
        assert post.deliveries_of(ann, one) == []
        assert post.deliveries_of(bob, foreign) == []


def test_what_is_not_received_is_sent_again_later_and_in_order(post: Post) -> None:
    """Shows growing pauses, the same identifier and body each time under a new moment and signature, and that a later
    event waits until the earlier one is received."""
    ann, _ = post.clinic.somebody()
    with received(post, status(503)) as receiver:
        hook = post.hook(ann, receiver)
        first, _ = post.passed(ann)
        second, _ = post.passed(ann)
        assert post.turn() == 1
        assert post.turn(seconds=1) == 0
        assert post.turn(seconds=5) == 1
        assert post.turn(seconds=6) == 0, "the second pause is longer"
        receiver.behave = status(200)
        assert post.turn(seconds=30) == 1
        assert post.turn() == 1
        subjects = [read(got, hook["secret"])["data"]["monitor"] for got in receiver.got]
        assert subjects == [first, first, first, second]
        same = receiver.got[:3]
        assert len({got.headers["webhook-id"] for got in same}) == 1
        assert len({got.body for got in same}) == 1
        assert len({got.headers["webhook-timestamp"] for got in same}) == 3
        assert len({got.headers["webhook-signature"] for got in same}) == 3
        states = [(one["state"], one["attempts"], one["status"]) for one in post.deliveries_of(ann, hook)]
        assert states == [("delivered", 1, 200), ("delivered", 3, 200)]


def test_a_receiver_that_never_answers_is_given_up_after_three_days(post: Post) -> None:
    """Shows that attempts end, that what failed is said, and that the next event begins anew."""
    ann, _ = post.clinic.somebody()
    with received(post, status(500)) as receiver:
        hook = post.hook(ann, receiver)
        post.passed(ann)
        attempts = 0
        for _ in range(60):
            attempts += post.turn(hours=4, seconds=1)
        (delivery,) = post.deliveries_of(ann, hook)
        assert (delivery["state"], delivery["failure"], delivery["attempts"]) == ("failed", "status", attempts)
        assert 15 <= attempts <= 20
        receiver.behave = status(200)
        post.passed(ann)
        assert post.turn() == 1
        assert post.deliveries_of(ann, hook)[0]["state"] == "delivered"


def test_a_slow_receiver_delays_no_other_one_and_no_evaluation(post: Post) -> None:
    """Shows that while one receiver hangs another one is served, and outcomes are said as before."""

    over = threading.Event()

    async def hang(_: object) -> None:
        while not over.is_set():
            await asyncio.sleep(0.01)

    ann, _ = post.clinic.somebody()
    with received(post, hang) as slow, receiver_beside(status(200)) as fast:
        post.allow(slow, fast, seconds=60)
        waiting, quick = post.hook(ann, slow), post.hook(ann, fast)

        async def run() -> None:
            await post.deliveries.look()
            while not fast.got:
                await asyncio.sleep(0.01)
            await asyncio.to_thread(post.passed, ann)
            await post.deliveries.look()
            while len(fast.got) < 2:
                await asyncio.sleep(0.01)
            assert len(slow.got) == 1, "one at a time"
            assert post.deliveries.rounds.under_way
            over.set()
            await post.deliveries.rounds.finished()

        post.passed(ann)
        asyncio.run(run())
        # It hung up when it was told to: had the others waited for it, its time would have ended first.
        assert [one["failure"] for one in post.deliveries_of(ann, waiting)] == [None, "unreachable"]
        assert [one["state"] for one in post.deliveries_of(ann, quick)] == ["delivered", "delivered"]


def test_two_processes_send_each_event_once(post: Post) -> None:
    """Shows that an attempt is one process's, and that one whose process died is made again under its identifier."""
    ann, _ = post.clinic.somebody()
    with received(post) as receiver:
        post.hook(ann, receiver)
        post.passed(ann)
        other = post.process()

        async def both() -> list[int]:
            begun = await asyncio.gather(post.deliveries.look(), other.look())
            await post.deliveries.rounds.finished()
            await other.rounds.finished()
            return list(begun)

        assert sum(asyncio.run(both())) == 1
        assert len(receiver.got) == 1
        post.passed(ann)
        (dies,) = post.clinic.services.registry.claim_deliveries(count=9, lease_seconds=60)
        assert post.turn(seconds=50) == 0
        assert post.turn(seconds=11) == 1
        assert receiver.got[1].headers["webhook-id"] == dies.id
        assert not post.clinic.services.registry.end_attempt(dies, state="failed", status=None, failure="late")


def test_nothing_is_lost_between_an_outcome_and_its_event(post: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows that the event is stored in the outcome's own transaction: where it cannot be, the outcome is not said."""
    ann, _ = post.clinic.somebody()
    with received(post) as receiver:
        hook = post.hook(ann, receiver, events=["monitor.passed", "monitor.failed"])
        registry = post.clinic.services.registry

        def refuse(*_: object) -> None:
            raise OperationalError("INSERT", {}, sqlite3.OperationalError("the disk is full"))

        with monkeypatch.context() as patch:
            patch.setattr(type(registry), "_put", refuse)
            monitor = post.clinic.open(ann, threshold="100", hits=2).json()["id"]
            row = registry.resource(MONITORS, monitor)
            failed = post.clinic.evaluate(ann, monitor)
        assert (failed.status_code, failed.json()["code"]) == (500, "execution_failed")
        assert registry.resource(MONITORS, monitor) == row, "neither hit nor noise was stored"
        assert registry.hits(monitor) == ()
        assert post.deliveries_of(ann, hook) == []
        # The event of its failure could not be stored either. The process goes on, and ends it when it can.
        assert registry.evaluating() == {post.clinic.services.ledger.instance}
        post.clinic.monitors.end_left()
        assert registry.evaluating() == frozenset()
        assert post.clinic.evaluate(ann, monitor).json()["number"] == 2


def test_events_are_stored_at_the_visible_moment(post: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows that nothing is stored of an evaluation before its visible moment, when a poll shows it."""
    require_late(post, monkeypatch)


def require_late(post: Post, patch: pytest.MonkeyPatch) -> None:
    """The outbox has nothing until the visible moment, of an outcome and of a failure."""
    ann, _ = post.clinic.somebody()
    waited: list[int] = []
    with received(post) as receiver:
        hook = post.hook(ann, receiver, events=["monitor.passed", "monitor.failed"])
        pace = post.clinic.monitors.journey.pace
        patch.setattr(pace, "sleep", lambda _: waited.append(len(post.deliveries_of(ann, hook))))
        post.passed(ann)
        patch.setattr(post.clinic.monitors.resources.private, "run", lambda *_, **__: 1 / 0)
        assert post.clinic.evaluate(ann, post.clinic.open(ann).json()["id"]).status_code == 500
        assert waited == [0, 1]
        assert [one["event"] for one in post.deliveries_of(ann, hook)] == ["monitor.failed", "monitor.passed"]


def test_an_event_that_is_stored_too_early_is_caught(post: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows that the test above sees an event that goes out when the comparison ends: the planted bug."""
    genuine, registry = Monitors._compared, post.clinic.services.registry

    def bug(monitors: Monitors, row: Any, counted: Any, asked: Any, run: Any) -> Any:
        pace = monitors.journey.pace
        sleep = pace.sleep

        def early(seconds: float) -> None:
            (hook, *_) = registry.webhooks(row.principal, after=None, count=1)
            notice = Notice(principal=row.principal, event="monitor.passed", subject=row.id, body="{}")
            registry.send_to(hook.id, notice)
            sleep(seconds)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(pace, "sleep", early)
            return genuine(monitors, row, counted, asked, run)

    monkeypatch.setattr(Monitors, "_compared", bug)
    with pytest.raises(AssertionError):
        require_late(post, monkeypatch)


@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("https://elsewhere.test/in", "policy_forbids"),
        ("http://169.254.169.254/latest", "policy_forbids"),
        ("http://localhost:1/", "policy_forbids"),
        ("gopher://hooks.test/", "invalid_request"),
        ("http://user:pw@hooks.test/", "invalid_request"),
        ("", "invalid_request"),
    ],
)
def test_where_webhooks_may_not_go(post: Post, url: str, code: str) -> None:
    """Shows clear refusals, that say what an administrator sets and neither the url nor the setting."""
    ann, _ = post.clinic.somebody()
    with received(post) as receiver:
        refused = post.clinic.call(ann, "POST", "/v1/webhooks", {"url": url})
        assert (refused.json()["code"], refused.json()["charged"]) == (code, False)
        assert str(receiver.port) not in refused.text
    assert post.clinic.call(ann, "GET", "/v1/webhooks").json()["webhooks"] == []


def test_without_destinations_there_are_no_webhooks(post: Post) -> None:
    """Shows the refusal of a server whose administrator has set nothing."""
    ann, _ = post.clinic.somebody()
    post.allow()
    refused = post.clinic.call(ann, "POST", "/v1/webhooks", {"url": f"{HOST}/in"}).json()
    assert refused["why"].startswith("No destination is allowed on this server.")
    assert "webhook_destinations" in refused["instead"][0]


def test_addresses_and_secrets_are_no_plain_text(post: Post) -> None:
    """Shows that the database has neither, that the secret is shown once, and the address to its owner alone."""
    ann, _ = post.clinic.somebody()
    bob, _ = post.clinic.somebody()
    post.clinic.person("root", "admin")
    with received(post) as receiver:
        body = {"url": f"{HOST}:{receiver.port}/token-5f0c"}
        made = post.clinic.call(ann, "POST", "/v1/webhooks", body, **{"Idempotency-Key": "one"}).json()
        again = post.clinic.call(ann, "POST", "/v1/webhooks", body, **{"Idempotency-Key": "one"}).json()
        assert again == {**made, "secret": None, "url": None}
        with sqlite3.connect(post.clinic.services.settings.database().removeprefix("sqlite:///")) as database:
            dump = "\n".join(database.iterdump())
        kept = made["secret"].removeprefix("whsec_")
        assert made["id"] in dump
        secrets = (kept, base64.b64decode(kept).hex(), "token-5f0c")
        assert [text for text in secrets if text in dump] == []
        path = made["links"]["self"]
        assert post.clinic.call(ann, "GET", path).json()["url"] == body["url"]
        assert post.clinic.call("root", "GET", path).json()["url"] is None
        for method, where in (("GET", path), ("DELETE", path), ("POST", f"{path}:test")):
            assert post.clinic.call(bob, method, where).status_code == 404
        assert post.clinic.call("root", "POST", f"{path}:test").status_code == 404
        assert post.clinic.call("root", "DELETE", path).status_code == 200
        assert post.clinic.call(ann, "GET", "/v1/webhooks").json()["webhooks"] == []


def test_a_webhook_that_is_removed_gets_nothing_more(post: Post) -> None:
    """Shows tests, one at a time; an end of what waits; and that those of a disabled principal rest."""
    ann, _ = post.clinic.somebody()
    with received(post) as receiver:
        hook = post.hook(ann, receiver)
        path = hook["links"]["self"]
        assert post.clinic.call(ann, "POST", f"{path}:test").json()["waiting"] == 1
        assert post.clinic.call(ann, "POST", f"{path}:test").status_code == 409
        registry = post.clinic.services.registry
        registry.change_principal(ann, disabled=True, actor="test")
        assert post.turn() == 0
        registry.change_principal(ann, disabled=False, actor="test")
        assert post.turn() == 1
        assert read(receiver.got[0], hook["secret"])["type"] == "webhook.test"
        post.clinic.call(ann, "POST", f"{path}:test")
        gone = post.clinic.call(ann, "DELETE", path).json()
        assert (gone["waiting"], gone["last"]["failure"]) == (0, "removed")
        assert post.turn(hours=1) == 0
        assert post.clinic.call(ann, "DELETE", path).status_code == 404
        post.passed(ann)
        assert post.turn() == 0


def test_webhooks_and_what_waits_for_them_are_bounded(post: Post) -> None:
    """Shows the most webhooks of a principal, the most that waits for one, and that old deliveries are forgotten."""
    ann, _ = post.clinic.somebody()
    registry = post.clinic.services.registry
    with received(post) as receiver:
        hooks = [post.hook(ann, receiver) for _ in range(WEBHOOKS_MAX)]
        body = {"url": f"{HOST}:{receiver.port}/in"}
        assert post.clinic.call(ann, "POST", "/v1/webhooks", body).status_code == 409
        for hook in hooks[1:]:
            registry.remove_webhook(hook["id"], actor="test")
        with registry._writing() as connection:
            notice = Notice(principal=ann, event="monitor.passed", subject="m_1", body="{}")
            for _ in range(WAITING_MAX + 1):
                registry._put(connection, hooks[0]["id"], notice)
            connection.commit()
        shown = post.clinic.call(ann, "GET", hooks[0]["links"]["self"]).json()
        assert (shown["waiting"], shown["last"]["failure"]) == (WAITING_MAX, "too_many_waiting")
        registry.remove_webhook(hooks[0]["id"], actor="test")
        assert registry.forget_deliveries(before="2999") >= WAITING_MAX


def test_another_key_secret_sends_nothing(post: Post) -> None:
    """Shows that what cannot be decrypted is no attempt at any address, and is said as such."""
    ann, _ = post.clinic.somebody()
    with received(post) as receiver:
        hook = post.hook(ann, receiver)
        post.clinic.call(ann, "POST", f"{hook['links']['self']}:test")
        deliveries = post.deliveries
        deliveries.seal = type(deliveries.seal)(b"another secret of this length....", b"noisegate webhooks 1")
        assert post.turn() == 1
        assert receiver.got == []
        assert post.deliveries_of(ann, hook)[0]["failure"] == "unreadable"
