"""Digests of bodies too large to be held agree with what is compared of small ones."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from playhead.tape.canonical.canonical_request import without_boundary
from playhead.tape.canonical.spilled_digest import Digest, find_boundary


def _pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    places = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    return [data[start:end] for start, end in itertools.pairwise(places)]


_parts = st.lists(
    st.sampled_from([b"--", b"xx", b"\r\n--xx", b"\n--xx", b"\n--", b"x", b"\n", b"--xx--\r\n"]),
    max_size=20,
).map(b"".join)


@given(_parts, st.lists(st.integers(0, 200), max_size=6))
def test_how_a_body_is_cut_into_pieces_changes_no_digest(data: bytes, cuts: list[int]) -> None:
    """One piece or many: the same two digests."""
    whole, parts = Digest(b"xx"), Digest(b"xx")
    whole.update(data)
    for piece in _pieces(data, cuts):
        parts.update(piece)
    assert whole.finish() == parts.finish()


@given(_parts)
def test_the_boundary_does_not_count(data: bytes) -> None:
    """Two bodies that differ in their boundary alone compare equal, and only those."""
    one, other = Digest(b"xx"), Digest(b"yyyy")
    one.update(b"--xx\r\n" + data.replace(b"xx", b"zz") + b"\r\n--xx--")
    other.update(b"--yyyy\r\n" + data.replace(b"xx", b"zz") + b"\r\n--yyyy--")
    assert one.finish()[1] == other.finish()[1]
    assert one.finish()[0] != other.finish()[0]


@given(_parts, _parts)
def test_bodies_compare_as_small_ones_do(left: bytes, right: bytes) -> None:
    """Equal digests for what is compared exactly where the canonical form is equal."""
    digests = []
    for data in (left, right):
        digest = Digest(b"xx")
        digest.update(data)
        digests.append(digest.finish()[1])
    bare = [without_boundary(data, b"xx") for data in (left, right)]
    same = bare[0] == bare[1] if None not in bare else left == right
    assert (digests[0] == digests[1]) is same


def test_only_multipart_has_a_boundary() -> None:
    """A content type that is not multipart announces none."""
    kind = b'multipart/form-data; boundary="a b"'
    assert find_boundary(((b"Content-Type", kind),)) == b"a b"
    assert find_boundary(((b"content-type", b"application/json; boundary=x"),)) == b""
    assert find_boundary(()) == b""
