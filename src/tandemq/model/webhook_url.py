"""Which URLs a webhook may have, judged by their text as a browser would read it.

No name is resolved here: what a name points to is checked when a connection is made, by the same
``inward``. Hosts are normalised first, so that 2130706433, 0x7f.1 and 127.1 are all the loopback
address that they stand for. Sources: bunqueue semantics 16, the WHATWG URL standard.
"""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import NamedTuple
from urllib.parse import quote, unquote

from tandemq.model.errors import BadRequest

LONGEST = 2_048  # characters
SCHEMES = {"http": 80, "https": 443}

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*):(.*)", re.DOTALL)
_AUTHORITY = re.compile(r"[/\\]*([^/\\?#]*)([^#]*)", re.DOTALL)
_BAD_IN_HOST = re.compile(r"[\0-\x20\"#%/:<>?@\[\\\]^`{|}\x7f]")
_NAT64 = ip_network("64:ff9b::/96")
_INVALID = "Invalid URL format"


class Target(NamedTuple):
    """Where a webhook is delivered to."""

    scheme: str
    host: str  # normalised: an address or a lower-case ASCII name
    port: int
    path: str  # with its query
    userinfo: tuple[str, str] | None


def check(url: object) -> Target:
    """Return where a URL leads, if a webhook may lead there.

    Raises:
        BadRequest: with the sentence that clients know.
    """
    target = parse(url)
    if (where := guarded(target.host)) is not None:
        raise BadRequest(f"Webhook URL cannot point to {where}")
    return target


def parse(url: object) -> Target:
    """Take an HTTP URL apart.

    Raises:
        BadRequest: it is none.
    """
    if not url:
        raise BadRequest("Webhook URL is required")
    if not isinstance(url, str):
        raise BadRequest(_INVALID)
    if len(url) > LONGEST:
        raise BadRequest(f"Webhook URL too long (max {LONGEST} characters)")
    found = _SCHEME.fullmatch(re.sub(r"[\t\n\r]", "", url.strip("".join(map(chr, range(33))))))
    if found is None:
        raise BadRequest(_INVALID)
    scheme = found[1].lower()
    if scheme not in SCHEMES:
        raise BadRequest("Webhook URL must use http or https protocol")
    return _target(scheme, found[2])


def _target(scheme: str, rest: str) -> Target:
    parts = _AUTHORITY.match(rest)
    assert parts is not None, "it matches any text"
    userinfo, at, place = parts[1].rpartition("@")
    name, _, password = userinfo.partition(":")
    bracketed = re.fullmatch(r"(\[[^\]]*\]|[^:]*)(?::([0-9]*))?", place)
    if bracketed is None:
        raise BadRequest(_INVALID)
    port = int(bracketed[2] or SCHEMES[scheme])
    if port > 65_535:
        raise BadRequest(_INVALID)
    path = quote(
        parts[2].replace("\\", "/") or "/", safe="/?%:@!$&'()*+,;=-._~[]|", errors="replace"
    )
    path = path if path.startswith("/") else "/" + path
    login = (unquote(name), unquote(password)) if at and userinfo else None
    return Target(scheme, _host(bracketed[1]), port, path, login)


def _host(text: str) -> str:
    if text.startswith("["):
        try:
            return str(IPv6Address(text[1:-1]))
        except ValueError:
            raise BadRequest(_INVALID) from None
    name = unquote(text)
    try:
        name = name.lower() if name.isascii() else name.encode("idna").decode().lower()
    except UnicodeError:
        raise BadRequest(_INVALID) from None
    if not name or _BAD_IN_HOST.search(name):
        raise BadRequest(_INVALID)
    labels = name.removesuffix(".").split(".")
    if labels[-1].isdigit() or re.fullmatch("0x[0-9a-f]*", labels[-1]):
        return str(_number_host(labels))
    return name


def _number_host(labels: list[str]) -> IPv4Address:
    """Read what ends in a number as an address: up to four numbers, the last fills the rest."""
    try:
        numbers = [_number(label) for label in labels]
        *firsts, last = numbers
        if len(numbers) > 4 or any(n > 255 for n in firsts) or last >= 256 ** (5 - len(numbers)):
            raise ValueError
        return IPv4Address(sum(n << (24 - 8 * i) for i, n in enumerate(firsts)) + last)
    except ValueError:
        raise BadRequest(_INVALID) from None


def _number(label: str) -> int:
    if label.startswith("0x"):
        return int(label[2:] or "0", 16)
    if not label.isdigit():
        raise ValueError
    return int(label, 8 if len(label) > 1 and label.startswith("0") else 10)


def guarded(host: str) -> str | None:
    """Return what a host is that webhooks must not point to, None if they may."""
    name = host.removesuffix(".")
    if name == "localhost" or name.endswith(".localhost") or name in ("127.0.0.1", "::1"):
        return "localhost"
    if name == "internal" or name.endswith(".internal"):
        return "cloud metadata endpoints"
    try:
        return _kind(_unwrapped(ip_address(name)))
    except ValueError:
        return None


def _kind(address: Address) -> str | None:
    if isinstance(address, IPv6Address):
        kinds = {"fe80::/10": "link-local IP", "fc00::/7": "private (ULA) IP"}
        kinds |= {"::/128": "unspecified IP", "::1/128": "loopback IP"}
    else:
        kinds = dict.fromkeys(("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"), "private IP")
        kinds |= {"169.254.0.0/16": "link-local IP", "127.0.0.0/8": "loopback IP"}
        kinds |= {"0.0.0.0/8": "unspecified IP"}
    return next((kind for net, kind in kinds.items() if address in ip_network(net)), None)


def _unwrapped(address: Address) -> Address:
    """Return the IPv4 address that an IPv6 address stands for, if it does."""
    if not isinstance(address, IPv6Address):
        return address
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address.sixtofour is not None:
        return address.sixtofour
    low = int(address) & 0xFFFF_FFFF
    compatible = int(address) >> 32 == 0 and low > 1
    return IPv4Address(low) if compatible or address in _NAT64 else address


def inward(address: str, allowed: tuple[Network, ...] = ()) -> bool:
    """Whether an address is not one of the open internet, and not in an allowed network."""
    found = ip_address(address.partition("%")[0])
    plain = _unwrapped(found)
    if any(candidate in network for network in allowed for candidate in (found, plain)):
        return False
    return not plain.is_global or plain.is_multicast
