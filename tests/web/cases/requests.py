"""Who may ask: requests to the page's server and the status that each has to get, written from docs/ui.md.

`{host}` is the server's HOST:PORT, `{port}` its port, `{token}` the token of a link that was not opened, `{used}` of one that was.
"""

from dataclasses import dataclass, field

JSON = "application/json"
APPROVE, STOP = "/data/gates/refund%3A4/approve", "/data/runs/refund/stop"
BRANCH, BREAK = "/data/runs/refund/branch", "/data/breaks/refund%401%3A4/step"
CHANGES = (APPROVE, "/data/gates/refund%3A4/deny", STOP, BRANCH, BREAK)
"""Paths of what changes something: nothing is held, and the run has ended, so that a request that gets through gets 409."""
SESSIONS = ("none", "reader", "ruler", "other process", "made up", "store token", "wrong token")
"""Whose request it is: a cookie of a link to read, of one with `--allow-run`, of another process, invented, or a bearer token."""


@dataclass(frozen=True)
class Asked:
    """A request, and what it has to get."""

    name: str
    status: tuple[int, ...]
    method: str = "GET"
    path: str = "/runs"
    session: str = "reader"
    host: str = "{host}"
    fields: dict[str, str] = field(default_factory=dict, hash=False)
    body: bytes | None = None
    says: str = ""
    """Stands in the body."""


_EVIL, _OTHER_PORT = "http://evil.test", "http://{name}:9"
_OK, _NO_LOGIN, _FORBIDDEN, _METHOD = (200,), (401,), (403,), (405,)
_NOT_HELD, _NOWHERE = (409,), (400, 403, 404)

_LOGIN = (
    Asked("a session may read", _OK),
    Asked("a session may read data", _OK, path="/data/runs"),
    Asked("nobody", _NO_LOGIN, session="none", says="playhead ui"),
    Asked("nobody at a run", _NO_LOGIN, path="/runs/refund?seq=6", session="none", says="playhead ui"),
    Asked("nobody at data", _NO_LOGIN, path="/data/runs", session="none"),
    Asked("nobody at a body", _NO_LOGIN, path="/data/runs/refund/steps/6/body?side=request", session="none"),
    Asked("nobody at the events", _NO_LOGIN, path="/data/events", session="none"),
    Asked("nobody at what is now", _NO_LOGIN, path="/data/now", session="none"),
    Asked("nobody at a run that is not there", _NO_LOGIN, path="/runs/refnud", session="none"),
    Asked("nobody at no page", _NO_LOGIN, path="/nowhere", session="none"),
    Asked("a session that was made up", _NO_LOGIN, session="made up"),
    Asked("a session of another process", _NO_LOGIN, session="other process"),
    Asked("the token of the store as a cookie", _NO_LOGIN, session="none", fields={"cookie": "playhead={bearer}"}),
    Asked("a link that was used", _NO_LOGIN, path="/runs?token={used}", session="none", says="playhead ui"),
    Asked("a link that was used, at data", _NO_LOGIN, path="/data/runs?token={used}", session="none"),
    Asked("a link with a made-up token", _NO_LOGIN, path="/runs?token=AAAA", session="none"),
    Asked("a link with an empty token", _NO_LOGIN, path="/runs?token=", session="none"),
    Asked("a link with two tokens", (400, 401), path="/runs?token=AAAA&token={used}", session="none"),
    Asked("the token of the store in the address", _NO_LOGIN, path="/runs?token={bearer}", session="none"),
    Asked("the token of the store", _OK, path="/data/runs", session="store token"),
    Asked("a wrong token", _NO_LOGIN, path="/data/runs", session="wrong token"),
    Asked("the token of the store as a password", _NO_LOGIN, path="/data/runs", session="none", fields={"authorization": "Basic {bearer}"}),
)  # fmt: skip

