"""Recording: the snapshot of an exchange and how it is written; `addons/record.py` has the hooks."""
