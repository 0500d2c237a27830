"""One task for each cloud: `sdk_clouds NAME BASE [CHANGE]`. Says what it got; the change is planted in its requests."""

import hashlib
import io
import os
import sys
from typing import Any

SAID: Any = [{"role": "user", "content": "refund ch_1007"}]
CHANGE = sys.argv[3] if len(sys.argv) > 3 else ""


def either(change: str, then: Any, now: Any) -> Any:
    """Give what is asked for: something else where this change is planted."""
    return now if change == CHANGE else then


def say(*told: object) -> None:
    """Say a result; bytes by their hash."""
    print(*(hashlib.sha256(one).hexdigest() if isinstance(one, bytes) else one for one in told))


def use_azure_download(base: str) -> None:
    """One blob in sixteen pieces, four at a time: nothing but `x-ms-range` tells them apart."""
    blob = _azure(base, "whole.bin", max_single_get_size=1024, max_chunk_get_size=1024)
    start, length = either("range", (0, None), (1, 15 * 1024))
    data = blob.download_blob(start, length, max_concurrency=4).readall()
    say(len(data), data)


def use_azure_upload(base: str) -> None:
    """In blocks, four at a time; a second blob at once, unless it is there."""
    blob = _azure(base, "new.bin", max_single_put_size=1024, max_block_size=1024)
    data = bytearray(b"".join(b"%1024d" % number for number in range(8)))
    if CHANGE == "block":
        data[5000] = ord("x")
    sent: Any = {"metadata": {"case": either("metadata", "7", "8")}, "max_concurrency": 4}
    say(blob.upload_blob(bytes(data), overwrite=True, **sent)["etag"])
    small = _azure(base, "small.bin")
    say(small.upload_blob(b"small", overwrite=either("overwrite", False, True))["etag"])


def _azure(base: str, name: str, **settings: Any) -> Any:
    from azure.storage.blob import BlobClient

    key = {"account_name": "someone", "account_key": "bm90IGEgcmVhbCBrZXk="}
    return BlobClient(f"{base}/azure/someone", "things", name, credential=key, **settings)


def use_storage(base: str) -> None:
    """A resumable upload in three pieces, and a download."""
    from google.auth.credentials import AnonymousCredentials
    from google.cloud import storage

    client = storage.Client(
        project="p",
        credentials=AnonymousCredentials(),  # type: ignore[no-untyped-call]  # has no types
        client_options={"api_endpoint": base},
        extra_headers={"x-goog-user-project": either("project", "p", "q")},
    )
    bucket = client.bucket("b")
    blob = bucket.blob(either("name", "o.bin", "p.bin"), chunk_size=256 * 1024)
    data = bytearray(b"".join(b"%1024d" % number for number in range(600)))
    if CHANGE == "piece":
        data[300 * 1024] = ord("x")
    unless = either("precondition", 0, 7)
    # Of a size that is not told: what is small goes out at once.
    blob.upload_from_file(io.BytesIO(data), if_generation_match=unless)
    say(blob.size, blob.crc32c, blob.generation)
    whole = bucket.blob("whole.bin")
    say(whole.download_as_bytes(start=either("range", 0, 8), end=4095))


def use_s3(base: str) -> None:
    """Copies, pieces, and what is written only unless it is there."""
    import boto3
    from botocore.config import Config

    session = boto3.Session("AKIAIOSFODNN7EXAMPLE", "not-a-secret", region_name="us-east-1")
    config = Config(s3={"addressing_style": "path"})
    s3 = session.client("s3", endpoint_url=f"{base}/s3", config=config)
    for customer in ("alice", either("source", "bob", "carol")):
        # To one place: the source is in a header field alone.
        source = {"Bucket": "customers", "Key": f"{customer}/invoice.pdf"}
        say(s3.copy_object(Bucket="out", Key="invoice.pdf", CopySource=source)["CopyObjectResult"])
    for piece in ("bytes=0-99", either("range", "bytes=100-199", "bytes=200-299")):
        say(s3.get_object(Bucket="b", Key="whole.bin", Range=piece)["Body"].read())
    owner = {"ExpectedBucketOwner": either("owner", "1" * 12, "2" * 12)}
    unless: Any = either("condition", {"IfNoneMatch": "*"}, {"IfMatch": '"0123456789abcdef"'})
    say(s3.put_object(Bucket="b", Key="lock", Body=b"mine", **unless, **owner)["ETag"])


def use_stripe(base: str) -> None:
    """Two connected accounts: the same balance call, the same refund."""
    import stripe

    stripe.ca_bundle_path = os.environ["SSL_CERT_FILE"]  # no variable says it
    client = stripe.StripeClient("sk_test_not_a_real_key", base_addresses={"api": f"{base}/stripe"})
    for number in (1, 2):
        account: Any = {"stripe_account": f"acct_{either('tenant', number, number + 2)}"}
        say(client.v1.balance.retrieve(options=account).available[0].amount)
    refunded: Any = {"stripe_account": either("account", "acct_1", "acct_3")}
    if CHANGE == "platform":
        refunded = {}
    if CHANGE == "version":
        refunded["stripe_version"] = "2026-01-01.other"
    say(client.v1.refunds.create({"charge": "ch_1007"}, options=refunded).id)


def use_anthropic(base: str) -> None:
    """The same question, with and without betas."""
    from anthropic import Anthropic

    with Anthropic(base_url=f"{base}/anthropic", api_key="sk-ant-not-a-real-key-123") as client:
        asked: Any = {"model": "claude-fake", "max_tokens": 64, "messages": SAID}
        other = ["files-api-2025-04-14"]
        for betas in (["context-1m-2025-08-07"], either("beta", other, ["mcp-client-2025-04-04"])):
            say(client.beta.messages.create(**asked, betas=betas).content[0].text)
        version = either("version", {}, {"anthropic-version": "2023-01-01"})
        betas = either("added", [], ["interleaved-thinking-2025-05-14"])
        if betas:
            say(client.beta.messages.create(**asked, betas=betas).content[0].text)
        else:
            say(client.messages.create(**asked, extra_headers=version).content[0].text)


TASKS = {
    name.removeprefix("use_"): task for name, task in globals().items() if name.startswith("use_")
}

if __name__ == "__main__":
    TASKS[sys.argv[1]](sys.argv[2])
