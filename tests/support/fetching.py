"""A client of its own process that any machine has: fetches URLs through a proxy, and prints the bodies.

    python -m playhead.tests.support.fetching PROXY CA URL...

PROXY: its URL, with credentials.
CA: file with the certificates to trust, or "".
A body is printed whatever the status is. The exit code is 1 if a URL could not be fetched.
"""

import contextlib
import os
import ssl
import sys
import urllib.error
import urllib.request


def main() -> None:
    """Do as the arguments say, each URL on a connection of its own."""
    proxy, ca, *urls = sys.argv[1:]
    opener = urllib.request.build_opener(
        urllib.request.ProxyHandler({"http": proxy, "https": proxy}),
        urllib.request.HTTPSHandler(context=ssl.create_default_context(cafile=ca or None)),
    )
    for url in urls:
        try:
            with contextlib.closing(opener.open(url)) as answer:
                body = answer.read()
        except urllib.error.HTTPError as refused:
            with refused:
                body = refused.read()
        except OSError as error:
            sys.exit(f"{url}: {error}")
        os.write(1, body)


if __name__ == "__main__":
    main()
