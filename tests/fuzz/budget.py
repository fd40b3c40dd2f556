"""What a fuzzed input may end in, and what that may cost."""

from __future__ import annotations

import gc
import os
import resource
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hipdnn_registry import EngineRegistry, Graph, InvalidInputError
from hipdnn_registry.engines.answers import Answers
from tests.graphs import relu_graph

EXAMPLES = int(os.environ.get("HIPDNN_FUZZ_EXAMPLES", "600"))
"""Fuzzed inputs in all, of every kind together."""

SECONDS = 1.0
"""Processor time that one input may take."""

BYTES = 1 << 30
"""Address space that the process may grow by, over all inputs."""

LONGEST_MESSAGE = 2_000


class Fuzzing:
    """Tries inputs one after the other and keeps count of how they ended.

    Args:
        registry: Who explains the graphs.
        examples: How many inputs are planned, for the progress line.
        say: Where that goes.
        keep: Where an input that fails is written to.
    """

    def __init__(
        self, registry: EngineRegistry, examples: int, say: Callable[[str], None], keep: Path
    ) -> None:
        self._registry = registry
        self._examples = examples
        self._say = say
        self._keep = keep
        self.outcomes: Counter[str] = Counter()
        self.slowest = 0.0

    def attempt(self, text: str, read: Callable[[str], list[Graph]]) -> None:
        """Read graphs and explain them: the end is an answer or one clear error, in time."""
        try:
            outcome, graphs, seconds = self._timed(text, read)
            if seconds > SECONDS:  # the machine may have been busy with something else
                outcome, graphs, seconds = self._timed(text, read)
            assert seconds <= SECONDS, f"took {seconds:.2f} s"
            for graph in graphs:  # what was accepted survives being written and read again
                again = Graph.from_json(graph.to_json())
                assert again.content_key.digest == graph.content_key.digest
        except BaseException as error:
            self._keep.write_bytes(text.encode(errors="surrogatepass"))
            error.add_note(f"the input is in {self._keep}")
            raise
        self.outcomes[outcome] += 1
        self.slowest = max(self.slowest, seconds)
        tried = self.outcomes.total()
        if self._examples >= 10_000 and tried % (self._examples // 20) == 0:
            self._say(f"{tried} of {self._examples}: {self.summary()}")

    def _timed(
        self, text: str, read: Callable[[str], list[Graph]]
    ) -> tuple[str, list[Graph], float]:
        """Return the outcome, the graphs and the seconds, the fuzzer's own garbage apart."""
        self._registry._answers = Answers()  # each question is to be a new one
        gc.disable()
        try:
            start = time.process_time()
            outcome, graphs = self._end(text, read)
            return outcome, graphs, time.process_time() - start
        finally:
            gc.enable()

    def _end(self, text: str, read: Callable[[str], list[Graph]]) -> tuple[str, list[Graph]]:
        try:
            graphs = read(text)
            answers = [a for graph in graphs for a in self._registry.explain(graph).answers]
        except InvalidInputError as error:
            message = str(error)
            assert "\n" not in message
            assert 10 < len(message) <= LONGEST_MESSAGE
            return "refused", []
        assert graphs
        for answer in answers:
            assert answer.exception is None, answer.reason
            assert answer.info or answer.reason
        return ("served" if any(answer.info for answer in answers) else "declined"), graphs

    def summary(self) -> str:
        """Say what came out so far."""
        counts = ", ".join(f"{count} {name}" for name, count in sorted(self.outcomes.items()))
        return f"{counts}; slowest {self.slowest * 1e3:.0f} ms"


@contextmanager
def fuzzing(examples: int, config: pytest.Config, keep: Path) -> Iterator[Fuzzing]:
    """Fuzz within the limit on memory, and see that the inputs were worth it."""
    capture = config.pluginmanager.getplugin("capturemanager")

    def say(line: str) -> None:
        with capture.global_and_fixture_disabled():
            print(f"\n  fuzz: {line}", end="", flush=True)

    registry = EngineRegistry()
    registry.explain(Graph.from_json(relu_graph().to_json()))  # loads what is loaded but once
    run = Fuzzing(registry, examples, say, keep)
    with address_space(BYTES):
        yield run
    if examples >= 10_000:
        say(run.summary())
    for outcome in ("refused", "served"):
        share = run.outcomes[outcome] / run.outcomes.total()
        assert share > 0.1, f"only {share:.0%} of the inputs are {outcome}: {run.summary()}"


@contextmanager
def address_space(growth: int) -> Iterator[None]:
    """Let the process grow by so many bytes; what goes beyond raises `MemoryError`."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    limit = pages * resource.getpagesize() + growth
    resource.setrlimit(resource.RLIMIT_AS, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
