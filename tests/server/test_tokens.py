"""Tokens of a provider: what is accepted, and everything that is almost a token and is not."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from server import token_keys
from server.cli import doctor
from server.roles import Role
from server.settings import SettingsRefused, load_settings
from server.store.errors import KeyFault, KeyRefused, KeysUnavailable
from server.store.registry import Registry
from server.token_keys import ASKED_AGAIN_SECONDS, STALE_SECONDS, ProviderKeys, read_keys
from server.tokens import Tokens, TokenTerms
from tests.clocks import Clock
from tests.server.conftest import World

ISSUER, AUDIENCE = "https://login.example.org", "noisegate"
RSA = rsa.generate_private_key(65537, 2048)
EC = ec.generate_private_key(ec.SECP256R1())
ED = ed25519.Ed25519PrivateKey.generate()
OTHER = ec.generate_private_key(ec.SECP256R1())
Change = Callable[[dict[str, Any], dict[str, Any]], object]


def public(key: Any, name: str | None, **more: object) -> dict[str, object]:
    """A published key."""
    algorithm = {RSA: "RS256", ED: "EdDSA"}.get(key, "ES256")
    item = jwt.get_algorithm_by_name(algorithm).to_jwk(key.public_key(), as_dict=True)  # type: ignore[call-overload]
    item.pop("key_ops", None)
    return {**item, **({} if name is None else {"kid": name}), **more}


def published(*keys: dict[str, object]) -> bytes:
    return json.dumps({"keys": keys}).encode()


ALL = published(public(RSA, "rsa"), public(EC, "ec", alg="ES256", use="sig"), public(ED, "ed"))


def token(change: Change | None = None, *, key: Any = EC, algorithm: str = "ES256") -> str:
    """A token that is accepted, but for `change` of its claims and its header."""
    now = int(time.time())
    claims: dict[str, Any] = {"iss": ISSUER, "aud": AUDIENCE, "sub": "ina", "iat": now - 5, "exp": now + 600}
    header: dict[str, Any] = {"kid": {RSA: "rsa", ED: "ed"}.get(key, "ec")}
    if change is not None:
        change(claims, header)
    return jwt.PyJWS().encode(json.dumps(claims).encode(), key, algorithm, header)


@pytest.fixture
def tokens(registry: Registry, tmp_path: Path) -> Tokens:
    """A provider with three keys in a file; one principal is registered."""
    return provider(registry, tmp_path)


def provider(registry: Registry, folder: Path, **terms: Any) -> Tokens:
    registry.create_principal("oidc.ina", "analyst", actor="test")
    (folder / "keys.json").write_bytes(ALL)
    said: dict[str, Any] = {
        "issuer": ISSUER,
        "audience": AUDIENCE,
        "algorithms": ("RS256", "PS256", "ES256", "EdDSA"),
        "leeway_seconds": 30,
        "principal_claim": "sub",
        "principal_prefix": "oidc.",
        "roles_claim": None,
        "roles": {},
    }
    keys = ProviderKeys(folder / "keys.json", fresh_seconds=3600, clock=lambda: 0.0)
    return Tokens(TokenTerms(**{**said, **terms}), keys, registry)


def refused(tokens: Tokens, text: str) -> KeyFault:
    with pytest.raises(KeyRefused) as caught:
        tokens.verify(text)
    return caught.value.reason


def test_each_kind_of_key_is_accepted(tokens: Tokens) -> None:
    """RSA with both paddings, a curve and Edwards; the audience may be one of several; the caller is the registry's."""
    for key, algorithm in ((RSA, "RS256"), (RSA, "PS256"), (EC, "ES256"), (ED, "EdDSA")):
        principal, expires = tokens.verify(token(key=key, algorithm=algorithm))
        assert (principal.name, principal.role) == ("oidc.ina", Role.ANALYST)
        assert expires > "2026"
    assert tokens.verify(token(lambda claims, _: claims.update(aud=["other", AUDIENCE])))[0].name == "oidc.ina"
    late = token(lambda claims, _: claims.update(exp=int(time.time()) - 10, nbf=int(time.time()) + 10))
    assert tokens.verify(late)[0].name == "oidc.ina", "within the leeway"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda c, h: c.update(iss="https://login.example.org/"), KeyFault.INVALID),
        (lambda c, h: c.update(iss=[ISSUER]), KeyFault.INVALID),
        (lambda c, h: c.pop("iss"), KeyFault.INVALID),
        (lambda c, h: c.update(aud="noisegate2"), KeyFault.INVALID),
        (lambda c, h: c.update(aud=[]), KeyFault.INVALID),
        (lambda c, h: c.pop("aud"), KeyFault.INVALID),
        (lambda c, h: c.update(exp=1), KeyFault.EXPIRED),
        (lambda c, h: c.update(exp=1, aud="noisegate2"), KeyFault.INVALID),
        (lambda c, h: c.pop("exp"), KeyFault.INVALID),
        (lambda c, h: c.update(exp="never"), KeyFault.INVALID),
        (lambda c, h: c.update(exp=1e300), KeyFault.INVALID),
        (lambda c, h: c.update(exp=float("inf")), KeyFault.INVALID),
        (lambda c, h: c.update(exp=True), KeyFault.INVALID),
        (lambda c, h: c.pop("iat"), KeyFault.INVALID),
        (lambda c, h: c.update(iat=c["exp"]), KeyFault.NOT_YET),
        (lambda c, h: c.update(nbf=c["exp"]), KeyFault.NOT_YET),
        (lambda c, h: c.update(nbf=c["exp"], iss="https://other.example.org"), KeyFault.INVALID),
        (lambda c, h: c.pop("sub"), KeyFault.INVALID),
        (lambda c, h: c.update(sub=7), KeyFault.INVALID),
        (lambda c, h: c.update(sub="nobody"), KeyFault.STRANGER),
        (lambda c, h: c.update(sub="Ina"), KeyFault.STRANGER),
        (lambda c, h: c.update(sub="../ina"), KeyFault.STRANGER),
        (lambda c, h: h.update(kid="absent"), KeyFault.INVALID),
        (lambda c, h: h.update(kid="rsa"), KeyFault.INVALID),
        (lambda c, h: h.pop("kid"), KeyFault.INVALID),
        (lambda c, h: h.update(crit=["exp"]), KeyFault.INVALID),
        (lambda c, h: h.update(jwk=public(OTHER, "ec")), KeyFault.INVALID),
        (lambda c, h: h.update(jku="https://evil.example.org"), KeyFault.INVALID),
        (lambda c, h: h.update(typ="logout+jwt"), KeyFault.INVALID),
    ],
)
def test_claims_and_headers_that_are_not_accepted(tokens: Tokens, change: Change, reason: KeyFault) -> None:
    """Each alone makes a token useless; the time is told only where everything else is right."""
    assert refused(tokens, token(change)) is reason


