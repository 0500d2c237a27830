"""The control API holds what its own document says, whatever is sent: no error of ours, no way past the token.

A few examples of each on every day, many for the bars.
"""

import os
import secrets
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from playhead.config import Config
from playhead.proxy.control.address import find_addresses, open_token
from playhead.proxy.control.client import ask
from playhead.proxy.control.handlers.openapi import document
from playhead.proxy.control.handlers.route_table import make_table
from playhead.proxy.control.http.route import Route
from playhead.tests.support.process import Serve, fetch

if TYPE_CHECKING:  # every process that runs tests collects this file
    from schemathesis import Case

FULL = bool(os.environ.get("PLAYHEAD_FULL"))
TRIES = settings(
    max_examples=200 if FULL else 2,
    deadline=None,
    phases=(Phase.generate, Phase.shrink),
    suppress_health_check=list(HealthCheck),
    database=None,
)
ROUTES = make_table()
RUNS = ("open", "stopped", "sealed")
TIMEOUT_S = 10


class Api(NamedTuple):
    """A proxy that runs, with runs of every sort."""

    url: str
    token: str
    schema: Any

    def operation(self, route: Route) -> Any:
        """What the served document says of a route."""
        return self.schema[route.path][route.method]


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """A process of its own, which has to live to the end."""
    import requests
    import schemathesis

    store = tmp_path_factory.mktemp("fuzzed") / "store"
    with Serve("--store", store, "--listen", "127.0.0.1:0") as proxy:
        for run in RUNS:
            fetch("http://playhead.internal/", proxy=proxy.url_for(run))
        (address,) = find_addresses(store)
        config = Config(store=store)
        for what, run in (("stop", "stopped"), ("seal", "sealed")):
            ask(config, address, "POST", f"/v1/runs/{run}/{what}")
        served = requests.get(f"{address.url}/openapi.json", timeout=TIMEOUT_S).json()
        assert served == document(ROUTES)
        yield Api(address.url, open_token(config), schemathesis.openapi.from_dict(served))
        assert requests.get(f"{address.url}/healthz", timeout=TIMEOUT_S).json() == {"status": "ok"}
        code, _, err = proxy.stop()
    assert (code, err) == (0, "")


def _hold(api: Api, strategy: "st.SearchStrategy[Case[Any]]") -> None:
    # Spelt so that the check which asks again without it finds it.
    headers = {"Authorization": f"Bearer {api.token}"}

    @TRIES
    @given(case=strategy)
    def holds(case: "Case[Any]") -> None:
        case.call_and_validate(base_url=api.url, headers=headers, timeout=TIMEOUT_S)

    holds()


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.name)
def test_every_answer_is_one_that_the_document_names(api: Api, route: Route) -> None:
    """Status, type and shape; of runs of every sort, and of those that there are none of."""
    operation = api.operation(route)
    runs = (None, *(RUNS if FULL else RUNS[:1])) if "{id}" in route.path else (None,)
    for run in runs:
        _hold(api, operation.as_strategy(path_parameters={"id": run} if run else None))


@pytest.mark.parametrize(
    "route", [route for route in ROUTES if route.method == "POST"], ids=lambda route: route.name
)
def test_a_body_that_does_not_fit_is_refused(api: Api, route: Route) -> None:
    """With a status that the document names."""
    from schemathesis import GenerationMode

    operation = api.operation(route)
    if FULL:
        _hold(api, operation.as_strategy(GenerationMode.NEGATIVE))
    _hold(api, operation.as_strategy(GenerationMode.NEGATIVE, path_parameters={"id": "open"}))


@pytest.mark.parametrize(
    "route", [route for route in ROUTES if not route.open], ids=lambda route: route.name
)
def test_nothing_gets_past_the_token(api: Api, route: Route) -> None:
    """Whatever else is sent, and whatever stands in its place; the answer tells nothing of any run."""
    almost = st.sampled_from(
        [api.token[:-1], api.token.swapcase(), f"{api.token} x", "", secrets.token_urlsafe(32)]
    )
    texts = st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=60)
    schemes = st.sampled_from(["Bearer ", "Basic ", "", "bearer", "Token ", "Bearer  Bearer "])

    @TRIES
    @given(
        case=api.operation(route).as_strategy(
            path_parameters={"id": "open"} if "{id}" in route.path else None
        ),
        scheme=schemes,
        token=almost | texts,
        fields=st.dictionaries(st.sampled_from(_CARRIERS), st.just(api.token), max_size=3),
    )
    def refused(case: "Case[Any]", scheme: str, token: str, fields: dict[str, str]) -> None:
        headers = {**fields, "authorization": f"{scheme}{token}"}
        if headers["authorization"] == f"Bearer {api.token}":
            return
        case.query = {"token": api.token, "access_token": api.token, "authorization": api.token}
        case.cookies = {"token": api.token, "authorization": api.token}
        answer = case.call(base_url=api.url, headers=headers, timeout=TIMEOUT_S)
        assert answer.status_code in (400, 401, 403)
        if answer.status_code != 400:
            assert set(answer.json()) == {"error", "expected", "found", "hint"}

    refused()


_CARRIERS = [
    "x-authorization",
    "proxy-authorization",
    "x-api-key",
    "x-access-token",
    "x-forwarded-authorization",
    "x-original-url",
    "x-http-method-override",
]


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.name)
def test_nothing_gets_past_the_host(api: Api, route: Route) -> None:
    """With the right token, by any name that is not ours."""
    import requests

    names = st.from_regex(r"[a-z0-9.-]{1,30}", fullmatch=True)
    ports = st.sampled_from(["", ":80", f":{api.url.rpartition(':')[2]}"])
    path = route.path.replace("{id}", "open")

    @TRIES
    @given(name=names, port=ports)
    def refused(name: str, port: str) -> None:
        headers = {"authorization": f"Bearer {api.token}", "host": f"{name}{port}"}
        if name in ("localhost", "127.0.0.1"):
            return
        answer = requests.request(route.method, api.url + path, headers=headers, timeout=TIMEOUT_S)
        assert answer.status_code == 403

    refused()
