"""Any exchange that can be written, for properties."""

from hypothesis import strategies as st

from playhead.tape.exchange import (
    NO_TUNNEL,
    Alpn,
    Chunk,
    Close,
    Ending,
    Exchange,
    Fault,
    FaultKind,
    Fingerprint,
    Gone,
    Interim,
    Message,
    MessageKind,
    Phase,
    RedactedText,
    Redaction,
    Repeat,
    RepeatKind,
    Request,
    RequestClass,
    Response,
    Seq,
    Spilled,
    Tunnel,
    VerdictKind,
    WebSocketSummary,
)

_text = st.text(st.characters(), max_size=20)  # lone surrogates are meant
_number = st.integers(0, 2**40)
_headers = st.lists(st.tuples(st.binary(max_size=12), st.binary(max_size=12)), max_size=4).map(
    tuple
)
_digests = st.binary(min_size=32, max_size=32)
_spilled = st.builds(Spilled, _digests, _number, _digests, st.just(b"") | _digests)
_requests = st.builds(
    Request,
    method=_text,
    scheme=st.sampled_from(["http", "https"]),
    host=_text,
    port=st.integers(0, 65535),
    target=_text,
    http_version=_text,
    headers=_headers,
    body=st.binary(max_size=2000),
    trailers=_headers,
    spilled=st.none() | _spilled,
)


@st.composite
def _responses(draw: st.DrawFn) -> Response:
    pieces = draw(st.lists(st.binary(max_size=300), max_size=5))
    chunks = tuple(
        Chunk(draw(_number), len(piece), draw(_number), draw(_number)) for piece in pieces
    )
    return Response(
        status=draw(st.integers(100, 599)),
        reason=draw(st.binary(max_size=10)),
        http_version=draw(_text),
        headers=draw(_headers),
        body=b"".join(pieces),
        head_us=draw(_number),
        chunks=chunks if draw(st.booleans()) else (),
        trailers=draw(_headers),
        complete=draw(st.booleans()),
        spilled=draw(st.none() | _spilled),
        head_need=draw(st.none() | _number),
        end_need=draw(st.none() | _number),
        end_after=draw(_number),
        ragged=draw(st.booleans()),
    )


_faults = st.builds(
    Fault,
    st.sampled_from(list(FaultKind)),
    st.sampled_from(list(Phase)),
    _text,
    _number,
    st.sampled_from(list(Ending)),
    st.integers(0, 2**32 - 1),
)
_codes = st.integers(1000, 4999)
_closes = st.builds(
    Close, _number, st.booleans(), _codes, _text, st.none() | st.tuples(_codes, _text)
)
_websockets = st.builds(WebSocketSummary, _number, _number, st.none() | _closes)
_repeats = st.builds(Repeat, _number.map(Seq), st.sampled_from(list(RepeatKind)), st.booleans())
_tunnels = st.just(NO_TUNNEL) | st.builds(Tunnel, st.integers(1, 2**30), _number)
_interim = st.builds(Interim, _number, st.integers(102, 199), st.binary(max_size=10), _headers)
_gone = st.builds(Gone, _number, st.integers(0, 5), st.booleans())


@st.composite
def exchanges(draw: st.DrawFn, seq: int | None = None) -> Exchange:
    """Any exchange that can be written."""
    offers = draw(st.lists(st.binary(min_size=1, max_size=8), max_size=3).map(tuple))
    return Exchange(
        seq=Seq(seq if seq is not None else draw(st.integers(1, 2**40))),
        request_class=draw(st.sampled_from(list(RequestClass))),
        verdict=draw(st.sampled_from(list(VerdictKind))),
        reason=draw(_text),
        request=draw(_requests),
        started_ns=draw(st.integers(0, 2**62)),
        end_us=draw(_number),
        fingerprint=Fingerprint(draw(st.binary(min_size=16, max_size=16))),
        response=draw(st.none() | _responses()),
        fault=draw(st.none() | _faults),
        gone=draw(st.none() | _gone),
        redactions=tuple(draw(st.lists(st.builds(Redaction, _text, _text), max_size=2))),
        warnings=tuple(draw(st.lists(_text, max_size=2))),
        alpn=Alpn(offers, draw(st.none() | st.sampled_from([b"h2", b"http/1.1"]))),
        websocket=draw(st.none() | _websockets),
        repeat=draw(st.none() | _repeats),
        withheld=RedactedText(draw(st.just("") | _text)),
        tunnel=draw(_tunnels),
        interim=tuple(draw(st.lists(_interim, max_size=2))),
    )


messages = st.builds(
    Message,
    _number,
    st.booleans(),
    st.sampled_from(list(MessageKind)),
    st.binary(max_size=300),
    st.just(()),
    _number,
)


plain_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False)
    | _text
    | st.binary(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3).map(tuple) | st.dictionaries(_text, inner, max_size=3)
    ),
    max_leaves=6,
)
"""What an event may carry: plain msgpack types, arrays as tuples."""
