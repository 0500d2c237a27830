"""Watching a configuration file: what it says now, if that is not what it said before."""

import os
from pathlib import Path

import pytest

from playhead.config import Config, ConfigError, Listen, Mode, Watcher
from playhead.config.watch import SETTLED_NS

SECOND = 1_000_000_000
NOW = 1_700_000_000 * SECOND


class Clock:
    """A clock that moves when told to."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> int:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "playhead.yaml"
    write(path, "mode: record")
    return path


def write(path: Path, text: str, age_s: float = 100) -> None:
    """Write a file whose time is so many seconds before the clock's start."""
    path.write_text(text)
    os.utime(path, ns=(NOW, NOW - int(age_s * SECOND)))


def start(path: Path, clock: Clock, **flags: object) -> Watcher:
    return Watcher.start(path, flags, clock)[0]


def mode(polled: Config | ConfigError | None) -> Mode | str | None:
    if isinstance(polled, ConfigError):
        return str(polled)
    return polled.mode if polled else None


def test_a_change_is_told_once(file: Path, clock: Clock) -> None:
    """Unchanged is None; a change is the new configuration, then None again."""
    watcher, config = Watcher.start(file, {}, clock)
    assert config.mode is Mode.RECORD
    assert watcher.poll() is None
    write(file, "mode: playback", 50)
    assert mode(watcher.poll()) is Mode.PLAYBACK
    assert watcher.poll() is None


def test_a_touch_is_no_change(file: Path, clock: Clock) -> None:
    """The same content with a new time means the same."""
    watcher = start(file, clock)
    write(file, "mode: record", 50)
    assert watcher.poll() is None


def test_flags_lie_over_every_load(file: Path, clock: Clock) -> None:
    """A key that a flag has set does not change with the file."""
    watcher = start(file, clock, listen="127.0.0.1:1")
    write(file, "mode: playback\nlisten: 127.0.0.1:2", 50)
    polled = watcher.poll()
    assert isinstance(polled, Config)
    assert (polled.mode, polled.listen) == (Mode.PLAYBACK, Listen("127.0.0.1", 1))


def test_broken_content_is_told_once(file: Path, clock: Clock) -> None:
    """Also where it is saved again; other broken content is news."""
    watcher = start(file, clock)
    write(file, "mode: x", 50)
    assert mode(watcher.poll()) == (
        f"{file}:1:7: mode: unknown mode 'x'; expected record, playback or passthrough"
    )
    assert watcher.poll() is None
    write(file, "mode: x", 40)
    assert watcher.poll() is None
    write(file, "mode: y", 30)
    assert isinstance(watcher.poll(), ConfigError)


def test_mended_content_is_told_though_it_is_the_old(file: Path, clock: Clock) -> None:
    """After a fault the caller hears that all is well again."""
    watcher = start(file, clock)
    write(file, "mode: x", 50)
    watcher.poll()
    write(file, "mode: record", 40)
    assert mode(watcher.poll()) is Mode.RECORD


def test_an_edit_within_one_tick_of_the_clock_is_seen(file: Path, clock: Clock) -> None:
    """Same time, size and inode, however late the next poll comes."""
    write(file, "mode: record ", 1)
    watcher = start(file, clock)
    write(file, "mode: 'x'    ", 1)
    clock.now += 60 * SECOND
    assert isinstance(watcher.poll(), ConfigError)
    assert watcher.poll() is None


