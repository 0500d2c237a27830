"""Fixtures that every test may use."""

import gc
import itertools
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import certifi
import certifi.core
import pytest
from hypothesis import settings
from hypothesis.internal.conjecture import providers

from playhead.proxy.trust.client_root_certificates import ADDED_BY, NAMED_BY
from playhead.tape.diff.divergence_types import Divergence
from playhead.tests.support.certificates import Certificates, make_certificates
from playhead.tests.support.collecting import COLLECTED, circumstances, look
from playhead.tests.support.counts import count_cases, is_sampled, sample, tell_worker
from playhead.tests.support.divergences import check_divergence
from playhead.tests.support.fast import is_fast, refuse_processes
from playhead.tests.support.messages import say_less

# The many processes that tests start would each compile all they import: half of their time. And pytest would
# rewrite the assertions of every test file again in every run and in every worker.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

_OBJECTS = (50_000, 20, 100)
"""After how many is garbage looked for: for each 2000, as by default, it takes a fifteenth of all time."""

# The allocator gives large bodies back to the kernel and asks for them again, page by page: half of the time of what
# sends them. Of our workers and of all that they start; both limits are otherwise 128 KiB, and grow.
os.environ["MALLOC_TRIM_THRESHOLD_"] = f"{128 << 20}"
os.environ["MALLOC_MMAP_THRESHOLD_"] = f"{32 << 20}"

# A hundred and fifty roots cost every client 25 ms each time it reads them, and every store more. One stands for
# them, unless everything is counted; its key is gone. What is done with the system's own: proxy/trust/test_client_root_certificates.py.
if not os.environ.get("PLAYHEAD_FULL"):
    for name in (*NAMED_BY, *ADDED_BY):
        os.environ.pop(name, None)
    ONE_ROOT = str(Path(__file__).with_name("support") / "one_root.pem")
    os.environ["SSL_CERT_FILE"] = ONE_ROOT
    # Of clients that do without the environment.
    certifi.where = certifi.core.where = lambda: ONE_ROOT

# How often a property is tried where it does not say itself; how long it takes says nothing on a shared machine.
settings.register_profile("reduced", max_examples=10, deadline=None)
settings.register_profile("full", max_examples=500, deadline=None)
settings.load_profile("full" if os.environ.get("PLAYHEAD_FULL") else "reduced")
# With some ten examples hardly any is one of the constants for which it would read all our modules, in each worker.
if not os.environ.get("PLAYHEAD_FULL") and hasattr(providers, "_get_local_constants"):
    providers._get_local_constants = lambda: providers._local_constants


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Name bytes that are no text by their argument: what was compressed holds the time."""
    if isinstance(val, bytes) and not (val.isascii() and val.decode().isprintable()):
        return argname  # pytest numbers those that are alike
    return None


def pytest_addoption(parser: pytest.Parser) -> None:
    """Have an option for what `just fast` runs."""
    parser.addoption("--fast", action="store_true", help="only tests that start no process")


def pytest_configure(config: pytest.Config) -> None:
    """Have workers send what is read of them."""
    say_less(config)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """With --fast pass over what starts processes, before it is imported."""
    if config.getoption("--fast") and collection_path.name.startswith("test_"):
        return (collection_path.suffix == ".py" and not is_fast(collection_path)) or None
    return None


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> object:
    """Give files to workers by a scheduler of ours."""
    if config.getoption("dist") != "loadfile":
        return None
    from playhead.tests.support.scheduling import FileScheduling

    return FileScheduling(config, log)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Look for no garbage meanwhile: ten thousand tests are no garbage, and would be looked at again and again."""
    gc.disable()
    try:
        with circumstances(session.config):
            return (yield)
    finally:
        gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell a worker whether tables are run in part."""
    tell_worker(node.config, node.workerinput)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    """Keep what was collected: out of every collection of garbage to come, and for a test that compares it.

    Then leave out a part of the long tables.
    """
    gc.freeze()
    gc.set_threshold(*_OBJECTS)
    config = session.config
    config.stash[COLLECTED] = look(session)
    if is_sampled(config):
        session.items, rest = sample(session.items, count_cases)
        config.hook.pytest_deselected(items=rest)
    if config.getoption("--fast") and not config.getoption("numprocesses", 0):  # we run the tests
        sys.addaudithook(refuse_processes)


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """A root and a leaf for loopback, the same for the whole session."""
    return make_certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(autouse=True, scope="session")
def _divergences_keep_their_schema() -> Iterator[None]:
    """Hold every divergence that a test makes against the schema that is shipped."""
    render = Divergence.to_json

    def checked(self: Divergence) -> dict[str, Any]:
        made = render(self)
        check_divergence(made)
        return made

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Divergence, "to_json", checked)
        yield


@pytest.fixture(autouse=True, scope="session")
def _in_an_empty_folder() -> Iterator[None]:
    """Run where there is nothing: a replay looks at all files below its folder, before its command and after it."""
    with (
        tempfile.TemporaryDirectory(prefix="here-") as folder,
        pytest.MonkeyPatch.context() as patch,
    ):
        os.chmod(folder, 0o755)  # commands of other users run there too
        patch.chdir(folder)
        yield


@pytest.fixture(autouse=True, scope="session")
def _forked_from_the_same(request: pytest.FixtureRequest) -> None:
    """Have all workers fork programs from processes that they share: each would import the same again."""
    prepared = sys.modules.get("playhead.tests.support.prepared")
    if prepared is not None and hasattr(request.config, "workerinput"):
        base = request.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]
        prepared.share(base.parent / "shared")


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Remove the folders of all tests once all have passed: pytest would, folder by folder, after three more runs."""
    config = session.config
    if exitstatus or hasattr(config, "workerinput") or config.option.basetemp:
        return
    base = config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]
    if config.getoption("--fast"):
        shutil.rmtree(base, ignore_errors=True)
    else:
        subprocess.run(["rm", "-rf", base], check=False)


_NO_WORD = re.compile(r"\W")
_NUMBERS = itertools.count()


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a test. Pytest's own also names the newest of each name by a link, and resolves what it makes."""
    name = _NO_WORD.sub("_", request.node.name)[:30]
    path = tmp_path_factory.getbasetemp() / f"{name}{next(_NUMBERS)}"
    path.mkdir(mode=0o700)
    return path


@pytest.fixture
def store_dir(tmp_path: Path) -> Path:
    """Folder for a store."""
    return tmp_path / "store"
