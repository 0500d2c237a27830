"""Answers requests for pages: checks who asks, finds the handler, and makes a page of what is wrong.

A handler is a plain function that blocks; it runs on a thread of the library. Every answer has the policy of `web/assets.py`, may not be
kept, framed or read by another site, and what was recorded is in it as text.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote, urlencode

from aiohttp import web

from ... import PlayheadError
from ...store import StoreError, StoreTooNew, UnknownRun
from ...web.assets import POLICY, PREFIX, load_assets
from ...web.render import render
from ...web.views.addresses import name_of, run_path
from ..control.http.access import Guard
from ..control.http.error_body import ControlError
from ..control.http.route import match_path
from ..control.http.serving import read_json, require_own_opener
from ..errors import NotAnswered
from . import fleet_data, html_pages, run_data
from .events import Now, stream_events
from .fetch_archived_runs import Fetches
from .gates import Gates
from .request_and_reply import HTML, Asked, Reply, read_query, reply_json
from .run_again import RunAgain
from .sessions import Links, Rights, Sessions
from .store_reader import Library

logger = logging.getLogger(__name__)

FIELDS = {
    "cache-control": "no-store",
    "content-security-policy": POLICY,
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}
_ANSWER_S = 120.0
_BODY_BYTES = 64 * 1024
"""Of what changes something; what has an answer in it may have as many as the control API takes."""
_PATH = "/%:@!$&'()*+,;=~"
"""What stays in a path as it was sent (RFC 3986 section 3.3)."""
_RAW = "surrogateescape"
_RUNS = ("run", "first", "second")
"""Parameters of a path that are names of runs."""
Handler = Callable[[Asked], Reply]


class Application:
    """The pages of one store."""

    def __init__(
        self, library: Library, guard: Guard, links: Links, command: tuple[str, ...] = ()
    ) -> None:
        """Prepare.

        guard: by which names, and with which token of scripts they may be asked for.
        links: takes the tokens of links.
        command: what may be run again; empty for nothing.
        """
        self.library = library
        self.sessions = Sessions()
        self._guard = guard
        self._links = links
        self._again = RunAgain(library, command)
        self._routes = _Routes(library, self._again)

    def close(self) -> None:
        """End what was run again."""
        self._again.close()

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request."""
        target: str = request._message.path
        path, _, query = target.partition("?")
        try:
            reply = await self._answer(request, path, query)
        except (ControlError, PlayheadError) as error:
            reply = _as_reply(error, path, self._is_let_in(request))
        except (asyncio.CancelledError, ConnectionError):
            raise
        except Exception:
            logger.exception("pages: %s %s failed", request.method, path[:200])
            wrong = ControlError(500, "An error of Playhead itself", hint="its log says more")
            reply = _as_reply(wrong, path, self._is_let_in(request))
        if isinstance(reply, web.StreamResponse):
            return reply
        headers = {**FIELDS, "content-type": reply.kind, **reply.headers}
        body = reply.body if request.method != "HEAD" else b""
        if request.method == "HEAD":
            headers["content-length"] = str(len(reply.body))
        return web.Response(body=body, status=reply.status, headers=headers)

    async def _answer(
        self, request: web.BaseRequest, path: str, query: str
    ) -> Reply | web.StreamResponse:
        fields = list(request.headers.items())
        asked = read_query(query)
        is_link = request.method in ("GET", "HEAD") and "token" in asked
        self._guard.check_place(path, _placed(fields) if is_link else fields)
        if path.startswith(PREFIX):
            return _asset(path, request.method)
        if is_link:
            await require_own_opener(request, self._guard)
            return self._open_link(request, path, asked)
        rights = self._find_rights(fields)
        method = "GET" if request.method == "HEAD" else request.method
        handler, parameters, needed = self._routes.find(method, path)
        body: Mapping[str, Any] = {}
        if method == "POST":
            self._check_change(fields, rights, needed)
            given = await _read_body(request, needed)
            if given is not None and not isinstance(given, dict):
                raise ControlError(422, "The body says something else", expected="an object")
            body = given or {}
        made = Asked(method, path, parameters, asked, rights, body)
        if handler is stream_events:
            response: web.StreamResponse = await stream_events(
                request, self.library, self._routes.now, made, FIELDS
            )
            return response
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(_ANSWER_S):
            reply: Reply = await loop.run_in_executor(
                self.library.threads, self._handle, handler, made
            )
            return reply

    def _handle(self, handler: Callable[[Asked], Reply], asked: Asked) -> Reply:
        with self.library.waited:
            return handler(asked)

    def _open_link(self, request: web.BaseRequest, path: str, query: Mapping[str, str]) -> Reply:
        """Begin the session of a link, and lead to the page without its token.

        Where a session may not begin under the name that was asked for, lead to the name where it may, with another token: whoever has no
        token learns nothing of that name.
        """
        rights = self._links.take(query["token"]) if request.method == "GET" else None
        if rights is None and not self._is_let_in(request):
            raise _not_let_in("This link was used, or is too old")
        rest = [(name, value) for name, value in query.items() if name != "token"]
        place = self._guard.find_own_place(request.headers.get("host", ""))
        if rights is not None and place:
            rest.append(("token", self._links.make(rights)))
            return Reply(b"", 303, HTML, {"location": place + _target(path, rest)})
        headers = {} if rights is None else {"set-cookie": self.sessions.begin(rights)}
        # A page that goes on by itself: behind a redirect, a browser that came from another site would not send the cookie.
        text = render("opened", to=_target(path, rest))
        return Reply(text.encode(), 200, HTML, headers)

    def _is_let_in(self, request: web.BaseRequest) -> bool:
        try:
            self._find_rights(list(request.headers.items()))
        except ControlError:
            return False
        return True

    def _find_rights(self, fields: list[tuple[str, str]]) -> Rights:
        if any(name.lower() == "authorization" for name, _ in fields):
            try:
                self._guard.check_token(fields)
            except ControlError as error:
                raise _not_let_in("The token is wrong", error.headers) from None
            return self._routes.script_rights
        cookie = "; ".join(value for name, value in fields if name.lower() == "cookie")
        rights = self.sessions.find(cookie) if cookie else None
        if rights is None:
            raise _not_let_in("This page needs a link")
        return rights

    def _check_change(self, fields: list[tuple[str, str]], rights: Rights, needed: Rights) -> None:
        by_script = any(name.lower() == "authorization" for name, _ in fields)
        if not by_script and not any(name.lower() == "origin" for name, _ in fields):
            raise ControlError(
                403, "A change needs an origin", expected="origin: this page's own", found="none"
            )
        if needed not in rights:
            run = needed is Rights.RUN
            raise ControlError(
                403,
                "This page runs and answers nothing" if run else "This page only reads",
                expected="a page that may, by its link"
                if run
                else "a link with which you can change something",
                hint="playhead ui --allow-run -- COMMAND; or in the terminal of the command"
                if run
                else "playhead gates --page, or playhead ui --allow-run -- COMMAND",
            )


