"""What upstream proxies, company CAs and client certificates have to do, as tables: from the issue's words, before the code.

`test_upstream_proxies.py` (here and in `tests/journeys/`), `test_inherited_proxies.py` and `test_client_certificates.py`
have one test per table.
"""

from collections.abc import Mapping
from typing import NamedTuple

DIRECT = "direct"


class Route(NamedTuple):
    """By which proxy a request is sent."""

    rule: str
    target: str
    by: str
    """The proxy as `scheme://host:port`, or `DIRECT`."""
    environ: Mapping[str, str] = {}
    settings: str = "{}"
    """YAML of `upstream_proxy`."""


_BOTH = {"HTTP_PROXY": "http://plain.corp:3128", "HTTPS_PROXY": "http://tls.corp:3129"}
_AS_BOTH = "{http: http://plain.corp:3128, https: http://tls.corp:3129}"

ROUTES = (
    # ---- the inherited variables, which are the default ----
    Route("nothing is inherited, nothing is set", "https://api.test", DIRECT),
    Route("HTTPS_PROXY is for https", "https://api.test", "http://tls.corp:3129", _BOTH),
    Route("HTTP_PROXY is for http", "http://api.test", "http://plain.corp:3128", _BOTH),
    Route(
        "HTTPS_PROXY alone leaves http alone",
        "http://api.test",
        DIRECT,
        {"HTTPS_PROXY": "http://p:1"},
    ),
    Route(
        "HTTP_PROXY alone leaves https alone",
        "https://api.test",
        DIRECT,
        {"HTTP_PROXY": "http://p:1"},
    ),
    Route("lower case too", "https://api.test", "http://p:1", {"https_proxy": "http://p:1"}),
    Route(
        "lower case wins, as with curl and Python",
        "https://api.test",
        "http://low:1",
        {"https_proxy": "http://low:1", "HTTPS_PROXY": "http://up:1"},
    ),
    Route(
        "ALL_PROXY is for both", "http://api.test", "socks5://p:1080", {"ALL_PROXY": "socks5://p"}
    ),
    Route(
        "ALL_PROXY yields to the scheme's own",
        "https://api.test",
        "http://p:1",
        {"ALL_PROXY": "socks5://s:1", "HTTPS_PROXY": "http://p:1"},
    ),
    Route(
        "an empty variable is none",
        "https://api.test",
        DIRECT,
        {"HTTPS_PROXY": "", "ALL_PROXY": " "},
    ),
    Route(
        "an address without a scheme is HTTP",
        "https://api.test",
        "http://p.corp:3128",
        {"HTTPS_PROXY": "p.corp:3128"},
    ),
    Route(
        "an address with a path loses it",
        "https://api.test",
        "http://p:1",
        {"HTTPS_PROXY": "http://p:1/"},
    ),
    Route("a proxy over TLS", "https://api.test", "https://p:443", {"HTTPS_PROXY": "https://p"}),
    Route(
        "HTTP without a port is 80", "https://api.test", "http://p:80", {"HTTPS_PROXY": "http://p"}
    ),
    Route(
        "socks5h is SOCKS5", "https://api.test", "socks5://p:1080", {"HTTPS_PROXY": "socks5h://p"}
    ),
    Route(
        "an IPv6 proxy",
        "https://api.test",
        "http://[fd00::1]:3128",
        {"HTTPS_PROXY": "http://[fd00::1]:3128"},
    ),
    Route(
        "a proxy that Playhead itself has set is no company's",
        "https://api.test",
        DIRECT,
        {
            "HTTPS_PROXY": "http://127.0.0.1:9",
            "ALL_PROXY": "http://127.0.0.1:9",
            "PLAYHEAD_PROXY": "http://127.0.0.1:9",
        },
    ),
    # ---- no_proxy ----
    Route("a whole name", "https://api.test", DIRECT, {**_BOTH, "NO_PROXY": "api.test"}),
    Route("its subdomains", "https://a.api.test", DIRECT, {**_BOTH, "NO_PROXY": "api.test"}),
    Route("a leading dot", "https://a.api.test", DIRECT, {**_BOTH, "NO_PROXY": ".api.test"}),
    Route(
        "a leading star and dot", "https://a.api.test", DIRECT, {**_BOTH, "NO_PROXY": "*.api.test"}
    ),
    Route(
        "not a name that merely ends so",
        "https://myapi.test",
        "http://tls.corp:3129",
        {**_BOTH, "NO_PROXY": "api.test"},
    ),
    Route(
        "commas and blanks",
        "https://b.test",
        DIRECT,
        {**_BOTH, "NO_PROXY": "a.test , b.test c.test"},
    ),
    Route(
        "in any case, with a final dot",
        "https://API.test.",
        DIRECT,
        {**_BOTH, "NO_PROXY": "Api.Test"},
    ),
    Route("a star is all", "https://api.test", DIRECT, {**_BOTH, "NO_PROXY": "*"}),
    Route(
        "a port that fits", "https://api.test:8443", DIRECT, {**_BOTH, "NO_PROXY": "api.test:8443"}
    ),
    Route(
        "a port that does not",
        "https://api.test",
        "http://tls.corp:3129",
        {**_BOTH, "NO_PROXY": "api.test:8443"},
    ),
    Route("an address", "https://10.1.2.3", DIRECT, {**_BOTH, "NO_PROXY": "10.1.2.3"}),
    Route("a network", "https://10.1.2.3", DIRECT, {**_BOTH, "NO_PROXY": "10.0.0.0/8"}),
    Route(
        "a network, in decimal", "https://167838211", DIRECT, {**_BOTH, "NO_PROXY": "10.0.0.0/8"}
    ),
    Route(
        "a network, in hexadecimal",
        "https://0x0a.0x1.2.3",
        DIRECT,
        {**_BOTH, "NO_PROXY": "10.0.0.0/8"},
    ),
    Route("a network, short", "https://10.66051", DIRECT, {**_BOTH, "NO_PROXY": "10.0.0.0/8"}),
    Route(
        "a network, in IPv6",
        "https://[::ffff:10.1.2.3]",
        DIRECT,
        {**_BOTH, "NO_PROXY": "10.0.0.0/8"},
    ),
    Route("an address, in octal", "https://012.1.2.3", DIRECT, {**_BOTH, "NO_PROXY": "10.1.2.3"}),
    Route("a network of IPv6", "https://[fd00::5]", DIRECT, {**_BOTH, "NO_PROXY": "fd00::/8"}),
    Route(
        "another network",
        "https://11.1.2.3",
        "http://tls.corp:3129",
        {**_BOTH, "NO_PROXY": "10.0.0.0/8"},
    ),
    Route(
        "lower case wins here too",
        "https://b.test",
        "http://tls.corp:3129",
        {**_BOTH, "no_proxy": "a.test", "NO_PROXY": "b.test"},
    ),
    # ---- this machine ----
    Route("localhost is asked directly", "https://localhost:8443", DIRECT, _BOTH),
    Route("so is an address of loopback", "http://127.9.9.9:8080", DIRECT, _BOTH),
    Route("so is ::1", "http://[::1]:8080", DIRECT, _BOTH),
    Route(
        "unless a host rule names it",
        "http://127.0.0.1:8080",
        "http://p:1",
        _BOTH,
        "{hosts: {127.0.0.1: http://p:1}}",
    ),
    # ---- the settings ----
    Route("a setting needs no variable", "https://api.test", "http://tls.corp:3129", {}, _AS_BOTH),
    Route(
        "a setting wins over a variable",
        "https://api.test",
        "http://own:1",
        _BOTH,
        "{https: http://own:1}",
    ),
    Route(
        "what is not set is inherited",
        "http://api.test",
        "http://plain.corp:3128",
        _BOTH,
        "{https: http://own:1}",
    ),
    Route("direct is a setting", "https://api.test", DIRECT, _BOTH, "{https: direct}"),
    Route(
        "nothing is inherited where that is off",
        "https://api.test",
        DIRECT,
        _BOTH,
        "{inherit: false}",
    ),
    Route(
        "no_proxy of the file",
        "https://a.api.test",
        DIRECT,
        {},
        "{https: http://p:1, no_proxy: [api.test]}",
    ),
    Route(
        "no_proxy of the file adds to the inherited",
        "https://b.test",
        DIRECT,
        {**_BOTH, "NO_PROXY": "b.test"},
        "{no_proxy: [a.test]}",
    ),
    # ---- by host ----
    Route(
        "a host's own proxy",
        "https://api.test",
        "socks5://s:1080",
        _BOTH,
        "{hosts: {api.test: socks5://s}}",
    ),
    Route(
        "it wins over no_proxy",
        "https://api.test",
        "http://p:1",
        {"NO_PROXY": "*"},
        "{hosts: {api.test: http://p:1}}",
    ),
    Route("directly, by host", "https://api.test", DIRECT, _BOTH, "{hosts: {api.test: direct}}"),
    Route(
        "a star is for subdomains",
        "https://a.b.test",
        "http://p:1",
        {},
        "{hosts: {'*.b.test': http://p:1}}",
    ),
    Route(
        "and not for the name itself",
        "https://b.test",
        DIRECT,
        {},
        "{hosts: {'*.b.test': http://p:1}}",
    ),
    Route(
        "the first that fits decides",
        "https://a.b.test",
        "http://first:1",
        {},
        "{hosts: {'a.b.test': http://first:1, '*.b.test': http://second:1}}",
    ),
)


