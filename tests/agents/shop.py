"""What else the shop has: its MCP server, over streamable HTTP, and its page."""

import json
import secrets
from typing import Any

from aiohttp import web

_NUMBER = {
    "type": "object",
    "properties": {"number": {"type": "integer", "description": "The number of the item."}},
    "required": ["number"],
}
_TOOLS = [
    {"name": "look_up", "description": "Look up an item of the shop.", "inputSchema": _NUMBER},
    {"name": "place_order", "description": "Order an item of the shop.", "inputSchema": _NUMBER},
]
_SESSION = "mcp-session-id"
_UNKNOWN_METHOD = -32601
_PAGE = """<!doctype html>
<title>The shop</title>
<p id="item">nothing yet</p>
<script>
fetch("/items" + location.search).then((answer) => answer.json()).then((item) => {
  document.querySelector("#item").textContent = `${item.name} for ${item.price}`;
});
</script>
"""


async def call_tool(request: web.Request) -> web.Response:
    """Answer as an MCP server."""
    if request.method == "GET":
        return web.Response(status=405)
    if request.method != "POST":
        return web.Response()
    asked = await request.json()
    if "id" not in asked:
        return web.Response(status=202)
    answer = {"jsonrpc": "2.0", "id": asked["id"]}
    params = asked.get("params", {})
    headers = {}
    match asked["method"]:
        case "initialize":
            headers[_SESSION] = secrets.token_hex(16)
            answer["result"] = {
                "protocolVersion": params["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "shop", "version": "1"},
            }
        case "tools/list":
            answer["result"] = {"tools": _TOOLS}
        case "tools/call":
            text = json.dumps(_call(params["name"], params["arguments"]))
            answer["result"] = {"content": [{"type": "text", "text": text}], "isError": False}
        case _:
            answer["error"] = {"code": _UNKNOWN_METHOD, "message": "no such method"}
    return web.json_response(answer, headers=headers)


def _call(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    if name == "place_order":
        return {"order": 1, "item": arguments["number"]}
    return {"item": arguments["number"], "name": "a chair", "price": 40}


def page(request: web.Request) -> web.Response:
    """Answer as the shop's site."""
    if request.path == "/items":
        return web.json_response({"name": request.query.get("of", "a chair"), "price": 40})
    return web.Response(text=_PAGE, content_type="text/html")
