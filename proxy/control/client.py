"""The client of the control API: finds the process that owns a run by its file in the store, and asks it over HTTP.

The standard library alone: a command that asks one thing is not to read a server for it.
"""

import http.client
import json
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from ...config import Config
from ...store import RunStatus, StoreError
from ...tape.diff.divergence_types import one_line
from ...tape.shell_words import shell_word
from ..errors import NotAnswered
from ..operations.open_store import open_store
from .address import Address, find_addresses, read_token, token_path

_PATIENCE_S = 30.0
_MOST = 8 * 1024 * 1024
"""Bytes of an answer that are read."""


def stop_run(config: Config, name: str, reason: str) -> str:
    """Have a run stopped by the process that owns it; give what was done, for a person.

    Raises: UnknownRun; StoreError, where the run has ended or its process cannot be asked; NotAnswered.
    """
    address = find_owner(config, name)
    document = ask(
        config, address, "POST", f"/v1/runs/{quote(name, safe='')}/stop", {"reason": reason}
    )
    stopped = document["stopped"]
    who = stopped["by"] + (f" (pid {stopped['pid']})" if stopped["pid"] else "")
    # Somebody else's words, where it was stopped before.
    why = f": {one_line(stopped['reason'])}" if stopped["reason"] else ""
    return (
        f"run {document['id']}: stopped by {who}{why}\n"
        f"Whatever it asks is refused until it is sealed; playhead seal {shell_word(document['id'])} ends it."
    )


def find_owner(config: Config, name: str) -> Address:
    """Find where the process that owns an open run can be asked.

    Raises: UnknownRun; StoreError.
    """
    with open_store(config, readonly=True) as store:
        info = store.runs.get(name)
        if info.status is not RunStatus.OPEN:
            raise StoreError(
                f"run {info.id} is {info.status.value} already", "there is nothing to stop"
            )
        owner = info.owner
        if owner is None or not store.runs.owner_alive(info):
            raise StoreError(
                f"the process of run {info.id} has died, so nothing is asked for it any more",
                f"end it with: playhead seal {shell_word(info.id)}",
            )
    found = next((one for one in find_addresses(config.store) if one.pid == owner.pid), None)
    if found is None:
        raise StoreError(
            f"process {owner.pid}, which writes run {info.id}, has no control API",
            f"end the run with playhead seal {shell_word(info.id)}, or the process with kill {owner.pid};"
            " control.listen says where there is to be one",
        )
    return found


def ask(
    config: Config,
    address: Address,
    method: str,
    path: str,
    body: Mapping[str, Any] | None = None,
    patience_s: float = _PATIENCE_S,
) -> Any:
    """Ask a process something; give its JSON.

    patience_s: how long is waited for each piece of the answer.
    Raises: EngineError, where the token cannot be read; NotAnswered.
    """
    token = read_token(token_path(config))
    connection = _connect(address, patience_s)
    headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}
    data = None
    if (
        body is not None
    ):  # no longer than it came: escapes would have three times the bytes of most scripts
        data = json.dumps(body, ensure_ascii=False).encode("utf-8", "surrogatepass")
    try:
        connection.request(method, path, data, headers)
        answer = connection.getresponse()
        text = answer.read(_MOST)
        document = json.loads(text)
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise NotAnswered(
            f"process {address.pid} did not answer at {address.url}: {error}",
            "is it stopped, or busy? ask again",
        ) from error
    finally:
        connection.close()
    if answer.status >= 400:
        raise NotAnswered(
            f"process {address.pid} answered {answer.status}: {document.get('error', '')}"
            + (
                f" (expected {document['expected']}, found {document['found']})"
                if document.get("found")
                else ""
            ),
            str(document.get("hint", "")),
            **{name: str(document.get(name, "")) for name in ("error", "expected", "found")},
        )
    return document


def _connect(address: Address, patience_s: float) -> http.client.HTTPConnection:
    parts = urlsplit(address.url)
    assert parts.hostname is not None
    if parts.scheme != "https":
        return http.client.HTTPConnection(parts.hostname, parts.port, timeout=patience_s)
    try:
        # The very certificate that the file names: whatever names stand in it, this is who we mean.
        context = ssl.create_default_context(cafile=address.cert)
    except OSError as error:
        raise NotAnswered(
            f"cannot read {str(Path(address.cert))!r}, by which process {address.pid} is known: {error}"
        ) from error
    context.check_hostname = False
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return http.client.HTTPSConnection(
        parts.hostname, parts.port, timeout=patience_s, context=context
    )
