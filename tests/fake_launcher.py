"""A launcher of the tests: threads in place of processes, and nothing but the interface."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor

from postmax.sweep.attempt import Task, attempt
from postmax.sweep.events import Outcome


class Threads:
    def __init__(self, slots, execute):
        self.slots = slots
        self.ended_by = []
        self.most = 0
        self._futures = []
        self._execute = execute

    def submit(self, task: Task) -> Future[Outcome]:
        future = self._executor.submit(attempt, task, self._execute)
        self._futures.append(future)
        self.most = max(self.most, sum(not one.done() for one in self._futures))
        return future

    def __enter__(self):
        self._executor = ThreadPoolExecutor(self.slots)
        return self

    def __exit__(self, kind, error, trace):
        self.ended_by.append(kind)
        self._executor.shutdown(cancel_futures=True)
