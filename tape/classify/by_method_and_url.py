"""Classify a request by its method and URL; `by_body.py` looks at its body.

Rules, in this order; the first that speaks decides:

1. The configuration's own patterns: `telemetry`, then `inference`, then `effect`, then `read`.
2. The shipped table of telemetry (`telemetry_endpoints.py`): what programs send on their own account, which nobody wrote. It
   never makes a run diverge, so it names endpoints narrowly.
3. The shipped exceptions: calls that look like inference or effects and are none.
4. The shipped table of inference (`model_apis.py`): model calls, by path wherever the path says enough, by host, or by path and body.
5. The shipped table of reads: searches that ask by POST, by paths that mean nothing else, else by host.
6. GET, HEAD and OPTIONS are `read`; everything else is an `effect`.

A request is an effect until it is known to be none: an effect taken for a model call would be missing
from the list of what the agent did.

Source: the API references of the providers named; telemetry as seen from real SDKs, and their pages on
how to turn it off.
"""

from collections.abc import Callable
from functools import cache, lru_cache
from hashlib import blake2b
from typing import NamedTuple

from ...config.match_pattern import Match, parse_match
from ...config.schema import Classes
from ...config.targets.request_interpretations import ANY_METHOD, Ways
from ..exchange import RequestClass
from .model_apis import MODEL_ENDPOINTS
from .telemetry_endpoints import ASKED_FOR_A_USER, TELEMETRY_ENDPOINTS, is_telemetry_tunnel

_EXCEPTIONS: tuple[tuple[str, RequestClass], ...] = (
    # These send messages to people, at the path at which Anthropic's models are asked.
    ("POST *://*.nexmo.com", RequestClass.EFFECT),
    ("POST *://*.vonage.com", RequestClass.EFFECT),
    ("POST *://*.messagebird.com", RequestClass.EFFECT),
    # Jobs and files of a host whose whole API is inference below.
    ("POST *://api.groq.com/openai/v1/files*", RequestClass.EFFECT),
    ("POST *://api.groq.com/openai/v1/batches*", RequestClass.EFFECT),
    ("POST *://api.groq.com/openai/v1/fine_tunings*", RequestClass.EFFECT),
    # A clone or fetch of git asks by POST.
    ("POST *://*/*/git-upload-pack", RequestClass.READ),
    # Which features somebody has decides on what the agent does.
    *((text, RequestClass.READ) for text in ASKED_FOR_A_USER),
)

_READS = (
    # Elasticsearch and OpenSearch
    *(
        f"POST *://*{before}/{call}"
        for before in ("", "/*")
        for call in ("_search", "_search/scroll", "_search/template", "_msearch", "_count", "_mget")
    ),
    # Qdrant
    *(
        f"POST *://*/collections/*/points/{call}"
        for verb in ("search", "query", "recommend", "discover")
        for call in (verb, f"{verb}/batch", f"{verb}/groups")
    ),
    "POST *://*/collections/*/points/scroll",
    "POST *://*/collections/*/points/count",
    # Chroma
    "POST *://*/api/v*/collections/*/query",
    "POST *://*/api/v*/collections/*/get",
    # Milvus
    *(
        f"POST *://*/v2/vectordb/entities/{call}"
        for call in ("search", "hybrid_search", "query", "get")
    ),
    # Pinecone
    "POST *://*.pinecone.io/query",
    "POST *://*.pinecone.io/describe_index_stats",
    "POST *://*.pinecone.io/records/namespaces/*/search",
    # OpenAI's vector stores
    "POST *://*/*v1/vector_stores/*/search",
    # Hosted search
    *(
        f"POST *://*.{host}/1/indexes/*/{call}"
        for host in ("algolia.net", "algolianet.com")
        for call in ("query", "queries")
    ),
    "POST *://*.search.windows.net/indexes*/docs/search*",
    # Search of the web
    "POST *://api.tavily.com/search",
    "POST *://api.tavily.com/extract",
    "POST *://api.exa.ai/search",
    "POST *://api.exa.ai/contents",
    "POST *://api.exa.ai/findSimilar",
    "POST *://google.serper.dev",
    "POST *://api.perplexity.ai/search",
    "POST *://api.linkup.so/v1/search",
    # Where people work
    "POST *://api.notion.com/v1/search",
    "POST *://api.notion.com/v1/databases/*/query",
    "POST *://api.notion.com/v1/data_sources/*/query",
    "POST *://api.hubapi.com/crm/v3/objects/*/search",
    "POST *://*.atlassian.net/rest/api/*/search",
    "POST *://*.atlassian.net/rest/api/*/search/jql",
    "POST *://graph.microsoft.com/*/search/query",
)

