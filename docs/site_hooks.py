"""Hooks of mkdocs.yml: files outside of `docs/` that pages link to are part of the site, below `repository/`.

So a link in a page is right in a clone, on a code host and on the site, and no address of a code host is written down.
"""

import posixpath
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
DOCS, OUTSIDE = "docs/", "repository/"

_FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(?<=\]\()(?!#)([^)\s#]+)((?:#[^)\s]*)?)(?=\))")


def on_files(files: Any, config: Any) -> Any:
    """Add what is outside to the files of the site."""
    from mkdocs.structure.files import File  # not needed by those who only look at links

    for name in sorted(find_outside(ROOT)):
        files.append(File.generated(config, OUTSIDE + name, abs_src_path=str(ROOT / name)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Have links lead to the files that were added."""
    return site_links(markdown, page.file.src_uri)


def find_outside(root: Path) -> set[str]:
    """Give the files outside of `docs/` that its pages, and those pages in turn, link to; paths from `root`."""
    found: set[str] = set()
    waiting = [path.relative_to(root).as_posix() for path in root.glob("docs/*.md")]
    while waiting:
        name = waiting.pop()
        for target in _targets((root / name).read_text("utf-8"), name):
            if target not in found and not target.startswith(DOCS) and (root / target).is_file():
                found.add(target)
                if target.endswith(".md"):
                    waiting.append(target)
    return found


def site_links(markdown: str, uri: str) -> str:
    """Give a page with its links as they are on the site; `uri` is the page's place there."""
    name = uri.removeprefix(OUTSIDE) if uri.startswith(OUTSIDE) else DOCS + uri

    def on_site(link: str) -> str:
        target = _resolve(link, name)
        place = target.removeprefix(DOCS) if target.startswith(DOCS) else OUTSIDE + target
        return posixpath.relpath(place, posixpath.dirname(uri) or ".")

    return _change_links(markdown, on_site)


def _targets(markdown: str, name: str) -> Iterator[str]:
    found: list[str] = []
    _change_links(markdown, lambda link: found.append(_resolve(link, name)) or link)
    yield from found


def _resolve(link: str, name: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(name), link))


def _change_links(markdown: str, change: Callable[[str], str]) -> str:
    """Change each link to a file, fences aside."""

    def one(found: re.Match[str]) -> str:
        link, anchor = found[1], found[2]
        return found[0] if ":" in link else f"{change(link)}{anchor}"

    parts: list[str] = []
    end = 0
    for fence in _FENCE.finditer(markdown):
        parts += [_LINK.sub(one, markdown[end : fence.start()]), fence[0]]
        end = fence.end()
    return "".join([*parts, _LINK.sub(one, markdown[end:])])
