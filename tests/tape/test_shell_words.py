"""Commands that are printed for a person to copy: each of their words is one word of a shell."""

import ast
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from playhead.tape.shell_words import shell_word
from playhead.tests.support.import_graph import ROOT

_BEGINS = re.compile(r"playhead (?=[a-z]|$)")
_ENDS = re.compile(r"[`;,\n]|: |\. ")
_SAFE = re.compile(r"(shell_word|safe_word|_step_name|shlex\.join)\(.*\)|(.*\.)?(seq|step)")
"""What is one word, or words that are quoted: numbers of steps, and what quotes."""
_KNOWN = {
    "proxy/command_line/json_output_schemas.py": {"command"},
    "proxy/command_line/missing_run.py": {"self.name"},
    # The commands of the demo are its own.
    "proxy/commands/demo.py": {"arguments[0]", "verb", "' '.join(words)"},
    "proxy/command_line/grouped_help.py": {"word"},
    "proxy/doctor/agents.py": {"words"},
    "proxy/experiments/explore.py": {"command"},
    "proxy/command_line/usage_advice.py": {"form", "_SEQ"},
    "proxy/commands/shared_options_and_output.py": {"word", "shown"},
    "proxy/run_again/resume.py": {"shown"},
}
"""By file, what has been looked at: names of commands, and commands that are joined before."""
_IN_PAGE = re.compile(r"playhead [a-z][^<\n]*")
_VALUE = re.compile(r"\{\{(.*?)\}\}")


@pytest.mark.parametrize("name", ["mine", "my run; id", "$(id)", "a'b", "a`id`", "", "n~2", "-x y"])
def test_a_word_is_one_word_of_a_shell(name: str) -> None:
    """Whatever it is, a shell gives it back."""
    assert shlex.split(f"playhead show {shell_word(name)} 1") == ["playhead", "show", name, "1"]


def _values(tree: ast.AST) -> Iterator[str]:
    """Give what is filled into commands of a module."""
    for node in ast.walk(tree):
        inside = False
        for one in node.values if isinstance(node, ast.JoinedStr) else ():
            if isinstance(one, ast.Constant) and isinstance(one.value, str):
                begins = list(_BEGINS.finditer(one.value))
                rest = one.value[begins[-1].end() :] if begins else one.value
                inside = (inside or bool(begins)) and _ENDS.search(rest) is None
            elif inside and isinstance(one, ast.FormattedValue):
                yield ast.unparse(one.value)


def _sources(pattern: str) -> Iterator[tuple[str, str]]:
    for part in ("addons", "config", "proxy", "store", "tape", "timeline", "web"):
        for path in sorted((ROOT / part).rglob(pattern)):
            yield path.relative_to(ROOT).as_posix(), Path(path).read_text()


def test_what_is_filled_into_a_printed_command_is_quoted() -> None:
    """A run is named by its agent: its name may not be a command in a line that is copied."""
    found = {
        (name, value)
        for name, text in _sources("*.py")
        for value in _values(ast.parse(text))
        if _SAFE.fullmatch(value) is None and value not in _KNOWN.get(name, ())
    }
    assert not found


def test_what_is_filled_into_a_command_of_a_page_is_quoted() -> None:
    """By the filter `word`, or before."""
    found = {
        (name, value.strip())
        for name, text in _sources("*.html")
        for command in _IN_PAGE.findall(text)
        for value in _VALUE.findall(command.split("</code>")[0])
        if "| word" not in value
    }
    assert not found - {("web/templates/part_gates.html", "gate.digest")}