class BadAddress(NamedTuple):
    """An address of a proxy that cannot be used, and words that the message has."""

    text: str
    says: str


BAD_ADDRESSES = (
    BadAddress("", "expected"),
    BadAddress("ftp://p:1", "'ftp'"),
    BadAddress("socks4://p:1", "'socks4'"),
    BadAddress("http://", "host"),
    BadAddress("http://p:99999", "port"),
    BadAddress("http://p:word", "port"),
    BadAddress("http://p:0", "port"),
    BadAddress("http://me:s3cret-word@p:x", "port"),
    BadAddress("http://me:s3cret-word@", "host"),
    BadAddress("http://me%0d%0aX:s3cret-word@p:1", "control character"),
    BadAddress("http://p:1/path", "path"),
    BadAddress("http://p:1?q=1", "path"),
    BadAddress("http://[fd00::1:3128", "host"),
)
"""None of the messages holds `s3cret-word`."""


class Exchange(NamedTuple):
    """What a command that is run behind a company's proxy gets, in record."""

    proxy: str
    """Its kind: http, https, socks5."""
    target: str
    """Scheme of the upstream."""
    credentials: str
    """none, right, wrong or missing: what the proxy is given, against what it wants."""
    answered: bool


EXCHANGES = (
    *(
        Exchange(proxy, target, "none", True)
        for proxy in ("http", "https", "socks5")
        for target in ("http", "https")
    ),
    *(
        Exchange(proxy, target, "right", True)
        for proxy in ("http", "https", "socks5")
        for target in ("http", "https")
    ),
    *(
        Exchange(proxy, target, "wrong", False)
        for proxy in ("http", "https", "socks5")
        for target in ("http", "https")
    ),
    *(
        Exchange(proxy, target, "missing", False)
        for proxy in ("http", "https", "socks5")
        for target in ("http", "https")
    ),
)

