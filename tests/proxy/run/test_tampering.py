"""What a command does to the proxy that answers it: nothing in a sandbox; outside of one the replay says so."""

import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from playhead.config import Config
from playhead.proxy.run import tampering
from playhead.proxy.run.archive_changes import ArchivedFiles
from playhead.proxy.trust.client_root_certificates import ADDED_BY, NAMED_BY
from playhead.store import Store
from playhead.tests.support.apart import told_by
from playhead.tests.support.counts import FULL
from playhead.tests.support.machine import SOMEBODY
from playhead.tests.support.needs import need
from playhead.tests.support.process import playhead
from playhead.tests.support.recordings import ask, record_run

FEWEST = 12
OWN = {
    "/srv/machine/taskplayhead-tampered",
    "/srv/machine/task/storeplayhead-tampered",
    "/srv/machine/task/playhead.yamlplayhead-tampered",
}
"""What the tries make in folders of the command's own, before they come to what is not."""
ALLOWED = {"receipt: a link"}
"""It is in a folder of the command's own; the receipt takes its place."""


@pytest.fixture(scope="module", params=["root", "somebody"])
def tried(request: pytest.FixtureRequest) -> tuple[str, dict[str, Any]]:
    """What came of it, for each sort of user."""
    if request.param == "root" and os.geteuid() != 0:
        pytest.skip("only root can be root")
    uid = 0 if request.param == "root" else SOMEBODY
    return request.param, told_by("tampering", str(uid), timeout_s=120)


@pytest.mark.parametrize("kind", ["contained", "with files"])
def test_nothing_of_it_is_there_outside(tried: tuple[str, dict[str, Any]], kind: str) -> None:
    """Neither a file more, nor one that was touched, nor another configuration; the receipt is this store's."""
    who, found = tried
    if kind not in found:
        need("bubblewrap")
        pytest.skip(f"tried as {who} only with PLAYHEAD_FULL")
    done = found[kind]
    assert done["code"] == 0, done["stderr"]
    assert len(done["told"]) >= FEWEST
    assert set(done["left"]) <= OWN
    assert done["same"]
    assert done["configuration"] == "store: store\n"
    assert (done["verified"], done["mode"]) == (0, 0o600)
    assert done["receipt"]["changed"] == []
    failed = {name for name, said in done["told"].items() if "Error: " in said}
    copied = {
        name
        for name in done["told"]
        if name.startswith(("package", "environment", "interpreter", "system"))
    }
    assert set(done["told"]) - failed <= ALLOWED | (
        copied if found["owns the environment"] else set()
    )


def test_an_environment_is_written_to_as_a_copy(tried: tuple[str, dict[str, Any]]) -> None:
    """What `pip install` needs: a module more is imported by the command, and gone afterwards."""
    _, found = tried
    if not found["owns the environment"]:
        pytest.skip("this environment is not somebody's to write to")
    assert found["contained"]["told"]["environment: installed into"] == "42"
    assert found["contained"]["receipt"]["sandbox"]["read_only"] == []


# ---- outside of a sandbox ----------------------------------------------------------------------------

