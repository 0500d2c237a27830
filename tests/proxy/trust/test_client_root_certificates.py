"""The roots in force before: what the person named, else the system's."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.proxy.trust import client_root_certificates
from playhead.proxy.trust.client_root_certificates import (
    certificates_in,
    find_named,
    find_read,
    merge,
    roots_in_force,
)


def block(text: str) -> bytes:
    return f"-----BEGIN CERTIFICATE-----\n{text}\n-----END CERTIFICATE-----".encode()


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with one system root, two that a person may name, and ours."""
    for name in ("system", "one", "two"):
        (tmp_path / name).write_bytes(block(name) + b"\n")
    (tmp_path / "ca").mkdir()
    (tmp_path / "ca" / "bundle").write_bytes(block("ours"))
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "a.pem").write_bytes(block("one") + b"\r\n# text\r\n" + block("two"))
    (tmp_path / "folder" / "b.0").write_bytes(block("one"))
    monkeypatch.setattr(
        client_root_certificates,
        "_system_places",
        lambda: iter([tmp_path / "gone", tmp_path / "system"]),
    )
    return tmp_path


@pytest.mark.parametrize(
    ("named", "expected"),
    [
        ({}, ["system"]),
        ({"SSL_CERT_FILE": ""}, ["system"]),
        ({"SSL_CERT_FILE": "one"}, ["one"]),
        ({"REQUESTS_CA_BUNDLE": "one"}, ["one"]),
        ({"SSL_CERT_FILE": "one", "REQUESTS_CA_BUNDLE": "two"}, ["one", "two"]),
        ({"SSL_CERT_FILE": "one", "REQUESTS_CA_BUNDLE": "one"}, ["one"]),
        ({"REQUESTS_CA_BUNDLE": "folder"}, ["one", "two"]),
        # what single clients trust is added
        ({"NODE_EXTRA_CA_CERTS": "one"}, ["system", "one"]),
        ({"SSL_CERT_FILE": "two", "AWS_CA_BUNDLE": "one"}, ["two", "one"]),
        ({"SSL_CERT_DIR": "folder"}, ["system", "one", "two"]),
        ({"GIT_SSL_CAINFO": "nowhere"}, ["system"]),
        ({"NODE_EXTRA_CA_CERTS": "ca/bundle"}, ["system"]),
        # ours says nothing about before
        ({"SSL_CERT_FILE": "ca/bundle"}, ["system"]),
        ({"SSL_CERT_FILE": "ca/bundle", "CURL_CA_BUNDLE": "two"}, ["two"]),
        # absent or empty of certificates
        ({"SSL_CERT_FILE": "nowhere"}, ["system"]),
        ({"SSL_CERT_FILE": "nowhere", "REQUESTS_CA_BUNDLE": "two"}, ["two"]),
    ],
)
def test_roots_come_from_the_person_else_from_the_system(
    places: Path, named: dict[str, str], expected: list[str]
) -> None:
    """Every source once, ours never."""
    environ = {name: str(places / value) if value else "" for name, value in named.items()}
    assert roots_in_force(environ, places / "ca") == [block(name) for name in expected]


class Asked(dict[str, str]):
    """An environment that notes what is asked of it; each variable names a file of its own."""

    def __init__(self) -> None:
        """Nothing was asked yet."""
        super().__init__()
        self.names: set[str] = set()

    def __getitem__(self, name: str) -> str:
        self.names.add(name)
        return f"/nowhere/{name}"

    def get(self, name: str, default: object = None) -> str:
        """Give it, too."""
        return self[name]


def test_every_variable_that_names_roots_is_known_to_what_protects_them(tmp_path: Path) -> None:
    """Whatever reads roots asks for no variable whose file is not among those that a sandbox protects and compares."""
    environ = Asked()
    roots_in_force(environ, tmp_path)
    assert len(environ.names) > 15
    assert {f"/nowhere/{name}" for name in environ.names} <= set(find_read(Asked()))
    assert {f"/nowhere/{name}" for name in environ.names} <= set(map(str, find_named(Asked())))


def test_real_system_has_roots(tmp_path: Path) -> None:
    """Whatever built the interpreter, at least certifi answers."""
    assert len(roots_in_force({}, tmp_path)) > 20


@given(st.lists(st.lists(st.sampled_from("ABCDE"))))
def test_merge_keeps_each_certificate_once_in_order(sources: list[list[str]]) -> None:
    """First come, first placed; line endings make no difference."""
    merged = merge(*([block(text) for text in source] for source in sources))
    flat = [text for source in sources for text in source]
    assert merged == [block(text) for text in dict.fromkeys(flat)]
    wrapped = b"x\r\n".join(one.replace(b"\n", b"\r\n") for one in merged)
    assert certificates_in(wrapped) == merged
