"""Where a folder is mounted again, read from the kernel's table."""

from pathlib import Path

import pytest

from playhead.proxy.sandbox.filesystem.mountinfo import Mount, find_again, read_mounts

MOUNTS = [
    Mount("8:1", "/", "/", "ext4"),
    Mount("0:5", "/", "/run", "tmpfs"),
    Mount("0:5", "/user/1000", "/srv/mine", "tmpfs"),
    Mount("0:5", "/", "/srv/all of it", "tmpfs"),
    Mount("8:1", "/home", "/mnt/home", "ext4"),
    Mount("0:6", "/", "/mnt/home", "tmpfs"),
    Mount("0:7", "/", "/run/user/1000", "tmpfs"),
    Mount("0:7", "/", "/mnt/home/me", "tmpfs"),
]


@pytest.mark.parametrize(
    ("path", "again"),
    [
        ("/run", ["/srv/mine", "/srv/all of it"]),
        ("/run/docker.sock", ["/srv/all of it/docker.sock"]),
        ("/run/user", ["/srv/mine", "/srv/all of it/user"]),
        ("/run/user/1000", ["/mnt/home/me"]),
        ("/home/me", ["/mnt/home/me"]),
        ("/running", []),
        ("/mnt/home/you", []),
    ],
)
def test_the_same_folder_is_found_elsewhere(path: str, again: list[str]) -> None:
    """A whole file system, a folder of it, or something that is in the folder; what is mounted last counts."""
    assert find_again(path, MOUNTS) == again


def test_without_a_mount_there_is_nothing_to_find() -> None:
    """In a chroot the root may be none."""
    assert find_again("/run", []) == []


def test_the_table_is_read(tmp_path: Path) -> None:
    """Blanks and backslashes in names are numbers; fields before the dash vary."""
    table = tmp_path / "mountinfo"
    table.write_text(
        "36 35 98:0 /a\\040b /mnt/c\\134d rw,noatime master:1 shared:2 - ext3 /dev/root rw\n"
        "37 35 0:5 / / rw - tmpfs tmpfs rw\n"
    )
    assert read_mounts(str(table)) == [
        Mount("98:0", "/a b", "/mnt/c\\d", "ext3", "rw,noatime", 36),
        Mount("0:5", "/", "/", "tmpfs", "rw", 37),
    ]
    assert any(mounted.point == "/" for mounted in read_mounts())