ASK = """
import os, shutil, urllib.request
asked = urllib.request.Request("https://api.test/v1/runs", b"", {"content-type": "application/json"})
urllib.request.urlopen(asked).read()
"""
CHANGES = {
    # what the command does: which path is named, and in which words
    "open('playhead.yaml', 'a').write('# more')": ("playhead.yaml", "has another content"),
    "shutil.copy('playhead.yaml', 'x'); os.replace('x', 'playhead.yaml')": (
        "playhead.yaml",
        "is another one: device",
    ),
    "os.unlink('playhead.yaml')": ("playhead.yaml", "is gone"),
    "os.rename('playhead.yaml', 'x'); os.symlink('/dev/null', 'playhead.yaml')": (
        "playhead.yaml",
        "the configuration",
    ),
    "shutil.copytree('store', 'x', ignore=lambda place, names: [n for n in names if n == 'control']);"
    " os.rename('store', 'y'); os.rename('x', 'store')": ("store", "is another one: device"),
    "shutil.copytree('store/log.lmdb', 'x'); os.rename('store/log.lmdb', 'y');"
    " os.rename('x', 'store/log.lmdb')": ("store/log.lmdb", "is another one: device"),
    "shutil.copy('store/log.lmdb/data.mdb', 'x'); os.replace('x', 'store/log.lmdb/data.mdb')": (
        "store/log.lmdb/data.mdb",
        "is another one: device",
    ),
    "open('store/private/receipt.key', 'wb').write(bytes(32))": (
        "store/private/receipt.key",
        "has another content",
    ),
    "open('store/private/ca.pem', 'ab').write(b'x')": ("store/private/ca.pem", "another content"),
    "open('store/ca/playhead-ca-cert.pem', 'ab').write(b'x')": (
        "store/ca/playhead-ca-cert.pem",
        "has another content",
    ),
    "os.rename('receipts', 'x'); os.mkdir('receipts')": ("receipts", "is another one: device"),
}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a configuration and a tape, in which we are."""
    with Store.open(tmp_path / "store") as opened:
        record_run(opened, "tape", [ask()])
    (tmp_path / "playhead.yaml").write_text("store: store\n")
    (tmp_path / "receipts").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


_ALL = list(CHANGES)
TOGETHER = [(0, 7, 8, 9, 6, 10), (1, 5), (2, 4), (3,)]
"""Changes that one command can make, by their place in the table: what is changed by one is no other's."""
TRIED = [[change] for change in _ALL] if FULL else [[_ALL[at] for at in one] for one in TOGETHER]


def test_every_change_is_tried() -> None:
    """In one command or another."""
    assert sorted(change for changes in TRIED for change in changes) == sorted(_ALL)


@pytest.mark.parametrize("changes", TRIED, ids=lambda changes: CHANGES[changes[0]][0])
def test_what_was_changed_outside_of_a_sandbox_is_said(place: Path, changes: list[str]) -> None:
    """125, and each path, whatever the command ended with."""
    flags = ("--no-sandbox", "--receipt", "receipts/receipt.json")
    code = ASK + "\n".join(changes)
    done = playhead("replay", "tape", "--in-place", *flags, "--", sys.executable, "-S", "-c", code)
    assert done.returncode == 125, done.stderr
    for path, words in map(CHANGES.__getitem__, changes):
        (line,) = (line for line in done.stderr.splitlines() if f"{place / path}: " in line)
        assert words in line


def test_a_configuration_that_appears_is_said(place: Path) -> None:
    """The next command would be told what the one before wrote."""
    (place / "playhead.yaml").unlink()
    words = ("replay", "tape", "--in-place", "--store", "store", "--", sys.executable, "-S", "-c")
    done = playhead(*words, ASK + "open('playhead.yaml', 'w').write('store: other')")
    assert done.returncode == 125
    assert f"{place / 'playhead.yaml'}: the configuration was not there before" in done.stderr


def test_a_recording_in_a_changed_place_is_no_recording(place: Path) -> None:
    """125 there, too; nothing of the tape is lost."""
    code = "open('playhead.yaml', 'a').write('# more')"
    done = playhead("record", "--run", "changed", "--", sys.executable, "-S", "-c", code)
    assert done.returncode == 125, done.stderr
    assert "the configuration has another content" in done.stderr


