"""The keys that `hipdnn perf-db show` looks under are those that MIOpen writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hipdnn_miopen_provider.database_files import FileKind, read_folder
from hipdnn_miopen_provider.perf_db import user_db_folder
from hipdnn_miopen_provider.record_keys import keys_of
from hipdnn_registry import graph_from_driver_command
from tests.native.engines import ENGINE, POLICY, new_registry

if TYPE_CHECKING:
    from hipdnn_registry import Graph

CONV = "-n 2 -c 8 -H 17 -W 22 -k 4 -y 3 -x 3 -p 1 -q 1"
LINES = {
    f"conv {CONV} -F 1": {FileKind.PERF, FileKind.FIND},
    f"conv {CONV} -F 2 -u 2 -v 2": {FileKind.PERF, FileKind.FIND},
    f"conv {CONV} -F 4": {FileKind.PERF, FileKind.FIND},
    f"conv {CONV} -F 1 -g 2": {FileKind.PERF, FileKind.FIND},
    f"conv {CONV} -F 1 -m trans": {FileKind.PERF, FileKind.FIND},
    f"conv {CONV} -F 2 -m trans": {FileKind.PERF, FileKind.FIND},
    f"convfp16 {CONV} -F 1": {FileKind.FIND},
    f"convfp16 {CONV} -F 1 -I NHWC -f NHWC -O NHWC": {FileKind.FIND},
    "convfp16 -n 2 -c 8 -H 17 -W 22 -k 4 -y 1 -x 1 -F 1 -I NHWC -f NHWC -O NHWC": {FileKind.FIND},
    "conv -_ 3 -n 2 -c 8 -! 5 -H 9 -W 8 -k 4 -@ 3 -y 3 -x 3 -F 1": {FileKind.FIND},
    "CBAInfer -F 4 -n 3 -c 8 -H 17 -W 22 -k 16 -y 3 -x 3 -p 1 -q 1": {
        FileKind.PERF,
        FileKind.FUSION_FIND,
    },
    "bnorm -n 4 -c 8 -H 15 -W 20 -m 1 --forw 1 -b 0 -s 1 -r 1": {FileKind.BATCHNORM_PERF},
    "bnorm -n 4 -c 8 -H 15 -W 20 -m 1 --forw 1 -b 0 -s 0 -r 0": {FileKind.BATCHNORM_PERF},
    "bnorm -n 4 -c 8 -D 5 -H 6 -W 8 -m 1 --forw 0 -b 1 -s 1 -r 1": {FileKind.BATCHNORM_PERF},
    "bnormfp16 -n 4 -c 8 -H 15 -W 20 -m 1 --forw 0 -b 1 --layout NHWC": {FileKind.BATCHNORM_PERF},
}


def found(graph: Graph) -> set[FileKind]:
    """Kinds of the files that have a record under one of the graph's keys."""
    kinds = set()
    for file in read_folder(user_db_folder()):
        assert file.damage == ()
        for node in keys_of(graph.validate()):
            if file.name.kind and node.keys.get(file.name.kind) in file.records:
                kinds.add(file.name.kind)
    return kinds


@pytest.mark.parametrize(("line", "kinds"), LINES.items())
def test_a_search_leaves_records_where_show_looks(line: str, kinds: set[FileKind]) -> None:
    (graph,) = graph_from_driver_command(f"MIOpenDriver {line}")
    new_registry().create_execution_plan_ext(graph, ENGINE, {POLICY: 4})
    assert found(graph) >= kinds
