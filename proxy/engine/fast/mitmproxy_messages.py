"""Fast paths for what mitmproxy does many times per request, with the same results.

1. `MessageData.__post_init__` checks the type of every field of every message. Ours are made from parsed bytes
   or by `addons/wire/convert_http_messages.py`, which is type-checked before it runs; there are no addons but ours. 10 % and more.
2. `Context.fork` makes an upstream connection, with an id from the system's randomness, and throws it away. 2.2 %.
3. `Headers` looks a name up by lower-casing every name through two Python calls, and is made as a mapping that is
   updated, where its fields are all there is. 3.1 %.
4. `expected_http_body_size` asks a message for its fields one by one, five times a request. 2.1 %.
5. `Layer.handle_event` asks at each command whether it is to be logged, and drives generators by calls; a loop over
   one is run without. 1.8 %, and `http_command_dispatch.py` is built on it.

The figures are what a short model call that is recorded (2 KB each way, TLS, two connections) takes more without each: instructions
of the process as callgrind counts them, against 6.0 million with all; equal runs differ by 0.5 %. `benchmarks/run.py patches`
measures the CPU.

Replaces by name: all of these. Checked against 12.2.3. Test: tests/proxy/engine/fast/test_mitmproxy_messages.py, which compares
each with its fast path.
"""

import itertools
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from mitmproxy import http
from mitmproxy.net.http import http1
from mitmproxy.proxy import commands, context, events, layer

_LENGTH = b"content-length"
_CODING = b"transfer-encoding"
_LENGTHS = frozenset((len(_LENGTH), len(_CODING)))
_stock_body_size = http1.expected_http_body_size
_stock_headers = http.Headers.__init__

Commands = Any
"""A generator of mitmproxy commands."""


def skip_type_checks(_: http.MessageData) -> None:
    """Do nothing where every field's type was checked."""


def fork(self: context.Context) -> context.Context:
    """Give a copy with a layer stack of its own."""
    copy = object.__new__(context.Context)
    copy.client = self.client
    copy.options = self.options
    copy.server = self.server
    copy.layers = self.layers.copy()
    return copy


def init_headers(self: http.Headers, fields: Any = (), **headers: Any) -> None:
    """Take header fields."""
    if headers or type(fields) not in (list, tuple):
        _stock_headers(self, fields, **headers)
        return
    for field in fields:
        plain = type(field) is tuple and len(field) == 2
        if not plain or type(field[0]) is not bytes or type(field[1]) is not bytes:
            _stock_headers(self, fields)
            return
    self.fields = tuple(fields)


def get_all(self: http.Headers, name: str | bytes) -> list[str]:
    """Give all values of a header field, in order; the name in any case."""
    wanted = _lower(name)
    size = len(wanted)
    return [
        value.decode("utf-8", "surrogateescape")
        for key, value in self.fields
        if len(key) == size and key.lower() == wanted
    ]


def get(self: http.Headers, name: str | bytes, default: str | None = None) -> str | None:
    """Give a header field's values folded into one, or the default."""
    values = get_all(self, name)
    return ", ".join(values) if values else default


def contains(self: http.Headers, name: object) -> bool:
    """Say whether there is such a header field."""
    if not isinstance(name, str | bytes):
        return False
    wanted = _lower(name)
    return any(key.lower() == wanted for key, _ in self.fields)


def _lower(name: str | bytes) -> bytes:
    return _encoded(name) if isinstance(name, str) else name.lower()


@lru_cache(maxsize=1024)
def _encoded(name: str) -> bytes:
    return name.encode("utf-8", "surrogateescape").lower()


def body_size(request: http.Request, response: http.Response | None = None) -> int | None:
    """Give the length of a body: None where it is in chunks, -1 where it lasts until the connection ends.

    Raises: ValueError, where the head says nothing that can be relied on.
    """
    if response is not None:
        status = response.data.status_code
        bare = status < 200 or status in (204, 304)
        if bare or request.data.method.upper() in (b"HEAD", b"CONNECT"):
            return _stock_body_size(request, response)
    said = None
    for name, value in (response or request).data.headers.fields:
        if len(name) in _LENGTHS:
            lower = name.lower()
            if lower == _CODING or (lower == _LENGTH and said is not None):
                return _stock_body_size(request, response)
            if lower == _LENGTH:
                said = value
    if said is None:
        return 0 if response is None else -1
    plain = said.isdigit() and (said[:1] != b"0" or said == b"0")
    return int(said) if plain else _stock_body_size(request, response)


def handle_event(self: layer.Layer, event: events.Event) -> Commands:
    """Handle an event, or keep it until the reply has come that the layer waits for."""
    if self._paused is None:
        generator = self._handle_event(event)
        return _until_waiting(self, generator, generator)
    return while_waiting(self, event)


def wait_for(self: layer.Layer, command: commands.Command, generator: Commands) -> None:
    """Have a layer wait for the reply to a command of its; the layers around it do not."""
    command.blocking = self
    self._paused = layer.Paused(command, generator)


def while_waiting(self: layer.Layer, event: events.Event) -> Commands:
    """Go on with a layer if this is the reply that it waits for, and with what came meanwhile; else keep the event."""
    paused = self._paused
    assert paused is not None
    if not isinstance(event, events.CommandCompleted) or event.command is not paused.command:
        self._paused_event_queue.append(event)
        return
    self._paused = None
    generator = paused.generator
    try:
        first = generator.send(event.reply)
    except StopIteration:
        pass
    else:
        yield from _until_waiting(self, itertools.chain((first,), generator), generator)
    while self._paused is None and self._paused_event_queue:
        generator = self._handle_event(self._paused_event_queue.popleft())
        yield from _until_waiting(self, generator, generator)


def _until_waiting(
    self: layer.Layer, asked: Iterable[commands.Command], generator: Commands
) -> Commands:
    """Give what a layer asks for, up to what it has to wait for.

    asked: what is left of the generator.
    """
    for command in asked:
        if command.blocking is True:
            wait_for(self, command, generator)
            yield command
            return
        yield command


def install() -> None:
    """Put the fast paths in place, for the whole process."""
    fast_paths: tuple[tuple[type, str, object], ...] = (
        (http.MessageData, "__post_init__", skip_type_checks),
        (context.Context, "fork", fork),
        (http.Headers, "__init__", init_headers),
        (http.Headers, "get_all", get_all),
        (http.Headers, "get", get),
        (http.Headers, "__contains__", contains),
        (layer.Layer, "handle_event", handle_event),
    )
    http1.expected_http_body_size = body_size
    for owner, name, fast_path in fast_paths:
        setattr(owner, name, fast_path)
