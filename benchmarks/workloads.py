"""What is asked and what is answered: the same bytes for the client, the provider and the tapes.

1. Request number `n` of a workload is always the same bytes, and no two numbers give the same.
2. Every body begins `{"id":"TOKEN"`, where TOKEN is the number in twelve digits; an answer carries the
   token of its request at the same place, so that a client can tell a wrong answer from a right one.
3. Text is made of words with Zipf frequencies from a fixed seed; it packs about as badly as the text of
   the reference measurements did (zstd -3: 2.6 times), real prompts pack better.
"""

import hashlib
import itertools
import random
from dataclasses import dataclass
from functools import cache

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

HOST = "localhost"
"""Name of the fake provider: agents send a server name, so a benchmark does too."""
TOKEN_AT = 7
TOKEN_BYTES = 12
STEPS = 30
"""Calls of one conversation; its prompt grows by a message with each."""
SLOW_S = 0.3
SSE_EVENTS = 200
SSE_GAP_S = 0.005
BLOB_BYTES = 5_000_000
SLOW_BYTES_S = 20_000_000
"""Bytes a second that a slow end takes of a large body."""

KEY = b"sk-bench-0123456789abcdef0123456789abcdef"
"""The credential of all requests."""

_PIECES = 2048
_PIECE_BYTES = 1950
_ANSWERS = 64


@dataclass(frozen=True, slots=True)
class Workload:
    """One kind of request."""

    name: str
    target: str
    in_kb: int
    """About how large a request's body is, in KB; 61 stands for a prompt that grows from 32 to 90."""
    out_kb: int


CHAT = "/v1/chat/completions"
WORKLOADS = {
    work.name: work
    for work in (
        # A plain POST is an effect to Playhead: its intent is made durable before it is forwarded.
        Workload("small", "/v1/tools/call", 2, 2),
        # The same bytes as a model call, which needs no intent.
        Workload("small-chat", f"{CHAT}?as=small", 2, 2),
        Workload("llm", f"{CHAT}?as=llm", 61, 4),
        Workload("llm-out", f"{CHAT}?as=llm-out", 2, 60),
        Workload("sse", f"{CHAT}?as=sse", 2, 0),
        # As `llm`, answered after 300 ms.
        Workload("slow", f"{CHAT}?as=slow", 61, 4),
        Workload("blob", "/v1/files/blob", 2, 5000),
    )
}


def token(number: int) -> bytes:
    """Give the token of a request number, 0 to 10^12 - 1."""
    return b"%012d" % number


def body(work: Workload, number: int) -> bytes:
    """Give the body of a request."""
    pieces = _pieces()
    if work.in_kb > 2:
        talk, step = divmod(number, STEPS)
        first = talk * 45 % _PIECES
        messages = b",".join(pieces[first : first + 16 + step])
    else:
        messages = pieces[number % _PIECES]
    return b'{"id":"%b","model":"bench-1","messages":[%b]}' % (token(number), messages)


def request_headers(authority: str, size: int) -> list[tuple[bytes, bytes]]:
    """Give the header fields of a request as a Python SDK would send them."""
    return [
        (b"Host", authority.encode()),
        (b"Accept", b"application/json"),
        (b"Accept-Encoding", b"gzip, deflate"),
        (b"Connection", b"keep-alive"),
        (b"User-Agent", b"bench/1.0"),
        (b"Authorization", b"Bearer " + KEY),
        (b"Content-Type", b"application/json"),
        (b"Content-Length", b"%d" % size),
    ]


def request(work: Workload, number: int, authority: str) -> bytes:
    """Give a whole request as it goes over the wire, in HTTP/1.1."""
    content = body(work, number)
    head = [b"POST %b HTTP/1.1" % work.target.encode()]
    head += [b"%b: %b" % pair for pair in request_headers(authority, len(content))]
    return b"\r\n".join([*head, b"", content])


def own_key(of: bytes) -> bytes:
    """Give a credential for the request with the token `of` alone, as long as that of all."""
    return b"sk-bench-" + hashlib.sha256(of).hexdigest().encode()[: len(KEY) - len("sk-bench-")]


def answer_headers(size: int) -> list[tuple[bytes, bytes]]:
    """Give the header fields of an answer that is not a stream."""
    return [
        (b"Content-Type", b"application/json"),
        (b"X-Request-Id", b"req_0123456789abcdef"),
        (b"Content-Length", b"%d" % size),
    ]


def answer_body(work: Workload, of: bytes) -> bytes:
    """Give the body that answers the request with the token `of`."""
    before, after = _answer(work.name)[int(of) % _ANSWERS]
    return before + of + after


def answer_head(size: int) -> bytes:
    """Give the head of an answer that is not a stream, up to and with the empty line."""
    lines = [b"HTTP/1.1 200 OK", *(b"%b: %b" % pair for pair in answer_headers(size))]
    return b"\r\n".join([*lines, b"", b""])


def event(of: bytes, number: int) -> bytes:
    """Give an event of the stream that answers the request with the token `of`."""
    return b'data: {"id":"%b","choices":[{"delta":{"content":"word %d"}}]}\n\n' % (of, number)


def sized_body(number: int, size: int) -> bytes:
    """Give a body of a request of just so many bytes, 1,000 to 150,000."""
    before = b'{"id":"%b","text":"' % token(number)
    first = number % _PIECES
    text = b"".join(_pieces()[first : first + 80]).replace(b'"', b"'")
    return before + text[: size - len(before) - 2] + b'"}'


class Noise:
    """The bytes of a large body: the same for a seed, and no two blocks of them alike."""

    def __init__(self, seed: int) -> None:
        self._stream = Cipher(algorithms.AES(b"%016d" % seed), modes.CTR(bytes(16))).encryptor()

    def take(self, count: int) -> bytes:
        """Give the next bytes."""
        return self._stream.update(bytes(count))


@cache
def _answer(name: str) -> list[tuple[bytes, bytes]]:
    """Give the answers of a workload without their token, as what stands before and after it."""
    work = WORKLOADS[name]
    if work.out_kb > 1000:
        return [(b'{"id":"', b'","data":"' + b"x" * BLOB_BYTES + b'"}')] * _ANSWERS
    # Texts of their own: a request that repeats an answer depends on it, and is not played before it.
    pieces = _pieces(20261122)
    many = work.out_kb // 2
    return [
        (b'{"id":"', b'","choices":[%b]}' % b",".join(pieces[at * 8 : at * 8 + many]))
        for at in range(_ANSWERS)
    ]


@cache
def _pieces(seed: int = 20261121) -> list[bytes]:
    """Give the messages that bodies are made of, about 2 KB each; 90 more at the end wrap round."""
    rng = random.Random(seed)
    letters = "etaoinshrdlucmfwypvbgk"
    words = ["".join(rng.choices(letters, k=max(2, int(rng.gauss(6, 2.5))))) for _ in range(6000)]
    weights = list(itertools.accumulate(1 / rank for rank in range(1, len(words) + 1)))
    pieces = []
    for number in range(_PIECES):
        text = " ".join(rng.choices(words, cum_weights=weights, k=_PIECE_BYTES // 4))
        role = "user" if number % 2 else "assistant"
        pieces.append(f'{{"role":"{role}","content":"{text[: _PIECE_BYTES - 40]}"}}'.encode())
    return pieces + pieces[:90]
