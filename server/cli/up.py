"""`noisegate up`: from nothing to a first answer, and the same again without doing anything twice."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from server.cli.answers import answer_table, left_out_lines, price_lines
from server.cli.failure import CommandFailed
from server.cli.options import Here, operator, option
from server.cli.output import print_json, printable, say
from server.cli.own_data import DEMO, About, OwnData, OwnFile
from server.cli.serving import open_port, take_home
from server.files import write_whole
from server.home import KEY_NAMES, Home

if TYPE_CHECKING:
    from collections.abc import Sequence

    from privacy.policy import Dataset
    from server.administration.budgets import Budgets
    from server.administration.refusal import Refusal
    from server.services import Services
    from server.settings import Settings

__all__ = ["up"]

SAMPLE_DEMO = (
    "SELECT region, COUNT(*) AS patients, AVG(age) AS mean_age\nFROM patients GROUP BY region ORDER BY patients DESC"
)
SAMPLE_EPSILON = "0.5"
NEXT_DEMO = "SELECT department, COUNT(*) AS visits, AVG(cost) AS cost FROM visits GROUP BY department"
_READY_SECONDS = 60.0
_ANALYST = KEY_NAMES[1]


def up(
    *,
    here: Here,
    port: int | None = option("--port N", "Default: 8765; 0 takes a free one.", min=0, max=65535),
    own: OwnData,
    about: About,
    no_sample: bool = option("--no-sample", "Do not ask the sample question.", False),
) -> None:
    """Everything at once: data, keys, a budget, a first answer."""
    from server.serving import interruptible, serve
    from server.settings import unknown_environment

    place = here.place()
    guest = own.file(about)
    settings = place.settings(host="127.0.0.1", port=port)
    with interruptible():
        if place.serving() is not None:  # said before the port is looked at
            with take_home(place, settings):
                pass
        steps = _Up(place, settings, guest, sample=not (no_sample or here.as_json), as_json=here.as_json)
        if guest is not None:
            guest.require_same(steps.described)
        with open_port(settings.host, settings.port) as listener:
            unknown = unknown_environment(os.environ)
            if unknown:
                steps.tell(f"These variables are not settings and have no effect: {', '.join(unknown)}.")
            steps.announce(listener.getsockname()[1])
            place.create()
            with take_home(place, settings) as lock:
                steps.migrate()
                # People read this terminal; requests of the analyst would be noise in it.
                level = None if "NOISEGATE_LOG_LEVEL" in os.environ else "warning"
                serve(settings, listener, lock, prepare=steps.prepare, ready=steps.show, log_level=level)
            steps.tell("Stopped. Everything is kept; start again with the same command.")


@dataclass(slots=True, repr=False)
class _Up:
    """The steps of one run. Messages for people; nothing is done twice."""

    place: Home
    settings: Settings
    guest: OwnFile | None
    sample: bool
    as_json: bool
    keys: dict[str, str] = field(default_factory=dict)
    datasets: list[str] = field(default_factory=list)
    asked: Dataset | None = None
    started: float = field(default_factory=time.monotonic)

    @property
    def described(self) -> Path:
        """The dataset file."""
        return self.settings.datasets_directory / f"{DEMO if self.guest is None else self.guest.name}.yaml"

    def tell(self, *lines: str) -> None:
        """Lines for people: standard output belongs to the one line of JSON when that was asked for."""
        say("\n".join(lines), error=self.as_json)

    # Before anything is made

    def announce(self, port: int) -> None:
        """Says what will be there."""
        home, settings, guest = self.place.path, self.settings, self.guest
        own = settings.database_url is None and settings.database_url_file is None
        fresh = not (home / "ledger.sqlite" if own else settings.datasets_directory).exists()
        self.tell(f"Noisegate {'will create in' if fresh else 'uses'} {home}")
        if fresh:
            data = "demo data: 25,000 invented patients and their visits"
            if guest is not None:
                data = f"{guest.name}.yaml: what is known of {guest.path.name}"
            self.tell(
                f"  {'ledger.sqlite' if own else '(database)   '}  the account of what has been revealed",
                f"  datasets/      {data}",
                "  snapshots/     an immutable copy of the data, which queries run on",
                "  secrets/       secrets of this server and two API keys, readable by you only",
                "  and nothing outside it, then serves on this machine only:",
            )
        self.tell(f"  http://127.0.0.1:{port}\n")

    # Before the services start

    def migrate(self) -> None:
        """Makes the ledger, or brings it to this version. Errors: SchemaTooNew."""
        from accountant.errors import NotMigrated
        from migrations.upgrade import upgrade

        try:
            self.place.require_migrated(self.settings)
        except NotMigrated:
            self.tell("making or migrating the ledger ...")
            upgrade(self.settings.database())

    # With the services, before the first request

    def prepare(self, services: Services) -> None:
        """Data, keys, budgets: each only when it is absent."""
        from server.administration.budgets import Budgets
        from server.watching import catalogue_of

        for name in KEY_NAMES:
            self.keys[name] = self._key(services, name)
        catalogue = catalogue_of(services)
        budgets = Budgets(services.ledger, services.registry, services.served)
        if self.guest is not None:
            chosen = self._attach_own(services, self.guest)
        else:
            if DEMO in catalogue.unavailable() or not catalogue.tags():
                from server.demo import write_demo

                write_demo(self.settings.datasets_directory, progress=lambda text: self.tell(f"{text} ..."))
                self._attach(services)
            if not catalogue.all():
                why = "; ".join(f"{name}: {broken.why}" for name, broken in catalogue.broken().items())
                raise CommandFailed(f"""could not start: no dataset can be served
                    {printable(why)} The ledger is not touched.
                    Attach them again: noisegate dataset add FILE, with the dataset file that you attached,
                    or stop serving one: noisegate dataset remove NAME (what was spent on it stays known).""")
            chosen = catalogue.get(DEMO) or _asked_before(catalogue.all(), budgets)
        for name, broken in catalogue.broken().items():
            self.tell(f"dataset {name} is not served: {broken.why}")
            self.tell("  Attach it again: noisegate dataset add FILE (what was spent on it stays known).")
        budgets.open_first(chosen.name, analyst=_ANALYST, actor=operator())
        self.asked = chosen
        self.datasets = [dataset.name for dataset in services.catalogue.all()]

    def _key(self, services: Services, name: str) -> str:
        """A key of that principal that works: the stored one, or a new one."""
        from server.administration.people import GrantKey, People
        from server.roles import Role
        from server.store.errors import KeyRefused

        registry = services.registry
        stored = self.place.stored_key(name)
        if stored is not None:
            try:
                if registry.verify_key(stored)[0].name == name:
                    return stored
            except KeyRefused as refused:
                if refused.reason == "disabled":
                    raise CommandFailed(f"""could not start: the principal "{name}" is disabled
                        Its keys do not work, and this command shows working ones.
                        Enable it with another administrator's key (PATCH /v1/principals),
                        or start with: noisegate serve""") from None
                self.tell(f"the stored key of {name} does not work any more: making a new one")
        people = People(registry, services.settings.key_days)
        wanted = GrantKey(name, None if registry.principal(name) else Role(name), "up")
        made = people.grant_key(wanted, actor=operator()).made
        self.place.store_key(name, made.text)
        return made.text

    def _attach(self, services: Services) -> Dataset:
        from engines.stored import open_snapshot
        from server.administration.datasets import AttachDataset, LocalFile, attach
        from server.watching import catalogue_of

        self.tell("checking every row and making the snapshot ...")
        dataset = attach(services.registrar, AttachDataset(LocalFile(self.described)), actor=operator())
        for line in left_out_lines(open_snapshot(catalogue_of(services).snapshot(dataset))):
            self.tell(line)
        return dataset

    def _attach_own(self, services: Services, guest: OwnFile) -> Dataset:
        from server.administration.refusal import ActRefused

        path = self.described
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if path.exists():
            self.tell(f"using your dataset file {path} (--unit, --each-row and --rows-per-unit have no effect)")
            return self._attach(services)
        self.tell(*guest.remarks(path))
        write_whole(path, guest.text())
        try:
            try:
                return self._attach(services)
            except ActRefused as refused:
                repeats = guest.unit is not None and _repeats(refused.refusal)
                if repeats and not guest.single:
                    raise guest.wrong_table() from None
                if not repeats or guest.rows_per_unit is not None:
                    raise
            # Whether the column repeats is how the table is built. How often is not read.
            self.tell(*guest.assumption(path, f'"{printable(guest.unit)}" repeats, so one unit has several rows: '))
            write_whole(path, guest.text(several=True))
            return self._attach(services)
        except BaseException:
            # A file that was never attached would be in the way of the next attempt.
            path.unlink(missing_ok=True)
            raise

    # When it answers

    def show(self, url: str, stopping: threading.Event) -> None:
        """On a thread of its own: the line of JSON, or the first answer and what to try next."""
        assert self.asked is not None
        try:
            if not _wait_ready(url, stopping):
                return
            if self.as_json:
                self.tell(f"ready after {time.monotonic() - self.started:.1f} s")
                keys = {f"{name}_key": key for name, key in self.keys.items()}
                print_json({"url": url, **keys, "datasets": self.datasets})
                return
            self.tell(f"Ready: {url}")
            if self.sample:
                self._first_answer(url, self.asked)
            self._next_steps(url, self.asked)
        except CommandFailed as failure:
            say(str(failure), error=True)
        except Exception as error:  # noqa: BLE001 - the end of a thread: a message instead of a traceback
            say(f"noisegate: could not show the first answer ({type(error).__name__}); the server runs.", error=True)

    def _first_answer(self, url: str, dataset: Dataset) -> None:
        from server.cli.client import Client
        from server.datasets.questions import first_question

        sql, epsilon = (SAMPLE_DEMO, SAMPLE_EPSILON) if dataset.name == DEMO else (first_question(dataset), None)
        self.tell("\nA first question, asked as the analyst:\n")
        self.tell("  " + sql.replace("\n", "\n  ") + "\n")
        body = {"dataset": dataset.name, "sql": sql} | ({"spend": {"epsilon": epsilon}} if epsilon else {})
        try:
            with Client(url, self.keys["analyst"]) as client:
                answer = client.ask(body)
        except CommandFailed as failure:
            say(str(failure), error=True)
            self.tell("The server runs; the sample question was not answered.")
            return
        say(f"{answer_table(answer)}\n", verbatim=True)
        self.tell(*price_lines(answer))

    def _next_steps(self, url: str, dataset: Dataset) -> None:
        from server.datasets.questions import next_question

        sql = NEXT_DEMO if dataset.name == DEMO else next_question(dataset)
        self.tell(
            f"""
