"""What a client does before each request: it asks nothing of a cluster that is not the one of the rows."""

from __future__ import annotations

from collections.abc import Callable

from django.db import InterfaceError, OperationalError

from cluster.client.errors import ClusterRefused, ClusterUnavailable, OtherCluster
from cluster.replacement.server_check import ServerCheck


def require_own_cluster(check: ServerCheck, pool: object, ask: Callable[[], str]) -> None:
    """Raises OtherCluster, or ClusterUnavailable if server or database do not say it."""
    try:
        is_other = check.is_other(pool, ask)
    except ClusterRefused as refused:
        # A new server has neither rights nor namespaces in its first seconds.
        raise ClusterUnavailable(f"The API server does not say which cluster it is of: {refused.text}") from refused
    except (OperationalError, InterfaceError) as error:
        raise ClusterUnavailable("The database does not say which cluster the rows describe.") from error
    if is_other:
        raise OtherCluster
