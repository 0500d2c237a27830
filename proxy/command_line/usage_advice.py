"""Advice on a command line that was refused: what a flag of other tools is called here, an example of what is missing, what a surplus word is for."""

import difflib
import re
import shlex
from collections.abc import Callable, Iterable, Sequence

import click

from ...tape.shell_words import shell_word
from .command_words import TakesCommand

_OTHER_FLAGS = {
    "-f": ("--yes", "--replace"),
    "--force": ("--yes", "--replace"),
    "--overwrite": ("--replace",),
    "-y": ("--yes",),
    "-n": ("--dry-run",),
    "-o": ("--tape", "--html", "--write"),
    "--output": ("--tape", "--html", "--write"),
    "--format": ("--tape", "--html"),
    "--name": ("--run",),
    "--seq": ("--at",),
    "--no-sandboxed": ("--no-sandbox",),
}
"""Flags of other tools -> those here, of which a command has one at most, or all of one kind."""
_EXAMPLES = {
    "ask": "playhead ask refund 3 --model gpt-5-mini",
    "bisect": "playhead bisect bad good -- python agent.py",
    "blame": "playhead blame refund 3 '$.amount'",
    "branch": "playhead branch refund --at 3 --answer answer.json -- python agent.py",
    "completion": "playhead completion bash",
    "explore": "playhead explore refund -- python agent.py",
    "export": "playhead export refund --tape refund.tape",
    "history": "playhead history https://shop.test/orders/7",
    "import": "playhead import refund.tape",
    "policy": "playhead policy refund --with rules.yaml",
    "record": "playhead record --run refund -- python agent.py",
    "replay": "playhead replay refund -- python agent.py",
    "resume": "playhead resume refund -- python agent.py",
    "stdio": "playhead stdio -- npx some-server",
    "sweep": "playhead sweep sweep.yaml -- python agent.py",
}
"""Of commands for which words have to be in an order, or which need more than a run."""
_SURPLUS = re.compile(r"Got unexpected extra arguments? \((.*)\)\.?", re.DOTALL)
"""Says which words are too many."""
_ALIKE = 0.1
"""By how much a word may be less like the typed one than the nearest, to be named beside it."""
_SEQ = "SEQ"


def refuse_single_dash(ctx: click.Context, args: Sequence[str]) -> None:
    """Refuse a long flag behind a single dash, which is otherwise read as several short ones. Raises: UsageError."""
    known = _list_flags(ctx)
    words = args[: args.index("--")] if "--" in args else args
    takes_command, is_value = isinstance(ctx.command, TakesCommand), False
    for word in words:
        option = known.get(word.partition("=")[0])
        if is_value:
            is_value = False
        elif option is not None:
            is_value = "=" not in word and not (option.is_flag or option.count)
        elif word.startswith("-") and f"-{word.partition('=')[0]}" in known:
            raise click.UsageError(
                f"No such option {word!r}. Did you mean {f'-{word}'!r}, with two dashes?", ctx
            )
        elif not word.startswith("-") and "--" not in args and takes_command:
            return  # what comes behind may be the words of that command


def explain_flag(error: click.NoSuchOption, args: Sequence[str]) -> str:
    """Say which flag is meant by one that a command does not have.

    args: the words of its line.
    """
    if error.ctx is None:
        return error.format_message()
    known = [*_list_flags(error.ctx)]
    typed, text = error.option_name, error.message
    words = " ".join(error.ctx.command.collect_usage_pieces(error.ctx)[1:])
    if re.fullmatch(r"-\d", typed) and _SEQ in words:
        return f"{text} A {_SEQ} counts from 1: {_list_steps(error.ctx, args)}"
    whole = _find_cluster(typed, args)
    if whole:
        typed, text = f"-{whole}", f"No such option {whole!r}."
    plain = typed.removeprefix("--").upper()
    if plain in re.findall("[A-Z]+", words):
        return f"{text} {plain} is written without it: `{error.ctx.command_path} {words}`."
    near = [one for one in _OTHER_FLAGS.get(typed, ()) if one in known] or _find_nearest(
        typed, [one for one in known if one.startswith("--")] if typed.startswith("--") else ()
    )
    if not near:
        return text
    shown = repr(near[0]) if len(near) == 1 else f"one of: {', '.join(map(repr, near))}"
    return f"{text} Did you mean {shown}?"


def _list_flags(ctx: click.Context) -> dict[str, click.Option]:
    """Give all words of a command that are flags, in the order of its help."""
    return {
        word: one
        for one in ctx.command.get_params(ctx)
        if isinstance(one, click.Option) and not one.hidden
        for word in (*one.opts, *one.secondary_opts)
    }


def _find_cluster(typed: str, args: Sequence[str]) -> str:
    """Find the word of a line that has an unknown letter behind a single dash, where that is a word; empty for a letter alone."""
    if len(typed) != len("-x"):
        return ""
    found = re.compile(rf"-(?=[a-z]*{re.escape(typed[1])})[a-z][a-z-]+")
    return next((one for one in args if found.fullmatch(one)), "")


