"""Who calls, on whose behalf, and whether the route serves that role and the key that use. Deny by default.

Every route has exactly one of these as a dependency: `roles(...)`, or `PUBLIC`. `undeclared_routes` finds routes that
have none; the application does not start with one, and a test walks all of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from fastapi import Request
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from starlette.concurrency import run_in_threadpool

from accountant.request import ACTING
from server.dashboards.links import LinkRefused
from server.dashboards.refusals import link_refused, two_credentials
from server.errors import Problem
from server.limits import Rates
from server.roles import OVERSEEING, Role
from server.scopes import SERVICE_ROLES, Scope, Scopes, scope_of
from server.services import Services
from server.store.errors import KeyFault, KeyRefused, KeysUnavailable
from server.store.people import NAME, Principal

__all__ = [
    "ON_BEHALF_OF",
    "PUBLIC",
    "Access",
    "Caller",
    "access_of",
    "caller_of",
    "require_scope",
    "roles",
    "services_of",
    "undeclared_routes",
]


ON_BEHALF_OF = "Noisegate-On-Behalf-Of"
"""The header with which a service names the person for whom it calls."""


@dataclass(frozen=True, slots=True)
class Caller:
    """The principal behind a request. A caller without a key, on a route that allows it, has no name and no role."""

    name: str
    role: Role | None
    key: str
    expires: str
    scopes: Scopes | None = None
    """What the key may be used for; None for all of the role."""
    service: Principal | None = None
    """Whose key it is, where that acts on the caller's behalf."""
    link: str = ""
    """The dashboard that a link opened, where the caller has one in place of a key."""

    @property
    def actor(self) -> str | None:
        """The service that acts on the caller's behalf."""
        return None if self.service is None else self.service.name

    def served_by(self, allowed: Collection[Role]) -> bool:
        """Whether a route for these roles serves the caller. Who acts on its behalf has to be served too."""
        return self.role in allowed and (self.service is None or self.service.role in allowed)

    @property
    def oversees(self) -> bool:
        """Whether the caller sees what belongs to others: administrators and auditors."""
        return self.role in OVERSEEING


_NOBODY = Caller(name="", role=None, key="", expires="")


def services_of(request: Request) -> Services:
    """The application's services."""
    services: Services = request.app.state.services
    return services


def caller_of(request: Request) -> Caller:
    """The caller, for dependencies that are called after `roles(...)`. Without one there is none to serve."""
    caller: Caller = request.state.caller
    return caller


class Access:
    """A dependency that lets the named roles in. Empty `allowed` is a public route.

    With `links` the route also serves whoever has a link of the dashboard that its path names.
    """

    __slots__ = ("allowed", "every_key", "in_person", "links", "open_setting", "scope")

    def __init__(
        self,
        allowed: frozenset[Role],
        *,
        open_setting: str | None = None,
        scope: Scope | None = None,
        every_key: bool = False,
        links: bool = False,
        in_person: bool = False,
    ) -> None:
        self.allowed = allowed
        self.open_setting = open_setting
        self.scope = scope
        self.every_key = every_key
        self.links = links
        self.in_person = in_person

    def needs(self, method: str, path: str) -> Scope | None:
        """The scope of the route of that pattern; None where a key of any scope will do."""
        if self.every_key or not self.allowed:
            return None
        return self.scope or scope_of(method, path, self.allowed)

    async def __call__(self, request: Request) -> Caller:
        """The caller. Errors: Problem unauthenticated, forbidden, missing_scope, rate_limited, invalid_request."""
        _refuse_unknown_parameters(request)
        if not self.allowed:
            return _NOBODY
        services = services_of(request)
        if self.open_setting is not None and getattr(services.settings, self.open_setting):
            return _NOBODY
        linked = self.links and "link" in request.query_params
        caller = await (_by_link if linked else _identify)(request, services)
        # Every charge that is made during this request says who acts; nothing is left of a request before it.
        ACTING.set(caller.actor)
        if not caller.served_by(self.allowed):
            raise Problem(
                "forbidden",
                what="your role does not serve this operation",
                why=f"It serves the roles {', '.join(role for role in Role if role in self.allowed)}.",
                instead=(
                    "Use a key of such a principal, or ask an administrator to do it.",
                    "GET /v1/me shows your role.",
                ),
            )
        if self.in_person and caller.service is not None:
            raise Problem(
                "forbidden",
                what="nobody does this on behalf of somebody else",
                why="Who decides about budgets does so in person.",
                instead=(f"Use a key of that person, without the header {ON_BEHALF_OF}.",),
            )
        scope = self.needs(request.method, request.scope["route"].path)
        if scope is not None:
            require_scope(caller, scope)
        request.state.caller = caller
        return caller


PUBLIC = Access(frozenset())
"""For routes that everybody may call: documentation, health."""


