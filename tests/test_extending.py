"""`docs/extending.md`: what is added as the page says works, and changes at most three files of the product."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import playhead

ROOT = Path(playhead.__file__).resolve().parent
PAGE = (ROOT / "docs" / "extending.md").read_text("utf-8")
TASKS = dict(re.findall(r"^## Add an? ([a-z ]+)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))
_BLOCK = re.compile(r"^```python\n# (\S+) \(([^\n]*)\)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MOST_FILES = 3


class Copy:
    """The package with some files changed, and links to the others."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.changed: set[str] = set()

    def add(self, name: str, where: str, lines: str) -> None:
        """Put lines where a block of the page says."""
        path = self.own(name)
        self.changed.add(name)
        old = "" if where == "new" else path.read_text("utf-8")
        at = _place(old, where)
        path.unlink(missing_ok=True)
        path.write_text(old[:at] + lines + old[at:], "utf-8")

    def own(self, name: str) -> Path:
        """Make the folders on the way to a file folders of the copy."""
        place, source = self.folder / "playhead", ROOT
        for step in (*Path(name).parts, ""):
            if place.is_symlink() or not place.exists():
                place.unlink(missing_ok=True)
                place.mkdir()
                for one in source.iterdir():
                    if not one.name.startswith((".", "__pycache__", "build")):
                        (place / one.name).symlink_to(one)
            place, source = place / step, source / step
            if not source.is_dir():
                break
        return place

    def run(self, code: str) -> str:
        """Run Python with this package; give what it printed."""
        given = {**os.environ, "PYTHONPATH": str(self.folder), "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(
            [sys.executable, "-P", "-c", code], capture_output=True, text=True, env=given, cwd=self.folder
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout


def _place(text: str, where: str) -> int:
    """Find where in a file a block belongs."""
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    what, _, name = where.partition(" ")
    if what == "new":
        return 0
    if what == "imports":
        return next(
            starts[at] for at, line in enumerate(text.splitlines()) if line.startswith("from .")
        )
    if what == "above":
        return next(
            starts[at] for at, line in enumerate(text.splitlines()) if line.strip().startswith(name)
        )
    assert what == "in", where
    for node in ast.parse(text).body:
        if isinstance(node, ast.ClassDef) and node.name == name:
            return starts[node.end_lineno or 0]
        targets = [node.target] if isinstance(node, ast.AnnAssign) else getattr(node, "targets", [])
        if any(isinstance(one, ast.Name) and one.id == name for one in targets):
            return starts[(node.end_lineno or 0) - 1]
    raise AssertionError(f"nothing is called {name!r}")


TRIED = {
    "dialect": (
        """
from playhead.config import Classes
from playhead.tape.classify.by_method_and_url import classify
from playhead.tape.dialects import read_request
from playhead.proxy.run_again.fill_in_credential import VARIABLES
from playhead.tape.exchange import Request
asked = Request("POST", "https", "api.acme.example", 443, "/v1/talk", "HTTP/1.1", (), b'{"prompt": "hi"}')
print(*VARIABLES["api.acme.example"], read_request(asked).messages[0].parts[0].text, classify("POST", "https", asked.host, 443, "/v1/talk", Classes()).of.value)
""",
        "ACME_API_KEY hi inference\n",
    ),
    "fault": (
        """
from playhead.config import loads
from playhead.tape.faults.kinds import find_kind
from playhead.tape.playback.script import Step, StepKind
from playhead.tape.policy.faults import Injection
rule = loads("faults: [{match: 'https://a', inject: empty}]").faults[0]
steps = [Step(0, StepKind.HEAD), Step(1, StepKind.DATA, b"x"), Step(2, StepKind.END)]
print(*(step.kind.name for step in find_kind(Injection(rule, 1)).lay_over(steps, Injection(rule, 1))))
from playhead.tape.records.events import Event, EventKind
from playhead.tests.support.exchanges import make_exchange
from playhead.timeline.reading.substituted_answer import find_given
told = Event(EventKind.INJECTED, 1, {"inject": "empty", "rule": "r"})
print(find_given(make_exchange(), "night seq 1", [told]).response.body)
""",
        "HEAD END\nb''\n",
    ),
    "stub kind": (
        """
from playhead.config import loads
from playhead.tape.exchange import Request
from playhead.tape.stubs.kinds import KINDS, make_configured
given = loads("effects: [{match: 'https://a', answer: {kind: echo, status: 201}}]").effects[0].answer
asked = Request("POST", "https", "a", 443, "/", "HTTP/1.1", (), b"said")
made = make_configured(given, asked)
print(made.status, made.body.decode(), KINDS[given.kind].words)
from playhead.tests.support import reference
print("`echo`: the body of the request" in reference.page("<!-- keys: effects[].answer.* -->\\n"))
""",
        "201 said effect rule, which echoes\nTrue\n",
    ),
    "export format": (
        """
import asyncio
from pathlib import Path
from click.testing import CliRunner
from playhead.proxy.cli import cli
from playhead.store import Store
from playhead.tests.support.stored import record_all
async def record():
    store = Store.open(Path("store"))
    await record_all(store)
    store.close()
asyncio.run(record())
done = CliRunner().invoke(cli, ["export", "night", "--store", "store", "--urls", "urls.txt"], standalone_mode=False)
assert done.return_value == 0, done
print(Path("urls.txt").read_text().splitlines()[0])
""",
        "https://",
    ),
    "exit code": (
        """
from playhead.tape.exit_codes import ExitCode
from playhead.tests.support import reference
from playhead.timeline import Receipt, exit_code, render_receipt
made = Receipt("r@1", "r", "playback", "sealed")
made.parts.requests.total = 1
made.hints.append({"text": "slow"})
print(exit_code(made), render_receipt(made).splitlines()[-1])
print(exit_code(made).word)
print("| 124 | `replay` | a request was slow |" in reference.commands((reference.ROOT / "docs/commands.md").read_text()))
""",
        "124 exit code 124: a request was slow\nslow\nTrue\n",
    ),
    "key": (
        """
import json
from playhead.config import ConfigError, loads
from playhead.tests.support import reference
print(loads("limits: {pause: 2m}").limits.pause_s, loads("").limits.pause_s)
try:
    loads("limits: {pause: soon}", "f")
except ConfigError as error:
    print(str(error)[:40])
page = reference.page("<!-- keys: limits.* -->\\n")
print("pause" in json.loads(reference.schema())["$defs"]["Limits"]["properties"], page.splitlines()[-1])
""",
        "120.0 1.0\nf:1:17: limits.pause: 'soon' is no durat\n"
        "True | `limits.pause` | `1s` | How long a run pauses at a limit. |\n",
    ),
}
"""What is tried of each task, and how what it prints begins."""


def test_each_task_of_the_page_is_tried() -> None:
    """No heading is without a test."""
    assert set(TASKS) == set(TRIED)


@pytest.mark.parametrize("task", TRIED)
def test_what_the_page_adds_works(task: str, tmp_path: Path) -> None:
    """Its blocks, put where they say, into at most three files."""
    copy = Copy(tmp_path)
    for name, where, lines in _BLOCK.findall(TASKS[task]):
        copy.add(name, where, lines)
    assert 1 <= len(copy.changed) <= MOST_FILES
    code, printed = TRIED[task]
    assert copy.run(code).startswith(printed)
