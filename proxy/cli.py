"""The command line: find the command, and report errors."""

from .early_interrupt import end_on_interrupt, raise_on_interrupt
from .import_search_path import leave_python_path

leave_python_path()  # before anything else is imported
end_on_interrupt()

from . import lazy_dataclasses, lazy_regexes

lazy_dataclasses.compile_lazily()
lazy_regexes.compile_lazily()

# ruff: noqa: E402
# isort: split
import gc
import logging
import os
import sys
from collections.abc import Sequence

import click

from .. import PlayheadError, __version__
from ..config import ConfigError
from ..tape.exit_codes import ExitCode
from .command_line.grouped_help import GroupedCommands
from .commands import COMMANDS, GROUPS
from .commands.shared_options_and_output import complain
from .garbage import wait_for_imports
from .standard_streams import LOG_FORMAT, empty_stderr, fill_standard_files


@click.group(cls=GroupedCommands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "-V", "--version", prog_name="playhead")
@click.option("-v", "--verbose", count=True, help="Say more on stderr; twice for everything.")
def cli(verbose: int) -> None:
    """Record the network traffic of an agent, and replay the agent offline."""
    level = [logging.WARNING, logging.INFO, logging.DEBUG][min(verbose, 2)]
    logging.basicConfig(level=level, format=LOG_FORMAT, stream=sys.stderr)
    # A client that goes away or speaks nonsense is its own affair; -v shows it.
    for name in ("mitmproxy", "hpack", "h2", "asyncio"):
        logging.getLogger(name).setLevel(max(level, logging.INFO if verbose > 1 else logging.ERROR))


assert isinstance(cli, GroupedCommands)
cli.sections = GROUPS
for _command in COMMANDS:
    cli.add_command(_command)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit."""
    try:
        wait_for_imports()
        fill_standard_files()
        code = cli.main(args=arguments, prog_name="playhead", standalone_mode=False)
        if sys.stdout is not None:
            sys.stdout.flush()
    except (ConfigError, PlayheadError) as error:
        complain(error)
        code = ExitCode.USAGE
    except click.exceptions.Exit as error:
        code = error.exit_code
    except click.UsageError as error:
        error.show()
        code = (
            ExitCode.UNTESTABLE if error.ctx and error.ctx.info_name == "replay" else ExitCode.USAGE
        )
    except click.ClickException as error:
        error.show()
        code = ExitCode.USAGE
    except (click.Abort, KeyboardInterrupt):
        code = ExitCode.INTERRUPTED
    except BrokenPipeError:
        # Whoever read us has enough; a second write by the interpreter's exit would complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = ExitCode.NOT_READ
    empty_stderr()
    gc.freeze()  # all is garbage now: nothing is gained by finding out
    sys.exit(code if isinstance(code, int) else 0)


raise_on_interrupt()

if __name__ == "__main__":
    main()
