"""Which recorded request a person would say was meant, as a table of tapes."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from playhead.tape.diff.nearest import Endpoints, nearest
from playhead.tape.exchange import Request, Seq
from playhead.tests.support.exchanges import make_request

S3 = [
    ("PUT /s3/b/src", b"0123456789" * 20, ["x-amz-acl"]),
    ("PUT /s3/b/src2", b"B" * 100, ["if-none-match"]),
    ("POST /s3/b/mp?uploads", b"", ["x-amz-acl"]),
    ("PUT /s3/b/mp?partNumber=1&uploadId=upl0000abcdefghijklm", b"P1" * 3000, []),
    ("PUT /s3/b/mp?partNumber=2&uploadId=upl0000abcdefghijklm", b"P2" * 3000, []),
    ("PUT /s3/b/mp?partNumber=4&uploadId=upl0000abcdefghijklm", b"", ["x-amz-copy-source"]),
    ("POST /s3/b/mp?uploadId=upl0000abcdefghijklm", b"<Complete/>", []),
    ("PUT /s3/b/dst", b"", ["x-amz-copy-source", "x-amz-acl"]),
    ("GET /s3/b/src", b"", ["range"]),
    ("HEAD /s3/b/src2", b"", ["if-none-match"]),
    ("GET /s3/b/src2", b"", ["if-modified-since"]),
    ("PUT /s3/b/src?acl", b"", ["x-amz-acl"]),
    ("POST /s3/b?delete", b"<Delete/>", []),
    ("DELETE /s3/b/x?versionId=v1", b"", []),
]
TEXTS = (b"ok-S", b"err-S", b"pause-S", b"slow-S", b"long-S")
GRPC = [("POST /f.Svc/S", b"\0\0\0\0" + bytes([len(text)]) + text, ["te"]) for text in TEXTS]
PROTOBUF = [
    ("POST /f.Svc/S", b"\0\0\0\0" + bytes([len(text) + 2, 10, len(text)]) + text, ["te"])
    for text in TEXTS
]
CHARGES: list[tuple[str, bytes, list[str]]] = [
    (f"POST /charge?{query}", b'{"order": "%d", "amount": %d}' % (number, number), [])
    for number, query in enumerate(
        ["m=ok", "d=0.1", "m=rst", "d=1.2", "m=cut", "d=2", "a=1", "a=2", "a=3", "m=503", "d=9"]
    )
]
NAMES: list[tuple[str, bytes, list[str]]] = [
    ("GET /customers/anna/orders", b"", []),
    ("GET /customers/bert2/orders", b"", []),
    ("POST /customers/anna/orders", b"{}", []),
    ("GET /health", b"", []),
]


def ask(what: str, body: bytes, names: list[str]) -> Request:
    method, _, path = what.partition(" ")
    headers = tuple((name.encode(), b"1") for name in names)
    json = ((b"content-type", b"application/json"),) if body.startswith(b"{") else ()
    made = make_request(f"{method} https://api.test{path}", body)
    return replace(made, headers=(*made.headers, *headers, *json))


def search(tape: list[Request], asked: Request, limit: int = 32) -> Seq | None:
    """Look as a miss does: for candidates by their endpoints, and then at their content."""
    ends = Endpoints()
    for number, one in enumerate(tape, 1):
        ends.add(Seq(number), one.method, one.url.partition("?")[0], one.body_bytes)
    seqs = ends.candidates(asked, lambda _: False, limit)
    found = nearest(asked, [(seq, tape[seq - 1]) for seq in sorted(seqs)])
    return found[0] if found is not None else None


@pytest.mark.parametrize("repeated", [1, 4], ids=["small", "large"])
@pytest.mark.parametrize(
    ("tape", "what", "body", "names", "meant"),
    [
        # Only a key of S3 differs: in a segment with a digit, to which others have the same shape.
        (S3, "POST /s3/b/mp2?uploads", b"", ["x-amz-acl"], 3),
        (S3, "PUT /s3/b/dst2", b"", ["x-amz-copy-source", "x-amz-acl"], 8),
        (S3, "PUT /s3/b/mp9?partNumber=1&uploadId=upl0000abcdefghijklm", b"P1" * 3000, [], 4),
        (S3, "POST /s3/b/mq?uploadId=upl0000abcdefghijklm", b"<Complete/>", [], 7),
        (S3, "PUT /s3/b/src3", b"B" * 100, ["if-none-match"], 2),
        (S3, "DELETE /s3/b/x2?versionId=v1", b"", [], 14),
        (S3, "PUT /s3/b/src2?acl", b"", ["x-amz-acl"], 12),
        # A message of gRPC is longer by a byte.
        *((GRPC, "POST /f.Svc/S", b"\0\0\0\0" + bytes([len(text) + 1]) + text + b"Z", ["te"], number)
          for number, text in enumerate(TEXTS, 1)),
        *((PROTOBUF, "POST /f.Svc/S", b"\0\0\0\0" + bytes([len(text) + 3, 10, len(text) + 1]) + text + b"Z", ["te"], number)
          for number, text in enumerate(TEXTS, 1)),
        # A body of JSON shares no key with any: then the query says which is meant.
        (CHARGES, "POST /charge?m=503", b'{"z": "b1"}', [], 10),
        (CHARGES, "POST /charge?m=ok", b'{"z": "a1"}', [], 1),
        # The same path goes before another, whose query or body is the same.
        (CHARGES, "POST /charge?m=new", b'{"order": "3", "amount": 3}', [], 4),
        # A name in the middle of a path.
        (NAMES, "GET /customers/carla/orders", b"", [], 1),
        (NAMES, "GET /customers/carla3/orders", b"", [], 2),
    ],
)  # fmt: skip
def test_the_request_that_was_meant_is_the_nearest(
    tape: list[tuple[str, bytes, list[str]]],
    what: str,
    body: bytes,
    names: list[str],
    meant: int,
    repeated: int,
) -> None:
    """Of equals, the first; however long the tape."""
    requests = [ask(*one) for one in tape] * repeated
    assert search(requests, ask(what, body, names)) == meant


def test_what_differs_in_one_segment_is_found_on_a_long_tape() -> None:
    """Where more requests than are read have the shape of what is asked for."""
    tape = [ask(f"PUT /s3/b/part{number}", b"x", []) for number in range(200)]
    tape.insert(150, ask("POST /s3/b/mp?uploads", b"", []))
    assert search(tape, ask("POST /s3/b/mp2?uploads", b"", [])) == 151


def test_the_same_path_goes_before_another_id() -> None:
    """Whose body is the same by chance."""
    tape = [ask("PUT /things/8", b'{"amount": 7}', []), ask("PUT /things/7", b'{"amount": 5}', [])]
    assert search(tape, ask("PUT /things/7", b'{"amount": 7}', [])) == 2


def _upload(query: str, name: str, boundary: str) -> Request:
    """Upload a file with its metadata, as google-cloud-storage does."""
    part = f'--{boundary}\r\ncontent-type: application/json\r\n\r\n{{"name": "report {name}"}}\r\n'
    part += (
        f"--{boundary}\r\ncontent-type: text/plain\r\n\r\ncontent of {name}\r\n--{boundary}--\r\n"
    )
    request = make_request(f"POST https://api.test/upload?{query}", part.encode())
    kind = f"multipart/related; boundary={boundary}".encode()
    return replace(request, headers=(*request.headers, (b"content-type", kind)))


def _json(query: str, name: str, boundary: str) -> Request:
    return ask(f"POST /upload?{query}", b'{"name": "report %b"}' % name.encode(), [])


@pytest.mark.parametrize("made", [_upload, _json], ids=["multipart", "json"])
@pytest.mark.parametrize(
    ("query", "name", "place", "meant"),
    [
        ("u=m", "o2", 2, 2),
        ("u=m", "o2", 3, 3),
        ("u=m&g=p2", "o2", 3, 3),
        ("u=m&g=p2", "o2", 1, 3),
        ("u=m&g=9", "o2", 2, 2),
        ("u=m&g=9", "o2", 3, 3),
        ("u=m", "o3", 3, 1),
        ("u=m&g=p1", "o3", 1, 3),
        ("u=m&g=p1", "o1", 3, 1),
        ("u=m&g=p1&h=1&i=1", "o1", 1, 4),
    ],
)
def test_the_nearest_differs_in_the_fewest_places(
    made: Callable[[str, str, str], Request], query: str, name: str, place: int, meant: int
) -> None:
    """That with the same body is preferred, whatever its boundary; of equals, the one at its place."""
    tape = [("u=m", "o1"), ("u=m&g=0", "o2"), ("u=m&g=p1", "o2"), ("u=m&g=p1&h=1&i=1", "o4")]
    recorded = [(Seq(seq), made(*one, f"BBBB{seq}")) for seq, one in enumerate(tape, 1)]
    found = nearest(made(query, name, "CCCC"), recorded, Seq(place))
    assert found is not None
    assert found[0] == meant


def test_another_deed_is_not_near_for_its_body() -> None:
    """Some protocols name it in a header field."""

    def call(deed: bytes, table: bytes) -> Request:
        asked = ask("POST /", b'{"TableName": "%b"}' % table, [])
        return replace(asked, headers=(*asked.headers, (b"x-amz-target", deed)))

    tape = [(Seq(1), call(b"Get", b"t2")), (Seq(2), call(b"Delete", b"t1"))]
    found = nearest(call(b"Delete", b"t2"), tape)
    assert found is not None
    assert found[0] == 2
