"""HTTP to a server of Noisegate: which one and as whom, and its problems in words."""

from __future__ import annotations

import ipaddress
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self
from urllib.parse import quote, urlsplit

from privacy.refusal import Finding
from server.cli.failure import CommandFailed, UsageError
from server.cli.fields import of_path, option_of, with_options
from server.cli.options import option
from server.cli.output import Json, as_commands, printable
from server.home import Home

if TYPE_CHECKING:
    import httpx

__all__ = ["Client", "Remote"]

DEFAULT_URL = "http://127.0.0.1:8765"
_ATTEMPTS = 3
_PATIENCE_SECONDS = 3600.0
NO_FIELDS: Mapping[str, str] = {}


def _loopback(host: str | None) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host or "").is_loopback
    except ValueError:
        return False


_URL = f"Address of the server. Default: the one that serves this home, else {DEFAULT_URL}."
_KEY = "API key. Others on this machine may see arguments: prefer the variable or --key-file."


@dataclass(frozen=True, slots=True, repr=False)
class Remote:
    """Which server is asked, and as whom: options of the commands that work over HTTP."""

    url: str | None = option("--url URL", _URL, envvar="NOISEGATE_URL")
    key: str | None = option("--key KEY", _KEY, envvar="NOISEGATE_KEY")
    key_file: Path | None = option("--key-file FILE", "File that holds the API key, and nothing else.")

    def connect(self, home: Home, *, stored: str = "analyst") -> Client:
        """A connection to the server that is meant, where no key is given with this one of the home.

        Errors: CommandFailed.
        """
        url = self._address(home)
        return Client(url, self._secret(home, url, stored))

    def _address(self, home: Home) -> str:
        """The server's address: the one that was given, that of the process that serves the home, or the default."""
        url = (self.url or home.url() or DEFAULT_URL).rstrip("/")
        try:
            parts = urlsplit(url)
            host, port = parts.hostname, parts.port
        except ValueError:
            parts, host, port = urlsplit(""), None, None
        if parts.scheme not in ("http", "https") or not host or parts.username or parts.query or parts.fragment:
            raise UsageError(f"""--url is not accepted
                It is not an address such as {DEFAULT_URL} (http or https, a host, no user, no query).
                Write the address that the server printed when it started.""")
        if parts.scheme == "http" and not _loopback(host):
            raise UsageError(f"""--url is not accepted
                The API key would cross the network in clear text.
                Use https://{host}{f":{port}" if port else ""}, through a proxy that speaks TLS.""")
        return url

    def _secret(self, home: Home, url: str, name: str) -> str:
        """The API key: given, from a file, or the one stored under a name when the server is this home's own."""
        key = self.key
        if key is not None and self.key_file is not None:
            raise UsageError("""two keys are given
                --key and --key-file are both set.
                Set one of them.""")
        if self.key_file is not None:
            try:
                key = self.key_file.read_text("ascii").strip()
            except (OSError, UnicodeDecodeError):
                raise UsageError(f"""could not read the key file "{self.key_file}"
                    It does not exist, may not be read, or is not plain text.
                    Give a file with the key (ngk_...) and nothing else.""") from None
        # The stored key goes to this home's own server, and to nobody else.
        stored, served = home.stored_key(name), home.url()
        key = key or (stored if url == served else None)
        if not key and served is None and stored:
            raise UsageError(f"""an API key is missing, and no server serves this home
                Nothing serves "{home.path}" now, and its stored key goes to no other server.
                Start it: noisegate up
                For another server set NOISEGATE_URL and NOISEGATE_KEY.""")
        if not key:
            raise UsageError("""an API key is missing
                Every question is asked by somebody, and is paid from that principal's budget.
                Set NOISEGATE_KEY, or use --key-file FILE.
                An administrator makes keys with: noisegate key create NAME --role analyst""")
        if not key.isascii() or not key.isprintable() or not key.startswith("ngk_"):
            raise UsageError("""the API key is not accepted
                A key of Noisegate begins with ngk_ and is one word.
                Copy it again, without quotes or spaces.""")
        return key


