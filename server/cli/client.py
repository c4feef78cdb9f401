"""HTTP to a server of Noisegate, and its problems in words."""

from __future__ import annotations

import ipaddress
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

import httpx

from server.cli.failure import CommandFailed, usage_error
from server.cli.home import Home
from server.cli.options import home_option
from server.cli.output import printable

__all__ = ["DEFAULT_URL", "Client", "choose_key", "choose_url", "problem_failure"]

DEFAULT_URL = "http://127.0.0.1:8765"
_ATTEMPTS = 3


def _loopback(host: str | None) -> bool:
    if host is None:
        return False
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
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

    def close(self) -> None:
        """Closes the connection."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def call(
        self, method: str, path: str, body: Any = None, *, idempotency_key: str | None = None
    ) -> tuple[int, dict[str, Any]]:
        """Status and JSON of a successful answer.

        A request with an idempotency key, or that only reads, is sent again when the connection broke: the same key
        is never charged twice.
        """
        headers = {} if idempotency_key is None else {"Idempotency-Key": idempotency_key}
        return self._read(self._send(method, path, body, headers))

    def text(self, path: str, *, accept: str) -> str:
        """What stands at a path, as text of that media type."""
        response = self._send("GET", path, None, {"Accept": accept})
        if response.status_code >= 400 or not response.headers.get("Content-Type", "").startswith(accept):
            self._read(response)
            raise CommandFailed(
                f"what answers at {self.url} is not Noisegate",
                why=f"It did not answer in the form that was asked for ({accept}).",
                instead="Check the address and the port.",
            )
        return response.text

    def _send(self, method: str, path: str, body: Any, headers: dict[str, str]) -> httpx.Response:
        idempotency_key = headers.get("Idempotency-Key")
        attempts = _ATTEMPTS if method == "GET" or idempotency_key is not None else 1
        for attempt in range(1, attempts + 1):
            try:
                response = self._http.request(method, path, json=body, headers=headers)
                break
            except httpx.ConnectError:
                raise CommandFailed(
                    f"could not reach a server at {self.url}",
                    why="Nothing answers at this address.",
                    instead=("Start one with: noisegate up", "or give its address with --url (or NOISEGATE_URL)."),
                ) from None
            except (httpx.HTTPError, httpx.InvalidURL) as error:
                if attempt == attempts or isinstance(error, httpx.InvalidURL):
                    raise self._broken(error, idempotency_key) from None
        return response

    def _broken(self, error: Exception, idempotency_key: str | None) -> CommandFailed:
        advice = ["See whether the server still runs: noisegate doctor"]
        if idempotency_key is not None:
            advice.insert(0, f"Ask again with --idempotency-key {idempotency_key}: it is never charged twice.")
        reason = "It did not answer in time" if isinstance(error, httpx.TimeoutException) else "The connection broke"
        return CommandFailed(
            f"the server at {self.url} did not answer",
            why=f"{reason} ({type(error).__name__})."
            + ("" if idempotency_key is None else " The question may have been charged."),
            instead=advice,
        )

    def _read(self, response: httpx.Response) -> tuple[int, dict[str, Any]]:
        try:
            body = response.json() if response.content else {}
        except ValueError:
            body = None
        if not isinstance(body, dict) or (response.status_code >= 400 and "what" not in body):
            raise CommandFailed(
                f"what answers at {self.url} is not Noisegate",
                why=f"Its answer (status {response.status_code}) is not one of this program's.",
                instead="Check the address and the port.",
            )
        if response.status_code >= 400:
            raise problem_failure(body)
        return response.status_code, body


def problem_failure(problem: dict[str, Any]) -> CommandFailed:
    """A problem document in words: every finding with its place, what to do, and whether it was charged."""
    findings = [item for item in problem.get("findings") or [] if isinstance(item, dict)]
    what = printable(str(problem["what"]))
    if len(findings) > 1:
        lines = [_finding(item) for item in findings]
        why = "\n".join([f"There are {len(findings)} reasons:", *lines])
        advice = [line for item in findings for line in item.get("instead") or []]
    else:
        place = _place(problem.get("position"))
        why = f"{printable(str(problem.get('why', '')))}{place}"
        advice = list(problem.get("instead") or [])
    if problem.get("charged"):
        why += " It was charged."
    code = printable(str(problem.get("code", "")))
    unique = [printable(str(line)) for line in dict.fromkeys(advice)]
    return CommandFailed(f"{what} [{code}]", why=why, instead=unique)


def _finding(item: dict[str, Any]) -> str:
    field = f" ({printable(str(item['field']))})" if item.get("field") else ""
    what, why = printable(str(item.get("what", ""))), printable(str(item.get("why", "")))
    return f"- {what}{field}{_place(item.get('position'))}: {why}"


def _place(position: Any) -> str:
    if not isinstance(position, dict):
        return ""
    text = position.get("text")
    near = f', at "{printable(str(text))}"' if text else ""
    return f" (line {position.get('line')}, column {position.get('column')}{near})"
