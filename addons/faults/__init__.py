"""Faults on purpose: one file a way to fail."""
