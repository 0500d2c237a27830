"""By which proxy an upstream is reached: the configuration, the inherited variables, and what neither may say."""

from base64 import b64encode
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from playhead.config import Config, ConfigError, load
from playhead.config.sections.upstreams import ProxyAddress, parse_proxy
from playhead.proxy.errors import EngineError
from playhead.proxy.trust.upstream_proxies import read_routes
from playhead.tests.support.upstream_proxy_cases import BAD_ADDRESSES, ROUTES, BadAddress, Route


def _config(folder: Path, settings: str) -> Config:
    file = folder / "playhead.yaml"
    file.write_text(f"upstream_proxy: {settings}\n")
    return load(file)


@pytest.mark.parametrize("case", ROUTES, ids=[case.rule for case in ROUTES])
def test_each_upstream_has_its_proxy(case: Route, tmp_path: Path) -> None:
    """One row per rule."""
    target = urlsplit(case.target)
    port = target.port or {"http": 80, "https": 443}[target.scheme]
    routes = read_routes(_config(tmp_path, case.settings).upstream_proxy, case.environ)
    host = target.netloc.rpartition(":")[0] if target.port else target.netloc
    assert str(routes.choose(target.scheme, host.strip("[]"), port)) == case.by


@pytest.mark.parametrize("case", BAD_ADDRESSES, ids=[case.text for case in BAD_ADDRESSES])
def test_a_bad_address_is_named_without_its_credentials(case: BadAddress, tmp_path: Path) -> None:
    """In the configuration with its place, in a variable with its name."""
    with pytest.raises(ValueError, match="expected an address") as wrong:
        parse_proxy(case.text)
    assert case.says in str(wrong.value)
    assert "s3cret-word" not in str(wrong.value)
    with pytest.raises(ConfigError) as faulty:
        _config(tmp_path, f"{{https: '{case.text}'}}")
    assert "upstream_proxy.https" in str(faulty.value)
    assert "s3cret-word" not in str(faulty.value)
    if case.text:
        with pytest.raises(EngineError, match="variable HTTPS_PROXY") as failed:
            read_routes(Config().upstream_proxy, {"HTTPS_PROXY": case.text})
        assert "s3cret-word" not in f"{failed.value} {failed.value.hint}"


def test_credentials_are_decoded_and_never_shown() -> None:
    """As a person prints an address, and as a program does."""
    proxy = parse_proxy("http://me%40corp:a%2Fb%3Ac@p:1")
    assert (proxy.user, proxy.password) == ("me@corp", "a/b:c")
    assert "a/b" not in f"{proxy} {proxy!r}"
    assert "me@corp" not in f"{proxy} {proxy!r}"


def test_a_file_gives_credentials_to_the_proxies_that_have_none(tmp_path: Path) -> None:
    """Whether inherited or set; one that has its own keeps them."""
    (tmp_path / "secret").write_text("me:with:colon\n")
    config = _config(tmp_path, "{credentials_file: secret, http: 'http://own:word@p:1'}")
    routes = read_routes(config.upstream_proxy, {"HTTPS_PROXY": "http://p:2"})
    assert routes.https == ProxyAddress("http", "p", 2, "me", "with:colon")
    assert routes.http == ProxyAddress("http", "p", 1, "own", "word")


def test_the_credentials_of_every_proxy_are_secrets(tmp_path: Path) -> None:
    """As texts may show them; the user of a person is in paths as well, and a token is not."""
    (tmp_path / "secret").write_text("me:with:colon\n")
    token = "a1" * 10
    hosts = f"{{h.test: 'socks5://{token}:p@p:3', n.test: 'http://p:4'}}"
    config = _config(tmp_path, f"{{credentials_file: secret, hosts: {hosts}}}")
    routes = read_routes(config.upstream_proxy, {"https_proxy": "http://jsmith2:a%2Fb@p:2"})
    secrets = set(routes.secrets)
    assert {b"with:colon", b"me:with:colon", b64encode(b"me:with:colon")} <= secrets
    assert {b"a/b", b"jsmith2:a/b", b64encode(b"jsmith2:a/b"), token.encode()} <= secrets
    assert not {b"me", b"jsmith2", b""} & secrets
    assert read_routes(Config().upstream_proxy, {"https_proxy": "http://p:2"}).secrets == ()


@pytest.mark.parametrize("content", [None, "", "word", "a:b\nc:d", "a:\x01", "a:" + "b" * 5000])
def test_a_file_without_credentials_is_named(tmp_path: Path, content: str | None) -> None:
    """With what stands in it left out of the message."""
    if content is not None:
        (tmp_path / "secret").write_text(content)
    config = _config(tmp_path, "{credentials_file: secret}")
    with pytest.raises(EngineError, match="credentials_file") as failed:
        read_routes(config.upstream_proxy, {})
    assert "USER:PASSWORD" in failed.value.hint or "colon" in failed.value.hint
