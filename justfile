# `uv run just` lists the recipes.
default:
    @just --list

# What CI runs.
check: lint types test

lint:
    uv run ruff format --check .
    uv run ruff check .

# The link lets type checkers and editors find the package under its name; it stands in the environment.
types:
    ln -sfn "{{justfile_directory()}}" "$(uv run python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/playhead"
    uv run mypy

test:
    uv run pytest

# The full counts and the measurements behind the figures in README.md; takes long.
bars:
    PLAYHEAD_FULL=1 uv run pytest
    uv run python benchmarks/run.py all
