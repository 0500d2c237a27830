"""Look at runs that were recorded; nothing here changes one but `reindex`."""

from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ...tape.counted import counted
from ..standard_streams import print_status
from .shared_options_and_output import (
    RunName,
    complete_names,
    options,
    parse_since_option,
    print_json,
    print_list,
    reading,
    run_argument,
)

if TYPE_CHECKING:
    from ...config import Config
    from ...store import RunInfo


@click.command(short_help="List all runs, or those that match.")
@options("config", "store", "json")
@click.option(
    "--grep",
    metavar="REGEX",
    help="Runs with a step whose name or text matches, in any case.",
)
@click.option("--trace", metavar="ID", help="Runs with a request of a trace, or of a traceparent.")
@click.option("--since", metavar="TIME", help="Runs since then: 30d, 12h or a date.")
@click.option(
    "--tree", is_flag=True, help="Below each recording its replays, branches and resumed runs."
)
def runs(
    config_file: Path | None,
    store: str | None,
    as_json: bool,
    grep: str | None,
    trace: str | None,
    since: str | None,
    tree: bool,
) -> int:
    """List all runs, oldest first, or those that match."""
    from ...store import NoStore
    from ...timeline import render_runs
    from ...timeline.outcomes.outcome import outcome_json, read_outcome
    from ...timeline.show.run_tree import find_role, render_tree
    from ..operations.open_store import open_store
    from ..operations.restore_archived import find_none_since

    config = reading(config_file, store)
    since_ns = parse_since_option(since)
    if tree and (as_json or grep is not None or trace is not None):
        raise click.UsageError("--tree lists runs for people; leave out --json, --grep and --trace")
    if grep is not None or trace is not None:
        return _find_runs(config, grep, trace, since_ns, as_json=as_json)
    try:
        with open_store(config, readonly=True) as opened:
            listed = [
                run for run in opened.runs.all() if not run.sealed_ns or run.sealed_ns >= since_ns
            ]
            if since_ns and not listed and not as_json:
                click.echo(str(find_none_since(opened, since_ns)))
                return 0
            if tree:
                for line in render_tree(listed, partial(find_role, opened)):
                    click.echo(line)
                return 0
            outcomes = {run.number: read_outcome(opened, run) for run in listed}
    except NoStore as error:
        listed, outcomes = [], {}
        if as_json:
            print_status(f"playhead: {error}")
        else:
            click.echo(f"no runs yet, as there is {error}: {error.hint}")
            return 0
    if as_json:
        print_json(
            [
                {
                    "id": run.id,
                    "mode": run.mode,
                    "status": run.status.value,
                    "parent": run.parent,
                    "exchanges": run.exchanges,
                    "created_ns": run.created_ns,
                    "sealed_ns": run.sealed_ns,
                    "agent": run.agent,
                    "outcome": outcome_json(outcomes[run.number]),
                    "labels": list(run.labels),
                    "pinned": run.pinned,
                    "archived": _archived(run),
                    "end": run.end,
                }
                for run in listed
            ]
        )
    else:
        words = {number: one.words for number, one in outcomes.items() if one.words}
        click.echo(render_runs(listed, words))
    return 0


def _find_runs(
    config: "Config", grep: str | None, trace: str | None, since_ns: int, *, as_json: bool
) -> int:
    from ...tape.headers.trace_context import parse_trace
    from ..looking_back.find_runs import list_found
    from ..looking_back.show import parse_pattern

    if grep is not None and trace is not None:
        raise click.UsageError("expected --grep or --trace, one of the two")
    try:
        wanted = parse_pattern(grep) if trace is None else parse_trace(trace)
    except ValueError as error:
        option = "--grep" if trace is None else "--trace"
        raise click.UsageError(f"{option}: {error}") from None
    assert wanted is not None
    return list_found(config, wanted, since_ns, as_json=as_json)


def _archived(run: "RunInfo") -> dict[str, object] | None:
    where = run.archived
    if where is None:
        return None
    return {
        "place": where.place,
        "go": where.batch,
        "id": where.id,
        "recalled": not run.is_only_in_archive,
    }


