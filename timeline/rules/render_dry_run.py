"""The result of a policy dry run as plain text for a terminal."""

from ..receipts.safe_terminal_text import plain, table
from .policy_dry_run import DryRunVerdict, PolicyDryRun
from .policy_summary import PolicySummary, Sample

_ROWS = 50


def render_dry_run(made: PolicyDryRun) -> str:
    """Show what would change in one run; one line where nothing would."""
    head = f"{plain(made.run)}: {made.requests} requests"
    if not made.changed:
        return f"{head}, nothing changes"
    lines = [f"{head}, {len(made.changed)} would be decided otherwise"]
    for row in made.changed[:_ROWS]:
        lines.append(f"  seq {row.seq}  {plain(f'{row.method} {row.url}', 110)}")
        if row.is_decided_otherwise:
            lines.append(f"         was {_told(row.before)}; would be {_told(row.after)}")
        if row.replay is not None:
            lines.append(f"         its replay: {_told(row.replay)}")
    if len(made.changed) > _ROWS:
        lines.append(f"  … and {len(made.changed) - _ROWS} more")
    return "\n".join(lines)


def _told(verdict: DryRunVerdict) -> str:
    rule = f" by {plain(verdict.rule, 80)}" if verdict.rule else ""
    return f"{verdict.request_class}, {verdict.verdict}{rule}"


def render_summary(summary: PolicySummary) -> str:
    """Show what would change in many runs."""
    share = round(100 * summary.covered / summary.requests) if summary.requests else 0
    lines = [
        f"{summary.runs} runs, {summary.requests} requests: {summary.changed} would be decided otherwise, "
        f"in {summary.changed_runs} runs",
        f"rules of the file decide on {summary.covered} requests ({share} %)",
    ]
    rows = [("REQUESTS", "CHANGED", "RUNS", "RULE")]
    rows += [
        (str(count.requests), str(count.changed), str(len(count.runs)), plain(name, 100))
        for name, count in summary.by_rule()[:_ROWS]
    ]
    lines += ["", table(rows)]
    if summary.first is not None:
        lines += ["", "first change:", *_sample(summary.first)]
    for name, count in summary.by_rule():
        more = [one for one in count.samples if one is not summary.first]
        if more:
            lines += ["", f"samples of {plain(name, 100)}:"]
            lines += [line for one in more for line in _sample(one)]
    lines += [f"matched nothing: {plain(one, 120)}" for one in summary.idle]
    return "\n".join(lines)


def _sample(sample: Sample) -> list[str]:
    row = sample.row
    lines = [f"  {plain(sample.run, 60)} seq {row.seq}  {plain(f'{row.method} {row.url}', 100)}"]
    if row.is_decided_otherwise:
        lines.append(f"    was {_told(row.before)}; would be {_told(row.after)}")
    if row.replay is not None:
        lines.append(f"    its replay: {_told(row.replay)}")
    return lines
