"""Checks of a store or an archive: integrity, and secrets left at rest."""
