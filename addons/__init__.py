"""Thin mitmproxy hooks, one file a behaviour: they ask `tape` what to do and act on the flow.

The order in `chain` is the life of a request: who is asking, what is decided, then one of record,
playback, refusal. `PendingExchange` is what one request carries from hook to hook.
"""
