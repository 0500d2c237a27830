"""The Parquet schema of an archive; docs/archive.md describes it for people.

A batch is written in one piece: one file in each folder, all of the same name. `steps` is written last, and files that no
`steps` file lists do not count.
"""

import pyarrow as pa

VERSION_KEY = b"playhead.archive"
"""Of a file's metadata: the version of this format."""
FILES_KEY = b"playhead.files"
"""Of the metadata of `steps`: the folders that hold a file of the batch, each with its length and its BLAKE3; JSON."""

_TIME = pa.timestamp("ns", tz="UTC")
_WORD = pa.string()
_HEADERS = pa.list_(pa.struct([("name", pa.binary()), ("value", pa.binary())]))
_RUN = [("run", _WORD), ("archive_id", _WORD)]

STEPS = "steps"
SCHEMAS = {
    "runs": pa.schema(
        [
            *_RUN,
            ("host", _WORD),
            ("mode", _WORD),
            ("status", _WORD),
            ("parent", _WORD),
            ("started", _TIME),
            ("ended", _TIME),
            ("exchanges", pa.int64()),
            ("agent", _WORD),
            ("end", _WORD),
            ("labels", pa.list_(_WORD)),
            ("events", pa.int64()),
            ("chain", pa.binary()),
            ("event_groups", pa.list_(pa.int32())),
            ("message_groups", pa.list_(pa.int32())),
            ("record", pa.binary()),
        ]
    ),
    "exchanges": pa.schema(
        [
            *_RUN,
            ("seq", pa.int64()),
            ("class", _WORD),
            ("method", _WORD),
            ("url", _WORD),
            ("request_headers", _HEADERS),
            ("request_body", pa.binary()),
            ("status", pa.int32()),
            ("response_headers", _HEADERS),
            ("response_body", pa.binary()),
            ("record", pa.binary()),
        ]
    ),
    "events": pa.schema(
        [
            *_RUN,
            ("number", pa.int64()),
            ("at", _TIME),
            ("kind", _WORD),
            ("seq", pa.int64()),
            ("record", pa.binary()),
        ]
    ),
    "messages": pa.schema(
        [
            *_RUN,
            ("seq", pa.int64()),
            ("number", pa.int64()),
            ("at_us", pa.int64()),
            ("from_client", pa.bool_()),
            ("kind", _WORD),
            ("data", pa.binary()),
            ("record", pa.binary()),
        ]
    ),
    "bodies": pa.schema(
        [("digest", pa.binary()), ("part", pa.int32()), ("data", pa.binary())],
    ),
    "contents": pa.schema(
        [("digest", pa.binary()), ("part", pa.int32()), ("data", pa.binary())],
    ),
    "folders": pa.schema(
        [
            *_RUN,
            ("number", pa.int64()),
            ("record", pa.binary()),
        ]
    ),
    STEPS: pa.schema(
        [
            *_RUN,
            ("seq", pa.int64()),
            ("started", _TIME),
            ("duration_us", pa.int64()),
            ("class", _WORD),
            ("verdict", _WORD),
            ("method", _WORD),
            ("host", _WORD),
            ("path", _WORD),
            ("status", pa.int32()),
            ("fault", _WORD),
            ("request_bytes", pa.int64()),
            ("response_bytes", pa.int64()),
            ("request_hash", pa.binary()),
            ("response_hash", pa.binary()),
            ("file", _WORD),
            ("row_group", pa.int32()),
        ]
    ),
}
"""In the order in which the files of a batch become visible."""

WORDS = {
    "runs": ["host", "mode", "status"],
    "exchanges": ["run", "archive_id", "class", "method", "url", "status"],
    "events": ["run", "archive_id", "kind"],
    "messages": ["run", "archive_id", "kind", "from_client"],
    "bodies": ["digest"],
    "contents": ["digest"],
    "folders": ["run", "archive_id"],
    STEPS: ["run", "archive_id", "class", "verdict", "method", "host", "path", "status", "fault", "file"],
}  # fmt: skip
"""Columns whose values come again and again. The others have no dictionary: it would cut the one piece apart in which
neighbouring bodies are packed together."""
HEADER_WORDS = [
    f"{side}.list.element.{part}"
    for side in ("request_headers", "response_headers")
    for part in ("name", "value")
]
GROUP_ROWS = {
    "runs": 1000,
    "exchanges": 1000,
    "events": 20_000,
    "messages": 5000,
    "bodies": 1000,
    "contents": 1000,
    "folders": 1000,
    STEPS: 50_000,
}
"""Most rows of a group: what is packed in one piece, and read to get at one of them."""
GROUP_BYTES = 64 << 20
"""Of what a group holds before it is packed; a group ends with the row that exceeds it."""
