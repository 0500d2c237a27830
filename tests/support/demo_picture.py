"""Write `docs/demo.svg`, the picture of `playhead demo` in README.md: `just picture`.

The demo is run as on a terminal, and its real output is drawn. Ports, the name of the run and the folder of the store
differ from run to run: the picture shows fixed ones. Lines that the agent repeats are left out.
"""

import io
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from playhead.proxy.commands.demo import run_demo

PICTURE = Path(__file__).parents[2] / "docs" / "demo.svg"
STEPS = {2: 8, 4: 1, 5: 2}
"""The steps that are shown, and how many of the agent's last lines each keeps."""

_STYLE = re.compile(r"\x1b\[([\d;]*)m")
_CLASSES = {"1": "heading", "36": "command", "32": "good", "1;33": "notable", "": "", "0": ""}
_COLUMN, _LINE, _MARGIN = 7.8, 18, 18
"""Pixels."""
_HEAD = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" aria-labelledby="title desc">
<title id="title">playhead demo in a terminal</title>
<desc id="desc">Made by `just picture` from the real output of `playhead demo`: an agent that refunds twice is recorded, replayed, fixed, and replayed again.</desc>
<style>
text {{ font: 13px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; fill: #c9d1d9; white-space: pre; }}
.heading {{ font-weight: bold; fill: #ffffff; }}
.command {{ fill: #56d4dd; }}
.good {{ fill: #6fdd8b; }}
.notable {{ font-weight: bold; fill: #f2cc60; }}
</style>
<rect width="{width}" height="{height}" rx="8" fill="#161b22"/>
"""


class _Terminal(io.StringIO):
    """Text that is written as to a terminal."""

    def isatty(self) -> bool:
        return True


def fixed(output: str) -> str:
    """Replace what differs between two runs of the demo by fixed words."""
    for name, port in (("provider", "9001"), ("payments", "9002")):
        found = re.search(rf"^ +{name} +http://127\.0\.0\.1:(\d+)", output, re.MULTILINE)
        if found is not None:
            output = re.sub(rf"(?<=127\.0\.0\.1:){found[1]}\b", port, output)
    return re.sub(r"double-refund-\d{8}-\d{6}", "refund", re.sub(r" --store \S+", "", output))


def shortened(output: str) -> Iterator[str]:
    """Give the lines of the steps that are shown, each step with the last lines of its agent."""
    for step in re.split(r"\n(?=(?:\x1b\[1m)?\d  )", output):
        number = re.match(r"(?:\x1b\[1m)?(\d)  ", step)
        if number is None or int(number[1]) not in STEPS:
            continue
        lines = step.strip("\n").splitlines()
        said = [n for n, line in enumerate(lines) if line.startswith("   | ")]
        left_out = said[: -STEPS[int(number[1])]]
        for n, line in enumerate(lines):
            if n not in left_out:
                yield line
            elif n == left_out[0]:
                yield "   | ..."
        yield ""


def draw(lines: Sequence[str]) -> str:
    """Give the SVG of lines with the escapes of a terminal: bold, cyan, green, bold yellow."""
    columns = max(len(_STYLE.sub("", line)) for line in lines)
    width, height = round(columns * _COLUMN) + 2 * _MARGIN, len(lines) * _LINE + 2 * _MARGIN
    rows = [_HEAD.format(width=width, height=height)]
    for n, line in enumerate(lines):
        column = 0
        _, *rest = _STYLE.split(f"\x1b[m{line}")
        for style, text in zip(rest[::2], rest[1::2], strict=True):
            if text.strip():
                indent = len(text) - len(text.lstrip())
                x, y = _MARGIN + (column + indent) * _COLUMN, _MARGIN + (n + 1) * _LINE - 5
                # The width is given, since no font is the same everywhere.
                length = len(text.strip()) * _COLUMN
                kind = f' class="{_CLASSES[style]}"' if _CLASSES[style] else ""
                rows.append(
                    f'<text xml:space="preserve" x="{x:.1f}" y="{y}" textLength="{length:.1f}"{kind}>{escape(text.strip())}</text>\n'
                )
            column += len(text)
    return "".join([*rows, "</svg>\n"])


def lines_of(picture: str) -> list[str]:
    """Give the lines of a picture that was drawn, with the escapes."""
    root = ElementTree.fromstring(picture)
    codes = {kind: code for code, kind in _CLASSES.items() if kind}
    height = float(root.attrib["height"])
    lines = [""] * round((height - 2 * _MARGIN) / _LINE)
    for one in root.iter("{http://www.w3.org/2000/svg}text"):
        n = round((float(one.attrib["y"]) + 5 - _MARGIN) / _LINE) - 1
        column = round((float(one.attrib["x"]) - _MARGIN) / _COLUMN)
        blanks = " " * (column - len(_STYLE.sub("", lines[n])))
        kind = one.attrib.get("class", "")
        text = one.text or ""
        styled = f"\x1b[{codes[kind]}m{text}\x1b[0m" if kind else text
        lines[n] += f"{blanks}{styled}"
    return lines


def main() -> None:
    """Run the demo and draw it; raises SystemExit where a step went otherwise than described."""
    out = _Terminal()
    if code := run_demo(out=out):
        raise SystemExit(f"the demo ended with {code}:\n{out.getvalue()}")
    lines = list(shortened(fixed(out.getvalue())))
    PICTURE.write_text(draw(lines[:-1]), encoding="utf-8")


if __name__ == "__main__":
    main()
