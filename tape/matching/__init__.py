"""Matching: find the recorded exchange that answers a request, and the values that connect exchanges."""