def encoded(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def test_algorithms_cannot_be_chosen_by_the_token(tokens: Tokens) -> None:
    """No signature, an HMAC under a public key, another key and another algorithm of the list are all refused."""
    head, body, signature = token().split(".")
    for algorithm in ("none", "None", "", None, 1, ["ES256"]):
        unsigned = encoded({"alg": algorithm, "typ": "JWT", "kid": "ec"})
        for end in ("", signature):
            assert refused(tokens, f"{unsigned}.{body}.{end}") is KeyFault.INVALID
    import hashlib
    import hmac

    for key in (EC, RSA):
        for form in (PublicFormat.SubjectPublicKeyInfo,):
            secret = key.public_key().public_bytes(Encoding.PEM, form)  # type: ignore[attr-defined]
            hmac_head = encoded({"alg": "HS256", "typ": "JWT", "kid": "ec"})
            made = hmac.new(secret, f"{hmac_head}.{body}".encode(), hashlib.sha256).digest()
            forged = f"{hmac_head}.{body}.{base64.urlsafe_b64encode(made).rstrip(b'=').decode()}"
            assert refused(tokens, forged) is KeyFault.INVALID
    assert refused(tokens, token(key=OTHER)) is KeyFault.INVALID
    assert refused(tokens, token(lambda c, h: h.update(kid="rsa"), key=RSA, algorithm="RS512")) is KeyFault.INVALID
    assert refused(tokens, f"{head}.{body}.{signature[:-6]}AAAAAA") is KeyFault.INVALID
    for text in ("a.b.c", f"{head}.{body}", f"{head}.{body}.{signature}.x", "ä.ö.ü", "." * 2, token() + "\n"):
        assert refused(tokens, text) is KeyFault.INVALID


def test_symmetric_weak_and_other_keys_are_left_out() -> None:
    """A set's shared secrets, short RSA keys and keys for encryption check nothing; a set without any is refused."""
    weak = rsa.generate_private_key(65537, 1024)
    short = jwt.get_algorithm_by_name("RS256").to_jwk(weak.public_key(), as_dict=True)  # type: ignore[call-overload]
    secret = {"kty": "oct", "k": encoded("secret"), "kid": "ec", "alg": "HS256"}
    for item in (secret, dict(short), public(EC, "ec", use="enc"), public(EC, "ec", alg="HS256"), {"kty": "EC"}, 7):
        with pytest.raises(ValueError, match="no key"):
            read_keys(json.dumps({"keys": [item]}).encode())
    for content in (b"", b"[]", b'{"keys": 1}', b"{}", b"\xff", b'{"keys": []}', b" " * 300_000):
        with pytest.raises(ValueError, match=r"."):
            read_keys(content)


def test_a_disabled_principal_is_refused_at_once(tokens: Tokens, registry: Registry) -> None:
    """The registry has the last word."""
    registry.change_principal("oidc.ina", actor="test", disabled=True)
    assert refused(tokens, token()) is KeyFault.DISABLED


def test_roles_agree_or_the_token_is_refused(registry: Registry, tmp_path: Path) -> None:
    """A claim agrees with the registry's role; it makes unknown principals, no administrators, and changes none."""
    roles = {"readers": Role.DASHBOARD, "analysts": Role.ANALYST, "root": Role.ADMIN}
    tokens = provider(registry, tmp_path, roles_claim="groups", roles=roles)

    def claimed(name: str, groups: object) -> str:
        return token(lambda claims, _: claims.update(sub=name, groups=groups))

    assert tokens.verify(claimed("ina", ["analysts", "other"]))[0].role is Role.ANALYST
    assert tokens.verify(claimed("ina", "analysts"))[0].role is Role.ANALYST
    for groups in ("readers", ["root"], [], None, 7, {"analysts": 1}, ["other"]):
        assert refused(tokens, claimed("ina", groups)) is KeyFault.STRANGER, groups
    assert refused(tokens, token()) is KeyFault.STRANGER, "the claim is missing"
    assert tokens.verify(claimed("new", ["readers"]))[0].role is Role.DASHBOARD
    for groups in (["root"], ["readers", "analysts"]):
        assert refused(tokens, claimed("newer", groups)) is KeyFault.STRANGER
    assert registry.principal("oidc.newer") is None
    found = registry.principal("oidc.ina")
    assert found is not None
    assert found.role is Role.ANALYST


def test_keys_rotate_in_a_file(tokens: Tokens, tmp_path: Path) -> None:
    """A file that changes is read again at once; a damaged one leaves the keys that are known."""
    file = tmp_path / "keys.json"
    rotated = token(lambda _, header: header.update(kid="new"), key=OTHER)
    assert refused(tokens, rotated) is KeyFault.INVALID
    file.write_bytes(published(public(OTHER, "new")))
    assert tokens.verify(rotated)[0].name == "oidc.ina"
    assert refused(tokens, token()) is KeyFault.INVALID, "the old key is gone"
    file.write_bytes(b"{")
    assert tokens.verify(rotated)[0].name == "oidc.ina"
    file.write_bytes(published(public(EC, None)))
    assert tokens.verify(token(lambda _, header: header.pop("kid")))[0].name == "oidc.ina", "one key needs no name"


def test_an_address_is_asked_seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unknown names ask once a minute at most; a silent provider leaves known keys for a day, and then none."""
    clock, asked, there = Clock(0.0), [], [ALL]

    def fetched(address: str) -> bytes:
        asked.append(address)
        if not there:
            raise httpx.ConnectError("silent")
        return there[0]

    monkeypatch.setattr(token_keys, "_fetched", fetched)
    keys = ProviderKeys("https://login.example.org/keys", fresh_seconds=3600, clock=clock)
    assert len(keys.fitting("ec", "ES256")) == 1
    for name in range(50):
        assert keys.fitting(str(name), "ES256") == ()
    assert len(asked) == 1
    clock.now += ASKED_AGAIN_SECONDS
    there[0] = published(public(OTHER, "new"))
    assert len(keys.fitting("new", "ES256")) == 1
    assert keys.fitting("ec", "ES256") == ()
    assert len(asked) == 2
    there.clear()
    clock.now += 3600
    assert len(keys.fitting("new", "ES256")) == 1
    assert len(asked) == 3
    clock.now += STALE_SECONDS
    with pytest.raises(KeysUnavailable):
        keys.fitting("new", "ES256")
    there.append(ALL)
    clock.now += ASKED_AGAIN_SECONDS
    assert len(keys.fitting("ec", "ES256")) == 1


def test_the_doctor_asks_for_the_keys(tmp_path: Path) -> None:
    """It fails where they cannot be read or fit no algorithm that the settings allow."""
    file = tmp_path / "keys.json"
    file.write_bytes(ALL)

    def outcome(**given: Any) -> str:
        said: dict[str, Any] = {"oidc_issuer": ISSUER, "oidc_audience": AUDIENCE, "oidc_keys_file": file}
        return doctor._tokens(load_settings(home=tmp_path, **{**said, **given})).outcome

    assert doctor._tokens(load_settings(home=tmp_path)).outcome == outcome() == "ok"
    assert outcome(oidc_algorithms=("ES512",)) == "fail"
    file.write_bytes(b"{}")
    assert outcome() == "fail"


def test_tokens_over_http(world: World, tmp_path: Path) -> None:
    """A token asks as its principal does; without an issuer in the settings none is accepted; no keys are a 503."""
    bearer = {"Authorization": f"Bearer {token()}"}
    assert world.api.get("/v1/me", who=None, headers=bearer).status_code == 401
    world.services.tokens = provider(world.registry, tmp_path)
    me = world.api.get("/v1/me", who=None, headers=bearer).json()
    assert (me["name"], me["role"], me["key"], me["scopes"]) == ("oidc.ina", "analyst", None, None)
    assert world.api.get("/v1/keys", who=None, headers=bearer).status_code == 403
    wrong = {"Authorization": f"Bearer {token(key=OTHER)}"}
    found = world.api.get("/v1/me", who=None, headers=wrong)
    assert (found.status_code, found.json()["code"]) == (401, "unauthenticated")
    missing = ProviderKeys(tmp_path / "absent.json", fresh_seconds=3600, clock=lambda: 0.0)
    world.services.tokens = Tokens(world.services.tokens._terms, missing, world.registry)
    found = world.api.get("/v1/me", who=None, headers=bearer)
    assert (found.status_code, found.headers["retry-after"]) == (503, "60")
    assert world.api.get("/v1/me").status_code == 200


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"oidc_audience": None}, "oidc_audience"),
        ({"oidc_keys_url": None}, "one of oidc_keys_file and oidc_keys_url"),
        ({"oidc_keys_url": "http://login.example.org/keys"}, "https"),
        ({"oidc_keys_url": "login.example.org"}, "https"),
        ({"oidc_algorithms": ("RS256", "HS256")}, "algorithm"),
        ({"oidc_algorithms": ("none",)}, "algorithm"),
        ({"oidc_roles_claim": "groups"}, "oidc_roles"),
        ({"oidc_roles": {"a": "root"}}, "oidc_roles"),
        ({"oidc_issuer": None}, "without oidc_issuer"),
        ({"oidc_leeway_seconds": 301}, "oidc_leeway_seconds"),
    ],
)
def test_settings_that_would_accept_too_much(tmp_path: Path, given: dict[str, Any], said: str) -> None:
    """Each is refused at the start with the name of what to set."""
    right = {"oidc_issuer": ISSUER, "oidc_audience": AUDIENCE, "oidc_keys_url": "https://login.example.org/keys"}
    load_settings(home=tmp_path, **right)
    with pytest.raises(SettingsRefused, match=said):
        load_settings(home=tmp_path, **{**right, **given})
