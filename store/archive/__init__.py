"""The archive: runs as Parquet files in a folder or an S3-compatible bucket, readable without Playhead.

`location` opens an archive, `schema` describes its files (for people: docs/archive.md), `writing` writes the files of one
batch, `seal` gives each of their bytes a check, `reading` reads runs and steps back. Only archiving and restoring import this package: it needs pyarrow, which
`playhead[archive]` installs.
"""

VERSION = 2
"""Of the format of a batch, which its `steps` file gives."""
FILE_VERSION = 1
"""Of the format of the other files of a batch."""
