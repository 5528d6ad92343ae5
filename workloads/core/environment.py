"""Names that an environment variable of a run may have. Pure."""

from __future__ import annotations

import re

from cluster.manifests.run_spec import TOKEN_VARIABLE
from portal.core.errors import Refusal

ENV_NAME_LIMIT = 100

_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

# Variables that assign devices, preload code, or belong to the portal and the cluster. The admission policy of the
# cluster (deploy/base/fence-pods.yaml) refuses the first line too.
_FORBIDDEN_ENV = re.compile(
    r"NVIDIA_.*|AMD_VISIBLE_DEVICES|HABANA_VISIBLE_DEVICES|CUDA_MPS_.*|LD_PRELOAD|LD_AUDIT"
    rf"|{TOKEN_VARIABLE}|JUPYTER_TOKEN_FILE|KUBERNETES_.*"
)


def env_name_refusal(name: str, field: str) -> Refusal | None:
    """Returns why a variable cannot have this name."""
    if not _ENV_NAME.fullmatch(name) or len(name) > ENV_NAME_LIMIT:
        text = f"Use letters, digits and _ for a variable's name, up to {ENV_NAME_LIMIT}; '{name[:40]}' is not valid."
        return Refusal("bad_variable", text, field)
    if _FORBIDDEN_ENV.fullmatch(name):
        text = f"{name} is reserved for the cluster or the portal. Devices are assigned through the class."
        return Refusal("forbidden_variable", text, field)
    return None
