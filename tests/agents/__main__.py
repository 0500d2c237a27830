"""`just agents [NAME...]`: install, record and replay real agents one after another, and write the table of docs/agents.md.

NAME may be NAME@RELEASE; without names it is the whole catalog. Options: --newest has newer releases installed,
--replays N, --keep FOLDER keeps the tapes there, and --record FLAG gives `playhead record` a flag: the table stays as it is then.
"""

import datetime
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import click
import msgspec

from playhead.tests.agents.catalog import BUILD, Agent, load_agent, load_agents
from playhead.tests.agents.install import NotInstalled, install
from playhead.tests.agents.table import say_planted, write_table
from playhead.tests.agents.trial import Trial

RESULTS = BUILD / "results"
_RUNS = 4
"""Beside the replays: the recording, and the replays with a change."""


@click.command()
@click.argument("names", nargs=-1)
@click.option("--newest", is_flag=True, help="Install newer releases.")
@click.option("--replays", default=3, show_default=True)
@click.option("--keep", type=click.Path(path_type=Path), help="Where tapes and folders are kept.")
@click.option("--record", multiple=True, help="A flag of `playhead record`.")
def main(
    names: tuple[str, ...], newest: bool, replays: int, keep: Path | None, record: tuple[str, ...]
) -> None:
    """Try agents, and say what came of each."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    agents = [load_agent(name) for name in names] or load_agents()
    for agent in agents:
        trial = _try(agent, newest=newest, replays=replays, keep=keep, record=record)
        trial.date = datetime.datetime.now(datetime.UTC).date().isoformat()
        print(f"{agent.name} {trial.version}: {_say(trial)}", flush=True)
        if not agent.release and not record:
            (RESULTS / f"{agent.name}.json").write_bytes(msgspec.json.encode(trial))
    if record:
        return
    write_table(
        [msgspec.json.decode(path.read_bytes(), type=Trial) for path in RESULTS.glob("*.json")]
    )


def _try(
    agent: Agent, *, newest: bool, replays: int, keep: Path | None, record: tuple[str, ...]
) -> Trial:
    trial = Trial(agent.name, agent.title, problem=agent.missing)
    if agent.missing:
        return trial
    try:
        install(agent, newest=newest)
    except NotInstalled as error:
        trial.problem = str(error)
        return trial
    # Not below a folder that agents take for temporary or for a project.
    folder = keep or Path(tempfile.mkdtemp(prefix="playhead-agents-", dir="/var/tmp"))
    place = folder / agent.name
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    result = place / "result.json"
    words = [f"{agent.name}@{agent.release}" if agent.release else agent.name, str(place)]
    command = [
        sys.executable,
        "-m",
        f"{__package__}.trial",
        *words,
        str(replays),
        str(result),
        *record,
    ]
    try:
        subprocess.run(command, timeout=(replays + _RUNS) * (agent.timeout_s + 40), check=False)
        if result.exists():
            return msgspec.json.decode(result.read_bytes(), type=Trial)
        trial.problem = "the trial did not end as it should"
    except subprocess.TimeoutExpired:
        trial.problem = "the trial took too long"
    finally:
        if keep is None:
            shutil.rmtree(folder, ignore_errors=True)
    return trial


def _say(trial: Trial) -> str:
    if trial.problem:
        return trial.problem
    good = f"{sum(trial.verdicts)} of {len(trial.verdicts)} replays FAITHFUL"
    planted = "; ".join(f"{what}: {say_planted(one)}" for what, one in trial.planted.items())
    root = f"; root: {trial.root}" if trial.root else ""
    return f"{trial.seen} seen = {trial.recorded} recorded; {good}; {planted}{root}"


if __name__ == "__main__":
    os.nice(10)
    main()
