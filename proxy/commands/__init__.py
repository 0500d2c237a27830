"""The commands, grouped by purpose, one file per group.

Heavy parts are imported inside the commands that need them, once it is clear that they are needed: so `runs`
and `show` are quick, and so is being told of a mistake.
"""

import click

from . import (
    blame_cache_history,
    experiments,
    fleet,
    gates_and_ui,
    inspect,
    look_back,
    retention,
    setup,
    tape_files,
)
from . import container_entrypoints as compose
from . import record_replay as run
from . import run_again as again
from . import store_maintenance as store_care

GROUPS: dict[str, tuple[click.Command, ...]] = {
    "Record and replay": (
        *(run.record, run.replay, run.demo, run.serve, run.stdio, run.seal, run.stop),
    ),
    "Run again with something changed": (
        *(again.branch, again.ask, again.resume),
        *(experiments.bisect, experiments.sweep, experiments.explore),
    ),
    "Look at a run": (
        *(inspect.runs, look_back.show, inspect.receipt, inspect.effects, look_back.state),
        *(look_back.context, look_back.files, look_back.rewind, gates_and_ui.ui),
    ),
    "Find causes": (
        *(
            look_back.diff,
            blame_cache_history.blame,
            blame_cache_history.cache,
            blame_cache_history.history,
            fleet.similar,
        ),
    ),
    "Count over many runs": (fleet.cost, fleet.destinations),
    "Rules, contracts and approvals": (
        *(inspect.learn, inspect.profiles, inspect.reindex, inspect.policy, inspect.contracts),
        gates_and_ui.gates,
    ),
    "Keep, move and delete runs": (
        *(retention.label, store_care.note, retention.pin, tape_files.export, tape_files.import_),
        *(retention.archive, retention.gc, retention.erase),
    ),
    "Care for the store": (
        *(store_care.verify, store_care.redact, store_care.rekey, store_care.upgrade),
    ),
    "Set up": (*(setup.init, setup.env, setup.ca, setup.doctor, setup.completion, setup.schema),),
}
"""Task -> its commands, in the order of `playhead --help`."""
INTERNAL: tuple[click.Command, ...] = (compose.inlets, compose.beside)
"""What compose.yaml runs in its containers; not listed."""
COMMANDS: tuple[click.Command, ...] = (
    *(one for commands in GROUPS.values() for one in commands),
    *INTERNAL,
)
