"""Writes what came of the agents into docs/agents.md, between two marks."""

from pathlib import Path

from playhead.tests.agents.trial import Trial

PAGE = Path(__file__).parents[2] / "docs" / "agents.md"
BEGIN, END = "<!-- table: just agents -->", "<!-- end of table -->"
_HEAD = """| agent | release | tried | Internet saw = recorded | replays FAITHFUL | planted change | remarks |
|---|---|---|---|---|---|---|
"""


def write_table(trials: list[Trial]) -> None:
    """Put the table in the place of the one that stands there."""
    if not PAGE.exists():
        return
    before, _, rest = PAGE.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    rows = "".join(map(_row, sorted(trials, key=lambda trial: trial.title.lower())))
    PAGE.write_text(f"{before}{BEGIN}\n\n{_HEAD}{rows}\n{END}{after}")


def _row(trial: Trial) -> str:
    if trial.problem:
        cells = [trial.title, trial.version, trial.date, "", "", "", _cell(trial.problem)]
    else:
        equal = "=" if trial.seen == trial.recorded else "≠"
        replays = f"{sum(trial.verdicts)} of {len(trial.verdicts)}"
        counts = f"{trial.seen} {equal} {trial.recorded}"
        cells = [trial.title, trial.version, trial.date, counts, replays, _planted(trial)]
        cells.append(_cell(trial.root))
    return f"| {' | '.join(cells)} |\n"


def _planted(trial: Trial) -> str:
    if not trial.red:
        return "not noticed"
    root = "root right" if trial.root_right else "another root"
    return f"red, {root}, {'readable' if trial.told else 'not readable'}"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