_HOSTS = (
    Asked("by its address", _OK, host="127.0.0.1:{port}"),
    Asked("by localhost", _OK, host="localhost:{port}"),
    Asked("by a name that was rebound", _FORBIDDEN, host="evil.test:{port}"),
    Asked("by a name that was rebound, at data", _FORBIDDEN, path="/data/runs", host="evil.test:{port}"),
    Asked("by a name that was rebound, with the store's token", _FORBIDDEN, path="/data/runs", session="store token", host="evil.test:{port}"),
    Asked("by a name that was rebound, without a session", _FORBIDDEN, session="none", host="evil.test:{port}"),
    Asked("by a name that ends like ours", _FORBIDDEN, host="evil-{host}"),
    Asked("by a name below ours", _FORBIDDEN, host="evil.{host}"),
    Asked("by a name that begins like ours", _FORBIDDEN, host="{name}.evil.test:{port}"),
    Asked("by a name that begins like localhost", _FORBIDDEN, host="localhost.evil.test:{port}"),
    Asked("by another name of loopback", _FORBIDDEN, host="other.localhost:{port}"),
    Asked("by an address of the network", _FORBIDDEN, host="192.0.2.7:{port}"),
    Asked("by an address that ends like ours", _FORBIDDEN, host="127.0.0.1.evil.test:{port}"),
    Asked("by a host with a user", (400, 403), host="{host}@evil.test"),
    Asked("by two hosts in one", (400, 403), host="{host}, evil.test"),
    Asked("by no host", (400, 403), host=""),
    Asked("by a host in the target", (400, 403), path="http://evil.test/runs"),
    Asked("by a host that is forwarded", _OK, fields={"x-forwarded-host": "evil.test", "forwarded": "host=evil.test"}),
)  # fmt: skip

