"""Misuses of `bisect`, `sweep` and `explore`: what is asked, what is said, and that nothing leaves which was not declared.

`WORDS` are command lines that are refused before anything runs. A listener counts what leaves, and no run is made.

The store has: `bad` and `good`, two recordings of one agent of which the first ended with 3 and three answers differ; `twin`, which
answers as `bad` does; `other`, which shares no request with it; `foreign`, whose placeholders are of another key; `carries`, which has
a command; `bad@1`, a replay; `plain`, without a call of a model.
"""

from .branch_cases import GO, LIVE, Words

BISECT = (
    Words("bisect: no command", ("bisect", "bad", "good"), "runs the command that you give"),
    Words(
        "bisect: a tape that carries a command",
        ("bisect", "carries", "good"),
        "was recorded with: touch",
    ),
    Words(
        "bisect: no good run", ("bisect", "bad", "--", "true"), "two recordings are needed before"
    ),
    Words("bisect: nobody", ("bisect", "nobody", "good", *GO), "nobody"),
    Words("bisect: nobody good", ("bisect", "bad", "nobody", *GO), "nobody"),
    Words("bisect: a run and itself", ("bisect", "bad", "bad", *GO), "'bad' is named twice"),
    Words(
        "bisect: the first recording of a name",
        ("bisect", "again~1", "again~2", *GO),
        "the command of 'again' ended with 0, which is good",
    ),
    Words(
        "branch: the first recording of a name",
        ("branch", "again~1", "--at", "1"),
        "runs the command that you give",
    ),
    Words(
        "explore: the first recording of a name",
        ("explore", "again~1"),
        "runs the command that you give",
    ),
    Words(
        "sweep: the first recording of a name",
        ("sweep", "FILE"),
        "runs the command that you give",
        "{run: again~1, at: 1, variants: [{name: as it was}]}",
    ),
    Words(
        "bisect: a run and the name of which it is the newest",
        ("bisect", "again~2", "again", *GO),
        "'again~2' and 'again' are both the recording 'again~2': there is no other answer to try"
        " hint: older recordings of that name: 'again~1';",
    ),
    Words("bisect: no difference", ("bisect", "bad", "twin", *GO), "have the same meaning"),
    Words(
        "bisect: nothing in common", ("bisect", "bad", "other", *GO), "have no question in common"
    ),
    Words(
        "bisect: a replay as the good run",
        ("bisect", "bad", "bad@1", *GO),
        "is a playback of 'bad'",
    ),
    Words("bisect: another key", ("bisect", "bad", "foreign", *GO), "another key"),
    Words(
        "bisect: both are good",
        ("bisect", "good", "twin-of-good", *GO),
        "ended with 0, which is good",
    ),
    Words(
        "bisect: the good one is bad",
        ("bisect", "bad", "worse", *GO),
        "ended with 4, which is bad",
    ),
    Words("bisect: no labels", ("bisect", "bad", "good", "--label", *GO), "playhead label"),
    Words(
        "bisect: two judges",
        ("bisect", "bad", "good", "--label", "--check", "true", *GO),
        "expected one of them",
    ),
    Words(
        "bisect: an empty check", ("bisect", "bad", "good", "--check", "", *GO), "names no command"
    ),
    Words(
        "bisect: a check that is not there",
        ("bisect", "bad", "good", "--check", "./nowhere.sh", *GO),
        "cannot be started",
    ),
    Words(
        "bisect: live without a reason",
        ("bisect", "bad", "good", "--live", "inference", *GO),
        "--reason",
    ),
    Words(
        "bisect: a reason for nothing", ("bisect", "bad", "good", "--reason", "r", *GO), "goes with"
    ),
    Words(
        "bisect: effects live",
        ("bisect", "bad", "good", "--live", "effect", "--reason", "r", *GO),
        "effects never go live",
    ),
    Words("bisect: a cap of 0", ("bisect", "bad", "good", *LIVE, "--cap", "0", *GO), "above 0"),
    Words(
        "bisect: no calls at all",
        ("bisect", "bad", "good", *LIVE, "--max-calls", "0", *GO),
        "--max-calls",
    ),
    Words(
        "bisect: a cap of what does not leave",
        ("bisect", "bad", "good", "--cap", "1", *GO),
        "nothing is declared",
    ),
    Words("bisect: no times", ("bisect", "bad", "good", "--times", "0", *GO), "--times"),
    Words("bisect: nobody is asked", ("bisect", "bad", "good", *LIVE, *GO), "say --yes"),
)