def roles(
    *allowed: Role, scope: Scope | None = None, every_key: bool = False, links: bool = False, in_person: bool = False
) -> Access:
    """Lets these roles in, and nobody else. Keys with scopes need `scope`, by default that of method and roles.

    `every_key` asks for no scope; with `links` it also serves whoever has a link of the path's dashboard; `in_person`
    keeps out services that act on somebody's behalf.
    """
    assert allowed
    return Access(frozenset(allowed), scope=scope, every_key=every_key, links=links, in_person=in_person)


def require_scope(caller: Caller, scope: Scope) -> None:
    """Errors: Problem missing_scope where the caller's key is not for this."""
    if caller.scopes is not None and scope not in caller.scopes:
        raise Problem(
            "missing_scope",
            what=f"your key lacks the scope {scope}",
            why=f"It has {', '.join(caller.scopes)}, and this operation needs {scope}.",
        )


async def _by_link(request: Request, services: Services) -> Caller:
    """A reader of one dashboard, by the token of a link. Errors: Problem, which never repeats it."""
    if "authorization" in request.headers:
        raise two_credentials()
    limits, dashboard = request.app.state.limits, request.path_params["dashboard_id"]
    try:
        link = await services.dashboards.opened_by(request.query_params["link"], dashboard)
    except LinkRefused as refused:
        request.app.state.metrics.failed_keys.inc()
        wait = limits.failed_keys.take(request.client.host if request.client is not None else "")
        if wait:
            raise _too_many("too many wrong links from this address", wait) from None
        raise link_refused(refused.reason) from None
    wait = limits.links.take(link.id)
    if wait:
        raise _too_many("too many requests with this link", wait)
    return Caller(name="", role=Role.DASHBOARD, key=link.id, expires=link.expires, link=dashboard)


async def _identify(request: Request, services: Services) -> Caller:
    limits, names = request.app.state.limits, request.headers.getlist(ON_BEHALF_OF)
    try:
        text = _bearer(request, services)
        return await run_in_threadpool(_admitted, services, limits.requests, text, names)
    except KeysUnavailable:
        raise _no_keys() from None
    except KeyRefused as refused:
        request.app.state.metrics.failed_keys.inc()
        address = request.client.host if request.client is not None else ""
        wait = limits.failed_keys.take(address)
        if wait:
            raise _too_many("too many wrong API keys from this address", wait) from None
        what = "the request has no API key" if refused.reason is KeyFault.MISSING else "the API key is not accepted"
        why, instead = _REASONS[refused.reason]
        raise Problem("unauthenticated", what, why, instead) from None


def _admitted(services: Services, requests: Rates, text: str, names: Sequence[str]) -> Caller:
    """The caller of a key or a token, for whom it acts, after one more request of that principal. Blocks.

    Errors: KeyRefused, KeysUnavailable; Problem.
    """
    caller = _verified(services, text)
    try:
        acting = _on_behalf(services, caller, names)
    except Problem:
        _take(requests, caller.name)
        raise
    _take(requests, acting.name)
    return acting


def _take(requests: Rates, name: str) -> None:
    """Counts a request of a principal. Errors: Problem rate_limited."""
    wait = requests.take(name)
    if wait:
        raise _too_many("too many requests from this principal", wait)


def _on_behalf(services: Services, caller: Caller, names: Sequence[str]) -> Caller:
    """The person on whose behalf a service calls, or the caller where it names nobody.

    Claim: a service gets nothing that neither it nor the person has. For a route serves it only if it serves both roles
    (`served_by`), the key's scopes narrow what is left, and neither may be an administrator or an auditor. What is
    charged, counted and seen is the person's, because the caller's name is. Who may not be named is refused in the same
    words as who does not exist.
    """
    if not names:
        return caller
    if len(names) > 1 or NAME.match(names[0]) is None:
        raise Problem(
            "invalid_request",
            what=f"the header {ON_BEHALF_OF} is not accepted",
            why="It is the name of one principal.",
            instead=("Name one person, or leave the header away.",),
        )
    if caller.scopes is None or Scope.IMPERSONATE not in caller.scopes:
        raise Problem(
            "missing_scope",
            what=f"your key lacks the scope {Scope.IMPERSONATE}",
            why="Without it a key speaks for its own principal only.",
        )
    person = services.registry.principal(names[0])
    fitting = person is not None and person.disabled is None and person.role in SERVICE_ROLES
    if person is None or not fitting or caller.role not in SERVICE_ROLES:
        raise Problem(
            "forbidden",
            what="you cannot act on behalf of that principal",
            why="There is none of that name, or none for whom a service may act: never administrators and auditors.",
            instead=("Name an owner, an analyst or a dashboard that is enabled.",),
        )
    service = Principal(name=caller.name, role=caller.role, created="")
    return replace(caller, name=person.name, role=person.role, service=service)


