"""Formats in which a run leaves a store and enters one."""
