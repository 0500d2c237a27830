"""The addresses of pages."""

from urllib.parse import quote


def run_path(run: str) -> str:
    """Give the address of a run's page."""
    return f"/runs/{quote(run, safe='')}"
