"""Encryption at rest: rows and files, plain or with a key."""
