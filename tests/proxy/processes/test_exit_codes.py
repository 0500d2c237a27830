"""How processes end that are nobody's children here."""

import subprocess

import pytest

from playhead.proxy.processes.exit_codes import ExitCode, can_tell


@pytest.mark.parametrize(
    ("ending", "well"), [("exit 0", True), ("exit 3", False), ("kill -9 $$", False)]
)
def test_how_a_process_ended_is_known_once_its_parent_has_waited(ending: str, well: bool) -> None:
    """Not before; and with 0 alone it ended well."""
    with subprocess.Popen(["sh", "-c", f"read line; {ending}"], stdin=subprocess.PIPE) as process:
        code = ExitCode(process.pid)
        assert not code.is_well()
        process.communicate(b"\n")
        assert code.is_well() is (well and can_tell())
        assert code.is_well() is (well and can_tell())


def test_a_process_that_has_gone_is_not_known() -> None:
    """Nor is one without such files."""
    with subprocess.Popen(["true"]) as process:
        process.wait()
    assert not ExitCode(process.pid).is_well()


def test_whoever_is_closed_knows_no_more() -> None:
    """Twice is once."""
    with subprocess.Popen(["true"]) as process:
        code = ExitCode(process.pid)
        code.close()
        code.close()
        process.wait()
    assert not code.is_well()
