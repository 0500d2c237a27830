"""Flags that `bisect`, `sweep` and `explore` share."""

from collections.abc import Callable
from typing import Any

import click

from ....config.sections.faults import MOST
from ..run_again import Usd


def spends[F: Callable[..., Any]](function: F) -> F:
    """Give a command the flags of what goes live, and what that may cost."""
    for option in (
        click.option("--yes", is_flag=True, help="Do not ask before something leaves."),
        click.option(
            "--max-calls",
            type=click.IntRange(1, MOST),
            metavar="N",
            help="Most requests that may leave, over all runs; default: twice as many as on the tape.",
        ),
        click.option(
            "--cap", type=Usd(), metavar="USD", help="Most dollars for models, over all runs."
        ),
        click.option("--reason", metavar="TEXT", help="Why they may leave."),
        click.option(
            "--live",
            metavar="CLASS[=HOST,...]",
            multiple=True,
            help="CLASS or CLASS=HOST,HOST: send requests of class inference or read that the tape lacks to these hosts, or those of the tape; repeatable.",
        ),
    ):
        function = option(function)
    return function


ANEW = click.option(
    "--anew", is_flag=True, help="Start over, although an earlier call was interrupted."
)
CHECK = click.option(
    "--check",
    metavar="CMD",
    help="Command after each run: 0 means good, 125 unknown, 1 to 124 bad.",
)
