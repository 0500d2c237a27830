"""The commands, grouped by purpose, one file per group.

Heavy parts are imported inside the commands that need them, once it is clear that they are needed: so `runs`
and `show` are quick, and so is being told of a mistake.
"""

import click

from . import (
    approvals,
    causes,
    experiments,
    fleet,
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

COMMANDS: tuple[click.Command, ...] = (
    *(run.serve, run.record, run.replay, run.stdio, run.seal, run.stop, run.demo),
    *(again.branch, again.ask, again.resume),
    *(experiments.bisect, experiments.sweep, experiments.explore),
    *(
        inspect.runs,
        look_back.show,
        look_back.rewind,
        look_back.state,
        look_back.context,
        look_back.files,
        causes.blame,
        causes.cache,
        causes.history,
        look_back.diff,
        fleet.similar,
        fleet.cost,
        fleet.destinations,
        inspect.receipt,
        inspect.effects,
        inspect.contracts,
        inspect.policy,
        inspect.learn,
        inspect.profiles,
        inspect.reindex,
    ),
    approvals.gates,
    *(store_care.verify, store_care.note, store_care.redact, store_care.rekey, store_care.upgrade),
    *(tape_files.export, tape_files.import_),
    *(retention.label, retention.pin, retention.archive, retention.gc, retention.erase),
    *(setup.ca, setup.env, setup.doctor),
    *(compose.inlets, compose.beside),
)
"""In the order of a day's work."""
