"""Let mitmproxy pass event streams on as they come, for the comparison of first bytes."""

from mitmproxy import http


def responseheaders(flow: http.HTTPFlow) -> None:
    """Stream answers that are event streams."""
    if flow.response and flow.response.headers.get("content-type", "").startswith("text/event"):
        flow.response.stream = True
