"""`noisegate up`: from nothing to a first answer, and the same again without doing anything twice."""

from __future__ import annotations

import http.client
import os
import shlex
import threading
import time
import urllib.parse
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from server.cli.failure import CommandFailed, explained, usage_error
from server.cli.home import KEY_NAMES, Home
from server.cli.options import HomeOption, absolute, default_home, home_option, operator
from server.cli.output import answer_table, price_lines, print_json, printable, say
from server.cli.questions import first_question, next_question

if TYPE_CHECKING:
    from privacy.policy import Dataset
    from server.administration.refusal import Refusal
    from server.cli.client import Client
    from server.services import Services
    from server.settings import Settings

__all__ = ["up"]

DEMO = "demo"
ROOT_EPSILON, ROOT_DELTA = Fraction(20), Fraction(1, 10**5)
ANALYST_EPSILON, ANALYST_DELTA = Fraction(10), Fraction(1, 10**6)
ROWS_PER_UNIT = 20
"""Rows of one unit that count when a file turns out to have several of one. A fixed number: not read from rows."""

SAMPLE_DEMO = (
    "SELECT region, COUNT(*) AS patients, AVG(age) AS mean_age\nFROM patients GROUP BY region ORDER BY patients DESC"
)
SAMPLE_EPSILON = "0.5"
NEXT_DEMO = "SELECT department, COUNT(*) AS visits, AVG(cost) AS cost FROM visits GROUP BY department"
_READY_SECONDS = 60.0


