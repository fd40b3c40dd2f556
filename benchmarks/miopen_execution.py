"""What a plan of the MIOpen provider adds to the one call of MIOpen that it makes.

The peer is that call by bare ctypes, with arguments that were converted before: a loop in C could
do little better. A batchnorm updates its running statistics in place, as MIOpen's call does.
"""

from __future__ import annotations

import time
import timeit
from contextlib import ExitStack, contextmanager
from ctypes import byref, c_double, c_float, c_size_t, c_void_p
from typing import TYPE_CHECKING, Any

from hipdnn_registry import DataType, EngineRegistry, Graph

from .figures import Figure
from .miopen_calls import FILTER, IMAGE, convolution

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from .miopen_calls import Bare

    BareCall = Callable[[Mapping[str, c_void_p], c_void_p], Callable[[], object]]
    """Takes the tensors' addresses by name, and the workspace's; returns the call on them."""

CHANNELS = (1, 64, 1, 1)
EPSILON, MOMENTUM = 1e-5, 0.1
_SPATIAL = 1
_ONE, _ZERO = byref(c_float(1)), byref(c_float(0))
_IN_PLACE = {"next_mean": "prev_mean", "next_variance": "prev_variance"}
_NUMBER = 500


@contextmanager
def bare_convolution(bare: Bare) -> Iterator[BareCall]:
    """Yield the run of what a Find found."""
    with bare.plan() as (handle, x, w, descriptor, algorithm, y, need):

        def on(at: Mapping[str, c_void_p], workspace: c_void_p) -> Callable[[], object]:
            run = bare.miopen.miopenConvolutionForward
            arguments = (
                *(handle, _ONE, x, at["x"], w, at["w"], descriptor, algorithm, _ZERO),
                *(y, at["y"], workspace, c_size_t(need)),
            )
            return lambda: run(*arguments)

        yield on


def batchnorm_training() -> Graph:
    """Return a batchnorm that keeps running statistics."""
    graph = Graph("batchnorm", io_data_type=DataType.FLOAT, compute_data_type=DataType.FLOAT)
    names = ("scale", "bias", "prev_mean", "prev_variance")
    scale, bias, mean, variance = (graph.tensor(dims=CHANNELS, name=name) for name in names)
    results = graph.batchnorm(
        *(graph.tensor(dims=IMAGE, name="x"), scale, bias, graph.scalar(EPSILON)),
        prev_running_mean=mean,
        prev_running_variance=variance,
        momentum=graph.scalar(MOMENTUM),
    )
    named = zip(results, ("y", "mean", "inv_variance", *_IN_PLACE), strict=True)
    for tensor, name in named:
        assert tensor is not None
        tensor.set_output().set_name(name)
    return graph.validate()


@contextmanager
def bare_batchnorm_training(bare: Bare) -> Iterator[BareCall]:
    """Yield the same by one call of MIOpen."""
    handle = c_void_p()
    bare.call("miopenCreateWithStream", byref(handle), None)
    x, statistics = bare.tensor(IMAGE), bare.tensor(CHANNELS)

    def on(at: Mapping[str, c_void_p], _: c_void_p) -> Callable[[], object]:
        run = bare.miopen.miopenBatchNormalizationForwardTraining
        arguments = (
            *(handle, _SPATIAL, _ONE, _ZERO, x, at["x"], x, at["y"]),
            *(statistics, at["scale"], at["bias"]),
            *(c_double(MOMENTUM), at["prev_mean"], at["prev_variance"]),
            *(c_double(EPSILON), at["mean"], at["inv_variance"]),
        )
        return lambda: run(*arguments)

    yield on
    for descriptor in (x, statistics):
        bare.call("miopenDestroyTensorDescriptor", descriptor)
    bare.call("miopenDestroy", handle)


def fused_convolution() -> Graph:
    """Return a convolution with bias and ReLU, for which MIOpen has one fused solver."""
    graph = Graph(
        "fused",
        io_data_type=DataType.FLOAT,
        intermediate_data_type=DataType.FLOAT,
        compute_data_type=DataType.FLOAT,
    )
    x, w = graph.tensor(dims=IMAGE, name="x"), graph.tensor(dims=FILTER, name="w")
    convolved = graph.conv_fprop(x, w, padding=1)
    biased = graph.pointwise("add", convolved, graph.tensor(dims=CHANNELS, name="bias"))
    graph.pointwise("relu_fwd", biased).set_output().set_name("y")
    return graph.validate()


