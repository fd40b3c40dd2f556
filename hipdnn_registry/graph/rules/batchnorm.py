"""Shapes of the batch normalisations.

x, y, dx and dy are [N, C, spatial...]. Scale, bias and every statistic share one shape:
[1, C, 1...] normalises each channel over batch and space, [1, C, spatial...] each activation over
the batch alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hipdnn_registry.graph.wiring import Wiring

_RUNNING_INPUTS = ("prev_running_mean", "prev_running_variance", "momentum")
_RUNNING_OUTPUTS = ("next_running_mean", "next_running_variance")


def apply_batchnorm(wiring: Wiring) -> None:
    """Training: y and the batch statistics; running statistics all or none."""
    inputs, outputs = wiring.inputs, wiring.outputs
    _check_scalar(wiring, "epsilon", required=True)
    missing = [port for port in _RUNNING_INPUTS if port not in inputs]
    missing += [port for port in _RUNNING_OUTPUTS if port not in outputs]
    if 0 < len(missing) < len(_RUNNING_INPUTS) + len(_RUNNING_OUTPUTS):
        wiring.fail(
            "batchnorm.running_statistics",
            f"{', '.join(missing)} not set; running statistics need all of "
            f"{', '.join(_RUNNING_INPUTS + _RUNNING_OUTPUTS)}, or none of them",
        )
    _check_scalar(wiring, "momentum", required=False)
    _check(
        wiring,
        images=("y",),
        parameters=("bias", "prev_running_mean", "prev_running_variance"),
        results=("mean", "inv_variance", *_RUNNING_OUTPUTS),
    )


def apply_batchnorm_inference(wiring: Wiring) -> None:
    """Inference, with the inverse variance or with variance and epsilon."""
    parameters: tuple[str, ...] = ("bias", "mean", "inv_variance")
    if "variance" in wiring.inputs:
        _check_scalar(wiring, "epsilon", required=True)
        parameters = ("bias", "mean", "variance")
    _check(wiring, images=("y",), parameters=parameters, results=())


def apply_batchnorm_backward(wiring: Wiring) -> None:
    """Gradients of x, scale and bias; saved statistics both or none."""
    saved = [port for port in ("mean", "inv_variance") if port in wiring.inputs]
    if len(saved) == 1:
        wiring.fail(
            "batchnorm.saved_statistics",
            f"only {saved[0]} is set; give both of mean and inv_variance, or none of them",
        )
    _check(
        wiring,
        images=("dy", "dx"),
        parameters=("mean", "inv_variance"),
        results=("dscale", "dbias"),
    )


def _check_scalar(wiring: Wiring, port: str, *, required: bool) -> None:
    tensor = wiring.inputs.get(port)
    if tensor is None:
        if required:
            wiring.fail(f"batchnorm.{port}", f"{port} is missing")
        return
    wiring.floating((tensor,))
    if tensor.element_count != 1:
        wiring.fail(
            f"batchnorm.{port}", f"must be a scalar, but has dims {list(tensor.dims or ())}", tensor
        )
    if tensor.value is not None and tensor.value < 0:
        wiring.fail(
            f"batchnorm.{port}", f"value is {tensor.value}, but must not be negative", tensor
        )


def _check(
    wiring: Wiring, images: Iterable[str], parameters: Iterable[str], results: Iterable[str]
) -> None:
    """Check everything of x's shape (images) and of scale's shape (parameters, results)."""
    x, scale = wiring.inputs["x"], wiring.inputs["scale"]
    dims = wiring.dims(x)
    if len(dims) < 2:
        wiring.fail("batchnorm.rank", f"has dims {list(dims)}, but needs at least [N, C]", x)
    spatial, per_activation = (1, dims[1], *(1,) * (len(dims) - 2)), (1, *dims[1:])
    stats = wiring.dims(scale)
    if stats not in {spatial, per_activation}:
        wiring.fail(
            "batchnorm.scale",
            f"dims are {list(stats)}, but must be {list(spatial)} (spatial) or "
            f"{list(per_activation)} (per activation) for x {list(dims)}",
            scale,
        )
    for port, expected, like, why in (
        *((port, dims, x, "the shape of x") for port in images),
        *((port, stats, scale, "the shape of scale") for port in (*parameters, *results)),
    ):
        tensor = wiring.inputs.get(port) or wiring.outputs.get(port)
        if tensor is not None:
            if port in wiring.inputs:
                wiring.dims(tensor)
            wiring.settle(tensor, expected, like=like, why=why)
    wiring.floating((*wiring.inputs.values(), *wiring.outputs.values()))
    wiring.floating_compute()
