"""Lookups over a tape's log: endpoints, and examples for stubs."""
