"""A rule that can match nothing is a fault of the configuration, which says where it stands and what was meant."""

import re
from pathlib import Path
from typing import Any

import pytest

from playhead.tests.support.process import playhead

from .place import read_cases

CASES: dict[str, Any] = read_cases(Path(__file__).with_name("never_matching"))
_FAULT = re.compile(
    r"(?m)^(?:playhead: )?(?P<file>\S*playhead\.yaml):(?P<line>\d+):(?P<column>\d+): (?P<key>\S+): (?P<text>.+)$"
)


def _faults(
    folder: Path, section: str, matches: list[str]
) -> tuple[dict[int, dict[str, str]], Any]:
    """Have a configuration read that has such rules, one a line; give the faults by number of rule, and what was said."""
    key = section.partition(" ")[0]
    rule = CASES["sections"][section]
    lines = ["live_max: 100", f"{key}:", *(f"  - {rule % match}" for match in matches)]
    path = folder / "playhead.yaml"
    path.write_text("\n".join(lines) + "\n")
    done = playhead("runs", "-c", path, "--store", folder / "store")
    found = {int(fault["line"]) - 3: fault.groupdict() for fault in _FAULT.finditer(done.stderr)}
    return found, done


@pytest.fixture(scope="module", params=list(CASES["sections"]))
def section(request: pytest.FixtureRequest) -> str:
    """Where the rules stand."""
    return str(request.param)


@pytest.fixture(scope="module")
def told(section: str, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What is said of all rules that can match nothing, at once."""
    folder = tmp_path_factory.mktemp("never")
    return _faults(folder, section, [case["match"] for case in CASES["never"]])


@pytest.mark.parametrize(
    "number", range(len(CASES["never"])), ids=[c["id"] for c in CASES["never"]]
)
def test_a_rule_that_can_match_nothing_is_a_fault(section: str, told: Any, number: int) -> None:
    """It names file, line, column and key, and the normal form."""
    case = CASES["never"][number]
    faults, done = told
    assert done.returncode == 2, (case["reason"], done)
    assert "Traceback" not in done.stderr
    assert number in faults, (case["reason"], done.stderr)
    fault = faults[number]
    assert fault["key"].startswith(f"{section.partition(' ')[0]}[{number}]"), fault
    assert int(fault["column"]) > 1, fault
    if case["normal"] is not None:
        assert re.search(re.escape(case["normal"]) + r"(?![/\w])", fault["text"]), (case, fault)


def test_an_unusual_rule_that_can_match_is_none(section: str, tmp_path: Path) -> None:
    """Differences that are agreement, and what a path may hold."""
    faults, done = _faults(tmp_path, section, [case["match"] for case in CASES["can"]])
    wrong = {CASES["can"][number]["id"]: fault["text"] for number, fault in faults.items()}
    assert wrong == {}, done.stderr
