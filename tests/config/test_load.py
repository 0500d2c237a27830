"""Reading a configuration: a YAML file, and flags of a command laid over it."""

import sys
from contextlib import suppress
from decimal import Decimal
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from playhead.config import (
    Answer,
    Classes,
    ClassLive,
    Config,
    ConfigError,
    ContractRule,
    Control,
    EffectRule,
    FaultRule,
    Gate,
    IgnoreRule,
    Inject,
    Limits,
    Listen,
    LiveRule,
    Mode,
    ModelDrift,
    OnViolation,
    Playback,
    ReadRule,
    RedactRule,
    Retention,
    Runs,
    Sink,
    Tls,
    UpstreamEncoding,
    load,
    loads,
    override,
    parse_match,
)
from playhead.config.document import MAX_BYTES
from playhead.config.key_declarations import keys_of, show_form

PATTERN = "POST https://api.example.com/v1/*"
MATCH = parse_match(PATTERN)


# ---- what is read ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "config"),
    [
        # nothing
        ("", Config()),
        ("# mode: playback", Config()),
        ("{}", Config()),
        ("live:\nruns:\nplayback: ~\nlisten: 127.0.0.1:8080", Config()),
        # the version
        ("version: 1", Config()),
        # the process
        ("mode: playback", Config(mode=Mode.PLAYBACK)),
        ("listen: '[::1]:0'", Config(listen=Listen("::1", 0))),
        ("control: {listen: off}", Config(control=Control(listen=None))),
        (
            "control: {listen: 'localhost:1'}",
            Config(control=Control(listen=Listen("localhost", 1))),
        ),
        (
            "control: {listen: 0.0.0.0:1, public: true, token_file: a}",
            Config(control=Control(Listen("0.0.0.0", 1), Path("a"), public=True)),
        ),
        (
            "control: {listen: 0.0.0.0:1, tls: {cert: a, key: b}, hosts: [A.example]}",
            Config(
                control=Control(
                    Listen("0.0.0.0", 1), tls=Tls(Path("a"), Path("b")), hosts=("a.example",)
                )
            ),
        ),
        ("store: /var/lib/p", Config(store=Path("/var/lib/p"))),
        ("ca_dir: ca", Config(ca_dir=Path("ca"))),
        ("ca_dir: null", Config()),
        ("upstream_ca: roots.pem", Config(upstream_ca=Path("roots.pem"))),
        (
            "upstream_encoding: {inference: as-asked, effects: identity}",
            Config(upstream_encoding=UpstreamEncoding(inference=False, effects=True)),
        ),
        # runs: YAML 1.1 would make a boolean and numbers of these
        (
            "runs: {default: off, grace: 1.5, tokens: {yes: 123, 'a-*': on}}",
            Config(runs=Runs("off", 1.5, {"yes": "123", "a-*": "on"})),
        ),
        (
            "listen: 0.0.0.0:1\nruns: {tokens: {a: b}}",
            Config(listen=Listen("0.0.0.0", 1), runs=Runs(tokens={"a": "b"})),
        ),
        # playback
        (
            "playback: {run: 2024-01-01, effects: refuse, pace: recorded, allow_model_drift: []}",
            Config(playback=Playback(run="2024-01-01", effects="refuse", pace=1.0)),
        ),
        ("playback: {inference: tape, reads: tape}", Config()),
        (
            "playback: {allow_model_drift: [gpt-4o=gpt-5, a = a]}",
            Config(
                playback=Playback(
                    allow_model_drift=(ModelDrift("gpt-4o", "gpt-5"), ModelDrift("a", "a"))
                )
            ),
        ),
        (
            "playback: {reads: {live: {hosts: [A.example, '::1'], reason: why}}}",
            Config(playback=Playback(reads=ClassLive(("a.example", "::1"), "why"))),
        ),
        # rules
        (f"classes: {{read: ['{PATTERN}'], effect: ~}}", Config(classes=Classes(read=(MATCH,)))),
        (f"live: [{{match: '{PATTERN}', reason: 5}}]", Config(live=(LiveRule(MATCH, "5"),))),
        (
            f"live: [{{match: '{PATTERN}', reason: r, allow_fields: [X-Site, x-b]}}]",
            Config(live=(LiveRule(MATCH, "r", ("x-site", "x-b")),)),
        ),
        (
            f"live:\n- &r {{match: '{PATTERN}', reason: r}}\n- *r",
            Config(live=(LiveRule(MATCH, "r"),) * 2),
        ),
        (
            f"effects: [{{match: '{PATTERN}', on_miss: refuse}}]",
            Config(effects=(EffectRule(MATCH, on_miss="refuse"),)),
        ),
        *(
            (
                f"effects: [{{match: '{PATTERN}', on_miss: stub, gate: {text}}}]",
                Config(effects=(EffectRule(MATCH, gate=gate, on_miss="stub"),)),
            )
            for text, gate in (
                ("true", Gate("always", 600.0)),
                ("false", Gate("never")),
                ("duplicates", Gate("duplicates", 600.0)),
                ("{}", Gate("always", 600.0)),
                ("{when: duplicates}", Gate("duplicates", 600.0)),
                ("{deadline: 5s}", Gate("always", 5.0)),
            )
        ),
        (
            f"ignore: [{{match: '{PATTERN}', json: [$.a], header: [X-A], query: [b], form: [on], regex: [r+]}}]",
            Config(ignore=(IgnoreRule(MATCH, ("$.a",), ("x-a",), ("b",), ("on",), ("r+",)),)),
        ),
        (
            f"reads: [{{match: '{PATTERN}', repeat: last}}]\nclasses: {{read: ['{PATTERN}']}}",
            Config(reads=(ReadRule(MATCH, "last"),), classes=Classes(read=(MATCH,))),
        ),
        (
            "redact: [{header: X-Token}, {query: k}]",
            Config(redact=(RedactRule(header="x-token"), RedactRule(query="k"))),
        ),
        ("retention: {hot: 72h, keep: forever, archive: null}", Config()),
        ("contracts: []\nmodel_contracts: off", Config()),
        (
            "contracts: [{match: 'https://a', request: {minimum: 1.50}, on_violation: refuse}]",
            Config(
                contracts=(
                    ContractRule(
                        parse_match("https://a"),
                        '{"minimum":1.50}',
                        on_violation=OnViolation.REFUSE,
                    ),
                )
            ),
        ),
        (
            "contracts:\n- {match: 'https://a', request: {}}\n- {match: 'https://a', response: {}}",
            Config(
                contracts=(
                    ContractRule(parse_match("https://a"), "{}"),
                    ContractRule(parse_match("https://a"), "", "{}"),
                )
            ),
        ),
        ("model_contracts: refuse", Config(model_contracts=OnViolation.REFUSE)),
        (
            "retention: {keep: 90d, labels: {ci: 1d, incident: forever}}",
            Config(
                retention=Retention(
                    keep_s=90 * 86400.0, labels=(("ci", 86400.0), ("incident", None))
                )
            ),
        ),
        ("faults: []", Config()),
        (
            "faults: [{match: 'https://a', inject: reset, nth: 1}, {match: 'https://a', inject: timeout}]",
            Config(
                faults=(
                    FaultRule(parse_match("https://a"), Inject.RESET, nth=1),
                    FaultRule(parse_match("https://a"), Inject.TIMEOUT),
                )
            ),
        ),
        (
            "faults: [{match: 'https://a', inject: cut, after_bytes: 3, ending: fin, modes: [playback]}]",
            Config(
                faults=(
                    FaultRule(
                        parse_match("https://a"),
                        Inject.CUT,
                        after_bytes=3,
                        ending="fin",
                        modes=(Mode.PLAYBACK,),
                    ),
                )
            ),
        ),
        ("limits: {calls: null, usd: ~}", Config()),
        ("limits: {calls: 500, repeats: 1}", Config(limits=Limits(calls=500, repeats=1))),
        ("limits: {tokens: 999999999}", Config(limits=Limits(tokens=999_999_999))),
        ("limits: {usd: 5.00}", Config(limits=Limits(usd=Decimal("5.00")))),
        ("limits: {usd: 0.000001}", Config(limits=Limits(usd=Decimal("0.000001")))),
        (
            "sink: {file: a.jsonl, url: 'http://127.0.0.1:9/x', patience: 1s}",
            Config(sink=Sink(Path("a.jsonl"), "http://127.0.0.1:9/x", patience_s=1.0)),
        ),
        ("sink: {url: 'http://[::1]:9/'}", Config(sink=Sink(url="http://[::1]:9/"))),
        (
            "sink: {url: 'https://ci.example/x', reason: shared bus}",
            Config(sink=Sink(url="https://ci.example/x", reason="shared bus")),
        ),
        ("sink: {file: null, url: ~}", Config()),
    ],
)
def test_a_text_says_what_is_not_the_default(text: str, config: Config) -> None:
    """Every key is read, and the others keep their defaults."""
    assert loads(text) == config


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("{}", Answer(200, (("content-length", "0"),), b"")),
        ("{status: 204}", Answer(204, (), b"")),
        (
            "{json: {a: [1.50, é, no]}}",
            Answer(
                200,
                (("content-type", "application/json"), ("content-length", "22")),
                '{"a":[1.50,"é","no"]}'.encode(),
            ),
        ),
        (
            "{status: 402, headers: {Content-Type: a/b, x: 1}, json: null}",
            Answer(402, (("Content-Type", "a/b"), ("x", "1"), ("content-length", "4")), b"null"),
        ),
        ("{text: 'é'}", Answer(200, (("content-length", "2"),), "é".encode())),
        ("{base64: aGk=}", Answer(200, (("content-length", "2"),), b"hi")),
    ],
)
def test_an_answer_is_whole_once_loaded(answer: str, expected: Answer) -> None:
    """The body is bytes, and its length and JSON's type stand in the headers."""
    loaded = loads(f"effects: [{{match: '{PATTERN}', answer: {answer}}}]").effects[0].answer
    assert loaded == expected