def test_what_the_next_start_would_load_is_said(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A module that an interpreter imports by itself, in a folder of PYTHONPATH, is 125; the agent's own modules are none."""
    monkeypatch.setenv("PYTHONPATH", ".")
    code = f"{ASK}open('tools.py', 'w').write('')\nopen('sitecustomize.py', 'w').write('')"
    done = playhead("replay", "tape", "--in-place", "--", sys.executable, "-S", "-c", code)
    assert done.returncode == 125
    assert f"{place}/sitecustomize.py: the next start of Playhead would load it" in done.stderr
    assert (place / "tools.py").exists()
    assert f"{place}/tools.py" not in done.stderr
    files = [line for line in done.stderr.splitlines() if line.startswith("  created")]
    assert files == ["  created sitecustomize.py (0 bytes)", "  created tools.py (0 bytes)"]


_APPEND = """
for path in PATHS:
    try:
        open(path, "a").write("x")
    except OSError as error:
        print(os.strerror(error.errno))
"""


@pytest.fixture
def roots(place: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """A file of roots for every variable that names one, and one in the folder of such; the variables are set."""
    named = {name: place / f"{name}.pem" for name in (*NAMED_BY, *ADDED_BY)}
    named["SSL_CERT_DIR"] = place / "certs" / "a.pem"
    (place / "certs").mkdir()
    for name, path in named.items():
        path.write_text("# none\n")
        folder = path.parent if name == "SSL_CERT_DIR" else path
        monkeypatch.setenv(name, str(folder))
    return list(named.values())


def test_roots_that_the_next_proxy_trusts_cannot_be_written_to(roots: list[Path]) -> None:
    """Whichever variable names them: in a sandbox they can be read only."""
    need("a sandbox")
    code = f"{ASK}PATHS = {list(map(str, roots))}\n{_APPEND}"
    done = playhead("replay", "tape", "--in-place", "--", sys.executable, "-S", "-c", code)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["Read-only file system"] * len(roots)


def test_roots_that_the_next_proxy_trusts_are_compared(roots: list[Path]) -> None:
    """Outside of a sandbox each that was written to is said, and one that appears in a folder of roots."""
    paths = [*map(str, roots), str(roots[-1].with_name("new.pem"))]
    code = f"{ASK}PATHS = {paths}\n{_APPEND}"
    flags = ("--no-sandbox", "--receipt", "receipts/receipt.json")
    done = playhead("replay", "tape", "--in-place", *flags, "--", sys.executable, "-S", "-c", code)
    assert done.returncode == 125, done.stderr
    told = json.loads(Path("receipts/receipt.json").read_text())["changed"]
    assert sorted(row["path"] for row in told) == sorted(paths)


@pytest.fixture
def archive(place: Path) -> Path:
    """An archive that the configuration names, with one batch of two files."""
    (place / "playhead.yaml").write_text("store: store\nretention: {archive: archive}\n")
    for name in ("steps", "runs"):
        (place / "archive" / name).mkdir(parents=True)
        (place / "archive" / name / "batch.parquet").write_text(name)
    return place / "archive"


_SPOIL = f"""{ASK}
import pathlib
for path in pathlib.Path("archive").rglob("*.parquet"):
    print(path)
    path.write_text("other")
"""


def test_an_archive_is_hidden_from_a_command(archive: Path) -> None:
    """It finds an empty folder, and what it writes there is gone."""
    need("a sandbox")
    code = f"{_SPOIL}\nopen('archive/new', 'w').close()"
    done = playhead("replay", "tape", "--in-place", "--", sys.executable, "-S", "-c", code)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert sorted(path.name for path in archive.iterdir()) == ["runs", "steps"]
    assert (archive / "steps" / "batch.parquet").read_text() == "steps"


def test_a_change_of_an_archive_is_said(archive: Path) -> None:
    """Outside of a sandbox: 125, and each file of it."""
    done = playhead(
        "replay", "tape", "--in-place", "--no-sandbox", "--", sys.executable, "-S", "-c", _SPOIL
    )
    assert done.returncode == 125, done.stderr
    for name in ("steps", "runs"):
        path = archive / name / "batch.parquet"
        assert f"{path}: a file of the archive has another content" in done.stderr


class _Runs:
    """Runs that are in archives."""

    def __init__(self, *batches: str) -> None:
        """One run in each batch."""
        self._runs = [SimpleNamespace(archived=SimpleNamespace(batch=one)) for one in batches]

    def all(self) -> list[Any]:
        """List them."""
        return [*self._runs, SimpleNamespace(archived=None)]


def test_what_other_commands_do_to_an_archive_is_no_change(archive: Path) -> None:
    """A batch more, and one less that no run needs any more; a missing one that a run needs is a change."""
    nowhere = archive.parent / "nowhere"
    before = ArchivedFiles([archive, nowhere])
    (archive / "steps" / "batch.parquet").unlink()
    (archive / "steps" / "new.parquet").touch()
    assert list(before.compare(cast(Store, SimpleNamespace(runs=_Runs("new"))))) == []
    (archive / "runs" / "batch.parquet").unlink()
    nowhere.mkdir()
    said = {
        row["path"]: row["what"]
        for row in before.compare(cast(Store, SimpleNamespace(runs=_Runs("batch"))))
    }
    assert said == {
        str(nowhere): "the archive's folder was not there before",
        str(archive / "runs" / "batch.parquet"): "a file of the archive is gone",
        str(archive / "steps" / "batch.parquet"): "a file of the archive is gone",
    }


def test_nothing_in_the_root_folder_is_replaced_by_a_contained_command(place: Path) -> None:
    """By `/lib` and `/bin`, links there, the next start loads its libraries; the folders in it are written to as ever."""
    need("root")
    name = Path(f"/playhead-{os.getpid()}")
    code = f"""
try:
    os.symlink("/nowhere", {str(name)!r})
except OSError as error:
    print(error.strerror)
os.rmdir(__import__("tempfile").mkdtemp(dir="/var/tmp"))
"""
    try:
        done = playhead(
            "replay", "tape", "--in-place", "--", sys.executable, "-S", "-c", ASK + code
        )
        assert not name.is_symlink()
    finally:
        name.unlink(missing_ok=True)
    assert (done.returncode, done.stdout) == (0, "Read-only file system\n"), done.stderr


def test_names_in_the_root_folder_are_compared(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A link that leads elsewhere, one that is gone, a new folder of libraries; no folder of another name."""
    root = place / "root"
    root.mkdir()
    for name in ("bin", "lib", "home"):
        (root / name).symlink_to(f"usr/{name}")
    monkeypatch.setattr(tampering, "_ROOT", str(root))
    before = tampering.Baseline(Config(store=place / "store"), config_file=None, folders=[])
    assert before.compare() == []
    for name in ("home", "lib"):
        (root / name).unlink()
    (root / "lib").symlink_to("/nowhere")
    for name in ("lib32", "srv"):
        (root / name).mkdir()
    said = {row["path"].removeprefix(f"{root}/"): row["what"] for row in before.compare()}
    assert said.keys() == {"home", "lib", "lib32"}
    assert said["lib"] == "the link led to 'usr/lib' before, and leads to '/nowhere' now"


def test_no_folder_of_the_environment_is_imported_from(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A module of the agent's that has the name of one that Playhead imports is not taken for it."""
    monkeypatch.setenv("PYTHONPATH", ".")
    for name in ("difflib", "click", "yaml", "lmdb"):
        (place / f"{name}.py").write_text("raise SystemExit(99)")
    assert playhead("--version").returncode == 0
    assert playhead("runs", "--store", "store").returncode == 0


MAKES: dict[str, Callable[[Path], None]] = {
    "a link": lambda path: path.symlink_to(path.parent / "victim"),
    "a folder": Path.mkdir,
    "no file": os.mkfifo,
}


@pytest.mark.parametrize("what", MAKES)
def test_a_receipt_is_written_through_nothing(place: Path, what: str) -> None:
    """What stands there before is refused before anything is run."""
    MAKES[what](place / "receipts" / "receipt.json")
    done = playhead("replay", "tape", "--receipt", "receipts/receipt.json", "--", "touch", "ran")
    assert done.returncode == 125
    assert f"it is {what}" in done.stderr
    assert not (place / "ran").exists()
    assert not (place / "receipts" / "victim").exists()


def test_a_receipt_takes_the_place_of_what_a_command_put_there(place: Path) -> None:
    """A link is replaced, and never followed; a folder cannot be, and that is 125."""
    receipt = place / "receipts" / "receipt.json"
    words = ("replay", "tape", "--in-place", "--receipt", receipt, "--", sys.executable, "-S", "-c")
    done = playhead(*words, f"{ASK}os.symlink({str(place / 'victim')!r}, {str(receipt)!r})")
    assert done.returncode == 0, done.stderr
    assert receipt.stat(follow_symlinks=False).st_mode & 0o177777 == 0o100600
    assert not (place / "victim").exists()
    receipt.unlink()
    done = playhead(*words, f"{ASK}os.mkdir({str(receipt)!r})")
    assert done.returncode == 125
    assert "cannot write the receipt" in done.stderr
    shutil.rmtree(receipt)


def test_a_receipt_is_checked_by_its_signature(place: Path, tmp_path: Path) -> None:
    """As it was written, and printed again; not with another word, another store's, a key twice, or none."""
    receipt = place / "receipts" / "receipt.json"
    done = playhead("replay", "tape", "--receipt", receipt, "--", sys.executable, "-S", "-c", ASK)
    assert done.returncode == 0, done.stderr
    text = receipt.read_text()

    def verified(made: str, *flags: str) -> tuple[int, str]:
        receipt.write_text(made)
        done = playhead("verify", "--receipt", receipt, *flags)
        return done.returncode, done.stdout

    code, said = verified(text)
    assert code == 0
    assert "the receipt of run tape@1, as key" in said
    assert verified(json.dumps(json.loads(text), sort_keys=True))[0] == 0
    assert verified(playhead("receipt", "tape@1", "--json").stdout)[0] == 0
    made = json.loads(text)
    for wrong, why in {
        text.replace('"requests": 1', '"requests": 2'): "was changed after it was signed",
        text.replace("{\n", '{\n  "faithful": false,\n', 1): "is there twice",
        json.dumps({**made, "more": 1}): "was changed after it was signed",
        json.dumps({**made, "signature": {**made["signature"], "value": "x"}}): "was changed",
        json.dumps({key: made[key] for key in made if key != "signature"}): "is not signed",
        json.dumps({**made, "signature": {**made["signature"], "key": "0" * 16}}): "another store",
        "[]": "is no receipt of a run",
        "x": "is no JSON",
    }.items():
        code, said = verified(wrong)
        assert code == 1
        assert why in said
        shown = json.loads(verified(wrong, "--json")[1])
        assert shown["signed"] is False
        assert why in shown["problem"]
    with Store.open(tmp_path / "other") as opened:
        record_run(opened, "tape", [ask()])
    code, said = verified(text, "--store", "other")
    assert code == 1
    assert "this store has no key of receipts" in said
    assert playhead("verify", "--receipt", "missing.json").returncode == 2
    assert playhead("verify", "--receipt", receipt, "tape").returncode == 2


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the store of a recording, `first`."""
    folder = tmp_path_factory.mktemp("recording")
    done = playhead("record", "--run", "first", "--store", folder / "store", "--", "true")
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def recorded(recording: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it, in which we are."""
    shutil.copytree(recording, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", ["log.lmdb/data.mdb", "private/receipt.key"])
def test_a_store_with_a_second_name_is_refused(recorded: Path, name: str) -> None:
    """What a backup by `cp -al` leaves is within reach of the command: nothing is run, and the path is named."""
    os.link(recorded / "store" / name, recorded / "again")
    done = playhead("replay", "first", "--store", "store", "--", "touch", "ran")
    assert done.returncode == 125
    assert f"{recorded / 'store' / name} has a second name" in done.stderr
    assert "cp -a, not cp -al" in done.stderr
    assert not (recorded / "ran").exists()


@pytest.mark.parametrize("name", ["private", "log.lmdb", "log.lmdb/data.mdb"])
@pytest.mark.parametrize("way", ["link", "owner"])
def test_a_store_that_is_not_ones_own_is_refused(recorded: Path, name: str, way: str) -> None:
    """A link, or another user's: it is neither read nor written, and left as it is."""
    path = recorded / "store" / name
    if way == "link":
        path.rename(recorded / "moved")
        path.symlink_to(recorded / "moved")
    elif os.geteuid() == 0:
        os.chown(path, SOMEBODY, SOMEBODY)
    else:
        pytest.skip("only root can make it somebody else's")
    done = playhead("record", "--run", "more", "--store", "store", "--", "true")
    assert done.returncode == 2, done.stderr
    assert ("is a link to" if way == "link" else f"belongs to user {SOMEBODY}") in done.stderr
    done = playhead("replay", "first", "--store", "store", "--", "true")
    assert done.returncode == 125