@click.command(short_help="Print the receipt of a run again.")
@options("config", "store", "json")
@click.option("--all", "everything", is_flag=True, help="List every divergence, not only the root.")
@run_argument()
def receipt(
    config_file: Path | None, store: str | None, as_json: bool, everything: bool, run: str
) -> int:
    """Print the receipt of a run again."""
    from ...timeline import build, render_divergences, render_receipt
    from ..operations.open_store import open_store
    from ..operations.restore_archived import restore_runs
    from ..trust.receipt_signature import sign
    from ..trust.redaction_and_receipt_keys import find_receipt_key

    config = reading(config_file, store)
    restore_runs(config, run)
    with open_store(config, readonly=True) as opened:
        made = build(opened, opened.runs.get(run))
    if as_json:
        seed = find_receipt_key(config.store)
        print_json(made.to_json() if seed is None else sign(made.to_json(), seed))
        return 0
    click.echo(render_receipt(made))
    if everything and (listed := render_divergences(made)):
        click.echo(listed)
    return 0


@click.command(short_help="List the effects of a run, executed or not.")
@options("config", "store", "json")
@run_argument()
def effects(config_file: Path | None, store: str | None, as_json: bool, run: str) -> int:
    """List the effects of a run, executed or not."""
    from ...timeline.receipts.effects import effects_of
    from ...timeline.receipts.gaps import read_gaps
    from ...timeline.receipts.render_text import render_effects
    from ..operations.open_store import open_store
    from ..operations.restore_archived import restore_runs

    config = reading(config_file, store)
    restore_runs(config, run)
    with open_store(config, readonly=True) as opened:
        info = opened.runs.get(run)
        listed, omitted = effects_of(opened, info)
        gaps = read_gaps(opened, info)
        if as_json:
            for line in gaps.lines():
                print_status(f"playhead: {line}")
            print_list(effect.to_json() for effect in listed)
        else:
            for line in render_effects(info, listed, omitted, gaps):
                click.echo(line)
    return 0


@click.command(short_help="List the contract violations in a run.")
@options("config", "store", "json")
@click.option(
    "--with",
    "rules",
    type=click.Path(path_type=Path),
    help="Configuration file whose contracts are tried.",
)
@run_argument()
def contracts(
    config_file: Path | None, store: str | None, as_json: bool, rules: Path | None, run: str
) -> int:
    """List contract violations in a run. Exits with 1 if there are any."""
    from ...timeline.rules.contract_violations import render_found
    from ..operations.policy_dry_run import list_found, say_unchecked

    config = reading(config_file, store)
    found = list_found(config, run, rules)
    if as_json:
        print_list(asdict(row) for row in found)
    else:
        unchecked = "" if found else say_unchecked(config, run, rules)
        click.echo(render_found(run, found, unchecked))
    return 1 if any(row.violations for row in found) else 0


@click.command(short_help="Try the rules of another file on recorded runs.")
@options("config", "store", "json")
@click.option(
    "--with",
    "rules",
    type=click.Path(path_type=Path),
    required=True,
    help="Configuration file whose rules are tried.",
)
@click.option("--since", metavar="TIME", help="Count all runs since then by rule: 30d, or a date.")
@run_argument("runs", nargs=-1)
def policy(
    config_file: Path | None,
    store: str | None,
    as_json: bool,
    rules: Path,
    since: str | None,
    runs: tuple[str, ...],
) -> int:
    """Decide on recorded runs again under the rules of another file, and list the changes."""
    from ...timeline.rules.render_dry_run import render_dry_run, render_summary
    from ..operations.policy_dry_run import dry_run_runs, summarise_runs

    if since is not None:
        if runs:
            raise click.UsageError("expected runs, or --since TIME for all since then: not both")
        since_ns = parse_since_option(since)
        summary = summarise_runs(reading(config_file, store), since_ns, rules)
        print_json(summary.to_json()) if as_json else click.echo(render_summary(summary))
        return 0
    made = dry_run_runs(reading(config_file, store), runs, rules)
    if as_json:
        print_json([one.to_json() for one in made])
    else:
        click.echo("\n".join(map(render_dry_run, made)))
    return 0


