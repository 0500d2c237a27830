"""What two runs did to a folder, compared: by effects, and by the hashes of what was written."""

from typing import Any, NamedTuple

import pytest

from playhead.timeline.receipts.command.compare_files import UNWRITTEN, LeftBehind, compare_files
from playhead.timeline.receipts.command.file_effects import FileEffects

Row = tuple[str, str, str, int, str, str]


def row(path: str, change: str = "created", kind: str = "file", **more: Any) -> Row:
    """Give an effect as the log has it."""
    said: dict[str, Any] = {
        "size": 1 if kind == "file" else 0,
        "hash": "aa" if kind == "file" else "",
        "mode": "644",
    }
    said |= more
    return (path, change, kind, said["size"], said["hash"], said["mode"])


class Side(NamedTuple):
    """What one run left behind."""

    rows: tuple[Row, ...] = ()
    files: dict[str, str] | None = {}  # noqa: RUF012, never written to
    folder: dict[str, Any] | None = {}  # noqa: RUF012
    omitted: int = 0

    def left(self) -> LeftBehind:
        """Give it as receipts read it."""
        effects = FileEffects()
        told = {"file_effects": self.rows, "file_effects_omitted": self.omitted}
        effects.take({} if self.folder is None else {"folder": self.folder, **told})
        return LeftBehind(self.files, effects)


class Case(NamedTuple):
    """Two runs, and the path that differs."""

    name: str
    then: Side
    now: Side
    differs: str = ""


