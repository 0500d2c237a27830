"""Rules of the configuration that did nothing in a run, most likely because they are mistyped."""