class Client:
    """A connection to one server as one principal. Errors of every method: CommandFailed."""

    def __init__(self, url: str, key: str) -> None:
        import httpx

        self.url = url
        headers, timeout = {"Authorization": f"Bearer {key}"}, httpx.Timeout(60.0, connect=10.0)
        # A proxy of the environment must not get to see what goes to this machine itself.
        trusted = not _loopback(urlsplit(url).hostname)
        self._http = httpx.Client(base_url=url, headers=headers, timeout=timeout, trust_env=trusted)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def get(self, path: str) -> Json:
        """What is at a path."""
        return self._read(self._send("GET", path))

    def estimate(self, body: Json) -> Json:
        """What a query would cost."""
        return self._read(self._send("POST", "/v1/estimates", body))

    def ask(self, body: Json, *, idempotency_key: str | None = None) -> Json:
        """The settled answer of a query: waits as long as it runs. Without a key it gets a new one."""
        response = self._send("POST", "/v1/queries", body, idempotency_key=idempotency_key or str(uuid.uuid4()))
        return self._settled(response, self._read(response))

    def sharpen(self, query: str, body: Json, *, idempotency_key: str | None = None) -> Json:
        """The settled answer of an earlier query with a better wish. Without a key it gets a new one."""
        path = f"/v1/queries/{quote(query, safe='')}:sharpen"
        response = self._send("POST", path, body, idempotency_key=idempotency_key or str(uuid.uuid4()))
        return self._settled(response, self._read(response))

    def _settled(self, response: httpx.Response, answer: Json) -> Json:
        """What a query came to, waiting while it runs."""

        def again() -> bool:
            nonlocal response, answer
            response = self._send("GET", f"/v1/queries/{answer['id']}")
            answer = self._read(response)
            return response.status_code == 202

        if response.status_code == 202 and not _patient(again):
            raise CommandFailed(f"""the answer did not come in an hour
                The query still runs. It was charged once.
                Fetch it later: GET {self.url}/v1/queries/{printable(answer.get("id"))}""")
        return answer

    def price_of(self, path: str, body: Json) -> Json:
        """What a resource would be and cost, by the path of the list of its kind."""
        return self._read(self._send("POST", f"{path}:estimate", body))

    def make(self, path: str, body: Json, *, idempotency_key: str | None = None) -> Json:
        """A resource that is settled, or failed: waits as long as it runs. Without a key it gets a new one."""
        key = idempotency_key or str(uuid.uuid4())
        answer = self._read(self._send("POST", path, body, idempotency_key=key))

        def again() -> bool:
            nonlocal answer
            answer = self.get(f"{path}/{answer['id']}")
            return bool(answer["status"] == "running")

        if answer["status"] == "running" and not _patient(again):
            raise CommandFailed(f"""what was asked for did not come in an hour
                It still runs. It was charged once.
                Look later with the same command and --idempotency-key {printable(key)}""")
        return answer

    def ask_statistic(self, body: Json, *, idempotency_key: str | None = None) -> Json:
        """The outcome of a registered statistic: waits as long as it runs. Without a key a repeat is free."""
        response = self._send("POST", "/v1/statistics", body, idempotency_key=idempotency_key)
        return self._settled(response, self._read(response))

    def one(self, path: str, identifier: str) -> Json:
        """The member of a list."""
        return self.get(f"{path}/{quote(identifier, safe='')}")

    def end(self, path: str, identifier: str) -> Json:
        """What is left of a member of a list that is closed, or removed."""
        return self._read(self._send("DELETE", f"{path}/{quote(identifier, safe='')}"))

    def post(self, path: str, body: Json) -> Json:
        """What comes of an act at a path. It is sent once."""
        return self._read(self._send("POST", path, body))

    def store(self, path: str, body: Json, *, replaces: bool = False) -> Json:
        """What is at a path once a document of the caller's own is stored there, or in place of what is there."""
        return self._read(self._send("PUT" if replaces else "POST", path, body))

    def change(self, path: str, body: Json) -> Json:
        """What is at a path after a change."""
        return self._read(self._send("PATCH", path, body))

    def ask_stream(self, stream: str, body: Json) -> Json:
        """The answers of a stream."""
        return self._read(self._send("POST", f"/v1/streams/{quote(stream, safe='')}/queries", body))

    def only_dataset(self, advice: str) -> str:
        """The only dataset that the caller may ask; their names are in the failure when there is not one."""
        listed = self.get("/v1/datasets")
        names, broken = [str(item["name"]) for item in listed["datasets"]], listed.get("unavailable")
        if len(names) == 1:
            return names[0]
        why = "You have a budget for no dataset.\nAsk an administrator for a budget."
        if names:
            why = f"You may ask: {printable(', '.join(names))}.\n{advice}"
        elif broken:
            why = f"Not available at the moment: {printable(', '.join(broken))}.\nTell the operator of the server."
        raise UsageError(f"the dataset is missing\n{why}")

    def text(self, path: str, *, accept: str) -> str:
        """What is at a path, as text of that media type."""
        response = self._send("GET", path, Accept=accept)
        if response.status_code >= 400 or not response.headers.get("Content-Type", "").startswith(accept):
            self._read(response)
            raise self._foreign(f"It did not answer in the form that was asked for ({accept}).")
        return response.text

    def _send(
        self, method: str, path: str, body: Json | None = None, *, idempotency_key: str | None = None, **headers: str
    ) -> httpx.Response:
        """The response. What only reads or has an idempotency key, and so is never charged twice, is sent again when
        the connection broke.
        """
        import httpx

        if idempotency_key is not None:
            headers["Idempotency-Key"] = idempotency_key
        for _ in range(_ATTEMPTS if method == "GET" or idempotency_key is not None else 1):
            try:
                return self._http.request(method, path, json=body, headers=headers)
            except httpx.ConnectError:
                raise CommandFailed(f"""could not reach a server at {self.url}
                    Nothing answers at this address.
                    Start one with: noisegate up
                    or give its address with --url (or NOISEGATE_URL).""") from None
            except (httpx.HTTPError, httpx.InvalidURL) as error:
                broken = error
        reason = "It did not answer in time" if isinstance(broken, httpx.TimeoutException) else "The connection broke"
        charged, again = " The question may have been charged.", f"--idempotency-key {idempotency_key}"
        raise CommandFailed(f"""the server at {self.url} did not answer
            {reason} ({type(broken).__name__}).{charged if idempotency_key else ""}
            {f"Ask again with {again}: it is never charged twice." if idempotency_key else ""}
            See whether the server still runs: noisegate doctor""")

    def _read(self, response: httpx.Response) -> Json:
        try:
            body = response.json() if response.content else {}
        except ValueError:
            body = None
        if not isinstance(body, dict) or (response.status_code >= 400 and "what" not in body):
            raise self._foreign(f"Its answer (status {response.status_code}) is not one of this program's.")
        if response.status_code >= 400:
            raise _problem_failure(body, of_path(response.request.url.path))
        return body

    def _foreign(self, why: str) -> CommandFailed:
        return CommandFailed(f"""what answers at {self.url} is not Noisegate
            {why}
            Check the address and the port.""")


