"""Parts that the dialects share: their protocol, one view of a model call, tolerant JSON."""
