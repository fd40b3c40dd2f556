"""Shows whether MIOpen's spatial batchnorm sums the elements of each channel, by its C API alone.

python miopen_batchnorm_sums.py backward 2 3 33 33
python miopen_batchnorm_sums.py training 1 2 65 65

Needs libMIOpen and libamdhip64 (ROCm), a device and numpy. In every image channel c holds 1 + c % 2
everywhere, so a channel's gradient of the bias (backward) is that times N * H * W, and its mean
(training) is that. docs/findings.md explains what goes wrong. Exits with 1 where something does or
can't be run, with 2 where an argument is wrong.
"""

from __future__ import annotations

import argparse
import ctypes as c
import sys

import numpy as np

NCHW_FLOAT, SPATIAL = 1, 1
HOST_TO_DEVICE, DEVICE_TO_HOST = 1, 2


def loaded(name: str) -> c.CDLL:
    """Load one of ROCm's libraries or stop."""
    try:
        return c.CDLL(name)
    except OSError as reason:
        raise SystemExit(f"ROCm's libraries can't be loaded: {reason}") from None


def call(library: c.CDLL, name: str, *arguments: object) -> None:
    """Call a function and stop if it fails."""
    status = getattr(library, name)(*arguments)
    if status:
        raise SystemExit(f"{name} failed with status {status}")


def on_device(hip: c.CDLL, array: np.ndarray) -> c.c_void_p:
    """Copy an array to new device memory."""
    memory = c.c_void_p()
    call(hip, "hipMalloc", c.byref(memory), c.c_size_t(array.nbytes))
    source = array.ctypes.data_as(c.c_void_p)
    call(hip, "hipMemcpy", memory, source, c.c_size_t(array.nbytes), HOST_TO_DEVICE)
    return memory


def extent(text: str) -> int:
    """Read an extent of the image."""
    if not text.isascii() or not text.isdigit() or not 0 < int(text) < 1 << 31:
        raise argparse.ArgumentTypeError(f"'{text}' is not an integer from 1 to {(1 << 31) - 1}")
    return int(text)


def main(direction: str, dims: tuple[int, ...]) -> int:
    """Run one call and compare the sums."""
    n, channels, height, width = dims
    hip, miopen = loaded("libamdhip64.so"), loaded("libMIOpen.so")
    handle, tensor, statistics = c.c_void_p(), c.c_void_p(), c.c_void_p()
    call(miopen, "miopenCreate", c.byref(handle))
    for descriptor in (tensor, statistics):
        call(miopen, "miopenCreateTensorDescriptor", c.byref(descriptor))
    call(miopen, "miopenSet4dTensorDescriptor", tensor, NCHW_FLOAT, *dims)
    call(miopen, "miopenDeriveBNTensorDescriptor", statistics, tensor, SPATIAL)
    value = (1 + np.arange(channels) % 2).astype(np.float32)
    image = np.ascontiguousarray(
        np.broadcast_to(value[:, None, None], (n, channels, height, width))
    )
    x, dy, out = (on_device(hip, image) for _ in range(3))
    scale, bias, first, second, mean, inverse = (
        on_device(hip, np.zeros(channels, np.float32)) for _ in range(6)
    )
    one, zero, epsilon = c.byref(c.c_float(1)), c.byref(c.c_float(0)), c.c_double(1e-5)
    if direction == "backward":
        call(
            *(miopen, "miopenBatchNormalizationBackward", handle, SPATIAL, one, zero, one, zero),
            *(tensor, x, tensor, dy, tensor, out),
            *(statistics, scale, first, second, epsilon, mean, inverse),
        )
        result, expected = second, value * (n * height * width)
    else:
        call(
            *(miopen, "miopenBatchNormalizationForwardTraining", handle, SPATIAL, one, zero),
            *(tensor, x, tensor, out, statistics, scale, bias, c.c_double(0.1), None, None),
            *(epsilon, mean, inverse),
        )
        result, expected = mean, value
    call(hip, "hipDeviceSynchronize")
    got = np.empty_like(expected)
    target = got.ctypes.data_as(c.c_void_p)
    call(hip, "hipMemcpy", target, result, c.c_size_t(got.nbytes), DEVICE_TO_HOST)
    right = np.allclose(got, expected, rtol=1e-5)
    print(f"{direction} of {dims}: expected {expected}, got {got}: {'right' if right else 'WRONG'}")
    return 0 if right else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("direction", choices=["backward", "training"])
    for axis in "NCHW":
        parser.add_argument(axis, type=extent)
    given = vars(parser.parse_args())
    sys.exit(main(given.pop("direction"), tuple(given.values())))
