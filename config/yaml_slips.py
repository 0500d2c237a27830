"""What was most likely meant where a text is no YAML: the parser's words name a place, and seldom the slip.

Only the words and marks of PyYAML's error and the lines around them are looked at; nothing is parsed again.
"""

import re

import yaml

_AFTER_NO_BLANK = ("mapping values are not allowed here", "could not find expected ':'")
"""What PyYAML says behind a key whose colon has no blank behind it."""
_NO_BLANK_LINE = re.compile(r"\s*(?:- )?(?!https?:|tcp:|unix:)[A-Za-z_][\w-]*:[^\s/]")
"""A line that is most likely a key, and whose value is not apart from it."""
_NO_COLON_LINE = re.compile(r"\s*(?:- )?[A-Za-z_][\w-]*(?: +[^:]*(?::\S[^:]*)*)?\s*")
"""A line that is most likely a key without its colon; colons inside of its value may stand."""
_NOTHING = re.compile(r"\s*(?:#.*)?")
"""A blank line, or a comment."""
_NO_BLANK_DASH = re.compile(r"\s*-[^\s-]")
_ITEM = re.compile(r"\s*-\s+")
_COLUMNS = "the entries of one list or section begin in the same column"


def find_slip(text: str, error: yaml.MarkedYAMLError) -> str:
    """Say what to change, in a few words."""
    lines = text.splitlines()
    mark = error.problem_mark or error.context_mark
    line, column = (mark.line, mark.column) if mark else (0, 0)
    opened = error.context_mark.line if error.context_mark else line
    context, problem = error.context or "", error.problem or ""
    if "'\\t'" in problem:
        return "YAML indents with spaces, not with tabs"
    if problem in _AFTER_NO_BLANK:
        at = opened if error.context else line
        return _find_slip_of_colon(lines, line, column, at, key_ends="expected" not in problem)
    if "quoted scalar" in context:
        if "escape" in problem:
            return "use single quotes, in which a backslash is itself"
        return f"the quote that opens on line {opened + 1} is not closed"
    if "flow node" in context and "stream end" not in problem:
        return f"put a value with {_quote(lines, line, column)} into quotes"
    if "flow" in context:
        return f"the bracket that opens on line {opened + 1} is not closed, or a comma is missing before this place"
    if "single document" in context:
        return "one file is one document: remove the line `---`"
    if "document start" in problem:
        first = next(at for at, one in enumerate(lines) if not _NOTHING.fullmatch(one))
        if _NO_COLON_LINE.fullmatch(lines[first]):
            return f"line {first + 1} has no colon after its key"
        return f"line {line + 1} is indented unlike those before: {_COLUMNS}"
    if "sequence entries" in problem:
        return "begin a list on the line below its key"
    if "parsing a block" in context and "node" not in context:
        return _find_slip_of_block(lines, line, error)
    if error.context_mark is not None and "next token" not in context and "node" not in context:
        column = error.context_mark.column
        line = opened
    if "alias" in problem or "node" in context or "while scanning" in context:
        return f"put a value that begins with {_quote(lines, line, column)} into quotes"
    return "the slip is on this line, or on one before it"


def _find_slip_of_colon(
    lines: list[str], line: int, column: int, at: int, *, key_ends: bool
) -> str:
    """Tell a colon that is missing, that has no blank, or that is too many.

    at: the line that may have no colon.
    key_ends: whether the parser stopped at a colon, and not for the lack of one.
    """
    above = (number for number in range(min(line, len(lines) - 1), -1, -1))
    if found := next((one + 1 for one in above if _NO_BLANK_LINE.match(lines[one])), 0):
        return f"line {found} has no blank after its colon"
    if not key_ends:
        return f"line {at + 1} has no colon after its key"
    if re.search(r":\s", lines[line][:column]):
        return "put a value with a colon and a blank inside into quotes"
    before = line - 1
    while before > 0 and _NOTHING.fullmatch(lines[before]):
        before -= 1
    if before >= 0 and _NO_COLON_LINE.fullmatch(lines[before]):
        return f"line {before + 1} has no colon after its key"
    return f"line {line + 1} is indented deeper than line {before + 1}, and reads as more of its value: {_COLUMNS}"


def _find_slip_of_block(lines: list[str], line: int, error: yaml.MarkedYAMLError) -> str:
    """Tell a wrong depth, a dash without a blank, or words behind a value that has ended."""
    problem = error.problem or ""
    if "<scalar>" in problem or "<anchor>" in problem or "<alias>" in problem:
        return "nothing can follow a closing quote or bracket: put the whole value into quotes"
    before = lines[line - 1] if 0 < line <= len(lines) else ""
    if _NO_BLANK_DASH.match(before):
        return f"line {line} has no blank after its dash"
    if "collection" not in (error.context or "") or error.context_mark is None:
        return f"line {line + 1} is indented unlike those before: {_COLUMNS}"
    dash = error.context_mark.column
    if "sequence" in problem:
        return f"begin line {line + 1} in column {dash + 1}, as the items before it"
    items = (_ITEM.match(one) for one in reversed(lines[:line]) if one[dash : dash + 1] == "-")
    item = next((one for one in items if one is not None), None)
    under = item.end() + 1 if item is not None else dash + 3
    return f"begin line {line + 1} in column {under}, under the first key of its list item"


def _quote(lines: list[str], line: int, column: int) -> str:
    return repr(lines[line][column : column + 1]) if line < len(lines) else "this"
