"""The child's environment: through the proxy, trusting it, with the person's own settings kept."""

import shlex
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import pkcs12

from playhead.proxy.errors import EngineError
from playhead.proxy.trust.ca import CertificateAuthority, open_ca
from playhead.proxy.trust.environment import environment, proxy_url, publish, removed, variables
from playhead.proxy.trust.variables import TABLE, Holds, names
from playhead.store.encryption.key import VARIABLE

URL = "http://run:token@127.0.0.1:8080"


@pytest.fixture
def ca(tmp_path: Path) -> CertificateAuthority:
    return open_ca(tmp_path, tmp_path / "ca", environ={})


def made(ca: CertificateAuthority, base: dict[str, str], url: str = URL) -> dict[str, str]:
    return environment(base, proxy_url=url, public_dir=ca.bundle_file.parent)


@pytest.mark.parametrize(
    ("host", "run", "token", "expected"),
    [
        ("127.0.0.1", "", "", "http://127.0.0.1:8080"),
        ("localhost", "", "", "http://localhost:8080"),
        ("::1", "", "", "http://[::1]:8080"),
        ("0.0.0.0", "", "", "http://127.0.0.1:8080"),
        ("::", "a", "b", "http://a:b@[::1]:8080"),
        ("127.0.0.1", "a run", "p@ss:/", "http://a%20run:p%40ss%3A%2F@127.0.0.1:8080"),
        ("127.0.0.1", "a", "", "http://a:@127.0.0.1:8080"),
    ],
)
def test_proxy_url_is_what_clients_can_read(host: str, run: str, token: str, expected: str) -> None:
    """IPv6 in brackets, credentials escaped, the unspecified address as loopback."""
    assert proxy_url(host, 8080, run=run, token=token) == expected


