"""zstd with the API of Python 3.14's standard library; earlier versions use `backports.zstd`.

The store needs this library: when it compresses, it takes a raw prefix, which long-distance matching searches too. With a
dictionary instead (`zstandard`), a delta of a 2 MB value takes 350 KB instead of 700 bytes, and a delta of 60 KB takes four
times as long (measured 2026-11-22).
"""

import sys

if sys.version_info >= (3, 14):
    from compression.zstd import (
        CompressionParameter,
        DecompressionParameter,
        ZstdCompressor,
        ZstdDecompressor,
        ZstdDict,
        ZstdError,
        compress,
        get_frame_info,
    )
else:
    from backports.zstd import (
        CompressionParameter,
        DecompressionParameter,
        ZstdCompressor,
        ZstdDecompressor,
        ZstdDict,
        ZstdError,
        compress,
        get_frame_info,
    )

__all__ = [
    "CompressionParameter",
    "DecompressionParameter",
    "ZstdCompressor",
    "ZstdDecompressor",
    "ZstdDict",
    "ZstdError",
    "compress",
    "get_frame_info",
]
