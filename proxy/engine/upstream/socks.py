"""Connect to an upstream by way of a SOCKS5 proxy (RFC 1928, RFC 1929).

The protocol is that of python-socks; it is a module apart, since most never load it.
"""

import asyncio
from typing import Any

from python_socks import ProxyConnectionError as NotConnected
from python_socks import ProxyError, ProxyType
from python_socks.async_.asyncio import Proxy

from ....config import ProxyAddress


async def connect_through(
    proxy: ProxyAddress, address: tuple[str, int], place: tuple[str, int]
) -> tuple[Any, Any]:
    """Connect to a place by way of the proxy at an address; the proxy looks up the name.

    Raises: OSError.
    """
    through = Proxy(
        ProxyType.SOCKS5, *address, proxy.user or None, proxy.password or None, rdns=True
    )
    try:
        connected = await through.connect(*place)
    except NotConnected as error:
        raise OSError(error.errno, error.strerror or str(error)) from error
    except ProxyError as error:
        raise OSError(str(error) or "it hung up before it had answered") from error
    except ValueError:  # its text may have part of them
        raise OSError("the host, or its user or password, cannot be expressed in SOCKS5") from None
    return await asyncio.open_connection(sock=connected)
