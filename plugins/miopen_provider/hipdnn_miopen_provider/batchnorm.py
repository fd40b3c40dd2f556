"""Batch normalization: training, inference and backward, each possibly with an activation.

A batchnorm call tunes by itself, on a handle's first call of a problem. So that call is made when
the plan is built, on scratch buffers, and every later one finds the kernels of the first.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from hipdnn_miopen_provider.convolution import TYPE_NAMES
from hipdnn_miopen_provider.kernel_defects import spatial_hazard
from hipdnn_miopen_provider.native import (
    WORKSPACE,
    ActivationDescriptor,
    ActivationMode,
    BatchNormMode,
    BatchNormProblem,
    TuningPolicy,
    batchnorm,
    in_sequence,
    pointwise,
)
from hipdnn_miopen_provider.operation import (
    CallLauncher,
    Compilation,
    Launcher,
    Operation,
    Scratch,
    WorkspaceNeed,
)
from hipdnn_miopen_provider.perf_db import BatchNormKey
from hipdnn_miopen_provider.sums import check_sums
from hipdnn_miopen_provider.tensors import in_memory_order, is_channels_last
from hipdnn_registry.graph import BACKWARD_EPSILON

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import ExitStack

    from hipdnn_miopen_provider.activation import Activation
    from hipdnn_miopen_provider.native import BoundCall, DeviceMemory, Handle
    from hipdnn_miopen_provider.operation import Run
    from hipdnn_miopen_provider.perf_db import ConvolutionKey
    from hipdnn_miopen_provider.tensors import TensorSpec

_IMAGES = frozenset({"x", "y", "dx", "dy"})


@dataclass(frozen=True)
class _Call:
    """What a call is prepared of; `owned` keeps what else it needs."""

    owned: ExitStack
    handle: Handle
    problem: BatchNormProblem
    activation: ActivationDescriptor | None


@dataclass(frozen=True)
class BatchNorm(Operation):
    """What the three directions share.

    Attributes:
        mode: Per channel (spatial) or per activation.
        x: Also the type and layout of y, dx and dy.
        statistics: Of scale, bias, their gradients and every statistic; always float.
        ports: Uid by port.
        activation: What follows y, or in backward what y was followed by.
    """

    mode: BatchNormMode
    x: TensorSpec
    statistics: TensorSpec
    ports: Mapping[str, int]
    activation: Activation | None
    direction: ClassVar[str]

    @property
    def hazard(self) -> str:
        """What one of MIOpen's kernels for it would do wrong, or ''."""
        return ""

    @property
    def has_records(self) -> bool:
        """Whether MIOpen has kernels to choose from, and keeps its choice in the perf-db."""
        return False

    @property
    def tunable(self) -> bool:
        """Whether all kernels that a search may choose are right."""
        return self.has_records and not self.hazard

    @property
    def tensors(self) -> Mapping[int, TensorSpec]:
        """The tensors on the ports by uid."""
        return {
            uid: self.x if port in _IMAGES else self.statistics for port, uid in self.ports.items()
        }

    def concerns(self, key: ConvolutionKey | BatchNormKey) -> bool:
        """Whether a record has this problem's numbers; an activation is not among them."""
        return isinstance(key, BatchNormKey) and key == self.database_key

    @property
    def database_key(self) -> BatchNormKey:
        """The key of this problem's record. MIOpen folds D and H into one, NDHWC into NHWC."""
        batch, channels, *spatial = self.x.dims
        if len(spatial) == 3:
            spatial = [spatial[0] * spatial[1], spatial[2]]
        training = self.direction == "Trn"
        return BatchNormKey(
            dims=(batch, channels, *spatial),
            saves=training and "mean" in self.ports,
            updates_running=training and "next_running_mean" in self.ports,
            uses_saved=not training and "mean" in self.ports,
            layout="NHWC" if is_channels_last(self.x) else "NCHW",
            direction=self.direction,
            dtype=TYPE_NAMES[self.x.dtype.name],
        )

    def compile(self, compilation: Compilation) -> Launcher:
        """Make the first call on a fresh handle under the policy: it searches if that says so."""
        owned, handle = compilation.owned, compilation.new_handle()
        specs = self.x, self.statistics
        if self.mode is BatchNormMode.PerActivation:  # knows N, and no layout
            specs = in_memory_order(self.x), in_memory_order(self.statistics)
        x, statistics = (owned.enter_context(spec.describe()) for spec in specs)
        problem = BatchNormProblem(self.mode, x, statistics)
        activation = None
        if self.activation is not None:
            activation = owned.enter_context(self.activation.describe())
        bind = self._prepare(_Call(owned, handle, problem, activation))
        launcher = CallLauncher(handle, bind, self.ports, self.workspace_size)
        with (
            Scratch(self.sizes, launcher.workspace_size) as scratch,
            compilation.under_policy(handle),
        ):
            run = launcher.bind(scratch.memory)
            run(scratch.workspace)
            self._check(compilation, scratch.memory, run)
        if self.tunable and compilation.order.policy is TuningPolicy.DB_UPDATE:
            compilation.notes.append(
                "DbUpdate does nothing for batch normalization in MIOpen: its call has no "
                "exhaustive-search flag. Use SearchDbUpdate (4) to tune and write"
            )
        return launcher

    def _check(
        self, compilation: Compilation, buffers: Mapping[int, DeviceMemory], run: Run
    ) -> None:
        """Check what MIOpen compiled, where there is a reason to."""

    @property
    def workspace_size(self) -> int:
        """Bytes of workspace; MIOpen's own calls need none."""
        return 0

    def workspace(self, handle: Handle, *, deterministic: bool) -> WorkspaceNeed:
        """Return the same need for every policy."""
        del handle, deterministic
        return WorkspaceNeed(self.workspace_size, self.workspace_size, self.workspace_size)

    @abstractmethod
    def _prepare(self, call: _Call) -> Callable[..., BoundCall]:
        """Return the function that binds the call to its tensors' memory by port."""


