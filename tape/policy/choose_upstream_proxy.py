"""Decide by which proxy of the network an upstream is reached.

Rules, the first that fits decides:

1. a host of `hosts`;
2. this machine (loopback) is reached directly: the loopback of a proxy is another one;
3. what `no_proxy` lists is reached directly;
4. else the proxy of the scheme.

An entry of `no_proxy` is read as curl, Go and Python do: a name with all names below it, whether or not a dot
or `*.` stands before it, an IP address, a network, each with a port where only that is meant.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Network, IPv6Network, ip_network

from ...config.sections.upstreams import DIRECT, ProxyAddress, fits
from ...config.targets.host_interpretations import read_addresses

_BETWEEN = re.compile(r"[\s,]+")
_PORT = re.compile(r"(?P<host>\[[^\]]*\]|[^:]*):(?P<port>[0-9]{1,5})")


@dataclass(frozen=True, slots=True)
class Excepted:
    """Hosts that are reached directly."""

    name: str = ""
    """In lower case, without a dot before it."""
    network: IPv4Network | IPv6Network | None = None
    port: int | None = None
    """None: any."""

    def covers(self, host: str, port: int) -> bool:
        """Say whether a host, in normal form, is one of them."""
        if self.port not in (None, port):
            return False
        if self.network is not None:
            return _is_in(host, self.network)
        return self.name == "*" or host == self.name or host.endswith(f".{self.name}")


@dataclass(frozen=True, slots=True)
class Routes:
    """By which proxy each upstream is reached."""

    http: ProxyAddress = DIRECT
    https: ProxyAddress = DIRECT
    excepted: tuple[Excepted, ...] = ()
    hosts: Mapping[str, ProxyAddress] = field(default_factory=dict)

    def choose(self, scheme: str, host: str, port: int) -> ProxyAddress:
        """Choose the proxy for an upstream; `DIRECT` is none.

        scheme: http or https.
        """
        host = _normal(host)
        for pattern, proxy in self.hosts.items():
            if fits(pattern, host):
                return proxy
        if _is_this_machine(host) or any(one.covers(host, port) for one in self.excepted):
            return DIRECT
        return self.https if scheme == "https" else self.http

    @property
    def proxies(self) -> Iterator[ProxyAddress]:
        """Every proxy that may be chosen."""
        for proxy in (self.http, self.https, *self.hosts.values()):
            if not proxy.is_direct:
                yield proxy

    @property
    def secrets(self) -> tuple[bytes, ...]:
        """The credentials of all of them, as they may stand in a text."""
        return tuple(dict.fromkeys(secret for proxy in self.proxies for secret in proxy.secrets))


def parse_no_proxy(texts: Iterable[str]) -> Iterator[Excepted]:
    """Yield what texts as that of `NO_PROXY` list, with commas or blanks between."""
    for text in texts:
        for entry in filter(None, _BETWEEN.split(text)):
            yield _parse_entry(entry)


def _is_this_machine(host: str) -> bool:
    """Say whether a host, however it is spelled, is this machine."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    return any(one.is_loopback or one.is_unspecified for one in read_addresses(host))


def _parse_entry(text: str) -> Excepted:
    if (network := _network(text)) is not None:
        return Excepted(network=network)
    port = None
    if found := _PORT.fullmatch(text):
        text, port = found["host"], int(found["port"])
        if (network := _network(text.strip("[]"))) is not None:
            return Excepted(network=network, port=port)
    name = _normal(text)
    return Excepted(name=name if name == "*" else name.removeprefix("*").lstrip("."), port=port)


def _network(text: str) -> IPv4Network | IPv6Network | None:
    try:
        return ip_network(text.strip("[]"), strict=False)
    except ValueError:
        return None


def _is_in(host: str, network: IPv4Network | IPv6Network) -> bool:
    """Say whether a host, however it is spelled, is an address of a network."""
    return any(one in network for one in read_addresses(host))


def _normal(host: str) -> str:
    return host.lower().strip("[]").rstrip(".")