def up(
    home: HomeOption = None,
    port: Annotated[
        int | None, typer.Option("--port", metavar="N", min=0, max=65535, help="Default: 8765; 0 takes a free one.")
    ] = None,
    data: Annotated[
        Path | None, typer.Option("--data", metavar="FILE", help="Your own CSV, Parquet or DuckDB file.")
    ] = None,
    unit: Annotated[
        str | None,
        typer.Option("--unit", metavar="COLUMN", help="With --data: the column that says whose row it is."),
    ] = None,
    unit_table: Annotated[
        str | None, typer.Option("--table", metavar="NAME", help="With --data: the table with one row per unit.")
    ] = None,
    dataset: Annotated[
        str | None, typer.Option("--dataset", metavar="NAME", help="With --data: name of the dataset.")
    ] = None,
    rows_per_unit: Annotated[
        int | None,
        typer.Option(
            "--rows-per-unit",
            metavar="N",
            min=1,
            max=100_000,
            help="With --data: one unit has several rows, and at most N of them count.",
        ),
    ] = None,
    each_row: Annotated[
        bool,
        typer.Option("--each-row", help="With --data, in place of --unit: each row is one unit, one person."),
    ] = False,
    no_sample: Annotated[bool, typer.Option("--no-sample", help="Do not ask the sample question.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="One line of JSON when ready; no sample question; messages go to stderr.")
    ] = False,
) -> None:
    """Everything at once: demo data, ledger, keys, a budget, a server on this machine, and a first answer.

    Says what it will create before it does, creates nothing outside the home, and is safe to run again: it keeps what
    is there. It serves until Ctrl-C or SIGTERM.

    \b
    examples
      noisegate up
      noisegate up --data people.csv --unit person_id
      noisegate up --data visits.parquet --unit patient_id --rows-per-unit 30
      noisegate up --data survey.csv --each-row
      noisegate up --home /srv/noisegate --port 0 --json       prints url, admin_key, analyst_key, datasets
    """
    _check_options(
        data, unit=unit, unit_table=unit_table, dataset=dataset, rows_per_unit=rows_per_unit, each_row=each_row or None
    )
    from server.cli.serving import interruptible, open_port, serve_here, take_home
    from server.settings import unknown_environment

    place = Home(default_home(home))
    settings = place.settings(host="127.0.0.1", port=port)
    guest = None
    if data is not None:
        assert (unit is None) == each_row
        guest = _OwnData(data, unit=unit, unit_table=unit_table, dataset=dataset, rows_per_unit=rows_per_unit)
    started = time.monotonic()
    with interruptible(), explained(place.path):
        _refuse_served(place)
        if guest is not None:
            guest.require_same(settings.datasets_directory / f"{guest.name}.yaml")
        with open_port(settings.host, settings.port) as listener:
            steps = _Up(place, settings, guest=guest, sample=not (no_sample or as_json), as_json=as_json)
            unknown = unknown_environment(os.environ)
            if unknown:
                steps.tell(f"These variables are no settings and have no effect: {', '.join(unknown)}.")
            steps.announce(listener.getsockname()[1])
            place.create()
            with take_home(place, settings) as lock:
                steps.migrate()
                steps.mend()
                serve_here(
                    settings,
                    listener,
                    lock,
                    prepare=steps.prepare,
                    ready=lambda url, stopping: steps.show(url, stopping, seconds=time.monotonic() - started),
                    # People read this terminal; requests of the analyst are not news.
                    log_level=None if "NOISEGATE_LOG_LEVEL" in os.environ else "warning",
                )
            steps.tell("Stopped. Everything is kept; start again with the same command.")


def _check_options(data: Path | None, **others: object) -> None:
    if data is None:
        given = [name for name, value in others.items() if value is not None]
        if given:
            option = {"unit_table": "table"}.get(given[0], given[0]).replace("_", "-")
            raise usage_error(
                f"--{option} needs --data",
                why="It says something about your own file.",
                instead="For instance: noisegate up --data people.csv --unit person_id",
            )
    elif others["each_row"]:
        for name in ("unit", "rows_per_unit"):
            if others[name] is not None:
                option = name.replace("_", "-")
                raise usage_error(
                    f"--{option} and --each-row exclude each other",
                    why="Either a column names the unit, or each row is one.",
                    instead="Keep --unit where one person may have several rows.",
                )
    elif others["unit"] is None:
        from server.cli.proposing import EACH_ROW, column_list, inspect_data

        raise usage_error(
            "--unit is missing",
            why="Noisegate protects whole units, mostly people, so it must know which column says whose row it is.",
            instead=(f"Name one with --unit COLUMN. The columns are: {column_list(inspect_data(data))}", EACH_ROW),
        )


def _refuse_served(place: Home) -> None:
    """Errors: CommandFailed when another process serves the home; told before the port is looked at."""
    from server.cli.serving import take_home

    if place.serving() is not None:
        with take_home(place, place.settings()):
            pass


class _OwnData:
    """The user's own file: what was asked about it, and its columns."""

    def __init__(
        self, path: Path, *, unit: str | None, unit_table: str | None, dataset: str | None, rows_per_unit: int | None
    ) -> None:
        from server.cli.proposing import column_list, inspect_data, stem
        from server.datasets.identifiers import identifier_for
        from server.datasets.propose import tables_with_unit

        self.path = absolute(path)
        self.unit = unit
        self.unit_table = unit_table
        self.rows_per_unit = rows_per_unit
        self.assumed = False
        self.name = identifier_for(dataset or stem(self.path))
        if dataset is not None and self.name != dataset:
            raise usage_error(
                "--dataset is not accepted",
                why="A dataset's name has letters, digits and underscores, and no digit first.",
                instead=f"For instance: --dataset {self.name}",
            )
        if self.name == DEMO:
            raise usage_error(
                'the dataset cannot be named "demo"',
                why="That is the name of the demo data.",
                instead="Choose another one with --dataset NAME.",
            )
        found = inspect_data(self.path)
        # Tables without the unit's column would need declarations that only their owner can make.
        having = found if unit is None else tables_with_unit(found, unit)
        owners = [table.name for table in having]
        if len(owners) > 1 and unit_table is None:
            whose = "The file has several tables" if unit is None else "Several tables have the column"
            raise usage_error(
                "--table is missing",
                why=f"{whose}: {', '.join(printable(name) for name in owners)}. One of them has one row per unit.",
                instead="Name it: " + " or ".join(f"--table {shlex.quote(printable(name))}" for name in owners[:10]),
            )
        if unit is None and unit_table is not None:
            having = tuple(table for table in found if table.name == unit_table) or found
        self.tables = having or found
        self.left_out = [table.name for table in found if table not in self.tables]
        # One row of one unit in one table: then the unit's column can turn out to repeat.
        self.single = len(self.tables) == 1
        if not self.single and self.rows_per_unit is None:
            self.rows_per_unit = ROWS_PER_UNIT
            self.assumed = True
        # The words of a wrong column or table come now, before anything is made.
        self.text()
        self.columns = column_list(self.tables)

    def text(self, *, rows_per_unit: int | None = None) -> str:
        """The dataset file for it."""
        from privacy.bounds import ContributionBound
        from server.cli.proposing import proposal

        rows = self.rows_per_unit or rows_per_unit
        contribution = None
        if rows is not None:
            contribution = ContributionBound(
                rows_per_unit=rows, groups_per_unit=min(rows, 4), rows_per_unit_and_group=rows
            )
        return proposal(
            self.tables,
            unit=self.unit,
            file=str(self.path),
            dataset=self.name,
            unit_table=self.unit_table,
            contribution=contribution,
            rows_are_units=self.unit is None,
        )

    def wrong_table(self) -> CommandFailed:
        """The failure when the table of the units turns out to have several rows of one."""
        others = [table.name for table in self.tables if table.name != self.unit_table]
        return CommandFailed(
            f'table "{self.unit_table}" has several rows of one unit',
            why="Other tables refer to it, and a reference must find one row. Nothing was attached.",
            instead=(
                f"Name the table with one row per unit with --table: {', '.join(printable(name) for name in others)}.",
                "Or describe one table alone: noisegate init, then noisegate dataset add.",
            ),
        )

    def remarks(self, path: Path) -> list[str]:
        """What the proposal assumes, for its owner to judge."""
        from server.cli.proposing import renamed_lines

        lines = renamed_lines(self.tables)
        if self.left_out:
            names = ", ".join(printable(name) for name in self.left_out)
            lines.append(f"left out: table {names} (only its owner can say how its rows belong to the units)")
        if self.unit is None:
            lines += [
                "each row counts as one person. That is right when everybody has one row: who has several is protected",
                "  one row at a time, not as a whole. If a column names the person, use --unit COLUMN instead.",
            ]
        if self.assumed:
            lines += _assumed(path, "of the tables that refer to it, ")
        return lines

    def require_same(self, path: Path) -> None:
        """Errors: CommandFailed when there is a dataset file of that name already, and it describes other data."""
        from server.datasets import load

        if not path.exists():
            return
        described = load(path)
        files = {os.path.abspath(path.parent / table.source.file) for table in described.tables.values()}
        if str(self.path) not in files:
            raise CommandFailed(
                f'there is a dataset "{self.name}" already, of other data',
                why=f'"{path}" does not mention "{self.path}".',
                instead="Choose another name with --dataset NAME.",
            )


class _Up:
    """The steps of one run. Messages for people; nothing is done twice."""

    def __init__(self, place: Home, settings: Settings, *, guest: _OwnData | None, sample: bool, as_json: bool) -> None:
        self._place = place
        self._settings = settings
        self._guest = guest
        self._sample = sample
        self._json = as_json
        self._keys: dict[str, str] = {}
        self._datasets: list[str] = []
        self._asked: Dataset | None = None
        self._demo_lost = False

    def tell(self, text: str = "") -> None:
        """A line for people: standard output belongs to the one line of JSON when that was asked for."""
        say(text, error=self._json)

    # Before anything is made

    def announce(self, port: int) -> None:
        """Says what will be there."""
        home, settings = self._place.path, self._settings
        own = settings.database_url is None and settings.database_url_file is None
        fresh = not (home / "ledger.sqlite" if own else settings.datasets_directory).exists()
        self.tell(f"Noisegate {'will create in' if fresh else 'uses'} {home}")
        if fresh:
            lines = [("ledger.sqlite" if own else "(database)", "the account of what has been told")]
            if self._guest is None:
                lines.append(("datasets/", "demo data: 25,000 invented patients and their visits"))
            else:
                lines.append((f"datasets/{self._guest.name}.yaml", f"what is known of {self._guest.path.name}"))
            lines += [
                ("snapshots/", "an immutable copy of the data, which queries run on"),
                ("secrets/", "secrets of this server and two API keys, readable by you only"),
            ]
            width = max(len(name) for name, _ in lines)
            for name, what in lines:
                self.tell(f"  {name.ljust(width)}  {what}")
            self.tell("  and nothing outside it, then serves on this machine only:")
        self.tell(f"  http://127.0.0.1:{port}")
        self.tell()

    # Before the services start

    def migrate(self) -> None:
        """Makes the ledger, or brings it to this version. Errors: SchemaTooNew."""
        from accountant.errors import NotMigrated

        try:
            self._place.require_migrated(self._settings)
        except NotMigrated:
            self.tell("making or migrating the ledger ...")
            from migrations.upgrade import upgrade

            upgrade(self._settings.database())

    def mend(self) -> None:
        """Datasets whose snapshot is gone would keep the server from starting: the demo is made again, others told."""
        from server.administration.datasets import remove
        from server.administration.registered import RegisteredDatasets
        from server.cli.snapshots import lost_failure, lost_snapshots

        with self._place.registry(self._settings) as registry:
            registered = RegisteredDatasets(registry)
            for name in lost_snapshots(self._settings, registry):
                own = self._guest is not None and self._guest.name == name
                if name != DEMO and not own:
                    raise lost_failure(name)
                self.tell(f"the snapshot of {name} is missing or damaged: making it again")
                remove(registered, name, served=registered.names, actor=operator())
                self._demo_lost = self._demo_lost or not own

    # With the services, before the first request

    def prepare(self, services: Services) -> None:
        """Data, keys, budgets: each only when it is absent."""
        for name in KEY_NAMES:
            self._keys[name] = self._key(services, name)
        if self._guest is None:
            if self._demo_lost or not services.catalogue.all():
                self._attach_demo(services)
            chosen = services.catalogue.get(DEMO) or services.catalogue.all()[0]
        else:
            chosen = self._attach_own(services, self._guest)
        self._budget(services, chosen.name)
        self._asked = chosen
        self._datasets = [dataset.name for dataset in services.catalogue.all()]

    def _key(self, services: Services, name: str) -> str:
        """A key of that principal that works: the stored one, or a new one."""
        from server.administration.people import GrantKey, People
        from server.roles import Role
        from server.store.registry import KeyFault, KeyRefused

        registry = services.registry
        stored = self._place.stored_key(name)
        if stored is not None:
            try:
                if registry.verify_key(stored)[0].name == name:
                    return stored
            except KeyRefused as refused:
                if refused.reason is KeyFault.DISABLED:
                    raise CommandFailed(
                        f'could not start: the principal "{name}" is disabled',
                        why="Its keys do not work, and this command shows working ones.",
                        instead=("Enable it with another administrator's key (PATCH /v1/principals),",
                                 "or start with: noisegate serve"),
                    ) from None  # fmt: skip
                self.tell(f"the stored key of {name} does not work any more: making a new one")
        people = People(registry, services.settings.key_days)
        wanted = GrantKey(name, None if registry.principal(name) else Role(name), "up")
        made = people.grant_key(wanted, actor=operator()).made
        self._place.store_key(name, made.text)
        return made.text

    def _attach_demo(self, services: Services) -> None:
        from server.demo import write_demo

        folder = self._settings.datasets_directory
        write_demo(folder, progress=lambda text: self.tell(f"{text} ..."))
        self.tell("checking every row and making the snapshot ...")
        self._attach(services, folder / "demo.yaml")

    def _attach(self, services: Services, path: Path) -> Dataset:
        from server.administration.datasets import AttachDataset, LocalFile, attach

        return attach(services.registrar, AttachDataset(LocalFile(path)), actor=operator())

    def _attach_own(self, services: Services, guest: _OwnData) -> Dataset:
        from server.administration.refusal import ActRefused

        folder = self._settings.datasets_directory
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = folder / f"{guest.name}.yaml"
        if path.exists():
            self.tell(f"using your dataset file {path} (--unit, --each-row and --rows-per-unit have no effect)")
            return self._attach(services, path)
        self.tell(f"reading {guest.path.name}: columns {guest.columns}")
        for line in guest.remarks(path):
            self.tell(line)
        _write(path, guest.text())
        try:
            try:
                self.tell("checking every row and making the snapshot ...")
                return self._attach(services, path)
            except ActRefused as refused:
                if guest.unit is None or not _repeats(refused.refusal):
                    raise
                if not guest.single:
                    raise guest.wrong_table() from None
                if guest.rows_per_unit is not None:
                    raise
            # Whether the column repeats is how the table is built. How often is not read: the bound is fixed.
            for line in _assumed(path, f'"{printable(guest.unit)}" repeats, so one unit has several rows: '):
                self.tell(line)
            _write(path, guest.text(rows_per_unit=ROWS_PER_UNIT))
            return self._attach(services, path)
        except BaseException:
            # A file that was never attached would be in the way of the next attempt.
            path.unlink(missing_ok=True)
            raise

    def _budget(self, services: Services, dataset: str) -> None:
        from accountant.account import FilterKind
        from server.administration.budgets import Budgets, OpenBudget, root_of

        budgets = Budgets(services.ledger, services.registry, services.served)
        accounts = services.ledger.accounts(dataset=dataset)
        root = root_of(accounts)
        if root is None:
            root = budgets.open(OpenBudget(dataset=dataset, epsilon=ROOT_EPSILON, delta=ROOT_DELTA), actor=operator())
        if not any(account.principal == "analyst" for account in accounts):
            analyst = OpenBudget(
                dataset=dataset,
                epsilon=min(ANALYST_EPSILON, root.limit.epsilon),
                delta=None if root.filter is FilterKind.PURE else ANALYST_DELTA,
                filter=root.filter,
                principal="analyst",
            )
            budgets.open(analyst, actor=operator())

    # When it answers

    def show(self, url: str, stopping: threading.Event, *, seconds: float) -> None:
        """On a thread of its own: the line of JSON, or the first answer and what to try next."""
        assert self._asked is not None
        if not _wait_ready(url, stopping):
            return
        if self._json:
            self.tell(f"ready after {seconds:.1f} s")
            print_json(
                {
                    "url": url,
                    "admin_key": self._keys["admin"],
                    "analyst_key": self._keys["analyst"],
                    "datasets": self._datasets,
                }
            )
            return
        self.tell(f"Ready: {url}")
        if self._sample:
            from server.cli.client import Client

            with Client(url, self._keys["analyst"]) as client:
                self._first_answer(client, self._asked)
        self._next_steps(url, self._asked)

    def _first_answer(self, client: Client, dataset: Dataset) -> None:
        import uuid

        from server.cli.asking import ask

        sql, epsilon = (SAMPLE_DEMO, SAMPLE_EPSILON) if dataset.name == DEMO else (first_question(dataset), None)
        self.tell("\nA first question, asked as the analyst:\n")
        for line in sql.splitlines():
            self.tell(f"  {line}")
        self.tell()
        body: dict[str, Any] = {"dataset": dataset.name, "sql": sql}
        if epsilon is not None:
            body["spend"] = {"epsilon": epsilon}
        try:
            answer = ask(client, body, idempotency_key=str(uuid.uuid4()))
        except CommandFailed as failure:
            say(str(failure), error=True)
            self.tell("The server runs; the sample question was not answered.")
            return
        say(answer_table(answer), verbatim=True)
        self.tell()
        for line in price_lines(answer):
            self.tell(line)

    def _next_steps(self, url: str, dataset: Dataset) -> None:
        sql = NEXT_DEMO if dataset.name == DEMO else next_question(dataset)
        home = home_option(self._place.path)
        self.tell(
            f"""
Next, from another terminal:

  noisegate query "{sql}" --dataset {dataset.name}{home}
  noisegate estimate "{sql}" --dataset {dataset.name}{home}
  noisegate budget show{home}

with curl:

  export NOISEGATE_KEY={self._keys["analyst"]}
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
  administrator       {self._keys["admin"]}
                      (both keys are kept in {self._place.path / "secrets"})"""
        )
        if self._guest is None:
            self.tell(f"  your own data       noisegate up --data people.csv --unit person_id{home}")
            self.tell(f"                      noisegate up --data people.csv --each-row{home}   (a row is a person)")
        else:
            file = self._settings.datasets_directory / f"{dataset.name}.yaml"
            self.tell(f"  bounds and groups   fill in what {file} asks for, then:")
            self.tell(f"                      noisegate dataset add {file}{home}")
        self.tell("\nServing. Ctrl-C stops it; nothing is lost.")


def _assumed(path: Path, why: str) -> list[str]:
    return [
        f"{why}at most {ROWS_PER_UNIT} rows of one unit will count.",
        "  This is a fixed number, not one that was read from your rows. Choose your own with --rows-per-unit, or",
        f'  under "contribution" in {path}',
    ]


def _write(path: Path, text: str) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        temporary.write_text(text, "utf-8")
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _repeats(refusal: Refusal) -> bool:
    """Whether the only reason is that the unit's column repeats."""
    from engines.snapshot import SNAPSHOT_CODES
    from server.administration.refusal import FaultyDataset

    repeats = (SNAPSHOT_CODES["key_not_unique"], SNAPSHOT_CODES["unit_not_one_row"])
    return isinstance(refusal, FaultyDataset) and all(finding.why.startswith(repeats) for finding in refusal.findings)


def _ready(url: str) -> bool:
    """Whether the server says that queries can be served. Asked without the client, which takes long to load."""
    address = urllib.parse.urlsplit(url)
    connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=10)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _wait_ready(url: str, stopping: threading.Event) -> bool:
    """Whether the server got ready before it was stopped. Errors: CommandFailed when it takes too long."""
    deadline = time.monotonic() + _READY_SECONDS
    while True:
        if stopping.is_set():
            return False
        if _ready(url):
            return True
        if time.monotonic() > deadline:
            raise CommandFailed(
                "the server does not get ready",
                why=f"After {_READY_SECONDS:.0f} s the ledger or the engines still do not answer.",
                instead="Stop it (Ctrl-C), then see: noisegate doctor",
            )
        time.sleep(0.05)