def test_paths_start_from_the_folder_of_the_file(tmp_path: Path) -> None:
    """The default store too; absolute paths stay."""
    file = tmp_path / "p.yaml"
    file.write_text("ca_dir: ../ca\nupstream_ca: /etc/roots.pem\n")
    config = load(file)
    assert config.store == tmp_path / ".playhead"
    assert config.ca_dir == tmp_path / "../ca"
    assert config.upstream_ca == Path("/etc/roots.pem")


# ---- what is wrong -----------------------------------------------------------------------------

FAULTS = [
    # YAML
    ("a: b: c", "1:5: not YAML: mapping values are not allowed here"),
    ("mode: record\n\t- a", "2:1: not YAML: while scanning for the next token"),
    ("live: [", "1:8: not YAML: while parsing a flow node"),
    ("listen: [::1]:8080", "1:10: not YAML: "),
    ("mode: 'record", "1:14: not YAML: while scanning a quoted scalar"),
    ("mode: *x", "1:7: not YAML: found undefined alias 'x'"),
    ("mode: record\n---\nmode: record", "2:1: not YAML: expected a single document"),
    ("mode: a\0", "1:8: not YAML: the character U+0000"),
    ('mode: "\\U00110000"', "1:10: not YAML: a number in an escape"),
    ('mode: "\\uD800"', "1:7: half of a surrogate pair"),
    ("mode: !!str record", "1:7: tags are not read"),
    ("runs: {<<: {grace: 1s}}", "1:8: runs: merge keys are not read"),
    # shape
    ("- mode: record", "1:1: expected a mapping, found a list"),
    ("record", "1:1: expected a mapping, found text"),
    ("mode: [record]", "1:7: mode: expected text, found a list"),
    ("mode: {a: b}", "1:7: mode: expected text, found a mapping"),
    ("mode:", "1:6: mode: has no value"),
    ("runs: [a]", "1:7: runs: expected a mapping, found a list"),
    (
        "live: [{match: 'tcp://db.example.com:5432', reason: r}]",
        "1:16: live[0].match: 'tcp://db.example.com:5432' is no such service; expected a service of this machine",
    ),
    (
        "live: [{match: 'tcp://127.0.0.1', reason: r}]",
        "1:16: live[0].match: 'tcp://127.0.0.1' is no such service; expected a service of this machine",
    ),
    (
        "live: [{match: 'tcp://127.0.0.1:5432/path', reason: r}]",
        "1:16: live[0].match: 'tcp://127.0.0.1:5432/path' is no such service",
    ),
    (
        "live: [{match: 'tcp://127.0.0.1:443', reason: r}]",
        "1:16: live[0].match: 'tcp://127.0.0.1:443': port 443 is HTTP, which is recorded",
    ),
    (
        "live: [{match: 'tcp://127.0.0.1:99999', reason: r}]",
        "1:16: live[0].match: 'tcp://127.0.0.1:99999': Port out of range 0-65535",
    ),
    (
        "live: [{match: 'unix:socket', reason: r}]",
        "1:16: live[0].match: 'unix:socket' is no such service; expected the whole path of a socket",
    ),
    (
        "live: [{match: 'unix:///run/../tmp/socket', reason: r}]",
        "1:16: live[0].match: 'unix:///run/../tmp/socket' is no such service",
    ),
    ("sandbox: {replay: tight}", "1:19: sandbox.replay: unknown value 'tight'; expected"),
    ("sandbox: {image: --rm}", "1:18: sandbox.image: '--rm' is no image; expected its name"),
    ("sandbox: {docker: strict}", "1:11: sandbox.docker: unknown key"),
    ("live: {match: a}", "1:7: live: expected a list, found a mapping"),
    ("live: all", "1:7: live: expected a list, found text"),
    ("live: [a]", "1:8: live[0]: expected a mapping, found text"),
    ("? [a]\n: b", "1:3: expected text as a key"),
    # keys
    ("mdoe: record", "1:1: mdoe: unknown key; did you mean 'mode'?"),
    ("runs:\n  grase: 1s", "2:3: runs.grase: unknown key; did you mean 'grace'?"),
    (
        "redact: [{zzz: a, header: b}]",
        "1:11: redact[0].zzz: unknown key; known here: header, query",
    ),
    ("'a b': 1", "1:1: 'a b': unknown key; known here: version, mode"),
    ('"a\\nb\\u2028": 1', "1:1: 'a\\nb\\u2028': unknown key; known here"),
    ("mode: record\nmode: record", "2:1: mode: duplicate key, first on line 1"),
    ("runs: {tokens: {a: b, a: c}}", "1:23: runs.tokens.a: duplicate key"),
    # values
    ("mode: recrod", "1:7: mode: unknown mode 'recrod'; did you mean 'record'?"),
    ("mode: off", "1:7: mode: unknown mode 'off'; expected record, playback or passthrough"),
    ("listen: :8080", "1:9: listen: ':8080' names no host; expected HOST:PORT"),
    ("listen: localhost:70000", "1:9: listen: 'localhost:70000': port 70000 is above"),
    ("store: ''", "1:8: store: '' is no path"),
    ("runs: {grace: soon}", "1:15: runs.grace: 'soon' is no duration"),
    ("runs: {tokens: {'a:b': c}}", "1:17: runs.tokens.'a:b': 'a:b' is no run name"),
    ("runs: {tokens: {a: ''}}", "1:20: runs.tokens.a: the token is not usable"),
    ("upstream_encoding: {reads: gzip}", "1:28: upstream_encoding.reads: unknown value 'gzip'"),
    ("live_max: -1", "1:11: live_max: '-1' is not a whole number between 0 and 1000"),
    ("live_max: 1e2", "1:11: live_max: '1e2' is not a whole number"),
    (
        "playback: {pace: fast}",
        "1:18: playback.pace: 'fast' is no pace; expected instant, recorded",
    ),
    ("playback: {effects: live}", "1:21: playback.effects: unknown value 'live'; expected stub"),
    ("playback: {inference: live}", "1:23: playback.inference: expected tape or {live:"),
    ("playback: {reads: {}}", "1:19: playback.reads: expected tape or {live:"),
    ("playback: {reads: {live: }}", "1:19: playback.reads: expected tape or {live:"),
    ("playback: {reads: [tape]}", "1:19: playback.reads: expected tape or {live:"),
    (
        "playback: {reads: {live: {reason: r}}}",
        "1:26: playback.reads.live.hosts: missing; expected the hosts",
    ),
    (
        "playback: {reads: {live: {hosts: [], reason: r}}}",
        "1:26: playback.reads.live.hosts: missing; expected the hosts",
    ),
    (
        "playback: {reads: {live: {hosts: [a]}}}",
        "1:26: playback.reads.live.reason: missing; expected why",
    ),
    (
        "playback: {reads: {live: {hosts: ['*'], reason: r}}}",
        "1:35: playback.reads.live.hosts[0]: '*' is no host",
    ),
    (
        "playback: {allow_model_drift: [a=b, gpt-5]}",
        "1:37: playback.allow_model_drift[1]: 'gpt-5' names one model; expected RECORDED=NEW",
    ),
    (
        "playback: {allow_model_drift: [=gpt-5]}",
        "1:32: playback.allow_model_drift[0]: '=gpt-5' does not name the model on the tape",
    ),
    (
        "playback: {allow_model_drift: ['a= ']}",
        "1:32: playback.allow_model_drift[0]: 'a= ' does not name the model that is asked for",
    ),
    (
        'playback: {allow_model_drift: ["a=b\\nc"]}',
        "1:32: playback.allow_model_drift[0]: 'b\\nc' is no name of a model",
    ),
    (
        "playback: {allow_model_drift: [{a: b}]}",
        "1:32: playback.allow_model_drift[0]: expected text",
    ),
    ("playback: {allow_model_drift: yes}", "1:31: playback.allow_model_drift: expected a list"),
    # rules
    ("classes: {read: [a.example]}", "1:18: classes.read[0]: 'a.example' is no match pattern"),
    ("live:\n  - {match: 'https://a'}", "2:5: live[0].reason: missing; expected why this may"),
    ("live:\n  - {match: 'https://a', reason: }", "2:33: live[0].reason: missing; expected why"),
    ("live:\n  - {match: 'https://a', reason: ' '}", "2:34: live[0].reason: the reason is empty"),
    ("live:\n  - {reason: a}", "2:5: live[0].match: missing; expected a match pattern"),
    (
        "effects: [{match: 'https://a', gate: maybe}]",
        "1:38: effects[0].gate: 'maybe' is no gate; expected true, false, duplicates, or",
    ),
    (
        "effects: [{match: 'https://a', gate: {when: now}}]",
        "1:45: effects[0].gate.when: unknown value 'now'; expected always or duplicates",
    ),
    (
        "effects: [{match: 'https://a'}]",
        "1:11: effects[0]: has no effect; expected answer, gate or on_miss",
    ),
    (
        "effects: [{match: 'https://a', on_miss: refuse, answer: {}}]",
        "1:41: effects[0].on_miss: refuse, but the rule has an answer; remove one of the two",
    ),
    (
        "live:\n- {match: 'https://a', reason: r}\n- {match: 'https://a', reason: s}",
        "3:3: live[1]: contradicts line 2, which matches the same requests and comes first",
    ),
    (
        "live: [{match: 'https://a', reason: r}]\nreads: [{match: 'https://a', repeat: last}]",
        "2:9: reads[0]: contradicts line 1: what is live never comes to `reads.repeat`",
    ),
    (
        "live: [{match: 'https://a', reason: r}]\neffects:\n- {match: 'https://a', answer: {status: 200}}",
        "3:3: effects[0]: contradicts line 1: what is live never comes to `effects.answer`",
    ),
    (
        "effects:\n- {match: 'https://a', gate: true}\n- {match: 'https://a', gate: duplicates}",
        "3:3: effects[1]: contradicts line 2, which matches the same requests and comes first",
    ),
    (
        "classes:\n  read: ['https://a']\n  effect: ['https://a']",
        "3:12: classes.effect[0]: contradicts line 2, which puts the same requests into classes.read",
    ),
    (
        "effects: [{match: 'https://a', answer: {json: 1, text: a}}]",
        "1:40: effects[0].answer: more than one body: json, text",
    ),
    (
        "effects: [{match: 'https://a', answer: {status: 100}}]",
        "1:49: effects[0].answer.status: '100' is not a whole number between 200 and 599",
    ),
    (
        "effects: [{match: 'https://a', answer: {status: 204, text: a}}]",
        "1:60: effects[0].answer.text: an answer with status 204 has no body",
    ),
    (
        "effects: [{match: 'https://a', answer: {status: 205, text: a}}]",
        "1:60: effects[0].answer.text: an answer with status 205 has no body",
    ),
    (
        "effects: [{match: 'https://a', answer: {headers: {Keep-Alive: 3}}}]",
        "1:51: effects[0].answer.headers.Keep-Alive: this header is the connection's; remove it",
    ),
    (
        "effects: [{match: 'https://a', answer: {headers: {content-encoding: gzip}, text: a}}]",
        "1:50: effects[0].answer.headers: content-encoding, but text is written as it is",
    ),
    (
        "effects: [{match: 'https://a', answer: {headers: {Content-Length: 3}}}]",
        "1:51: effects[0].answer.headers.Content-Length: this header is computed",
    ),
    (
        "effects: [{match: 'https://a', answer: {headers: {a: 3, A: 4}}}]",
        "1:57: effects[0].answer.headers.A: the same header in another case",
    ),
    (
        "effects: [{match: 'https://a', answer: {json: {a: 1, a: 2}}}]",
        "1:54: effects[0].answer.json.a: duplicate key",
    ),
    (
        "playback:\n  effects: refuse\neffects:\n- {match: 'https://a', answer: {status: 200}}",
        "4:3: effects[0]: contradicts line 2, playback.effects: refuse, under which its answer is never given",
    ),
    (
        "ignore: [{match: 'https://a', json: [$..a]}]",
        "1:38: ignore[0].json[0]: '$..a' is no JSON path from its character 2 on",
    ),
    (
        "ignore: [{match: 'https://a', regex: [a, 'req_(']}]",
        "1:42: ignore[0].regex[1]: 'req_(' is no regular expression: missing ): req_("
        " (patterns are RE2's); expected one as",
    ),
    ("ignore: [{match: 'https://a', regex: ['']}]", "1:39: ignore[0].regex[0]: '' is no regular"),
    ("ignore: [{match: 'https://a', regex: a+}]", "1:38: ignore[0].regex: expected a list"),
    ("ignore: [{match: 'https://a', json: []}]", "1:10: ignore[0]: names no place"),
    ("ignore: [{match: 'https://a', json: $.a}]", "1:37: ignore[0].json: expected a list"),
    ("redact: [{header: a, query: b}]", "1:10: redact[0]: expected exactly one of header, query"),
    ("redact: [{}]", "1:10: redact[0]: expected exactly one of header, query"),
    ("redact: [{header: a b}]", "1:19: redact[0].header: 'a b' is no header name"),
    ("limits: 5", "1:9: limits: expected a mapping"),
    ("limits: {call: 5}", "1:10: limits.call: unknown key"),
    ("limits: {calls: 0}", "1:17: limits.calls: '0' is not a whole number between 1 and 999999999"),
    ("limits: {tokens: 2e6}", "1:18: limits.tokens: '2e6' is not a whole number between 1 and"),
    ("limits: {repeats: -1}", "1:19: limits.repeats: '-1' is not a whole number between 1 and"),
    ("limits: {usd: 0}", "1:15: limits.usd: '0' is no amount of US dollars above 0; expected one"),
    ("limits: {usd: 0.000}", "1:15: limits.usd: '0.000' is no amount of US dollars above 0"),
    ("limits: {usd: $5}", "1:15: limits.usd: '$5' is no amount of US dollars above 0"),
    ("limits: {usd: .5}", "1:15: limits.usd: '.5' is no amount of US dollars above 0"),
    ("limits:\n  usd: 1.1234567", "2:8: limits.usd: '1.1234567' is no amount of US dollars"),
    ("faults: [{match: 'https://a'}]", "1:10: faults[0].inject: missing; expected one of delay"),
    ("faults: [{inject: reset}]", "1:10: faults[0].match: missing; expected a match pattern"),
    (
        "faults: [{match: 'https://a', inject: tiemout}]",
        "1:39: faults[0].inject: unknown value 'tiemout'; did you mean 'timeout'?",
    ),
    (
        "faults: [{match: 'https://a', inject: reset, status: 503}]",
        "1:54: faults[0].status: only for status, but this rule injects reset; remove it",
    ),
    (
        "faults: [{match: 'https://a', inject: status}]",
        "1:10: faults[0].status: missing; expected the answer's status, as 503",
    ),
    (
        "faults: [{match: 'https://a', inject: delay}]",
        "1:10: faults[0].delay: missing; expected how much later the answer begins, as 10s",
    ),
    (
        "faults: [{match: 'https://a', inject: reset, nth: 1, share: 0.5}]",
        "1:61: faults[0].share: beside nth; expected one of nth, every, share",
    ),
    (
        "faults: [{match: 'https://a', inject: reset, nth: 0}]",
        "1:51: faults[0].nth: '0' is not a whole number between 1 and",
    ),
    (
        "faults: [{match: 'https://a', inject: reset, share: 1.5}]",
        "1:53: faults[0].share: '1.5' is no share; expected a number above 0, up to 1",
    ),
    (
        "faults: [{match: 'https://a', inject: reset, name: é}]",
        "1:52: faults[0].name: 'é' is no name; expected printable ASCII",
    ),
    (
        "faults: [{match: 'https://a', inject: reset, modes: [passthrough]}]",
        "1:54: faults[0].modes[0]: unknown value 'passthrough'; expected record or playback",
    ),
    (
        "faults:\n- {match: 'https://a', inject: reset}\n- {match: 'https://a', inject: status, status: 503}",
        "3:3: faults[1]: never hits: line 2 hits all of the same requests first",
    ),
    ("fault_seed: many", "1:13: fault_seed: 'many' is not a whole number between 0 and"),
    (
        "retention: {keep: 90}",
        "1:19: retention.keep: '90' has no unit; expected one, as 90d or 90h",
    ),
    ("retention: {hot: 3}", "1:18: retention.hot: '3' has no unit; expected one, as 3d or 3h"),
    ("retention: {keep: ever}", "1:19: retention.keep: 'ever' is no duration; expected a number"),
    (
        "retention: {labels: {'a b': 1d}}",
        "1:22: retention.labels.'a b': 'a b' is no label; expected 1 to 60",
    ),
    ("retention: {labels: {a: soon}}", "1:25: retention.labels.a: 'soon' is no duration"),
    ("retention: {archive: 'gs://b'}", "1:22: retention.archive: 'gs' is no kind of archive"),
    ("retention: {archive: 's3://'}", "1:22: retention.archive: '' is no bucket"),
    ("retention: {archive: 's3://B/p'}", "1:22: retention.archive: 'B' is no bucket"),
    (
        "retention: {archive: 's3://id:secret@bucket/p'}",
        "1:22: retention.archive: credentials do not belong here",
    ),
    (
        "retention: {archive: 's3://bucket/p?access_key=id'}",
        "1:22: retention.archive: 'access_key' cannot be set here",
    ),
    (
        "retention: {archive: 's3://bucket/a/../b'}",
        "1:22: retention.archive: 'a/../b' is no prefix",
    ),
    (
        "retention: {archive: 's3://bucket?endpoint_override=ftp://h'}",
        "1:22: retention.archive: endpoint_override is no URL",
    ),
    (
        "retention: {archive: 's3://bucket?region=a b'}",
        "1:22: retention.archive: 'a b' is no region",
    ),
    ("reads: [{match: 'https://a'}]", "1:9: reads[0].repeat: missing; expected last"),
    (
        "reads: [{match: 'https://a', repeat: first}]",
        "1:38: reads[0].repeat: unknown value 'first'",
    ),
    # sinks
    (
        "sink: {url: ftp://a/}",
        "1:13: sink.url: 'ftp://a/' is no URL of a receiver; expected one as http",
    ),
    ("sink: {url: 'http://'}", "1:13: sink.url: 'http://' is no URL of a receiver"),
    ("sink: {url: 'http://a b/'}", "1:13: sink.url: 'http://a b/' "),
    ("sink: {url: 'http://u:secret@127.0.0.1/'}", "1:13: sink.url: the URL holds credentials"),
    ("sink: {url: 'http://127.0.0.1:99999/'}", "1:13: sink.url: no URL: "),
    ("sink: {url: 'https://ci.example/x'}", "1:13: sink.url: 'ci.example' is another machine"),
    ("sink: {patience: soon}", "1:18: sink.patience: 'soon'"),
    ("contracts: [{request: {}}]", "1:13: contracts[0].match: missing; expected a match pattern"),
    ("contracts: [{match: 'https://a'}]", "1:13: contracts[0]: has no schema"),
    (
        "contracts: [{match: 'https://a', request: [a]}]",
        "1:43: contracts[0].request: expected text, found a list",
    ),
    (
        "contracts: [{match: 'https://a', request: none.json}]",
        "1:43: contracts[0].request: no such file: none.json; expected a JSON Schema",
    ),
    (
        "contracts: [{match: 'https://a', request: {}, on_violation: refus}]",
        "1:61: contracts[0].on_violation: unknown value 'refus'; did you mean 'refuse'?",
    ),
    (
        "contracts:\n- match: https://a\n  response:\n    properties:\n      a: {type: strin}",
        "5:17: contracts[0].response.properties.a.type: no JSON Schema: no type; expected array",
    ),
    (
        "contracts: [{match: 'https://a', request: {pattern: '(?=a)'}}]",
        '1:53: contracts[0].request.pattern: no JSON Schema: "(?=a)" is not a "regex" of the kind',
    ),
    (
        "contracts: [{match: 'https://a', request: {$ref: 'https://a/b.json'}}]",
        "1:43: contracts[0].request: no JSON Schema: $ref 'https://a/b.json' leads out of the schema",
    ),
    (
        "contracts:\n- {match: 'https://a', request: {}}\n- {match: 'https://a', request: {type: string}}",
        "3:3: contracts[1]: contradicts line 2, which matches the same requests and comes first",
    ),
    (
        "contracts:\n- {match: 'https://a', request: {}}\n- {match: 'https://a', request: {}, on_violation: refuse}",
        "3:3: contracts[1]: contradicts line 2, which matches the same requests and comes first",
    ),
    (
        "model_contracts: on",
        "1:18: model_contracts: unknown value 'on'; expected off, note or refuse",
    ),
    (
        "control: {listen: 8081}",
        "1:19: control.listen: '8081' is no listen address; expected HOST:PORT",
    ),
    (
        "control: {listen: on}",
        "1:19: control.listen: 'on' is no listen address; expected HOST:PORT",
    ),
    ("control: {tls: {cert: a}}", "1:16: control.tls.key: missing; expected a PEM file"),
    ("control: {hosts: ['a:1']}", "1:19: control.hosts[0]: 'a:1' is no host; expected one name"),
    ("control: {public: yes}", "1:19: control.public: unknown value 'yes'; expected true or false"),
    ("control: {token: a}", "1:11: control.token: unknown key; did you mean 'token_file'?"),
    ("control: {listen: 0.0.0.0:1}", "1:19: control.listen: 0.0.0.0:1 can be reached from other"),
    ("control:\n  tls: null\n  listen: h:1", "3:11: control.listen: h:1 can be reached from other"),
    (
        "control: {listen: 0.0.0.0:1, public: false}",
        "1:19: control.listen: 0.0.0.0:1 can be reached",
    ),
    # between keys
    (
        "reads: [{match: 'POST https://a', repeat: last}]",
        "1:8: reads: entry 0, 'POST https://a', matches no read: only GET, HEAD and OPTIONS are",
    ),
    ("listen: 0.0.0.0:80", "1:9: listen: 0.0.0.0:80 can be reached from other machines"),
    ("listen: a.example:80", "1:9: listen: a.example:80 can be reached from other machines"),
    (
        "live_max: 0\nlive: [{match: 'https://a', reason: r}]",
        "2:7: live: 1 live rules (hosts of live classes count too), but live_max is 0",
    ),
    (
        "live_max: 1\nplayback: {reads: {live: {hosts: [a, b], reason: r}}}",
        "2:11: playback: 2 live rules (hosts of live classes count too), but live_max is 1",
    ),
    (
        "mode: record\n\tlisten: x",
        "2:1: not YAML: while scanning for the next token; found character '\\t' that cannot start any"
        " token; YAML indents with spaces, not with tabs",
    ),
    (
        "effects: [{match: 'PSOT https://a/x', gate: true}]",
        "1:19: effects[0].match: 'PSOT https://a/x': 'PSOT' is no method of HTTP; did you mean 'POST'?",
    ),
    (
        "runs: {default: ~.}",
        "1:7: runs: '~.' is reserved: in the address of a page it stands for another run",
    ),
    (
        "classes: {reads: ['GET https://a']}",
        "1:11: classes.reads: unknown key; did you mean 'read'?",
    ),
    ("runs: {default: latest}", "1:7: runs: 'latest' is reserved: it stands for the newest"),
    ("runs: {default: r@1}", "1:7: runs: 'r@1' is reserved: Playhead itself gives names that end"),
]


