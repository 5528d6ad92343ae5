"""Applies CustomResourceDefinitions, and checks whether the API server serves their kinds."""

from __future__ import annotations

import time
from collections.abc import Iterable

from devcluster.client.kube import Api, ApiError
from devcluster.client.types import Json

RESOURCE = "apiextensions.k8s.io/v1/customresourcedefinitions"


def put(api: Api, definition: Json) -> None:
    """Applies one definition. If an API server is stopped within seconds after it created a definition, it never
    establishes that definition, not even after a restart. No objects of its kind can exist yet, so it is deleted and
    created again.
    """
    name = definition["metadata"]["name"]
    found = api.find(RESOURCE, name)
    if found is not None and not _established(found):
        api.delete(RESOURCE, name)
        deadline = time.monotonic() + 30
        while api.find(RESOURCE, name) is not None and time.monotonic() < deadline:
            time.sleep(0.05)
    api.apply(definition)


def served(api: Api, version: str, kinds: Iterable[str]) -> bool:
    """Returns whether discovery lists all of these kinds. Programs that read discovery only once, at their start, fail
    if a kind is missing.
    """
    try:
        resources = api.request("GET", f"/apis/{version}")["resources"]
    except ApiError as error:
        if error.status in (404, 503):
            return False
        raise
    return set(kinds) <= {resource["kind"] for resource in resources}


def _established(definition: Json) -> bool:
    conditions = definition.get("status", {}).get("conditions", ())
    return any(condition["type"] == "Established" and condition["status"] == "True" for condition in conditions)
