"""A WSGI application as it is, and as an ASGI one for `AsgiOrigin`.

hypercorn's own wrapper sends no head where the application has no body.
"""

import asyncio
import contextlib
import io
import sys
import threading
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import unquote


@contextlib.contextmanager
def serving(app: Any) -> Iterator[int]:
    """Serve a WSGI application over plain HTTP/1.1 by werkzeug; give its port."""
    from werkzeug.serving import WSGIRequestHandler, make_server

    class Http11(WSGIRequestHandler):
        """Speaks HTTP/1.1 and says nothing about it."""

        protocol_version = "HTTP/1.1"

        def log(self, *_: object) -> None:
            pass

    server = make_server("127.0.0.1", 0, app, threaded=True, request_handler=Http11)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server.port
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)


def over_asgi(app: Any) -> Any:
    """Serve a WSGI application, each request on a thread."""

    async def serve(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        body = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        loop = asyncio.get_running_loop()

        def hand_over(message: dict[str, Any]) -> None:
            asyncio.run_coroutine_threadsafe(send(message), loop).result(30)

        await asyncio.to_thread(_run, app, _environ(scope, body), hand_over)

    return serve


def _run(app: Any, environ: dict[str, Any], send: Any) -> None:
    started: list[tuple[str, list[tuple[str, str]]]] = []

    def start(status: str, headers: list[tuple[str, str]], _: Any = None) -> None:
        started.append((status, headers))

    body: Iterable[bytes] = app(environ, start)
    (status, headers) = started[0]
    fields = [(name.lower().encode(), value.encode("latin-1")) for name, value in headers]
    send({"type": "http.response.start", "status": int(status[:3]), "headers": fields})
    for piece in body:
        if piece:
            send({"type": "http.response.body", "body": piece, "more_body": True})
    send({"type": "http.response.body", "body": b"", "more_body": False})
    getattr(body, "close", lambda: None)()


def _environ(scope: Any, body: bytes) -> dict[str, Any]:
    headers: dict[str, str] = {}
    for name, value in scope["headers"]:
        key = name.decode().upper().replace("-", "_")
        key = key if key in ("CONTENT_TYPE", "CONTENT_LENGTH") else f"HTTP_{key}"
        text = value.decode("latin-1")
        headers[key] = f"{headers[key]},{text}" if key in headers else text
    raw = scope.get("raw_path") or scope["path"].encode()
    return {
        "REQUEST_METHOD": scope["method"],
        "SCRIPT_NAME": "",
        "PATH_INFO": unquote(raw.decode("latin-1"), "latin-1"),
        "QUERY_STRING": scope["query_string"].decode("latin-1"),
        "SERVER_NAME": "127.0.0.1",
        "SERVER_PORT": "443",
        "SERVER_PROTOCOL": f"HTTP/{scope['http_version']}",
        "REMOTE_ADDR": "127.0.0.1",
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": scope["scheme"],
        "wsgi.input": io.BytesIO(body),
        "wsgi.input_terminated": True,
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
        **headers,
    }
