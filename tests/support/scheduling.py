"""How `run.py test` spreads tests over processes: those of a file stay together, except where each takes long."""

from __future__ import annotations

from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController

# Files whose tests share nothing and are long: each of them may run in any process.
TEST_BY_TEST = frozenset({"tests/matrix/test_api.py", "tests/matrix/test_pages.py"})


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
