"""Placeholders: values that stand for those that redaction replaced."""
