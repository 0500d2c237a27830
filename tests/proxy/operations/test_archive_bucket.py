"""An archive in a bucket: the same as in a folder, and shared by many who know nothing of each other."""

import asyncio
import os
import re
import shlex
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import playhead
from playhead import PlayheadError
from playhead.config.archive_url import parse_archive
from playhead.proxy.cli import cli
from playhead.store import Store
from playhead.tests.support import prepared
from playhead.tests.support.stored import all_of, record_all

FULL = bool(os.environ.get("PLAYHEAD_FULL"))
HOSTS, ROUNDS = (8, 4) if FULL else (4, 1)
RUNS = ("night", "day")
CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "testing",
    "AWS_SECRET_ACCESS_KEY": "not-a-secret",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
}


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    """A server of S3's interface, on loopback."""
    # Here: every process that runs tests collects this file.
    from moto import backends
    from moto.server import ThreadedMotoServer

    # Else each request lists a folder of hundreds, twice.
    modules = frozenset(backends.list_of_moto_modules())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(backends, "list_of_moto_modules", lambda: modules)
        server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
        server.start()
        host, port = server.get_host_and_port()
        yield f"{host}:{port}"
        server.stop()


@pytest.fixture
def bucket(endpoint: str, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Any:
    """A bucket of its own, with credentials in the environment."""
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    from pyarrow import fs

    system = _system(endpoint)
    name = f"b{abs(hash(request.node.nodeid))}"
    system.create_dir(name)
    return fs.SubTreeFileSystem(name, system)


def _system(endpoint: str) -> Any:
    from pyarrow import fs

    return fs.S3FileSystem(
        endpoint_override=endpoint, scheme="http", allow_bucket_creation=True, region="us-east-1"
    )


def configure(folder: Path, endpoint: str, bucket: Any) -> Path:
    """Write the configuration of a store that archives into a bucket."""
    config = folder / "playhead.yaml"
    name = bucket.base_path.strip("/")
    config.write_text(
        f"store: {folder / 's'}\n"
        f"retention: {{hot: 0s, archive: 's3://{name}/fleet?endpoint_override=http://{endpoint}&region=us-east-1'}}\n"
    )
    return config


def done(config: Path, *arguments: str) -> str:
    """Run a command that works."""
    made = CliRunner().invoke(cli, [*arguments, "-c", str(config)], standalone_mode=False)
    assert (made.exception, made.return_value or 0) == (None, 0), made.output
    return made.stdout


def record(folder: Path, names: tuple[str, ...] = RUNS) -> Path:
    """Make a store with some runs."""
    folder.mkdir(exist_ok=True)
    with Store.open(folder / "s") as store:
        for name in names:
            asyncio.run(record_all(store, name))
    return folder / "s"


def everything(path: Path, name: str) -> tuple[Any, ...]:
    """All that a store holds of a run, but its row."""
    with Store.open(path, readonly=True) as store:
        return all_of(store, name)[1:]


def query(bucket: Any, folder: str, sql: str) -> list[tuple[Any, ...]]:
    """Ask DuckDB about the files of a folder."""
    import duckdb
    from pyarrow import dataset as ds

    found = ds.dataset(f"fleet/{folder}", filesystem=bucket, format="parquet")
    with duckdb.connect() as connection:
        return connection.register("found", found).execute(sql).fetchall()


def test_a_bucket_is_as_good_as_a_folder(tmp_path: Path, endpoint: str, bucket: Any) -> None:
    """Out and back byte for byte; and erased, nothing is left in it."""
    from pyarrow import fs

    path = record(tmp_path)
    before = {name: everything(path, name) for name in RUNS}
    config = configure(tmp_path, endpoint, bucket)
    assert "2 archived" in done(config, "archive")
    done(config, "show", "night", "3")
    for name in RUNS:
        done(config, "verify", name)
        done(config, "receipt", name)
    assert {name: everything(path, name) for name in RUNS} == before
    rows = query(bucket, "steps", "SELECT run, seq FROM found ORDER BY ALL")
    assert rows == [(name, seq) for name in sorted(RUNS) for seq in (1, 3, 4)]
    done(config, "erase", "day", "--yes")
    assert query(bucket, "exchanges", "SELECT DISTINCT run FROM found") == [("night",)]
    done(config, "erase", "night", "--yes")
    left = bucket.get_file_info(fs.FileSelector("", recursive=True))
    assert [info.path for info in left if info.is_file] == []


def test_the_guide(
    tmp_path: Path, endpoint: str, bucket: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """docs/s3.md: its configuration, with the bucket of here, and its commands."""
    page = Path(playhead.__file__).with_name("docs").joinpath("s3.md").read_text("utf-8")
    install, *typed = re.findall(r"^(?:playhead|pip) .+$", page, re.MULTILINE)
    (text,) = re.findall(r"^```yaml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    name = bucket.base_path.strip("/")
    place = f"s3://{name}/agents?region=us-east-1&endpoint_override=http://{endpoint}"
    shown = "s3://traces/agents?region=eu-west-1"
    assert shown in text
    config = tmp_path / "playhead.yaml"
    config.write_text(f"store: s\n{text.replace(shown, place)}")
    path = record(tmp_path, ("mine",))
    before = everything(path, "mine")
    monkeypatch.chdir(tmp_path)
    assert install == "pip install 'playhead[archive]'"
    printed = [done(config, *shlex.split(line)[1:]) for line in typed]
    assert [line.split()[1] for line in typed] == ["archive", "archive", "runs", "show", "verify"]
    assert "1 archived" in printed[1]
    assert "archived" in printed[2]
    assert everything(path, "mine") == before


def test_many_hosts_share_a_bucket(tmp_path: Path, endpoint: str, bucket: Any) -> None:
    """They archive at the same time, runs of the same names: nothing is lost, and nothing is there twice."""
    hosts = [tmp_path / f"host-{number}" for number in range(HOSTS)]
    configs = [configure(_made(host), endpoint, bucket) for host in hosts]
    for _ in range(ROUNDS):
        for host in hosts:
            record(host)
        started = [
            prepared.start([*prepared.OURS, "archive", "-c", config], stdout=subprocess.DEVNULL)
            for config in configs
        ]
        assert [process.wait(timeout=100) for process in started] == [0] * HOSTS
    total = HOSTS * ROUNDS * len(RUNS)
    steps = query(bucket, "steps", "SELECT archive_id, seq FROM found")
    assert len(steps) == len(set(steps)) == total * 3
    assert Counter(seq for _, seq in steps) == {1: total, 3: total, 4: total}
    told = query(bucket, "runs", "SELECT archive_id FROM found")
    assert len(set(told)) == len(told) == total
    ids = set()
    for host, config in zip(hosts, configs, strict=True):
        with Store.open(host / "s", readonly=True) as store:
            ids |= {
                (run.archived.id,)
                for run in store.runs.all()
                if run.archived and run.is_only_in_archive
            }
            names = [run.id for run in store.runs.all()]
        assert len(names) == ROUNDS * len(RUNS)
        done(config, "verify", names[-1])
    assert ids == set(told)


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def test_a_bucket_that_is_not_there_moves_nothing(
    tmp_path: Path, endpoint: str, bucket: Any
) -> None:
    """It is named; credentials are not."""
    path = record(tmp_path, ("night",))
    config = configure(tmp_path, endpoint, bucket)
    config.write_text(config.read_text().replace("s3://b", "s3://other-b"))
    made = CliRunner().invoke(cli, ["archive", "-c", str(config)], standalone_mode=False)
    assert isinstance(made.exception, PlayheadError)
    assert "s3://other-b" in str(made.exception)
    assert CREDENTIALS["AWS_SECRET_ACCESS_KEY"] not in str(made.exception) + made.exception.hint
    with Store.open(path, readonly=True) as store:
        assert not store.runs.get("night").is_only_in_archive


def test_an_object_that_was_broken_off_is_not_there(endpoint: str, bucket: Any) -> None:
    """However much of it was sent: a bucket makes an object of whatever is ended."""
    from playhead.store.archive.storage import Place

    name = bucket.base_path.strip("/")
    where = f"s3://{name}/fleet?endpoint_override=http://{endpoint}&region=us-east-1"
    place = Place(parse_archive(where, Path))

    def broken_off() -> None:
        with place.writing("events", "go") as file:
            file.write(bytes(6 << 20))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        broken_off()
    assert place.batches("events") == []
    with place.writing("events", "go") as file:
        file.write(b"all")
    assert place.batches("events") == ["go"]
