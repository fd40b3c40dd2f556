"""Convolutions: forward, backward data and backward weights."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, ClassVar

from hipdnn_miopen_provider.groups import keeps_groups_apart, may_mix_groups, why_left_out
from hipdnn_miopen_provider.native import (
    ConvolutionAttribute,
    ConvolutionBuffers,
    ConvolutionDescriptor,
    ConvolutionProblem,
    Direction,
    FindMode,
    MissingSymbolError,
    convolution,
)
from hipdnn_miopen_provider.operation import (
    CallLauncher,
    Compilation,
    Launcher,
    Operation,
    Scratch,
    Solver,
    WorkspaceNeed,
)
from hipdnn_miopen_provider.perf_db import ConvolutionKey
from hipdnn_miopen_provider.spares import Spares
from hipdnn_miopen_provider.tensors import Unsupported, layout_name
from hipdnn_registry import ExecutionError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hipdnn_miopen_provider.native import (
        BoundCall,
        ConvolutionAlgorithm,
        DeviceMemory,
        FindResult,
        Handle,
        PreparedCall,
    )
    from hipdnn_miopen_provider.perf_db import BatchNormKey
    from hipdnn_miopen_provider.tensors import TensorSpec

TYPE_NAMES = {"Float": "FP32", "Half": "FP16", "BFloat16": "BF16"}
"""MIOpen's names of the types in its databases."""

_LETTERS = {
    Direction.FORWARD: "F",
    Direction.BACKWARD_DATA: "B",
    Direction.BACKWARD_WEIGHTS: "W",
}


@dataclass(frozen=True)
class Geometry:
    """How the filter moves; one entry for each spatial dimension."""

    padding: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    groups: int


