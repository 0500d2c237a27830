"""The body of one request, as it comes from the client and goes to the upstream."""

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

from ....store.spill.spool import Spool
from ....tape.exchange import BODY, Exchange, Spilled


@dataclass(slots=True)
class Early:
    """A recorded exchange whose answer began before its request had ended, while it is played."""

    exchange: Exchange
    compared: int = 0
    """Bytes of the request that were compared."""
    diverged: bool = False
    values: dict[int, bytes] = field(default_factory=dict)
    """What has come of values that redaction replaced in the recorded request, by their number, until they are whole."""

    def find_values(self, at: int, came: bytes) -> Iterator[tuple[int, bytes, bytes]]:
        """Give the values that have come whole, each with its place and what stands there in the recorded request.

        at: where what came begins.
        """
        asked = self.exchange.request
        for number, one in enumerate(asked.secrets):
            start, end = max(one.at, at), min(one.at + one.size, at + len(came))
            if one.part != BODY or start >= end:
                continue
            value = self.values.pop(number, b"") + came[start - at : end - at]
            if len(value) == one.size:
                yield one.at, asked.body[one.at : one.at + one.size], value
            else:
                self.values[number] = value


@dataclass(slots=True)
class RequestBody:
    """What has come of a request's body."""

    upload: Spool | None = None
    """Where it is too large to be held, or was set aside while it came."""
    uploaded: Spilled | None = None
    """The same once it has come whole."""
    sent: list[bytes] = field(default_factory=list)
    """As it was sent on, where it was not waited for."""
    sent_bytes: int = 0
    request_ended: bool = True
    """False while a request is sent on that has not ended."""
    came: bytes = b""
    """The body that came, until its secrets are taken out."""
    searched: bool = False
    """Whether that has been done."""
    changing: threading.Lock = field(default_factory=threading.Lock)
    """Held while that is done, and while what was asked changes."""
    bidirectional: bool = False
    """Whether the answer may begin before the request has ended."""
    undecided: bool = False
    """Whether more of the request has to come, or its client be quiet, before it is known which recorded one it is."""
    is_unknown: bool = False
    """Whether the tape has no request that this one may still become, whatever comes of it."""
    quiet_at: int = -1
    """Bytes of the request after which its client was quiet."""
    early: Early | None = None

    @property
    def came_so_far(self) -> bytes:
        """What is in memory of what was sent on, or is to be compared next."""
        return b"".join(self.sent)

    def open_both_ways(self) -> None:
        """Note that it is sent on before it has ended."""
        self.bidirectional = True
        self.request_ended = False

    def end(self) -> None:
        """Note that the request has ended."""
        self.request_ended = True

    def come(self, body: bytes, *, searched: bool) -> None:
        """Note what has come whole.

        searched: whether its secrets have been taken out.
        """
        self.came, self.searched = b"" if searched else body, searched

    def take_came(self) -> bytes:
        """Give what came, so that its secrets are taken out; nothing the second time."""
        came = b"" if self.searched else self.came or b"".join(self.sent)
        if came:
            self.searched, self.came = True, b""
        return came

    def have_sent(self, sent: list[bytes]) -> None:
        """Note what was sent on, or is to be compared next."""
        self.sent = sent

    def take_sent(self) -> bytes:
        """Give what was sent on, or is to be compared next, and hold it no longer."""
        sent, self.sent = b"".join(self.sent), []
        return sent

    def count(self, size: int) -> None:
        """Note that a piece has come."""
        self.sent_bytes += size

    def keep(self, data: bytes) -> None:
        """Keep a piece that was sent on.

        Raises: StoreError.
        """
        if self.upload is not None:
            self.upload.write(data)
        else:
            self.sent.append(data)

    def spill(self, spool: Spool, data: bytes) -> None:
        """Go on in a file; `data` is what has come.

        Raises: StoreError.
        """
        self.upload = spool
        spool.write(data)

    async def measure(self, upload: Spool) -> None:
        """Give a body that is too large to be held its hash.

        Raises: StoreUnwritable.
        """
        self.uploaded = await upload.measure()

    async def take_back(self, upload: Spool) -> bytes:
        """Give a body that was set aside, which is held from now on.

        Raises: StoreUnwritable.
        """
        body, _ = await upload.take_back()
        upload.drop()
        self.upload, self.sent = None, [body]
        return body

    async def store(self, upload: Spool) -> Spilled:
        """Make durable what was too large to be held.

        Raises: StoreUnwritable.
        """
        self.uploaded = await upload.keep()
        return self.uploaded

    def wait_for_more(self, *, undecided: bool) -> None:
        """Note whether more has to come before it is known which recorded request it is."""
        self.undecided = undecided

    def note_unknown(self, *, is_unknown: bool) -> None:
        """Note whether the tape has no request that it may still become."""
        self.is_unknown = is_unknown

    def hear_quiet(self, at: int) -> None:
        """Note that its client is quiet after so many bytes."""
        self.quiet_at = at

    def begin_early(self, exchange: Exchange) -> Early:
        """Note that the answer of a recorded exchange begins."""
        early = self.early = Early(exchange, len(self.came_so_far))
        self.sent = []  # compared by now
        return early

    def compare(self, early: Early) -> tuple[int, bytes]:
        """Give what has come since it was last compared, and where that begins."""
        at, came = early.compared, self.take_sent()
        early.compared = at + len(came)
        return at, came

    def diverge(self, early: Early) -> None:
        """Note that the request is another one than the one that is played."""
        early.diverged = True
