"""The content key: blind to names, uids and order, and to nothing else."""

from __future__ import annotations

import copy
import random
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hipdnn_registry import Graph
from tests.graphs import batchnorm_graph, conv_graph, fused_graph, new_graph

Form = dict[str, Any]


def shuffled(form: Form, seed: int) -> Form:
    """The same graph under other names, other uids, in another order."""
    chance = random.Random(seed)
    form = copy.deepcopy(form)
    uids = [tensor["uid"] for tensor in form["tensors"]]
    new = dict(zip(uids, chance.sample(range(1000), len(uids)), strict=True))
    for tensor in form["tensors"]:
        tensor.update(uid=new[tensor["uid"]], name=f"t{chance.random()}")
    for node in form["nodes"]:
        node["name"] = f"n{chance.random()}"
        for ports in (node["inputs"], node["outputs"]):
            for port, uid in ports.items():
                if port.endswith("_uid") and isinstance(uid, int):
                    ports[port] = new[uid]
    chance.shuffle(form["tensors"])
    chance.shuffle(form["nodes"])
    return form | {"name": "other", "id": "1234"}


def symmetric_graph(branches: int = 6) -> Graph:
    """Branches that nothing but their buffers tells apart, two by two joined by an add."""
    graph = new_graph()
    x = graph.tensor(dims=[4, 4])
    ends = [graph.pointwise("abs", graph.pointwise("neg", x)) for _ in range(branches)]
    for first, second in zip(ends[::2], ends[1::2], strict=True):
        graph.pointwise("add", first, second).set_output()
    return graph


@pytest.mark.parametrize("build", [conv_graph, fused_graph, batchnorm_graph, symmetric_graph])
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_names_uids_and_order_do_not_count(build: Callable[[], Graph], seed: int) -> None:
    graph = build()
    other = Graph.from_json(shuffled(graph.to_dict(), seed))
    assert other.content_key.digest == graph.content_key.digest
    for mine, theirs in zip(graph.content_key.uids, other.content_key.uids, strict=True):
        a, b = graph.tensors[mine], other.tensors[theirs]
        assert (a.dims, a.strides, a.virtual, a.value) == (b.dims, b.strides, b.virtual, b.value)


@st.composite
def pointwise_graphs(draw: st.DrawFn) -> Graph:
    """Random graphs of look-alike nodes: the hard case for telling nodes apart."""
    graph = new_graph()
    tensors = [graph.tensor(dims=[2, 2]) for _ in range(draw(st.integers(1, 2)))]
    for _ in range(draw(st.integers(1, 7))):
        operands = [draw(st.sampled_from(tensors)) for _ in range(draw(st.integers(1, 2)))]
        operation = "add" if len(operands) == 2 else "neg"
        tensors.append(graph.pointwise(operation, *operands).set_output())
    graph._tensors = [t for t in graph._tensors if any(t is u for u in _used(graph))]
    return graph


def _used(graph: Graph) -> list[Any]:
    return [t for node in graph._pending for t in (*node.inputs.values(), *node.outputs.values())]


@settings(max_examples=150, deadline=None)
@given(graph=pointwise_graphs(), seed=st.integers(0, 2**32))
def test_random_graphs_of_look_alikes(graph: Graph, seed: int) -> None:
    try:
        graph.validate()
    except Exception as error:
        assert "shares no tensor" in str(error)  # noqa: PT017 - the one thing chance may break
        return
    other = Graph.from_json(shuffled(graph.to_dict(), seed))
    assert other.content_key.digest == graph.content_key.digest
    # The correspondence of tensors is one of the graphs, node by node.
    match = dict(zip(graph.content_key.uids, other.content_key.uids, strict=True))

    def edges(g: Graph, rename: dict[int, int]) -> list[Any]:
        return sorted(
            (
                w.node.type,
                [(p, rename[u]) for p, u in w.input_uids],
                [(p, rename[u]) for p, u in w.output_uids],
            )
            for w in g.structure.wirings
        )

    assert edges(graph, match) == edges(other, {uid: uid for uid in match.values()})