@dataclass(frozen=True)
class Convolution(Operation):
    """One convolution. For the backward directions y is dy, and x or w is the result.

    Attributes:
        direction: Which of the three.
        x: [N, C, spatial...].
        w: [K, C/groups, spatial...].
        y: [N, K, spatial...].
        uids: Uids of x, w and y.
        geometry: How the filter moves.
    """

    direction: Direction
    x: TensorSpec
    w: TensorSpec
    y: TensorSpec
    uids: tuple[int, int, int]
    geometry: Geometry
    name: ClassVar[str] = "convolution"
    has_workspace_limit: ClassVar[bool] = True
    has_find_mode: ClassVar[bool] = True
    exhaustive_find: ClassVar[bool] = True

    @property
    def tensors(self) -> Mapping[int, TensorSpec]:
        """x, w and y by uid."""
        return dict(zip(self.uids, (self.x, self.w, self.y), strict=True))

    @cached_property
    def _ports(self) -> Mapping[str, int]:
        return dict(zip("xwy", self.uids, strict=True))

    @cached_property
    def _spares(self) -> Spares[ConvolutionProblem]:
        return Spares()

    def describe(
        self, until: ExitStack, find_mode: FindMode | None, *, deterministic: bool
    ) -> ConvolutionProblem:
        """Return this convolution's descriptors, for the caller alone until `until` closes.

        Kept in between: every plan is preceded by a query, which needs the same ones.
        """
        return self._spares.lend(
            until, (find_mode, deterministic), lambda: self._describe(find_mode, deterministic)
        )

    def _describe(self, find_mode: FindMode | None, deterministic: bool) -> ConvolutionProblem:
        geometry = self.geometry
        with ExitStack() as made:
            x, w, y = (made.enter_context(spec.describe()) for spec in (self.x, self.w, self.y))
            descriptor = made.enter_context(
                ConvolutionDescriptor(
                    geometry.padding, geometry.strides, geometry.dilations, groups=geometry.groups
                )
            )
            if deterministic:
                descriptor.set_attribute(ConvolutionAttribute.Deterministic, 1)
            if find_mode is not None:  # before the workspace is asked for: that depends on it
                descriptor.find_mode = find_mode
            problem = ConvolutionProblem(self.direction, x, w, y, descriptor)
            made.pop_all()
        return problem

    def workspace(self, handle: Handle, *, deterministic: bool) -> WorkspaceNeed:
        """Ask for the workspace in the default find mode and in NORMAL mode."""
        with ExitStack() as during:
            problem = self.describe(during, None, deterministic=deterministic)
            listed = convolution.solutions(handle, problem)
            if not listed:
                raise Unsupported("MIOpen has no solver for this convolution")
            default = convolution.workspace_size(handle, problem)
            searched = self.describe(during, FindMode.Normal, deterministic=deterministic)
            normal = max(default, convolution.workspace_size(handle, searched))
            least = min(solution.workspace_size for solution in listed)
            try:
                least, most = convolution.workspace_size_range(handle, searched)
            except MissingSymbolError:  # 3.5.1; this branch's other side has not been run
                return WorkspaceNeed(least, default, max(normal, least))
            return WorkspaceNeed(least, default, max(normal, most))

    def compile(self, compilation: Compilation) -> Launcher:
        """Find the best solver on a fresh handle, searching as the policy says."""
        order, handle = compilation.order, compilation.new_handle()
        problem = self.describe(
            compilation.owned, order.find_mode, deterministic=order.deterministic
        )
        asked = convolution.workspace_size(handle, problem)
        limit = asked if order.workspace_limit is None else min(asked, order.workspace_limit)
        with Scratch(self.sizes, limit) as scratch, compilation.under_policy(handle):
            memory = ConvolutionBuffers(*map(scratch.memory.__getitem__, self.uids))
            found = convolution.find(
                handle, problem, memory, scratch.workspace, exhaustive=order.exhaustive
            )
            fitting = [result for result in found if result.workspace_size <= limit]
            if not fitting:
                raise ExecutionError(_nothing_fits(found, limit, asked))
            best = self._first_right(compilation, handle, problem, fitting, scratch)
        compilation.solvers.append(
            Solver(best.algorithm.name, best.milliseconds, best.workspace_size)
        )
        if limit < asked:
            compilation.notes.append(self._dropped(handle, problem, limit, asked))
        return CallLauncher(
            handle,
            _Run(handle, problem, best.algorithm).bind,
            self._ports,
            best.workspace_size,
        )

    def _first_right(
        self,
        compilation: Compilation,
        handle: Handle,
        problem: ConvolutionProblem,
        found: Sequence[FindResult],
        scratch: Scratch,
    ) -> FindResult:
        """Return the best that is not known to compute something else; overwrites the scratch."""
        for result in found:
            if not may_mix_groups(self, result.algorithm):
                return result
            prepared = convolution.run(handle, problem, result.algorithm)
            memory = {name: scratch.memory[uid] for name, uid in self._ports.items()}
            run = partial(prepared.bind(**memory), scratch.workspace)
            if keeps_groups_apart(self, scratch.memory, run):
                return result
            compilation.notes.append(why_left_out(self))
        raise ExecutionError(
            f"{self.name}: no other kernel fits, and {compilation.notes[-1]}. Remove the "
            "record, if one is named, or let MIOpen choose among all solvers"
        )

    def _dropped(self, handle: Handle, problem: ConvolutionProblem, limit: int, asked: int) -> str:
        """Say which solvers the limit leaves out, as far as MIOpen lists them."""
        listed = convolution.solutions(handle, problem)
        dropped = [s for s in listed if s.workspace_size > limit]
        names = ", ".join(
            f"{s.algorithm.name} (solver {s.solution_id}, {s.workspace_size} bytes)"
            for s in dropped
        )
        return (
            f"workspace limit: {limit} of the {asked} bytes that MIOpen asks for; dropped: "
            f"{names or 'solvers that MIOpen does not list'}"
        )

    def concerns(self, key: ConvolutionKey | BatchNormKey) -> bool:
        """Whether a record has this convolution's numbers; the direction included."""
        return isinstance(key, ConvolutionKey) and key == self.database_key

    @property
    def database_key(self) -> ConvolutionKey:
        """The key of this convolution's records."""
        forward = self.direction is Direction.FORWARD
        source, channels = (self.x, self.y.dims[1]) if forward else (self.y, self.x.dims[1])
        return ConvolutionKey(
            batch=self.x.dims[0],
            in_channels=source.dims[1],
            in_dims=source.dims[2:],
            filter_dims=self.w.dims[2:],
            out_channels=channels,
            padding=self.geometry.padding,
            strides=self.geometry.strides,
            dilations=self.geometry.dilations,
            groups=self.geometry.groups,
            layout=layout_name(self.x),
            dtype=TYPE_NAMES[self.x.dtype.name],
            direction=_LETTERS[self.direction],
        )


class _Run:
    """Runs what a Find chose; the call is prepared at the first execution."""

    def __init__(
        self, handle: Handle, problem: ConvolutionProblem, algorithm: ConvolutionAlgorithm
    ) -> None:
        self._chosen = handle, problem, algorithm

    @cached_property
    def _call(self) -> PreparedCall:
        return convolution.run(*self._chosen)

    def bind(self, **memory: DeviceMemory) -> BoundCall:
        return self._call.bind(**memory)


def _nothing_fits(found: Sequence[FindResult], limit: int, asked: int) -> str:
    needs = ", ".join(f"{r.algorithm.name} {r.workspace_size}" for r in found)
    return (
        f"MIOpen found no solver within {limit} bytes of workspace (it asked for {asked}"
        f"{'; found: ' + needs if needs else ''}); raise global.workspace_size_limit"
    )