JOURNEYS = (
    # ---- what is on the wire ----
    "a plain request is sent to an HTTP proxy in absolute form, with the host and port that the guard allowed",
    "a request over TLS is sent through CONNECT, and TLS is end to end: the proxy sees no head of it",
    "the client's own Proxy-Authorization (run and token) never reaches the upstream proxy",
    "the upstream proxy's credentials never reach the upstream, inside the tunnel or through SOCKS5",
    "a WebSocket without TLS goes through CONNECT",
    "gRPC (HTTP/2 without TLS) goes through CONNECT",
    "HTTP/2 is negotiated with the upstream through the tunnel as directly",
    "several requests of one client share the connection to the proxy",
    "the name of the host is looked up by the proxy, not by Playhead",
    # ---- the guard ----
    "in playback nothing is sent to the upstream proxy: hit, miss, stub and a hook that raises (leak matrix)",
    "in playback a live rule goes out through the upstream proxy, and nothing beside it",
    "an upstream proxy whose address is one where Playhead listens is refused",
    "a host that is looked up by a proxy on this machine, on a port of Playhead's own, is refused",
    # ---- secrets ----
    "proxy user and password are in no file of the store, no log line, no receipt and no command line of a process",
    "a child finds the inherited proxy in none of the variables that Playhead sets",
    # ---- failures, each named ----
    "the proxy refuses the connection: a fault that names the proxy, not the upstream",
    "the proxy answers 407: a fault that says that it wants credentials; the client gets no 407",
    "the proxy answers 403 or 502 to CONNECT: a fault with the status",
    "the proxy hangs up in its answer, answers nonsense, or a head without end: a fault",
    "the proxy does not answer: a fault after 30 s",
    "the proxy's certificate is not trusted: a fault that names --upstream-ca",
    # ---- a real one ----
    "tinyproxy with basic authentication: record and replay over http and https",
)

COMPANY_ROOTS = (
    "SSL_CERT_FILE",
    "NODE_EXTRA_CA_CERTS",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "SSL_CERT_DIR",
)
"""Each of them alone makes an upstream trusted whose CA stands there, and nothing else that was trusted before is lost by it."""


class ClientCertificate(NamedTuple):
    """Whether an upstream that asks for a certificate is given one."""

    rule: str
    hosts: str
    asked: str
    given: bool


CLIENT_CERTIFICATES = (
    ClientCertificate("the host that is named", "[127.0.0.1]", "127.0.0.1", True),
    ClientCertificate("another one is given none", "[api.test]", "127.0.0.1", False),
    ClientCertificate("a pattern", "['*.localhost']", "mtls.localhost", True),
    ClientCertificate(
        "not the name itself for a pattern of subdomains", "['*.localhost']", "localhost", False
    ),
    ClientCertificate("all", "['*']", "127.0.0.1", True),
)

BAD_CLIENT_CERTIFICATES = (
    ("no file at cert", "cannot read"),
    ("a cert file without a certificate", "no certificate"),
    ("no private key, in neither file", "no private key"),
    ("an encrypted key", "passphrase"),
    ("a key of another certificate", "does not belong"),
    ("no host", "hosts"),
)
"""Exit 2 before the command is started; the message names the file."""
