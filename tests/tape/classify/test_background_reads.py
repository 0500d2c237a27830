"""Which reads an SDK sends from a thread, as a table."""

from dataclasses import replace

import pytest

from playhead.tape.classify.background_reads import find_background_read
from playhead.tests.support.exchanges import make_request

CODEX = b"codex_exec/0.169.0 (Debian 12.0.0; x86_64) dumb"
GCS, COSMOS = b"gcloud-python/3.17.0", b"azsdk-python-cosmos/4.14.0 Python/3.13.0"
CLAUDE = "https://api.anthropic.com/api/claude_code"
STORAGE = "https://storage.googleapis.com/storage/v1/b/acme"


@pytest.mark.parametrize(
    ("what", "agent", "sdk"),
    [
        (f"GET {STORAGE}", GCS, "google-cloud-storage"),
        (f"GET {STORAGE}?projection=noAcl", GCS, "google-cloud-storage"),
        ("GET https://acme.documents.azure.com/", COSMOS, "azure-cosmos"),
        ("GET https://acme-westeurope.documents.azure.com/", COSMOS, "azure-cosmos"),
        # What is in a bucket or an account, what changes it, and whoever else asks.
        (f"GET {STORAGE}/o/x", GCS, ""),
        (f"GET {STORAGE}/o", GCS, ""),
        ("GET https://storage.googleapis.com/storage/v1/b", GCS, ""),
        (f"DELETE {STORAGE}", GCS, ""),
        (f"GET {STORAGE}", b"curl/8", ""),
        ("GET https://acme.documents.azure.com/dbs/d", COSMOS, ""),
        ("GET https://example.com/", COSMOS, ""),
        ("GET https://chatgpt.com/backend-api/codex/models?client_version=1", CODEX, "Codex"),
        ("GET https://chatgpt.com/backend-api/codex/usage", CODEX, ""),
        ("GET https://chatgpt.com/backend-api/codex/models", b"curl/8", ""),
        (f"GET {CLAUDE}/policy_limits", b"claude-code/2.1.332", "Claude Code"),
        (f"GET {CLAUDE}/policy_limits", b"claude-cli/2.1.332 (external, sdk-cli)", "Claude Code"),
        (f"GET {CLAUDE}/settings", b"claude-code/2.1.332", ""),
        (f"POST {CLAUDE}/policy_limits", b"claude-code/2.1.332", ""),
        (f"GET {CLAUDE}/policy_limits", b"curl/8", ""),
    ],
)
def test_a_read_of_a_thread_is_known_by_its_sdk(what: str, agent: bytes, sdk: str) -> None:
    """By place and `User-Agent` together."""
    request = replace(make_request(what), headers=((b"User-Agent", agent),))
    found = find_background_read(request)
    assert (found.sdk if found is not None else "") == sdk


@pytest.mark.parametrize(
    ("method", "fields", "sdk"),
    [
        ("GET", {"mcp-protocol-version": "2025-11-25"}, "MCP"),
        ("GET", {"mcp-protocol-version": "2025-11-25", "last-event-id": "7"}, ""),
        ("POST", {"mcp-protocol-version": "2025-11-25"}, ""),
        ("GET", {}, ""),
        ("GET", {"mcp-protocol-version": "2025-11-25", "accept": "application/json"}, ""),
    ],
)
def test_a_stream_to_listen_on_is_known_by_its_fields(
    method: str, fields: dict[str, str], sdk: str
) -> None:
    """By method, `accept` and the version of MCP; not one that is taken up again."""
    given = {"accept": "application/json, text/event-stream"} | fields
    headers = tuple((name.encode(), value.encode()) for name, value in given.items())
    request = replace(make_request(f"{method} https://mcp.example/mcp"), headers=headers)
    found = find_background_read(request)
    assert (found.sdk if found is not None else "") == sdk
