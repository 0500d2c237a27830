"""Maintenance: recovery, compaction, removal, rekeying and import of runs."""