Next, from another terminal:

  noisegate query "{sql}" --dataset {dataset.name}
  noisegate estimate "{sql}" --dataset {dataset.name}
  noisegate budget show

with curl:

  export NOISEGATE_KEY={self.keys["analyst"]}
  curl -s {url}/v1/queries -H "Authorization: Bearer $NOISEGATE_KEY" \\
    -H "Content-Type: application/json" \\
    -d '{{"dataset": "{dataset.name}", "sql": "{sql}"}}'

with Python (pip install httpx):

  import httpx, os
  key = os.environ["NOISEGATE_KEY"]
  answer = httpx.post("{url}/v1/queries", headers={{"Authorization": f"Bearer {{key}}"}},
                      json={{"dataset": "{dataset.name}", "sql": "{sql}"}}).json()
  print(answer["rows"], answer["lows"], answer["highs"], answer["accounting"]["remaining"])

  API documentation   {url}/docs
  administrator       {self.keys["admin"]}
                      (both keys are kept in {self.place.path / "secrets"})"""
        )
        if self.guest is None:
            self.tell("  your own data       noisegate up --data people.csv --unit person_id")
            self.tell("                      noisegate up --data people.csv --each-row   (a row is a person)")
        else:
            self.tell(f"  bounds and groups   fill in what {self.described} asks for, then:")
            self.tell(f"                      noisegate dataset add {self.described}")
        self.tell("\nServing. Ctrl-C stops it; nothing is lost.")


def _asked_before(datasets: Sequence[Dataset], budgets: Budgets) -> Dataset:
    """The first dataset of which the analyst has a budget, so that no other one opens unasked; else the first one."""
    for dataset in datasets:
        if any(account.principal == _ANALYST for account in budgets.accounts_of(dataset.name)):
            return dataset
    return datasets[0]


def _repeats(refusal: Refusal) -> bool:
    """Whether the only reason is that the unit's column repeats."""
    from engines.snapshot_findings import SNAPSHOT_CODES
    from server.administration.refusal import FaultyDataset

    repeats = (SNAPSHOT_CODES["key_not_unique"], SNAPSHOT_CODES["unit_not_one_row"])
    return isinstance(refusal, FaultyDataset) and all(finding.why.startswith(repeats) for finding in refusal.findings)


def _wait_ready(url: str, stopping: threading.Event) -> bool:
    """Whether the server got ready before it was stopped. Errors: CommandFailed when it takes too long."""
    deadline = time.monotonic() + _READY_SECONDS
    while not stopping.wait(0.05):
        # Asked without the client, which takes long to load.
        connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=10)
        expected = (OSError, http.client.HTTPException, ValueError, KeyError)
        with contextlib.suppress(*expected), contextlib.closing(connection):
            connection.request("GET", "/readyz")
            checks = json.loads(connection.getresponse().read())["checks"]
            # `prepare` reports a dataset that cannot be read; it keeps nobody from asking the others.
            if all(outcome == "ok" for check, outcome in checks.items() if check != "datasets"):
                return True
        if time.monotonic() > deadline:
            raise CommandFailed(f"""the server does not get ready
                After {_READY_SECONDS:.0f} s the ledger or the engines still do not answer.
                Stop it (Ctrl-C), then see: noisegate doctor""")
    return False
