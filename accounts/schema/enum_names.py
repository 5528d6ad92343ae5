"""Names of sets of choices in the contract, where two fields of one name have different choices."""

from __future__ import annotations

ENUM_NAMES: dict[str, str | list[str]] = {
    "AdoptionState": "operations.models.Adoption.State",
    "ClassVisibilityEnum": ["everyone", "named"],
    "NotebookVisibility": "workloads.models.Workload.Visibility",
    "LineKind": ["base", "boost", "reclaim"],
    "NoticeKind": "accounts.models.NoticeKind",
    "NoticeChannel": "accounts.models.NoticeChannel",
    "SearchKind": ["team", "class", "workload", "person", "page", "help"],
    "WorkloadKind": ["notebook", "job"],
    "StateEnum": ["pending", "approved", "denied", "withdrawn"],
    "StepState": ["done", "busy", "stuck", "next"],
    "MeasurementKind": "catalog.models.NodeMeasurement.Kind",
    "AtDrainChoice": ["restart", "stop"],
    "AtDrainOutcome": ["restart", "stop", "ends_before", "stays"],
    "MaintenanceKind": "operations.models.Maintenance.Kind",
    "MaintenanceOutcome": "operations.models.Maintenance.Outcome",
    "MaintenanceStage": "operations.models.MaintenanceNotice.Stage",
    "MaintenanceStep": "operations.maintenance.steps.Step",
}
