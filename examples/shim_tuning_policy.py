"""Code in MIOpen's terms: each tuning policy on a handle, then a convolution and a batchnorm.

Prints what the caller set, which policy MIOpen ran under and who decided it, the workspace, and
what changed in MIOpen's user perf-db, which is a folder of its own here. Needs ROCm with an AMD GPU
and `pip install hipdnn-miopen-provider[hip]`; elsewhere it says what is missing.

Run it with `python examples/shim_tuning_policy.py`, or without a GPU with
`hipdnn emulator run --accept-only -- python examples/shim_tuning_policy.py`.
"""

from __future__ import annotations

import os
import sys
import tempfile
from contextlib import ExitStack
from typing import TYPE_CHECKING

from hipdnn_miopen_provider.device_memory import HipMemory
from hipdnn_miopen_provider.shim import (
    BatchNormMode,
    ConvolutionDescriptor,
    DataType,
    MiopenHandle,
    NotInitialized,
    TensorDescriptor,
    TuningPolicy,
    batch_normalization_forward_training,
    convolution_forward,
    convolution_forward_get_workspace_size,
    derive_bn_tensor_descriptor,
    find_convolution_forward,
)

if TYPE_CHECKING:
    from hipdnn_registry import DeviceBuffer, ExecutionPlan

NONE, DB_UPDATE, SEARCH, SEARCH_DB_UPDATE, DB_CLEAN = TuningPolicy
SEQUENCE = (NONE, SEARCH, NONE, DB_UPDATE, SEARCH_DB_UPDATE, DB_CLEAN, NONE)


class Buffers:
    """Device buffers, released together."""

    def __init__(self, owner: ExitStack) -> None:
        self._memory, self._owner = HipMemory(0), owner

    def of(self, size: int) -> DeviceBuffer:
        """Return a buffer of so many bytes."""
        return self._owner.enter_context(self._memory.allocate(size))


class Convolution:
    """A 3x3 convolution in MIOpen's order of calls: workspace, Find, compute."""

    name = "convolution"

    def __init__(self, buffers: Buffers) -> None:
        self.x_desc = TensorDescriptor(DataType.Float, (2, 8, 16, 16))
        self.w_desc = TensorDescriptor(DataType.Float, (8, 8, 3, 3))
        self.conv = ConvolutionDescriptor(pads=(1, 1), strides=(1, 1), dilations=(1, 1))
        y_dims = self.conv.get_forward_output_dim(self.x_desc, self.w_desc)
        self.y_desc = TensorDescriptor(DataType.Float, y_dims)
        descs = (self.x_desc, self.w_desc, self.y_desc)
        self.x, self.w, self.y = (buffers.of(desc.nbytes) for desc in descs)
        self.buffers = buffers

    def run(self, handle: MiopenHandle) -> ExecutionPlan:
        """Make the three calls under the handle's policy."""
        size = convolution_forward_get_workspace_size(
            handle, self.w_desc, self.x_desc, self.conv, self.y_desc
        )
        print(f"    workspace asked for: {size} bytes")
        workspace = self.buffers.of(size) if size else None
        inputs = (self.x_desc, self.x, self.w_desc, self.w)
        arguments = (*inputs, self.conv, self.y_desc, self.y)
        exhaustive = handle.get_tuning_policy() is DB_UPDATE  # which does nothing without it
        find_convolution_forward(
            handle, *arguments, workspace=workspace, exhaustive_search=exhaustive
        )
        return convolution_forward(handle, *arguments, workspace=workspace)


class BatchNorm:
    """Spatial training with running and saved statistics."""

    name = "batchnorm training"

    def __init__(self, buffers: Buffers) -> None:
        self.x_desc = TensorDescriptor(DataType.Float, (4, 8, 16, 16))
        self.bn_desc = derive_bn_tensor_descriptor(self.x_desc, BatchNormMode.Spatial)
        self.x, self.y = (buffers.of(self.x_desc.nbytes) for _ in range(2))
        names = ("scale", "bias", "mean", "variance", "save_mean", "save_inv_variance")
        self.of = {name: buffers.of(self.bn_desc.nbytes) for name in names}

    def run(self, handle: MiopenHandle) -> ExecutionPlan:
        """Make the call under the handle's policy."""
        return batch_normalization_forward_training(
            handle,
            BatchNormMode.Spatial,
            self.x_desc,
            self.x,
            self.x_desc,
            self.y,
            self.bn_desc,
            self.of["scale"],
            self.of["bias"],
            exp_avg_factor=0.1,
            running_mean=self.of["mean"],
            running_variance=self.of["variance"],
            epsilon=1e-5,
            save_mean=self.of["save_mean"],
            save_inv_variance=self.of["save_inv_variance"],
        )


def show(handle: MiopenHandle, operation: Convolution | BatchNorm) -> None:
    """Run an operation under one policy after the other."""
    print(f"{operation.name}:")
    plans: list[ExecutionPlan] = []
    for policy in SEQUENCE:
        handle.set_tuning_policy(policy)
        print(f"  handle's policy: {policy.name} ({policy})")
        plan = operation.run(handle)
        if any(plan is known for known in plans):
            print("    the plan of before")
        plans.append(plan)
        for note in plan.notes:
            print(f"    {note}")


def main() -> int:
    """Run the sequence on both operations."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as owner:
        os.environ["MIOPEN_USER_DB_PATH"] = folder  # before MIOpen is loaded: it reads this once
        try:
            handle = owner.enter_context(MiopenHandle())
        except NotInitialized as reason:
            print(reason)
            return 1
        buffers = Buffers(owner)
        show(handle, Convolution(buffers))
        show(handle, BatchNorm(buffers))
    return 0


if __name__ == "__main__":
    sys.exit(main())
