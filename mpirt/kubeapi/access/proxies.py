"""
The proxy on the way to the API server, as the environment or a kubeconfig names it.

Owns: the URL of a proxy, and what NO_PROXY excludes, both as client-go reads them. No I/O. Imported only where a
proxy is named: ipaddress and urllib.parse would be a tenth of each mpirt-discover.
"""

from __future__ import annotations

import binascii
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import TypeAlias
from urllib.parse import unquote, urlsplit

from mpirt.errors import ConfigError
from mpirt.kubeapi.access.credentials import Secret
from mpirt.kubeapi.access.endpoint import Proxy

_Number: TypeAlias = IPv4Address | IPv6Address

_PORTS = {"http": 80, "https": 443}


def read_proxy(text: str, origin: str) -> Proxy:
    """Read the URL of a proxy; without a scheme it is http. Raises ConfigError that does not repeat the URL."""
    try:
        url = urlsplit(text if "://" in text else f"http://{text}")
        host, port = url.hostname or "", url.port
    except ValueError as error:
        raise ConfigError(f"{origin}: not the URL of a proxy; expected http://HOST:PORT") from error
    if url.scheme.startswith("socks"):
        raise ConfigError(
            f"{origin}: SOCKS proxies are not supported; expected http://HOST:PORT or https://HOST:PORT"
        )
    usable = host.isascii() and host.isprintable() and " " not in host and port != 0
    if url.scheme not in _PORTS or not host or not usable:
        raise ConfigError(f"{origin}: not the URL of a proxy; expected http://HOST:PORT or https://HOST:PORT")
    authorization = None
    if url.username is not None:
        pair = f"{unquote(url.username)}:{unquote(url.password or '')}".encode()
        authorization = Secret(binascii.b2a_base64(pair, newline=False).decode())
    return Proxy(url.scheme, host, port or _PORTS[url.scheme], authorization, origin)


def is_excluded(host: str, port: int, excluded: str) -> bool:
    """Whether NO_PROXY excludes the server. This machine itself is never reached through a proxy."""
    host, number = host.lower().rstrip("."), _number(host)
    if host == "localhost" or (number is not None and number.is_loopback):
        return True
    entries = (entry.strip().lower() for entry in excluded.split(","))
    return any(_matches(entry, host, number, port) for entry in entries if entry)


def _matches(entry: str, host: str, number: _Number | None, port: int) -> bool:
    if entry == "*":
        return True
    if "/" in entry:
        return number is not None and _is_within(number, entry)
    # The colons of an IPv6 address without brackets are not before a port.
    if _number(entry) is None:
        name, colon, digits = entry.rpartition(":")
        if colon and digits.isascii() and digits.isdigit():
            if int(digits) != port:
                return False
            entry = name
    named = _number(entry)
    if number is not None or named is not None:
        return number == named
    if entry.startswith("*."):
        entry = entry[1:]
    return host.endswith(entry) if entry.startswith(".") else host == entry or host.endswith(f".{entry}")


def _is_within(number: _Number, network: str) -> bool:
    try:
        return number in ip_network(network, strict=False)
    except ValueError:
        return False


def _number(text: str) -> _Number | None:
    """An IP address; None for a name."""
    try:
        return ip_address(text.strip("[]"))
    except ValueError:
        return None