def _patient(runs: Callable[[], bool]) -> bool:
    """Looks again and again, at longer and longer pauses, until it runs no more. False when patience ended before."""
    deadline, pause = time.monotonic() + _PATIENCE_SECONDS, 0.2
    while time.monotonic() <= deadline:
        time.sleep(pause)
        pause = min(pause * 1.5, 5.0)
        if not runs():
            return True
    return False


def _problem_failure(problem: Json, fields: Mapping[str, str] = NO_FIELDS) -> CommandFailed:
    """A problem document in words: every finding with its place, what to do, and whether it was charged.

    `fields` are the options of the command by the fields of the request that they fill.
    """
    findings = [item for item in problem.get("findings") or [] if isinstance(item, dict)]
    if len(findings) > 1:
        why = "\n".join([f"There are {len(findings)} reasons:", *(_finding(item, fields) for item in findings)])
    else:
        field = _field(findings[0] if findings else problem, fields)
        findings = [problem]
        why = f"{_said(problem.get('why', ''), fields)}{field}{_place(problem.get('position'))}"
    lines = [as_commands(printable(line)) for item in findings for line in item.get("instead") or []]
    advice = dict.fromkeys(with_options(line, fields) for line in lines)
    code, charged = printable(problem.get("code", "")), " It was charged." if problem.get("charged") else ""
    what = f"{_said(problem['what'], fields)} [{code}]"
    return CommandFailed(Finding(code, what, why + charged, tuple(filter(None, advice))))


def _finding(item: Json, fields: Mapping[str, str]) -> str:
    place = f"{_field(item, fields)}{_place(item.get('position'))}"
    return f"- {_said(item.get('what', ''), fields)}{place}: {_said(item.get('why', ''), fields)}"


def _said(text: object, fields: Mapping[str, str]) -> str:
    return with_options(printable(text), fields)


def _field(item: Json, fields: Mapping[str, str]) -> str:
    """What was typed for the field that a finding is about."""
    return f" ({printable(option_of(str(item['field']), fields))})" if item.get("field") else ""


def _place(position: object) -> str:
    if not isinstance(position, dict):
        return ""
    near = f', at "{printable(position["text"])}"' if position.get("text") else ""
    return f" (line {position.get('line')}, column {position.get('column')}{near})"
