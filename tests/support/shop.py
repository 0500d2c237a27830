"""A scripted model and a shop on loopback, for the agent of `examples/docker_image`."""

import contextlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

CALL = {
    "id": "call_1",
    "type": "function",
    "function": {"name": "look_up", "arguments": '{"number": 1}'},
}


class _Shop(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._say({"item": 1, "name": "a chair"})

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        last = asked["messages"][-1]
        said: dict[str, Any] = {"role": "assistant", "content": None, "tool_calls": [CALL]}
        if last["role"] == "tool":
            name = json.loads(last["content"])["name"]
            said = {"role": "assistant", "content": f"Item 1 is {name}."}
        self._say({"choices": [{"index": 0, "message": said}]})

    def _say(self, value: dict[str, Any]) -> None:
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextlib.contextmanager
def shop() -> Iterator[dict[str, str]]:
    """Have both up; give the variables by which the agent finds them."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Shop) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        origin = f"http://127.0.0.1:{server.server_port}"
        try:
            yield {"OPENAI_BASE_URL": f"{origin}/v1", "SHOP_URL": origin}
        finally:
            server.shutdown()
