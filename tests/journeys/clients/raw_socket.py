"""A client that is nothing but a socket: what it prints is what came, byte for byte.

Arguments: URL, then a request target, an optional body, and optional header lines.
"""

import json
import os
import socket
import ssl
import sys
from base64 import b64encode
from urllib.parse import urlsplit


def connect(url: str) -> socket.socket:
    """Open a tunnel through the proxy of the environment."""
    target = urlsplit(url)
    proxy = urlsplit(os.environ["HTTPS_PROXY"])
    opened = socket.create_connection((proxy.hostname, proxy.port), timeout=20)
    authority = f"{target.hostname}:{target.port}"
    lines = [f"CONNECT {authority} HTTP/1.1", f"Host: {authority}"]
    if proxy.username:
        given = b64encode(f"{proxy.username}:{proxy.password}".encode()).decode()
        lines.append(f"Proxy-Authorization: Basic {given}")
    opened.sendall("\r\n".join([*lines, "", ""]).encode())
    answer = b""
    while b"\r\n\r\n" not in answer:
        answer += opened.recv(1)
    assert answer.startswith(b"HTTP/1.1 200"), answer
    context = ssl.create_default_context(cafile=os.environ["SSL_CERT_FILE"])
    return context.wrap_socket(opened, server_hostname=target.hostname)


def main() -> None:
    """Send the head and body given, print everything until the end."""
    url, head, body = sys.argv[1:]
    with connect(url) as tunnel:
        tunnel.sendall(json.loads(head).encode("latin-1") + body.encode())
        received = b""
        while data := tunnel.recv(65536):
            received += data
    print(json.dumps({"case": "raw", "received": received.decode("latin-1")}))


main()