OTHER_START = {"differs": ["changed a"]}
UMASK: dict[str, Any] = {"umask": "22"}
UMASK_THERE = {"umask": "22", **OTHER_START}
CASES = (
    Case("nothing", Side(), Side()),
    Case(
        "the same",
        Side((row("a"), row("d/", kind="folder"))),
        Side((row("a"), row("d/", kind="folder"))),
    ),
    Case("another content", Side((row("a"),)), Side((row("a", hash="bb"),)), "a"),
    Case("another size", Side((row("a"),)), Side((row("a", size=2),)), "a"),
    Case("a program", Side((row("a"),)), Side((row("a", mode="755"),)), "a"),
    Case("another umask", Side((row("a"),)), Side((row("a", mode="600"),))),
    Case(
        "another umask, which is known",
        Side((row("a"),), {"a": "x:644"}, UMASK),
        Side((row("a", mode="600"),), {"a": "x:600"}, {"umask": "77"}),
    ),
    Case(
        "another mode",
        Side((row("a"),), folder=UMASK),
        Side((row("a", mode="600"),), folder=UMASK),
        "a",
    ),
    Case(
        "another mode, the same bytes written",
        Side((row("a"),), {"a": "x:644"}, UMASK),
        Side((row("a", mode="666"),), {"a": "x:666"}, UMASK),
        "a",
    ),
    Case(
        "another mode of an ignored file",
        Side((), {"a": "x:644"}, UMASK),
        Side((), {"a": "x:666"}, UMASK),
        "a",
    ),
    Case(
        "another mode of a folder",
        Side((row("d/", kind="folder", mode="755"),), folder=UMASK),
        Side((row("d/", kind="folder", mode="700"),), folder=UMASK),
        "d/",
    ),
    Case(
        "a folder that takes set-gid from the one above it",
        Side((row("d/", kind="folder", mode="755"),), folder=UMASK),
        Side((row("d/", kind="folder", mode="2755"),), folder=UMASK),
    ),
    Case(
        "another mode of what was there before, and is not known",
        Side((row("a", "changed"),), {"a": "x:644"}, UMASK),
        Side((row("a", "changed", mode="664"),), {"a": "x:664"}, UMASK_THERE),
    ),
    Case(
        "another mode of a new file, in another folder",
        Side((row("a"),), folder=UMASK),
        Side((row("a", mode="666"),), folder=UMASK_THERE),
        "a",
    ),
    Case(
        "an older log, which has the bits of programs alone",
        Side((), {"a": "x:111"}),
        Side((), {"a": "x:755"}, UMASK),
    ),
    Case("a link in its place", Side((row("a"),)), Side((row("a", kind="link"),)), "a"),
    Case("not written", Side((row("a"),)), Side(), "a"),
    Case("one more", Side(), Side((row("a"),)), "a"),
    Case("a folder more", Side(), Side((row("d/", kind="folder"),)), "d/"),
    Case("deleted, and not", Side((row("a", "deleted"),)), Side(), "a"),
    Case("deleted now", Side(), Side((row("a", "deleted"),), {"a": ""}), "a"),
    Case("deleted then", Side((row("a", "deleted"),), {"a": ""}), Side((), {"a": UNWRITTEN}), "a"),
    Case("deleted in both", Side((row("a", "deleted", size=3),)), Side((row("a", "deleted"),))),
    Case("changed, not created", Side((row("a"),)), Side((row("a", "changed"),)), "a"),
    Case(
        "changed, as it was left there by the recording",
        Side((row("a"),)),
        Side((row("a", "changed"),), folder=OTHER_START),
    ),
    Case(
        "written with the same bytes, which the recording did not know",
        Side((row("a", "changed"),), {"a": "x"}),
        Side((), {"a": "x"}),
    ),
    Case(
        "left there, and not written",
        Side((row("a"),), {"a": "x"}),
        Side((), {"a": UNWRITTEN}),
        "a",
    ),
    Case(
        "the working folder is within",
        Side((row("sub/a"),), {"a": "x"}, {"within": "sub"}),
        Side((), {"a": "x"}, {"within": "sub"}),
    ),
    Case("what git writes", Side((row(".git/index"),)), Side((row(".git/index", hash="bb"),))),
    Case("an ignored file", Side((), {"a.log": "x"}), Side((), {"a.log": "y"}), "a.log"),
    Case(
        "too many hashes, all effects",
        Side((row("a"),), None),
        Side((row("a", hash="b"),), None),
        "a",
    ),
    Case("too many of both", Side((row("a"),), None), Side((row("a"),), {}, omitted=1), "?"),
    Case(
        "folders were not listed in the recording",
        Side((), {}, {"cut": "p/ is not listed"}),
        Side(),
        "in the recording, p/ is not listed",
    ),
    Case(
        "folders were not listed in the replay, and other things differ",
        Side((row("a"),)),
        Side((row("b"),), {}, {"cut": "p/ is not listed", **OTHER_START}),
        "in the replay, p/ is not listed",
    ),
    Case(
        "nothing is known of what was written, and too many files",
        Side((), None, {"unknown": "the folder was gone"}),
        Side((row("a", "deleted"),)),
        "in the recording, what the command wrote is not known, because the folder was gone",
    ),
    Case("an older log of a folder that was not listed", Side((), {}, {"omitted": 9}), Side(), "?"),
    Case(
        "the start was not compared: that is no difference",
        Side((row("a"),)),
        Side((), {}, {"uncompared": ["now, p/ is not listed"]}),
        "a",
    ),
    Case("no effects were kept", Side((), {"a": "x"}, None), Side((row("a"),), {"a": "y"}), "a"),
    Case(
        "no effects were kept, and the same",
        Side((), {"a": "x"}, None),
        Side((row("a"),), {"a": "x"}),
    ),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_two_runs_are_compared(case: Case) -> None:
    """The first path that differs is named, with what was there then and now."""
    found = compare_files(case.then.left(), case.now.left())
    if not case.differs:
        assert found is None
        return
    assert found is not None
    difference, text = found
    assert difference.place == "files"
    assert (case.differs in text) or (case.differs == "?" and "cannot be compared" in text)


def test_what_is_shown_says_what_became_of_the_file() -> None:
    """Change, size and hash of both."""
    then, now = Side((row("a"),)), Side((row("a", "deleted"),))
    found = compare_files(then.left(), now.left())
    assert found is not None
    shown = (found[0].recorded, found[0].asked)
    assert shown == ("a created, 1 bytes, aa", "a deleted, 1 bytes, aa")


def test_a_mode_is_shown_where_it_alone_differs() -> None:
    """Of a folder there is no hash that has it."""
    then, now = (
        Side((row("d/", kind="folder", mode=mode),), folder=UMASK).left() for mode in ("755", "700")
    )
    found = compare_files(then, now)
    assert found is not None
    assert (found[0].recorded, found[0].asked) == (
        "d/ created, mode 755",
        "d/ created, mode 700",
    )
    assert found[1].startswith("the mode of a folder that the command made differs")


@pytest.mark.parametrize(
    ("folder", "advised"),
    [({}, False), (OTHER_START, True), ({**OTHER_START, "restored": "r"}, False)],
    ids=["the same folder", "another folder", "a restored folder"],
)
def test_another_folder_is_advised_where_it_was_another(
    folder: dict[str, Any], *, advised: bool
) -> None:
    """A file that was there before, and was not written this time."""
    now = Side((), {"a": UNWRITTEN}, folder)
    found = compare_files(Side((row("a", "changed"),), {"a": "x"}).left(), now.left())
    assert found is not None
    assert "was not written" in found[1]
    assert ("as it was before" in found[1]) is advised


@pytest.mark.parametrize(
    ("then", "now", "told"),
    [
        ("x:4111", "x:111", True),
        ("x:2000", "x", True),
        ("x:4111", "y:111", False),
        ("x:111", "x", False),
        ("x", "unwritten", False),
    ],
)
def test_a_bit_that_a_sandbox_clears_is_told(then: str, now: str, *, told: bool) -> None:
    """As root: without capabilities, who writes to a set-uid file clears the bit."""
    found = compare_files(Side(files={"a": then}).left(), Side(files={"a": now}).left())
    assert found is not None
    assert ("no capabilities" in found[1]) is told
