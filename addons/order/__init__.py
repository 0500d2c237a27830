"""The order of requests: by the values that they pass on, and within a lane."""
