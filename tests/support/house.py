"""Measure how well the code can be found and read: `just house` prints the figures and fails where one got worse.

`tests/house.json` has the limit of each figure. A figure below its limit is an improvement: lower the limit in the same
commit, with `just house --lower`.
"""

import ast
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from .import_graph import ROOT, arrows, climbs, cycles, modules
from .statements import parsed, statements

LIMITS = Path(__file__).parents[1] / "house.json"
SIDE_BY_SIDE = 15
"""Modules in one folder, `__init__.py` aside."""
VARIANTS = ("tape/dialects", "tape/faults")
"""Folders of variants, one file each: the more the better."""
ATTRIBUTES = 20
SUBJECT = 72
FIRST_MEASURED = "8ce4952a542f8857cdabf086537e0103f3337436"
"""Commits after this one have short subjects."""
PARTS_OF_PRODUCT = ("config", "tape", "store", "timeline", "addons", "proxy")
PENDING = ("addons/run/pending_exchange.py", ("pending",))
"""The module that owns an exchange on its way, and the names of variables that refer to one elsewhere."""
PARTS = ("answer", "arrival", "asked", "body", "lookup", "held", "progress", "playing", "account")
"""Its attributes that are parts of it: only their own modules, in `addons/run/exchange_parts/`, write what is in them."""

INSIDE = {
    "config": "errors archive_url targets match_pattern value_types parse_values yaml_slips document safe_json_schema contract_schema_file profiles key_declarations sections schema contradictions load experiments watch",
    "tape": "shell_words counted visible_text exit_codes exchange records folders redaction headers canonical classify dialects diff matching playback policy faults contracts stubs edits splicing schedules",
    "tape.redaction": "harmless looks_like_secret credential_fields finding placeholders learned configured incremental_search search compare_placeholders"
    " secrets_in_heads header_secret_places replaced_places redact_large_body redact_heads redactor rewriting",
    "tape.redaction.finding": "command_lines searched_text pattern_prefilter format_table formats literals secrets_in_base64 personal join_stream_pieces passwords_in_commands lines secrets_by_sibling_fields secrets_in_tables secrets_by_name finder",
    "tape.dialects": "common framing anthropic_complete anthropic_messages bedrock_converse openai_chat_fold"
    " openai_chat cohere cohere_v1 bedrock_invoke cohere_generate gemini mcp mistral ollama openai_completions"
    " openai_embeddings openai_responses reader",
    "store": "paths lmdb_keys errors folder_ownership encryption lmdb deltas spill tables maintenance archive store",
    "timeline": "reading receipts checks learning lookup formats archiving rules rewriting steps show state blame cache history diff cost outcomes destinations fleet",
    "timeline.receipts": "bounded_rows safe_terminal_text idle_rules effects gaps warnings_and_hints branch resume command tape"
    " interventions answers receipt_parts exchange_rows receipt render_text user_notes",
    "addons": "wire order run attempts answer branching deciding websockets websocket recording faults contract serving early_answers record playback bidirectional_streaming control_host"
    " failed_tunnels decide gate assign_run alpn sink_backpressure chain client_sockets stop rehearsal",
    "addons.run": "gaps repeated_effects pending_approvals exchange_events process_counters effect_sinks exchange_parts effect_row"
    " usage_meter model_drift_search playback_state run_state request_contracts pending_exchange request_constraints lifecycle registry",
    "proxy": "early_interrupt errors garbage lazy_dataclasses lazy_regexes import_search_path standard_streams progress open_file_limit file_or_editor_text processes determinism trust sandbox capture engine"
    " operations stdio control folder docker run run_again experiments doctor looking_back pages command_line commands cli",
    "proxy.control": "address client ask_processes gate_commands http pages_process handlers server",
    "web": "assets views render single_file_page",
    "proxy.determinism": "libc read_untrusted_file clock_journal preload_report preload_bundle journal_keeper",
    "proxy.engine": "upstream hooks http websocket fast connection_handler admission connection_observer event_loop"
    " egress_guard mitmproxy_imports guard_selftest lingering_close tls tls_closing captured_connections transparent unreachable_upstream engine",
    "proxy.experiments": "workers run_command_once statistical_power outcome_table journal budget judge invariants save_faulted_run bisect sweep explore",
    "proxy.sandbox": "kernel filesystem network channel connect_for_command init sandbox_process run_on_folder_copies preflight sandbox",
}
"""The modules and subpackages of each folder that has subpackages: each imports only those before it."""