@pytest.mark.parametrize(("text", "begins"), FAULTS)
def test_a_fault_has_its_place_and_says_what_would_be_right(text: str, begins: str) -> None:
    """One wrong thing is one fault, as line:column: path: text."""
    with pytest.raises(ConfigError) as caught:
        loads(text, "f")
    assert [str(fault)[2:][: len(begins)] for fault in caught.value.faults] == [begins]
    assert str(caught.value).startswith("f:")


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("redact: x-internal-token", "redact: [{header: x-internal-token}]"),
        ("redact: [x-internal-token]", "redact: [{header: x-internal-token}]"),
        (
            "live: a",
            "live: [{match: 'POST https://metrics.example.com/v1/emit', reason: metrics emit}]",
        ),
        (
            "live: {match: a}",
            "live: [{match: 'POST https://metrics.example.com/v1/emit', reason: metrics emit}]",
        ),
        ("record", "mode: record"),
        ("limits: 5", "limits: {calls: 500}"),
        ("playback: latest", "playback: {run: ..., inference: ..., reads: ...}"),
        (
            "classes: {read: GET https://a}",
            "classes: {read: ['POST https://search.example.com/query']}",
        ),
        ("upstream_proxy: {no_proxy: a}", "upstream_proxy: {no_proxy: [corp.example.com]}"),
        ("runs: {tokens: abc}", "runs: {tokens: {support-*: a-long-random-text}}"),
        ("runs: [a]", "runs: {default: ..., grace: ..., tokens: {support-*: a-long-random-text}}"),
        ("encrypt: key", "encrypt: {key_file: ...}"),
        (
            "ignore: [{match: 'https://a/', header: x}]",
            "ignore: [{match: 'POST https://api.example.com/*', header: [x-trace-id]}]",
        ),
    ],
)
def test_a_value_of_another_kind_is_shown_the_form_that_is_read(text: str, form: str) -> None:
    with pytest.raises(ConfigError) as error:
        loads(text)
    assert str(error.value).endswith(f"; as in: {form}")


