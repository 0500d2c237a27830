"""The site of the documentation: every page is in its navigation, and links lead to what is outside of docs/, too.

`.ci/docs` builds it, with dead links as errors; here it is built where mkdocs is installed.
"""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import playhead

ROOT = Path(playhead.__file__).resolve().parent
STAGE = ROOT / ".ci/docs"
_PAGE = re.compile(r"^ +- (?:[^:\n]+: |\"[^\"]+\": )?([\w/.-]+\.md)$", re.MULTILINE)

_spec = importlib.util.spec_from_file_location("site_hooks", ROOT / "docs/site_hooks.py")
assert _spec is not None
assert _spec.loader is not None
hooks = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(hooks)


def test_every_page_is_in_the_navigation_once() -> None:
    """And no other; the four parts are there, in their order."""
    text = (ROOT / "mkdocs.yml").read_text("utf-8").partition("\nnav:\n")[2]
    listed = _PAGE.findall(text)
    assert len(listed) == len(set(listed))
    pages = {path.name for path in ROOT.glob("docs/*.md")}
    assert {name for name in listed if "/" not in name} == pages
    outside = {name.removeprefix(hooks.OUTSIDE) for name in listed if "/" in name}
    assert outside <= hooks.find_outside(ROOT)
    parts = re.findall(r"^  - ([^:\n]+):", text, re.MULTILINE)
    assert parts == ["Home", "Tutorial", "How to", "Reference", "Explanation"]


def test_the_index_and_the_navigation_have_the_same_order() -> None:
    """Whoever reads on a code host finds the pages in the same parts."""
    listed = [
        name
        for name in _PAGE.findall((ROOT / "mkdocs.yml").read_text("utf-8"))
        if "/" not in name and name != "index.md"
    ]
    index = (ROOT / "docs/index.md").read_text("utf-8")
    assert re.findall(r"^\* \[[^\]]+\]\(([\w-]+\.md)\)", index, re.MULTILINE) == listed


@pytest.mark.parametrize(
    ("uri", "link", "on_site"),
    [
        # Between pages, and within one.
        ("clients.md", "agents.md#notes", "agents.md#notes"),
        ("clients.md", "#credentials", "#credentials"),
        ("index.md", "playhead.svg", "playhead.svg"),
        # Out of docs/, and back.
        ("stdio.md", "../examples/mcp_stdio/README.md", "repository/examples/mcp_stdio/README.md"),
        ("docker.md", "../compose.yaml", "repository/compose.yaml"),
        ("repository/examples/a/README.md", "../../docs/sandbox.md#files", "../../../sandbox.md#files"),
        ("repository/README.md", "docs/demo.svg", "../demo.svg"),
        ("repository/README.md", "LICENSE", "LICENSE"),
        ("repository/examples/a/README.md", "agent.py", "agent.py"),
        # Elsewhere.
        ("clients.md", "https://example.com/a.md", "https://example.com/a.md"),
    ],
)  # fmt: skip
def test_links_lead_to_the_place_on_the_site(uri: str, link: str, on_site: str) -> None:
    """As they lead to the file in a clone."""
    assert hooks.site_links(f"See [it]({link}).", uri) == f"See [it]({on_site})."


def test_links_in_fences_stay() -> None:
    """They are code."""
    page = "```\n[a](../b.md)\n```\n[a](../b.md)\n"
    assert hooks.site_links(page, "x.md") == "```\n[a](../b.md)\n```\n[a](repository/b.md)\n"


def test_the_stage_says_why_it_is_skipped(tmp_path: Path) -> None:
    """Where the packages cannot be had; a stand-in for uv says so."""
    (tmp_path / "uv").write_text("#!/bin/sh\necho trying\necho no such package >&2\nexit 2\n")
    (tmp_path / "uv").chmod(0o755)
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [STAGE], env=os.environ | {"PATH": path}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0
    assert done.stdout == (
        "docs stage: skipped (mkdocs-material could not be installed: no such package)\n"
    )


@pytest.mark.skipif(
    importlib.util.find_spec("material") is None, reason="mkdocs-material is not installed"
)
@pytest.mark.parametrize(("added", "code"), [("", 0), ("[x](nope.md)\n", 1)])
def test_a_dead_link_fails(tmp_path: Path, added: str, code: int) -> None:
    """The site is built of the pages as they are, and not with a link that leads nowhere."""
    for name in hooks.find_outside(ROOT):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    shutil.copy(ROOT / "mkdocs.yml", tmp_path)
    with (tmp_path / "docs/ask.md").open("a") as page:
        page.write(added)
    command = [sys.executable, "-m", "mkdocs", "build", "--site-dir", str(tmp_path / "site")]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
