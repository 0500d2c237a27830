"""JSON that nobody vouches for: lines of it are read together as each would be by itself."""

import pytest

from playhead.tape.dialects.common.untrusted_json import find_json, find_json_lines


@pytest.mark.parametrize(
    "lines",
    [
        [],
        [b'{"a": 1}', b'{"b": [1, {"c": null}]}'],
        [b' {"a": 1}\r', b"[DONE]", b'{"b": 2}', b""],
        [b'{"a": 1}', b"null", b"7", b'"x"', b"[1]"],
        # One value in two lines, and two in one.
        [b'{"a": {}', b'{"b": 1}}'],
        [b'{"a": [{}', b"{}]}", b"{},{}"],
        [b'{"a": "}', b'{"}', b'{"b": 1}{"c": 2}'],
        [b'{"a": 1}{"b": 2}', b'{"c": 3}'],
        [b'{"a": 1} {"b": 2}', b'{"c":\n3}'],
        [b'{"a": 1}', b"{broken}", b'{"b": 2}'],
        [b'{"half": "\\ud83d"}', b'{"n": NaN}', b'{"b": 2}'],
        [b'{"a": "\xff"}', b'{"b": 2}'],
        [b'{"a":' * 300 + b"1" + b"}" * 300, b'{"b": 2}'],
        [b'{"a": [' + b"{}," * 300 + b"{}]}", b'{"b": 2}'],
    ],
)
def test_lines_are_read_together_as_each_by_itself(lines: list[bytes]) -> None:
    """Whatever is in one of them, the others are what they are alone."""
    assert repr(find_json_lines(lines)) == repr([find_json(line.strip()) for line in lines])