@pytest.mark.parametrize(
    "name", [name for name, (_, key) in keys_of(Config).items() if key.example]
)
def test_a_form_that_is_shown_is_read(name: str, tmp_path: Path) -> None:
    loads(show_form(Config, name), base=tmp_path)


@pytest.mark.parametrize(
    ("text", "begins"),
    [
        ("mode:record", "1:1: 'mode:record' has no blank after its colon; expected mode: record"),
        ("runs:\n  grace:5m", "2:3: runs: 'grace:5m' has no blank after its colon; expected grace: 5m"),
        ("redact:\n- header:x-a", "2:3: redact[0]: 'header:x-a' has no blank after its colon"),
        ("mode:record\nlisten: a:1", "2:7: not YAML: mapping values are not allowed here; line 1 has no blank"),
        ("live:\n- match: a\n  reason:r\n  match: b", "4:3: not YAML: while scanning a simple key; could not find expected ':'; line 3 has no blank"),
        ("live: [https://a.example]", "1:8: live[0]: expected a mapping, found text"),
        ("record", "1:1: expected a mapping, found text; as in: mode: record"),
        ("- mode: record", "1:1: expected a mapping, found a list; as in: mode: record"),
        ("ignore: []\nmode: record\nignore: []", "3:1: ignore: duplicate key, first on line 1; put the items of both under one 'ignore'"),
        ("runs: {}\nruns: {}", "2:1: runs: duplicate key, first on line 1; put the keys of both under one 'runs'"),
        ("mode: record\nmode: record", "2:1: mode: duplicate key, first on line 1; keep one of them"),
        ("ignore: []\nignore: a", "2:1: ignore: duplicate key, first on line 1; keep one of them"),
        ("live: true", "1:7: live: expected a list, found the word true"),
        ("limits: 5", "1:9: limits: expected a mapping, found a number"),
        # a key in another section
        ("run: mine", "1:1: run: unknown key; it belongs to a section: playback: {run: mine}"),
        ("runs: {run: mine}", "1:8: runs.run: unknown key; it belongs to a section: playback: {run: mine}"),
        ("key_file: k", "1:1: key_file: unknown key; it belongs to a section: encrypt: {key_file: k}"),
        ("tls: {cert: a}", "1:1: tls: unknown key; it belongs to a section: control: {tls: ...}"),
        ("hosts: [a]", "1:1: hosts: unknown key; it belongs to a section: upstream_proxy: {hosts: ...}"),
        ("match: a", "1:1: match: unknown key; known here: "),
        # a path in the place of a name
        ("redact: [{json: $.user.pin}]", "1:17: redact[0].json: '$.user.pin' is a path; expected the name of a field, "
         "which is found at any depth, as 'pin'"),
        ("redact_off: [{json: \"$['pin']\"}]", "1:21: redact_off[0].json: \"$['pin']\" is a path; expected the name of a "
         "field, which is found at any depth, as 'pin'"),
        ("redact: [{pattern: '(a'}]", "1:20: redact[0].pattern: '(a' is no regular expression: missing ): (a (patterns are "
         "RE2's); expected one as 'acme_[0-9a-f]{16,}', with a group around the secret"),
        ("listen: 0.0.0.0:80", "1:9: listen: 0.0.0.0:80 can be reached from other machines and runs.tokens is empty, which "
         "accepts any token, on loopback only; give runs.tokens, as {RUN: TOKEN}, or"),
    ],
)  # fmt: skip
def test_a_slip_of_a_beginner_is_told_with_the_form_that_is_meant(text: str, begins: str) -> None:
    with pytest.raises(ConfigError) as caught:
        loads(text, "f")
    assert str(caught.value.faults[0])[2:][: len(begins)] == begins


