"""The HTTP server of the control API.

What is bounded: a head has to come within `HEAD_S` and a body within `BODY_S`, a body has at most `BODY_BYTES`, an
answer has to be made within `ANSWER_S`, and at most `CONNECTIONS` connections are open at a time. Reading aiohttp's
server costs a third of a second: only `server.py` imports this, at the first connection.

Every answer is JSON but for measures, and none may be kept, framed or read by another site.
"""

import asyncio
import json
import logging
import socket
import ssl
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol, cast

from aiohttp import StreamReader, web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http_parser import RawRequestMessage
from aiohttp.web_protocol import RequestHandler

from .... import PlayheadError
from .access import Guard
from .caller import Caller, find_caller, require_own_user
from .error_body import ControlError
from .route import BODY_BYTES, JSON, Answer, Call, ProxyState, Route, Text, find_route

logger = logging.getLogger(__name__)

Answering = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]
"""Answers a request."""

HEAD_S = 10.0
BODY_S = 10.0
ANSWER_S = 60.0
KEPT_S = 15.0
"""How long a connection is kept that asks nothing."""
CONNECTIONS = 100
_CLOSE_S = 2.0


class Pages(Protocol):
    """What answers for pages."""

    def is_page(self, path: str) -> bool:
        """Say whether a path is a page's."""
        ...

    async def pass_on(self, request: web.BaseRequest) -> web.StreamResponse:
        """Have a request answered."""
        ...


_KEPT: dict[str, Any] = {
    "access_log": None,
    "auto_decompress": False,
    "keepalive_timeout": KEPT_S,
    "lingering_time": 1.0,
}
"""How aiohttp keeps a connection."""

_FIELDS = {
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}