_CLASSES_VERSION = 1
"""Counts up with each change of what classifies a request besides the tables: here, and in `by_body.py`."""

_BY_PATH = frozenset(
    f"POST *://*/*v1/{call}" for call in ("messages", "responses", "completions", "complete")
)
"""Model calls by a path at which others take something else, as WhatsApp takes messages."""
_PROVIDERS = ("api.anthropic.com", "api.openai.com")
"""Hosts of which nothing else is asked at these paths. At others the body has to say so, too."""

_READ_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})

_Table = tuple[tuple[Match, RequestClass], ...]


def _table(patterns: tuple[str, ...], of: RequestClass) -> _Table:
    return tuple((parse_match(pattern), of) for pattern in patterns)


@cache
def _shipped() -> _Table:
    """Give the shipped table; many commands classify nothing, and its patterns take a while."""
    return (
        *_table(TELEMETRY_ENDPOINTS, RequestClass.TELEMETRY),
        *((parse_match(pattern), of) for pattern, of in _EXCEPTIONS),
        *_table(MODEL_ENDPOINTS, RequestClass.INFERENCE),
        *_table(_READS, RequestClass.READ),
    )


def classes_digest(classes: Classes) -> bytes:
    """Give 16 bytes that say by which patterns requests are classified: those of a configuration, and the shipped ones."""
    own = (classes.inference, classes.read, classes.effect, classes.telemetry)
    told = repr([[match.text for match in matches] for matches in own])
    return blake2b(
        _shipped_digest() + told.encode("utf-8", "surrogatepass"), digest_size=16
    ).digest()


@cache
def _shipped_digest() -> bytes:
    tables = TELEMETRY_ENDPOINTS, _EXCEPTIONS, MODEL_ENDPOINTS, _READS, sorted(_BY_PATH)
    told = _CLASSES_VERSION, tables, _PROVIDERS, sorted(_READ_METHODS)
    return blake2b(repr(told).encode(), digest_size=16).digest()


class Kind(NamedTuple):
    """What kind of call a request is, and how that is known."""

    of: RequestClass
    named: bool
    """A pattern speaks of it; else only its method did, and its body may say more."""
    by_path: bool = False
    """Its path alone says that it is a model call, at a host that may be anybody's: its body has to say so, too."""
    plain: bool = True
    """It can be taken for nothing else: with another method, place or path its body does not make it harmless."""


def classify(method: str, scheme: str, host: str, port: int, target: str, classes: Classes) -> Kind:
    """Say what kind of call a request is; `target` is path and query as sent.

    Remembered for the endpoints asked last. Any thread may call it.
    """
    find, by_target = _finder(classes)
    place = target if by_target else target.partition("?")[0]
    return find(method, scheme, host, port, place)


class WayKinds(NamedTuple):
    """What kinds of calls a request can be taken for."""

    kind: Kind
    """The most careful of them."""
    all: frozenset[RequestClass]


_CAREFUL = (
    RequestClass.EFFECT,
    RequestClass.INFERENCE,
    RequestClass.READ,
    RequestClass.TELEMETRY,
)
_MOST_WAYS = 64
"""Ways beyond which a request is taken for anything."""
_ANYTHING = WayKinds(Kind(RequestClass.EFFECT, named=True), frozenset(RequestClass))


