"""The kinds of stubs."""

from playhead.config import Answer
from playhead.config.sections.effects import STUB_KINDS
from playhead.tape.exchange import Request
from playhead.tape.policy.branch import HYPOTHETICAL
from playhead.tape.stubs.kinds import KINDS, make_configured

ASKED = Request("POST", "https", "a.test", 443, "/", "HTTP/1.1", (), b"asked")


def test_a_rule_can_name_each_kind_that_makes_an_answer() -> None:
    """`answer.kind` takes those, and no other."""
    made = {name for name, kind in KINDS.items() if kind.make is not None}
    assert {*STUB_KINDS, HYPOTHETICAL} == made


def test_a_template_is_given_as_it_is_configured() -> None:
    """Whatever is asked."""
    made = make_configured(Answer(201, (("x-a", "b"),), b"body"), ASKED)
    assert (made.status, made.headers, made.body) == (201, ((b"x-a", b"b"),), b"body")
    assert made.after == ()
