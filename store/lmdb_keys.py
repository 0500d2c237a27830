"""The keys and tables in LMDB: only this module knows their layout.

    meta          b"format" -> version; b"next-run" -> number; b"intake/", run -> its process;
                  b"archive/", batch -> place and batch, whose files nobody needs;
                  b"key" -> check of the key it is encrypted under; b"rekey-left" -> b""; b"erased" -> b"";
                  b"rewritten/", batch -> place and batch, with what a rewritten run held before;
                  b"writable" -> count; b"upgrade" -> how far one has come that has not ended
    runs          run -> RunInfo
    names         name -> run; zero byte, form of a name -> next number
    open          run -> b""                              runs not sealed yet
    events        run, number -> chain hash + event       append-only
    exchanges     run, seq -> body codec + exchange       written once the outcome is known
                  run, seq, 1 byte -> what follows of it  of records that are put in parts (`deltas/records.py`)
    blocks        run, hash -> body codec + bytes         large base64 in exchanges, decoded (`deltas/base64_blobs.py`)
    openings      name -> body codec + exchange           shared prefixes, for all runs; in parts too
    users         shared prefix, run -> b"1" if it came from that run
    uses          run, shared prefix -> b""
    fingerprints  run, fingerprint, seq -> b""            in recorded order inside a fingerprint
    raws          run, hash of raw bytes -> fingerprint   so that known bytes need no parsing
    origins       run, origin, alpn offers -> alpn        the protocol that was negotiated
    mail          run, kind -> time                       owner requests: what another process asks of the run's owner
    messages      run, seq, number -> body codec + message    of a WebSocket, written as they pass
    files         run, seq -> hashes of body files        which an exchange needs, 32 bytes each
    originals     run, seq -> body codec + originals      what redaction replaced in an answer; in encrypted stores alone
                  run, seq, number -> body codec + data   the same of a message of a WebSocket: its bytes as they came
    folders       run, number -> body codec + manifest    of the working folder: 0 at the start, then one a savepoint
                  0, 0 -> runs by folder                  which run has looked at a folder last
    contents      name -> users; name, number -> body codec + part    contents of files, for all runs
    content_uses  run, name -> b""                        which contents a run's manifests need

Numbers are 8 bytes, big endian, so that LMDB's order is ours. In `fingerprints` and `raws` the run stands for its
index: its own number, or the one that a later index was given.
"""

FORMAT = 5
"""The version of the store that is read and written."""
OLDEST_FORMAT = 4
"""The earliest version that `playhead upgrade` brings to the current one; those before were never released."""
MAX_NAME_BYTES = 400
"""Longest name of a run in UTF-8: LMDB's keys end at 511 bytes, and a number may be added to a name."""
TABLES = (
    "meta",
    "runs",
    "names",
    "open",
    "events",
    "exchanges",
    "blocks",
    "openings",
    "users",
    "uses",
    "fingerprints",
    "raws",
    "origins",
    "mail",
    "messages",
    "files",
)
ORIGINALS = "originals"
FOLDERS, CONTENTS, CONTENT_USES = "folders", "contents", "content_uses"
OPTIONAL_TABLES = (ORIGINALS, FOLDERS, CONTENTS, CONTENT_USES)
"""Tables that a store has only where something needs them."""

CHECK_ROW = b"key"
"""Row of `meta`: check value of the key that a store is encrypted under; absent in a store that is not encrypted."""
PROBE_ROW = b"writable"
"""Row of `meta`: written to find out whether anything can be written."""
LEFT_ROW = b"rekey-left"
"""Row of `meta`: data under another key has not been removed yet."""
UPGRADE_ROW = b"upgrade"
"""Row of `meta`: the progress of an upgrade that has not finished. Until it has, nothing else opens the store."""
ERASED_ROW = b"erased"
"""Row of `meta`: a run was erased or rewritten, and its bytes may still be in the files."""
REWRITTEN_ROWS = b"rewritten/"
"""Begins rows of `meta`, before the name of a batch: its files have what a rewritten run held before."""
PLAIN_VALUES = frozenset(("meta", "open", "mail", "fingerprints", "users", "uses", "content_uses"))
"""Tables whose values contain nothing of what was said; in an encrypted store the values of all others are encrypted."""
BLOCK_AT = {
    **{"fingerprints": 8, "raws": 8, "blocks": 8, "openings": 0, "users": 0, "uses": 8},
    **{"contents": 0, "content_uses": 8},
}
"""Where the 16 bytes of a hash begin in the keys of a table."""
TEXT_FROM = {"names": 0, "origins": 8}
"""From where on the keys of a table are text."""


def number_key(number: int) -> bytes:
    """Give the key of a run."""
    return number.to_bytes(8, "big")


def can_be_number(number: int) -> bool:
    """Say whether a number can be that of an exchange or event."""
    return 0 < number < 1 << 64


def pair_key(run: int, number: int) -> bytes:
    """Give the key of an event or exchange."""
    return run.to_bytes(8, "big") + number.to_bytes(8, "big")


def message_key(run: int, seq: int, number: int) -> bytes:
    """Give the key of one message of a WebSocket; numbers begin with 0."""
    return pair_key(run, seq) + number.to_bytes(8, "big")


def fingerprint_key(run: int, fingerprint: bytes, seq: int) -> bytes:
    """Give the key of one use of a fingerprint."""
    return run.to_bytes(8, "big") + fingerprint + seq.to_bytes(8, "big")


def origin_key(run: int, host: str, port: int, offers: tuple[bytes, ...]) -> bytes:
    """Give the key under which a negotiated protocol is kept; cut to LMDB's key length."""
    origin = f"{host}:{port}".encode("utf-8", "surrogatepass")
    return run.to_bytes(8, "big") + b"\0".join([origin[:255], *offers])[:400]
