"""What the keys of receipts, effects and exchanges mean: the descriptions in `playhead schema receipt`, `effects` and `show`.

A key may be several, with one text for all; one that ends with `[]` has rows. A pair is a text and the keys inside.
"""

from collections.abc import Mapping
from typing import Any

type Meanings = Mapping[str, Any]
"""Keys -> text, or text and `Meanings`."""

RECEIPT: Meanings = {
    "version": "1. New keys do not change it.",
    "run, parent": "Name; tape of a playback, or null.",
    "mode, status": "record or playback; open, sealed or recovered.",
    "end": "Why it ended; empty while open.",
    "level": "Fidelity: 0 log only, 1 tools partly live, 3 tools and state from the tape, 4 the clock, too.",
    "faithful": "true or false (also if faithful but for something); null for recordings, branches, resumed and open runs.",
    "faithful_but_for": "Opt-ins that were needed: RECORDED=NEW, injected: NAME, ignored content, late answers served, named pipes that could not be closed, processes that outlived the command, refused by contract: RULE.",
    "exit_code": "0, 121, 122, 123 or 125; for a recording 0.",
    "child_exit, command": "The command's exit code, or null; its words, without secrets.",
    "stdout": "hash and bytes, or null if unknown.",
    "files": "HASH:MODE of each written file by path; empty: gone; unwritten: written only in the recording; null: too many.",
    "left_running": "Processes that outlived the command: pid (null if they ended with its sandbox), name.",
    "folder": (
        "Working folder; null in containers.",
        {
            "path, within, umask": "The folder, where in it the command started, and its umask (octal).",
            "files, bytes": "Of a recording, at the start.",
            "left_out, omitted": "Of a recording: paths left out by ignore files; folders beyond the limits.",
            "saved, unsaved": "Of a recording: whether contents were saved; how many were not, by reason.",
            "head, branch, dirty": "Of git, or null.",
            "renamed": "Folders that the command renamed.",
            "cut": "Which folders were not listed, and why, so that changes in them are unknown; empty if all were.",
            "unknown": "Only there if nothing is known of the command's writes: why, as a part of a sentence.",
            "mode": "Of a replay: overlay, copy or in-place.",
            "differs, restored, unlisted": "Of a replay: differences from the recorded start, whether it was restored, and paths that the manifest leaves out, which the command saw as they are now.",
            "uncompared": "Parts of the start that were not compared, in sentences.",
            "elsewhere": "Folders of git's repository, as they are now.",
            "said": "The sentence printed about it.",
            "kept, ignored": "Paths kept, and writes ignored by ignore files.",
        },
    ),
    "file_effects": "Changes of the working folder, at most 1,000: path (folders end with a slash), change (created, changed, deleted), kind (file, folder, link, pipe, socket, device), size, hash (BLAKE3, or empty), mode (octal). Null if nothing is known of them: folder.unknown says why.",
    "file_effects_omitted": "Rows left out; null if file_effects is null.",
    "tape": "In a playback: standing, rewritten (rules), and the tape's child_exit, command, stdout, files, left_running. Else null.",
    "contained": "Whether it ran in a sandbox.",
    "contained_but_for": "Ways out that were not closed: named pipes that could not be closed, folders that were not searched for named pipes, named pipes that were made or written to while the command ran, path sockets within reach.",
    "sandbox": (
        "Observations, or null.",
        {
            "strict": "Whether it was strict.",
            "image": "Name and id of the Docker image, another container, or empty.",
            "files": (
                "File system made by bubblewrap, or null.",
                {
                    "empty": "Empty folders in memory.",
                    "visible, system": "Read-only files and folders; those of the system.",
                    "writable, working": "Real folders; the working folder.",
                },
            ),
            "counters": (
                "Of the kernel.",
                {
                    "packets_out": "Packets that left: 0, or the replay exits with 123.",
                    "packets_inside": "Packets on loopback.",
                    "tcp_opened, tcp_failed, udp_sent": "Connections attempted and failed; datagrams.",
                },
            ),
            "tapped": "Whether packets could be read.",
            "attempts_omitted": "Attempts that did not fit into egress.",
            "names, names_omitted": "Questions to DNS (name, type, count); those that did not fit. A difference is no divergence.",
            "refused": "Loopback ports at which nothing listened: target, process, count.",
            "copied, read_only": "Folders seen as copies; those that could not be copied.",
            "pipes_unsearched": "Folders not fully searched for named pipes, at most 20: the run is not plainly contained.",
            "pipes_open": "Named pipes that could not be closed, at most 20: the replay is not plainly faithful.",
            "pipes_used": "Open named pipes made or written to meanwhile, at most 20: not plainly contained.",
            "landlock": "With --sandbox-files: whether Landlock guards named pipes.",
            "sockets_watched": "Whether no path socket can have been used unseen.",
            "sockets_used": "Refused path sockets: path, process, count.",
            "sockets": "Path sockets within reach, if not watched.",
            "services[]": (
                "Local services let in.",
                {
                    "service, reason": "tcp://host:port or unix://path, and why, as configured.",
                    "connections, failed": "Number of connections; those not accepted.",
                    "bytes_sent, bytes_received": "By the command; null for unix://.",
                },
            ),
            "programs[]": (
                "Started programs: program and count; null if not counted.",
                {
                    "program": "Name.",
                },
            ),
        },
    ),
    "changed": "Forbidden changes of the store, the configuration and Playhead: path, what. The code is then 125.",
    "determinism": (
        "Observations, or null.",
        {
            "level": "off, seed or full.",
            "missing": "Requested parts that are not available, or empty.",
            "libc": "Why other runtimes are not covered, or empty.",
            "sleeps": "real, or short.",
            "processes": "Known processes.",
            "preloaded": "Those with the preload or library.",
            "runtimes": "Their names, as python 3.13.0.",
            "uncovered": "Programs without it.",
            "exhausted": "Execution contexts that read the clock more often than recorded.",
            "kernel_randomness": "Programs and libraries that got the kernel's randomness because of TLS.",
            "sources": "Other sources in the program's own code, by runtime.",
            "problems": "Failures of the preload, by process.",
        },
    ),
    "requests": "Number of requests.",
    "counts": "By verdict: recorded, served, stubbed, live, sandboxed, hypothetical, refused, unused.",
    "branch": (
        "Of a branch, or null.",
        {
            "at": "Exchange at which the branch starts.",
            "changes": "answer, system or request; may be empty.",
            "declared": (
                "The next three rows.",
                {
                    "live": "request_class, host, reason.",
                    "routes": "match, sandbox_place (scheme, host, port), reason.",
                    "answers": "Patterns with hypothetical answers.",
                    "spliced": "In bisect: the good run, and how many of its answers; or null.",
                    "faults": "In explore: faults of the schedule.",
                },
            ),
            "reached": "Request that reached the start, or null.",
            "served_before, served_after": "Answers from the tape before and after.",
            "asked_otherwise": "Requests changed before they were sent.",
            "hypothetical": "Rows: seq, method, url, in_place_of (exchange of the tape, or null).",
            "sandboxed": "Rows: seq, method, url, request_class, sandbox_place, reason.",
        },
    ),
    "resume": (
        "Of a resumed run, or null.",
        {
            "of": "The crashed run.",
            "reached": "Request that completed the repetition; null: never, so nothing was sent but effects that were approved at a gate.",
            "served": "Answers from the tape.",
            "effects_executed": "Effects sent.",
            "unknown": "Effects without an outcome: run, seq, method, url, became (not asked for, held, or the decision), asked_as (request, or null).",
        },
    ),
    "matched": "Served answers by match. exact: same method, target, body and header fields except noise, with the same secrets; canonical: same by the rules of matching; profile: same except for places of a client profile; unconditional: a read answered in full despite another condition, by a profile; drifted: same except for allowed model drift; repeated: telemetry, or a read under `reads`, served again.",
    "own_programs": "Loopback ports of the command's own programs, as 127.0.0.1:41601; not recorded.",
    "profiles": "By client profile: profile, version, requests, unconditional, places.",
    "unprofiled": "User-Agent without a profile, if one of its model calls was not on the tape.",
    "model_drift": (
        "Allowed drift.",
        {
            "allowed": "RECORDED=NEW.",
            "served, seqs": "Answers let through; the first hundred.",
        },
    ),
    "drifted": "Served requests with another idempotency key or linked value; divergences.",
    "kind_alone": "Requests with a replaced value that could not be compared.",
    "secrets_replaced": "answers with placeholders, seqs of the first 100, unloadable_keys (RSA, OpenSSH), and other_digests (digests computed anew or left out).",
    "secrets_as_recorded": "The same for answers as they came.",
    "ignored_content": "Seqs where ignore hides a difference in an effect, or ignore or a profile of your own hides one in messages, system prompt or tools of a model call.",
    "background": "Background reads not sent: seq, method, url, sdk; with extra: true, sent but not on the tape.",
    "late": "Seqs served by --late served.",
    "reordered_results": "Model calls with reordered tool results.",
    "headers_differ": "Requests with another reported field, by name.",
    "protocols_differ": "Requests over another HTTP version, as HTTP/2.0 -> HTTP/1.1.",
    "credentials_merged": "Requests with one credential for several, by place.",
    "effects": (
        "Effects and their answers.",
        {
            "seq, method, url": "Secrets replaced.",
            "summary": "Beginning of the body, or empty.",
            "answered_by": "upstream, tape seq N, effect rule, synthetic, after tape seq N, live rule, hypothetical answer, sandbox PLACE, upstream, behind the crash point, refused, injected: NAME, kept by explore, never sent.",
            "outcome": "For agent and server, or unknown: no outcome was recorded.",
            "note": "possible duplicate of seq N, safe retry of seq N (same idempotency key), either with , whose answer the client had not seen; or empty.",
        },
    ),
    "gates": (
        "Requests that gates held.",
        {
            "seq, method, url, digest": "The held request.",
            "reason": "Why it was held.",
            "ruling": "approved, denied, expired, left (client gave up), ended (run ended), or empty.",
            "by, via, why": "Person; command, api or page; given reason.",
            "waited_s": "Seconds.",
        },
    ),
    "contracts": (
        "Violations of contracts.",
        {
            "seq, of": "request, response or model.",
            "rule": "Pattern, or model_contracts.",
            "refused, recorded": "Whether the agent got a refusal, here and on the tape.",
            "unchecked": "Unchecked parts and reason.",
            "count, violations[]": (
                "Number; the first ten.",
                {
                    "what": "request, response, tool_call, tool_name or output.",
                    "place": "JSON path; for a tool call, after the tool's name.",
                    "expected, found": "In words.",
                },
            ),
        },
    ),
    "contract_violations": "Number over the whole run.",
    "injected": (
        "Faults on purpose.",
        {
            "seq, rule, inject, seed": "Request, name of the rule, fault, fault_seed.",
            "nth": "Number among the matching requests, from 1.",
        },
    ),
    "root_after": "The last fault on purpose before the root, or null.",
    "root": "The root, as a row of divergences, or null.",
    "followed": "Other divergences: count, by_kind.",
    "folded": "Folded under the root: what (start-up call, retries), seq, method, url, kind, count.",
    "telemetry": "requests, recorded, served, live, discarded, refused.",
    "divergences": (
        "All, by seq, without retries.",
        {
            "kind": "changed, unexpected, exhausted, reordered, unused, drifted or left.",
            "seq": "In this run; for unused, on the tape.",
            "method, url": "One line, at most 200 characters, secrets replaced.",
            "nearest_seq": "Nearest exchange on the tape, or null.",
            "differences": "At most eight: place, recorded, asked, each at most 200 characters; (absent) if missing.",
            "needs": "For a refused reordered: the value first seen in the answer to tape_seq, its place here and its source there. Else null.",
            "cause": "For changed: the place, and the origins of recorded and asked: seq, tape_seq, place in that answer, and whether it was replaced. Null if unknown.",
            "replaced": "Places of differences that redaction caused.",
            "rule": "For changed: an ignore rule with which it would match, as YAML, or null. It is never applied.",
            "note": "Warning: for an effect, the rule may give another action's answer. Else null.",
            "text": "All this in words.",
        },
    ),
    "unused": (
        "Recorded requests not sent. outcome: unknown: in progress when the recording ended.",
        {
            "seq, method, url": "On the tape.",
        },
    ),
    "live": (
        "Requests let out by live rules.",
        {
            "seq, method, url, request_class, reason": "A request that was let out.",
        },
    ),
    "refused": (
        "Refused requests.",
        {
            "seq, method, url, reason": "A refused request.",
            "repeats": "Further refusals of the same request.",
        },
    ),
    "claims": (
        "Requests with several names.",
        {
            "seq, method, url": "A request with several names.",
            "claims": "Further names: text and kind (sni, authority, target, host, forwarded, gateway, url, method, path, scheme, or unnamed).",
        },
    ),
    "faults": (
        "Failures below HTTP.",
        {
            "seq, text": "The request; one line.",
            "kind": "refused, dns, tls, reset, cut, timeout, malformed, denied, unknown.",
            "phase": "connect, tls, request, head or body.",
        },
    ),
    "unfinished": "Seqs in progress at the end; in a recovered run, they may have happened. A replay refuses such an effect (seq N of the tape is this request; its outcome is unknown).",
    "gaps": "Full disk: since_ns, until_ns, reason, and missing exchanges, effects, records; null if unknown. A playback with a gap is 125; its counts, effects and unused are those outside of the gap.",
    "tape_gap": "Whether the tape lacks exchanges (125).",
    "sink_lost": "Effects lost by a sink: file, url.",
    "stopped": "Stopped by (user or address), pid (or 0), reason, at_ns; or null.",
    "limits": (
        "Limits, or null.",
        {
            "limits": "calls, tokens, usd, repeats, or null.",
            "used": (
                "Measured.",
                {
                    "calls": "Requests that left, except telemetry.",
                    "input_tokens, output_tokens": "With cached, and with reasoning tokens.",
                    "cached_tokens": "Part of the input.",
                    "usd": "Known part of the price.",
                    "estimated_usd": "Under a cap, the possible price beyond that.",
                    "without_usage, without_price": "Model calls of unknown tokens; of unknown price.",
                },
            ),
            "reached": "First refusal of each limit: limit, seq, reason, at_ns.",
        },
    ),
    "attempts": (
        "Attempts that came to nothing.",
        {
            "kind": "empty tunnel, failed handshake, malformed request or cut request.",
            "target": "host:port, or the proxy itself.",
            "count, recorded": "In this run, and on the tape (or null).",
            "differs": "Whether that is a divergence.",
            "process, detail": "Client commands, if known; details of the first.",
        },
    ),
    "unrecorded": "Gaps of a recording, in words.",
    "egress": (
        "Attempts to leave that were denied.",
        {
            "target": "host:port, or unknown.",
            "by, reason": "Denied by proxy, kernel or sandbox (path sockets).",
            "protocol": "In a sandbox: tcp, udp, unix or protocol N.",
            "process, count": "In a sandbox: command, or empty; number.",
        },
    ),
    "foreign": (
        "Without a sandbox: sockets that led past the proxy, sampled ten times a second.",
        {
            "protocol, address, port": "tcp or udp.",
            "process, pid, count": "Command, process, number of sockets.",
        },
    ),
    "capture": (
        "Connections that capture took and let pass, or null.",
        {
            "off, blind": "Why there was no capture, or no connection could be taken; else empty.",
            "lost": "Whether the watching process ended before the command.",
            "no_new_privileges": "Whether programs could gain no rights.",
            "ports, taken, quic_refused": "Ports; numbers of connections led to the proxy, and of QUIC.",
            "passed": "Connections that passed: host, port, process, count, and why (no HTTP or distrusts). Also in unrecorded.",
            "unseen, rings": "Calls that could not be inspected, and uses of io_uring, by process.",
            "left": "Connections tried at other ports: host, port, process, at most 100.",
        },
    ),
    "warnings": "Sentences.",
    "hints": (
        "Rules and places that matched nothing, in the first 50 requests of each rule.",
        {
            "key": "ignore, effects, reads, live, faults or contracts.",
            "rule, text": "Pattern; place, in words.",
        },
    ),
    "rows_omitted": 'Lists have at most 1,000 rows, the first. Number of rows left out of each longer one, by key, as {"effects": 240} (of a branch branch.sandboxed and so on); else empty. playhead effects RUN --json has all effects, up to 100,000.',
    "signature": "Signature: algorithm (ed25519), key (id, 16 hexadecimal digits), value (base64). Missing if you may not read the key.",
}

