"""The archive: runs as Parquet files in a folder or an S3-compatible bucket, readable without Playhead.

`location` opens an archive, `schema` describes its files (for people: docs/archive.md), `writing` writes the files of one
batch, `reading` reads runs and steps back. Only archiving and restoring import this package: it needs pyarrow, which
`playhead[archive]` installs.

`place` opens where it is, `schema` says what the files hold (for people: docs/archive.md), `writing` makes the files
of one batch, `reading` gives runs and steps back. Only who archives or restores imports this: it needs pyarrow, which
`playhead[archive]` brings.
"""
