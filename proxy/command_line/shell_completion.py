"""Scripts that have a shell complete commands, flags and names of runs."""

import click
from click.shell_completion import FishComplete, ShellComplete, ZshComplete

_ASK = "_PLAYHEAD_COMPLETE"
"""Variable by which the script asks `playhead` for words; click reads it."""


class _Bash(ShellComplete):
    """Bash 4.4 and later; its version is not looked up, so that a script can be made where there is no bash."""

    name = "bash"
    source_template = """\
%(complete_func)s() {
    local IFS=$'\\n'
    local answer
    answer=$(env COMP_WORDS="${COMP_WORDS[*]}" COMP_CWORD=$COMP_CWORD %(complete_var)s=bash_complete "$1")
    for one in $answer; do
        IFS=',' read -r kind value <<< "$one"
        if [[ $kind == 'dir' ]]; then
            COMPREPLY=()
            compopt -o dirnames
        elif [[ $kind == 'file' ]]; then
            COMPREPLY=()
            compopt -o default
        elif [[ $kind == 'plain' ]]; then
            COMPREPLY+=("$value")
        fi
    done
    return 0
}
complete -o nosort -F %(complete_func)s %(prog_name)s
"""


_SHELLS: dict[str, type[ShellComplete]] = {"bash": _Bash, "zsh": ZshComplete, "fish": FishComplete}


def make_script(group: click.Command, shell: str) -> str:
    """Give the script for bash, zsh or fish."""
    return _SHELLS[shell](group, {}, "playhead", _ASK).source()
