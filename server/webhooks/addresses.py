"""Which network addresses a webhook may be sent to: public ones, and those that an administrator names.

What a server can reach and its users cannot is what an attacker wants of it: itself, its neighbours, the metadata of
its cloud. So every address that is not plainly public is refused, unless a setting names a network in which it lies. A
network that is named lies in one of the special blocks whole: what allows everything does not allow these.
"""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

__all__ = ["Address", "Network", "may_be_reached", "read_network"]

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

_NAMED_ONLY = tuple(
    ip_network(text)
    for text in (
        "127.0.0.0/8",  # this machine
        "10.0.0.0/8",
        "172.16.0.0/12",
        "192.168.0.0/16",
        "100.64.0.0/10",  # shared by providers; holds the metadata of a cloud
        "169.254.0.0/16",  # link-local; holds the metadata of most clouds
        "168.63.129.16/32",  # the metadata of a cloud, at an address that looks public
        "::1/128",
        "fc00::/7",
        "fe80::/10",
        "fec0::/10",  # what private addresses were before fc00::/7
    )
)
"""What is reached only where a setting names it."""

_NEVER = tuple(
    ip_network(text)
    for text in (
        "0.0.0.0/8",
        "192.0.0.0/24",  # protocol assignments; holds the metadata of a cloud
        "192.88.99.0/24",
        "198.18.0.0/15",
        "240.0.0.0/4",
        "64:ff9b::/96",  # NAT64
        "3fff::/20",  # documentation
        "5f00::/16",  # segment routing
        "64:ff9b:1::/48",
        "2002::/16",  # 6to4
        "2001::/32",  # Teredo
        "::/96",  # IPv4 in IPv6, both forms
        "::ffff:0:0/96",
        "::ffff:0:0:0/96",
    )
)
"""Never: what is no receiver's, and IPv6 that carries an IPv4 address, which leads elsewhere than it looks."""


def _in(address: Address, network: Network) -> bool:
    return address.version == network.version and address in network


def _is_isatap(address: Address) -> bool:
    """Whether its second half carries an IPv4 address as ISATAP writes it (RFC 5214), under any prefix."""
    return isinstance(address, IPv6Address) and (int(address) >> 32) & 0xFDFF_FFFF == 0x5EFE


def _within(network: Network, other: Network) -> bool:
    if isinstance(network, IPv4Network):
        return isinstance(other, IPv4Network) and network.subnet_of(other)
    return isinstance(other, IPv6Network) and network.subnet_of(other)


def read_network(text: str) -> Network:
    """A network of special addresses that a setting names. Errors: ValueError, with a sentence without the text."""
    try:
        network = ip_network(text)
    except ValueError:
        raise ValueError(
            "it is no network such as 10.1.2.0/24 or fd00:1::/64, without bits beyond its length"
        ) from None
    if not any(_within(network, block) for block in _NAMED_ONLY):
        raise ValueError("it is not within a block of private addresses: public ones need not be named")
    return network


def may_be_reached(text: str, named: Sequence[Network]) -> bool:
    """Whether a webhook may be sent to this address, as the system's resolver wrote it."""
    try:
        # A zone names an interface of this machine.
        address = ip_address(text)
    except ValueError:
        return False
    if isinstance(address, IPv6Address) and address.scope_id is not None:
        return False
    if any(_in(address, network) for network in named):
        return True
    if any(_in(address, block) for block in (*_NAMED_ONLY, *_NEVER)) or _is_isatap(address):
        return False
    return address.is_global and not address.is_multicast
