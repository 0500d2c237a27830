"""The files and folders of a store."""

from playhead.store import paths
from playhead.tests.support.import_graph import ROOT, modules

NAMES = [
    value
    for name, value in vars(paths).items()
    if name.isupper()
    and set(value) & set(".-")
    and name != "GITIGNORE"  # git's name for all folders
]


def test_a_name_is_written_once() -> None:
    """So that a file moves by a change of one line; words that mean other things too are left out."""
    texts = {path.as_posix(): (ROOT / path).read_text("utf-8") for path in modules()}
    found = {
        f"{path}: {name}"
        for path, text in texts.items()
        for name in NAMES
        if f'"{name}"' in text and path != "store/paths.py"
    }
    assert found == set()
