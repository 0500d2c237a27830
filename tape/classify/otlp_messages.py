"""Say whether bytes are an export of OpenTelemetry in Protocol Buffers, by the members of its outer messages.

Source: opentelemetry-proto 1.3, `ResourceSpans`, `ResourceMetrics`, `ResourceLogs` and what is in them.
"""

from collections.abc import Iterator

_VARINT, _BYTES = 0, 2
_SKIPPED = {1: 8, 5: 4}
_RESOURCE = {1: _BYTES, 2: _VARINT, 3: _BYTES}
_OUTER = {1: _BYTES, 2: _BYTES, 3: _BYTES}
_ATTRIBUTE = {1: _BYTES, 2: _BYTES}
_TRACE_ID = 16


def is_export(body: bytes, signal: str) -> bool:
    """Say whether a body is an export of `traces`, `metrics` or `logs`.

    Raises: ValueError where it is no message, or has a member that the protocol does not have.
    """
    items = [value for _, value in _read(body, {1: _BYTES})]
    for item in items:
        for number, value in _read(item, _OUTER):
            if number == 1:
                _check_resource(value)
            elif number == 2:
                _check_scope(value, signal)
            else:
                value.decode()
    return bool(items) and all(items)


def _check_resource(message: bytes) -> None:
    for number, value in _read(message, _RESOURCE):
        if number == 1:
            list(_read(value, _ATTRIBUTE))


def _check_scope(message: bytes, signal: str) -> None:
    for number, value in _read(message, _OUTER):
        if number == 3:
            value.decode()
        elif number == 2:
            first = [part for field, part in _read(value) if field == 1]
            if signal == "traces" and [len(one) for one in first] != [_TRACE_ID]:
                raise ValueError("a span without a trace id")
            if signal == "metrics" and not any(first):
                raise ValueError("a metric without a name")


def _read(message: bytes, known: dict[int, int] | None = None) -> Iterator[tuple[int, bytes]]:
    """Give each member's number and bytes; of a number, none."""
    at = 0
    while at < len(message):
        tag, at = _varint(message, at)
        number, kind = tag >> 3, tag & 7
        if not number or (known is not None and known.get(number) != kind):
            raise ValueError("a member that the protocol does not have")
        start = at
        if kind == _VARINT:
            _, at = _varint(message, at)
            start = at
        elif kind == _BYTES:
            size, start = _varint(message, at)
            at = start + size
        elif kind in _SKIPPED:
            at += _SKIPPED[kind]
        else:
            raise ValueError("no kind of a member")
        if at > len(message):
            raise ValueError("a member that is cut off")
        yield number, message[start:at]


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(message):
            break
        byte = message[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
    raise ValueError("a number that is cut off")