async def _read_body(request: web.BaseRequest, needed: Rights) -> Any:
    """Read the body of a change.

    Raises: ControlError.
    """
    has_answer = needed is Rights.RUN
    try:
        given = await read_json(request)
    except ControlError as error:
        if error.status == 413 and has_answer:
            error.hint = "longer answers: playhead branch RUN --at SEQ --answer FILE, or answer FILE at a breakpoint"
        raise
    size = len(await request.read())
    if size > _BODY_BYTES and not has_answer:
        raise ControlError(
            413, "The body is too long", expected=f"at most {_BODY_BYTES} bytes", found=str(size)
        )
    return given


def _target(path: str, query: list[tuple[str, str]]) -> str:
    """Give a path of ours with a query; whatever was sent, it leads to no other origin."""
    rest = urlencode(query, quote_via=quote, safe="", errors=_RAW)
    return "/" + quote(path.lstrip("/\\"), safe=_PATH, errors=_RAW) + (f"?{rest}" if rest else "")


def _placed(fields: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Leave out where a link was followed from: it stands in a chat, or in a mail."""
    return [(name, value) for name, value in fields if name.lower() == "host"]


def _not_let_in(error: str, headers: tuple[tuple[str, str], ...] = ()) -> ControlError:
    return ControlError(
        401,
        error,
        expected="a link that playhead prints, the cookie that it opens, or authorization: Bearer TOKEN",
        hint="playhead ui; of a proxy that runs: playhead gates --page",
        headers=headers or (("www-authenticate", 'Bearer realm="playhead"'),),
    )


def _asset(path: str, method: str) -> Reply:
    if method not in ("GET", "HEAD"):
        raise _no_method(("GET", "HEAD"), method)
    asset = load_assets().get(path.rpartition("/")[2])
    if asset is None:
        raise ControlError(404, "There is nothing here", found=path[:100])
    return Reply(asset.data, kind=asset.kind)


def _no_method(allowed: tuple[str, ...], method: str) -> ControlError:
    listed = ", ".join(allowed)
    return ControlError(
        405,
        "This is not how it is asked",
        expected=listed,
        found=method[:100],
        headers=(("allow", listed),),
    )


class _Routes:
    """Finds what answers a path."""

    def __init__(self, library: Library, again: RunAgain) -> None:
        comparisons = fleet_data.Comparisons(library)
        fetches = Fetches(library)
        pages = html_pages.Pages(library, comparisons, again, fetches)
        ruling = Gates(library)
        self.now = Now(library)
        self.script_rights = Rights.READ | Rights.RULE

        def of(function: Callable[[Library, Asked], Reply]) -> Handler:
            return lambda asked: function(library, asked)

        run, step = "/data/runs/{run}", "/data/runs/{run}/steps/{seq}"
        self._table: tuple[tuple[str, str, Any, Rights], ...] = (
            ("GET", "/", pages.home, Rights.READ),
            ("GET", "/runs", pages.runs, Rights.READ),
            ("GET", "/runs/{run}", pages.run, Rights.READ),
            ("GET", "/diff/{first}/{second}", pages.diff, Rights.READ),
            ("GET", "/gates", lambda asked: pages.gates(asked, ruling), Rights.READ),
            ("GET", "/destinations", pages.destinations, Rights.READ),
            ("GET", "/parts/runs", pages.runs_part, Rights.READ),
            ("GET", "/parts/runs/{run}/{part}", pages.run_part, Rights.READ),
            ("GET", "/parts/diff/{first}/{second}", pages.diff_part, Rights.READ),
            ("GET", "/parts/gates", lambda asked: pages.gates_part(asked, ruling), Rights.READ),
            ("GET", "/data/runs", of(fleet_data.list_runs), Rights.READ),
            ("GET", run, of(run_data.get_run), Rights.READ),
            ("GET", f"{run}/fetched", fetches.look, Rights.READ),
            ("GET", f"{run}/steps", of(run_data.list_steps), Rights.READ),
            ("GET", f"{run}/lines", of(run_data.list_rows), Rights.READ),
            ("GET", f"{run}/strip", of(run_data.get_strip), Rights.READ),
            ("GET", f"{run}/place", of(run_data.get_place), Rights.READ),
            ("GET", f"{run}/moves", of(run_data.get_move), Rights.READ),
            ("GET", step, of(run_data.get_step), Rights.READ),
            ("GET", f"{step}/body", of(run_data.get_body), Rights.READ),
            ("GET", f"{step}/edit", again.get_text, Rights.READ),
            ("GET", f"{step}/context", of(run_data.list_context), Rights.READ),
            ("GET", f"{step}/blame", of(run_data.get_blame), Rights.READ),
            (
                "GET",
                "/data/diff/{first}/{second}",
                lambda asked: fleet_data.get_diff(comparisons, asked),
                Rights.READ,
            ),
            ("GET", "/data/gates", ruling.list_gates, Rights.READ),
            ("GET", "/data/breaks", ruling.list_breaks, Rights.READ),
            ("GET", "/data/breaks/{id}/recorded", ruling.get_recorded, Rights.READ),
            ("GET", "/data/now", self.now.look, Rights.READ),
            ("GET", "/data/events", stream_events, Rights.READ),
            ("POST", "/data/gates/{id}/approve", ruling.approve, Rights.RULE),
            ("POST", "/data/gates/{id}/deny", ruling.deny, Rights.RULE),
            ("POST", f"{run}/stop", ruling.stop, Rights.RULE),
            ("POST", f"{run}/branch", again.begin, Rights.RUN),
            ("GET", f"{run}/attempts", again.look, Rights.READ),
            *(
                ("POST", f"/data/breaks/{{id}}/{word}", ruling.of_break(word), Rights.RUN)
                for word in ("step", "continue", "answer", "quit")
            ),
        )

    def find(self, method: str, path: str) -> tuple[Any, dict[str, str], Rights]:
        """Find the handler of a request, the parts of its path, and what it takes.

        Raises: ControlError.
        """
        allowed = []
        for known, pattern, handler, needed in self._table:
            parameters = match_path(pattern, path)
            if parameters is None or not all(parameters.values()):
                continue
            if known == method:
                named = {
                    one: name_of(value) if one in _RUNS else value
                    for one, value in parameters.items()
                }
                return handler, named, needed
            allowed.append(known)
        if allowed:
            ways = ("GET", "HEAD") if "GET" in allowed else tuple(allowed)
            raise _no_method(ways, method)
        if method not in ("GET", "POST"):
            raise _no_method(("GET", "HEAD", "POST"), method)
        raise ControlError(
            404,
            "There is nothing here",
            expected="/runs, /gates or /destinations",
            found=path[:100],
            near=(("Runs", "/runs"), ("Gates", "/gates")),
        )


def _as_reply(error: ControlError | PlayheadError, path: str, let_in: bool) -> Reply:
    """Make an answer of what is wrong: a page, or JSON."""
    wrong = _as_wrong(error)
    if path.startswith("/data/"):
        reply = reply_json(wrong.to_json(), wrong.status)
        return Reply(reply.body, wrong.status, reply.kind, dict(wrong.headers))
    text = render("wrong", wrong=wrong, let_in=let_in, held=0, at=time.monotonic())
    return Reply(text.encode("utf-8", "backslashreplace"), wrong.status, HTML, dict(wrong.headers))


def _as_wrong(error: ControlError | PlayheadError) -> ControlError:
    if isinstance(error, ControlError):
        return error
    if isinstance(error, UnknownRun):
        near = tuple((name, run_path(name)) for name in error.nearest)
        return ControlError(
            404,
            f"No run is named {error.name[:200]!r}",
            expected="the name of a run",
            found=error.name[:100],
            hint=error.hint,
            near=near or (("Runs", "/runs"),),
        )
    if isinstance(error, StoreTooNew):
        return ControlError(
            503, "A newer version of Playhead wrote this", found=str(error), hint="use that version"
        )
    if isinstance(error, NotAnswered):
        return ControlError(
            409, error.error, expected=error.expected, found=error.found, hint=error.hint
        )
    status = 404 if isinstance(error, StoreError) and " no " in str(error) else 503
    return ControlError(status, str(error), hint=error.hint)
