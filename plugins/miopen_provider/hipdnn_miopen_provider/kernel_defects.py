"""Kernels of MIOpen that don't compile or sum the wrong elements, and what keeps away from them.

docs/findings.md has the evidence: each was found by running MIOpen's kernels and by reading their
source. What is known to be wrong is declined; where a perf-db record may choose a wrong kernel, the
plan checks the chosen one (`sums.py`, `groups.py`).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from hipdnn_miopen_provider.native import ActivationMode, DataType, library
from hipdnn_miopen_provider.tensors import Unsupported, is_channels_last

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hipdnn_miopen_provider.activation import Activation
    from hipdnn_miopen_provider.tensors import TensorSpec

_SEEN = (3, 5)
"""Major and minor of the last libMIOpen whose kernels were read."""

_VECTOR = 4
"""Elements that variant 1 of the spatial batchnorm kernels reads at once."""

_VECTORIZED_STATISTICS = 4096
"""H * W from which it reads so to compute mean and variance as well."""

_WORKGROUP = 1024
_MULTIPLE_WORKGROUPS = 32 << 20
"""N * H * W from which variant 2 takes over."""


def refuse_clamp(activation: Activation) -> None:
    """Refuse the activation CLAMP outside of a batchnorm.

    Raises:
        Unsupported: MIOpen's kernel calls a function that it does not define; 3.4.0 has none.
    """
    if activation.mode is ActivationMode.CLAMP:
        raise Unsupported(
            "MIOpen's CLAMP (a ReLU with a lower and an upper clip) does not compile: its kernel "
            "calls ActivationFunction_ClampU, which is not defined"
        )


def refuse_addition(dtype: DataType) -> None:
    """Refuse additions of a type.

    Raises:
        Unsupported: It is bfloat16, which MIOpen's tensor kernels name and don't define.
    """
    if dtype is DataType.BFloat16:
        raise Unsupported(
            "MIOpen's addition does not compile for bfloat16: its kernels define no such type"
        )


def precision_note(solver: str, tensors: Iterable[TensorSpec]) -> str:
    """Return what is to be known of a solver's precision, to follow its name, or ''."""
    if solver == "ConvOclDirectFwd" and any(spec.dtype is DataType.Half for spec in tensors):
        return "; it sums in half, see docs/findings.md"
    return ""


def spatial_hazard(x: TensorSpec, *, training: bool, saved: bool) -> str:
    """Return what variant 1 of the spatial batchnorm kernels would do wrong, or ''.

    It reads NCHW tensors four elements at a time, over N and H * W as one. At the end of an image
    of a channel such a read goes on into the next channel, and misses the first elements of the
    next image. The backward kernel does so always; the statistics of training, and those that
    backward computes if none were saved, only from H * W = 4096 on, where backward also counts
    what is left over after its last full step several times.

    Args:
        x: The image.
        training: Training rather than backward.
        saved: Backward only: whether it is given the batch's statistics.
    """
    if is_channels_last(x):
        return ""
    plane = math.prod(x.dims[2:])
    vectorized = plane >= _VECTORIZED_STATISTICS
    if plane % _VECTOR and (vectorized or not training):
        return f"H * W = {plane} is no multiple of {_VECTOR}, so it reads into the next channel"
    count = x.dims[0] * plane
    if not training and not saved and vectorized and count % (_VECTOR * _WORKGROUP):
        step = _VECTOR * _WORKGROUP
        return f"N * H * W = {count} is no multiple of {step}, so it counts elements twice"
    return ""


def refuse_hazard(x: TensorSpec, hazard: str, node: str) -> None:
    """Refuse a batchnorm with a hazard for which MIOpen chooses variant 1 by itself.

    Raises:
        Unsupported: It is one.
    """
    if hazard and _is_variant_1_by_default(x) and library.load().version[:2] <= _SEEN:
        raise Unsupported(
            f"node '{node}': MIOpen's spatial batchnorm sums the wrong elements here ({hazard}); "
            "see docs/findings.md. In NHWC it does not"
        )


def _is_variant_1_by_default(x: TensorSpec) -> bool:
    """Whether MIOpen runs variant 1 without a perf-db record, as seen for 1500 shapes."""
    plane, batch = math.prod(x.dims[2:]), x.dims[0]
    if plane > _WORKGROUP:
        return batch * plane < _MULTIPLE_WORKGROUPS
    if plane > _WORKGROUP // 2:
        return batch >= 32 and batch * plane < _MULTIPLE_WORKGROUPS
    return x.dtype is DataType.Half and 60 < plane < 200
