"""Scanners of secrets over an export of every case of secrets_formats.yaml: what they report is a placeholder, by its form alone."""

from functools import cache
from pathlib import Path

import pytest
import yaml

from playhead.tests.support.counts import FULL

from .secret_recipes import FOLDER, expand, read
from .secret_scanners import SCANNERS, Scanned, export_cases, find_with_gitleaks, scan

LISTED = yaml.safe_load((FOLDER / "secret_scanners_open.yaml").read_text("utf-8"))


@cache
def _exported(folder: Path) -> tuple[bytes, list[Scanned]]:
    data, texts = export_cases(folder / "store", full=FULL)
    return data, list(scan(texts))


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, list[Scanned]]:
    pytest.importorskip("detect_secrets", reason="the extra `secrets` is not installed")
    return _exported(tmp_path_factory.mktemp("scanned"))


@pytest.mark.parametrize("scanner", SCANNERS)
def test_nothing_is_reported_in_the_file(
    exported: tuple[bytes, list[Scanned]], scanner: str
) -> None:
    """An exported tape as it lies in a repository."""
    assert list(SCANNERS[scanner](exported[0].decode("latin-1"))) == []


def test_no_reported_value_has_a_part_of_a_secret(exported: tuple[bytes, list[Scanned]]) -> None:
    """Also in the texts that are read out of the file; cases that are known to be open aside."""
    known = yaml.safe_load((FOLDER / "secrets_open.yaml").read_text("utf-8"))["open"]
    assert [one for one in exported[1] if one.told and one.case not in known] == []


@pytest.mark.parametrize("scanner", SCANNERS)
def test_the_rules_that_report_a_placeholder_are_listed(
    exported: tuple[bytes, list[Scanned]], scanner: str
) -> None:
    """Those that look at form alone. With every value and position, each that is listed does."""
    found = {one.rule for one in exported[1] if one.scanner == scanner}
    assert found <= set(LISTED[scanner])
    if FULL:
        assert found == set(LISTED[scanner])


def test_the_rules_know_what_they_are_for() -> None:
    """Of the cases as they are before redaction gitleaks reports many: a scanner that finds nothing proves nothing."""
    cases = [case for case in read("formats")["cases"] if case["kind"] == "by format"]
    known = [case for case in cases if any(True for _ in find_with_gitleaks(expand(case)[0].text))]
    assert len(known) > 100