SWEEP = (
    Words(
        "sweep: no file",
        ("sweep", "nowhere.yaml"),
        "nowhere.yaml: no such file; expected a YAML file of variants hint: write such a file, as: {run: ",
    ),
    Words(
        "sweep: a run in the place of the file",
        ("sweep", "again~2", *GO),
        "again~2: a run, and no file; expected a YAML file of variants"
        ' hint: write such a file, as: {run: "again~2", at: 1, variants: [{name: as it was}]}',
    ),
    Words(
        "sweep: variants as a mapping",
        ("sweep", "FILE", *GO),
        "playhead: FILE:4:3: variants: expected a list of variants, as `variants: [{name: as it was}]`,"
        " found a mapping",
        "run: bad\nat: 1\nvariants:\n  one: {}\n",
    ),
    Words("sweep: an empty file", ("sweep", "FILE"), "missing; expected the recording", ""),
    Words("sweep: no YAML", ("sweep", "FILE"), "FILE:1", "{["),
    Words("sweep: a list", ("sweep", "FILE"), "expected a mapping", "- run: bad\n"),
    Words(
        "sweep: an unknown key",
        ("sweep", "FILE", *GO),
        "did you mean 'times'",
        "run: bad\nat: 1\ntime: 3\nvariants: [{name: a}]\n",
    ),
    Words(
        "sweep: no variants",
        ("sweep", "FILE", *GO),
        "variants",
        "run: bad\nat: 1\n",
    ),
    Words(
        "sweep: two of one name",
        ("sweep", "FILE", *GO),
        "'a' is there already",
        "run: bad\nat: 1\nvariants: [{name: a}, {name: a}]\n",
    ),
    Words(
        "sweep: an unknown key of a variant",
        ("sweep", "FILE", *GO),
        "did you mean 'answer'",
        "run: bad\nat: 1\nvariants: [{name: a, anser: x.json}]\n",
    ),
    Words(
        "sweep: two changes of one exchange",
        ("sweep", "FILE", *GO),
        "change the same exchange",
        "run: bad\nat: 1\nvariants: [{name: a, answer: x.json, system: y.txt}]\n",
    ),
    Words(
        "sweep: a file of a variant that is not there",
        ("sweep", "FILE", *GO),
        "x.json",
        "run: bad\nat: 1\nvariants: [{name: a, answer: x.json}]\n",
    ),
    Words(
        "sweep: a system prompt and nothing live",
        ("sweep", "FILE", *GO),
        "--live inference",
        "run: bad\nat: 1\nvariants: [{name: a, system: FILE}]\n",
    ),
    Words(
        "sweep: live without a reason",
        ("sweep", "FILE", *GO),
        "reason",
        "run: bad\nat: 1\nlive: [inference]\nvariants: [{name: a}]\n",
    ),
    Words(
        "sweep: effects live",
        ("sweep", "FILE", *GO),
        "effects never go live",
        "run: bad\nat: 1\nlive: [effect]\nreason: r\nvariants: [{name: a}]\n",
    ),
    Words(
        "sweep: a cap of 0",
        ("sweep", "FILE", *GO),
        "above 0",
        "run: bad\nat: 1\nlive: [inference]\nreason: r\ncap: 0\nvariants: [{name: a}]\n",
    ),
    Words(
        "sweep: a cap of what does not leave",
        ("sweep", "FILE", *GO),
        "nothing is declared",
        "run: bad\nat: 1\ncap: 1\nvariants: [{name: a}]\n",
    ),
    Words(
        "sweep: no times",
        ("sweep", "FILE", *GO),
        "times",
        "run: bad\nat: 1\ntimes: 0\nvariants: [{name: a}]\n",
    ),
    Words(
        "sweep: no such exchange",
        ("sweep", "FILE", *GO),
        "has no such exchange",
        "run: bad\nat: 99\nvariants: [{name: a}]\n",
    ),
    Words(
        "sweep: no such run",
        ("sweep", "FILE", *GO),
        "nobody",
        "run: nobody\nat: 1\nvariants: [{name: a}]\n",
    ),
    Words(
        "sweep: no command",
        ("sweep", "FILE"),
        "runs the command that you give",
        "run: carries\nat: 1\nvariants: [{name: a}]\n",
    ),
    Words(
        "sweep: two commands",
        ("sweep", "FILE", *GO),
        "expected one of them",
        "run: bad\nat: 1\ncommand: ['true']\nvariants: [{name: a}]\n",
    ),
    Words(
        "sweep: nobody is asked",
        ("sweep", "FILE", *GO),
        "say --yes",
        "run: bad\nat: 1\nlive: [inference]\nreason: r\nvariants: [{name: a}]\n",
    ),
    Words(
        "sweep: a check that is not there",
        ("sweep", "FILE", *GO),
        "cannot be started",
        "run: bad\nat: 1\ncheck: ./nowhere.sh\nvariants: [{name: a}]\n",
    ),
)