class ControlHandler:
    """Answers requests by the table."""

    def __init__(
        self,
        proxy_state: ProxyState,
        guard: Guard,
        routes: tuple[Route, ...],
        pages: Pages | None = None,
    ) -> None:
        """Answer by `routes` to whoever the guard lets in.

        pages: answers what is asked of pages, which have a way of their own to let somebody in.
        """
        self._pages = pages
        self._house = proxy_state
        self._guard = guard
        self._routes = routes

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request."""
        try:
            path = request._message.path.partition("?")[0]
            if self._pages is not None and self._pages.is_page(path):
                await self._guard_link(request)
                return await self._pages.pass_on(request)
            async with asyncio.timeout(ANSWER_S):
                answer = await self._answer(request)
        except ControlError as error:
            return _response(Answer(error.to_json(), error.status), dict(error.headers))
        except TimeoutError:
            return _response(_problem(503, "it took too long; it may still be done"))
        except PlayheadError as error:
            logger.error("control: %s", error)
            return _response(_problem(503, str(error), error.hint))
        except Exception:
            logger.exception("control: %s %s failed", request.method, request.path)
            return _response(_problem(500, "an error of Playhead itself; its log says more"))
        return _response(answer)

    async def _guard_link(self, request: web.BaseRequest) -> None:
        """Look who opens a link, which the process of the pages cannot see."""
        if "token=" in request._message.path:
            await require_own_opener(request, self._guard)

    async def _answer(self, request: web.BaseRequest) -> Answer:
        fields = list(request.headers.items())
        target: str = (
            request._message.path
        )  # as it was sent: aiohttp's own is made whole and normal
        self._guard.check_place(target, fields)
        path = target.partition("?")[0]
        needed = next((route for route in self._routes if route.open and route.path == path), None)
        if needed is None or needed.method != request.method:
            self._guard.check_token(fields)
        route, parameters = find_route(self._routes, request.method, path)
        body: Mapping[str, Any] = {}
        if route.method == "POST":
            body = check_body(await read_json(request), route.body)
        return await route.handler(Call(self._house, parameters, body, lambda: _caller(request)))


async def read_json(request: web.BaseRequest) -> Any:
    """Read a JSON body; None where there is none.

    Raises: ControlError.
    """
    try:
        async with asyncio.timeout(BODY_S):
            data = await request.read()
    except TimeoutError:
        raise ControlError(400, "the body did not come in time", expected=f"{BODY_S:g} s") from None
    except web.HTTPRequestEntityTooLarge:
        raise ControlError(
            413, "the body is too long", expected=f"at most {BODY_BYTES} bytes", found="more"
        ) from None
    except ValueError as error:  # aiohttp's own words for chunks that cannot be read
        raise ControlError(400, "the body cannot be read", found=str(error)[:100]) from None
    if not data:
        return None
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    coding = request.headers.get("content-encoding", "identity").lower()
    if kind != JSON or coding != "identity":
        found = kind if coding == "identity" else f"{kind} in {coding}"
        raise ControlError(415, "the body is no JSON", expected=JSON, found=found[:100])
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        # Too deep, no UTF-8, a number of thousands of digits, or no JSON at all.
        text = str(error)[:100]
        raise ControlError(400, "the body is no JSON", expected=JSON, found=text) from None


async def require_own_opener(request: web.BaseRequest, guard: Guard) -> None:
    """Let nobody but ourselves open a link, unless something of ours stands before us.

    Raises: ControlError.
    """
    transport = request.transport
    if transport is None or guard.is_configured(request.headers.get("host", "")):
        return
    ends = (transport.get_extra_info(name) for name in ("peername", "sockname"))
    await asyncio.to_thread(require_own_user, *ends)


def check_body(value: Any, fields: Mapping[str, Text]) -> Mapping[str, Any]:
    """Give a body's fields; none where there is no body.

    Raises: ControlError.
    """
    needed = [name for name, field in fields.items() if field.is_needed]
    if value is None and not needed:
        return {}
    if not isinstance(value, dict):
        raise _unfit("an object", type(value).__name__)
    for name, given in value.items():
        field = fields.get(name)
        if field is None:
            raise _unfit(f"only {', '.join(fields) or 'an empty object'}", repr(name)[:100])
        if not field.fits(given):
            expected = f"{name}: {field.kind}, of at most {field.most} characters"
            if field.words:
                expected = f"{name}: {' or '.join(field.words)}"
            raise _unfit(expected, repr(given)[:100])
    for name in needed:
        if name not in value:
            raise _unfit(f"{name}: {fields[name].kind}", "none")
    return value


def _unfit(expected: str, found: str) -> ControlError:
    found = found.encode("ascii", "backslashreplace").decode()
    return ControlError(422, "the body says something else", expected=expected, found=found)


def _problem(status: int, error: str, hint: str = "") -> Answer:
    return Answer(ControlError(status, error, hint=hint).to_json(), status)


def _response(answer: Answer, more: Mapping[str, str] | None = None) -> web.Response:
    text = json.dumps(answer.body) + "\n" if answer.kind == JSON else str(answer.body)
    return web.Response(
        body=text.encode(),
        status=answer.status,
        headers={**_FIELDS, "content-type": answer.kind, **answer.headers, **(more or {})},
    )


async def _caller(request: web.BaseRequest) -> Caller:
    transport = request.transport
    peer = transport.get_extra_info("peername") if transport is not None else None
    local = transport.get_extra_info("sockname") if transport is not None else None
    if peer is None or local is None:
        return Caller("somebody who has left", 0)
    return await asyncio.to_thread(find_caller, (peer[0], peer[1]), (local[0], local[1]))


class _Refused(asyncio.Protocol):
    """One connection too many."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport.close()


class _Connection(RequestHandler):
    """aiohttp's connection, which by itself repeats what it cannot read: to whoever sent it, and in the log."""

    __slots__ = ()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Answer what is no HTTP, or is none any more, and end the connection."""
        # Neither its bytes nor aiohttp's words, which quote them: the token may stand in them.
        what = type(exc).__name__ if exc is not None else "an error"
        logger.log(
            logging.INFO if status < 500 else logging.ERROR,
            "control: a request from %s ended in %s",
            request.remote,
            what,
        )
        if request.writer.output_size > 0:
            raise ConnectionError("an answer has begun already")
        error = "this is not HTTP as it should be" if status < 500 else "it could not be answered"
        answer = _response(_problem(status, error))
        answer.force_close()
        return answer


class _Server(web.Server):
    """aiohttp's server, which by itself waits for ever for a head."""

    def __init__(self, handler: Answering) -> None:
        super().__init__(handler, request_factory=self._make_request)
        self._silent: set[RequestHandler] = set()
        """Connections that have asked nothing yet."""
        self._open: dict[RequestHandler, None] = {}
        """All connections, in the order in which they were opened or last asked something."""

    def __call__(self) -> Any:
        if len(self._open) >= CONNECTIONS and not self._end_idle():
            return _Refused()
        made = _Connection(self, loop=asyncio.get_running_loop(), **_KEPT)
        self._silent.add(made)
        self._open[made] = None
        asyncio.get_running_loop().call_later(HEAD_S, self._expect, made)
        return made

    def _end_idle(self) -> bool:
        """Close the connection that has asked nothing for longest; False where all are being answered."""
        for protocol in self._open:
            if protocol._current_request is None:
                self._forget(protocol)
                protocol.force_close()
                return True
        return False

    def connection_lost(self, handler: RequestHandler, exc: BaseException | None = None) -> None:
        """Forget a connection that has ended."""
        self._forget(handler)
        super().connection_lost(handler, exc)

    def _forget(self, protocol: RequestHandler) -> None:
        self._silent.discard(protocol)
        self._open.pop(protocol, None)

    def _expect(self, protocol: RequestHandler) -> None:
        if protocol in self._silent:
            self._forget(protocol)
            protocol.force_close()

    def _make_request(
        self,
        message: RawRequestMessage,
        payload: StreamReader,
        protocol: RequestHandler,
        writer: AbstractStreamWriter,
        task: "asyncio.Task[None]",
    ) -> web.BaseRequest:
        self._silent.discard(protocol)
        if self._open.pop(protocol, self) is None:
            self._open[protocol] = None
        loop = asyncio.get_running_loop()
        return web.BaseRequest(
            message, payload, protocol, writer, task, loop, client_max_size=BODY_BYTES
        )


