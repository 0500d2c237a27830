"""Hooks by table, fail closed, and hooks of our own between streams and addons."""
