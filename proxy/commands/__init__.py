"""The commands, one file for each sort of thing a person wants.

Heavy parts are imported inside the commands that need them, once it is clear that they are needed: so `runs`
and `show` are quick, and so is being told of a mistake.
"""

import click

from . import (
    approvals as rule,
)
from . import (
    compose as docker,
)
from . import (
    inspect as look,
)
from . import (
    retention as retain,
)
from . import (
    run,
    setup,
)
from . import (
    store_care as keep,
)
from . import (
    tape_files as carry,
)

COMMANDS: tuple[click.Command, ...] = (
    *(run.serve, run.record, run.replay, run.seal, run.stop, run.demo),
    *(
        look.runs,
        look.show,
        look.receipt,
        look.effects,
        look.contracts,
        look.policy,
        look.learn,
        look.reindex,
    ),
    rule.gates,
    *(keep.verify, keep.note, keep.rekey),
    *(carry.export, carry.import_),
    *(retain.label, retain.pin, retain.archive, retain.gc, retain.erase),
    *(setup.ca, setup.env, setup.doctor),
    *(docker.inlets, docker.beside),
)
"""In the order of a day's work."""
