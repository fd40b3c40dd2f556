"""The plans of one handle: least recently used ones go first."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from hipdnn_registry import ExecutionPlan

    from .plan_key import PlanKey, Problem


class FoundPlan(NamedTuple):
    """A plan, and what it was found under.

    Attributes:
        plan: The plan.
        exhaustive: Find's exhaustiveSearch, where that makes a difference.
        workspace_limit: Bytes that its solver was allowed; `None`: as many as it likes.
    """

    plan: ExecutionPlan
    exhaustive: bool
    workspace_limit: int | None

    def serves(self, *, exhaustive: bool, workspace_limit: int | None) -> bool:
        """Whether another Find with these arguments has nothing better to find."""
        if exhaustive and not self.exhaustive:
            return False
        if self.workspace_limit is None:
            return workspace_limit is None or self.plan.workspace_size <= workspace_limit
        return workspace_limit == self.workspace_limit


class PlanStore:
    """Keeps plans by key. Not safe for threads by itself: the handle's lock guards it.

    Args:
        size: Plans kept, at least one.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self._plans: OrderedDict[PlanKey, FoundPlan] = OrderedDict()

    def __len__(self) -> int:
        return len(self._plans)

    def get(self, key: PlanKey) -> FoundPlan | None:
        """Return a plan, which is then the last to go."""
        found = self._plans.get(key)
        if found is not None:
            self._plans.move_to_end(key)
        return found

    def put(self, key: PlanKey, found: FoundPlan) -> None:
        """Keep a plan; the least recently used one goes if there are too many."""
        self._plans[key] = found
        self._plans.move_to_end(key)
        while len(self._plans) > self.size:
            self._plans.popitem(last=False)

    def forget(self, tuned: Problem) -> None:
        """Drop every plan of what MIOpen tunes as one problem."""
        for key in [key for key in self._plans if key.problem.tuned == tuned]:
            del self._plans[key]

    def clear(self) -> None:
        """Drop all."""
        self._plans.clear()
