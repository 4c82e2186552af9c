"""URLs that a webhook may have, and addresses it may reach."""

from __future__ import annotations

from ipaddress import ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandemq.model.errors import BadRequest
from tandemq.model.webhook_url import LONGEST, Target, check, inward, parse

POINTS_TO = {
    "localhost": [
        "http://localhost/x", "http://LOCALHOST:80", "http://127.0.0.1/", "http://[::1]/",
        "http://api.localhost/", "http://2130706433/", "http://0x7f.1/", "http://127.1/",
        "http://0177.0.0.1/", "http://localhost./", "http://%6cocalhost/", "http:\\\\localhost",
        "http://\uff11\uff12\uff17.0.0.1/", "http://127.0.0.1./", "http://a@b@localhost/",
        "HTTP:localhost",
        "http://loc\nalhost/", " http://localhost",
    ],
    "private IP": [
        "http://10.0.0.1", "http://172.16.0.1", "http://172.31.255.255", "http://192.168.1.1",
        "http://[::ffff:10.0.0.1]/", "http://[::ffff:192.168.0.1]/", "http://[64:ff9b::10.1.2.3]/",
    ],
    "link-local IP": [
        "http://169.254.1.1", "http://[fe80::1]/", "http://169.254.169.254/latest/meta-data",
    ],
    "loopback IP": [
        "http://127.0.0.2", "http://[::ffff:127.0.0.1]/", "http://[::127.0.0.1]/",
        "http://[2002:7f00:1::]/",
    ],
    "unspecified IP": ["http://0.0.0.0", "http://[::]/", "http://0/"],
    "private (ULA) IP": ["http://[fd00::1]/", "http://[fc00::]/"],
    "cloud metadata endpoints": ["http://metadata.google.internal/", "http://x.INTERNAL"],
}  # fmt: skip


@pytest.mark.parametrize(
    ("where", "url"), [(where, url) for where, urls in POINTS_TO.items() for url in urls]
)
def test_what_points_inward_is_refused(where: str, url: str) -> None:
    with pytest.raises(BadRequest) as refused:
        check(url)
    assert str(refused.value) == f"Webhook URL cannot point to {where}"


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        (None, "Webhook URL is required"),
        ("", "Webhook URL is required"),
        ("http://h.example/" + "x" * LONGEST, "Webhook URL too long (max 2048 characters)"),
        ("ftp://h.example/", "Webhook URL must use http or https protocol"),
        ("javascript:alert(1)", "Webhook URL must use http or https protocol"),
        *(
            (url, "Invalid URL format")
            for url in (
                5, "nonsense", "//x", "http//x", "http://", "http:///?", "http://h:99999/",
                "http://h:port/", "http://[::1", "http://[zz]/", "http://a b/", "http://1.2.3.4.5/",
                "http://256.1.1.1/", "http://1.08/", "http://x.0xzz1.9z.1/", "http://h<x>/",
                "http://\ud800.example/", "http://@/",
            )
        ),
    ],
)  # fmt: skip
def test_what_is_no_url_of_the_web_is_refused(url: object, sentence: str) -> None:
    with pytest.raises(BadRequest) as refused:
        check(url)
    assert str(refused.value) == sentence


@pytest.mark.parametrize(
    ("url", "target"),
    [
        ("http://172.15.0.1/", Target("http", "172.15.0.1", 80, "/", None)),
        ("http://172.32.0.1", Target("http", "172.32.0.1", 80, "/", None)),
        ("https://8.8.8.8/?q#f", Target("https", "8.8.8.8", 443, "/?q", None)),
        ("http://[2001:db8::1]:81/", Target("http", "2001:db8::1", 81, "/", None)),
        ("http://134744072/a b", Target("http", "8.8.8.8", 80, "/a%20b", None)),
        ("http://bücher.example/ü", Target("http", "xn--bcher-kva.example", 80, "/%C3%BC", None)),
        (
            "https://user:p%40w@Example.com:8443/p",
            Target("https", "example.com", 8443, "/p", ("user", "p@w")),
        ),
        ("http://h.example?x", Target("http", "h.example", 80, "/?x", None)),
    ],
)
def test_an_outward_url_is_taken_apart(url: str, target: Target) -> None:
    assert check(url) == target


@given(st.text(max_size=60))
def test_any_text_is_a_target_or_a_refusal(text: str) -> None:
    for url in (text, "http://" + text):
        try:
            found = check(url)
        except BadRequest:
            continue
        found.path.encode("ascii")
        found.host.encode("ascii")
        assert parse(url) == found


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "10.1.2.3", "169.254.169.254", "100.64.0.1", "0.0.0.0", "224.0.0.1",
        "::1", "fe80::1%eth0", "fd00::1", "::ffff:10.0.0.1", "64:ff9b::a00:1", "2002:a00:1::",
        "192.0.2.1", "255.255.255.255",
    ],
)  # fmt: skip
def test_addresses_of_this_network_are_inward_unless_allowed(address: str) -> None:
    assert inward(address)
    everything = (ip_network("0.0.0.0/0"), ip_network("::/0"))
    assert not inward(address, everything)


@pytest.mark.parametrize("address", ["8.8.8.8", "2606:4700::1111", "172.32.0.1"])
def test_addresses_of_the_internet_are_outward(address: str) -> None:
    assert not inward(address)


def test_an_allowed_network_opens_itself_only() -> None:
    allowed = (ip_network("10.1.0.0/16"),)
    assert not inward("10.1.2.3", allowed)
    assert not inward("::ffff:10.1.2.3", allowed)
    assert inward("10.2.0.1", allowed)
