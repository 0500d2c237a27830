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
            help="Most requests that leave, over all runs; by default twice what the tape has.",
        ),
        click.option(
            "--cap", type=Usd(), metavar="USD", help="Most dollars for models, over all runs."
        ),
        click.option("--reason", metavar="TEXT", help="Why that may leave."),
        click.option(
            "--live",
            metavar="CLASS[=HOST,...]",
            multiple=True,
            help="What the tape does not hold of inference or read goes live, at these hosts or those of the tape.",
        ),
    ):
        function = option(function)
    return function


ANEW = click.option(
    "--anew", is_flag=True, help="Begin again, where an earlier call did not come to its end."
)
CHECK = click.option(
    "--check",
    metavar="CMD",
    help="A command that is run after each run: 0 says good, 125 nothing, 1 to 124 bad.",
)
