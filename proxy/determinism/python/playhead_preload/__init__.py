"""Record and replay the clock and randomness of an unchanged Python program.

Runs in the program, under whatever Python that is (3.8 and later), before its first line; standard library only.
Imports nothing that a file beside the program could be meant to replace: extension modules where there are some.

PLAYHEAD_CLOCK   `off`, `write` (real time, and a journal of it) or `read` (what the journal says)
PLAYHEAD_SEED    hexadecimal; randomness is as ever without it
PLAYHEAD_NOTES   folder for journal and reports
PLAYHEAD_TAPE    folder of the journals to read
PLAYHEAD_START   nanoseconds since 1970; what is told before any journal is read
PLAYHEAD_SLEEPS  `short`, or nothing
PLAYHEAD_LANE    this process's place among the program's processes
"""

import os
import sys


def start():
    """Begin, once for each process."""
    if "PLAYHEAD_NOTES" not in os.environ or hasattr(sys, "_playhead_preload"):
        return
    sys._playhead_preload = True

    from . import (
        clock,
        contexts,
        http_client_tunnel,
        import_hooks,
        process_notes,
        process_pools,
        processes,
        proxy,
        root_certificates,
        thread_pools,
    )

    clock.find_real()
    process_notes.claim(
        os.environ.get("PLAYHEAD_LANE", "0"), "python", "%d.%d.%d" % sys.version_info[:3]
    )
    parts = []
    if os.environ.get("PLAYHEAD_CLOCK", "off") != "off":
        from . import deadlines

        parts += [deadlines, clock]
    if os.environ.get("PLAYHEAD_SEED"):
        from . import entropy

        parts.append(entropy)
    if os.environ.get("PLAYHEAD_SLEEPS") == "short":
        from . import sleeps

        parts.append(sleeps)
    from . import other_clocks_and_randomness

    parts.append(other_clocks_and_randomness)
    for part in [
        contexts,
        thread_pools,
        process_pools,
        *parts,
        processes,
        proxy,
        http_client_tunnel,
        root_certificates,
    ]:
        try:
            part.start()
        except Exception as error:
            process_notes.write("problem", "%s: %s" % (part.__name__.rpartition(".")[2], error))
    import_hooks.start()
