"""The Dockerfile and docker-compose.yml, as far as they can be checked without a container engine."""

from __future__ import annotations

import fnmatch
import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from server.settings import Settings

CHECKOUT = Path(__file__).resolve().parents[1]
WITH_DIGEST_OR_TAG = re.compile(r"[a-z0-9./-]+(:[A-Za-z0-9._-]+|@sha256:[0-9a-f]{64})\Z")
FLOATING = {"latest", "slim", "alpine", "bookworm", "trixie", "stable"}


def instructions() -> list[tuple[str, str]]:
    """Instructions of the Dockerfile in order, continuation lines joined, comments left out."""
    lines = [line for line in (CHECKOUT / "Dockerfile").read_text().splitlines() if not line.lstrip().startswith("#")]
    text = re.sub(r"\\\n", " ", "\n".join(lines))
    found = [line.split(None, 1) for line in text.splitlines() if line.strip()]
    return [(word.upper(), rest.strip()) for word, rest in found]


def final_stage() -> list[tuple[str, str]]:
    """The instructions of the stage that becomes the image."""
    listed = instructions()
    start = max(index for index, (word, _) in enumerate(listed) if word == "FROM")
    return listed[start:]


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    loaded = yaml.safe_load((CHECKOUT / "docker-compose.yml").read_text())
    assert isinstance(loaded, dict)
    return loaded


def pinned(image: str) -> bool:
    tag = image.rpartition(":")[2]
    return WITH_DIGEST_OR_TAG.match(image) is not None and tag not in FLOATING and any(map(str.isdigit, tag))


def test_every_instruction_is_one_that_docker_knows() -> None:
    """A broken continuation line would begin with some other word."""
    known = "FROM RUN COPY ENV WORKDIR VOLUME USER EXPOSE STOPSIGNAL HEALTHCHECK ENTRYPOINT CMD ARG LABEL"
    assert {word for word, _ in instructions()} <= set(known.split(" "))


def test_base_images_are_pinned() -> None:
    """An image named without a version changes under our feet."""
    bases = [rest.split()[0] for word, rest in instructions() if word == "FROM"]
    assert len(bases) == 2
    assert all(pinned(base) for base in bases), bases
    assert not pinned("python")
    assert not pinned("python:latest")


def ignored(name: str) -> bool:
    """Whether .dockerignore keeps a path of the checkout out (the last pattern that fits decides)."""
    answer = False
    for line in (CHECKOUT / ".dockerignore").read_text().splitlines():
        pattern = line.strip()
        if not pattern or pattern.startswith("#"):
            continue
        keep = pattern.startswith("!")
        if fnmatch.fnmatch(name, pattern.removeprefix("!")):
            answer = not keep
    return answer


def test_every_copied_file_exists_and_is_sent_to_the_builder() -> None:
    """A source that is missing, or that .dockerignore keeps out, fails the build late."""
    stages = {rest.split()[2] for word, rest in instructions() if word == "FROM" and len(rest.split()) == 3}
    sources = []
    for word, rest in instructions():
        if word != "COPY":
            continue
        parts = shlex.split(rest)
        stage = next((part.removeprefix("--from=") for part in parts if part.startswith("--from=")), None)
        if stage is not None:
            assert stage in stages
            continue
        sources += [part for part in parts[:-1] if not part.startswith("--")]
    assert {"server", "privacy", "migrations", "requirements.lock"} <= set(sources)
    for source in sources:
        assert (CHECKOUT / source).exists(), source
        assert not ignored(source), source
    assert ignored("tests")
    assert ignored(".venv")
    assert ignored("secrets")


def test_every_package_is_in_the_image() -> None:
    """A new room must be added to the Dockerfile too."""
    copied = {shlex.split(rest)[0] for word, rest in instructions() if word == "COPY"}
    packages = {path.parent.name for path in CHECKOUT.glob("*/__init__.py")} - {"tests", "benchmarks"}
    assert packages <= copied


def test_packages_are_installed_from_the_hashes_only() -> None:
    """Nothing is resolved or built while the image is made."""
    installs = [rest for word, rest in instructions() if word == "RUN" and "pip install" in rest]
    assert len(installs) == 1
    assert {"--require-hashes", "--no-deps", "--only-binary"} <= set(shlex.split(installs[0]))


def test_the_image_runs_as_an_ordinary_user_and_stops_in_order() -> None:
    """No root, SIGTERM, a health check without tools that the image lacks, and the server as process 1."""
    stage = dict(final_stage())
    assert stage["USER"].split(":")[0].isdigit()
    assert stage["USER"].split(":")[0] != "0"
    assert stage["STOPSIGNAL"] == "SIGTERM"
    assert stage["HEALTHCHECK"].partition("CMD")[2].strip().startswith('["python", "-c"')
    assert "curl" not in stage["HEALTHCHECK"]
    assert json.loads(stage["ENTRYPOINT"]) == ["python", "-m", "server.cli"]
    assert json.loads(stage["CMD"]) == ["serve"]
    words = [word for word, _ in final_stage()]
    assert words.index("USER") > max(index for index, word in enumerate(words) if word in ("RUN", "COPY"))