def _statements(path: Path) -> Iterator[ast.AST]:
    return statements(parsed(ROOT / path))


def crowded() -> list[str]:
    """Give the folders with too many modules side by side."""
    count = Counter(path.parent.as_posix() for path in modules() if path.name != "__init__.py")
    return [
        f"{folder}: {number}"
        for folder, number in sorted(count.items())
        if number > SIDE_BY_SIDE and folder not in VARIANTS
    ]


def _attributes(node: ast.ClassDef) -> int:
    names = {
        one.target.id
        for one in node.body
        if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)
    }
    for inner in statements(node):
        targets = inner.targets if isinstance(inner, ast.Assign) else []
        if isinstance(inner, ast.AnnAssign):
            targets = [inner.target]
        for target in targets:
            if isinstance(target, ast.Attribute) and _last_name(target.value) == "self":
                names.add(target.attr)
    return len(names)


def large_classes() -> list[str]:
    """Give the classes with too many attributes; configuration, a record of its keys, aside."""
    found = [
        (count, f"{path}:{node.name}: {count}")
        for path in modules()
        if path != Path("config/schema.py")
        for node in _statements(path)
        if isinstance(node, ast.ClassDef) and (count := _attributes(node)) > ATTRIBUTES
    ]
    return [text for _, text in sorted(found, reverse=True)]


def asserted() -> list[str]:
    """Give the places in addons/ that assert that a value is there."""
    return [
        f"{path}:{node.lineno}"
        for path in modules()
        if path.parts[0] == "addons"
        for node in _statements(path)
        if isinstance(node, ast.Assert) and "is not None" in ast.unparse(node.test)
    ]


def foreign_writers() -> list[str]:
    """Give the files that write attributes of an exchange on its way but do not own its class."""
    owner, names = PENDING
    return sorted(
        {
            str(path)
            for path in modules()
            if path.parts[0] in ("addons", "proxy")
            for node in _statements(path)
            for target in _written(node)
            if isinstance(target, ast.Attribute)
            and (
                _is_part(target.value, ("self", *names) if str(path) == owner else names)
                or (_last_name(target.value).lstrip("_") in names and str(path) != owner)
            )
        }
    )


def _is_part(node: ast.expr, names: tuple[str, ...]) -> bool:
    """Say whether this is a part of an exchange on its way, as `pending.answer`."""
    if not isinstance(node, ast.Attribute) or node.attr not in PARTS:
        return False
    return _last_name(node.value).lstrip("_") in names


def _last_name(node: ast.expr) -> str:
    """Give `c` of `a.b.c`; of what is neither a name nor an attribute nothing."""
    if isinstance(node, ast.Name):
        return node.id
    return node.attr if isinstance(node, ast.Attribute) else ""


def _written(node: ast.AST) -> Iterator[ast.expr]:
    if isinstance(node, ast.Assign):
        for target in node.targets:
            yield from target.elts if isinstance(target, ast.Tuple) else (target,)
    elif isinstance(node, ast.AnnAssign | ast.AugAssign):
        yield node.target


def redacting() -> list[str]:
    """Give the files outside of tape/redaction that import or call redaction."""
    found = {
        arrow.source
        for arrow in arrows()
        if arrow.target.startswith("tape.redaction")
        and not arrow.source.startswith("tape.redaction")
    }
    return sorted(found)