def classify_ways(ways: Ways, classes: Classes) -> WayKinds:
    """Say what kinds of calls a request can be taken for, in each of its ways."""
    query = "" if ways.query is None else f"?{ways.query}"
    if ways.plain:
        host, port = ways.places[0]
        kind = classify(ways.methods[0], ways.scheme, host, port, ways.sent + query, classes)
        return _ALONE[kind]
    paths = dict.fromkeys((ways.sent, *ways.paths))
    # What may be any method because a body could not be read may be an effect. A model call is what its own method makes it:
    # whole conversations are larger than what is read.
    methods = [method for method in ways.methods if method != ANY_METHOD]
    own = ways.places[0].port
    # Servers choose by a name alone: one that it only claims counts with the port that it was asked at, too.
    places = dict.fromkeys(
        (host, port)
        for host, stated in ways.places
        for port in ((stated, own) if host in ways.names else (stated,))
        if port >= 0 and host  # else it is no place, but what stands where one should
    )
    if not ways.whole or len(methods) * len(places) * len(paths) > _MOST_WAYS:
        return _ANYTHING
    kinds = [
        classify(method, ways.scheme, host, port, path + query, classes)
        for method in methods
        for host, port in places
        for path in paths
    ]
    found = {kind.of for kind in kinds}
    if len(methods) < len(ways.methods):
        found.add(RequestClass.EFFECT)
    careful = min(kinds, key=lambda kind: (_CAREFUL.index(kind.of), not kind.named))
    if len(methods) < len(ways.methods) and careful.of is not RequestClass.INFERENCE:
        careful = Kind(RequestClass.EFFECT, named=True)
    alone = len(ways.methods) == len(places) == len(paths) == 1
    plain = alone and ways.clear and ways.agreed
    return WayKinds(careful._replace(plain=plain), frozenset(found))


def may_ask_model(ways: Ways, classes: Classes) -> bool:
    """Say whether a request can be taken for a model call, whatever the case of its path or the port of a name."""
    if ways.plain:
        host, port = ways.places[0]
        target = ways.sent if ways.query is None else f"{ways.sent}?{ways.query}"
        kind = classify(ways.methods[0], ways.scheme, host, port, target, classes)
        if kind.named:
            return kind.of is RequestClass.INFERENCE
    shipped = (match for match, of in _shipped() if of is RequestClass.INFERENCE)
    return any(match.maybe(ways) for match in (*classes.inference, *shipped))


_ALONE = {
    kind: WayKinds(kind, frozenset({kind.of}))
    for kind in (
        *(Kind(of, named=named) for of in RequestClass for named in (True, False)),
        Kind(RequestClass.INFERENCE, named=True, by_path=True),
    )
}

_Find = Callable[[str, str, str, int, str], Kind]
_finders: dict[int, tuple[Classes, _Find, bool]] = {}
"""By the identity of the configuration's classes: hashing their patterns costs more than the look-up."""
_MAX_FINDERS = 8
"""Configurations remembered; a process has one, and the one it had before."""


def _finder(classes: Classes) -> tuple[_Find, bool]:
    known = _finders.get(id(classes))
    if known is None or known[0] is not classes:
        if len(_finders) >= _MAX_FINDERS:
            _finders.clear()
        known = (classes, *_make_finder(classes))
        _finders[id(classes)] = known
    return known[1], known[2]


def _make_finder(classes: Classes) -> tuple[_Find, bool]:
    table: _Table = (
        *((match, RequestClass.TELEMETRY) for match in classes.telemetry),
        *((match, RequestClass.INFERENCE) for match in classes.inference),
        *((match, RequestClass.EFFECT) for match in classes.effect),
        *((match, RequestClass.READ) for match in classes.read),
        *_shipped(),
    )
    unsure = frozenset(id(match) for match, _ in _shipped() if match.text in _BY_PATH)

    @lru_cache(maxsize=4096)
    def find(method: str, scheme: str, host: str, port: int, place: str) -> Kind:
        for match, of in table:
            if match.matches(method, scheme, host, port, place):
                by_path = id(match) in unsure and host not in _PROVIDERS
                return Kind(of, named=True, by_path=by_path)
        if method == "CONNECT" and is_telemetry_tunnel(host, port, classes):
            return Kind(RequestClass.TELEMETRY, named=True)
        of = RequestClass.READ if method in _READ_METHODS else RequestClass.EFFECT
        return Kind(of, named=False)

    return find, any("?" in match.path for match, _ in table)