def test_the_health_checks_are_python() -> None:
    """The one-liners compile, and ask for routes that exist."""
    stage = dict(final_stage())
    compose = yaml.safe_load((CHECKOUT / "docker-compose.yml").read_text())
    image_check = json.loads(stage["HEALTHCHECK"].partition("CMD")[2].strip())
    server_check = compose["services"]["server"]["healthcheck"]["test"][1:]
    for command, route in ((image_check, "/healthz"), (server_check, "/readyz")):
        assert command[:2] == ["python", "-c"]
        compile(command[2], "healthcheck", "exec")
        assert route in command[2]


def variables() -> dict[str, str]:
    """What the image sets in the environment."""
    found: dict[str, str] = {}
    for word, rest in final_stage():
        if word == "ENV":
            found.update(part.split("=", 1) for part in shlex.split(rest))
    return found


def test_only_known_settings_are_set(compose: dict[str, Any]) -> None:
    """A misspelt setting would silently leave the default."""
    names = set(variables()) | {name for service in compose["services"].values() for name in service["environment"]}
    ours = {name.removeprefix("NOISEGATE_").lower() for name in names if name.startswith("NOISEGATE_")}
    assert ours
    assert ours <= set(Settings.model_fields)


def test_no_secret_has_a_default(compose: dict[str, Any]) -> None:
    """Passwords and keys come from files that the operator makes; none is in the image, the file or the environment."""
    for service in compose["services"].values():
        for name, value in service["environment"].items():
            if re.search("password|secret|url|key|token", name, re.IGNORECASE):
                assert name.endswith("_FILE"), name
                assert str(value).startswith("/run/secrets/"), name
                assert str(value).removeprefix("/run/secrets/") in service["secrets"]
    assert all(set(secret) == {"file"} for secret in compose["secrets"].values())
    assert not [name for name in variables() if re.search("password|secret|key|token", name, re.IGNORECASE)]
    git = (CHECKOUT / ".gitignore").read_text().splitlines()
    assert "/secrets/" in git


def test_services_wait_for_one_another(compose: dict[str, Any]) -> None:
    """PostgreSQL is healthy before the ledger is migrated once, and migrated before the server starts."""
    services = compose["services"]
    assert set(services) == {"postgres", "migrate", "server"}
    assert services["migrate"]["depends_on"] == {"postgres": {"condition": "service_healthy"}}
    assert services["server"]["depends_on"] == {
        "postgres": {"condition": "service_healthy"},
        "migrate": {"condition": "service_completed_successfully"},
    }
    assert services["migrate"]["restart"] == "no"
    assert services["migrate"]["command"] == ["migrate"]
    assert services["server"]["command"] == ["serve"]
    assert services["postgres"]["healthcheck"]["test"][0] == "CMD"
    assert pinned(services["postgres"]["image"])
    assert services["postgres"]["image"].startswith("postgres:18")


def test_the_ledger_is_out_of_reach(compose: dict[str, Any]) -> None:
    """The database has no port and no way out; the server is published on this machine only."""
    services = compose["services"]
    assert compose["networks"]["ledger"] == {"internal": True}
    assert services["postgres"]["networks"] == ["ledger"]
    assert "ports" not in services["postgres"]
    assert "ports" not in services["migrate"]
    assert services["server"]["ports"]
    assert all(port.startswith("127.0.0.1:") for port in services["server"]["ports"])
    for name in ("migrate", "server"):
        assert services[name]["read_only"] is True
        assert services[name]["cap_drop"] == ["ALL"]
        assert "privileged" not in services[name]


def test_what_must_last_is_in_volumes(compose: dict[str, Any]) -> None:
    """The ledger and the home survive the containers, and every named volume, network and secret is declared."""
    services = compose["services"]
    used = {volume.split(":")[0] for service in services.values() for volume in service["volumes"]}
    assert {name for name in used if not name.startswith(".")} == set(compose["volumes"])
    assert {name for service in services.values() for name in service["networks"]} == set(compose["networks"])
    assert {name for service in services.values() for name in service["secrets"]} == set(compose["secrets"])
    home = variables()["NOISEGATE_HOME"]
    assert f"home:{home}" in services["server"]["volumes"]
    # The image of PostgreSQL 18 keeps its data below this folder, under the number of its version.
    assert "postgres:/var/lib/postgresql" in services["postgres"]["volumes"]


def test_stopping_leaves_time_for_running_queries(compose: dict[str, Any]) -> None:
    """Docker must not kill before the server's own patience ends."""
    grace = int(compose["services"]["server"]["stop_grace_period"].removesuffix("s"))
    default = Settings.model_fields["shutdown_seconds"].default
    assert grace > default
