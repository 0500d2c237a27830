"""How upstreams are reached: by which proxy, and with which certificate of ours."""

import re
from base64 import b64encode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn
from urllib.parse import SplitResult, unquote, urlsplit

from ..document import Value
from ..key_declarations import (
    SCALAR,
    custom,
    key,
    optional,
    optional_path,
    required_path,
    required_texts,
    texts,
)
from ..parse_values import parse_host, parse_yes, show

_DIRECT = "direct"
_PORTS = {"http": 80, "https": 443, "socks5": 1080}
_SCHEMES = {"http": "http", "https": "https", "socks5": "socks5", "socks5h": "socks5"}
_EXPECTED = "expected an address as http://proxy.example.com:3128, with http, https or socks5"
_ESCAPED = "in a password / is written as %2F, @ as %40, # as %23"
_TOKEN = re.compile(r"(?=.*[0-9])(?=.*[A-Za-z])[A-Za-z0-9]{16,}")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class ProxyAddress:
    """A proxy that requests are sent by; or none of them, where `scheme` is `direct`."""

    scheme: str
    host: str = ""
    port: int = 0
    user: str = field(default="", repr=False)
    password: str = field(default="", repr=False)

    def __str__(self) -> str:
        """Render it for people: without its credentials."""
        if self.is_direct:
            return _DIRECT
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"

    @property
    def is_direct(self) -> bool:
        """Whether it is no proxy."""
        return self.scheme == _DIRECT

    @property
    def has_credentials(self) -> bool:
        """Whether it says who asks."""
        return bool(self.user or self.password)

    @property
    def secrets(self) -> Iterator[bytes]:
        """What no text may show: its password, what basic authentication sends, and a user that is a token.

        Any other user is in paths and addresses as often (`/home/jsmith2`): a tape would play behind this proxy alone.
        """
        if not self.has_credentials:
            return
        user, password = self.user.encode(), self.password.encode()
        yield password
        yield user + b":" + password
        yield b64encode(user + b":" + password)
        if _TOKEN.fullmatch(self.user):
            yield user


DIRECT = ProxyAddress(_DIRECT)


def parse_proxy(text: str) -> ProxyAddress:
    """Parse the address of a proxy, `http://USER:PASSWORD@HOST:PORT`, or `direct`.

    Raises: ValueError, whose text says what would be right, and has no credentials in it.
    """
    if text == _DIRECT:
        return DIRECT
    if not text.strip():
        raise ValueError(f"there is no address; {_EXPECTED}")
    scheme, separator, _ = text.partition("://")
    if not separator:
        scheme, text = "http", f"http://{text}"
    if scheme.lower() not in _SCHEMES:
        raise ValueError(f"unknown scheme {show(scheme)}; {_EXPECTED}")
    scheme = _SCHEMES[scheme.lower()]
    try:
        parts = urlsplit(text)
    except ValueError:
        _wrong("its host is no name or IP address")
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    if _CONTROL.search(user + password):
        _wrong("its credentials have a control character")
    if parts.path not in ("", "/") or parts.query or parts.fragment:
        _wrong(f"it has a path ({_ESCAPED})")
    return ProxyAddress(scheme, _host(parts), _port(parts) or _PORTS[scheme], user, password)


def _host(parts: SplitResult) -> str:
    try:
        return parse_host(parts.hostname or "")
    except ValueError:
        _wrong("its host is missing, or no name or IP address")


def _port(parts: SplitResult) -> int | None:
    try:
        port = parts.port
    except ValueError:
        port = 0
    if port == 0:
        _wrong(f"its port is no number from 1 to 65535 ({_ESCAPED})")
    return port


def _wrong(why: str) -> NoReturn:
    raise ValueError(f"no address of a proxy: {why}; {_EXPECTED}") from None


def parse_host_pattern(text: str) -> str:
    """Parse a host, `*.HOST` for all names below it, or `*` for all.

    Raises: ValueError, whose text says what would be right.
    """
    if text == "*":
        return text
    star, rest = ("*.", text[2:]) if text.startswith("*.") else ("", text)
    try:
        return f"{star}{parse_host(rest)}"
    except ValueError:
        raise ValueError(
            f"{show(text)} is no host; expected a name or IP address, *.example.com for all names below one, or *"
        ) from None


def fits(pattern: str, host: str) -> bool:
    """Say whether a pattern is about a host.

    host: in lower case, without brackets or final dot.
    """
    return pattern in ("*", host) or (pattern.startswith("*.") and host.endswith(pattern[1:]))


def _read_hosts(value: Value) -> Mapping[str, ProxyAddress]:
    hosts = {}
    for _, at, address in value.entries():
        hosts[at.parsed(parse_host_pattern, "")] = address.parsed(parse_proxy, DIRECT)
    return hosts


@dataclass(frozen=True, slots=True)
class UpstreamProxy:
    """By which proxies of your network upstreams are reached."""

    inherit: bool = key(
        "true",
        parse_yes,
        "Take missing keys from Playhead's `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY`.",
    )
    http: ProxyAddress | None = optional(
        parse_proxy,
        "For requests without TLS: `http://USER:PASSWORD@HOST:PORT`, `https://` or `socks5://`, credentials "
        "optional; or `direct`.",
    )
    https: ProxyAddress | None = optional(parse_proxy, "The same over TLS.")
    no_proxy: tuple[str, ...] = texts(
        str,
        "Further hosts reached directly: names with all below, IP addresses, networks (`10.0.0.0/8`), "
        "optionally with a port; `*` is all.",
        example="- corp.example.com\n- 10.0.0.0/8",
    )
    hosts: Mapping[str, ProxyAddress] = custom(
        _read_hosts,
        {},
        "Proxy or `direct` by host, before `no_proxy`. The first match decides; `*.example.com` is every name below.",
        shown="{}",
        shape={"type": "object", "additionalProperties": SCALAR},
        example='"*.partner.example.com": socks5://127.0.0.1:1080\nintranet.example.com: direct',
    )
    credentials_file: Path | None = optional_path(
        "File with `USER:PASSWORD` for proxies without credentials."
    )


@dataclass(frozen=True, slots=True)
class ClientCertificate:
    """A certificate by which upstreams know who asks (mutual TLS)."""

    hosts: tuple[str, ...] = field(
        metadata=required_texts(
            parse_host_pattern,
            "missing; expected the hosts that are shown the certificate, as [api.example.com]",
            "Upstreams: names, addresses, `*.example.com`, or `*`. The first match decides.",
        )
    )
    cert: Path = field(
        metadata=required_path(
            "missing; expected a PEM file: the certificate, and those that lead to its root",
            "PEM file: certificate and chain.",
        )
    )
    key: Path | None = optional_path("PEM file: key without a passphrase; `null`: in `cert`.")
