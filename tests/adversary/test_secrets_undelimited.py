"""Secrets that no blank or sign is beside: strings of binary formats, credentials behind a scheme of any name or in quotes."""

import gzip
import json
import re
import struct
import zlib
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from random import Random
from urllib.parse import unquote_plus, urlencode

import brotli
import pytest
import zstandard

from playhead.config.parse_values import PERSONAL_KINDS
from playhead.config.schema import RedactRule
from playhead.tape.redaction.finding.format_table import FORMATS
from playhead.tape.redaction.finding.searched_text import is_boundary
from playhead.tape.redaction.redactor import Redactor
from playhead.tests.adversary.secret_recipes import expand, read
from playhead.tests.support.exchanges import make_request, make_response, raw_request, raw_response

KEY = "tk7Qm2Zp9xAb3Lr58fW0yC1vvKq4"


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


ENCODINGS: dict[str, Callable[[bytes], bytes]] = {
    "protobuf": lambda text: b"\x08\x01\x0a" + _varint(len(text)) + text + b"\x12\x02ok",
    "protobuf, a field whose tag is a digit": lambda text: (
        b"\x0a\x01a\x12" + _varint(len(text)) + text + b"2\x02ok"
    ),
    "gRPC": lambda text: struct.pack(">BI", 0, len(text) + 2) + b"\x0a" + _varint(len(text)) + text,
    "MessagePack": lambda text: (
        b"\x81\xa1k" + (b"\xd9%c" % len(text) if len(text) < 256 else b"\xda" + struct.pack(">H", len(text))) + text + b"\xc0"
    ),
    "CBOR": lambda text: (
        b"\xa1ak" + (bytes([0x60 + len(text)]) if len(text) < 24 else b"\x78%c" % len(text) if len(text) < 256 else b"\x79" + struct.pack(">H", len(text))) + text + b"ab"
    ),
    "Thrift": lambda text: b"\x0b\x00\x01" + struct.pack(">I", len(text)) + text + b"\x00",
    "Thrift, compact": lambda text: b"\x18" + _varint(len(text)) + text + b"\x00",
    "Avro": lambda text: b"\x02" + _varint(2 * len(text)) + text + b"\x04ab",
    "BSON": lambda text: b"\x02k\x00" + struct.pack("<I", len(text) + 1) + text + b"\x00\x00",
    "Pascal": lambda text: (b"%c" % len(text) if len(text) < 256 else struct.pack("<H", len(text))) + text + b"x",
}  # fmt: skip


@cache
def _values() -> list[tuple[str, str]]:
    """One value of each row of the table, of lengths whose byte is a letter or digit where the format allows any."""
    names = {row.name for row in FORMATS}
    found = []
    for case in read("formats")["cases"]:
        plain = (
            case.get("text", "{value}") == "{value}" and "wrap" not in case and "steps" not in case
        )
        if case["kind"] == "by format" and plain and case["id"] in names | {case["id"]}:
            found += [
                (made.name, made.values["value"])
                for made in expand(case)[:1]
                if "value" in made.values
            ]
    return found


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_no_secret_is_left_in_a_binary_body(encoding: str) -> None:
    """Its length is before it, and may read like a letter; what follows may, too."""
    write = ENCODINGS[encoding]
    left = []
    for name, value in _values():
        if "\n" in value or value not in Redactor(b"k").text(f" {value} ".encode()).decode():
            made = write(value.encode())
            if value.encode() in Redactor(b"k").text(made):
                left.append(name)
    assert left == []


FIELDS = [
    *(
        ("Authorization", f"{scheme} {{}}")
        for scheme in (
            *("DeepL-Auth-Key", "Client-ID", "JWT", "Zoho-oauthtoken", "Pinecone", "KakaoAK", "Ghost", "Recurly"),
            *("Snowflake", "Deepgram", "Token", "Bearer", "SSWS", "Splunk"),
        )
    ),
    ("Authorization", "Token token={}"),
    ("Authorization", 'Token token="{}"'),
    ("Authorization", 'Snowflake Token="{}"'),
    ("Authorization", 'OAuth realm="x", oauth_token="{}", oauth_signature="a"'),
    ("Authorization", "key={}"),
    ("Authorization", "ApiKey user:{}"),
    ("Authorization", "Discogs key=abc, secret={}"),
    ("Authorization", 'Bearer "{}"'),
    ("Authorization", "Bearer\t{}"),
    ("Authorization", "DeepL-Auth-Key {}:fx"),
    ("X-Api-Key", "Bearer {}"),
    ("X-Api-Key", '"{}"'),
    ("Cookie", 'session="{}"'),
    ("Proxy-Authorization", "Custom {}"),
    ("Fastly-Key", "{}"),
    ("X-Mashape-Key", "{}"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "value"), FIELDS)
def test_a_credential_is_known_by_itself(name: str, value: str) -> None:
    """Whatever its scheme, its parameters and its quotes are: an upstream that echoes it says it without them."""
    redactor = Redactor(b"k")
    fields = ((name.encode(), value.format(KEY).encode()),)
    kept, _ = redactor.request(raw_request(replace(make_request(), headers=fields)))
    assert KEY.encode() not in kept.headers[0][1]
    assert KEY not in redactor.redact_text(f"your key is {KEY}.")


def test_a_word_that_ends_in_a_prefix_is_none() -> None:
    """`desk-`, `task-` and the like, at the beginning of a line as well."""
    rng = Random(8)
    words = [
        "desk-lamp-shade-of-the-old-house",
        "ask-questions-first-and-then-answer",
        "risk-assessment-2026-final",
    ]
    text = "\n".join(rng.choice(words) for _ in range(1000))
    assert Redactor(b"k").redact_text(text) == text


