"""The shop and the model of `refund_agent`, as a server answers for them; apart from it, since its process starts sooner without a server."""

import json

from aiohttp import web

from playhead.tests.support import refund_agent

AGENT = ("-m", refund_agent.__name__)
"""Words of Python for the agent, before the URL of the service."""


async def serve(request: web.Request) -> web.Response:
    """Answer as the shop and the model do."""
    asked = json.loads(await request.read() or b"null")
    return web.json_response(refund_agent.answer(request.method, request.path, asked))
