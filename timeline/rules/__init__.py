"""Recorded runs under other rules: policy, contracts and index."""
