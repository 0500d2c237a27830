"""What a branch declares: what goes together, and the hosts of a class."""

from pathlib import Path

import pytest

from playhead.proxy.run_again.declare_branch import Asked, find_hosts
from playhead.store import Store
from playhead.tape.exchange import RequestClass
from playhead.tests.support.recordings import ask, record_run


def test_the_hosts_of_a_class_are_those_of_the_tape(tmp_path: Path) -> None:
    """Each once, in the order of their first request."""
    with Store.open(tmp_path) as store:
        asked = [ask(b"", url=f"https://{name}.test/x") for name in ("b", "a", "b")]
        run = record_run(store, "tape", asked)
        assert find_hosts(store, run, RequestClass.INFERENCE) == ["b.test", "a.test"]
        assert find_hosts(store, run, RequestClass.READ) == []


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        (Asked(1, edit=True, system=Path("x")), "--edit and --system change the same exchange"),
        (Asked(1, live=("inference",)), "need a --reason"),
        (Asked(1, routes=("x",)), "need a --reason"),
        (Asked(1, reason="r"), "--reason goes with"),
        (Asked(1, request_change=Path("x")), "add --live inference"),
    ],
)
def test_words_that_do_not_go_together_are_told(asked: Asked, says: str) -> None:
    """Before a store is opened."""
    with pytest.raises(ValueError, match=says):
        asked.check()