EFFECT: Meanings = {
    "seq, method, url": "The request.",
    "summary": "Beginning of the body.",
    "answered_by": "In words: upstream, tape seq N, effect rule, synthetic, after tape seq N, synthetic, as tape seq N, live rule, hypothetical answer and sandbox PLACE of a branch, upstream, behind the crash point of a resumed run, refused, injected: NAME for a fault on purpose, also if the client left while it was delayed (not sent: the client had left), or kept by explore, never sent on the tape that explore keeps.",
    "outcome": "For the agent and for the server.",
    "note": "possible duplicate of seq N or safe retry of seq N.",
    "by": "The same in one word: upstream, tape, template (of a rule), synthetic, recorded (made, with the recorded body), hypothetical, live, sandboxed, refused, injected or explored.",
    "tape_seq": "Of the exchange that answered it, or null.",
    "after": "Of a stub: seqs of its pattern, the nearest first.",
    "rule, reason": "The rule that decided, and why.",
    "status": "Of the answer, or null.",
    "idempotency_key": "A short hash of it, or null.",
    "repeat": "of (seq), kind (possible duplicate or safe retry), unseen (the client saw no whole answer); or null.",
    "drifted": "How its idempotency key differs from the tape's.",
    "gate": "If a gate held it: ruling, by, via, reason; or null.",
    "divergence": "Kind of the divergence, or null.",
    "nearest_seq": "The nearest exchange on the tape, or null.",
    "differences": "From that one: place, recorded, asked.",
    "body_bytes, body_cut": "Length of the body; whether more than the 64 KiB shown.",
    "body, body_base64, body_file": "As text, in base64, or the file in the store.",
}

