"""The answer to one request, as it comes from the upstream and goes to the client."""

from dataclasses import dataclass, field

from ....store.spill.spool import Spool
from ....tape.exchange import Chunk, RawInterim, Spilled


@dataclass(slots=True)
class Answer:
    """What has come of an answer, and what the client was sent of it."""

    head_us: int = 0
    head_need: int | None = None
    """Bytes of the request that had been sent when its head came; None where that had ended."""
    end_need: int | None = None
    """The same at its end, or when its client left before that."""
    end_after: int = 0
    head_sent: bool = False
    announced: int = -1
    """Length of its body as its head says, or -1."""
    event_stream: bool = False
    """Whether it is one on which SDKs act before it has ended."""
    ragged: bool = False
    """Whether it ended with a connection whose TLS was not closed."""
    interim: list[RawInterim] = field(default_factory=list)
    """Interim answers that have come."""
    taken: int = 0
    """Pieces of its body that have arrived."""
    size: int = 0
    pieces: list[bytes] = field(default_factory=list)
    chunks: list[Chunk] = field(default_factory=list)
    held: int = 0
    """Bytes in memory that are counted for its body."""
    download: Spool | None = None
    """Its body, where it is too large to be held, or was set aside."""
    downloaded: Spilled | None = None
    """The same once it has been kept."""

    @property
    def whole(self) -> bool:
        """Whether all that its head announced has arrived."""
        return self.announced >= 0 and self.size >= self.announced

    def begin(self, at_us: int) -> None:
        """Note when its head came."""
        self.head_us = at_us

    def describe(self, *, event_stream: bool, announced: int) -> None:
        """Note what its head says of its body."""
        self.event_stream = event_stream
        self.announced = announced

    def need_for_head(self, need: int | None) -> None:
        """Note how much of the request it was given for."""
        self.head_need = need

    def end(self, *, ragged: bool, need: int | None, after: int) -> None:
        """Note how it ended."""
        self.ragged, self.end_need, self.end_after = ragged, need, after

    def leave(self, need: int | None) -> None:
        """Note how much of the request had been sent when the client left."""
        self.end_need = need

    def send_head(self) -> None:
        """Note that the client is sent its head."""
        self.head_sent = True

    def play(self, *, ragged: bool) -> None:
        """Note how one that is played ends."""
        self.ragged = ragged

    def count(self, size: int) -> None:
        """Note that a piece has come."""
        self.taken += 1
        self.size += size

    def keep(self, data: bytes, chunk: Chunk, counted: int) -> None:
        """Keep a piece in memory."""
        self.pieces.append(data)
        self.chunks.append(chunk)
        self.held += counted

    def spill(self, spool: Spool) -> None:
        """Go on in a file.

        Raises: StoreError.
        """
        self.download = spool
        for chunk, piece in zip(self.chunks, self.pieces, strict=True):
            spool.write(piece, chunk)

    def take_back(self, body: bytes, chunks: list[Chunk]) -> None:
        """Have a body that was set aside in memory again."""
        self.pieces, self.chunks = [body], chunks

    def drop(self) -> int:
        """Hold nothing of it any longer; give what was counted for that."""
        counted, self.held = self.held, 0
        self.pieces, self.chunks = [], []
        return counted

    def forget(self) -> None:
        """Hold nothing of it any longer, as it cannot be kept."""
        self.pieces, self.chunks = [], []

    async def store(self) -> bool:
        """Make durable what was too large to be held; say whether anything was.

        Raises: StoreUnwritable.
        """
        if self.download is None or self.download.is_aside:
            return False
        self.downloaded = await self.download.keep()
        return True
