"""Regular expressions that are compiled late find what those find that were compiled at once."""

import copy
import pickle
import re
import subprocess
import sys
from typing import Any

import pytest

from playhead.proxy import lazy_regexes
from playhead.proxy.lazy_regexes import LatePattern


@pytest.fixture(autouse=True, params=["as ever", "late in this process"])
def everywhere(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether `re.compile` is replaced."""
    monkeypatch.setattr(re, "compile", lazy_regexes._compile)
    if request.param != "as ever":
        lazy_regexes.compile_lazily()


@pytest.fixture(params=["at once", "late", "used"])
def made(request: pytest.FixtureRequest) -> Any:
    """One of each kind."""
    if request.param == "at once":
        return re.compile(r"(?P<word>[a-z]+)\d", re.IGNORECASE)
    late: Any = LatePattern(r"(?P<word>[a-z]+)\d", re.IGNORECASE)
    if request.param == "used":
        assert late.search("A1")
    return late


class TestAllKinds:
    """Each holds at once, late, and once it was used."""

    def test_its_methods_find_the_same(self, made: Any) -> None:
        assert made.search("-Ab1-")["word"] == "Ab"
        assert made.match("-Ab1-") is None
        assert made.fullmatch("Ab1").span() == (0, 3)
        assert made.findall("a1 b2") == ["a", "b"]
        assert [one.start() for one in made.finditer("a1 b2")] == [0, 3]
        assert made.sub(r"\g<word>", "a1 b2") == "a b"
        assert made.subn("", "a1 b2") == (" ", 2)
        assert made.split("-a1-") == ["-", "a", "-"]
        assert made.search("a1 b2", 2).start() == 3

    def test_it_says_what_it_is(self, made: Any) -> None:
        assert isinstance(made, re.Pattern)
        assert made.pattern == r"(?P<word>[a-z]+)\d"
        assert (made.groups, dict(made.groupindex)) == (1, {"word": 1})
        assert made.flags == re.IGNORECASE | re.UNICODE
        assert repr(made) == r"re.compile('(?P<word>[a-z]+)\\d', re.IGNORECASE)"
        with pytest.raises(AttributeError):
            getattr(made, "other")  # noqa: B009

    def test_it_is_taken_where_an_expression_is(self, made: Any) -> None:
        assert re.sub(made, "", "a1 b2") == " "
        assert re.compile(made).search("a1")
        same = re.compile(r"(?P<word>[a-z]+)\d", re.IGNORECASE)
        assert made == same
        assert same == made
        assert {made: 1}[same] == 1
        for one in (copy.copy(made), copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
            assert one == same


def test_a_mistake_comes_up_when_it_is_used() -> None:
    """And each time."""
    late: Any = LatePattern("(", 0)
    for _ in range(2):
        with pytest.raises(re.error):
            late.search("")


def test_all_expressions_of_a_command_can_be_compiled() -> None:
    """Whatever is imported, and it is imported late."""
    code = (
        "import gc, re\n"
        "from playhead.proxy import cli, lazy_regexes\n"
        "import playhead.proxy.run.launcher, playhead.proxy.run.sandboxed\n"
        "left = [one for one in gc.get_objects() if type(one) is lazy_regexes.LatePattern]\n"
        "assert len(left) > 200, len(left)\n"
        "for one in left:\n"
        "    assert type(re.compile(one)) is not re.Pattern\n"
        "    assert one.search(one.pattern[:0]) is None or True\n"
        "    assert type(one) is lazy_regexes._Stand\n"
        "def made(): return re.compile('a')\n"
        "assert type(made()) is re.Pattern\n"
        "assert type(re.compile('of another module')) is re.Pattern\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_expressions_of_other_modules_are_compiled_at_once() -> None:
    """Nobody else is to be surprised."""
    code = "import re\nclass Own:\n    made = re.compile('a')\nmade = re.compile('b')"
    names: dict[str, Any] = {"__name__": "others.module"}
    ours: dict[str, Any] = {"__name__": "playhead.module"}
    lazy_regexes.compile_lazily()
    exec(compile(code, "module", "exec"), names)
    exec(compile(code, "module", "exec"), ours)
    for found, kind in ((names, re.Pattern), (ours, LatePattern)):
        assert type(found["made"]) is type(found["Own"].made) is kind
