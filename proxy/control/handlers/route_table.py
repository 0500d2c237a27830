"""The route table of the control API."""

from collections.abc import Callable
from dataclasses import replace

from ..http.route import Route
from . import breakpoints, gates, health, metrics, page_links, runs
from .openapi import Describe

_RUN = "/v1/runs/{id}"
_GATE = "/v1/gates/{id}"
_BREAK = "/v1/breaks/{id}"
_OF_A_RUN = {404: "Problem"}
_OF_AN_OPEN_RUN = {404: "Problem", 409: "Problem", 503: "Problem"}

_ROUTES = (
    Route("GET", "/v1/runs", "listRuns", "The open runs.", runs.list_runs, {200: "Runs"}),
    Route("GET", _RUN, "getRun", "One run.", runs.get_run, {200: "Run", **_OF_A_RUN}),
    Route(
        "POST",
        f"{_RUN}/stop",
        "stopRun",
        "Refuse all further requests of a run, and abort those in flight.",
        runs.stop,
        {200: "Run", **_OF_AN_OPEN_RUN},
        body={"reason": runs.REASON},
    ),
    Route(
        "POST",
        f"{_RUN}/seal",
        "sealRun",
        "End a run.",
        runs.seal,
        {200: "Run", 202: "Run", **_OF_AN_OPEN_RUN},
        body={"reason": runs.REASON},
    ),
    Route(
        "GET",
        "/v1/gates",
        "listGates",
        "The pending approvals, oldest first.",
        gates.list_gates,
        {200: "Gates"},
    ),
    Route(
        "GET",
        _GATE,
        "getGate",
        "One pending approval.",
        gates.get_gate,
        {200: "Gate", 404: "Problem"},
    ),
    Route(
        "POST",
        f"{_GATE}/approve",
        "approve",
        "Let a held request go; its digest says that it is the one that was looked at.",
        gates.approve,
        {200: "Ruled", 409: "Problem"},
        body={"digest": gates.DIGEST, "reason": gates.REASON, "via": gates.VIA},
    ),
    Route(
        "POST",
        f"{_GATE}/deny",
        "deny",
        "Refuse a held request.",
        gates.deny,
        {200: "Ruled", 409: "Problem"},
        body={"digest": gates.DIGEST, "reason": gates.REASON, "via": gates.VIA},
    ),
    Route(
        "GET",
        "/v1/breaks",
        "listBreaks",
        "Requests held at breakpoints, oldest first.",
        breakpoints.list_breaks,
        {200: "Breaks"},
    ),
    Route(
        "POST",
        f"{_BREAK}/step",
        "step",
        "Let a request that is held go on, and hold the next one.",
        breakpoints.step,
        {200: "Commanded", 409: "Problem"},
    ),
    Route(
        "POST",
        f"{_BREAK}/continue",
        "continue",
        "Let a request that is held go on, up to the next breakpoint.",
        breakpoints.go_on,
        {200: "Commanded", 409: "Problem"},
    ),
    Route(
        "POST",
        f"{_BREAK}/answer",
        "answer",
        "Give a request that is held another answer.",
        breakpoints.answer,
        {200: "Commanded", 409: "Problem"},
        body={"answer": breakpoints.ANSWER},
    ),
    Route(
        "POST",
        f"{_BREAK}/quit",
        "quit",
        "Stop the run of a request that is held.",
        breakpoints.quit_run,
        {200: "Commanded", 409: "Problem"},
    ),
    Route("GET", "/metrics", "metrics", "Measures for Prometheus.", metrics.metrics, {200: "text"}),
    Route(
        "GET",
        "/healthz",
        "health",
        "Whether it answers.",
        health.health,
        {200: "Health"},
        open=True,
    ),
    Route(
        "GET",
        "/readyz",
        "ready",
        "Whether requests are taken and can be kept.",
        health.ready,
        {200: "Ready", 503: "Ready"},
        open=True,
    ),
)


def make_table(
    make_link: Callable[[], str] = lambda: "/gates",
) -> tuple[Route, ...]:
    """Give all routes, with the one that describes them.

    make_link: makes the path of a link to the page of gates.
    """
    link = Route(
        "POST",
        "/v1/links",
        "makeLink",
        "Make a link to the page of gates, valid once: with it, anyone can rule.",
        page_links.link_maker(make_link),
        {200: "Link"},
    )
    itself = Route(
        "GET",
        "/openapi.json",
        "describe",
        "This document.",
        health.health,
        {200: "Document"},
        open=True,
    )
    routes = (*_ROUTES, link)
    described = Describe((*routes, itself))
    return (*routes, replace(itself, handler=described))
