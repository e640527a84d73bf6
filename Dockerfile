# Fanlight in a container: docs/docker.md says how to run it.
# Stages with a compiler build wheels; the images have only what those install.
#
#   docker build -t fanlight .                          the broker, and the client's command
#   docker build --target bench -t fanlight-bench .     the load generator
#   docker build --target spark -t fanlight-spark .     the pipeline: a Java, PySpark, and the jobs over archives

ARG PYTHON_IMAGE=python:3.12-slim-bookworm

FROM ${PYTHON_IMAGE} AS tools
RUN apt-get update \
 && apt-get install -y --no-install-recommends gcc libc6-dev \
 && rm -rf /var/lib/apt/lists/*
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
WORKDIR /src
# Dependencies come first: their layers are built again only when they change, not at every edit.
COPY constraints.txt constraints-hashes.txt ./
RUN pip install -c constraints.txt setuptools cython && python -m venv /opt/fanlight
COPY scripts/dependencies.py scripts/
COPY matchcore/pyproject.toml matchcore/
COPY permissions/pyproject.toml permissions/
COPY archive/pyproject.toml archive/
COPY broker/pyproject.toml broker/
COPY bench/pyproject.toml bench/
COPY pipeline/pyproject.toml pipeline/
COPY clients/python/pyproject.toml clients/python/


# With tokens (JWT). EXTRA=archive: a broker that can keep an archive; its pyarrow is larger than all the rest.
FROM tools AS build
ARG EXTRA=
RUN python scripts/dependencies.py broker:jwt "broker:${EXTRA}" clients/python:cli > requirements.txt \
 && pip wheel --wheel-dir /wheels --require-hashes -c constraints-hashes.txt -r requirements.txt
COPY matchcore matchcore
COPY permissions permissions
COPY archive archive
COPY broker broker
# A folder of the dashboard is a link to it.
COPY clients/js clients/js
COPY clients/python clients/python
RUN for folder in $(python scripts/dependencies.py --folders "broker:${EXTRA}" clients/python:cli); do \
      pip wheel --wheel-dir /wheels --no-deps --no-build-isolation "./$folder" || exit 1; done \
 && /opt/fanlight/bin/pip install --no-index --no-deps /wheels/*.whl \
 && /opt/fanlight/bin/pip uninstall --yes pip \
 && /opt/fanlight/bin/python -m compileall -q /opt/fanlight/lib


FROM tools AS build-bench
RUN python scripts/dependencies.py bench clients/python:uvloop > requirements.txt \
 && pip wheel --wheel-dir /wheels --require-hashes -c constraints-hashes.txt -r requirements.txt
COPY matchcore matchcore
COPY clients/python clients/python
COPY bench bench
RUN for folder in matchcore clients/python bench; do \
      pip wheel --wheel-dir /wheels --no-deps --no-build-isolation "./$folder" || exit 1; done \
 && /opt/fanlight/bin/pip install --no-index --no-deps /wheels/*.whl \
 && /opt/fanlight/bin/pip uninstall --yes pip \
 && /opt/fanlight/bin/python -m compileall -q /opt/fanlight/lib


FROM tools AS build-spark
RUN python scripts/dependencies.py pipeline:spark > requirements.txt \
 && /opt/fanlight/bin/pip install --require-hashes -c constraints-hashes.txt -r requirements.txt
COPY matchcore matchcore
COPY permissions permissions
COPY archive archive
COPY clients/python clients/python
COPY pipeline pipeline
RUN for folder in $(python scripts/dependencies.py --folders pipeline:spark); do \
      pip wheel --wheel-dir /wheels --no-deps --no-build-isolation "./$folder" || exit 1; done \
 && /opt/fanlight/bin/pip install --no-index --no-deps /wheels/*.whl \
 && /opt/fanlight/bin/pip uninstall --yes pip \
 && /opt/fanlight/bin/python -m compileall -q /opt/fanlight/lib


FROM ${PYTHON_IMAGE} AS base
# A fixed number, so that the owner of a mounted folder can be set from outside.
RUN groupadd --gid 10001 fanlight \
 && useradd --uid 10001 --gid fanlight --home-dir /var/lib/fanlight --no-create-home --shell /usr/sbin/nologin fanlight \
 && install --directory --owner=fanlight --group=fanlight --mode=0750 /var/lib/fanlight /data
ENV PATH=/opt/fanlight/bin:$PATH \
    PYTHONUNBUFFERED=1
# By number: Kubernetes' runAsNonRoot cannot tell what a name stands for, and refuses to start it.
USER 10001:10001


# The pipeline. `docker run ... fanlight-spark fanlight_spark.jobs.traffic --help`: the name of a module, and its arguments.
FROM base AS spark
ARG VERSION=0.1.0
LABEL org.opencontainers.image.title="Fanlight pipeline" \
      org.opencontainers.image.description="Spark over the archives of the Fanlight broker" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.licenses="Apache-2.0"
USER root
RUN apt-get update \
 && apt-get install -y --no-install-recommends default-jre-headless \
 && rm -rf /var/lib/apt/lists/* \
 && install --directory --owner=fanlight --group=fanlight --mode=0750 /work
COPY --from=build-spark /opt/fanlight /opt/fanlight
USER 10001:10001
WORKDIR /work
VOLUME /work
# Python as the first process of a container minds SIGINT, and not SIGTERM.
STOPSIGNAL SIGINT
ENTRYPOINT ["python", "-m"]
CMD ["fanlight_spark.jobs"]


# The load generator. `docker run ... fanlight-bench load fan-out --url URL`: what `fanlight bench` takes.
FROM base AS bench
ARG VERSION=0.1.0
LABEL org.opencontainers.image.title="Fanlight bench" \
      org.opencontainers.image.description="A load generator for publish/subscribe brokers" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build-bench /opt/fanlight /opt/fanlight
WORKDIR /var/lib/fanlight
STOPSIGNAL SIGINT
ENTRYPOINT ["fanlight", "bench"]
CMD ["--help"]


# The broker: last, for it is what `docker build .` builds.
FROM base AS broker
ARG VERSION=0.1.0
LABEL org.opencontainers.image.title="Fanlight" \
      org.opencontainers.image.description="A publish/subscribe message broker with an inverted-bitmap topic matcher" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /opt/fanlight /opt/fanlight

# Reachable from outside the container, therefore with credentials: the broker refuses to start without
# FANLIGHT_PASSWORD, FANLIGHT_PASSWORD_FILE or FANLIGHT_ALLOW_ANONYMOUS=true.
ENV FANLIGHT_NATIVE_HOST=0.0.0.0 \
    FANLIGHT_HTTP_HOST=0.0.0.0 \
    FANLIGHT_MQTT_HOST=0.0.0.0 \
    FANLIGHT_AMQP_HOST=0.0.0.0 \
    FANLIGHT_DATA=/data \
    FANLIGHT_LOG_FORMAT=json

WORKDIR /var/lib/fanlight
VOLUME /var/lib/fanlight
# What must survive a restart. A volume of its own, or a folder that user 10001 may write to.
VOLUME /data
EXPOSE 7420 7421 7423 7424 7425 7426 1883 8883 8083 8084 5672 5671
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=10s --retries=3 CMD ["fanlightd", "healthcheck"]
ENTRYPOINT ["fanlightd"]
CMD ["serve"]
