"""Thin mitmproxy hooks, one file per behaviour: each asks `tape` for a decision and applies it to the flow.

The order in `chain` is the life of a request: who is asking, what is decided, then one of record,
playback, refusal. `PendingExchange` is what one request carries from hook to hook.
"""