def test_a_field_of_json_may_begin_with_a_dollar() -> None:
    """As those of OData do."""
    assert loads("redact: [{json: $filter}]").redact[0].json == "$filter"


def test_a_limit_on_money_needs_prices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where they are not installed it is told at load, and how to get them."""
    monkeypatch.setitem(sys.modules, "genai_prices", None)
    assert loads("limits: {tokens: 1}").limits == Limits(tokens=1)
    with pytest.raises(ConfigError, match=r"1:15: limits.usd: .* install playhead\[prices\]"):
        loads("limits: {usd: 5}")


def test_all_faults_come_at_once_in_file_order() -> None:
    """The last key's fault does not wait for the first to be mended."""
    text = "store: ''\nlive:\n- a\n- match: b\n  reason: c\nmode: d\nlisten: 0.0.0.0:1\nx: y"
    with pytest.raises(ConfigError) as caught:
        loads(text, "a.yaml")
    assert [(fault.where, fault.path) for fault in caught.value.faults] == [
        ("a.yaml:1:8", "store"),
        ("a.yaml:3:3", "live[0]"),
        ("a.yaml:4:10", "live[1].match"),
        ("a.yaml:6:7", "mode"),
        ("a.yaml:7:9", "listen"),
        ("a.yaml:8:1", "x"),
    ]
    assert str(caught.value).splitlines() == [str(fault) for fault in caught.value.faults]


