"""Messages on a pipe: what a line asks and answers, and how answers of HTTP carry it."""

import pytest

from playhead.proxy.stdio.messages import (
    MAX_LINE,
    Asked,
    Events,
    Exit,
    Lines,
    LineTooLong,
    Said,
    find_answered,
    make_error,
    make_event,
    make_exit,
    read_asked,
)
from playhead.proxy.stdio.run import name_server

ONE, TEXT = (False, "1"), (True, "a")


@pytest.mark.parametrize(
    ("line", "asked"),
    [
        (b'{"jsonrpc":"2.0","id":1,"method":"ping"}', Asked({ONE: b"1"})),
        (b'{"jsonrpc":"2.0","id":"a","method":"ping"}', Asked({TEXT: b'"a"'})),
        (
            b'[{"id":1,"method":"x"},{"method":"y"},{"id":"a","method":"z"}]',
            Asked({ONE: b"1", TEXT: b'"a"'}),
        ),
        (
            b'{"id":1,"method":"x","params":{"_meta":{"progressToken":"a"}}}',
            Asked({ONE: b"1"}, frozenset([TEXT])),
        ),
        (b'{"id":1,"method":"x","params":[1]}', Asked({ONE: b"1"})),
        # nothing is asked
        (b'{"jsonrpc":"2.0","method":"notifications/initialized"}', Asked({})),
        (b'{"jsonrpc":"2.0","id":1,"result":{}}', Asked({})),
        (b'{"id":null,"method":"x"}', Asked({})),
        (b'{"id":{},"method":"x"}', Asked({})),
        (b"7", Asked({})),
        # no JSON
        (b"\xff\x00", Asked({}, is_json=False)),
        (b'"\xff"', Asked({}, is_json=False)),
        (b"[" * 100_000, Asked({}, is_json=False)),
    ],
)
def test_what_a_line_asks(line: bytes, asked: Asked) -> None:
    """Requests by their ids, which is what the server is to answer."""
    assert read_asked(line) == asked


@pytest.mark.parametrize(
    ("line", "found"),
    [
        (b'{"jsonrpc":"2.0","id":1,"result":{}}', ({ONE}, set())),
        (
            b'[{"jsonrpc":"2.0","id":1,"result":1},{"jsonrpc":"2.0","id":"a","error":{}}]',
            ({ONE, TEXT}, set()),
        ),
        (
            b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1}}',
            (set(), {ONE}),
        ),
        (b'{"jsonrpc":"2.0","id":1,"method":"roots/list"}', (set(), set())),
        (b"\xff", (set(), set())),
    ],
)
def test_what_a_line_answers(line: bytes, found: object) -> None:
    """Ids of requests, and tokens of those whose progress it reports."""
    assert find_answered(line) == found


@pytest.mark.parametrize("line", [b'{"a": 1}', b"\xff\x00\r", b'{"a":\r1}', b"plain words", b""])
@pytest.mark.parametrize("half", [False, True])
def test_a_line_of_the_server_comes_again(line: bytes, half: bool) -> None:
    """Whatever its bytes are, and however the stream is cut."""
    stream = make_event(7, line, half=half) + make_exit(3)
    events = Events()
    found = [one for at in range(len(stream)) for one in events.feed(stream[at : at + 1])]
    assert found == [Said(7, line if half else line + b"\n"), Exit(3)]


def test_a_foreign_event_is_left_out() -> None:
    """A tape may be edited by hand."""
    stream = (
        b"event: raw\ndata: %%%\n\nevent: exit\ndata: x\n\n: words\nretry: 1\n\nid: x\ndata: 1\n\n"
    )
    assert list(Events().feed(stream)) == [Said(0, b"1\n")]


def test_lines_are_bounded() -> None:
    """A message without an end is not collected for ever."""
    lines = Lines()
    assert list(lines.feed(b"a\nb")) == [b"a"]
    assert list(lines.feed(b"c\n\n")) == [b"bc", b""]
    assert list(lines.feed(bytes(MAX_LINE))) == []
    with pytest.raises(LineTooLong):
        list(lines.feed(b"a"))


def test_an_error_answers_each_request() -> None:
    """With the id as the client wrote it."""
    told = make_error({ONE: b"1", TEXT: b'"a"'}, 'not "here"')
    assert told == b"".join(
        b'{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":"not \\"here\\""}}\n' % written
        for written in (b"1", b'"a"')
    )


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("server-files /data", "server-files"),
        ("/opt/bin/server --port 1", "server"),
        ("python server.py", "server.py"),
        ("python3.13 -u src/server.py x", "server.py"),
        ("python -m shop.server", "shop.server"),
        ("npx -y @scope/server-files /data", "@scope/server-files"),
        ("uv run shop", "shop"),
        ("uvx shop", "shop"),
        ("node", "node"),
    ],
)
def test_a_server_has_a_name(command: str, name: str) -> None:
    """What a person would call it, out of the command that starts it."""
    assert name_server(command.split()) == name
