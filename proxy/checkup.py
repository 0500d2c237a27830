"""`playhead doctor`: a throwaway proxy and a TLS origin on loopback, and every installed client through them."""

import asyncio
import ssl
import tempfile
from pathlib import Path

import click
from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from ..config import Config, Listen, Mode
from ..store import Store
from . import doctor
from .ca import CertificateAuthority, certificate_store
from .engine.loop import new_event_loop
from .runtime import Runtime
from .trust import proxy_url


def check_up(as_json: bool) -> int:
    """Try the clients and print what was found; 1 where one is proxied and does not work."""
    with (
        tempfile.TemporaryDirectory(prefix="playhead-doctor-") as folder,
        asyncio.Runner(loop_factory=new_event_loop) as runner,
    ):
        findings = runner.run(_examine(Path(folder)))
    click.echo(doctor.render_json(findings) if as_json else doctor.render(findings))
    # A client that goes past proxies by its own nature is a finding, not a failure: aiohttp's default session
    # does so on every machine. One that reaches us and does not trust us is ours to mend.
    bad = (doctor.Status.UNTRUSTED, doctor.Status.FAILED)
    return 1 if any(finding.status in bad for finding in findings) else 0


async def _examine(folder: Path) -> tuple[doctor.Finding, ...]:
    config = Config(mode=Mode.RECORD, store=folder, listen=Listen("127.0.0.1", 0))
    async with Runtime(config, sole="doctor") as runtime:
        address = await runtime.listen(config.listen)
        direct: list[str] = []
        origin, port = await _start_origin(runtime.ca, folder, direct)
        try:
            return await doctor.examine(
                proxy_url(address.host, address.port),
                config.public_ca_dir,
                f"https://127.0.0.1:{port}",
                lambda token: _recorded(runtime.store, token),
                lambda token: any(token in path for path in direct),
            )
        finally:
            await origin.cleanup()


def _recorded(store: Store, token: str) -> bool:
    """Say whether the proxy read a request with a token in its path."""
    for run in store.runs():
        for event in store.log(run):
            if token in str(event.data.get("url", "")):
                return True
    return False


async def _start_origin(
    ca: CertificateAuthority, folder: Path, seen: list[str]
) -> tuple[web.AppRunner, int]:
    """Serve anything on TLS with a leaf of our own CA, noting the paths asked for."""
    import ipaddress

    names: list[x509.GeneralName] = [
        x509.IPAddress(ipaddress.ip_address("127.0.0.1")),
        x509.DNSName("localhost"),
    ]
    leaf = certificate_store(ca).get_cert("127.0.0.1", names)
    chain = folder / "origin.pem"
    chain.write_bytes(
        leaf.privatekey.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        + leaf.cert.to_pem()
    )
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(chain)

    async def answer(request: web.Request) -> web.Response:
        seen.append(request.path_qs)
        return web.json_response({"ok": True})

    app = web.Application()
    app.router.add_route("*", "/{tail:.*}", answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
    await site.start()
    port: int = runner.addresses[0][1]
    return runner, port
