"""Ignore files leave out what git would leave out."""

import pytest

from playhead.tape.folders.ignore_files import Ignored


@pytest.mark.parametrize(
    ("rules", "path", "folder", "out"),
    [
        ({b"": b"*.pyc"}, b"a/b.pyc", False, True),
        ({b"": b"*.pyc"}, b"a/b.py", False, False),
        ({b"": b"build/"}, b"build", True, True),
        ({b"": b"build/"}, b"build", False, False),
        ({b"": b"/x"}, b"a/x", False, False),
        ({b"": b"*.log\n!keep.log"}, b"keep.log", False, False),
        ({b"": b"# x\n\n"}, b"x", False, False),
        ({b"": b"\\\n*.o"}, b"a.o", False, True),
        # ---- a deeper file wins ----
        ({b"": b"*.log", b"a/": b"!*.log"}, b"a/x.log", False, False),
        ({b"": b"!*.log", b"a/": b"*.log"}, b"a/x.log", False, True),
        ({b"": b"*.log", b"a/": b"*.txt"}, b"a/x.log", False, True),
        ({b"a/": b"/x"}, b"a/x", False, True),
        ({b"": b"\xff*"}, b"\xffa", False, True),
    ],
)
def test_a_path_is_left_out(
    rules: dict[bytes, bytes], path: bytes, folder: bool, out: bool
) -> None:
    """Rules by the folder that their file stands in."""
    ignored = Ignored()
    for above, text in rules.items():
        ignored = ignored.within(above, text)
    assert ignored.leaves_out(path, folder=folder) is out
