"""Maintenance: recovery, compaction, removal, rekeying and ingest of runs."""