@dataclass(frozen=True)
class BatchNormTraining(BatchNorm):
    """Normalizes by the batch's own statistics; running ones are kept if the ports are there."""

    epsilon: float
    momentum: float
    name: ClassVar[str] = "batchnorm training"
    direction: ClassVar[str] = "Trn"

    @property
    def hazard(self) -> str:
        """Of the statistics of large images."""
        return spatial_hazard(self.x, training=True, saved=False) if self.has_records else ""

    @property
    def has_records(self) -> bool:
        """In spatial mode."""
        return self.mode is BatchNormMode.Spatial

    @property
    def in_place(self) -> tuple[tuple[int, int], ...]:
        """The running statistics, which MIOpen's call updates in place."""
        return tuple(
            (self.ports[f"next_{name}"], self.ports[f"prev_{name}"])
            for name in ("running_mean", "running_variance")
            if f"next_{name}" in self.ports
        )

    def _prepare(self, call: _Call) -> Callable[..., BoundCall]:
        return batchnorm.TrainingRunner(
            call.handle,
            call.problem,
            epsilon=self.epsilon,
            momentum=self.momentum,
            activation=call.activation,
        ).bind


@dataclass(frozen=True)
class BatchNormInference(BatchNorm):
    """Normalizes by given statistics: mean and variance, or mean and inverse variance.

    MIOpen takes the variance only. From the inverse one, 1 / sqrt(variance + epsilon), the
    workspace gets x**-2, and MIOpen is called with an epsilon of 0.
    """

    epsilon: float
    name: ClassVar[str] = "batchnorm inference"
    direction: ClassVar[str] = "Inf"

    @property
    def workspace_size(self) -> int:
        """The variance, where the graph has the inverse one."""
        return self.statistics.nbytes if "inv_variance" in self.ports else 0

    def _prepare(self, call: _Call) -> Callable[..., BoundCall]:
        handle, problem = call.handle, call.problem
        if "inv_variance" not in self.ports:
            return batchnorm.inference(
                handle, problem, epsilon=self.epsilon, activation=call.activation
            ).bind
        power = (0.0, 1.0, -2.0)  # of alpha plus beta times x, the gamma-th power
        inverse_square = call.owned.enter_context(
            ActivationDescriptor(ActivationMode.POWER, *power)
        )
        statistics = problem.statistics
        invert = pointwise.activation_forward(
            handle, inverse_square, (statistics, "inv_variance"), (statistics, WORKSPACE)
        )
        normalize = batchnorm.inference(
            handle, problem, epsilon=0.0, activation=call.activation, variance=WORKSPACE
        )

        def bind(*, inv_variance: DeviceMemory, **others: DeviceMemory) -> BoundCall:
            return in_sequence(invert.bind(inv_variance=inv_variance), normalize.bind(**others))

        return bind


@dataclass(frozen=True)
class BatchNormBackward(BatchNorm):
    """Gradients of x, scale and bias; without saved statistics MIOpen computes them again.

    A search may choose a kernel that is wrong for some images. These are not tuned, and the kernel
    that MIOpen chooses by itself, or by a record that is there already, is checked.
    """

    name: ClassVar[str] = "batchnorm backward"
    direction: ClassVar[str] = "Bwd"

    @property
    def hazard(self) -> str:
        """Of the gradients' sums."""
        if not self.has_records:
            return ""
        return spatial_hazard(self.x, training=False, saved="mean" in self.ports)

    @property
    def has_records(self) -> bool:
        """In spatial mode."""
        return self.mode is BatchNormMode.Spatial

    def _check(
        self, compilation: Compilation, buffers: Mapping[int, DeviceMemory], run: Run
    ) -> None:
        if self.hazard:
            check_sums(self, buffers, run)
            compilation.notes.append(
                "not tuned: a search may choose a kernel that sums the wrong elements "
                f"({self.hazard}); the kernel that MIOpen chose was checked"
            )

    def _prepare(self, call: _Call) -> Callable[..., BoundCall]:
        return batchnorm.backward(
            call.handle, call.problem, epsilon=BACKWARD_EPSILON, activation=call.activation
        ).bind
