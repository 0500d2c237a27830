"""The context of a call as the page shows it."""

from playhead.tests.support.provider_tapes import Kept, words
from playhead.web.views.context_view import view_context


def test_what_the_provider_may_keep_has_perhaps_left() -> None:
    """With the reason; what is known to be gone has left."""
    run = Kept()
    run.create("conv_1", words("Begin."))
    run.ask("One.", conversation="conv_1")
    run.create("conv_2")
    run.ask("Two.", conversation="conv_2")
    run.ask("Three.", conversation="conv_3")
    sure, unsure = (view_context(run.exchanges, seq) for seq in (4, 5))
    assert [(one.change, one.text.text) for one in sure.left] == [
        ("left", "Begin."),
        ("left", "One."),
    ]
    assert sure.unknown == []
    assert [(one.change, one.text.text) for one in unsure.left] == [("perhaps left", "Two.")]
    assert unsure.unknown == ["what conv_3 had before is not in this run"]
