# Noisegate's image: `docker build -t noisegate:0.15.0 .`, or `docker compose up` for a server with PostgreSQL.
# Runs as an ordinary user, works with a read-only root file system, needs no tool beyond Python itself.

FROM python:3.13-slim-trixie AS build
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
RUN python -m venv /opt/noisegate/venv
COPY requirements.lock /opt/noisegate/
# Exactly the locked files: every hash is checked, nothing is built, nothing is resolved.
RUN /opt/noisegate/venv/bin/python -m pip install --require-hashes --no-deps --only-binary :all: \
      -r /opt/noisegate/requirements.lock
COPY privacy /opt/noisegate/app/privacy
COPY sql_rewrite /opt/noisegate/app/sql_rewrite
COPY mechanisms /opt/noisegate/app/mechanisms
COPY engines /opt/noisegate/app/engines
COPY accountant /opt/noisegate/app/accountant
COPY migrations /opt/noisegate/app/migrations
COPY server /opt/noisegate/app/server
COPY schemas /opt/noisegate/app/schemas
COPY docs/cli.md /opt/noisegate/app/docs/cli.md
COPY clients/verify.py /opt/noisegate/app/clients/verify.py
# The root file system is read-only later, so the byte code is made now.
RUN /opt/noisegate/venv/bin/python -m compileall -q /opt/noisegate/app

FROM python:3.13-slim-trixie
RUN groupadd --system --gid 10001 noisegate \
 && useradd --system --uid 10001 --gid noisegate --home-dir /var/lib/noisegate --shell /usr/sbin/nologin noisegate \
 && install -d -o noisegate -g noisegate -m 0700 /var/lib/noisegate
COPY --from=build /opt/noisegate /opt/noisegate
ENV PATH=/opt/noisegate/venv/bin:/usr/local/bin:/usr/bin:/bin \
    PYTHONPATH=/opt/noisegate/app \
    PYTHONSAFEPATH=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    NOISEGATE_HOME=/var/lib/noisegate \
    NOISEGATE_HOST=0.0.0.0 \
    NOISEGATE_PORT=8765
# Beyond loopback the server starts only when NOISEGATE_TLS_TERMINATED says that a proxy in front speaks TLS: the image
# does not say so by itself. No secret has a default.
WORKDIR /var/lib/noisegate
VOLUME /var/lib/noisegate
USER 10001:10001
EXPOSE 8765
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=4s --start-period=20s --retries=3 \
  CMD ["python", "-c", "import os, urllib.request as u; u.urlopen('http://127.0.0.1:' + os.environ['NOISEGATE_PORT'] + '/healthz', timeout=3)"]
ENTRYPOINT ["python", "-m", "server.cli"]
CMD ["serve"]
