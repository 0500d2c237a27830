"""Redaction: secrets are found and replaced before anything is stored."""
