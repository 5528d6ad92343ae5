"""At its start a worker checks the admission fence (cluster/client/fence.py); without it, it does no work."""

import stamina
import structlog
from celery.exceptions import WorkerShutdown
from celery.signals import worker_init, worker_process_init
from django.conf import settings

from cluster.client import fence
from cluster.client.errors import ClusterUnavailable
from cluster.client.kube import Kube, connect

log = structlog.get_logger(__name__)


@worker_init.connect
def refuse_without_fence(**_sender: object) -> None:
    """In the parent, before a task is taken. While the API server is away nothing is known: wait for it."""
    for attempt in stamina.retry_context(on=ClusterUnavailable, attempts=None, timeout=None, wait_max=5.0):
        with attempt:
            try:
                # A client of its own: the children must not inherit its connections.
                fence.check_fence(Kube(settings.PORTAL_KUBECONFIG))
            except fence.FenceMissing as missing:
                log.critical("worker_refuses_to_start", why=str(missing))
                raise WorkerShutdown(str(missing)) from missing


@worker_process_init.connect
def connect_early(**_sender: object) -> None:
    """In each child: reading the kubeconfig costs half a second that nobody should wait for at the first launch."""
    connect()
