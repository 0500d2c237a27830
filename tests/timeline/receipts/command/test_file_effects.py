"""What a receipt says of the files that a command has written."""

from playhead.timeline.receipts.command.file_effects import FileEffects


def test_all_effects_are_counted_though_not_all_are_listed() -> None:
    """A repository's own files are counted apart, and those beyond the rows by what became of them."""
    rows = [[f"a{at}", "created", "file", 1, "", "0"] for at in range(10)]
    rows += [[".git/x", "changed", "file", 1, "", "0"]]
    counts = {"created": 400, "deleted": 406, "changed": 2, "git": 624}
    told = {"folder": {"mode": "overlay"}, "file_effects": rows, "file_effects_omitted": 1421}
    found = FileEffects()
    found.take(told | {"file_effects_counts": counts})
    first, *shown = found.lines()
    assert first == (
        "files: 400 created, 2 changed, 406 deleted, 624 of git's own, on an overlay, discarded"
    )
    assert shown[-1] == "  and 800 more"
    # A log of an older version has counts of its rows alone.
    found.take(told)
    first, *shown = found.lines()
    assert "10 created, 1 of git's own, 1421 more" in first
    assert shown[-1] == "  and 2 more"


def test_counts_of_a_list_that_was_cut_say_so() -> None:
    """Also where nothing is known to be written."""
    cut = "p/ is not listed, because it is large"
    rows = [["a", "created", "file", 1, "", "0"]]
    found = FileEffects()
    found.take({"folder": {"cut": cut}, "file_effects": rows})
    assert found.lines()[0] == f"files: 1 created; more is not known: {cut}"
    found.take({"folder": {"cut": cut, "mode": "copy"}, "file_effects": []})
    assert found.lines() == [f"files: none; more is not known: {cut}"]


def test_what_is_not_known_is_no_empty_list() -> None:
    """Where the folder could not be read in the end."""
    found = FileEffects()
    found.take({"folder": {"unknown": "the folder was gone"}, "file_effects": None})
    assert found.lines() == [
        "files: what the command wrote is not known, because the folder was gone"
    ]
    told = found.to_json()
    assert (told["file_effects"], told["file_effects_omitted"]) == (None, None)
