"""How pytest-xdist gives test files to workers, at a cost that does not grow with what is done already.

Its own scheduler counts all tests that a worker was ever given, after each test, and searches the list of all tests for each
that it gives: with 13,000 tests that takes seconds of the process that everything is reported to.
"""

from functools import cached_property

from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController


class FileScheduling(LoadFileScheduling):  # type: ignore[misc]  # has no types
    """The same files in the same order; forgets what is done."""

    @cached_property
    def _places(self) -> dict[str, int]:
        """Where each test is in what was collected, by all workers alike."""
        return {name: place for place, name in enumerate(self.collection or ())}

    def mark_test_complete(
        self, node: WorkerController, item_index: int, duration: float = 0
    ) -> None:
        """Forget a test, and a file with its last one."""
        name = self.registered_collections[node][item_index]
        scope, files = self._split_scope(name), self.assigned_work[node]
        del files[scope][name]
        if not files[scope]:
            del files[scope]
        self._reschedule(node)

    def _pending_of(self, workload: dict[str, dict[str, bool]]) -> int:
        return sum(map(len, workload.values()))

    def _assign_work_unit(self, node: WorkerController) -> None:
        scope, unit = self.workqueue.popitem(last=False)
        self.assigned_work.setdefault(node, {})[scope] = unit
        node.send_runtest_some([self._places[name] for name in unit])
