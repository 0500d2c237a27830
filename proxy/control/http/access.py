"""Access control of the control API.

1. **The name it was asked by** is one of ours: a page of another site whose name was made to lead to this machine
   (DNS rebinding) still sends that name as its host.
2. **A browser says where a request comes from**: what comes from another site is refused, whatever it carries.
3. **The bearer token**, in its header field alone: no cookie, no query, nothing that a browser adds by itself.
   It is compared in constant time.
4. State changes by POST alone, with a body of type JSON, which no form of another site can send.

Pure: values in, an error or nothing out.
Source: RFC 9110 sections 7.2 and 9.2.1; Fetch Metadata (W3C) section 2; RFC 6750.
"""

import hmac
import ipaddress
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from ....store.paths import CONTROL_TOKEN, PRIVATE
from .error_body import ControlError

Fields = Sequence[tuple[str, str]]
"""Header fields as they came."""

_HOST = re.compile(
    r"(?:\[(?P<v6>[0-9A-Fa-f:.]{2,45})\]|(?P<name>[A-Za-z0-9._-]{1,253}))(?::(?P<port>[0-9]{1,5}))?"
)
_DEFAULT_PORTS = {"http": 80, "https": 443}
_SAME_SITE = ("same-origin", "none")
_SCHEME = "bearer "
_SHOWN = 100


def make_own_name() -> str:
    """Make a name of this machine that no other process has or knows: browsers take every name below `localhost` for loopback (RFC 6761).

    It is as secret as a cookie: whoever knows it can lead a browser to it on another port, and the browser sends the cookie there.
    """
    return f"playhead-{secrets.token_hex(16)}.localhost"


@dataclass(frozen=True, slots=True)
class Guard:
    """What is checked before anything is looked at."""

    token: str
    scheme: str
    port: int
    names: frozenset[str]
    """Hosts that stand for this machine, with our port: loopback, and the address that is listened on, and `own`."""
    hosts: frozenset[str] = frozenset()
    """Further names, with any port: something else may stand before us."""
    own: str = ""
    """One of `names` that is this process's alone, under which pages have their sessions: a browser sends a cookie to every port of a host,
    and so what is set under 127.0.0.1 to every server of this machine. It is told in exchange for the token of a link alone. Empty where
    there is none."""
    anywhere: bool = False
    """Whether every address of this machine is listened on: then any address may be the host, and no other name."""

    def check_place(self, target: str, fields: Fields) -> None:
        """Check by what name and from where a request was sent.

        Raises: ControlError.
        """
        if not target.startswith("/"):
            raise ControlError(400, "not a path", expected="a path", found=target[:_SHOWN])
        host = self._check_host(_values(fields, "host"))
        for origin in _values(fields, "origin"):
            self._check_origin(origin, host)
        for site in _values(fields, "sec-fetch-site"):
            if site.strip().lower() not in _SAME_SITE:
                raise _cross_site(f"sec-fetch-site: {site[:_SHOWN]}")

    def find_own_place(self, host: str) -> str:
        """Give the origin with which a session may begin; empty where the one that was asked for will do.

        host: the header field of a request that was checked.
        """
        if not self.own or _name_of(host) == self.own or self.is_configured(host):
            return ""
        return f"{self.scheme}://{self.own}:{self.port}"

    def is_configured(self, host: str) -> bool:
        """Say whether a host is one of `hosts`.

        host: a header field.
        """
        return _name_of(host) in self.hosts

    def check_token(self, fields: Fields) -> None:
        """Check who sent a request.

        Raises: ControlError.
        """
        given = _values(fields, "authorization")
        if len(given) == 1 and given[0][: len(_SCHEME)].lower() == _SCHEME:
            token = given[0][len(_SCHEME) :].strip(" ")
            # As bytes: text is compared in constant time only where it is ASCII.
            if hmac.compare_digest(token.encode("utf-8", "surrogatepass"), self.token.encode()):
                return
        found = "another token" if given else "none"
        raise ControlError(
            401,
            "the token is missing or wrong",
            expected="authorization: Bearer TOKEN",
            found=found,
            hint=f"it is in <store>/{PRIVATE}/{CONTROL_TOKEN}, or in control.token_file",
            headers=(("www-authenticate", 'Bearer realm="playhead"'),),
        )

    def _check_host(self, given: list[str]) -> str:
        """Give the one host that a request names."""
        if len(given) != 1:
            raise ControlError(400, "one host", expected="one host field", found=str(len(given)))
        parsed = _HOST.fullmatch(given[0])
        if parsed is not None:
            name = (parsed["v6"] or parsed["name"]).lower()
            port = int(parsed["port"] or _DEFAULT_PORTS[self.scheme])
            if name in self.hosts or (port == self.port and self._is_ours(name)):
                return given[0].lower()
        raise ControlError(
            403,
            "this is not the host that was asked for",
            # Not which: a page that was led here could read the names of others.
            expected=f"host: loopback or the address that is listened on, with port {self.port}",
            found=given[0][:_SHOWN],
            hint="name it in control.hosts if it is ours",
        )

    def _is_ours(self, name: str) -> bool:
        if name in self.names:
            return True
        try:
            address = ipaddress.ip_address(name)
        except ValueError:
            return False
        return self.anywhere and not address.is_unspecified

    def _check_origin(self, origin: str, host: str) -> None:
        given = origin.strip().lower()
        same = {f"{self.scheme}://{host}"}
        parsed = _HOST.fullmatch(host)
        if parsed is not None and (parsed["v6"] or parsed["name"]) in self.hosts:
            same.add(f"https://{host}")  # TLS may end before us
        if given not in same:
            raise _cross_site(f"origin: {origin[:_SHOWN]}")


def _name_of(host: str) -> str:
    parsed = _HOST.fullmatch(host)
    return (parsed["v6"] or parsed["name"]).lower() if parsed is not None else ""


def _cross_site(found: str) -> ControlError:
    return ControlError(
        403,
        "asked from another site",
        expected="a request of this site, or of no page",
        found=found,
    )


def _values(fields: Fields, name: str) -> list[str]:
    return [value for key, value in fields if key.lower() == name]
