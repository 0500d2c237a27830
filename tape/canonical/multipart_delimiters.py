"""Put a constant in the place of the boundary of a multipart body, where every reader finds the same parts in it.

Readers differ: some take a line that only begins like a delimiter for one, pad it with spaces, or end it with LF alone where
others want CRLF. Two bodies that are equal but for their boundary are the same to all of them only if its text, after two
hyphens, is nowhere but in delimiter lines of one form. In any other body the boundary counts.

Source: RFC 2046 section 5.1.1; the readers of Python, Go, PHP and busboy.
"""

import re

BOUNDARY = b"\x00boundary"
"""Stands for the boundary of a multipart body."""

_ENDS = (b"\r\n", b"\n")
_CLOSE = b"--"
_BEHIND = 4
"""Bytes behind a boundary that say whether it is a delimiter: `--` and CRLF."""
_PLAIN = re.compile(rb"[0-9A-Za-z'+_./:=?-]{1,200}")
"""Boundaries that every reader reads alike from a `content-type`, without quotes. RFC 2046 allows 70 characters."""
_QUOTED = re.compile(rb"\"[0-9A-Za-z'()+_,./:=? -]{0,199}[0-9A-Za-z'()+_,./:=?-]\"")


def is_plain_boundary(written: bytes) -> bool:
    """Say whether every reader reads a `boundary` parameter alike, as it is written."""
    return (_QUOTED if written[:1] == b'"' else _PLAIN).fullmatch(written) is not None


def replace_delimiters(body: bytes, boundary: bytes, mark: bytes) -> bytes | None:
    """Put a mark in the place of the boundary; None where readers may find other parts, or the mark is in the body."""
    delimiters = Delimiters(boundary, mark)
    made = delimiters.feed(body, last=True)
    return made if delimiters.regular else None


class Delimiters:
    """The delimiters of one body, which comes piece by piece."""

    def __init__(self, boundary: bytes, mark: bytes) -> None:
        """Begin before the first byte."""
        self.regular = True
        """Whether every reader finds the same parts in what came so far."""
        self._mark = mark
        self._line, self._put = b"--" + boundary, b"--" + mark
        self._end = b""
        """How its delimiter lines end; not known before the first one."""
        self._before = b""
        """The last bytes that were given back, as they came."""
        self._kept = b""
        self._first = True
        self._keep = max(len(self._line) + _BEHIND, len(mark))

    def feed(self, data: bytes, *, last: bool = False) -> bytes:
        """Give what is known of the body after a further piece; of one that is not regular, anything."""
        if not self.regular:
            return b""
        text = self._before + self._kept + data
        done, until = len(self._before), len(text) if last else len(text) - self._keep
        self.regular = self._mark not in text
        made: list[bytes] = []
        at = text.find(self._line, done)
        while 0 <= at < until and self.regular:
            behind = at + len(self._line)
            self.regular = self._is_delimiter(text, at, behind)
            made += (text[done:at], self._put)
            done = behind
            at = text.find(self._line, done)
        if until > done:
            made.append(text[done:until])
            done = until
        self._before, self._kept = text[max(0, done - 2) : done], text[done:]
        self._first = self._first and not made
        return b"".join(made)

    def _is_delimiter(self, text: bytes, at: int, behind: int) -> bool:
        tail = text[behind : behind + _BEHIND]
        end = tail[2:] if tail.startswith(_CLOSE) else tail
        if not self._end:
            self._end = next((one for one in _ENDS if end.startswith(one)), b"")
        if at > 0 or not self._first:
            ahead = text[max(0, at - 2) : at]
            own = self._end or next((one for one in _ENDS if ahead.endswith(one)), b"")
            # A line that ends with CRLF is none that ends with LF.
            if not own or not ahead.endswith(own) or (own == b"\n" and ahead == b"\r\n"):
                return False
        if end.startswith(self._end) and self._end:
            return True
        return not end and tail == _CLOSE
