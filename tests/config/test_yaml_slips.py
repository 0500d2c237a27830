"""What is no YAML is told with what was most likely meant, at the line where that is."""

from contextlib import suppress

import pytest

from playhead.config import ConfigError, loads

SAME = "the entries of one list or section begin in the same column"
SLIPS = {
    # depth
    "effects:\n  - match: a\n  gate: true": "begin line 3 in column 5, under the first key of its list item",
    "live:\n  - match: a\n   reason: b": "begin line 3 in column 5, under the first key of its list item",
    "live:\n  - {match: a}\n    - {match: b}": "begin line 3 in column 3, as the items before it",
    "live:\n  - match: a\n    reason: b\n   - match: c": "begin line 4 in column 3, as the items before it",
    "live:\n    - {match: a}\n  - {match: b}": f"line 3 is indented unlike those before: {SAME}",
    "runs:\n    default: a\n  grace: 1s": f"line 3 is indented unlike those before: {SAME}",
    "  mode: record\nlisten: a:1": f"line 2 is indented unlike those before: {SAME}",
    "mode: record\n- a": f"line 2 is indented unlike those before: {SAME}",
    "runs:\n  default: a\n    grace: 1s": f"line 3 is indented deeper than line 2, and reads as more of its value: {SAME}",
    "mode: record\n\n listen: a:1": f"line 3 is indented deeper than line 1, and reads as more of its value: {SAME}",
    "mode: record\n# a\n listen: a:1": f"line 3 is indented unlike those before: {SAME}",
    "runs:\n\tgrace: 1s": "YAML indents with spaces, not with tabs",
    "live: - a": "begin a list on the line below its key",
    # colons, blanks and dashes
    "mode record\nlisten: 127.0.0.1:1": "line 1 has no colon after its key",
    "listen 127.0.0.1:1\n\n# a\nmode: record": "line 1 has no colon after its key",
    "mode: record\nlisten 127.0.0.1:1\nstore: a": "line 2 has no colon after its key",
    "live:\n- match: a\n  reason b": "line 3 has no colon after its key",
    "mode:record\nlisten: a:1": "line 1 has no blank after its colon",
    "live:\n-match: a\n- match: b": "line 2 has no blank after its dash",
    "a: b: c": "put a value with a colon and a blank inside into quotes",
    # quotes and brackets
    'mode: "record\nstore: a\n': "the quote that opens on line 1 is not closed",
    "store: a\nmode: 'record": "the quote that opens on line 2 is not closed",
    'mode: "a" b': "nothing can follow a closing quote or bracket: put the whole value into quotes",
    'redact:\n- pattern: "\\d+"': "use single quotes, in which a backslash is itself",
    "live: [a\nmode: record": "the bracket that opens on line 1 is not closed, or a comma is missing before this place",
    "live:\n- {match: a reason: b}": "the bracket that opens on line 2 is not closed, or a comma is missing before this place",
    "live: [": "the bracket that opens on line 1 is not closed, or a comma is missing before this place",
    "listen: [::1]:8080": "put a value with ':' into quotes",
    # what begins something else
    "live:\n- match: *.example.com": "put a value that begins with '*' into quotes",
    "live:\n- match: *x": "put a value that begins with '*' into quotes",
    "live:\n- match: &.x": "put a value that begins with '&' into quotes",
    "mode: @x": "put a value that begins with '@' into quotes",
    "mode: `a`": "put a value that begins with '`' into quotes",
    "store: >a b": "put a value that begins with '>' into quotes",
    "live: ]": "put a value that begins with ']' into quotes",
    # files
    "mode: record\n---\nmode: record": "one file is one document: remove the line `---`",
    "%YAML 9.9\n---\na": "the slip is on this line, or on one before it",
}


@pytest.mark.parametrize(("text", "advice"), SLIPS.items())
def test_a_slip_is_told_by_what_to_change(text: str, advice: str) -> None:
    """Behind the parser's words, which name the place where it gave up."""
    with pytest.raises(ConfigError) as caught:
        loads(text, "f")
    (fault,) = caught.value.faults
    assert "not YAML: " in fault.text
    assert fault.text.endswith(f"; {advice}")


@pytest.mark.parametrize("text", SLIPS)
def test_no_cut_of_a_slip_is_too_much(text: str) -> None:
    """A text may break off anywhere, and is read or is told to be wrong."""
    for end in range(len(text)):
        with suppress(ConfigError):
            loads(text[:end], "f")
