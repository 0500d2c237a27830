"""The proxies of the network that Playhead is in: from its configuration, and from the variables that it inherits.

The variables are read here, from the environment that Playhead was started in; what a command is given instead of
them is in `variables`. Rules:

1. lower case wins over upper case, the variable of a scheme over `ALL_PROXY`, and the configuration over all of them;
2. a proxy that another Playhead has set (`PLAYHEAD_PROXY` names it too) is none of the network's;
3. credentials are in the address, or in a file that the configuration names: in no option, which `ps` would show.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from ...config.sections.upstreams import DIRECT, ProxyAddress, UpstreamProxy, parse_proxy
from ...tape.policy.choose_upstream_proxy import Routes, parse_no_proxy
from ..errors import EngineError
from .variables import OURS

_MOST_BYTES = 4096
_OF_ALL = "all_proxy"


def read_routes(settings: UpstreamProxy, environ: Mapping[str, str]) -> Routes:
    """Read by which proxies upstreams are reached.

    environ: that of Playhead's own process.
    Raises: EngineError.
    """
    credentials = _read_credentials(settings.credentials_file)

    def complete(proxy: ProxyAddress) -> ProxyAddress:
        if credentials is None or proxy.is_direct or proxy.has_credentials:
            return proxy
        return replace(proxy, user=credentials[0], password=credentials[1])

    def find(scheme: str, given: ProxyAddress | None) -> ProxyAddress:
        if given is None and settings.inherit:
            given = _inherited(scheme, environ)
        return complete(given or DIRECT)

    inherited = _value("no_proxy", environ)[1] if settings.inherit else ""
    return Routes(
        http=find("http", settings.http),
        https=find("https", settings.https),
        excepted=tuple(parse_no_proxy([*settings.no_proxy, inherited])),
        hosts={host: complete(proxy) for host, proxy in settings.hosts.items()},
    )


def _inherited(scheme: str, environ: Mapping[str, str]) -> ProxyAddress | None:
    for variable in (f"{scheme}_proxy", _OF_ALL):
        name, text = _value(variable, environ)
        if not text or text == environ.get(OURS):
            continue
        try:
            return parse_proxy(text)
        except ValueError as error:
            raise EngineError(
                f"the variable {name} holds {error}",
                "Correct it, unset it, or say in the configuration: upstream_proxy: {inherit: false}",
            ) from error
    return None


def _value(variable: str, environ: Mapping[str, str]) -> tuple[str, str]:
    """Give the name and the value of a variable in that case which counts; empty where it has none."""
    for name in (variable, variable.upper()):
        if text := environ.get(name, "").strip():
            return name, text
    return variable, ""


def _read_credentials(path: Path | None) -> tuple[str, str] | None:
    if path is None:
        return None
    try:
        with path.open("rb") as file:
            text = file.read(_MOST_BYTES + 1).decode().strip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        raise EngineError(
            f"cannot read upstream_proxy.credentials_file {str(path)!r}: {getattr(error, 'strerror', None) or 'it is no UTF-8'}",
            "Write USER:PASSWORD of the proxy into it, on one line.",
        ) from error
    user, separator, password = text.partition(":")
    if not separator or not text.isprintable() or len(text) > _MOST_BYTES:
        raise EngineError(
            f"upstream_proxy.credentials_file {str(path)!r} does not hold USER:PASSWORD on one line",
            "Write user and password of the proxy into it, with a colon between.",
        )
    return user, password
