"""Whatever is handed over, the end is an answer or one clear error, soon and in little memory.

`HIPDNN_FUZZ_EXAMPLES` says how many inputs are tried in all; the default suits a test run. Few
inputs are the same ones each time, many are new ones each time.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from hipdnn_registry import Graph, graph_from_driver_command
from tests.fuzz.budget import EXAMPLES, fuzzing
from tests.fuzz.driver_lines import driver_lines
from tests.fuzz.json_graphs import json_graphs


def read_json(text: str) -> list[Graph]:
    return [Graph.from_json(text)]


@pytest.mark.parametrize(
    ("texts", "read"),
    [(driver_lines(), graph_from_driver_command), (json_graphs(), read_json)],
    ids=["driver_lines", "json_graphs"],
)
def test_fuzz(
    texts: st.SearchStrategy[str],
    read: Callable[[str], list[Graph]],
    pytestconfig: pytest.Config,
) -> None:
    examples = EXAMPLES // 2
    with fuzzing(examples, pytestconfig) as run:

        @settings(
            max_examples=examples,
            derandomize=examples < 10_000,
            database=None,
            deadline=None,  # `attempt` keeps the time, in seconds of the processor
            suppress_health_check=list(HealthCheck),
            phases=[Phase.generate],  # to shrink what takes too long takes longer still
        )
        @given(texts)
        def attempt(text: str) -> None:
            run.attempt(lambda: read(text))

        attempt()
