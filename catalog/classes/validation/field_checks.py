"""Every problem of a class's values, each with its field. Pure; the constraints of the table refuse the same values.

Values are given by the names of the model's fields and have the right types. No problem means that the database accepts
them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from catalog.classes.validation import cel, hardware, run_limits
from portal.core.errors import Refusal

_PREFIX = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
_WORD = r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_RESOURCE = re.compile(f"{_PREFIX}/{_WORD}")
_LABEL = re.compile(f"({_PREFIX}/)?{_WORD}")
_LABEL_VALUE = re.compile(f"({_WORD})?")
# As in the fence of deploy/base: other topologies are not for the portal.
_TOPOLOGY = re.compile(r"gpu-portal-[a-z0-9]([a-z0-9-]*[a-z0-9])?")
TOLERATION_KEYS = ("key", "operator", "value", "effect", "tolerationSeconds")
TOLERATION_CHOICES = {
    "operator": ("Exists", "Equal"),
    "effect": ("NoSchedule", "PreferNoSchedule", "NoExecute"),
}


def class_problems(values: Mapping[str, Any]) -> list[Refusal]:
    return [
        *_counted(values),
        *_stored(values),
        *_shared(values),
        *hardware.hardware_problems(values),
        *_amounts(values),
        *run_limits.run_limit_problems(values),
        *run_limits.log_retention_problems(values),
        *run_limits.damping_problems(values),
        *run_limits.autoscaling_problems(values),
        *_labels(values),
        *_tolerations(values),
        *_topology(values),
    ]


def _counted(values: Mapping[str, Any]) -> Iterator[Refusal]:
    interface, resource = values["interface"], values["resource"]
    device_class, selector = values["device_class"], values["device_selector"]
    if interface in ("none", "storage"):
        if resource:
            yield Refusal("no_gpu", f"A class without GPUs has no resource name: remove '{resource}'.", "resource")
    elif "/" not in resource:
        text = f"'{resource}' has no slash: a resource name has a domain and a name, for example nvidia.com/gpu."
        yield Refusal("no_slash", text, "resource")
    elif not _RESOURCE.fullmatch(resource):
        text = (
            f"'{resource}' is not a resource name: enter a lower-case domain, a slash, and up to 63 letters or digits."
        )
        yield Refusal("bad_resource", text, "resource")
    if interface == "dra" and not device_class:
        yield Refusal("no_device_class", "Enter the DeviceClass that claims of this DRA class request.", "device_class")
    if interface != "dra" and device_class:
        text = f"Only a DRA class has a device class; remove '{device_class}', or set the interface to dra."
        yield Refusal("not_dra", text, "device_class")
    if (interface == "dra" or selector) and (problem := cel.selector_problem(selector)):
        yield Refusal("bad_cel", problem, "device_selector")


def _stored(values: Mapping[str, Any]) -> Iterator[Refusal]:
    """Storage is GiB of volumes: it is on no node, and no workload runs on it."""
    if values["interface"] != "storage":
        return
    for name, neutral in (
        ("partition", "none"),
        ("sharing", "none"),
        ("node_labels", {}),
        ("tolerations", []),
        ("borrowing_limit", 0),
        ("starter", False),
        ("run_hours_limit", None),
        ("idle_stop_minutes", None),
        ("idle_action", "tell"),
        ("idle_minutes", run_limits.IDLE_MINUTES),
        ("production_limit", None),
        ("log_retention_days", run_limits.LOG_DAYS),
        ("damping_minutes", run_limits.DAMPING_MINUTES),
        ("max_units", None),
        ("node_minutes", run_limits.NODE_MINUTES),
    ):
        if values[name] != neutral:
            yield Refusal("storage", f"Storage has no {name.replace('_', ' ')}: remove it.", name)


def _shared(values: Mapping[str, Any]) -> Iterator[Refusal]:
    sharing, replicas, units = values["sharing"], values["replicas"], values["units_per_workload"]
    if sharing == "mps" and values["partition"] != "none":
        text = "The device plugin does not support MPS on a MIG slice; choose time-slicing or no sharing."
        yield Refusal("mps_on_mig", text, "sharing")
    if sharing != "none" and units != 1:
        text = (
            f"A second share of the same GPU adds nothing: enter 1 unit per workload for a shared class, not {units}."
        )
        yield Refusal("one_share_each", text, "units_per_workload")
    if sharing == "none" and replicas != 1:
        yield Refusal("replicas", f"Enter 1 replica for a class that is not shared, not {replicas}.", "replicas")
    if sharing != "none" and replicas < 2:
        yield Refusal("replicas", f"Enter 2 or more replicas for a shared class, not {replicas}.", "replicas")


def _amounts(values: Mapping[str, Any]) -> Iterator[Refusal]:
    for name, what in (("price_per_unit_hour", "price"), ("weight", "weight")):
        if values[name] < 0:
            yield Refusal("negative", f"Enter a {what} of 0 or more, not {values[name]}.", name)
    for name, least in (
        ("units_per_workload", "Enter at least 1 unit per workload."),
        ("cpu_per_unit", "Enter at least 1 core per unit."),
        ("memory_gib_per_unit", "Enter at least 1 GiB of memory per unit."),
    ):
        if values[name] < 1:
            yield Refusal("sizes", least, name)
    if values["terms"] and values["terms_version"] < 1:
        yield Refusal(
            "terms", "Enter a version of 1 or more for the terms; a new text needs a higher version.", "terms_version"
        )
    if not values["terms"] and values["terms_version"]:
        yield Refusal("terms", f"Version {values['terms_version']} of the terms has no text.", "terms")


def _labels(values: Mapping[str, Any]) -> Iterator[Refusal]:
    labels = values["node_labels"]
    if not isinstance(labels, dict):
        yield Refusal("bad_labels", "Enter node labels as pairs of a name and a value.", "node_labels")
        return
    for name, value in labels.items():
        if not _LABEL.fullmatch(name):
            yield Refusal("bad_labels", f"'{name}' is not a valid name of a node label.", "node_labels")
        if not isinstance(value, str) or not _LABEL_VALUE.fullmatch(value):
            yield Refusal("bad_labels", f"'{value}' is not a valid value of the node label {name}.", "node_labels")


def _topology(values: Mapping[str, Any]) -> Iterator[Refusal]:
    name = values["topology"]
    if not name:
        return
    if not _TOPOLOGY.fullmatch(name):
        text = f"'{name}' is not a topology of the portal: its name starts with gpu-portal- and has a-z, 0-9 and -."
        yield Refusal("bad_topology", text, "topology")
    elif values["interface"] != "device-plugin" or values["max_units"] is not None:
        text = "Only a class with a device plugin and without added nodes has a topology; leave it empty."
        yield Refusal("bad_topology", text, "topology")


def _tolerations(values: Mapping[str, Any]) -> Iterator[Refusal]:
    tolerations = values["tolerations"]
    if not isinstance(tolerations, list) or not all(isinstance(one, dict) for one in tolerations):
        yield Refusal(
            "bad_tolerations", "Enter tolerations as a list of key, operator, value and effect.", "tolerations"
        )
        return
    for one in tolerations:
        for name in one:
            if name not in TOLERATION_KEYS:
                text = f"A toleration has no field '{name}'; its fields are {', '.join(TOLERATION_KEYS)}."
                yield Refusal("bad_tolerations", text, "tolerations")
        for name, choices in TOLERATION_CHOICES.items():
            if one.get(name, choices[0]) not in choices:
                text = f"Enter one of {', '.join(choices)} as the {name} of a toleration, not '{one[name]}'."
                yield Refusal("bad_tolerations", text, "tolerations")
        if one.get("operator") == "Exists" and one.get("value"):
            text = f"A toleration with operator Exists has no value; remove '{one['value']}'."
            yield Refusal("bad_tolerations", text, "tolerations")
