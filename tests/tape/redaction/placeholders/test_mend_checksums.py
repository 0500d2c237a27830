"""A file with placeholders inside opens where it opened before."""

import gzip
import io
import struct
import zipfile
import zlib

import pytest

from playhead.tape.redaction.placeholders.mend_checksums import mend_checksums

SECRET, PLACEHOLDER = b"ghp_" + b"s" * 36, b"ghp_" + b"p" * 36
TEXT = b"# deploy\nTOKEN_LINE: " + SECRET + b"\n"


class _Pipe(io.RawIOBase):
    """What cannot be sought: zip then has the checksum behind the file."""

    def __init__(self) -> None:
        super().__init__()
        self.data = bytearray()

    def writable(self) -> bool:
        return True

    def write(self, data: object) -> int:
        self.data += bytes(data)  # type: ignore[call-overload]
        return len(bytes(data))  # type: ignore[call-overload]


def _zip(method: int = zipfile.ZIP_STORED, level: int | None = None) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", method, compresslevel=level) as archive:
        archive.writestr("other.txt", b"nothing")
        archive.writestr("deploy.txt", TEXT)
        archive.writestr("again.txt", TEXT)
    return made.getvalue()


def _zip_of_pipe() -> bytes:
    pipe = _Pipe()
    with zipfile.ZipFile(pipe, "w") as archive:
        archive.writestr("deploy.txt", TEXT)
    return bytes(pipe.data)


def _open_zip(data: bytes) -> bytes:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert archive.testzip() is None
        return archive.read("deploy.txt")


def _zip_of(body: bytes, before: bytes = b"") -> bytes:
    made = io.BytesIO(before)
    with zipfile.ZipFile(made, "a") as archive:
        archive.writestr("inner", body)
    return made.getvalue()


def _open_inner(data: bytes) -> bytes:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert archive.testzip() is None
        return archive.read("inner")


def _png() -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))  # fmt: skip

    return b"\x89PNG\r\n\x1a\n" + chunk(b"tEXt", b"a\0" + TEXT) + chunk(b"IEND", b"")


def _open_png(data: bytes) -> bytes:
    size = int.from_bytes(data[8:12])
    text = data[12 : 16 + size]
    assert zlib.crc32(text).to_bytes(4) == data[16 + size : 20 + size]
    assert data.endswith(b"IEND\xaeB`\x82")
    return text[6:]


def _frames() -> bytes:
    prelude = struct.pack(">II", 16 + len(TEXT), 0)
    frame = prelude + struct.pack(">I", zlib.crc32(prelude)) + TEXT
    return (frame + struct.pack(">I", zlib.crc32(frame))) * 2


def _open_frames(data: bytes) -> bytes:
    half = len(data) // 2
    for frame in (data[:half], data[half:]):
        assert zlib.crc32(frame[:-4]).to_bytes(4) == frame[-4:]
    return data[12 : half - 4]


@pytest.mark.parametrize(
    ("body", "read"),
    [
        pytest.param(_zip(), _open_zip, id="zip, stored"),
        pytest.param(_zip(zipfile.ZIP_DEFLATED, 0), _open_zip, id="zip, deflated in stored blocks"),
        pytest.param(_zip_of_pipe(), _open_zip, id="zip, written to a pipe"),
        pytest.param(gzip.compress(TEXT, 0, mtime=0), gzip.decompress, id="gzip in stored blocks"),
        pytest.param(
            gzip.compress(b"") + gzip.compress(b"a" * 200_000) + gzip.compress(TEXT, 0),
            lambda data: gzip.decompress(data)[200_000:],
            id="gzip of several members",
        ),
        pytest.param(_zip_of(TEXT, b"#!/usr/bin/env python3\n"), _open_inner, id="zipapp"),
        pytest.param(
            _zip_of(_zip_of(_zip())),
            lambda data: _open_zip(_open_inner(_open_inner(data))),
            id="zip in zip in zip",
        ),
        pytest.param(
            _zip_of(_zip(), b"MZ"), lambda data: _open_zip(_open_inner(data)), id="zip in zipapp"
        ),
        pytest.param(
            _zip_of(gzip.compress(TEXT, 0)),
            lambda data: gzip.decompress(_open_inner(data)),
            id="gzip in zip",
        ),
        pytest.param(_png(), _open_png, id="png"),
        pytest.param(_frames(), _open_frames, id="event stream"),
    ],
)
def test_a_file_opens_with_its_placeholders(body: bytes, read) -> None:  # type: ignore[no-untyped-def]
    """Its checksums are those of what is in it."""
    replaced = body.replace(SECRET, PLACEHOLDER)
    assert replaced != body
    mended = mend_checksums(body, replaced)
    assert len(mended) == len(body)
    assert read(mended) == TEXT.replace(SECRET, PLACEHOLDER)


def test_what_was_cut_or_damaged_stays() -> None:
    """A client fails where it failed."""
    for body in (_zip(), gzip.compress(TEXT, 0, mtime=0)):
        for size in range(0, len(body) - 4, 7):
            replaced = body[:size].replace(b"s", b"p")
            assert mend_checksums(body[:size], replaced) == replaced
    for body in (_png(), _frames()):
        for size in range(0, len(body), 7):
            mend_checksums(body[:size], body[:size].replace(b"s", b"p"))
    damaged = bytearray(_png())
    damaged[40] ^= 1
    replaced = bytes(damaged).replace(b"ssss", b"pppp")
    assert mend_checksums(bytes(damaged), replaced) == replaced
