"""Injected faults: one file per kind."""