@click.command(short_help="Propose `ignore` rules from two recordings of a task.")
@options("config", "store", "json")
@click.option("--profile", metavar="NAME", help="Propose the profile of a client instead, as YAML.")
@click.option(
    "--write",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the profile to this new file; its name is that of the file, or of --profile.",
)
@run_argument("first")
@run_argument("second")
def learn(
    config_file: Path | None,
    store: str | None,
    as_json: bool,
    profile: str | None,
    write: Path | None,
    first: str,
    second: str,
) -> int:
    """Propose `ignore` rules, or the profile of a client, from two recordings of the same task."""
    from ...config.profiles.client_profile import parse_name
    from ..operations.learn import learn_from, learn_profile, render_learned, write_profile

    name = write.stem if profile is None and write is not None else profile
    if name is not None:
        option = "--write" if profile is None else "--profile"
        if as_json:
            raise click.UsageError(f"{option} makes YAML; leave out --json")
        try:
            parse_name(name)
        except ValueError as error:
            raise click.UsageError(f"{option}: {error}") from None
        proposal = learn_profile(reading(config_file, store), first, second, name)
        if write is None:
            click.echo(proposal.text, nl=False)
            return 0
        write_profile(proposal, write)
        click.echo(
            f"{write}: a profile with {counted(proposal.places, 'place')}. Tried on both recordings: "
            f"{counted(proposal.still, 'place')} of the client differ all the same.\n{proposal.played}\n"
            f"Read each entry, write its reason, and put `profiles: [{write}]` into the configuration."
        )
        return 0

    learned = learn_from(reading(config_file, store), first, second)
    print_json(learned.to_json()) if as_json else click.echo(render_learned(learned))
    return 0


@click.command(short_help="List the profiles of clients, show or test them.")
@options("config", "store", "json")
@click.argument("what", type=click.Choice(["list", "show", "test"]), default="list")
@click.argument("names", nargs=-1, metavar="[NAME | RUN [OTHER]]", type=RunName())
def profiles(
    config_file: Path | None, store: str | None, as_json: bool, what: str, names: tuple[str, ...]
) -> int:
    """List the profiles of clients, show one, or test them on recordings. Exits with 1 if two recordings differ elsewhere."""
    from ...config.profiles.shipped_profiles import find_profiles
    from ...timeline.learning.try_profiles import list_profiles, render_profiles, render_trials
    from ..operations.learn import try_profiles

    config = reading(config_file, store)
    if what == "test":
        if len(names) not in (1, 2):
            raise click.UsageError(
                "expected one recording, or two of the same task: profiles test RUN [OTHER]"
            )
        names = complete_names(names, config_file, store)
        trials = (
            try_profiles(config, *names)
            if len(names) == 2
            else try_profiles(config, names[0], None)
        )
        if as_json:
            print_json([trial.to_json() for trial in trials])
        else:
            click.echo(render_trials(trials, two=len(names) == 2))
        return 1 if any(trial.still for trial in trials) else 0
    known = {one.name: one for one in find_profiles((), config.profiles)}
    if what == "show":
        if len(names) != 1 or names[0] not in known:
            raise click.UsageError(f"expected the name of a profile: {', '.join(known)}")
        click.echo(known[names[0]].text, nl=False)
        return 0
    if names:
        raise click.UsageError("`profiles list` takes no names")
    rows = list_profiles(config)
    if as_json:
        print_json(rows)
    else:
        click.echo(render_profiles(rows))
    return 0


@click.command(short_help="Apply the current match rules to a recording.")
@options("config", "store", "json")
@click.option("--dry-run", is_flag=True, help="Report the changes without making them.")
@run_argument()
def reindex(
    config_file: Path | None, store: str | None, as_json: bool, dry_run: bool, run: str
) -> int:
    """Apply the current match rules to a tape, and list the changes."""
    from ...timeline.rules.reindex import render_plan
    from ..operations.reindex import reindex_run

    made = reindex_run(reading(config_file, store), run, write=not dry_run)
    if as_json:
        print_json(made.to_json(written=not dry_run))
    else:
        click.echo(render_plan(made, written=not dry_run))
    return 0
