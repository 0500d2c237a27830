# Playhead in a container; docs/docker.md. What it listens on beyond loopback needs `runs.tokens`, so `serve` wants a configuration file:
#
#   docker build -t playhead .
#   docker run --rm -p 127.0.0.1:8080:8080 -v "$PWD/playhead.yaml:/etc/playhead/playhead.yaml:ro" -v playhead:/data playhead
#
# Any other command in place of the default: docker run --rm -v playhead:/data playhead runs --store /data
ARG BASE_IMAGE=python:3.13-slim

FROM ${BASE_IMAGE} AS build
WORKDIR /src
COPY pyproject.toml LICENSE __init__.py py.typed ./
COPY docs/package.md docs/
COPY config/ config/
COPY tape/ tape/
COPY store/ store/
COPY timeline/ timeline/
COPY web/ web/
COPY addons/ addons/
COPY proxy/ proxy/
COPY examples/ examples/
# The image's own pip installs: a second one would only make it larger.
RUN python -m venv --without-pip /opt/playhead \
    && pip --python /opt/playhead/bin/python install --no-cache-dir --no-compile ".[demo,prices]" \
    # 13 MB for interpreters that have no use for the other half; pages, and a terminal's page, of programs that are not used; a package's own
    # tests; descriptions of directories that are asked for their own; and what compiled modules were made of.
    && rm -rf /opt/playhead/lib/python3*/site-packages/zstandard/_cffi.*.so \
        /opt/playhead/lib/python3*/site-packages/mitmproxy/tools/web/static \
        /opt/playhead/lib/python3*/site-packages/mitmproxy/tools/console \
        /opt/playhead/lib/python3*/site-packages/urwid \
        /opt/playhead/lib/python3*/site-packages/wcwidth \
        /opt/playhead/lib/python3*/site-packages/tornado/test \
        /opt/playhead/lib/python3*/site-packages/ldap3/protocol/schemas \
    && find /opt/playhead/lib/python3*/site-packages -type f -not -path '*/site-packages/playhead/*' \
        \( -name '*.pyx' -o -name '*.pxd' -o -name '*.c' -o -name '*.h' \) -delete
# The tape of the demo. What is imported meanwhile, and no more, is left as bytecode: nothing can be written later.
WORKDIR /
RUN /opt/playhead/bin/python -m playhead.examples.double_refund.tape /opt/playhead/demo.tape \
    && chmod 0644 /opt/playhead/demo.tape \
    && /opt/playhead/bin/python -c "import playhead.proxy.commands.container_entrypoints, playhead.proxy.docker.compose_agent, playhead.proxy.run.serve"

FROM ${BASE_IMAGE}
LABEL org.opencontainers.image.title="Playhead" \
    org.opencontainers.image.description="A transparent record and replay proxy for AI agents" \
    org.opencontainers.image.licenses="Apache-2.0" \
    org.opencontainers.image.version="0.1.0"
# Volumes that are empty take over owner and mode of these folders. /ca holds public files alone; /link is what the
# containers of compose.yaml share, and /agent what the agent's sees of it.
RUN groupadd --gid 10001 app \
    && useradd --uid 10001 --gid app --no-create-home --home-dir /data --shell /usr/sbin/nologin app \
    && install -d -o app -g app -m 0700 /data \
    && install -d -o app -g app -m 0755 /ca /link /agent
COPY --from=build /opt/playhead /opt/playhead
ENV PATH=/opt/playhead/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
# By number, so that a cluster can see that it is not root.
USER 10001:10001
WORKDIR /data
VOLUME ["/data", "/ca"]
EXPOSE 8080
# Asked for nothing: a request through the proxy would be one of somebody's run.
HEALTHCHECK --interval=5s --timeout=3s --start-period=10s --retries=5 \
    CMD ["python", "-c", "import socket; socket.create_connection(('127.0.0.1', 8080), 2).close()"]
ENTRYPOINT ["playhead"]
CMD ["serve", "-c", "/etc/playhead/playhead.yaml", "--listen", "0.0.0.0:8080", "--store", "/data", "--ca-dir", "/ca"]
