"""The result of a policy dry run as plain text for a terminal."""

from ..receipts.render_text import plain
from .policy_dry_run import DryRunVerdict, PolicyDryRun

_ROWS = 50


def render_dry_run(made: PolicyDryRun) -> str:
    """Show what would change in one run; one line where nothing would."""
    head = f"{plain(made.run)}: {made.requests} requests"
    if not made.changed:
        return f"{head}, nothing changes"
    lines = [f"{head}, {len(made.changed)} would be decided otherwise"]
    for row in made.changed[:_ROWS]:
        lines.append(f"  seq {row.seq}  {plain(f'{row.method} {row.url}', 110)}")
        if _told(row.before) != _told(row.after):
            lines.append(f"         was {_told(row.before)}; would be {_told(row.after)}")
        if row.replay is not None:
            lines.append(f"         its replay: {_told(row.replay)}")
    if len(made.changed) > _ROWS:
        lines.append(f"  … and {len(made.changed) - _ROWS} more")
    return "\n".join(lines)


def _told(verdict: DryRunVerdict) -> str:
    rule = f" by {plain(verdict.rule, 80)}" if verdict.rule else ""
    return f"{verdict.request_class}, {verdict.verdict}{rule}"
