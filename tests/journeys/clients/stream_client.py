"""httpx, reading a stream of events: says each one, and may leave early or lose patience.

Arguments: METHOD URL, then NAME=VALUE: `leave` (events to read before leaving), `patience` (seconds without
a byte), `http2`, and `signal` (a URL beside the proxy that is told of each event, and of the end).
"""

import sys
from collections.abc import Iterator
from http.client import HTTPConnection
from urllib.parse import urlsplit

import httpx

from playhead.tests.journeys.clients.transcript import fields, say


def events(response: httpx.Response) -> Iterator[str]:
    """Give the events of a stream as soon as they are whole."""
    text = ""
    for piece in response.iter_text():
        text += piece
        while "\n\n" in text:
            event, _, text = text.partition("\n\n")
            yield event
    if text:
        yield f"rest: {text}"


def main() -> None:
    """Read the stream as the arguments say."""
    method, url, *rest = sys.argv[1:]
    given = dict(word.split("=", 1) for word in rest)
    leave = int(given.get("leave", "0"))
    patience = float(given.get("patience", "20"))

    def tell(what: object) -> None:
        if "signal" in given:
            place = urlsplit(f"{given['signal']}-{what}")
            beside = HTTPConnection(place.netloc, timeout=20)
            beside.request("GET", place.path)
            assert beside.getresponse().status == 200
            beside.close()

    timeout = httpx.Timeout(20, read=patience)
    with httpx.Client(http2="http2" in given, timeout=timeout) as client:
        body = {"model": "m", "stream": True} if method == "POST" else None
        count = 0
        try:
            with client.stream(method, url, json=body) as response:
                head = fields(response.headers.raw)
                say("head", status=response.status_code, fields=head, version=response.http_version)
                for event in events(response):
                    count += 1
                    say("event", text=event)
                    tell(count)
                    if count == leave:
                        break
        except httpx.HTTPError as error:
            say("error", kind=type(error).__name__)
        if "signal" in given:
            # Answered by the proxy itself, later than it saw the end of the connection left above.
            client.get("http://playhead.internal/run").raise_for_status()
    tell("end")
    say("end", events=count)


main()
