"""The words of command lines: each is read once, and means the same behind whichever name it is read."""

import pytest

from playhead.tape.redaction.finding.command_lines import CommandLines
from playhead.tape.redaction.finding.passwords_in_commands import COMMANDS, find_in_command
from playhead.tape.redaction.finding.searched_text import Context, Strings
from playhead.tape.redaction.redactor import Redactor

NAMES = sorted({(row.names[0], *row.under) for row in COMMANDS})


@pytest.mark.parametrize("words", NAMES, ids=" ".join)
@pytest.mark.parametrize("options", ["", "-p ", "-p -p ", "-P aaa/bbb "])
def test_a_line_of_names_is_read_once(words: tuple[str, ...], options: str) -> None:
    """However many commands it names: each word belongs to one line."""
    unit = f"{' '.join(words)} {options}".encode()
    data = unit * 200
    strings = Strings(data)
    head = len(" ".join(words)) + (not words[1:])
    for number in range(200):
        find_in_command(Context(data), number * len(unit) + head, strings)
    lines = {id(line): line for line, _ in strings.lines._ends.values()}
    assert sum(len(line.words) for line in lines.values()) <= len(data.split()) + 1


@pytest.mark.parametrize(
    "text",
    [
        "mysql -h db mysqldump -u joe -p{0} app",
        "sudo docker -H tcp://h run mysql mysql -u joe -p{0} app",
        "sshpass -p {0} ssh joe@h mysql -h db",
        "sh -c \"docker login -u joe -p '{0}' registry.test\"",
        "openssl openssl openssl rsa -passin pass:{0} -in k",
        '["sh", "-c", "x", "redis-cli", "redis-cli", "-a", "{0}"]',
        "unzip -P aaa/bbb a.zip && zip -P {0} b.zip",
        "mycli 'mycli \"mycli -p {0} x",
        "docker --config d -D --host h login --username joe --password {0}",
    ],
)
def test_a_password_is_found_behind_other_commands(text: str) -> None:
    """In the same line, in quotes, and in a list."""
    secret = "hX7" + "pQ2wR9t"
    found = Redactor(b"k" * 32).text(text.format(secret).encode())
    assert secret.encode() not in found
    assert len(found) == len(text.format(secret))


def test_lines_end_where_a_shell_ends_them() -> None:
    """At a newline that is not escaped, in a string of JSON too, and at what separates commands."""
    for text in (b" a -p\nb", b" a -p\\nb", b" a -p;b", b" a -p | b", b" a -p && b"):
        line, at = CommandLines(text).behind(0)
        assert [word.text for word in line.take(at, 1000, 9)] == [b"a", b"-p"]
    line, at = CommandLines(b" a \\\n -p 'b c'\"d\" e").behind(0)
    assert [word.text for word in line.take(at, 1000, 9)] == [b"a", b"-p", b"b cd", b"e"]
