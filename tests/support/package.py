"""Build what is published, check it, and try it in empty environments: `just package`.

The tools come from the package index, and nothing is installed but in folders below `build/package`. In order:

1. the source distribution is built, and the wheel from it, so that the one has all that the other needs;
2. every file in the wheel belongs there;
3. `twine check --strict`, `check-wheel-contents`, and `pyroma`, which may miss nothing but an address;
4. the wheel by pip, uv tool and pipx, and the source distribution by pip, under each Python; the command is tried there;
5. the licences of all dependencies, extras included (`licences.py`), and a bill of materials in CycloneDX.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PLACE = ROOT / "build" / "package"
PYTHONS = ("3.12", "3.13")
_NOT_THERE_YET = ("author-email", "'url' field")
"""What pyroma misses and nobody can give: the project has no public address. Each costs a point of ten."""
_FOLDERS = {
    "UV_TOOL_DIR": "tools",
    "UV_TOOL_BIN_DIR": "bin",
    "PIPX_HOME": "tools",
    "PIPX_BIN_DIR": "bin",
    "PIPX_MAN_DIR": "man",
}


class Failed(Exception):
    """What is wrong with the package."""


def run(*words: str | Path, cwd: Path = ROOT, into: Path | None = None) -> str:
    """Run a command; give what it printed on stdout. Raises: Failed, with all that it printed.

    into: where `uv tool` and pipx install.
    """
    variables = {} if into is None else {name: str(into / part) for name, part in _FOLDERS.items()}
    if words[0] == "uvx":  # which has tools of its own, where they are found again
        variables = {name: path for name, path in variables.items() if name.startswith("PIPX")}
    done = subprocess.run(
        [str(word) for word in words],
        cwd=cwd,
        env={**os.environ, **variables},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise Failed(
            f"{' '.join(map(str, words))} ended with {done.returncode}\n{done.stdout}{done.stderr}"
        )
    return done.stdout


def build() -> tuple[Path, Path]:
    """Give the wheel and the source distribution. Raises: Failed."""
    shutil.rmtree(PLACE, ignore_errors=True)
    PLACE.mkdir(parents=True)
    run("uv", "build", "--quiet", "--out-dir", PLACE)
    (wheel,), (source,) = PLACE.glob("*.whl"), PLACE.glob("*.tar.gz")
    return wheel, source


def find_strangers(names: Sequence[str]) -> Iterator[str]:
    """Yield the files of a wheel that do not belong there: neither modules of its packages nor their declared data."""
    setup = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["setuptools"]
    packages = {name.replace(".", "/") for name in setup["packages"]}
    data = [
        f"{package.replace('.', '/')}/{pattern}"
        for package, patterns in setup["package-data"].items()
        for pattern in patterns
    ]
    for name in names:
        folder, _, file = name.rpartition("/")
        top = name.partition("/")[0]
        if top.endswith(".dist-info") or (top.endswith(".data") and "/share/man/" in name):
            continue
        is_module = folder in packages and file.endswith(".py")
        if folder == "playhead":
            is_module = file == "__init__.py"
        if not is_module and not any(
            fnmatchcase(file, one.rpartition("/")[2]) and folder == one.rpartition("/")[0]
            for one in data
        ):
            yield name


def check(wheel: Path, source: Path) -> None:
    """Check files and metadata. Raises: Failed."""
    with zipfile.ZipFile(wheel) as archive:
        strangers = list(find_strangers(archive.namelist()))
    if strangers:
        raise Failed(f"the wheel has files that do not belong there: {', '.join(strangers)}")
    run("uvx", "twine", "check", "--strict", wheel, source)
    run("uvx", "check-wheel-contents", "--config", ROOT / "pyproject.toml", wheel)
    said = run("uvx", "pyroma", "-n", "1", source)
    missed = [line for line in said.splitlines() if line.startswith("Your ")]
    wrong = [line for line in missed if not any(one in line for one in _NOT_THERE_YET)]
    if wrong:
        raise Failed(f"pyroma: {' '.join(wrong)}")
    print(f"pyroma: {re.findall(r'rating: (.*)', said)[0]}, without {' and '.join(_NOT_THERE_YET)}")


def try_out(wheel: Path, source: Path) -> Path:
    """Install by each installer under each Python, and try the command; give an environment with all extras."""
    for version in PYTHONS:
        python = _find_python(version)
        if python is None:
            print(f"Python {version}: skipped, it is not on this machine")
            continue
        for what in (wheel, source):
            place = PLACE / f"pip-{version}-{what.suffix[1:]}"
            run("uv", "venv", "--quiet", "--seed", "--python", python, place)
            run(place / "bin" / "python", "-m", "pip", "install", "--quiet", what)
            try_command(place / "bin" / "playhead")
            if not (place / "share" / "man" / "man1" / "playhead.1").exists():
                raise Failed(f"{what.name} has installed no man page")
            print(f"{what.name} by pip under Python {version}: works")
        for name, install in (
            ("uv", ("uv", "tool", "install", "--quiet", "--python", python, wheel)),
            ("pipx", ("uvx", "pipx", "install", "--quiet", "--python", python, wheel)),
        ):
            place = PLACE / f"{name}-{version}"
            run(*install, into=place)
            try_command(place / "bin" / "playhead")
            print(f"{wheel.name} by {name} under Python {version}: works")
    place = PLACE / "extras"
    run("uv", "venv", "--quiet", "--python", sys.executable, place)
    extras = f"{wheel}[archive,demo,prices,secrets]"
    run("uv", "pip", "install", "--quiet", "--python", place, extras)
    return place


def _find_python(version: str) -> Path | None:
    """Find an interpreter of this machine, uv's or pyenv's; None where there is none, which nobody downloads for this."""
    done = subprocess.run(
        ["uv", "python", "find", "--no-python-downloads", version],
        capture_output=True,
        text=True,
        check=False,
        cwd=PLACE,
    )
    if not done.returncode:
        return Path(done.stdout.strip())
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    return next(pyenv.glob(f"versions/{version}.*/bin/python{version}"), None)


def try_command(command: Path) -> None:
    """Record and replay a command in an empty folder. Raises: Failed."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        run(command, "--version", cwd=place)
        run(command, "init", cwd=place)
        run(command, "record", "--run", "mine", "-q", "--", "true", cwd=place)
        if "mine" not in run(command, "runs", cwd=place):
            raise Failed(f"{command} lists no run that it has recorded")
        run(command, "verify", cwd=place)


def main() -> int:
    """Do all of it; give 1 where something is wrong, and say what."""
    try:
        wheel, source = build()
        check(wheel, source)
        place = try_out(wheel, source)
        python = place / "bin" / "python"
        licences = run(python, Path(__file__).with_name("licences.py"))
        (PLACE / "licences.md").write_text(licences, "utf-8")
        run(
            *("uvx", "--from", "cyclonedx-bom", "cyclonedx-py", "environment", python),
            *("--output-format", "JSON", "--output-file", PLACE / "sbom.cdx.json"),
        )
    except Failed as error:
        print(f"package: {error}", file=sys.stderr)
        return 1
    print(f"licences.md and sbom.cdx.json are in {PLACE.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
