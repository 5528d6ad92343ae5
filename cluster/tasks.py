"""At its start a worker checks the admission fence (cluster/client/fence.py); without the fence it runs no task. Every
minute one reads how long certificates are valid.
"""

import time

import structlog
from celery import shared_task
from celery.exceptions import WorkerShutdown
from celery.signals import worker_init, worker_process_init
from django.conf import settings
from django.db import OperationalError

from cluster.certificates.actions import read_certificates, record_certificates
from cluster.client import fence
from cluster.client.errors import ClusterUnavailable, OtherCluster
from cluster.client.kube import Kube, connect
from cluster.observe_only.queries import is_observe_only
from cluster.replacement.server_check import ServerCheck

log = structlog.get_logger(__name__)
# One small request: no need to back off further, and the worker starts soon after the API server is back.
FENCE_RETRY_S = 2.0


@worker_init.connect
def refuse_without_fence(**_sender: object) -> None:
    """Runs in the parent, before a task is taken. Waits while the API server is unavailable: the result is unknown.
    While the cluster is observed only, or is not the one of the rows, nothing is tried, and each child checks the fence
    before its first write; also before its first write into a cluster that replaces this one.
    """
    while True:
        try:
            if is_observe_only():
                fence.postpone_fence()
                log.info("fence_postponed", why="observe only")
                return
            # A separate client: the children must not inherit its connections.
            check = ServerCheck()
            fence.check_fence(Kube(settings.PORTAL_KUBECONFIG, server_check=check))
        except OtherCluster as other:
            fence.postpone_fence()
            log.warning("fence_postponed", why=str(other))
            return
        except (ClusterUnavailable, OperationalError) as away:
            log.warning("fence_unknown", why=str(away), again_in_s=FENCE_RETRY_S)
            time.sleep(FENCE_RETRY_S)
        except fence.FenceMissing as missing:
            log.critical("worker_refuses_to_start", why=str(missing))
            raise WorkerShutdown(str(missing)) from missing
        else:
            fence.record_fence(check.reached)
            return


@worker_process_init.connect
def connect_early(**_sender: object) -> None:
    """Runs in each child: reading the kubeconfig takes half a second, which would delay the first launch."""
    connect()


@shared_task(name="cluster.validity", ignore_result=True)
def look_at_certificates() -> None:
    record_certificates(read_certificates(connect()))
