"""Liveness and readiness of the process."""

from ..http.route import Answer, Call


async def health(_: Call) -> Answer:
    """Say that the process answers."""
    return Answer({"status": "ok"})


async def ready(call: Call) -> Answer:
    """Say whether requests are taken and can be kept."""
    proxy_state = call.proxy_state
    checks = {
        "listening": proxy_state.engine.listening,
        "store": proxy_state.store.writer.failed is None,
    }
    good = all(checks.values())
    return Answer(
        {"status": "ready" if good else "not ready", "checks": checks}, 200 if good else 503
    )