def _verified(services: Services, text: str) -> Caller:
    """The caller of a key or a token. Errors: KeyRefused, KeysUnavailable."""
    if services.tokens is not None and not text.startswith(_PREFIX):
        principal, expires = services.tokens.verify(text)
        return Caller(name=principal.name, role=principal.role, key="", expires=expires)
    principal, key = services.registry.verify_key(text)
    return Caller(name=principal.name, role=principal.role, key=key.id, expires=key.expires, scopes=key.scopes)


def _no_keys() -> Problem:
    return Problem(
        "unavailable",
        what="tokens cannot be checked at the moment",
        why="The keys of their provider are not known. Nothing was charged.",
        instead=("Send the request again later, or use an API key of this server.",),
        headers={"Retry-After": "60"},
    )


_PREFIX = "ngk_"

_SEND = "Send the header Authorization: Bearer ngk_... with an API key of this server."
_MAKE = "An administrator makes keys: POST /v1/keys, or on the server: noisegate key create NAME."

_REASONS = {
    KeyFault.MISSING: ("Everything but the documentation and the health of this server needs a key.", (_SEND, _MAKE)),
    KeyFault.SCHEME: (
        "Only API keys of this server are accepted: one header Authorization, the word Bearer, a key that begins with "
        "ngk_; and tokens of a provider where the server's settings name one.",
        (_SEND, _MAKE),
    ),
    KeyFault.INVALID: (
        "It is not a key of this server, was mistyped, or is a token that this server does not accept.",
        ("Copy the whole key again.", _MAKE),
    ),
    KeyFault.NOT_YET: ("It is a token that is not valid yet.", ("Set the clocks, or wait until it is valid.",)),
    KeyFault.STRANGER: (
        "It is a valid token, and what it names may not call here, or not with the role that it names.",
        ("Ask an administrator to register the principal with its role: POST /v1/principals.",),
    ),
    KeyFault.EXPIRED: ("It has expired.", ("Ask an administrator for a new one.", _MAKE)),
    KeyFault.ROTATED: (
        "It was rotated, and the time for which this secret still worked is over.",
        ("Use the newest secret of the key.", "Ask an administrator to rotate it again: POST /v1/keys/{id}:rotate."),
    ),
    KeyFault.REVOKED: ("It was revoked.", ("Ask an administrator for a new one.", _MAKE)),
    KeyFault.DISABLED: (
        "Its principal is disabled.",
        ("Ask an administrator to enable it: PATCH /v1/principals/{name}.",),
    ),
}
"""Why a key is not accepted, and what to do; by the registry's word for it."""


def _bearer(request: Request, services: Services) -> str:
    headers = request.headers.getlist("authorization")
    if not headers:
        raise KeyRefused(KeyFault.MISSING)
    scheme, _, token = headers[0].partition(" ")
    token = token.strip()
    ours = token.startswith(_PREFIX) or (services.tokens is not None and token.count(".") == 2)
    if len(headers) > 1 or scheme.lower() != "bearer" or not ours:
        raise KeyRefused(KeyFault.SCHEME)
    return token


def _too_many(what: str, wait: int) -> Problem:
    return Problem(
        "rate_limited",
        what=what,
        why="The number of requests in a minute is limited. Nothing was charged.",
        instead=(f"Wait {wait} seconds, then send the request again.",),
        headers={"Retry-After": str(wait)},
    )


def _refuse_unknown_parameters(request: Request) -> None:
    """A misspelt or misplaced query parameter (?dry_run=true) must not be ignored: the request may spend."""
    if not request.scope["query_string"]:
        return
    route = request.scope["route"]
    known = {str(field.alias) for field in route.dependant.query_params} if isinstance(route, APIRoute) else set()
    given = [name for name, _ in request.query_params.multi_items()]
    if set(given) <= known and len(set(given)) == len(given):
        return
    instead = (f"Known parameters: {', '.join(sorted(known))}.",) if known else ("Leave the query string away.",)
    raise Problem(
        "invalid_request",
        what="the query string is not accepted",
        why="It repeats a parameter, or has one that this operation does not know.",
        instead=instead,
    )


def _accesses(dependant: Dependant) -> Iterator[Access]:
    for inner in dependant.dependencies:
        if isinstance(inner.call, Access):
            yield inner.call
        yield from _accesses(inner)


def access_of(route: APIRoute) -> Access | None:
    """The one access declaration of a route; None when it has none or several."""
    found = list(_accesses(route.dependant))
    return found[0] if len(found) == 1 else None


def undeclared_routes(routes: Sequence[object]) -> list[str]:
    """Paths of routes that do not say whom they serve. Anything that is not an API route counts as undeclared."""
    return [
        str(getattr(route, "path", route))
        for route in routes
        if not (isinstance(route, APIRoute) and access_of(route) is not None)
    ]
