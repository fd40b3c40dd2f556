"""The kernel that MIOpen chose when a plan was built: what it computes, and which records chose it.

Some kernels that a perf-db record or a search may choose are wrong, see docs/findings.md. A plan
that may have got one runs it once, on an input whose result is known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hipdnn_miopen_provider.native import Device, copy_to_host, fill, hip, library
from hipdnn_miopen_provider.records import records_read
from hipdnn_miopen_provider.tensors import numpy_type

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np

    from hipdnn_miopen_provider.native import DeviceMemory
    from hipdnn_miopen_provider.operation import Operation
    from hipdnn_miopen_provider.records import Record
    from hipdnn_miopen_provider.tensors import TensorSpec


def result_of(
    run: Callable[[], None], output: DeviceMemory, spec: TensorSpec
) -> np.ndarray[Any, np.dtype[np.float32]] | None:
    """Run the kernel, and return one of its outputs in float.

    Args:
        run: Runs it.
        output: The output; overwritten.
        spec: Its shape and type; packed.

    Returns:
        None where kernels don't run: with an emulator that only accepts them.

    Raises:
        NativeError: HIP or MIOpen failed.
    """
    import numpy as np

    fill(output, 0xFF)  # NaN in every type
    run()
    hip.synchronize_device()
    result = np.empty(spec.dims, numpy_type(spec.dtype))
    copy_to_host(result, output)
    result = result.astype(np.float32)
    return None if np.isnan(result).all() else result


def records_behind(operation: Operation) -> list[Record]:
    """Return the perf-db's records of an operation that MIOpen reads on the current device."""
    device = Device.query(hip.current_device())
    return records_read(operation, device, library.load().version)
