"""Hooks by table, failing closed, and our own hooks between streams and addons."""
