"""Where webhooks may go: entries and addresses read strictly, and what a name may stand for."""

from __future__ import annotations

from ipaddress import ip_network

import pytest

from server.settings import SettingsRefused, load_settings
from server.webhooks.addresses import may_be_reached, read_network
from server.webhooks.destinations import read_destination, read_target
from server.webhooks.signing import new_secret, signed_headers

HOOKS = "https://hooks.example.com"


@pytest.mark.parametrize(
    ("entry", "url"),
    [
        (HOOKS, f"{HOOKS}/a/b?c=d"),
        (HOOKS, "https://HOOKS.example.com:443"),
        (f"{HOOKS}/in", f"{HOOKS}/in"),
        (f"{HOOKS}/in", f"{HOOKS}/in/a"),
        (f"{HOOKS}/in/", f"{HOOKS}/in/a"),
        ("https://*.example.com", HOOKS),
        ("http://127.0.0.1:9000", "http://127.0.0.1:9000/x"),
        ("https://[2001:db8::1]", "https://[2001:DB8::1]/x"),
    ],
)
def test_what_an_entry_allows(entry: str, url: str) -> None:
    """Shows hosts, names below one, ports and beginnings of paths."""
    assert read_destination(entry).admits(read_target(url))


@pytest.mark.parametrize(
    ("entry", "url"),
    [
        (HOOKS, "https://hooks.example.com.evil.net/"),
        (HOOKS, "https://evil.net/hooks.example.com"),
        (HOOKS, "http://hooks.example.com/"),
        (HOOKS, f"{HOOKS}:8443/"),
        (HOOKS, "https://example.com/"),
        (f"{HOOKS}/in", f"{HOOKS}/inside"),
        (f"{HOOKS}/in/", f"{HOOKS}/in"),
        (f"{HOOKS}/in", f"{HOOKS}/?/in"),
        ("https://*.example.com", "https://example.com/"),
        ("https://*.example.com", "https://evilexample.com/"),
        ("https://*.example.com", "https://.example.com/"),
    ],
)
def test_what_an_entry_does_not_allow(entry: str, url: str) -> None:
    """Shows that nothing is compared as text from the left or from the right."""
    try:
        target = read_target(url)
    except ValueError:
        return
    assert not read_destination(entry).admits(target)


@pytest.mark.parametrize(
    "url",
    [
        *("", "hooks.example.com", "ftp://hooks.example.com", "//hooks.example.com", "https://", "https:///x"),
        *("https://user@hooks.example.com/", "https://u:p@hooks.example.com/", f"{HOOKS}/#x", f"{HOOKS}\\@evil.net/"),
        *(
            f"{HOOKS}/../x",
            f"{HOOKS}/%2e%2e/x",
            f"{HOOKS}/%252e%252e/x",
            f"{HOOKS}/..;/x",
            f"{HOOKS}/a%5cb",
            f"{HOOKS}/a%0d%0ab",
        ),
        *(
            f"{HOOKS}/a b",
            f"{HOOKS}/a\r\nHost: x",
            f"{HOOKS}:0/",
            f"{HOOKS}:65536/",
            f"{HOOKS}./",
            "https://hö.example/",
        ),
        f"{HOOKS}/{'a' * 2_000}",
    ],
)
def test_addresses_that_programs_read_in_different_ways_are_refused(url: str) -> None:
    """Shows that no text is repaired: users, fragments, dots, controls, other alphabets."""
    with pytest.raises(ValueError, match="it"):
        read_target(url)


@pytest.mark.parametrize("entry", ["https://*", "https://*.com", "*.example.com", f"{HOOKS}/?a", "https://a.*.com"])
def test_entries_that_allow_too_much_are_refused(entry: str) -> None:
    """Shows that the whole web is no destination."""
    with pytest.raises(ValueError, match="it"):
        read_destination(entry)


REFUSED = (
    *("127.0.0.1", "127.9.9.9", "0.0.0.0", "10.0.0.1", "172.16.0.1", "192.168.1.1", "100.64.0.1", "169.254.169.254"),
    *("168.63.129.16", "192.0.0.192", "198.18.0.1", "224.0.0.1", "240.0.0.1", "255.255.255.255", "192.0.2.1"),
    *("::1", "::", "fc00::1", "fd00:ec2::254", "fe80::1", "fe80::1%lo", "fec0::1", "ff02::1", "2001:db8::1"),
    *("::ffff:127.0.0.1", "::ffff:8.8.8.8", "::127.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::", "2001:0:7f00:1::"),
    *("2600::5efe:10.0.0.1", "2600::200:5efe:10.0.0.1", "3fff::1", "5f00::1"),
    *("", "localhost", "2130706433", "0x7f000001", "127.1"),
)


@pytest.mark.parametrize("address", REFUSED)
def test_addresses_that_are_not_public_are_refused(address: str) -> None:
    """Shows that nothing of them is reached unless its network is named, also where all of IPv4 is called a network."""
    assert not may_be_reached(address, ())
    assert not may_be_reached(address, [read_network("10.1.0.0/16"), read_network("fd12::/64")])


def test_public_addresses_and_named_networks_are_reached() -> None:
    """Shows what is allowed."""
    assert may_be_reached("8.8.8.8", ())
    assert may_be_reached("2606:4700::1111", ())
    assert may_be_reached("10.1.2.3", [read_network("10.1.0.0/16")])
    assert may_be_reached("169.254.169.254", [read_network("169.254.169.254/32")])
    assert not may_be_reached("10.2.2.3", [read_network("10.1.0.0/16")])
    assert not may_be_reached("::ffff:10.1.2.3", [read_network("10.1.0.0/16")])


@pytest.mark.parametrize("text", ["0.0.0.0/0", "::/0", "8.8.8.0/24", "10.1.2.3/16", "10.0.0.0/7", "x", ""])
def test_networks_that_allow_too_much_are_refused(text: str) -> None:
    """Shows that a named network lies in one private block whole: everything is no network."""
    with pytest.raises(ValueError, match="it is"):
        read_network(text)


def test_settings_name_the_entry_that_is_wrong() -> None:
    """Shows that a server does not start with an entry that it would not understand."""
    with pytest.raises(SettingsRefused) as caught:
        load_settings(webhook_destinations=("hooks.example.com",), webhook_networks=("0.0.0.0/0",))
    (finding,) = caught.value.findings
    assert "an entry of webhook_destinations is not accepted" in finding
    assert "an entry of webhook_networks is not accepted" in finding
    assert load_settings(webhook_destinations=(HOOKS,), webhook_networks=("127.0.0.0/8",)).webhook_destinations
    assert load_settings().webhook_destinations == ()
    assert ip_network("127.0.0.0/8") == read_network("127.0.0.0/8")


def test_the_signature_is_that_of_the_convention() -> None:
    """Shows the test vector of standardwebhooks.com, and that secrets are of 256 bits and differ."""
    # https://github.com/standard-webhooks/standard-webhooks, libraries/python/tests/test_webhooks.py
    headers = signed_headers(
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        delivery="msg_p5jXN8AQM9LWM0D4loKWxJek",
        seconds=1614265330,
        body=b'{"test": 2432232314}',
    )
    assert headers == {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }
    assert new_secret() != new_secret()
    assert len(new_secret()) == len("whsec_") + 44
