"""Where an archive is: `PATH`, or `s3://BUCKET/PREFIX?endpoint_override=URL&region=NAME`."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_REGION = re.compile(r"[A-Za-z0-9-]{0,40}")
_SHOWN = 60


@dataclass(frozen=True, slots=True)
class ArchivePlace:
    """Where an archive is: a folder, or a part of a bucket. Credentials are the environment's, never here."""

    folder: Path | None = None
    bucket: str = ""
    prefix: str = ""
    """Of the keys in the bucket, without a slash at its ends."""
    endpoint: str = ""
    """HOST:PORT of an S3-compatible server; empty for AWS."""
    scheme: str = "https"
    region: str = ""

    def __str__(self) -> str:
        if self.folder is not None:
            return str(self.folder)
        asked = []
        if self.endpoint:
            asked.append(f"endpoint_override={self.scheme}://{self.endpoint}")
        if self.region:
            asked.append(f"region={self.region}")
        path = "/".join(part for part in (self.bucket, self.prefix) if part)
        return f"s3://{path}" + (f"?{'&'.join(asked)}" if asked else "")


def parse_archive(text: str, place: Callable[[str], Path]) -> ArchivePlace:
    """Parse a folder, or `s3://BUCKET/PREFIX?endpoint_override=URL&region=NAME`.

    place: gives the path that a text means.
    Raises: ValueError, whose text says what would be right; it shows nothing that could be a credential.
    """
    if "://" not in text:
        return ArchivePlace(folder=place(text))
    expected = "expected a folder, or s3://BUCKET/PREFIX?endpoint_override=URL&region=NAME"
    url = urlsplit(text)
    if url.scheme != "s3":
        raise ValueError(f"{_show(url.scheme)} is no kind of archive; {expected}")
    if "@" in url.netloc:
        raise ValueError(f"credentials do not belong here, but into the environment; {expected}")
    if not _BUCKET.fullmatch(url.netloc) or url.fragment:
        raise ValueError(f"{_show(url.netloc)} is no bucket; {expected}")
    asked = dict(parse_qsl(url.query, keep_blank_values=True))
    for name in asked:
        if name not in ("endpoint_override", "region"):
            raise ValueError(f"{_show(name)} cannot be set here; {expected}")
    prefix = url.path.strip("/")
    if any(part in ("", ".", "..") for part in prefix.split("/")) and prefix:
        raise ValueError(f"{_show(prefix)} is no prefix of keys; {expected}")
    scheme, _, endpoint = asked.get("endpoint_override", "").rpartition("://")
    if scheme not in ("", "http", "https") or ("/" in endpoint or "@" in endpoint):
        raise ValueError(f"endpoint_override is no URL of a server; {expected}")
    if not _REGION.fullmatch(asked.get("region", "")):
        raise ValueError(f"{_show(asked['region'])} is no region; {expected}")
    return ArchivePlace(
        bucket=url.netloc,
        prefix=prefix,
        endpoint=endpoint,
        scheme=scheme or "https",
        region=asked.get("region", ""),
    )


def _show(text: str) -> str:
    return repr(text[:_SHOWN])
