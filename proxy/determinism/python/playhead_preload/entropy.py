"""Keyed randomness: a function of the seed, the execution context and the number of requests so far.

What stands on OpenSSL is left alone: TLS needs real randomness. So do libraries that make keys and nonces themselves:
a signature with the nonce of another one gives its key away.
"""

import os
import sys
from _blake2 import blake2b
from _thread import RLock

from . import contexts, import_hooks, process_notes, processes
from .patch_builtins import Replaced, replace

_SEED = bytes.fromhex(os.environ["PLAYHEAD_SEED"])
_MAKE_KEYS = frozenset(
    [
        "Crypto",
        "Cryptodome",
        "OpenSSL",
        "aioquic",
        "asyncssh",
        "cryptography",
        "ecdsa",
        "fastecdsa",
        "jose",
        "joserfc",
        "jwcrypto",
        "nacl",
        "noise",
        "oscrypto",
        "paramiko",
        "pgpy",
        "rsa",
        "ssl",
        "tlslite",
    ]
)
"""Packages that get the kernel's randomness."""
_MOST_GENERATORS = 4096
"""Of the module `random`, 2.5 kB each: those of contexts that are over are not needed any more."""
_MORE = ("more",)
"""An execution context for all that are too many."""
_LAST_OF_UUIDS = {
    "uuid1": ("_last_timestamp",),
    "uuid6": ("_last_timestamp_v6",),
    "uuid7": ("_last_timestamp_v7", "_last_counter_v7"),
}
"""Functions of the module `uuid` that compare the clock with the UUID before, and where they keep that."""
_real_urandom = os.urandom
_counts = {}


def start():
    """Take the place of the kernel's randomness in this process and those it forks."""
    processes.after_fork.append(_counts.clear)
    _replace_urandom()
    import_hooks.on_import("random", _change_random, _before_random)
    import_hooks.on_import("uuid", _change_uuid)
    import_hooks.on_import("tempfile", _change_tempfile)


def _stream(size, *key):
    # A job of a pool of processes stands for itself.
    process = "" if any(str(part).startswith("pool ") for part in key) else process_notes.context()
    text = "\n".join(map(str, (process, *key))).encode("utf-8", "surrogatepass")
    inner = blake2b(text, key=_SEED, digest_size=64).digest()
    blocks = []
    for number in range((size + 63) // 64):
        blocks.append(blake2b(number.to_bytes(8, "little"), key=inner).digest())
    return b"".join(blocks)[:size]


def _urandom(size, flags=0):
    if not isinstance(size, int) or size < 0:
        return _real_urandom(size)  # which says what is wrong with it
    context = contexts.for_randomness()
    if not _MAKE_KEYS.isdisjoint(str(module).partition(".")[0] for module in context[2:]):
        return _real_urandom(size)
    if context not in _counts and len(_counts) >= contexts.MOST:
        context = _MORE
    number = _counts[context] = _counts.get(context, 0) + 1
    return _stream(size, contexts.text(context), number)


def _replace_urandom():
    replace(os, urandom=lambda size: _urandom(size), getrandom=_urandom)
    posix = sys.modules.get("posix") or sys.modules.get("nt")
    for name in ("urandom", "getrandom"):
        if hasattr(posix, name):
            setattr(posix, name, getattr(os, name))


def _new_seed():
    return int.from_bytes(_urandom(32), "little")


def _before_random():
    """Have generators without a seed ask `os.urandom`; they would ask the kernel."""
    import _random

    real = _random.Random

    class Random(real):
        def __init__(self, *args):
            self.seed(*args)

        def seed(self, a=None):
            real.seed(self, _new_seed() if a is None else a)

    Random.__module__ = "_random"
    _random.Random = Random


def _change_random(random):
    """Give each context a generator of its own for the module's functions, until the program seeds that itself."""
    shared = random._inst
    if random._urandom is _real_urandom:
        _change_running(random)
    made = {}
    begun = {}
    seeded = []

    def generator():
        if seeded:
            return shared
        context = contexts.for_randomness()
        found = made.get(context)
        if found is None:
            if len(made) >= _MOST_GENERATORS:
                made.pop(next(iter(made)), None)
            text = contexts.text(context)
            number = begun.get(context, 0) + 1
            if number > 1 or len(begun) < contexts.MOST:
                begun[context] = number
            found = made[context] = random.Random(
                int.from_bytes(_stream(32, "random", text, number), "little")
            )
        return found

    def change(name):
        real = getattr(random, name)

        def call(*args, **kwargs):
            return getattr(generator(), name)(*args, **kwargs)

        def settle(*args, **kwargs):
            """The program wants one sequence, which it knows."""
            if name == "seed" and not args and not kwargs:
                seeded.clear()
                made.clear()
                return None
            seeded.append(True)
            return real(*args, **kwargs)

        setattr(random, name, Replaced(settle if name in ("seed", "setstate") else call, real))

    for name in random.__all__:
        if getattr(getattr(random, name), "__self__", None) is shared:
            change(name)

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=made.clear)
        os.register_at_fork(after_in_child=begun.clear)


def _change_running(random):
    """Do what else is done before the module runs: something had imported it before us."""
    random._urandom = os.urandom
    real = random.Random.seed

    def seed(self, a=None, version=2):
        real(self, _new_seed() if a is None else a, version)

    random.Random.seed = seed
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=random._inst.seed)


def _change_uuid(uuid):
    """Have `uuid1` made from the clock and a node of ours: the C library would look at the kernel's."""
    uuid._generate_time_safe = uuid._UuidCreate = None
    if hasattr(uuid, "_load_system_functions"):
        uuid._load_system_functions = lambda: None
    # One of all processes, as that of a machine is: which process takes a job is chance. The bit says that it is no address
    # of a network card (RFC 9562, section 6.10).
    uuid._node = (
        int.from_bytes(blake2b(b"node", key=_SEED, digest_size=6).digest(), "big") | 1 << 40
    )
    for name, kept in _LAST_OF_UUIDS.items():
        if hasattr(uuid, name):
            _keep_apart(uuid, name, kept)


def _change_tempfile(tempfile):
    """Give each context names of its own: the module's one generator would deal them out as the contexts happen to come."""
    from random import Random

    def rng(sequence):
        # Whoever comes first looks for a folder, too, with a sequence of its own.
        process, made = sequence.__dict__.get("_playhead_made", (None, None))
        if process != os.getpid():
            made = {}
            sequence._playhead_made = os.getpid(), made
        context = contexts.for_randomness()
        if context not in made and len(made) >= _MOST_GENERATORS:
            context = _MORE
        found = made.get(context)
        if found is None:
            seed = _stream(32, "tempfile", contexts.text(context))
            found = made[context] = Random(int.from_bytes(seed, "little"))
        return found

    tempfile._RandomNameSequence.rng = property(rng)


def _keep_apart(uuid, name, kept):
    """Have each context compare its clock with its own last UUID: the module's is that of whatever came before, in any."""
    real, last, lock = getattr(uuid, name), {}, RLock()

    def call(*args, **kwargs):
        context = contexts.for_randomness()
        with lock:
            if context not in last and len(last) >= contexts.MOST:
                context = _MORE
            for one, value in zip(kept, last.get(context, (None,) * len(kept))):
                setattr(uuid, one, value)
            try:
                return real(*args, **kwargs)
            finally:
                last[context] = tuple(getattr(uuid, one) for one in kept)

    setattr(uuid, name, Replaced(call, real))
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=last.clear)