EXPLORE = (
    Words("explore: no command", ("explore", "bad"), "runs the command that you give"),
    Words("explore: a tape that carries a command", ("explore", "carries"), "touch"),
    Words("explore: nobody", ("explore", "nobody", *GO), "nobody"),
    Words("explore: a replay", ("explore", "bad@1", *GO), "is a playback of 'bad'"),
    Words("explore: no seeds", ("explore", "bad", "--seeds", "0", *GO), "--seeds"),
    Words("explore: too many seeds", ("explore", "bad", "--seeds", "1000001", *GO), "--seeds"),
    Words(
        "explore: an unknown fault",
        ("explore", "bad", "--fault", "lat", *GO),
        "expected one of late",
    ),
    Words(
        "explore: a fault that the tape has no place for",
        ("explore", "bad", "--fault", "reorder", *GO),
        "has no place for",
    ),
    Words(
        "explore: live without a reason",
        ("explore", "bad", "--live", "inference", *GO),
        "--reason",
    ),
    Words(
        "explore: effects live",
        ("explore", "bad", "--live", "effect", "--reason", "r", *GO),
        "effects never go live",
    ),
    Words(
        "explore: a class that the tape has not",
        ("explore", "plain", *LIVE, *GO),
        "has no request of class inference",
    ),
    Words("explore: a cap of 0", ("explore", "bad", *LIVE, "--cap", "0", *GO), "above 0"),
    Words(
        "explore: a cap of what does not leave",
        ("explore", "bad", "--max-calls", "5", *GO),
        "nothing is declared",
    ),
    Words("explore: nobody is asked", ("explore", "bad", *LIVE, *GO), "say --yes"),
    Words(
        "explore: a check that is not there",
        ("explore", "bad", "--check", "./nowhere.sh", *GO),
        "cannot be started",
    ),
    Words(
        "explore: a schedule that is not there",
        ("explore", "bad", "--schedule", "nowhere.yaml", *GO),
        "no such file",
    ),
    Words(
        "explore: a schedule that is none",
        ("explore", "bad", "--schedule", "FILE", *GO),
        "faults",
        "run: bad\n",
    ),
    Words(
        "explore: a schedule of another run",
        ("explore", "bad", "--schedule", "FILE", *GO),
        "is of run 'good'",
        "run: good\nfaults: [{seq: 1, kind: late}]\n",
    ),
    Words(
        "explore: a schedule of what the run has not",
        ("explore", "bad", "--schedule", "FILE", *GO),
        "has no exchange 99",
        "run: bad\nfaults: [{seq: 99, kind: late}]\n",
    ),
)

WORDS = (*BISECT, *SWEEP, *EXPLORE)
