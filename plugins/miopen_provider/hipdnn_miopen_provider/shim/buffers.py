"""Checks of a call's buffers before there is a plan to make them: a search can take hours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hipdnn_registry.buffers.variant_pack import VariantPackChecker

from .graphs import IN_PLACE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hipdnn_registry import BufferKind, Graph


def require_usable(
    graph: Graph, kind: BufferKind, buffers: Mapping[str, Any], workspace: Any | None
) -> None:
    """Raise what every plan of a graph would raise for these buffers.

    Args:
        graph: The graph.
        kind: Where the engine takes buffers.
        buffers: By the tensors' names.
        workspace: That of the call, or `None` where it has no bytes. Whether it has enough of them
            is only known of a plan.

    Raises:
        VariantPackError: A buffer is missing, too small, misaligned, or overlaps another.
        WorkspaceError: The workspace is misaligned, or is none.
    """
    uids = {tensor.name: tensor.uid for tensor in graph.io_tensors if tensor.uid is not None}
    in_place = [(uids[written], uids[read]) for written, read in IN_PLACE if written in uids]
    checker = VariantPackChecker(graph, kind, None, in_place)
    checked = checker.check(buffers)
    if workspace is not None:
        checker.check_workspace(workspace, 0, checked)