def test_a_secret_is_in_no_fault() -> None:
    """A token that is wrong is not printed."""
    text = 'runs: {tokens: {"a:b": "hunter2\\n", c: "hunter2\\t", c: hunter2}}'
    with pytest.raises(ConfigError) as caught:
        loads(text)
    assert len(caught.value.faults) == 4
    assert "hunter2" not in str(caught.value)


def test_live_rules_with_faults_are_counted_too() -> None:
    """What will be too much once mended is said now."""
    with pytest.raises(ConfigError, match="2 live rules"):
        loads("live_max: 1\nlive: [{match: a}, {}]")


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (None, "no such file; `playhead init -c FILE` writes a first one"),
        (b"mode: record\nstore: caf\xe9", "not UTF-8: byte 0xe9 on line 2"),
        ("mode: record".encode("utf-16"), "not UTF-8: byte 0xff on line 1"),
        (b"#" * (MAX_BYTES + 1), f"longer than {MAX_BYTES} bytes"),
    ],
    ids=["missing", "latin-1", "utf-16", "long"],
)
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, data: bytes | None, says: str) -> None:
    """There is no line to point to, so the place is the file."""
    file = tmp_path / "p.yaml"
    if data is not None:
        file.write_bytes(data)
    with pytest.raises(ConfigError) as caught:
        load(file)
    assert str(caught.value).startswith(f"{file}: {says}")
    assert caught.value.faults[0].where == str(file)


