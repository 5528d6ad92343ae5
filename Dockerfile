# One image for web, doors, worker, beat, watcher and the migration; the command selects the process.
# Other bases need Python 3.11 with venv: --build-arg BASE=registry.example.org/python@sha256:…
ARG BASE=python:3.11.15-slim-trixie


FROM ${BASE} AS packages
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
COPY requirements/run.txt /tmp/run.txt
# Removed is what the portal does not load, more than half of all: of the Kubernetes client everything but signing in and HTTP,
# functions of CEL that API servers do not have, translations other than English, and the tests of packages.
RUN python3 -m venv /opt/pip \
    && python3 -m venv --without-pip /opt/venv \
    && /opt/pip/bin/pip --python /opt/venv/bin/python3 install --no-compile --require-hashes --only-binary :all: -r /tmp/run.txt \
    && cd /opt/venv/lib/python3.11/site-packages \
    && rm -r kubernetes/aio kubernetes/client/api kubernetes/client/apis kubernetes/client/models/[!_]*.py cel_expr_python/ext \
    && find . -path '*/locale/*' -type f ! -path '*/locale/en*' ! -name '__init__.py' -delete \
    && find . -name '*_test.py' -delete \
    && /opt/venv/bin/python3 -m compileall -q /opt/venv


FROM ${BASE}
ENV PATH=/opt/venv/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    DJANGO_SETTINGS_MODULE=portal.settings \
    BEAT_SCHEDULE_FILE=/tmp/beat
RUN useradd --uid 10001 --user-group --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin portal
COPY --from=packages /opt/venv /opt/venv
WORKDIR /srv/portal
COPY manage.py gunicorn.conf.py ./
COPY portal portal
COPY accounts accounts
COPY cluster cluster
COPY catalog catalog
COPY tenants tenants
COPY workloads workloads
COPY usage usage
COPY operations operations
COPY desk desk
COPY templates templates
COPY static static
# The settings use hashed file names if .static exists. They require these three variables, which are not used here.
RUN mkdir .static \
    && SECRET_KEY=build DATABASE_URL=postgres://build/build REDIS_URL=redis://build python manage.py collectstatic --noinput --ignore rest_framework \
    && python -m compileall -q .
# By number, so that Kubernetes can verify runAsNonRoot.
USER 10001:10001
EXPOSE 8000 8001 9090
CMD ["gunicorn", "portal.wsgi:application", "--workers", "2", "--threads", "630", "--worker-tmp-dir", "/tmp", "--no-control-socket"]
