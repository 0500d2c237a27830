"""Blocks that the pages show: each command is one that Playhead takes, and each configuration one that it reads.

Every line is parsed by the command line itself, with its flags. Whole pages are run by the tests of `RUN`; of each other
page `NOT_RUN` has the reason.
"""

import re
import shlex
from pathlib import Path

import click
import pytest

import playhead
from playhead.config import Config, loads
from playhead.proxy import cli

ROOT = Path(playhead.__file__).resolve().parent
PAGES = {
    path.relative_to(ROOT).as_posix(): path.read_text("utf-8")
    for path in sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("examples/*/*.md")])
}
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_SHELL = ("", "sh", "bash", "console")
_LINE = re.compile(
    r"^(?:\$ )?(?:uv run )?(?:[A-Z_]+=\S* )*(?:kubectl exec .*? -- |git bisect run )?playhead (?!:)(.*)$"
)

RUN = {
    "CONTRIBUTING.md": ".ci/run",
    "README.md": ".ci/bare",
    "docs/ci.md": "tests/journeys/test_guides.py",
    "docs/java.md": "tests/journeys/test_guides.py",
    "docs/kubernetes.md": "tests/journeys/test_guides.py",
    "docs/node.md": "tests/journeys/test_guides.py",
    "docs/s3.md": "tests/proxy/operations/test_archive_bucket.py",
    "docs/troubleshooting.md": "tests/journeys/test_troubleshooting.py",
    "docs/tutorial.md": "tests/journeys/test_tutorial.py",
}
NOT_RUN = {
    "docs/agents.md": "names stand for the reader's own; `just agents` runs them: tests/agents/__main__.py",
    "docs/ask.md": "it asks a real model: tests/journeys/test_ask.py",
    "docs/bisect.md": "it takes two runs of the reader's agent: tests/journeys/test_bisect.py",
    "docs/blame.md": "the story is that of the tutorial, shortened: tests/proxy/commands/test_look_back.py",
    "docs/branch.md": "it asks a real model: tests/journeys/test_branch.py",
    "docs/breakpoints.md": "it waits for lines that are typed: tests/journeys/test_break.py",
    "docs/cache.md": "it takes a provider's counts: tests/timeline/cache",
    "docs/clients.md": "the shells may be missing here: tests/proxy/trust/test_env_files.py",
    "docs/determinism.md": "names stand for the reader's own: tests/journeys/test_determinism.py",
    "docs/docker.md": "it takes an engine: tests/docker",
    "docs/encryption.md": "the key would be outside of the folder: tests/journeys/test_encryption.py",
    "docs/explore.md": "it asks a real model: tests/journeys/test_explore.py",
    "docs/files.md": "the agent is the reader's own: tests/journeys/test_folder.py",
    "docs/import.md": "the run is the reader's own: tests/proxy/operations/test_tape_files.py",
    "docs/package.md": "they are those of README.md, tried by `just package`: tests/support/package.py",
    "docs/resume.md": "it takes a crash: tests/journeys/test_resume.py",
    "docs/sandbox.md": "names stand for the reader's own: tests/journeys/test_sandbox.py",
    "docs/sweep.md": "it asks a real model: tests/journeys/test_sweep.py",
    "docs/tasks.md": "the agent is the reader's own: tests/journeys/test_same_task.py",
    "docs/ui.md": "it goes on until Ctrl-C: tests/web",
    "examples/claude_code/README.md": "`just agents` runs it: tests/agents/__main__.py",
    "examples/codex/README.md": "`just agents` runs it: tests/agents/__main__.py",
    "examples/crewai/README.md": "`just agents` runs it: tests/agents/__main__.py",
    "examples/docker_image/README.md": "it takes an engine: .ci/docker",
    "examples/gemini_cli/README.md": "`just agents` runs it: tests/agents/__main__.py",
    "examples/langgraph/README.md": "`just agents` runs it: tests/agents/__main__.py",
    "examples/mcp/README.md": "`just agents` runs it: tests/agents/__main__.py",
    "examples/openai_agents/README.md": "`just agents` runs it: tests/agents/__main__.py",
    "examples/playwright/README.md": "`just agents` runs it: tests/agents/__main__.py",
    "examples/vercel_ai/README.md": "`just agents` runs it: tests/agents/__main__.py",
}
"""Why a page's commands are not run word by word, and what runs the same ones. The pages of commands show usage, read by tests/test_docs.py."""


def shown(page: str) -> list[str]:
    """Give the commands of ours in a page's blocks, without `playhead`; lines that go on are one."""
    found = []
    for kind, text in _FENCE.findall(PAGES[page]):
        if kind in _SHELL:
            for line in re.sub(r"\\\n\s*", "", text).splitlines():
                if (match := _LINE.match(line)) and "[" not in match[1].split(" -- ")[0]:
                    found.append(match[1])
    return found


SHOWN = [(page, line) for page in PAGES for line in shown(page)]


@pytest.mark.parametrize(("page", "line"), SHOWN, ids=str)
def test_each_command_is_one_that_is_taken(page: str, line: str) -> None:
    """Its flags are there, and nothing that it needs is missing; nothing is run."""
    words = shlex.split(re.split(r" (?:>>?|\|) ", line)[0], comments=True)
    command = cli.cli.commands[words[0]]
    # Files need not be there.
    paths = [one.type for one in command.params if isinstance(one.type, click.Path)]
    with pytest.MonkeyPatch.context() as patch:
        for path in paths:
            patch.setattr(path, "exists", False)
        command.make_context(words[0], words[1:])


def test_each_page_with_commands_says_what_runs_them() -> None:
    """And no page does that has none."""
    with_commands = {page for page, _ in SHOWN if not page.startswith("docs/commands")}
    assert sorted(with_commands | {"docs/troubleshooting.md"}) == sorted([*RUN, *NOT_RUN])
    for page, reason in (RUN | NOT_RUN).items():
        assert (ROOT / reason.rpartition(": ")[2]).exists(), page


YAML = [
    (page, text) for page in PAGES for kind, text in _FENCE.findall(PAGES[page]) if kind == "yaml"
]
OTHER_YAML = {
    "answers": "a file of `--answers`",
    "apiVersion": "for Kubernetes",
    "name": "a workflow",
    "profile": "a profile of a client",
    "run": "a sweep, or a schedule of faults",
}
"""Blocks that are no configuration of ours, by their first key."""


@pytest.mark.parametrize(("page", "text"), YAML, ids=lambda value: value.partition("\n")[0][:40])
def test_each_configuration_is_one_that_is_read(page: str, text: str) -> None:
    """It can be copied as it is shown."""
    first = re.search(r"^(\w+):", text, re.MULTILINE)
    if first is None or first[1] not in OTHER_YAML:
        assert loads(text) != Config(), page
