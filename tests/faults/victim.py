"""A zygote that forks workers which tests kill. It imports Django once.

Each line on its standard input is a table and a kubeconfig: a child claims the due row, reconciles it once with that
kubeconfig and ends. The zygote answers with the child's process id, and then with its exit status.
"""

from __future__ import annotations

import os
import sys
from functools import partial


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
    import django

    django.setup()
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            look(*line.split())
            os._exit(0)
        tell(child)
        _pid, status = os.waitpid(child, 0)
        tell(os.waitstatus_to_exitcode(status))


def tell(number: int) -> None:
    sys.stdout.write(f"{number}\n")
    sys.stdout.flush()


def look(table: str, kubeconfig: str) -> None:
    from django.apps import apps

    from cluster.client.kube import Kube
    from portal.core import due
    from tenants.provisioning import reconcile, steps

    claimed = due.claim(apps.get_model(table))
    assert claimed is not None
    work = reconcile.reconcile_pool if table == "catalog.pool" else steps.work_on_namespace
    due.run_claimed(claimed, partial(work, kube=Kube(kubeconfig)))


if __name__ == "__main__":
    main()
