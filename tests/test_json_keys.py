"""JSON keys: names that programs of users read keep their spelling, whatever the code calls things.

`golden/json_keys.json` has the keys of each document. A key that is added on purpose is added there; one that is gone
or spelled otherwise breaks a user's program.
"""

import ast
import json
from collections.abc import Iterable
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from playhead import addons, proxy, timeline
from playhead.proxy.control.handlers import openapi
from playhead.proxy.control.handlers.route_table import make_table
from playhead.proxy.doctor.diagnose import Finding
from playhead.proxy.sandbox.filesystem.bubblewrap import Files
from playhead.proxy.sandbox.network.local_services import Use
from playhead.tape.diff.divergence_types import DivergenceKind
from playhead.tape.exchange import FaultKind, Phase, RequestClass, VerdictKind
from playhead.tape.policy.approval_decision import Ruling
from playhead.timeline.reading.contract_row import ContractRow
from playhead.timeline.reading.inference import Inference
from playhead.timeline.receipts.answers.divergences import Divergences
from playhead.timeline.receipts.answers.matches import Matches, OptIn
from playhead.timeline.receipts.answers.profile_rows import ProfileRow, ProfileRows
from playhead.timeline.receipts.branch import BranchAccount
from playhead.timeline.receipts.effects import Effect
from playhead.timeline.receipts.gaps import GapRow, Gaps
from playhead.timeline.receipts.interventions.contracts import ContractViolations
from playhead.timeline.receipts.interventions.gates import GateRow, Gates
from playhead.timeline.receipts.interventions.injected import InjectedFaults, InjectedRow
from playhead.timeline.receipts.interventions.limits import LimitsAccount, LimitsRow
from playhead.timeline.receipts.receipt import Receipt
from playhead.timeline.receipts.receipt_parts import Parts
from playhead.timeline.receipts.resume import ResumeAccount

_GOLDEN = json.loads((Path(__file__).parent / "golden" / "json_keys.json").read_bytes())
_FOLDERS = {
    package.__name__.rpartition(".")[2]: Path(package.__path__[0])
    for package in (addons, proxy, timeline)
}
_LITERALS = {
    "receipt: rows": (
        "timeline/receipts/receipt.py",
        "timeline/receipts/warnings_and_hints.py",
        "timeline/receipts/gaps.py",
        "timeline/receipts/tape.py",
        "timeline/receipts/answers/background_reads.py",
        "timeline/receipts/answers/divergences.py",
        "timeline/receipts/answers/left_on_tape.py",
        "timeline/receipts/answers/matches.py",
        "timeline/receipts/answers/replaced_secrets.py",
        "timeline/receipts/answers/request_outcomes.py",
        "timeline/receipts/command/command_end.py",
        "timeline/receipts/command/proxy_bypass.py",
        "timeline/receipts/command/surroundings.py",
        "timeline/receipts/interventions/contracts.py",
        "timeline/receipts/interventions/gates.py",
        "timeline/receipts/interventions/injected.py",
        "timeline/receipts/interventions/limits.py",
    ),
    "ask": ("proxy/run_again/ask.py", "proxy/run_again/branch.py", "proxy/run_again/spread.py"),
    "explore": (
        "proxy/experiments/explore.py",
        "proxy/experiments/invariants.py",
        "proxy/run_again/branch.py",
    ),
    "sweep": (
        "proxy/experiments/journal/journaled_runs.py",
        "proxy/experiments/outcome_table.py",
        "proxy/experiments/journal/usage_of_stopped_runs.py",
        "proxy/experiments/sweep.py",
        "proxy/run_again/branch.py",
    ),
    "bisect": ("proxy/experiments/bisect.py", "proxy/run_again/branch.py"),
    "receipt: branch": ("timeline/receipts/branch.py",),
    "receipt: resume": ("timeline/receipts/resume.py",),
    "receipt: hints": (
        "timeline/receipts/idle_rules/unmatched_rules.py",
        "timeline/receipts/idle_rules/unused_ignore_places.py",
        "timeline/receipts/idle_rules/unused_redact_rules.py",
    ),
    "receipt: determinism": (
        "proxy/determinism/preload_report.py",
        "proxy/determinism/preload_bundle.py",
    ),
    "receipt: sandbox": ("proxy/run/sandboxed.py", "proxy/docker/sandbox.py"),
    "receipt: capture": ("proxy/run/record_captured.py",),
    "runs, show, effects": ("proxy/commands/inspect.py", "timeline/receipts/exchange_rows.py"),
    "effects: rows": ("timeline/receipts/effects.py",),
    "exchange": ("timeline/reading/exchange_json.py",),
    "sink": ("addons/run/effect_row.py",),
    "notes, gc, archive": (
        "timeline/receipts/user_notes.py",
        "proxy/operations/retention.py",
        "proxy/operations/archive.py",
    ),
    "verify": ("timeline/checks/integrity.py", "timeline/checks/secrets.py"),
    "policy, learn, reindex": (
        "timeline/rules/policy_dry_run.py",
        "timeline/learning/learn.py",
        "proxy/operations/learn.py",
        "addons/rehearsal/rehearse.py",
        "timeline/rules/reindex.py",
    ),
    "doctor": ("proxy/doctor/run.py", "proxy/doctor/diagnose.py"),
    "control: answers": (
        "proxy/control/handlers/runs.py",
        "proxy/control/handlers/gates.py",
        "proxy/control/http/error_body.py",
    ),
}
"""Modules that write a document as dictionaries."""


