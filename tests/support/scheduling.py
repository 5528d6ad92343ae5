"""How `run.py test` orders tests and spreads them over processes: those of a file stay together, except where each
takes long.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest
from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController

# Files whose tests share nothing and are long: each of them may run in any process.
TEST_BY_TEST = frozenset({"tests/matrix/test_api.py", "tests/matrix/test_pages.py"})
MATRIX = Path(__file__).parents[1] / "matrix"
# Files that take a minute or more, in each group the longest first. The first one may build Helm, for others as well.
LONG = (
    "helm/test_health",
    "recovery/test_vanished",
    "checks/test_checks_live",
    "installation/test_new_keys",
    "faults/test_drift",
    "recovery/test_sentinel",
    "kubelets/test_said_live",
    "recovery/test_pgbouncer",
    "streaming/test_faults_at_the_viewer",
    "recovery/test_recovery",
    "examples/test_generated_client",
    "ops/test_liveness",
    "examples/test_ci_live",
    "control_plane/test_churn",
    "situations/test_queue_live",
    "decisions/test_doors_agree",
    "tests/test_fuzzed",
    "desk/test_figures",
    "matrix/test_pages",
    "matrix/test_forms",
    "matrix/test_api",
    "journeys/test_thin_path",
    "journeys/test_notebook_origin",
    "injection/test_injection",
    "journeys/test_contention",
    "desk/test_pages",
    "journeys/test_walk",
)


def in_turn(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """Orders the files: those that mostly wait for the cluster or a browser are spread evenly among those that compute,
    so that at any time some processes wait and some compute.

    Browser tests come last: Playwright keeps an event loop in its thread until the end, and asyncio allows no second
    one. The matrix, which needs none, is computed among them.
    """
    live, browsers = (
        {item.path for item in items if fixture in getattr(item, "fixturenames", ())}
        for fixture in ("services", "browser_type_launch_args")
    )
    files = list(dict.fromkeys(item.path for item in items))
    late = {path for path in files if path in browsers or path.is_relative_to(MATRIX)}
    groups = (
        [path for path in files if path in live - late],
        [path for path in files if path not in live | late],
        [path for path in files if path in browsers],
        [path for path in files if path in late - browsers],
    )
    turns = {path: (path in late, place) for group in groups for path, place in _places(group)}
    return sorted(items, key=lambda item: turns[item.path])


def _places(files: Sequence[Path]) -> Iterable[tuple[Path, float]]:
    """Even places between 0 and 1. Kueue is not woken when a pod that it does not manage frees a device: test_hardware
    takes the only slice with media engines without a queue, so it runs after the tests that queue for it.
    """

    def turn(path: Path) -> int:
        name = f"{path.parent.name}/{path.stem}"
        return LONG.index(name) if name in LONG else len(LONG) + (path.stem == "test_hardware")

    return [(path, (number + 0.5) / len(files)) for number, path in enumerate(sorted(files, key=turn))]


class Scheduling(LoadFileScheduling):
    def _split_scope(self, nodeid: str) -> str:
        file = super()._split_scope(nodeid)
        return nodeid if file in TEST_BY_TEST else file

    def _reschedule(self, node: WorkerController) -> None:
        """Gives a process its next file when only the running test is left. xdist does so one test earlier, so that
        three files of one long test each would wait for one another in one process while others have nothing to do.
        """
        if self.workqueue and self._pending_of(self.assigned_work[node]) > 1:
            return
        super()._reschedule(node)
