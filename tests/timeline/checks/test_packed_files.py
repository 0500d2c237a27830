"""What is inside of compressed files that are bodies."""

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from playhead.store import Store
from playhead.tape.exchange import Request
from playhead.tape.redaction.redactor import Redactor
from playhead.tests.support.exchanges import make_response
from playhead.tests.support.recordings import record_run
from playhead.timeline.checks.packed_files import list_packed
from playhead.timeline.checks.secrets import find_secrets

SECRET = b"ghp_" + b"kT5dv7Qm2pZ9xAb3LrfW0yC1uN8hGs4jB6eX"
TEXT = b"# deploy\nTOKEN_LINE: " + SECRET + b"\n" + b"x = 1\n" * 50


def _zip(content: bytes = TEXT, name: str = "deploy.txt") -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, content)
    return made.getvalue()


def _tar() -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        info = tarfile.TarInfo("deploy.txt")
        info.size = len(TEXT)
        archive.addfile(info, io.BytesIO(TEXT))
    return made.getvalue()


def _number(kind: int, size: int) -> bytes:
    first, rest = kind << 4 | size & 15, size >> 4
    made = bytearray()
    while rest:
        made.append(first | 128)
        first, rest = rest & 127, rest >> 7
    return bytes([*made, first])


def _pack() -> bytes:
    objects = [(3, b"", b"nothing"), (7, b"n" * 20, b"a change"), (3, b"", TEXT)]
    packed = (_number(kind, len(data)) + name + zlib.compress(data) for kind, name, data in objects)
    return b"PACK\0\0\0\2\0\0\0\3" + b"".join(packed) + b"s" * 20


def _lines(size: int = 50) -> bytes:
    pack = _pack()
    parts = [b"\1" + pack[at : at + size] for at in range(0, len(pack), size)]
    lines = (b"%04x" % (len(one) + 4) + one for one in (b"NAK\n", b"\2Counting\n", *parts))
    return b"".join(lines) + b"0000"


@pytest.mark.parametrize(
    ("body", "name"),
    [
        (_zip(), "zip:deploy.txt"),
        (gzip.compress(TEXT), "gzip"),
        (gzip.compress(_tar()), "gzip tar:deploy.txt"),
        (bz2.compress(TEXT), "bzip2"),
        (lzma.compress(TEXT), "xz"),
        (_zip(_zip()), "zip:deploy.txt zip:deploy.txt"),
        (_pack(), "pack:2"),
        (_lines(), "pack:2"),
    ],
)
def test_a_secret_in_a_compressed_file_is_named(tmp_path: Path, body: bytes, name: str) -> None:
    """By the file in which it is; it stays on the tape, since the file would not open any more."""
    answer = make_response(body)
    assert Redactor(b"k").response(answer)[0].body == body
    with Store.open(tmp_path / "store") as store:
        asked = Request("GET", "https", "api.test", 443, "/", "HTTP/1.1", ())
        run = record_run(store, "leaky", [(asked, answer)])
        found = list(find_secrets(store, [run], lambda: Redactor(b"k"), lambda _text: set()))
    assert [(one.seq, one.place, one.kind) for one in found] == [(1, f"response.body {name}", "secret")]  # fmt: skip


@pytest.mark.parametrize("make", [_zip, _pack, _lines, lambda: gzip.compress(_tar())])
def test_a_file_that_was_cut_gives_what_is_there(make: Callable[[], bytes]) -> None:
    """It raises nothing."""
    body = make()
    for size in range(0, len(body), 9):
        list(list_packed(body[:size]))
        list(list_packed(body[:size] + b"\xff" * 9 + body[size + 9 :]))


def test_what_is_unpacked_is_bounded() -> None:
    """A small file may have very much in it."""
    body = _zip(bytes(40 * 1024 * 1024))
    assert sum(len(one.data) for one in list_packed(gzip.compress(body * 2))) <= 16 * 1024 * 1024


def test_a_name_with_a_secret_is_not_said(tmp_path: Path) -> None:
    """Its placeholder is."""
    with Store.open(tmp_path / "store") as store:
        asked = Request("GET", "https", "api.test", 443, "/", "HTTP/1.1", ())
        body = _zip(TEXT.replace(b"ghp_", b"gho_"), f"{SECRET.decode()}.txt")
        run = record_run(store, "leaky", [(asked, make_response(body))])
        found = list(find_secrets(store, [run], lambda: Redactor(b"k"), lambda _text: set()))
    assert len([one for one in found if "zip:" in one.place]) == 1
    assert SECRET.decode() not in str(found)
