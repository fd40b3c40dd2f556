"""MIOpen's batch normalization calls: forward training, forward inference, backward.

A call tunes by itself, on the first one of a problem. The policy only concerns spatial training
and backward; inference and per-activation mode have nothing to tune, and take any.

Common to all:

- x, y, dy and dx are of rank 4 or 5, packed in one layout, of one type: float, half or bfloat16.
- `bn_desc` is that of scale, bias and every statistic: what `derive_bn_tensor_descriptor` gives
  for x and the mode, in float; but in NHWC per activation, where MIOpen's kernels read NHWC.
- alpha must be 1 and beta 0.
- Errors and results are those of `convolution`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hipdnn_miopen_provider.native import BatchNormMode
from hipdnn_registry.graph import BACKWARD_EPSILON

from .arguments import (
    both_or_neither,
    enum_member,
    instance,
    number,
    require_buffers,
    require_scales,
)
from .errors import BadParm, UnsupportedOp
from .forwarding import EntryPoint
from .handle import MiopenHandle
from .plan_key import GraphKind, Problem
from .problems import require_served
from .tensor_descriptor import derive_bn_tensor_descriptor

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hipdnn_registry import ExecutionPlan

    from .tensor_descriptor import TensorDescriptor

_WHY = "the engines compute without scaling"


def batch_normalization_forward_training(
    handle: MiopenHandle,
    mode: BatchNormMode,
    x_desc: TensorDescriptor,
    x: Any,
    y_desc: TensorDescriptor,
    y: Any,
    bn_desc: TensorDescriptor,
    scale: Any,
    bias: Any,
    exp_avg_factor: float,
    running_mean: Any | None = None,
    running_variance: Any | None = None,
    epsilon: float = 1e-5,
    save_mean: Any | None = None,
    save_inv_variance: Any | None = None,
    *,
    alpha: float = 1.0,
    beta: float = 0.0,
) -> ExecutionPlan:
    """Enqueue y = (x - mean) / sqrt(variance + epsilon) * scale + bias, by the batch's statistics.

    Args:
        handle: The handle.
        mode: Statistics per channel (`Spatial`) or per activation.
        x_desc: Of the input.
        x: Its buffer.
        y_desc: Of the result, with x's dims.
        y: Its buffer, not x's.
        bn_desc: Of all that follows.
        scale: Buffer.
        bias: Buffer.
        exp_avg_factor: From 0 on: running = (1 - factor) * running + factor * batch's. It is part
            of a plan, so a factor that changes from call to call makes a plan for each value.
        running_mean: Updated in place; with the next, or neither.
        running_variance: Updated in place; the batch's is the unbiased one there.
        epsilon: From 0 on.
        save_mean: Takes the batch's mean, for backward; with the next, or neither.
        save_inv_variance: Takes 1 / sqrt(variance + epsilon).
        alpha: Must be 1.
        beta: Must be 0.
    """
    entry = EntryPoint.BATCH_NORMALIZATION_FORWARD_TRAINING
    require_scales(entry, why=_WHY, alpha=(alpha, 1.0), beta=(beta, 0.0))
    scalars = {
        "epsilon": number(epsilon, entry, "epsilon", least=0.0),
        "exp_avg_factor": number(exp_avg_factor, entry, "exp_avg_factor", least=0.0),
    }
    running = {"running_mean": running_mean, "running_variance": running_variance}
    saved = {"save_mean": save_mean, "save_inv_variance": save_inv_variance}
    statistics: dict[str, Any] = {"scale": scale, "bias": bias}
    if both_or_neither(entry, **running):
        statistics |= running
        statistics |= {"next_mean": running_mean, "next_variance": running_variance}
    else:  # nothing to average
        del scalars["exp_avg_factor"]
    if both_or_neither(entry, **saved):
        statistics |= saved
    images = {"x": (x_desc, x), "y": (y_desc, y)}
    kind = GraphKind.BATCHNORM_TRAINING
    return _run(handle, entry, kind, mode, images, bn_desc, statistics, scalars)


def batch_normalization_forward_inference(
    handle: MiopenHandle,
    mode: BatchNormMode,
    x_desc: TensorDescriptor,
    x: Any,
    y_desc: TensorDescriptor,
    y: Any,
    bn_desc: TensorDescriptor,
    scale: Any,
    bias: Any,
    estimated_mean: Any,
    estimated_variance: Any,
    epsilon: float,
    *,
    alpha: float = 1.0,
    beta: float = 0.0,
) -> ExecutionPlan:
    """Enqueue y = (x - mean) / sqrt(variance + epsilon) * scale + bias, by given statistics.

    Takes any tuning policy: there is nothing to tune.
    """
    entry = EntryPoint.BATCH_NORMALIZATION_FORWARD_INFERENCE
    require_scales(entry, why=_WHY, alpha=(alpha, 1.0), beta=(beta, 0.0))
    scalars = {"epsilon": number(epsilon, entry, "epsilon", least=0.0)}
    statistics = {
        "scale": scale,
        "bias": bias,
        "mean": estimated_mean,
        "variance": estimated_variance,
    }
    images = {"x": (x_desc, x), "y": (y_desc, y)}
    kind = GraphKind.BATCHNORM_INFERENCE
    return _run(handle, entry, kind, mode, images, bn_desc, statistics, scalars)


def batch_normalization_backward(
    handle: MiopenHandle,
    mode: BatchNormMode,
    x_desc: TensorDescriptor,
    x: Any,
    dy_desc: TensorDescriptor,
    dy: Any,
    dx_desc: TensorDescriptor,
    dx: Any,
    bn_desc: TensorDescriptor,
    scale: Any,
    scale_diff: Any,
    bias_diff: Any,
    epsilon: float = BACKWARD_EPSILON,
    saved_mean: Any | None = None,
    saved_inv_variance: Any | None = None,
    *,
    alpha_data_diff: float = 1.0,
    beta_data_diff: float = 0.0,
    alpha_param_diff: float = 1.0,
    beta_param_diff: float = 0.0,
) -> ExecutionPlan:
    """Enqueue the gradients by x, scale and bias.

    Args:
        handle: The handle.
        mode: As in training.
        x_desc: Of the forward pass's input.
        x: Its buffer.
        dy_desc: Of the gradient by y.
        dy: Its buffer.
        dx_desc: Of the gradient by x.
        dx: Its buffer.
        bn_desc: Of all that follows.
        scale: Buffer.
        scale_diff: Takes the gradient by scale.
        bias_diff: Takes the gradient by bias.
        epsilon: With saved statistics it has no part in the result. Without, it must be 1e-5:
            hipDNN's graphs have no epsilon here.
        saved_mean: What training saved; with the next, or neither: then they are computed again.
        saved_inv_variance: The same.
        alpha_data_diff: Must be 1.
        beta_data_diff: Must be 0.
        alpha_param_diff: Must be 1.
        beta_param_diff: Must be 0.
    """
    entry = EntryPoint.BATCH_NORMALIZATION_BACKWARD
    require_scales(
        entry,
        why=_WHY,
        alpha_data_diff=(alpha_data_diff, 1.0),
        beta_data_diff=(beta_data_diff, 0.0),
        alpha_param_diff=(alpha_param_diff, 1.0),
        beta_param_diff=(beta_param_diff, 0.0),
    )
    epsilon = number(epsilon, entry, "epsilon", least=0.0)
    saved = {"saved_mean": saved_mean, "saved_inv_variance": saved_inv_variance}
    statistics = {"scale": scale, "dscale": scale_diff, "dbias": bias_diff}
    if both_or_neither(entry, **saved):
        statistics |= saved
    elif epsilon != BACKWARD_EPSILON:
        raise UnsupportedOp(
            entry,
            f"epsilon is {epsilon:g}, but without saved statistics only {BACKWARD_EPSILON:g} is "
            "served: hipDNN's graphs have no epsilon in backward; give saved_mean and "
            "saved_inv_variance",
        )
    images = {"x": (x_desc, x), "dy": (dy_desc, dy), "dx": (dx_desc, dx)}
    kind = GraphKind.BATCHNORM_BACKWARD
    return _run(handle, entry, kind, mode, images, bn_desc, statistics, {})


def _run(
    handle: MiopenHandle,
    entry: EntryPoint,
    kind: GraphKind,
    mode: BatchNormMode,
    images: dict[str, tuple[TensorDescriptor, Any]],
    bn_desc: TensorDescriptor,
    statistics: dict[str, Any],
    scalars: Mapping[str, float],
) -> ExecutionPlan:
    instance(MiopenHandle, handle, entry, "handle")
    mode = enum_member(BatchNormMode, mode, entry, "mode")
    descs = {name: desc for name, (desc, _) in images.items()}
    require_served(entry, {**descs, "bn": bn_desc})
    expected = derive_bn_tensor_descriptor(descs["x"], mode)
    for name, desc in descs.items():
        if desc.dims != descs["x"].dims:
            raise BadParm(
                entry, f"{name} has dims {list(desc.dims)}, but x has {list(descs['x'].dims)}"
            )
    if bn_desc.dims != expected.dims:
        raise BadParm(
            entry,
            f"bn_desc has dims {list(bn_desc.dims)}, but x {list(descs['x'].dims)} in mode "
            f"{mode.name} takes {list(expected.dims)}",
        )
    buffers = {name: buffer for name, (_, buffer) in images.items()} | statistics
    require_buffers(entry, buffers)
    tensors = descs | dict.fromkeys(statistics, bn_desc)
    problem = Problem(
        kind, tuple(tensors.items()), mode=mode, scalars=tuple(sorted(scalars.items()))
    )
    return handle.run(entry, problem, buffers)