def test_a_folder_is_no_configuration(tmp_path: Path) -> None:
    """The message says so."""
    with pytest.raises(ConfigError, match="a folder; expected a YAML file"):
        load(tmp_path)


def test_a_file_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    """Some editors write one, and nobody sees it."""
    file = tmp_path / "p.yaml"
    file.write_bytes(b"\xef\xbb\xbfmode: playback\r\n")
    assert load(file).mode is Mode.PLAYBACK


@pytest.mark.parametrize(
    "text", ["é" * (MAX_BYTES // 2 + 1), "#" * (MAX_BYTES + 1)], ids=["é", "#"]
)
def test_a_text_is_bounded_in_bytes(text: str) -> None:
    """A text is refused where its file would be."""
    with pytest.raises(ConfigError, match="longer than"):
        loads(text)


@given(st.text() | st.text("{}[]:,-&*!|>'\"%@`#?<~ \n\tab0\\Ux", max_size=40))
def test_any_text_is_a_configuration_or_a_config_error(text: str) -> None:
    """No text raises anything but ConfigError."""
    with suppress(ConfigError):
        loads(text)


_KEYS = st.sampled_from(
    """mode listen store ca_dir upstream_encoding runs default grace tokens playback run inference
    reads effects live hosts reason live_max classes read match answer status headers json text
    base64 ignore header query regex repeat redact retention hot keep archive
    sink file url patience limits calls tokens usd repeats
    control token_file tls cert key public faults fault_seed inject name nth every share delay
    retry_after after_bytes ending modes""".split()  # noqa: SIM905  # dense
)
_TEXTS = st.text(max_size=5) | st.sampled_from(
    ["record", "tape", "0.0.0.0:1", "10s", "https://a", "$.a", "forever", "stub", "identity", ""]
)
_TREES = st.recursive(
    _TEXTS | st.none() | st.integers() | st.booleans(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(_KEYS, _TREES, max_size=8))
def test_any_tree_of_known_keys_is_a_configuration_or_a_config_error(
    tree: dict[str, object],
) -> None:
    """Known keys in wrong places raise nothing but ConfigError, and every fault has its place."""
    try:
        assert isinstance(loads(yaml.safe_dump(tree), "f"), Config)
    except ConfigError as error:
        for fault in error.faults:
            name, line, column = fault.where.split(":")
            assert (name, int(line) > 0, int(column) > 0) == ("f", True, True)
            assert "\n" not in str(fault)


# ---- flags -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("flags", "config"),
    [
        ({}, Config()),
        ({"mode": None, "run": None}, Config()),
        ({"mode": "playback"}, Config(mode=Mode.PLAYBACK)),
        ({"mode": Mode.PLAYBACK}, Config(mode=Mode.PLAYBACK)),
        ({"listen": "[::1]:0"}, Config(listen=Listen("::1", 0))),
        ({"store": Path("s"), "ca_dir": "c"}, Config(store=Path("s"), ca_dir=Path("c"))),
        ({"upstream_ca": "/r.pem"}, Config(upstream_ca=Path("/r.pem"))),
        ({"run": "a"}, Config(runs=Runs(default="a"), playback=Playback(run="a"))),
        ({"allow_model_drift": ()}, Config()),
        (
            {"allow_model_drift": ("a=b", "c=c")},
            Config(
                playback=Playback(allow_model_drift=(ModelDrift("a", "b"), ModelDrift("c", "c")))
            ),
        ),
    ],
)
def test_a_flag_lies_over_its_key(flags: dict[str, object], config: Config) -> None:
    """What is not given stays; `run` is both the recorded and the played one."""
    assert override(Config(), flags) == config


def test_flags_keep_what_stands_beside_them() -> None:
    """`--run` leaves the other keys of runs and playback."""
    config = loads("runs: {grace: 1s}\nplayback: {pace: 2}")
    laid = override(config, {"run": "a"})
    assert (laid.runs.grace_s, laid.playback.pace) == (1.0, 2.0)


@pytest.mark.parametrize(
    ("flags", "begins"),
    [
        ({"mode": "play"}, ["--mode: unknown mode 'play'; did you mean 'playback'?"]),
        ({"listen": "8080"}, ["--listen: '8080' is no listen address; expected HOST:PORT"]),
        ({"listen": "0.0.0.0:1"}, ["--listen: 0.0.0.0:1 can be reached from other machines"]),
        ({"ca_dir": "", "run": "a:b"}, ["--run: 'a:b' is no run name", "--ca-dir: '' is no path"]),
        ({"run": "latest"}, ["--run: 'latest' is reserved: it stands for the newest recording"]),
        ({"run": "--"}, ["--run: '--' begins with `-`, as an option does: was the name left out?"]),
        ({"capture": "bogus"}, ["--sandbox: unknown value 'bogus'; expected"]),
        ({"sandbox": "bogus"}, ["--sandbox: unknown value 'bogus'; expected"]),
        ({"upstream_ca": "a\nb"}, ["--upstream-ca: 'a\\nb' is no path"]),
        (
            {"allow_model_drift": ("a=b", "gpt-5")},
            ["--allow-model-drift: 'gpt-5' names one model; expected RECORDED=NEW"],
        ),
    ],
)
def test_a_wrong_flag_is_named(flags: dict[str, object], begins: list[str]) -> None:
    """The place of the fault is the flag; all come at once."""
    with pytest.raises(ConfigError) as caught:
        override(Config(), flags)
    faults = caught.value.faults
    assert [str(f)[: len(b)] for f, b in zip(faults, begins, strict=True)] == begins
    assert {fault.path for fault in faults} == {""}


@pytest.mark.parametrize("name", ["latest", "mine@1", "mine~2", "--"])
def test_a_tape_may_have_any_name_that_was_ever_given(name: str) -> None:
    """Only a new recording may not: in playback the flag names what is played."""
    config = override(Config(), {"mode": "playback", "run": name})
    assert config.playback.run == name
    assert loads(f"mode: playback\nplayback: {{run: '{name}'}}").playback.run == name


def test_tokens_of_the_file_allow_the_flag_to_listen_anywhere() -> None:
    """Rules between keys are checked on the whole."""
    config = loads("runs: {tokens: {a: b}}")
    assert override(config, {"listen": "0.0.0.0:1"}).listen == Listen("0.0.0.0", 1)


def test_a_configuration_made_in_code_is_checked_too() -> None:
    """The guard does not hang on the file's loader."""
    with pytest.raises(ConfigError, match=r"configuration: listen: 0\.0\.0\.0:1 can"):
        override(Config(listen=Listen("0.0.0.0", 1)), {})


def test_an_unknown_flag_is_our_own_mistake() -> None:
    """A misspelt name in code does not pass as not given."""
    with pytest.raises(ValueError, match="no such flags: \\['stroe'\\]"):
        override(Config(), {"stroe": "a"})


# ---- the version of the file -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("mode: playback\nversion: 2\nnew_key: [1]\n", "f.yaml:2:10: version: 2, but this version of Playhead reads up to 1; use a newer Playhead"),
        ("version: 0\nnew_key: 1", "f.yaml:1:10: version: '0' is no version; expected 1, or leave the key out"),
        ("version: one", "f.yaml:1:10: version: 'one' is no version; expected 1, or leave the key out"),
        ("version: [1]", "f.yaml:1:10: version: expected text, found a list"),
        ("version:", "f.yaml:1:9: version: has no value; give one, or remove the key"),
    ],
)  # fmt: skip
def test_a_file_of_another_version_is_refused(text: str, told: str) -> None:
    """At its place, and nothing is said of its other keys: they may mean something else."""
    with pytest.raises(ConfigError) as caught:
        loads(text, "f.yaml")
    assert str(caught.value) == told
