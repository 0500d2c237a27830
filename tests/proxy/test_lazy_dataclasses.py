"""Dataclasses whose methods are compiled late behave as those whose methods were compiled at once."""

import copy
import dataclasses
import inspect
import pickle
import subprocess
import sys
from collections.abc import Callable
from dataclasses import FrozenInstanceError, dataclass, field, replace
from functools import cached_property
from typing import Any

import pytest

from playhead.proxy import lazy_dataclasses
from playhead.proxy.lazy_dataclasses import CHECKED, compile_lazily

pytestmark = pytest.mark.skipif(
    sys.version_info[:2] != CHECKED, reason="nothing is replaced in this version of Python"
)


@pytest.fixture(params=["at once", "late"])
def dataclasses_as(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make them both ways."""
    builder: Any = dataclasses._FuncBuilder  # type: ignore[attr-defined]
    monkeypatch.setattr(builder, "add_fns_to_class", lazy_dataclasses._add)
    if request.param == "late":
        compile_lazily()
        assert builder.add_fns_to_class is not lazy_dataclasses._add


_Make = Callable[..., Any]


def _made(**options: Any) -> type[Any]:
    class Made:
        """A row."""

        name: str
        size: int = 3
        rest: list[int] = field(default_factory=list, compare=False)

    return dataclass(**options)(Made)


@pytest.mark.usefixtures("dataclasses_as")
class TestBothWays:
    """Each holds at once, and late."""

    @pytest.mark.parametrize(
        "options",
        [{}, {"frozen": True}, {"slots": True}, {"frozen": True, "slots": True}, {"order": True}],
        ids=str,
    )
    def test_a_value_has_its_fields_and_compares_by_them(self, options: dict[str, bool]) -> None:
        made = _made(**options)
        one = made("a")
        assert (one.name, one.size, one.rest) == ("a", 3, [])
        assert one == made("a", rest=[1])
        assert one != made("b")
        assert one != ("a", 3, [])
        assert repr(one) == f"{made.__qualname__}(name='a', size=3, rest=[])"
        assert replace(one, size=4) == made(name="a", size=4)
        assert copy.copy(one) == one
        assert dataclasses.asdict(one) == {"name": "a", "size": 3, "rest": []}

    def test_a_missing_value_is_an_error(self) -> None:
        with pytest.raises(TypeError, match=r"__init__\(\) missing 1 required .* 'name'"):
            _made()()

    @pytest.mark.parametrize("slots", [False, True])
    def test_frozen_ones_cannot_be_changed_and_have_a_hash(self, slots: bool) -> None:
        made = _made(frozen=True, slots=slots)
        first, second = made("a"), made("a")
        with pytest.raises(FrozenInstanceError):
            first.name = "b"
        with pytest.raises(FrozenInstanceError):
            del first.name
        assert hash(first) == hash(second)
        assert {first: 1}[second] == 1

    def test_others_have_no_hash(self) -> None:
        with pytest.raises(TypeError, match="unhashable"):
            hash(_made()("a"))

    def test_order_compares_and_refuses_strangers(self) -> None:
        made = _made(order=True)
        assert made("a") < made("b")
        assert sorted([made("b"), made("a")])[0].name == "a"
        with pytest.raises(TypeError, match="not supported"):
            made("a") < "b"  # noqa: B015

    def test_own_methods_stay(self) -> None:
        @dataclass(frozen=True)
        class Own:
            name: str

            def __repr__(self) -> str:
                return "own"

            def __eq__(self, other: object) -> bool:
                return True

            def __hash__(self) -> int:
                return 1

        assert (repr(Own("a")), Own("a") == 2, hash(Own("a"))) == ("own", True, 1)

    def test_a_method_that_may_not_be_there_is_an_error(self) -> None:
        with pytest.raises(TypeError, match="Cannot overwrite attribute __setattr__"):

            @dataclass(frozen=True)
            class Wrong:
                name: str

                def __setattr__(self, name: str, value: object) -> None:
                    """Be there."""

    def test_a_subclass_may_be_used_first_and_call_its_base(self) -> None:
        @dataclass
        class Base:
            name: str

        @dataclass
        class Inner(Base):
            size: int = 2

        class Plain(Inner):
            def __init__(self) -> None:
                super().__init__("plain", 5)

        assert repr(Plain()).endswith("Plain(name='plain', size=5)")
        assert (Inner("a").size, Base("b").name) == (2, "b")
        assert Inner("a") != Base("a")

    def test_what_is_done_after_the_fields_are_set_is_done(self) -> None:
        @dataclass(frozen=True)
        class After:
            name: str

            def __post_init__(self) -> None:
                if not self.name:
                    raise ValueError("no name")

            @cached_property
            def long(self) -> str:
                return self.name * 2

        assert After("a").long == "aa"
        with pytest.raises(ValueError, match="no name"):
            After("")

    def test_whoever_looks_at_a_method_sees_it(self) -> None:
        made = _made(slots=True)
        assert str(inspect.signature(made)) == (
            "(name: str, size: int = 3, rest: list[int] = <factory>) -> None"
        )
        assert made.__init__.__annotations__["size"] is int
        assert made.__doc__ == "A row."

    def test_values_are_pickled(self) -> None:
        one = _Pickled("a", 3)
        assert pickle.loads(pickle.dumps(one)) == one


@dataclass(frozen=True, slots=True)
class _Pickled:
    """At a place where pickle finds it."""

    name: str
    size: int


def test_a_method_that_was_called_is_its_own() -> None:
    """From the second call on nothing is in between."""
    code = (
        "from playhead.proxy.lazy_dataclasses import compile_lazily; compile_lazily()\n"
        "from dataclasses import dataclass\n"
        "@dataclass(frozen=True, slots=True)\n"
        "class One:\n    name: str\n"
        "methods = '__init__', '__eq__', '__hash__', '__repr__', '__setattr__', '__delattr__'\n"
        "left = lambda: [one for one in methods if type(One.__dict__[one]).__name__ == '_StandIn']\n"
        "assert left() == [*methods], left()\n"
        "One('a') == One('b')\n"
        "assert left() == [*methods[2:]], left()\n"
        "assert One.__eq__.__qualname__ == 'One.__eq__'\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_all_classes_of_a_command_can_be_completed() -> None:
    """Whatever is imported: none of them is without the methods that its stand-ins stand for."""
    code = (
        "import gc, sys\n"
        "from playhead.proxy import cli, lazy_dataclasses\n"
        "import playhead.proxy.run.launcher, playhead.proxy.run.sandboxed\n"
        "left = [\n"
        "    (one, name)\n"
        "    for one in gc.get_objects() if isinstance(one, type)\n"
        "    for name, method in one.__dict__.items() if type(method) is lazy_dataclasses._StandIn\n"
        "]\n"
        "assert len(left) > 1000, len(left)\n"
        "for one, name in left:\n"
        "    assert getattr(one, name) is one.__dict__[name], (one, name)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