def _find_nearest(typed: str, known: Iterable[str]) -> list[str]:
    """Give the words that are most like one, the nearest first."""
    near = difflib.get_close_matches(typed, known)
    ratios = [difflib.SequenceMatcher(None, one, typed).ratio() for one in near]
    return [one for one, ratio in zip(near, ratios, strict=True) if ratio > ratios[0] - _ALIKE]


def _list_steps(ctx: click.Context, args: Sequence[str]) -> str:
    """Say what lists the steps of the run on a line."""
    run = ctx.params.get("run") or next((one for one in args if not one.startswith("-")), "RUN")
    return f"`playhead show {shell_word(str(run))}` lists those of the run"


def advise(error: click.UsageError) -> str:
    """Give an example of what is missing on a command's line, or what a surplus word is for; empty where neither is the matter."""
    ctx = error.ctx
    if ctx is None:
        return ""
    told = error.format_message()
    if surplus := _SURPLUS.fullmatch(told):
        return _explain_surplus(ctx, surplus[1])
    if isinstance(error, click.BadOptionUsage) and told.endswith("requires an argument."):
        option = _list_flags(ctx).get(error.option_name)
        return f"Expected: {error.option_name} {option.make_metavar(ctx)}" if option else ""
    if isinstance(error, click.BadParameter) and not isinstance(error, click.MissingParameter):
        return _explain_value(error)
    if not told.startswith("Missing "):
        return ""
    param = error.param if isinstance(error, click.MissingParameter) else None
    if ctx.command.name in _EXAMPLES:
        return f"As in: {_EXAMPLES[ctx.command.name]}"
    return "`playhead runs` lists the runs." if param and param.type.name == "run" else ""


def _explain_value(error: click.BadParameter) -> str:
    """Say what a number may be, or which word was meant."""
    kind = error.param.type if error.param is not None else None
    if isinstance(kind, click.IntRange):
        least = "" if kind.min is None else f" from {kind.min}"
        most = "" if kind.max is None else f" to {kind.max}"
        return f"Expected a whole number{least}{most}."
    typed = re.search(r"'(.+?)' is not one of", error.message)
    if isinstance(kind, click.Choice) and typed is not None:
        near = difflib.get_close_matches(typed[1], [str(one) for one in kind.choices], 1)
        return f"Did you mean {near[0]!r}?" if near else ""
    return ""


def _explain_surplus(ctx: click.Context, words: str) -> str:
    """Say what the words are for that a command does not take."""
    explain = _OF_SURPLUS.get(str(ctx.command.name))
    advice = explain(ctx, words) if explain is not None else ""
    usage = " ".join(ctx.command.collect_usage_pieces(ctx))
    return advice or (
        f"Expected: {ctx.command_path} {usage}; a name or a text with blanks needs quotes."
    )


def _for_runs(_: click.Context, words: str) -> str:
    word = words.split(" ", 1)[0]
    return (
        f"`runs` takes no name: `playhead show {shell_word(word)}` shows a run,"
        f" and `playhead runs --grep {shell_word(word)}` searches all"
    )


def _for_diff(ctx: click.Context, words: str) -> str:
    if not all(re.fullmatch(r"[0-9.]+", one) for one in words.split()):
        return ""
    name = _read(ctx, "first")
    return (
        f"`diff` compares two runs, not two steps: `playhead diff {shell_word(name)} RUN`;"
        f" `playhead show {shell_word(name)} {_SEQ}` shows a step"
    )


def _for_export(ctx: click.Context, words: str) -> str:
    form = "--html" if words.endswith((".html", ".htm")) else "--tape"
    return f"The file is named with an option: `playhead export {shell_word(_read(ctx, 'run'))} {form} {shell_word(words)}`"


def _for_note(ctx: click.Context, words: str) -> str:
    text = f"{ctx.params.get('text') or ''} {words}".strip()
    return (
        f"The text needs quotes: `playhead note {shell_word(_read(ctx, 'run'))} {shell_word(text)}`"
    )


def _for_ui(ctx: click.Context, words: str) -> str:
    run = _read(ctx, "run")
    if re.fullmatch(r"[0-9.]+", words):
        return f"`ui` takes no step: `playhead ui {shell_word(run)}` opens the run"
    return f"A command comes behind `--`: `playhead ui {shell_word(run)} --allow-run -- {shlex.join(words.split())}`"


def _read(ctx: click.Context, name: str) -> str:
    return str(ctx.params.get(name) or "RUN")


_OF_SURPLUS: dict[str, Callable[[click.Context, str], str]] = {
    "diff": _for_diff,
    "export": _for_export,
    "note": _for_note,
    "runs": _for_runs,
    "ui": _for_ui,
}
"""Commands whose surplus words have a place elsewhere -> what says so."""