def test_an_old_file_is_not_read(file: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once a read came late enough after the last change, a poll is one stat."""
    write(file, "mode: record", 1)
    watcher = start(file, clock)
    clock.now += 60 * SECOND
    assert watcher.poll() is None
    monkeypatch.setattr("playhead.config.watch.read", None)
    assert watcher.poll() is None


def test_a_file_replaced_by_another_of_the_same_time_and_size_is_seen(
    file: Path, clock: Clock
) -> None:
    """Editors write beside the file and rename: the inode tells."""
    watcher = start(file, clock)
    other = file.with_suffix(".new")
    write(other, "mode: 'x'   ")
    other.replace(file)
    assert isinstance(watcher.poll(), ConfigError)


def test_a_file_gone_for_a_moment_is_unchanged(file: Path, clock: Clock) -> None:
    """Two polls without it are patience, and the count starts over when it is back."""
    watcher = start(file, clock)
    for _ in range(3):
        file.unlink()
        assert [watcher.poll(), watcher.poll()] == [None, None]
        write(file, "mode: record")
        assert watcher.poll() is None


def test_a_file_that_stays_away_is_told_once_and_its_return_too(file: Path, clock: Clock) -> None:
    """The third poll says so; the caller hears when it is back, though it is the same."""
    watcher = start(file, clock)
    file.unlink()
    polled = [mode(watcher.poll()) for _ in range(9)]
    assert polled == [None, None, f"{file}: no such file", *[None] * 6]
    write(file, "mode: record")
    assert mode(watcher.poll()) is Mode.RECORD


@pytest.mark.parametrize("text", ["", "\n", "# nothing yet\n", "store: elsewhere\n"])
def test_a_playback_goes_on_to_record_only_if_the_file_says_so(
    file: Path, clock: Clock, text: str
) -> None:
    """A file of which the beginning is there would otherwise open the proxy, for however long it stays so."""
    write(file, "mode: playback")
    watcher = start(file, clock)
    write(file, text, 50)
    polled = watcher.poll()
    assert isinstance(polled, ConfigError)
    assert "the settings in use stay" in str(polled) or "the proxy is in mode playback" in str(
        polled
    )
    assert watcher.poll() is None
    write(file, text + "mode: record")
    assert mode(watcher.poll()) is Mode.RECORD


def test_a_flag_says_so_too(file: Path, clock: Clock) -> None:
    """The mode of a flag is that of every load."""
    write(file, "mode: record")
    watcher = start(file, clock, mode="playback")
    write(file, "store: elsewhere")
    assert mode(watcher.poll()) is Mode.PLAYBACK


def test_an_empty_file_is_not_all_the_defaults(file: Path, clock: Clock) -> None:
    """Those have no gates."""
    watcher = start(file, clock)
    write(file, "")
    assert "has no content; expected a configuration" in str(watcher.poll())


def test_a_file_that_is_being_written_is_not_read(file: Path, clock: Clock) -> None:
    """The gates may be in what is not there yet; each write begins the wait anew."""
    watcher = start(file, clock)
    for text in ("mode: record\n", "mode: record\nlisten: 127.0.0.1:1\n"):
        write(file, text, -1)  # its clock is ahead of ours
        assert watcher.poll() is None
        clock.now += SETTLED_NS - 1
        assert watcher.poll() is None
    clock.now += 1
    polled = watcher.poll()
    assert isinstance(polled, Config)
    assert polled.listen == Listen("127.0.0.1", 1)


def test_a_file_that_closes_the_proxy_is_not_waited_for(file: Path, clock: Clock) -> None:
    """Whoever has just saved it starts an agent, and nothing of that one is to leave."""
    watcher = start(file, clock)
    write(file, "mode: playback", 0)
    assert mode(watcher.poll()) is Mode.PLAYBACK
    assert watcher.poll() is None
    write(file, "mode: record", 0)
    assert watcher.poll() is None
    clock.now += SETTLED_NS
    assert mode(watcher.poll()) is Mode.RECORD


def test_a_file_that_is_renamed_to_its_place_is_whole(file: Path, clock: Clock) -> None:
    """So is what editors save; nothing is waited for."""
    watcher = start(file, clock)
    other = file.with_suffix(".new")
    write(other, "mode: playback", 0)
    other.replace(file)
    assert mode(watcher.poll()) is Mode.PLAYBACK


def test_a_file_that_cannot_be_read_is_tried_again(
    file: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A permission given back changes neither time nor size."""
    watcher = start(file, clock)

    def denied(path: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    write(file, "mode: playback", 50)
    with monkeypatch.context() as patch:
        patch.setattr("playhead.config.watch.read", denied)
        assert mode(watcher.poll()) == f"{file}: cannot be read: Permission denied"
        assert watcher.poll() is None
    assert mode(watcher.poll()) is Mode.PLAYBACK


def test_a_start_takes_the_file_at_its_word(file: Path, clock: Clock, tmp_path: Path) -> None:
    """Missing is a fault at once, and empty is every default at once."""
    with pytest.raises(ConfigError, match="no such file"):
        Watcher.start(tmp_path / "other.yaml", {}, clock)
    with pytest.raises(ConfigError, match="--mode"):
        Watcher.start(file, {"mode": "x"}, clock)
    write(file, "")
    assert Watcher.start(file, {}, clock)[1] == Config(store=tmp_path / ".playhead")


def test_a_watcher_that_knows_nothing_reads_at_its_first_poll(file: Path, clock: Clock) -> None:
    """Without `start` the first poll is the load."""
    watcher = Watcher(file, {}, clock)
    assert mode(watcher.poll()) is Mode.RECORD
    assert watcher.poll() is None
