"""Start the preload in a Python program that Playhead runs, then run the `sitecustomize` that this file shadows.

Read by every Python that the program starts, also by ones too old for the preload: plain syntax only.
Whatever goes wrong in here, the program goes on.
"""

import sys


def _start():
    try:
        import playhead_preload

        playhead_preload.start()
    except Exception as error:
        sys.stderr.write("playhead: this Python runs without the preload: %s\n" % (error,))


def _go_on():
    """Run the `sitecustomize` that would have been found without us."""
    import os
    from importlib.machinery import PathFinder
    from importlib.util import module_from_spec

    here = os.path.dirname(os.path.abspath(__file__))
    rest = [path for path in sys.path if os.path.abspath(path or ".") != here]
    spec = PathFinder.find_spec("sitecustomize", rest)
    if spec is not None and spec.loader is not None:
        theirs = module_from_spec(spec)
        sys.modules["sitecustomize"] = theirs
        spec.loader.exec_module(theirs)


if sys.version_info >= (3, 8):
    _start()
if sys.version_info >= (3, 5):
    _go_on()
