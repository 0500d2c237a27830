"""Build the bodies of secrets_places.yaml, as the chunks in which they are sent."""

import base64
import gzip
import json
import math
import zlib
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from .secret_draws import BadRecipe
from .secret_makers import compact
from .secret_texts import WRAPPINGS


def pieces(text: str, count: int) -> list[str]:
    """Cut a text into at most `count` pieces of nearly the same length, none of them empty."""
    size = max(1, math.ceil(len(text) / count))
    return [text[place : place + size] for place in range(0, len(text), size)]


def coded(body: bytes, coding: str) -> bytes:
    """Apply a content coding: gzip, br, zstd, deflate, raw-deflate or identity; several with commas.

    Raises: BadRecipe.
    """
    for one in coding.split(","):
        match one:
            case "identity":
                pass
            case "gzip":
                body = gzip.compress(body, mtime=0)
            case "deflate":
                body = zlib.compress(body)
            case "raw-deflate":
                packer = zlib.compressobj(wbits=-15)
                body = packer.compress(body) + packer.flush()
            case "br":
                import brotli

                body = bytes(brotli.compress(body))
            case "zstd":
                import zstandard

                body = zstandard.compress(body)
            case _:
                raise BadRecipe(f"no coding {one!r}")
    return body


def _varint(number: int) -> bytes:
    made = b""
    while number > 127:
        made, number = made + bytes([number & 127 | 128]), number >> 7
    return made + bytes([number])


def grpc_message(text: str) -> bytes:
    """Frame a protobuf message whose field 1 is the text."""
    message = b"\x0a" + _varint(len(text.encode())) + text.encode()
    return b"\0" + len(message).to_bytes(4) + message


def sse(events: Sequence[Any], name: str = "") -> bytes:
    """Write events whose data is JSON."""
    head = f"event: {name}\n" if name else ""
    return "".join(f"{head}data: {compact(event).decode()}\n\n" for event in events).encode()


def body(build: Mapping[str, Any], text: str) -> list[bytes]:
    """Build the body of a place, as the chunks in which it is sent; `build` is explained in secrets_places.yaml.

    Raises: BadRecipe.
    """
    match build:
        case {"json": value}:
            made = compact(_put(value, text))
        case {"json-spaced": value}:
            made = json.dumps(_put(value, text), indent=2).encode()
        case {"json-ascii": value}:
            escapes = json.dumps(text)
            unicode_escapes = '"' + WRAPPINGS["json-unicode"](text) + '"'
            made = compact(_put(value, text)).decode().replace(escapes, unicode_escapes).encode()
        case {"json-in-json": value}:
            made = compact({"arguments": compact(_put(value, text)).decode()})
        case {"form": pairs}:
            made = "&".join(
                f"{quote(a)}={quote(b.replace('{text}', text), safe='')}" for a, b in pairs
            ).encode()
        case {"multipart": parts}:
            made = b"".join(
                f'--cases\r\ncontent-disposition: form-data; name="{name}"'.encode()
                + (f'; filename="{file}"\r\ncontent-type: text/plain' if file else "").encode()
                + b"\r\n\r\n"
                + part.replace("{text}", text).encode()
                + b"\r\n"
                for name, file, part in parts
            )
            made += b"--cases--\r\n"
        case {"ndjson": values}:
            made = b"".join(compact(_put(value, text)) + b"\n" for value in values)
        case {"sse": value, "deltas": int(count)}:
            events = [_put(value, piece) for piece in pieces(text, count)]
            if "between" in build:
                events = [event for one in events for event in (one, build["between"])]
            made = sse(events, build.get("event", ""))
        case {"grpc": count}:
            made = b"".join(map(grpc_message, pieces(text, count)))
        case {"text": template}:
            made = template.replace("{text}", text).encode(build.get("encode", "utf-8"))
        case {"base64": template}:
            made = base64.b64encode(template.replace("{text}", text).encode())
        case {"xml": template}:
            made = template.replace("{text}", WRAPPINGS["html"](text)).encode()
        case _:
            raise BadRecipe(f"no body {build!r}")
    made = b"a" * int(build.get("before", 0)) + made
    members = pieces(made.decode("latin-1"), int(build.get("members", 1)))
    coding = str(build.get("coding", "identity"))
    made = b"".join(coded(member.encode("latin-1"), coding) for member in members)
    made = made[: len(made) - int(build.get("cut", 0))]
    size = build.get("chunk")
    return [made[place : place + size] for place in range(0, len(made), size)] if size else [made]


def _put(value: Any, text: str) -> Any:
    if isinstance(value, str):
        return value.replace("{text}", text)
    if isinstance(value, list):
        return [_put(one, text) for one in value]
    if isinstance(value, dict):
        return {name.replace("{text}", text): _put(one, text) for name, one in value.items()}
    return value