def _literal_keys(names: Iterable[str]) -> set[str]:
    """The keys of dictionaries in the source of some modules."""
    found: set[str] = set()
    for name in names:
        package, _, rest = name.partition("/")
        tree = ast.parse((_FOLDERS[package] / rest).read_text())
        for node in ast.walk(tree):
            if isinstance(node, ast.Dict):
                found |= {
                    key.value
                    for key in node.keys
                    if isinstance(key, ast.Constant) and isinstance(key.value, str)
                }
    return found


def _nested_keys(value: Any) -> set[str]:
    """The keys of a document, at any depth."""
    if isinstance(value, dict):
        inner = [_nested_keys(one) for one in value.values()]
        return set(value).union(*inner)
    if isinstance(value, list):
        return set().union(*map(_nested_keys, value))
    return set()


def _receipt() -> set[str]:
    """The keys of a receipt that has a row of each kind."""
    limits = {"calls": 1, "tokens": 1, "usd": 1.0, "repeats": 1}
    parts = Parts(
        effects=[Effect(1, "POST", "https://a.test/", "", "", "")],
        gates=Gates([GateRow(1, "POST", "https://a.test/", "", "")]),
        injected=InjectedFaults([InjectedRow(1, "rule", "cut", 1, 0)]),
        contracts=ContractViolations([ContractRow(1, "request", "", True, False, 1, [], [])]),
        gaps=Gaps([GapRow(0, 1, "")]),
        matches=Matches(
            model_drift=[OptIn("a=b")], profiles=ProfileRows({"a": ProfileRow("a", 1)})
        ),
        branch=BranchAccount(
            {
                "at": 1,
                "changes": [],
                "live": [["read", "a.test", ""]],
                "routes": [["", "", ""]],
                "answers": [],
            }
        ),
        resume=ResumeAccount("r", unknown={("r", 1): {}}),
        divergences=Divergences(root={"kind": "changed", "seq": 2}),
        limits=LimitsAccount(LimitsRow(dict(limits))),
    )
    made = Receipt("r", "t", "playback", "sealed", parts=parts)
    return _nested_keys(made.to_json())


def _effect() -> set[str]:
    """The keys of an effect."""
    return _nested_keys(Effect(1, "POST", "https://a.test/", "", "", "").to_json())


def _control() -> set[str]:
    """The paths of the control API, the members of its answers, and the words that they may have."""
    described = openapi.document(make_table())
    found = set(described["paths"])
    for schema in described["components"]["schemas"].values():
        for name, member in schema.get("properties", {}).items():
            found |= {name, *map(str, member.get("enum", ()))}
    return found


@cache
def collect() -> dict[str, list[str]]:
    """Give the keys of each document."""
    found = {name: _literal_keys(modules) for name, modules in _LITERALS.items()}
    found["receipt"] = _receipt()
    found["effect"] = _effect()
    for name, kind in (
        ("inference", Inference),
        ("sandbox: files", Files),
        ("doctor: row", Finding),
    ):
        found[name] = {one.name for one in fields(kind)}
    found["sandbox: services"] = {one.name for one in fields(Use)}
    found["control"] = _control()
    found["values"] = {
        item.value
        for words in (RequestClass, VerdictKind, FaultKind, Phase, DivergenceKind, Ruling)
        for item in words
    }
    return {name: sorted(keys) for name, keys in found.items()}


@pytest.mark.parametrize("document", sorted(_GOLDEN))
def test_json_keys_are_those_of_the_list(document: str) -> None:
    """A renamed variable, field or class changes no key of a document that users read."""
    assert collect()[document] == _GOLDEN[document], (
        "change tests/golden/json_keys.json only if users see a new key"
    )


def test_every_document_is_listed() -> None:
    """A document without a list would be compared with nothing."""
    assert set(collect()) == set(_GOLDEN)
