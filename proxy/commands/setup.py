"""What an agent and its machine need."""

from pathlib import Path

import click

from ...config import override
from .common import options, reading


@click.command()
@options("config", "store", "ca_dir")
def ca(config_file: Path | None, store: str | None, ca_dir: str | None) -> int:
    """Show the CA that agents have to trust, made if there is none."""
    from ..ca import open_ca

    config = override(reading(config_file, store), {"ca_dir": ca_dir} if ca_dir else {})
    authority = open_ca(config.store, config.public_ca_dir)
    click.echo(f"certificate  {authority.certificate_file}")
    click.echo(f"bundle       {authority.bundle_file}  (the roots in force, and ours)")
    click.echo(f"name         {authority.name}")
    click.echo(f"SHA-256      {authority.fingerprint}")
    return 0


@click.command()
@options("json")
def doctor(as_json: bool) -> int:
    """Try each installed client through the proxy, and say what to set."""
    from ..checkup import check_up

    return check_up(as_json)