_SITES = (
    Asked("typed into the address bar", _OK, fields={"sec-fetch-site": "none", "sec-fetch-mode": "navigate"}),
    Asked("from the page itself", _OK, path="/data/runs", fields={"sec-fetch-site": "same-origin", "origin": "http://{host}"}),
    Asked("from another site", _FORBIDDEN, fields={"sec-fetch-site": "cross-site"}),
    Asked("from another site, at data", _FORBIDDEN, path="/data/runs", fields={"sec-fetch-site": "cross-site"}),
    Asked("as a picture of another site", _FORBIDDEN, path="/data/runs/refund/strip?width=100", fields={"sec-fetch-site": "cross-site", "sec-fetch-dest": "image"}),
    Asked("as a script of another site", _FORBIDDEN, path="/data/runs", fields={"sec-fetch-site": "cross-site", "sec-fetch-dest": "script"}),
    Asked("from another port of this machine", _FORBIDDEN, path="/data/runs", fields={"sec-fetch-site": "same-site", "origin": _OTHER_PORT}),
    Asked("from a site that is no word", _FORBIDDEN, path="/data/runs", fields={"sec-fetch-site": "elsewhere"}),
    Asked("with the origin of another site", _FORBIDDEN, path="/data/runs", fields={"origin": _EVIL}),
    Asked("with no origin that can be told", _FORBIDDEN, path="/data/runs", fields={"origin": "null"}),
    Asked("with our origin over TLS", _FORBIDDEN, path="/data/runs", fields={"origin": "https://{host}"}),
    Asked("with our origin and another port", _FORBIDDEN, path="/data/runs", fields={"origin": _OTHER_PORT}),
    Asked("with our origin in capitals and a path", _FORBIDDEN, path="/data/runs", fields={"origin": "http://{host}/runs"}),
    Asked("with another origin and the store's token", _FORBIDDEN, path="/data/runs", session="store token", fields={"origin": _EVIL}),
    Asked("a link from another site", (200,), path="/runs?token={token}", session="none", fields={"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}),
)  # fmt: skip

_STREAMS = (
    Asked("events of the page itself", _OK, path="/data/events", fields={"accept": "text/event-stream", "sec-fetch-site": "same-origin"}),
    Asked("events for another site", _FORBIDDEN, path="/data/events", fields={"origin": _EVIL, "accept": "text/event-stream"}),
    Asked("events for another port", _FORBIDDEN, path="/data/events", fields={"sec-fetch-site": "same-site"}),
    Asked("events without a session", _NO_LOGIN, path="/data/events", session="none"),
    Asked("a WebSocket", (200, 400, 403, 404, 405, 426), path="/data/events", fields={"upgrade": "websocket", "connection": "upgrade", "sec-websocket-version": "13", "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ=="}),
    Asked("a WebSocket of another site", _FORBIDDEN, path="/data/events", fields={"upgrade": "websocket", "connection": "upgrade", "sec-websocket-version": "13", "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==", "origin": _EVIL}),
    Asked("HTTP/2 without TLS", (200, 400), path="/runs", fields={"upgrade": "h2c", "http2-settings": "AAMAAABkAAQAAP__"}),
)  # fmt: skip


def _post(name: str, status: tuple[int, ...], path: str = APPROVE, **more: object) -> Asked:
    given: dict[str, object] = {"method": "POST", "session": "ruler", "body": b'{"digest": "00"}'}
    given["fields"] = {"origin": "http://{host}", "content-type": JSON}
    return Asked(name, status, path=path, **(given | more))  # type: ignore[arg-type]


_OURS = {"origin": "http://{host}"}
_FROM_EVIL = {"origin": _EVIL, "content-type": JSON}
_CHANGES = (
    *(Asked(f"GET of {path}", _METHOD, path=path, session="ruler") for path in CHANGES),
    *(Asked(f"HEAD of {path}", _METHOD, "HEAD", path, "ruler") for path in CHANGES),
    *(_post(f"to read, {path}", _FORBIDDEN, path, session="reader") for path in CHANGES),
    *(_post(f"from another site, {path}", _FORBIDDEN, path, fields=_FROM_EVIL) for path in CHANGES),
    *(_post(f"without a session, {path}", _NO_LOGIN, path, session="none") for path in CHANGES),
    _post("a ruling that is allowed, on nothing", _NOT_HELD),
    _post("a stop that is allowed, of a run that has ended", _NOT_HELD, STOP, body=b"{}"),
    _post("a ruling with the store's token", _NOT_HELD, session="store token", fields={"content-type": JSON}),
    _post("a ruling without an origin", _FORBIDDEN, fields={"content-type": JSON}),
    _post("a ruling with no origin that can be told", _FORBIDDEN, fields={"origin": "null", "content-type": JSON}),
    _post("a ruling from another port", _FORBIDDEN, fields={"origin": _OTHER_PORT, "content-type": JSON}),
    _post("a ruling from another site by its site alone", _FORBIDDEN, fields={**_OURS, "content-type": JSON, "sec-fetch-site": "cross-site"}),
    _post("a ruling by a name that was rebound", _FORBIDDEN, host="evil.test:{port}", fields={"origin": "http://evil.test:{port}", "content-type": JSON}),
    _post("a form", (415,), fields={**_OURS, "content-type": "application/x-www-form-urlencoded"}, body=b"digest=00"),
    _post("a form with parts", (415,), fields={**_OURS, "content-type": "multipart/form-data; boundary=a"}, body=b"--a--"),
    _post("a text", (415,), fields={**_OURS, "content-type": "text/plain"}),
    _post("a body without a type", (415,), fields=_OURS),
    _post("two types in one", (415,), fields={**_OURS, "content-type": "text/plain; application/json"}),
    _post("a body that is compressed", (415,), fields={**_OURS, "content-type": JSON, "content-encoding": "gzip"}),
    _post("no JSON", (400,), body=b"{digest: 00}"),
    _post("JSON that is no object", (400, 422), body=b"[]"),
    _post("a body of 65 KiB", (413,), body=b'{"digest": "' + b"0" * 66_560 + b'"}'),
    _post("brackets without end", (400, 413, 422), body=b"[" * 60_000),
    _post("a command", (403, 409, 422), BRANCH, body=b'{"at": 5, "answer": "{}", "command": ["touch", "pwned"]}'),
    _post("a command of a session that reads", _FORBIDDEN, BRANCH, session="reader", body=b'{"at": 5, "command": ["touch", "pwned"]}'),
    Asked("a GET that is to be taken for a POST", _METHOD, path=APPROVE, session="ruler", fields={"x-http-method-override": "POST"}),
    Asked("a ruling in the address of a page", _OK, path="/gates?approve=refund%3A4&digest=00", session="ruler"),
    Asked("a stop in the address of a page", _OK, path="/runs/refund?action=stop&_method=POST", session="ruler"),
)  # fmt: skip

_METHODS = (
    Asked("HEAD", _OK, "HEAD"),
    Asked("HEAD of data", _OK, "HEAD", "/data/runs"),
    Asked("HEAD without a session", _NO_LOGIN, "HEAD", session="none"),
    Asked("OPTIONS", _METHOD, "OPTIONS"),
    Asked("OPTIONS of everything", (400, 405), "OPTIONS", "*"),
    Asked("a question before a request of another site", (403, 405), "OPTIONS", APPROVE, "none", fields={"origin": _EVIL, "access-control-request-method": "POST", "access-control-request-headers": "content-type", "access-control-request-private-network": "true"}),
    Asked("TRACE", _METHOD, "TRACE"),
    Asked("CONNECT", (400, 405), "CONNECT", "evil.test:443"),
    *(Asked(f"{method} of a run", _METHOD, method, "/runs/refund") for method in ("POST", "PUT", "PATCH", "DELETE")),
    Asked("PROPFIND", (400, 405, 501), "PROPFIND"),
)  # fmt: skip

_OUTSIDE = ("../../etc/passwd", "..%2f..%2fetc%2fpasswd", "%2e%2e/%2e%2e/etc/passwd", "..%252f..%252fetc%252fpasswd", "..\\..\\etc\\passwd", "..%5c..%5cetc%5cpasswd", "%c0%ae%c0%ae/etc/passwd", "/etc/passwd", "%00", "page.py", "__pycache__/", ".%00./page.py", "file:///etc/passwd", "private/control-token")  # fmt: skip
_PATHS = (
    *(Asked(f"of the page's own files: {path}", _NOWHERE, path=f"/static/{path}") for path in _OUTSIDE),
    *(Asked(f"of the pages: {path}", _NOWHERE, path=f"/{path.removeprefix('/')}") for path in _OUTSIDE),
    Asked("a run with a path for a name", (404,), path="/runs/..%2f..%2fprivate%2fcontrol-token"),
    Asked("a run with NUL in its name", (400, 404), path="/runs/a%00b"),
    Asked("a run with a line end in its name", (400, 404), path="/runs/a%0d%0aset-cookie:%20pwned=1"),
    Asked("a run with broken UTF-8 in its name", (400, 404), path="/runs/%ff%fe"),
    Asked("a run with a name of 10,000 letters", (400, 404, 414), path="/runs/" + "a" * 10_000),
    Asked("a body that is named by a path", (400, 404), path="/data/runs/refund/steps/..%2f6/body?side=request"),
    Asked("a side that is none", (400, 422), path="/data/runs/refund/steps/6/body?side=../../x"),
    Asked("a window that is too large", (200, 400, 422), path="/data/runs?from=0&limit=1000000000"),
    Asked("a window before the first", (400, 422), path="/data/runs?from=-1&limit=10"),
    Asked("a window that is no number", (400, 422), path="/data/runs?from=a&limit=1e9"),
    Asked("a strip that is too wide", (200, 400, 422), path="/data/runs/refund/strip?width=1000000000"),
    Asked("a regular expression that does not end", _OK, path="/data/runs?q=(a%2B)%2B%24&in=text"),
    Asked("a path of blame that is none", (200, 400, 404, 422), path="/data/runs/refund/steps/6/blame?path=%24" + "%5B" * 3_000),
    Asked("two slashes", (200, 400, 403, 404), path="//evil.test/runs?token={token}", session="none"),
    Asked("a way out of the address", (200, 400, 403, 404), path="/%5c%5cevil.test/runs?token={token}", session="none"),
    Asked("a way on that the link names", (200, 400), path="/runs?token={token}&next=http://evil.test/", session="none"),
)  # fmt: skip

ASKED = (*_LOGIN, *_HOSTS, *_SITES, *_STREAMS, *_CHANGES, *_METHODS, *_PATHS)
"""Every case, by a name of its own."""
