"""HTTP to a server of Noisegate, and its problems in words."""

from __future__ import annotations

import ipaddress
import time
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

import httpx

from server.cli.failure import CommandFailed, usage_error
from server.cli.home import Home
from server.cli.options import home_option
from server.cli.output import printable
from server.cli.wording import as_commands

__all__ = ["DEFAULT_URL", "Client", "choose_key", "choose_url"]

DEFAULT_URL = "http://127.0.0.1:8765"
_ATTEMPTS = 3
_PATIENCE_SECONDS = 3600.0


def _loopback(host: str | None) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host or "").is_loopback
    except ValueError:
        return False


def choose_url(given: str | None, home: Home) -> str:
    """The server's address: the one that was given, that of the process that serves the home, or the default."""
    url = (given or home.url() or DEFAULT_URL).rstrip("/")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        parts, host, port = urlsplit(""), None, None
    if parts.scheme not in ("http", "https") or not host or parts.username or parts.query or parts.fragment:
        raise usage_error(
            "--url is not accepted",
            why="It is not an address such as http://127.0.0.1:8765 (http or https, a host, no user, no query).",
            instead="Write the address that the server printed when it started.",
        )
    if parts.scheme == "http" and not _loopback(host):
        raise usage_error(
            "--url is not accepted",
            why="The API key would cross the network in clear text.",
            instead=f"Use https://{host}{f':{port}' if port else ''}, through a proxy that speaks TLS.",
        )
    return url


def choose_key(given: str | None, key_file: Path | None, home: Home, url: str) -> str:
    """The API key: given, from a file, or the stored analyst's key when the server is this home's own."""
    if given is not None and key_file is not None:
        raise usage_error("two keys are given", why="--key and --key-file are both set.", instead="Set one of them.")
    if key_file is not None:
        try:
            given = key_file.read_text("ascii").strip()
        except (OSError, UnicodeDecodeError):
            raise usage_error(
                f'could not read the key file "{key_file}"',
                why="It does not exist, may not be read, or is not plain text.",
                instead="Give a file with the key (ngk_...) and nothing else.",
            ) from None
    # The stored key goes to this home's own server, and to nobody else.
    key = given or (home.stored_key("analyst") if url == home.url() else None)
    if not key and home.url() is None and home.stored_key("analyst"):
        raise usage_error(
            "an API key is missing, and no server serves this home",
            why=f'Nothing serves "{home.path}" now, and its stored key goes to no other server.',
            instead=(
                f"Start it: noisegate up{home_option(home.path)}",
                "For another server set NOISEGATE_URL and NOISEGATE_KEY.",
            ),
        )
    if not key:
        raise usage_error(
            "an API key is missing",
            why="Every question is asked by somebody, and is paid from that principal's budget.",
            instead=(
                "Set NOISEGATE_KEY, or use --key-file FILE.",
                "An administrator makes keys with: noisegate key create NAME --role analyst",
            ),
        )
    if not key.isascii() or not key.isprintable() or not key.startswith("ngk_"):
        raise usage_error(
            "the API key is not accepted", why="A key of Noisegate begins with ngk_ and is one word.",
            instead="Copy it again, without quotes or spaces.",
        )  # fmt: skip
    return key


