"""Encryption at rest: rows and body files, plain or encrypted under a key."""