class _Handshakes:
    """TLS on connections that have just been taken: few at a time, and not for long; the oldest gives way to a new one.

    asyncio's own TLS has no bound: a client that never speaks keeps its connection for a minute, and none counts until
    it has shaken hands.
    """

    def __init__(self, server: _Server, context: ssl.SSLContext) -> None:
        self._server = server
        self._context = context
        self._open: dict[asyncio.Task[None], asyncio.Transport] = {}

    def __call__(self) -> asyncio.Protocol:
        return _Handshake(self)

    def begin(self, transport: asyncio.Transport) -> None:
        """Shake hands on a connection."""
        transport.pause_reading()  # what came already is for TLS
        if len(self._open) >= CONNECTIONS:
            oldest = next(iter(self._open))
            self._open.pop(oldest).abort()
            oldest.cancel()
        task = asyncio.get_running_loop().create_task(self._shake(transport))
        self._open[task] = transport
        task.add_done_callback(lambda done: self._open.pop(done, None))

    async def _shake(self, transport: asyncio.Transport) -> None:
        early = _Early()
        try:
            secured = await asyncio.get_running_loop().start_tls(
                transport, early, self._context, server_side=True, ssl_handshake_timeout=HEAD_S
            )
        except OSError:  # ssl's errors are OSErrors, too
            transport.abort()
            return
        if secured is None or early.is_lost:
            return
        protocol = self._server()
        secured.set_protocol(protocol)
        protocol.connection_made(secured)
        for data in early.data:
            protocol.data_received(data)


class _Early(asyncio.Protocol):
    """Keeps what comes right behind a handshake, before anything else of ours runs."""

    def __init__(self) -> None:
        self.data: list[bytes] = []
        self.is_lost = False

    def data_received(self, data: bytes) -> None:
        self.data.append(data)

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self.is_lost = True


class _Handshake(asyncio.Protocol):
    """A connection until TLS takes it over."""

    def __init__(self, handshakes: _Handshakes) -> None:
        self._handshakes = handshakes

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # Not each loop's transport is one by its type.
        self._handshakes.begin(cast("asyncio.Transport", transport))


class _Site(web.BaseSite):
    """A socket that listens, and TLS on what it accepts."""

    def __init__(self, runner: web.ServerRunner, ready: socket.socket, made: _Handshakes) -> None:
        super().__init__(runner)
        self._ready = ready
        self._made = made

    @property
    def name(self) -> str:
        """The address."""
        return str(self._ready.getsockname())

    async def start(self) -> None:
        """Accept connections."""
        await super().start()
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(self._made, sock=self._ready, backlog=1024)


async def serve_on(
    listening: Sequence[socket.socket], handler: Answering, context: ssl.SSLContext | None
) -> web.ServerRunner:
    """Serve on sockets that listen; `cleanup` of what is given ends it."""
    server = _Server(handler)
    runner = web.ServerRunner(server, handle_signals=False, shutdown_timeout=_CLOSE_S)
    await runner.setup()
    for ready in listening:
        if context is None:
            await web.SockSite(runner, ready, backlog=1024).start()
        else:
            await _Site(runner, ready, _Handshakes(server, context)).start()
    return runner