@pytest.mark.parametrize(
    "name", ["HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "WSS_PROXY", "WS_PROXY"]
)
def test_proxy_stands_in_both_cases(ca: CertificateAuthority, name: str) -> None:
    """gRPC and wget read lower case only, others upper case first."""
    child = made(ca, {name: "http://elsewhere:1", name.lower(): "http://elsewhere:2"})
    assert child[name] == child[name.lower()] == URL


def test_nothing_is_excepted_from_the_proxy(ca: CertificateAuthority) -> None:
    """An inherited exception, or a tool's own proxy, would lead past us."""
    base = {"NO_PROXY": "localhost", "no_proxy": "*", "PIP_PROXY": "x", "npm_config_noproxy": "*"}
    child = made(ca, base)
    assert child["NO_PROXY"] == child["no_proxy"] == ""
    assert not {"PIP_PROXY", "npm_config_noproxy"} & child.keys()


PASSWORD = "Tr0ub4dor3x"
COMPANY = f"http://jsmith:{PASSWORD}@proxy.example:3128"


@pytest.mark.parametrize(
    ("name", "value", "left"),
    [
        ("FTP_PROXY", COMPANY, None),
        ("ftp_proxy", "http://proxy.example:3128", None),
        ("YARN_HTTPS_PROXY", COMPANY, None),
        ("YARN_HTTP_PROXY", "http://proxy.example:3128", None),
        ("RSYNC_PROXY", f"jsmith:{PASSWORD}@proxy.example:3128", None),
        ("GLOBAL_AGENT_HTTP_PROXY", COMPANY, None),
        ("https_PROXY", COMPANY, None),
        ("SOME_PROXY", "http://proxy.example:3128", "http://proxy.example:3128"),
        ("REGISTRY", COMPANY, COMPANY),
        ("JAVA_OPTS", f"-Xmx1g -Dhttps.proxyUser=jsmith -Dhttps.proxyPassword={PASSWORD} -Da=b", "-Xmx1g -Da=b"),
        ("MAVEN_OPTS", f"'-Dhttp.proxyPassword={PASSWORD} x' -Xmx1g", "-Xmx1g"),
        ("_JAVA_OPTIONS", f"-Djava.net.socks.password={PASSWORD}", ""),
        ("JDK_JAVA_OPTIONS", "-Dhttp.proxyHost=proxy.example", "-Dhttp.proxyHost=proxy.example"),
    ],
)  # fmt: skip
def test_no_credentials_of_a_company_proxy_are_handed_on(
    ca: CertificateAuthority, name: str, value: str, left: str | None
) -> None:
    """The proxy itself reaches the company's; what its agent has may stand in every list of its environment."""
    child = made(ca, {name: value})
    assert child.get(name) == left
    assert PASSWORD not in str(child) or name == "REGISTRY"
    assert (name in removed({name: value})) is (left is None)


def test_java_has_no_credentials_of_a_company_proxy(ca: CertificateAuthority) -> None:
    """Host and port are ours, and our proxy wants others."""
    base = {"JAVA_TOOL_OPTIONS": f"-Xmx1g -Dhttp.proxyPassword={PASSWORD}"}
    child = made(ca, base)
    assert child["JAVA_TOOL_OPTIONS"].startswith("-Xmx1g -Dhttp.proxyHost=")
    assert PASSWORD not in str(child)


@pytest.mark.parametrize(
    "name",
    [
        "SSL_CERT_FILE",
        "REQUESTS_CA_BUNDLE",
        "CURL_CA_BUNDLE",
        "AWS_CA_BUNDLE",
        "GIT_SSL_CAINFO",
        "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH",
        "DENO_CERT",
        "PIP_CERT",
        "CARGO_HTTP_CAINFO",
        "HTTPLIB2_CA_CERTS",
        "WEBSOCKET_CLIENT_CA_BUNDLE",
    ],
)
def test_variables_that_replace_roots_get_the_bundle(ca: CertificateAuthority, name: str) -> None:
    """With our certificate alone the client could reach no other host."""
    assert made(ca, {name: "/else"})[name] == str(ca.bundle_file)


def test_variables_that_add_roots_get_our_certificate(ca: CertificateAuthority) -> None:
    """Node adds to its own."""
    child = made(ca, {})
    assert child["NODE_EXTRA_CA_CERTS"] == str(ca.certificate_file)
    assert child["NODE_USE_ENV_PROXY"] == "1"


@pytest.mark.parametrize("base", [{}, {"NODE_OPTIONS": "--max-old-space-size=64"}])
def test_node_options_are_left_alone(ca: CertificateAuthority, base: dict[str, str]) -> None:
    """Node 20 refuses to start with --use-env-proxy."""
    assert made(ca, base).get("NODE_OPTIONS") == base.get("NODE_OPTIONS")


def test_rest_of_the_environment_is_kept_and_base_untouched(ca: CertificateAuthority) -> None:
    """A new environment, not a changed one."""
    base = {"PATH": "/bin", "X": "y", "NIX_SSL_CERT_FILE": "/n"}
    child = made(ca, base)
    assert base == {"PATH": "/bin", "X": "y", "NIX_SSL_CERT_FILE": "/n"}
    assert (child["PATH"], child["X"]) == ("/bin", "y")
    assert child["NIX_SSL_CERT_FILE"] == str(ca.bundle_file)
    assert "CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE" not in child


def test_the_key_of_the_store_is_not_handed_on(ca: CertificateAuthority) -> None:
    """The agent has no need to read what was recorded."""
    assert VARIABLE not in made(ca, {VARIABLE: "a key", "PATH": "/bin"})


def test_relative_folder_becomes_absolute(
    ca: CertificateAuthority, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A child may change its directory."""
    monkeypatch.chdir(ca.bundle_file.parent.parent)
    child = environment({}, proxy_url=URL, public_dir=Path("ca"))
    assert child["SSL_CERT_FILE"] == str(ca.bundle_file.resolve())


@pytest.mark.parametrize("named_by", ["HOME", "WGETRC"])
def test_wget_keeps_the_persons_own_settings(
    ca: CertificateAuthority, tmp_path: Path, named_by: str
) -> None:
    """But not those that would lead past the proxy or distrust it."""
    theirs = tmp_path / ".wgetrc"
    theirs.write_bytes(
        b"tries = 3\nHTTPS-Proxy = http://elsewhere\nca_certificate=/x\nuse_proxy=off\nheader = x: \xff\n"
    )
    base = {named_by: str(tmp_path if named_by == "HOME" else theirs)}
    child = made(ca, base)
    written = Path(child["WGETRC"]).read_bytes()
    assert written == b"tries = 3\nheader = x: \xff\nca_certificate = %s\n" % bytes(ca.bundle_file)
    assert Path(child["WGETRC"]).stat().st_mode & 0o777 == 0o600


def test_file_of_ours_is_not_taken_for_the_persons(
    ca: CertificateAuthority, tmp_path: Path
) -> None:
    """Playhead inside Playhead reads ~/.wgetrc again, not what the outer one wrote."""
    (tmp_path / ".wgetrc").write_text("tries = 3\n")
    child = made(ca, {"HOME": str(tmp_path)})
    written = Path(child["WGETRC"]).read_bytes()
    assert Path(made(ca, child)["WGETRC"]).read_bytes() == written


@pytest.mark.parametrize(
    ("url", "host"),
    [
        (URL, "127.0.0.1"),
        ("http://[::1]:8080", "::1"),
        ("http://proxy.example:8080", "proxy.example"),
    ],
)
def test_java_options_are_appended(ca: CertificateAuthority, url: str, host: str) -> None:
    """Host and port apart, loopback included, no credentials where any program can read them."""
    options = shlex.split(made(ca, {"JAVA_TOOL_OPTIONS": "-Xmx64m"}, url)["JAVA_TOOL_OPTIONS"])
    assert options[0] == "-Xmx64m"
    assert {f"-Dhttps.proxyHost={host}", "-Dhttps.proxyPort=8080"} < set(options)
    assert {f"-Dhttp.proxyHost={host}", "-Dhttp.proxyPort=8080"} < set(options)
    assert "-Dhttp.nonProxyHosts=" in options
    assert "token" not in " ".join(options)


def test_java_options_stand_a_folder_with_spaces(tmp_path: Path) -> None:
    """The Java launcher splits at spaces outside quotes."""
    ca = open_ca(tmp_path, tmp_path / "a folder", environ={})
    options = shlex.split(made(ca, {})["JAVA_TOOL_OPTIONS"])
    store = ca.bundle_file.with_suffix(".p12")
    assert f"-Djavax.net.ssl.trustStore={store}" in options


# The system's roots may hold one with serial number 0.
@pytest.mark.filterwarnings("ignore:Parsed a serial number")
def test_trust_store_holds_the_bundle(ca: CertificateAuthority) -> None:
    """Java's file is the bundle in another form."""
    made(ca, {})
    store = pkcs12.load_pkcs12(ca.bundle_file.with_suffix(".p12").read_bytes(), None)
    held = [one.certificate for one in store.additional_certs]
    assert held[-1] == ca.certificate
    assert len(held) == ca.bundle_file.read_bytes().count(b"BEGIN CERT")


def test_second_child_changes_no_file(ca: CertificateAuthority) -> None:
    """Files that other children read stay as they are."""
    made(ca, {})
    folder = ca.bundle_file.parent
    before = {path: path.stat().st_ino for path in folder.iterdir()}
    made(ca, {})
    assert {path: path.stat().st_ino for path in folder.iterdir()} == before


def test_trust_store_follows_the_bundle(ca: CertificateAuthority) -> None:
    """A changed bundle is a changed trust store."""
    made(ca, {})
    store = ca.bundle_file.with_suffix(".p12")
    before = store.read_bytes()
    ca.bundle_file.write_bytes(ca.certificate_file.read_bytes())
    made(ca, {})
    assert len(store.read_bytes()) < len(before)


def test_missing_bundle_is_explained(tmp_path: Path) -> None:
    """Somebody named a folder in which no CA was opened."""
    with pytest.raises(EngineError, match="cannot read the bundle") as caught:
        environment({}, proxy_url=URL, public_dir=tmp_path)
    assert "--ca-dir" in caught.value.hint


def test_java_options_of_ours_are_not_doubled(ca: CertificateAuthority) -> None:
    """A shell that is told twice has them once."""
    once = made(ca, {"JAVA_TOOL_OPTIONS": "-Xmx64m"})
    assert made(ca, once) == once


def test_child_can_trust_without_being_led(ca: CertificateAuthority) -> None:
    """What shows that a client is captured: nothing tells it of a proxy, not even what was there before."""
    base = {"https_proxy": "http://elsewhere:1", "PIP_PROXY": "x", "NODE_USE_ENV_PROXY": "1"}
    child = environment(base, proxy_url=None, public_dir=ca.bundle_file.parent)
    trusting = {row.name for row in TABLE if row.holds in (Holds.BUNDLE, Holds.CERTIFICATE)}
    assert {name for name in trusting if name in child} >= trusting - {
        row.name for row in TABLE if row.only_where_set
    }
    led = {name for row in TABLE if row.holds in (Holds.PROXY, Holds.YES) for name in names(row)}
    assert not led & child.keys()
    assert "proxyHost" not in child["JAVA_TOOL_OPTIONS"]
    assert "PIP_PROXY" not in child


def test_files_have_the_names_that_a_container_knows(
    ca: CertificateAuthority, tmp_path: Path
) -> None:
    """Where the folder is mounted; nothing of the person's settings goes there."""
    (tmp_path / ".wgetrc").write_text("http_password = mine\n")
    folder = ca.bundle_file.parent
    base = {"HOME": str(tmp_path)}
    found = variables(base, proxy_url=URL, public_dir=folder, seen_at=Path("/certificates"))
    assert found["SSL_CERT_FILE"] == "/certificates/playhead-ca-bundle.pem"
    assert found["NODE_EXTRA_CA_CERTS"] == "/certificates/playhead-ca-cert.pem"
    assert "trustStore=/certificates/playhead-ca-bundle.p12" in found["JAVA_TOOL_OPTIONS"]
    written = folder / Path(found["WGETRC"]).name
    assert written.read_text() == "ca_certificate = /certificates/playhead-ca-bundle.pem\n"
    assert written.stat().st_mode & 0o777 == 0o644
    assert all(
        (folder / Path(value).name).exists() for value in found.values() if value[:2] == "/c"
    )


def test_files_for_others_are_there_without_a_child(ca: CertificateAuthority) -> None:
    """`serve` starts nobody, and its agents are told of the same files."""
    folder = ca.bundle_file.parent
    publish(folder)
    assert (folder / "playhead-wgetrc-ca").read_text() == f"ca_certificate = {ca.bundle_file}\n"
    assert (folder / "playhead-ca-bundle.p12").exists()


def test_what_leads_past_is_named_as_it_is_written() -> None:
    """npm reads its variables in whatever case."""
    assert {"npm_config_proxy", "PIP_PROXY", "Npm_Config_Proxy"} <= set(
        removed({"Npm_Config_Proxy": ""})
    )
    assert "PATH" not in removed({"PATH": "/bin"})