EXCHANGE: Meanings = {
    "seq": "Place in its run, from 1, in order of arrival.",
    "class": "inference, read, effect or telemetry.",
    "verdict": "recorded; in a playback live, or served and stubbed if the tape answered it; in a branch also sandboxed and hypothetical.",
    "reason": "Why, in one line.",
    "fingerprint": "16 bytes in hex: the parts that count in matching.",
    "started_ns": "Arrival of the request.",
    "end_us": "Time of the outcome.",
    "request": (
        "The request.",
        {
            "method, url": "The URL is absolute.",
            "names": "Other names of the host: [kind, text], kind sni, authority (HTTP/2) or target.",
            "http_version": "HTTP/1.1, HTTP/2.0 …, between client and proxy, or upstream and proxy.",
            "headers, trailers": "[name, value] pairs as on the wire, as Latin-1.",
            "body": "If it is UTF-8; with a content-encoding, coded.",
            "body_base64": "Otherwise.",
            "body_bytes, body_file": "Instead, above 8 MiB: length, and file in the store.",
            "secrets": "Placeholders in body, target and other header fields: part (body, target, or header and the name), at (offset in bytes; characters in the target), size, kind, and coded for base64 and hex: the alphabet of the value.",
        },
    ),
    "response": (
        "The response, or null.",
        {
            "status, reason": "The reason phrase of HTTP/1 is empty over HTTP/2.",
            "http_version": "HTTP/1.1, HTTP/2.0 …, between client and proxy, or upstream and proxy.",
            "headers, trailers": "[name, value] pairs as on the wire, as Latin-1.",
            "body": "If it is UTF-8; with a content-encoding, coded.",
            "body_base64": "Otherwise.",
            "body_bytes, body_file": "Instead, above 8 MiB: length, and file in the store.",
            "complete": "false if the body ended early.",
            "head_us": "Arrival of its head.",
            "head_need": "Request bytes sent by then; null if the request had ended.",
            "end_need": "As head_need, for its end.",
            "end_after": "Event streams: highest seq that had arrived by its end; else 0.",
            "ragged": "Whether it ended with the connection, without closing TLS.",
            "chunks": "Pieces as they arrived: [at_us, bytes, after, need], the last two as end_after and head_need.",
            "secrets": "Placeholders in body, target and other header fields: part (body, target, or header and the name), at (offset in bytes; characters in the target), size, kind, and coded for base64 and hex: the alphabet of the value, and of base64 where in it the value is: characters of the first group of four and bytes before it, and its bytes.",
        },
    ),
    "fault": (
        "A failure below HTTP, or null.",
        {
            "kind": "refused, dns, tls, reset, cut, timeout, malformed, denied or unknown.",
            "phase": "connect, tls, request, head or body.",
            "text": "One line.",
            "at_us": "Microseconds since the request arrived.",
            "ending": "For the client: rst, fin, close (TLS closed properly) or stream (RST_STREAM).",
            "code": "Of an RST_STREAM, or 0.",
        },
    ),
    "gone": (
        "The client left before the end, or null.",
        {
            "at_us": "Time at which the client left.",
            "chunks": "Pieces of the answer sent to it by then.",
            "head": "Whether it was sent the head.",
        },
    ),
    "client_gone_at": "Same as gone.at_us, or null.",
    "late_response": "Whether the response, or a part, came after that.",
    "repeat": (
        "The earlier effect that this effect repeats, or null.",
        {
            "of": "Seq of the earlier effect with the same method, URL and body.",
            "kind": "possible duplicate or safe retry.",
            "unseen": "Whether the client saw no complete answer to it.",
        },
    ),
    "lane": "Number of the client process in the run, from 1; null if unknown.",
    "tunnel": "Number of the tunnel to this origin, from 1, or null.",
    "inference": (
        "Settings of a model call, or null.",
        {
            "dialect": "The dialect that reads it.",
            "model, served": "Requested model, and the one that answered.",
            "temperature, top_p, seed": "As stated, or null.",
            "tools, system": "Hashes of tool schemas and system prompt, 32 hexadecimal digits.",
        },
    ),
    "interim": "Interim answers (1xx), in order: status, reason, headers, at_us.",
    "websocket": (
        "Messages, or null.",
        {
            "count, size": "Number of messages, and their bytes.",
            "close": (
                "The end; null if still open at the end of the run.",
                {
                    "at_us": "Microseconds since the request arrived.",
                    "by_client": "Whether the client closed first, or broke the protocol.",
                    "code": "1005 if none was given, 1006 without a closing frame.",
                    "reason": "Its reason.",
                    "answer": "[code, reason] of the other side, or null.",
                },
            ),
            "messages[]": (
                "In order.",
                {
                    "body, body_base64, at_us, secrets": "As in a request, uncompressed.",
                    "from_client": "Whether the client sent it.",
                    "kind": "text, binary, or ping from the server.",
                    "frames": "Bytes of each frame; empty for one.",
                    "after": "Highest seq that had arrived by then.",
                },
            ),
        },
    ),
    "redactions": "Places whose values were replaced, as request.header.authorization, request.query.key, request.target, request.body or response.body.",
    "withheld": "Why a contract withheld the response from the client, or null.",
    "contracts[]": (
        "Contract violations.",
        {
            "of": "request, response or model.",
            "rule": "Pattern of the contract, or model_contracts.",
            "refused": "Whether the client got a refusal.",
            "recorded": "Whether it got one on the tape.",
            "count": "Number of violations.",
            "unchecked": "Unchecked parts, and why.",
            "violations[]": (
                "The first ones.",
                {
                    "what": "request, response, tool_call, tool_name or output.",
                    "place": "JSON path.",
                    "expected, found": "In words.",
                },
            ),
        },
    ),
    "warnings": "Parts that were left out, in sentences.",
    "outcome": "With --raw: in words: status and size, tape seq N, the reason of a refusal, or unknown.",
    "method, url": "With --raw: of the request.",
}
