"""Make clients with their own root certificates use the roots that the variables name."""

import os

from . import import_hooks

_BUNDLE = os.environ.get("SSL_CERT_FILE", "")
"""As it was at the start: a program may clear its variables."""


def start():
    """Change them as they are imported."""
    if os.environ.get("HTTPS_PROXY") and os.path.isfile(_BUNDLE):
        import_hooks.on_import("certifi.core", _change_certifi)
        import_hooks.on_import("stripe", _change_stripe)


def _change_certifi(module):
    """Who makes a context of its own mostly does it with these."""

    def where():
        return _BUNDLE

    def contents():
        with open(where(), encoding="ascii") as file:
            return file.read()

    module.where, module.contents = where, contents


def _change_stripe(module):
    module.ca_bundle_path = _BUNDLE