class Client:
    """A connection to one server as one principal. Errors of every method: CommandFailed."""

    def __init__(self, url: str, key: str, *, timeout_seconds: float = 60.0) -> None:
        self.url = url
        # A proxy of the environment must not get to see what goes to this machine itself.
        self._http = httpx.Client(
            base_url=url,
            headers={"Authorization": f"Bearer {key}"},
            timeout=httpx.Timeout(timeout_seconds, connect=10.0),
            trust_env=not _loopback(urlsplit(url).hostname),
            follow_redirects=False,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def call(
        self, method: str, path: str, body: Any = None, *, idempotency_key: str | None = None
    ) -> tuple[int, dict[str, Any]]:
        """Status and JSON of a successful answer.

        A request with an idempotency key, or that only reads, is sent again when the connection broke: the same key
        is never charged twice.
        """
        response = self._send(method, path, body, idempotency_key=idempotency_key)
        return response.status_code, self._read(response)

    def ask(self, body: dict[str, Any], *, idempotency_key: str) -> dict[str, Any]:
        """The settled answer of a query: waits as long as it runs."""
        status, answer = self.call("POST", "/v1/queries", body, idempotency_key=idempotency_key)
        deadline = time.monotonic() + _PATIENCE_SECONDS
        pause = 0.2
        while status == 202:
            if time.monotonic() > deadline:
                raise CommandFailed(
                    "the answer did not come in an hour",
                    why="The query still runs. It was charged once.",
                    instead=f"Fetch it later: GET {self.url}/v1/queries/{printable(answer.get('id'))}",
                )
            time.sleep(pause)
            pause = min(pause * 1.5, 5.0)
            status, answer = self.call("GET", f"/v1/queries/{answer['id']}")
        return answer

    def only_dataset(self, advice: str) -> str:
        """The only dataset that the caller may ask; their names are in the failure when there is not one."""
        listed = self.call("GET", "/v1/datasets")[1]
        names = [str(item["name"]) for item in listed["datasets"]]
        if len(names) == 1:
            return names[0]
        why, instead = "You have a budget for no dataset.", "Ask an administrator for a budget."
        if names:
            why, instead = f"You may ask: {printable(', '.join(names))}.", advice
        elif listed.get("unavailable"):
            broken = printable(", ".join(listed["unavailable"]))
            why, instead = f"Not available at the moment: {broken}.", "Tell the operator of the server."
        raise usage_error("the dataset is missing", why=why, instead=instead)

    def text(self, path: str, *, accept: str) -> str:
        """What stands at a path, as text of that media type."""
        response = self._send("GET", path, None, Accept=accept)
        if response.status_code >= 400 or not response.headers.get("Content-Type", "").startswith(accept):
            self._read(response)
            raise self._foreign(f"It did not answer in the form that was asked for ({accept}).")
        return response.text

    def _send(
        self, method: str, path: str, body: Any, *, idempotency_key: str | None = None, **headers: str
    ) -> httpx.Response:
        if idempotency_key is not None:
            headers["Idempotency-Key"] = idempotency_key
        for _ in range(_ATTEMPTS if method == "GET" or idempotency_key is not None else 1):
            try:
                return self._http.request(method, path, json=body, headers=headers)
            except httpx.ConnectError:
                raise CommandFailed(
                    f"could not reach a server at {self.url}",
                    why="Nothing answers at this address.",
                    instead=("Start one with: noisegate up", "or give its address with --url (or NOISEGATE_URL)."),
                ) from None
            except (httpx.HTTPError, httpx.InvalidURL) as error:
                broken = error
        reason = "It did not answer in time" if isinstance(broken, httpx.TimeoutException) else "The connection broke"
        charged = "" if idempotency_key is None else " The question may have been charged."
        again = f"Ask again with --idempotency-key {idempotency_key}: it is never charged twice."
        raise CommandFailed(
            f"the server at {self.url} did not answer",
            why=f"{reason} ({type(broken).__name__}).{charged}",
            instead=[*([again] if charged else []), "See whether the server still runs: noisegate doctor"],
        )

    def _read(self, response: httpx.Response) -> dict[str, Any]:
        try:
            body = response.json() if response.content else {}
        except ValueError:
            body = None
        if not isinstance(body, dict) or (response.status_code >= 400 and "what" not in body):
            raise self._foreign(f"Its answer (status {response.status_code}) is not one of this program's.")
        if response.status_code >= 400:
            raise _problem_failure(body)
        return body

    def _foreign(self, why: str) -> CommandFailed:
        return CommandFailed(
            f"what answers at {self.url} is not Noisegate", why=why, instead="Check the address and the port."
        )


def _problem_failure(problem: dict[str, Any]) -> CommandFailed:
    """A problem document in words: every finding with its place, what to do, and whether it was charged."""
    findings = [item for item in problem.get("findings") or [] if isinstance(item, dict)]
    if len(findings) > 1:
        why = "\n".join([f"There are {len(findings)} reasons:", *map(_finding, findings)])
    else:
        findings = [problem]
        why = f"{printable(problem.get('why', ''))}{_place(problem.get('position'))}"
    advice = dict.fromkeys(as_commands(printable(line)) for item in findings for line in item.get("instead") or [])
    return CommandFailed(
        f"{printable(problem['what'])} [{printable(problem.get('code', ''))}]",
        why=why + (" It was charged." if problem.get("charged") else ""),
        instead=tuple(filter(None, advice)),
    )


def _finding(item: dict[str, Any]) -> str:
    field = f" ({printable(item['field'])})" if item.get("field") else ""
    return f"- {printable(item.get('what', ''))}{field}{_place(item.get('position'))}: {printable(item.get('why', ''))}"


def _place(position: Any) -> str:
    if not isinstance(position, dict):
        return ""
    near = f', at "{printable(position["text"])}"' if position.get("text") else ""
    return f" (line {position.get('line')}, column {position.get('column')}{near})"
