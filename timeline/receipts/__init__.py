"""Receipts and listings: folded from the log, rendered as text."""
