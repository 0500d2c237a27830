"""The objects of a git repository among the files of a folder. Source: gitformat-loose(5), gitrepository-layout(5)."""

import zlib

_OBJECTS = b"/.git/objects/"
_MODULES = b"/.git/modules/"
_MOST_INFLATED = 16 << 20


def is_in_objects(path: bytes) -> bool:
    """Say whether a path is among a repository's objects."""
    rooted = b"/" + path
    return _OBJECTS in rooted or (_MODULES in rooted and b"/objects/" in path)


def inflate_object(data: bytes) -> bytes | None:
    """Give what an object of git holds; None where that is too much to be searched."""
    if data[:1] != b"\x78":
        return data  # an index of a pack, a list of alternates
    try:
        engine = zlib.decompressobj()
        inflated = engine.decompress(data, _MOST_INFLATED)
        return None if engine.unconsumed_tail else inflated
    except zlib.error:
        return data