@contextmanager
def bare_fused_convolution(bare: Bare) -> Iterator[BareCall]:
    """Yield the run of its solution, which the provider's own functions find."""
    from hipdnn_miopen_provider.native import (
        ActivationDescriptor,
        ActivationMode,
        ConvolutionDescriptor,
        ConvolutionProblem,
        DataType,
        Direction,
        FusedProblem,
        Handle,
        TensorArgument,
        TensorDescriptor,
        find2,
    )
    from hipdnn_miopen_provider.native.prototypes import TensorArgumentT

    names = {
        TensorArgument.ConvolutionX: "x",
        TensorArgument.ConvolutionW: "w",
        TensorArgument.Bias: "bias",
        TensorArgument.ActivationY: "y",
    }
    with ExitStack() as owned:
        own = owned.enter_context
        x, w, bias = (
            own(TensorDescriptor(DataType.Float, dims)) for dims in (IMAGE, FILTER, CHANNELS)
        )
        descriptor = own(ConvolutionDescriptor([1, 1], [1, 1], [1, 1]))
        plain = ConvolutionProblem(Direction.FORWARD, x, w, x, descriptor)
        relu = own(ActivationDescriptor(ActivationMode.RELU))
        problem, handle = own(FusedProblem(plain, bias, relu)), own(Handle())
        (solution,) = find2.find_solutions(handle, problem, {}, limit=1)
        own(solution)

        def on(at: Mapping[str, c_void_p], workspace: c_void_p) -> Callable[[], object]:
            run = bare.miopen.miopenRunSolution
            tensors = (TensorArgumentT * len(names))(
                *(TensorArgumentT(argument, None, at[name]) for argument, name in names.items())
            )
            arguments = (
                *(handle.raw, solution.raw, c_size_t(len(names)), tensors),
                *(workspace, c_size_t(solution.workspace_size)),
            )
            return lambda: run(*arguments)

        yield on


def execution_figures(bare: Bare, repeat: int) -> list[Figure]:
    """Measure a convolution, a batchnorm's training and a fused convolution."""
    cases = (
        ("convolution", convolution(), bare_convolution),
        ("batchnorm training", batchnorm_training(), bare_batchnorm_training),
        ("fused convolution", fused_convolution(), bare_fused_convolution),
    )
    figures = []
    for what, graph, peer in cases:
        with peer(bare) as call:
            figures += _figures(what, graph, call, repeat)
    return figures


def _figures(what: str, graph: Graph, call: BareCall, repeat: int) -> list[Figure]:
    """Measure a graph's plan, bound and with all checks, against the bare call.

    Args:
        what: The operation's name.
        graph: What to run.
        call: Makes the bare call.
        repeat: Rounds of the measurement, of which the best counts.
    """
    plan = EngineRegistry(allow=["miopen"]).create_execution_plan_ext(graph, "MIOPEN_ENGINE")
    memory = plan.device_memory
    assert memory is not None
    tensors = {
        tensor.name: (uid, tensor)
        for uid, tensor in graph.tensors.items()
        if not (tensor.virtual or tensor.is_constant)
    }
    with ExitStack() as lent:
        buffers: dict[str, Any] = {
            name: lent.enter_context(memory.allocate(4 * tensor.element_count))
            for name, (_, tensor) in tensors.items()
            if name not in _IN_PLACE
        }
        buffers |= {name: buffers[same] for name, same in _IN_PLACE.items() if name in tensors}
        workspace = lent.enter_context(memory.allocate(max(plan.workspace_size, 1)))
        bare = call(
            {name: c_void_p(buffer.address) for name, buffer in buffers.items()},
            c_void_p(workspace.address),
        )
        assert bare() == 0
        compiled = plan._compiled  # noqa: SLF001 - the engine's own plan, without the checks
        by_uid = {uid: buffers[name].address for name, (uid, _) in tensors.items()}
        plain, in_loop, engine, checked = _best(
            bare,
            plan.bind(buffers, workspace),
            lambda: compiled.execute(by_uid, workspace.address, None),
            lambda: plan.execute(buffers, workspace),
            repeat=repeat,
        )
    return [
        Figure(f"{what}: bound plan over the bare call", in_loop - plain, "us", 5),
        Figure(
            f"{what}: execute over the bare call, same buffers again",
            checked - plain,
            "us",
            5,
            detail=f"{plain:.1f} us bare; {engine - plain:+.1f} us of it within the engine's plan",
        ),
    ]


def _best(*actions: Callable[[], object], repeat: int) -> list[float]:
    """Return the best CPU times in us of actions that take turns."""
    times: list[list[float]] = [[] for _ in actions]
    for _ in range(repeat):
        for action, measured in zip(actions, times, strict=True):
            measured.append(timeit.timeit(action, timer=time.thread_time, number=_NUMBER))
    return [min(measured) / _NUMBER * 1e6 for measured in times]