def upward() -> list[str]:
    """Give the imports that go against the order inside a folder."""
    return [
        text
        for folder, order in INSIDE.items()
        for text in climbs(arrows(), folder, tuple(order.split()))
    ]


def circles() -> list[str]:
    """Give the circles of modules at run time."""
    return [" ".join(group) for group in cycles(one for one in arrows() if not one.typing_only)]


def circles_of_types() -> list[str]:
    """Give the circles of modules, also those that only type checkers see."""
    return [" ".join(group) for group in cycles(arrows())]


def _lines(folder: Path) -> int:
    return sum(len(path.read_text("utf-8").splitlines()) for path in folder.rglob("*.py"))


def untested() -> list[str]:
    """Give one entry for each hundredth of a line of unit test that a line of addons/ lacks to a whole one."""
    share = _lines(ROOT / "tests/addons") / _lines(ROOT / "addons")
    return [f"lines of unit test a line of addons/: {share:.2f}"] * max(0, round(100 - 100 * share))


def is_mirrored(test: Path, exists: Callable[[Path], bool]) -> bool:
    """Say whether a test is named after what it tests: `tests/a/test_b.py`, or `test_b_ASPECT.py`, after `a/b.py` or `a/b/`."""
    folder = test.parent.relative_to("tests")
    words = test.stem.removeprefix("test_").split("_")
    names = ("_".join(words[:count]) for count in range(1, len(words) + 1))
    return any(exists(folder / f"{name}.py") or exists(folder / name) for name in names)


def unmirrored() -> list[str]:
    """Give the tests of a part that are not beside the module that they test."""
    return sorted(
        str(test.relative_to(ROOT))
        for part in PARTS_OF_PRODUCT
        for test in (ROOT / "tests" / part).rglob("test_*.py")
        if not is_mirrored(test.relative_to(ROOT), lambda path: (ROOT / path).exists())
    )


def long_subjects() -> list[str]:
    """Give the commit subjects that are too long, merges aside; none where git has no history."""
    log = subprocess.run(
        ["git", "log", "--no-merges", "--format=%h %s", f"{FIRST_MEASURED}..HEAD"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return [line for line in log.stdout.splitlines() if len(line.split(" ", 1)[1]) > SUBJECT]


FIGURES: dict[str, Callable[[], list[str]]] = {
    f"folders with more than {SIDE_BY_SIDE} modules": crowded,
    "imports upward inside a package": upward,
    "circles of modules at run time": circles,
    "circles of modules, types included": circles_of_types,
    f"classes with more than {ATTRIBUTES} attributes": large_classes,
    "asserts in addons/ that a value is there": asserted,
    "files that write an exchange on its way": foreign_writers,
    "files that import redaction": redacting,
    "hundredths of a test line that addons/ lacks": untested,
    "test files that mirror no module": unmirrored,
    f"commit subjects over {SUBJECT} characters": long_subjects,
}


def limits() -> dict[str, int]:
    """Give the limit of each figure."""
    read: dict[str, int] = json.loads(LIMITS.read_text("utf-8"))
    return read


def main(arguments: list[str]) -> int:
    """Print each figure beside its limit; give 1 where one is above it."""
    allowed, found = limits(), {name: figure() for name, figure in FIGURES.items()}
    worse = False
    for name, places in found.items():
        limit = allowed.get(name, 0)
        worse = worse or len(places) > limit
        mark = "WORSE" if len(places) > limit else "lower the limit" if len(places) < limit else ""
        print(f"{len(places):5} of {limit:3}  {name}  {mark}".rstrip())
        for place in places if len(places) > limit or "--places" in arguments else ():
            print(f"               {place}")
    if "--lower" in arguments and not worse:
        lowered = {name: len(places) for name, places in found.items()}
        LIMITS.write_text(json.dumps(lowered, indent=2) + "\n", "utf-8")
    return int(worse)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
