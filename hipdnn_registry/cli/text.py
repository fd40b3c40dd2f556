"""How sizes, times and layouts are written for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def size_text(count: int) -> str:
    """Return a number of bytes in the unit that suits it, such as `"1.5 MiB"`."""
    if count < 1024:
        return f"{count} B"
    units = ("KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
    power = min((count.bit_length() - 1) // 10, len(units))
    return f"{count / 1024**power:.1f} {units[power - 1]}"


def time_text(seconds: float) -> str:
    """Return a duration in the unit that suits it, such as `"1.25 ms"`."""
    for factor, unit in ((1e6, "us"), (1e3, "ms")):
        if seconds * factor < 1000:
            return f"{seconds * factor:.2f} {unit}"
    return f"{seconds:.2f} s"


def layout_name(dims: Sequence[int], strides: Sequence[int], *, images: bool = True) -> str:
    """Return the usual name of a layout, such as `"NHWC"`, or the strides where it has none.

    Args:
        dims: Extents.
        strides: Strides in elements.
        images: Whether the dimensions are [N, C, spatial...].
    """
    from hipdnn_registry.graph import channels_last_order, packed_strides

    def laid_out(wanted: Sequence[int]) -> bool:
        return all(
            extent == 1 or given == expected
            for extent, given, expected in zip(dims, strides, wanted, strict=True)
        )

    spatial = {3: "W", 4: "HW", 5: "DHW"}.get(len(dims)) if images else None
    if laid_out(packed_strides(dims)):
        return f"NC{spatial}" if spatial else "packed"
    if spatial and laid_out(packed_strides(dims, channels_last_order(len(dims)))):
        return f"N{spatial}C"
    return f"strides {list(strides)}"
