"""Send connections of `http.client` through the proxy, unless the program sets a tunnel itself."""

import os

from . import import_hooks

_MOST_HEAD = 65536
_PROXY = os.environ.get("HTTPS_PROXY", "")
"""As it was at the start: a program may clear its variables."""


def start():
    """Change it as it is imported."""
    if _PROXY:
        import_hooks.on_import("http.client", _change)


def _change(module):
    from base64 import b64encode
    from urllib.parse import unquote, urlsplit

    proxy = urlsplit(_PROXY)
    address = (proxy.hostname, proxy.port or 80)
    fields = ""
    if proxy.username is not None:
        words = "%s:%s" % (unquote(proxy.username), unquote(proxy.password or ""))
        fields = "Proxy-Authorization: Basic %s\r\n" % b64encode(words.encode()).decode()
    connect = module.HTTPConnection.connect

    def connect_through(self):
        # Others call this with a tunnel, or with the proxy in the place of the host, where they know of one.
        if self._tunnel_host or (self.host, self.port) == address:
            return connect(self)
        create = self._create_connection

        def create_through(target, *args, **kwargs):
            sock = create(address, *args, **kwargs)
            try:
                _ask(sock, target, fields)
            except BaseException:
                sock.close()
                raise
            return sock

        self._create_connection = create_through
        try:
            return connect(self)
        finally:
            self._create_connection = create

    module.HTTPConnection.connect = connect_through


def _ask(sock, target, fields):
    """Have the proxy lead to a target; what follows on the socket is the target's."""
    host, port = target
    name = "[%s]" % host if ":" in host else host.encode("idna").decode()
    place = "%s:%d" % (name, port)
    sock.sendall(("CONNECT %s HTTP/1.1\r\nHost: %s\r\n%s\r\n" % (place, place, fields)).encode())
    head = b""
    while not head.endswith(b"\r\n\r\n") and len(head) < _MOST_HEAD:
        byte = sock.recv(1)  # not one more: it would be the target's
        if not byte:
            raise OSError("the proxy hung up on CONNECT %s" % place)
        head += byte
    said = head.partition(b"\r\n")[0].split(None, 2)
    if len(said) < 2 or said[1] != b"200":
        raise OSError("the proxy answered CONNECT %s with %r" % (place, b" ".join(said[1:])))