@pytest.mark.parametrize("branches", [24, 200])
def test_many_symmetric_branches_take_no_time(branches: int) -> None:
    graph = symmetric_graph(branches)  # branches! orders if symmetry went unnoticed
    digest = graph.content_key.digest
    assert Graph.from_json(shuffled(graph.to_dict(), 7)).content_key.digest == digest


def test_branches_of_many_lengths() -> None:
    """Look-alikes at first sight, told apart only by what is far downstream."""
    graph = new_graph()
    x = graph.tensor(dims=[2])
    for length in range(1, 25):
        y = x
        for _ in range(length):
            y = graph.pointwise("neg", y)
        y.set_output()
    digest = graph.content_key.digest
    assert Graph.from_json(shuffled(graph.to_dict(), 3)).content_key.digest == digest


def _tensor(form: Form, name: str) -> Form:
    return next(t for t in form["tensors"] if t["name"] == name)


@pytest.mark.parametrize(
    "change",
    [
        lambda f: f["nodes"][0]["parameters"].update(conv_mode="CONVOLUTION"),
        lambda f: [
            f["nodes"][0]["parameters"].update(pre_padding=[0, 1], post_padding=[2, 1]),
        ],
        lambda f: f["nodes"][0].update(compute_data_type="double"),
        lambda f: f["nodes"][0].update(fast_math=True),
        lambda f: f["nodes"][0]["parameters"].update(algorithm=3),
        lambda f: f["nodes"][3]["inputs"].update(relu_upper_clip=6.0),
        lambda f: f["nodes"][3]["inputs"].update(operation="tanh_fwd"),
        lambda f: f["nodes"][2]["inputs"].update(operation="sub"),
        lambda f: _tensor(f, "x").update(strides=[256, 1, 32, 4]),
        lambda f: _tensor(f, "bias").update(data_type="half"),
        lambda f: _tensor(f, "y").update(alignment=64),
        lambda f: next(t for t in f["tensors"] if t["virtual"]).update(virtual=False),
        lambda f: f.update(is_override_shape_enabled=True),
        lambda f: f.update(math_mode="tf32"),
        # the operands of an add change places
        lambda f: f["nodes"][2]["inputs"].update(
            in_0_tensor_uid=f["nodes"][2]["inputs"]["in_1_tensor_uid"],
            in_1_tensor_uid=f["nodes"][2]["inputs"]["in_0_tensor_uid"],
        ),
    ],
)
def test_what_changes_the_computation_counts(change: Callable[[Form], object]) -> None:
    form = fused_graph().to_dict()
    before = Graph.from_json(copy.deepcopy(form)).content_key.digest
    change(form)
    assert Graph.from_json(form).content_key.digest != before


def test_sharing_a_tensor_counts() -> None:
    def build(shared: bool) -> Graph:
        graph = new_graph()
        a = graph.tensor(dims=[2, 2])
        graph.pointwise("add", a, a if shared else graph.tensor(dims=[2, 2])).set_output()
        return graph

    assert build(True).content_key.digest != build(False).content_key.digest


def test_how_a_constant_is_written_does_not_count() -> None:
    form = batchnorm_graph().to_dict()
    _tensor(form, "momentum")["value"] = 1
    one = Graph.from_json(copy.deepcopy(form)).content_key.digest
    _tensor(form, "momentum")["value"] = 1.0
    assert Graph.from_json(copy.deepcopy(form)).content_key.digest == one
    _tensor(form, "momentum")["value"] = 0.5
    assert Graph.from_json(form).content_key.digest != one


def test_unset_and_null_are_the_same() -> None:
    form = fused_graph().to_dict()
    before = Graph.from_json(copy.deepcopy(form)).content_key.digest
    form["nodes"][3]["inputs"].pop("relu_lower_clip")
    assert Graph.from_json(form).content_key.digest == before


def test_the_key_is_stable_across_processes() -> None:
    code = "from tests.graphs import fused_graph; print(fused_graph().content_key.digest)"
    digests = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for seed in ("1", "2")
    }
    assert digests == {fused_graph().content_key.digest}
