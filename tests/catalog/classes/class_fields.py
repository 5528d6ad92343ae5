"""Fields of a class, as forms and files give them."""

from __future__ import annotations

import json
from typing import Any

from catalog.classes import actions as class_actions
from catalog.models import GpuClass


def fields(gpu_class: GpuClass, **changes: Any) -> dict[str, Any]:
    values = {name: getattr(gpu_class, name) for name in class_actions.EDITABLE_FIELDS}
    shown = {name: json.dumps(value) if isinstance(value, dict | list) else value for name, value in values.items()}
    return {name: "" if value is None else value for name, value in {**shown, **changes}.items()}
