"""Which files hold a secret by their name."""

import pytest

from playhead.proxy.folder.file_contents import is_named_as_secret


@pytest.mark.parametrize(
    "path",
    [
        *(".vault_pass", "ansible/.vault-password.txt", "vault_pass", "config/master.key", "run/secrets/postgres_password", ".git-token"),
        *("accessKeys.csv", "bob_accessKeys.csv", "a/credentials.csv", "prod-credentials.csv", "pgpass", ".pgpass", ".netrc", "_netrc"),
        *(".ssh/id_rsa", "id_ed25519", "id_ed25519_sk", "tls/server.key", "a.p12", "a.PFX", "store.jks", "key.der", "my-key.der", ".htpasswd"),
    ],
)  # fmt: skip
def test_a_file_of_a_secret_is_known_by_its_name(path: str) -> None:
    """Wherever it is."""
    assert is_named_as_secret(path.encode())


@pytest.mark.parametrize(
    "path",
    [
        *("id_rsa.pub", "cacert.pem", "keys.py", "key", "master.key.md", "credentials.py", "test_credentials.csv.py", "my_id_rsa_test.go"),
        *("tokens.csv", "token", "secrets/readme.md", "run/secrets.py", "src/run/secrets/a/b.py", ".env.example", "monkey.csv", "cert.der"),
        *("vault_pass.py", "netrc.py", "passkeys.csv", ".tokenrc"),
    ],
)  # fmt: skip
def test_another_file_is_not(path: str) -> None:
    """Public keys, certificates, sources: their content says whether they hold one."""
    assert not is_named_as_secret(path.encode())
