"""Writes what came of the agents into docs/agents.md, between two marks."""

from pathlib import Path

from playhead.tests.agents.trial import Planted, Trial

PAGE = Path(__file__).parents[2] / "docs" / "agents.md"
BEGIN, END = "<!-- table: just agents -->", "<!-- end of table -->"
_CHANGES = ("file", "tool result", "answer")
_HEAD = """| agent | release | tried | Internet saw = recorded | replays FAITHFUL | changed file | changed tool result | changed answer | remarks |
|---|---|---|---|---|---|---|---|---|
"""
_HEAD_LINES = 4
"""Of the table, and the blank ones before it."""


def write_table(trials: list[Trial]) -> None:
    """Put the table in the place of the one that stands there; the rows of agents that were not tried stay."""
    if not PAGE.exists():
        return
    before, _, rest = PAGE.read_text().partition(BEGIN)
    old, _, after = rest.partition(END)
    rows = {
        line.split("|")[1].strip(): f"{line}\n" for line in old.splitlines()[_HEAD_LINES:] if line
    }
    rows |= {trial.title: _row(trial) for trial in trials}
    table = "".join(rows[title] for title in sorted(rows, key=str.lower))
    PAGE.write_text(f"{before}{BEGIN}\n\n{_HEAD}{table}\n{END}{after}")


def _row(trial: Trial) -> str:
    if trial.problem:
        cells = [
            trial.title,
            trial.version,
            trial.date,
            *[""] * (2 + len(_CHANGES)),
            _cell(trial.problem),
        ]
    else:
        equal = "=" if trial.seen == trial.recorded else "≠"
        replays = f"{sum(trial.verdicts)}/{len(trial.verdicts)}"
        counts = f"{trial.seen} {equal} {trial.recorded}"
        cells = [trial.title, trial.version, trial.date, counts, replays, *_planted(trial)]
        cells.append(_cell(trial.root))
    return f"| {' | '.join(cells)} |\n"


def _planted(trial: Trial) -> list[str]:
    found = [trial.planted.get(what) for what in _CHANGES]
    return ["-" if one is None else say_planted(one) for one in found]


def say_planted(planted: Planted) -> str:
    """Say what came of a change: a mark where all is well."""
    if not planted.red:
        return "not noticed"
    if planted.root_right and planted.told:
        return "✓"
    root = "root right" if planted.root_right else "another root"
    return f"red, {root}, {'readable' if planted.told else 'not readable'}"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
