"""Make clients that ignore proxy variables by default follow them, unless the program disables that."""

import functools
import os

from . import import_hooks


def start():
    """Change them as they are imported."""
    if os.environ.get("HTTPS_PROXY"):
        import_hooks.on_import("aiohttp.client", _change_aiohttp)


def _change_aiohttp(module):
    real = module.ClientSession.__init__

    @functools.wraps(real)
    def begin(self, *args, **kwargs):
        kwargs.setdefault("trust_env", True)
        real(self, *args, **kwargs)

    module.ClientSession.__init__ = begin