def _cut_gzip(data: bytes) -> bytes:
    return gzip.compress(data)[:-8]


def _flushed(data: bytes) -> bytes:
    coder = zlib.compressobj(wbits=31)
    return coder.compress(data) + coder.flush(zlib.Z_SYNC_FLUSH)


PARTLY: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "gzip and more": ("gzip", lambda data: gzip.compress(data) + b"more"),
    "gzip, cut": ("gzip", lambda data: gzip.compress(data + b"x" * 5000)[:-12]),
    "gzip without its sum": ("gzip", _cut_gzip),
    "gzip, flushed": ("gzip", _flushed),
    "deflate, cut": ("deflate", lambda data: zlib.compress(data)[:-3]),
    "br, cut": ("br", lambda data: brotli.compress(data + bytes(range(256)))[:-3]),
    "zstd, cut": (
        "zstd",
        lambda data: zstandard.compress(data + Random(1).randbytes(300_000))[:-3],
    ),
}


@pytest.mark.parametrize("name", PARTLY)
def test_a_coding_that_is_undone_in_part_keeps_no_secret(name: str) -> None:
    """Clients read what there is: a request is left out, an answer keeps a coding that ends where it ended."""
    coding, code = PARTLY[name]
    secret = "ghp_" + "kT5dv7Qm2pZ9xAb3LrfW0yC1uN8hGs4jB6eX"
    body = code(json.dumps({"note": secret, "n": "y" * 500}).encode())
    fields = ((b"Content-Encoding", coding.encode()), (b"Content-Type", b"application/json"))
    redactor = Redactor(b"k")
    request = replace(make_request("POST https://a.test/"), headers=fields, body=body)
    kept, places = redactor.request(raw_request(request))
    assert kept.body == bytes(len(body))
    assert [one.place for one in places] == ["request.body.unsearched"]
    answer, places, _ = redactor.response(
        raw_response(replace(make_response(body), headers=fields))
    )
    assert secret.encode() not in answer.body
    assert b"y" * 100 in answer.body  # in blocks that are not compressed
    assert [one.place for one in places] == ["response.body"]
    assert answer.find_unsearched() is None
    harmless = code(b'{"note": "nothing"}' + b" " * 500)
    kept, places = redactor.request(raw_request(replace(request, body=harmless)))
    assert (kept.body, places) == (harmless, ())


ESCAPES = [
    *(
        "\\u201c",
        "\\u00a0",
        "\\u000a",
        "\\u2028",
        "\\ufeff",
        "\\ud83d\\udd11",
        "\\b",
        "\\f",
        "\\n",
        "\\\\u00e9",
    ),
    *("%0A", "%0a", "%0D%0A", "%09", "%20", "%C3%A9"),
    *("\x1b[32m", "\x1b[01;31m\x1b[K", "\\u001b[1m", "\\u001b[01;31m\\u001b[K"),
]


@pytest.mark.parametrize("escape", ESCAPES)
def test_a_secret_begins_behind_an_escape(escape: str) -> None:
    """Of JSON, of a URL, of a colour: its last letter or digit is none of the word."""
    left = []
    for name, value in _values():
        if "\n" in value or value in Redactor(b"k").redact_text(f" {value} "):
            continue
        if value in Redactor(b"k").redact_text(f"said{escape}{value}{escape} and more"):
            left.append(name)
    assert left == []


@pytest.mark.parametrize("escape", ["\\u0061", "%61"])
def test_an_escaped_letter_is_one_of_the_word(escape: str) -> None:
    """What it means decides."""
    assert not is_boundary(f"t{escape}sk-abc".encode(), 1 + len(escape))


@pytest.mark.parametrize(
    "text",
    [
        "use Bearer {}",
        "token: x, Authorization: Bearer {} and more",
        "curl -u bob:{} https://a.test/",
        "machine a.test login bob password {}",
    ],
)
def test_a_text_in_a_form_is_one(text: str) -> None:
    """Its blanks are written as `+`."""
    fields = ((b"Content-Type", b"application/x-www-form-urlencoded"),)
    body = urlencode({"To": "me", "Body": text.format(KEY)}).encode()
    request = replace(make_request("POST https://a.test/"), headers=fields, body=body)
    kept, _ = Redactor(b"k").request(raw_request(request))
    assert KEY.encode() not in kept.body
    assert len(kept.body) == len(body)


@pytest.mark.parametrize(
    "value", ["+49 30 84668267", "4242 4242 4242 4242", "DE89 3704 0044 0532 0130 00"]
)
def test_personal_data_with_blanks_in_a_form(value: str) -> None:
    """As anywhere else."""
    fields = ((b"Content-Type", b"application/x-www-form-urlencoded"),)
    body = urlencode({"f": value, "Body": f"call {value} today"}).encode()
    request = replace(make_request("POST https://a.test/"), headers=fields, body=body)
    kept, _ = Redactor(b"k", (RedactRule(pii=PERSONAL_KINDS),)).request(raw_request(request))
    digits = re.sub(r"\D", "", value)
    assert digits[4:] not in re.sub(r"\D", "", unquote_plus(kept.body.decode()))


@pytest.mark.parametrize("rest", ["/send", "+100", "%2Fkill", "/channels/42"])
def test_what_is_behind_a_token_in_a_path_stays(rest: str) -> None:
    """It says what is asked for."""
    token = "-".join(("xo" + "xb", "263594206564", "2635942065641", "kT5dv7Qm2pZ9xAb3LrfW0yC1"))
    kept = Redactor(b"k").redact_text(f"/p/{token}{rest}")
    assert kept.endswith(rest)
    assert token not in kept
