"""From the text of a MIOpenDriver command to graphs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hipdnn_registry.graph.types import DataType

from .batchnorm import BatchnormTypes, batchnorm_graphs
from .command import read_command
from .convolution import convolution_graphs
from .flags import Flags
from .fusion import fusion_graphs
from .tables import BNORM, CONV

if TYPE_CHECKING:
    from hipdnn_registry.graph.graph import Graph

_FLOAT, _HALF, _BFLOAT16 = DataType.FLOAT, DataType.HALF, DataType.BFLOAT16

_CONVOLUTIONS = {
    "conv": _FLOAT,
    "convfp32": _FLOAT,
    "convfp16": _HALF,
    "convbfp16": _BFLOAT16,
}
_FUSIONS = {
    "CBAInfer": _FLOAT,
    "CBAInferfp16": _HALF,
    "CBAInferbfp16": _BFLOAT16,
}
_BATCHNORMS = {
    "bnorm": BatchnormTypes(x=_FLOAT, scale=_FLOAT, gradient=_FLOAT),
    "bnormfp16": BatchnormTypes(x=_HALF, scale=_FLOAT, gradient=_HALF),
    "bnormbfp16": BatchnormTypes(x=_BFLOAT16, scale=_FLOAT, gradient=_BFLOAT16),
    "bnormfp16fp32": BatchnormTypes(x=_HALF, scale=_HALF, gradient=_FLOAT),
    "bnormbfp16fp32": BatchnormTypes(x=_BFLOAT16, scale=_BFLOAT16, gradient=_FLOAT),
}
_BASES = (*_CONVOLUTIONS, *_FUSIONS, *_BATCHNORMS)


def graph_from_driver_command(text: str) -> list[Graph]:
    """Turn a MIOpenDriver command into validated graphs.

    The command may be typed (`MIOpenDriver conv -n 1 ...`, with any path, or from the base on) or
    printed by MIOpen under MIOPEN_ENABLE_LOGGING_CMD=1 (`MIOpen(HIP): Command [LogCmdConvolution]
    ./bin/MIOpenDriver conv ...`). Flags, defaults and constants are MIOpenDriver's; `--flag=value`
    and layouts in lower case are taken, too. A repeated flag counts where it stands last.

    Base and graphs:
        conv, convfp32, convfp16, convbfp16: a graph for each direction of `-F` (0 all; 1 forward,
            2 backward data, 4 backward weights, or a sum), in this order. `-b 1` adds the bias to
            the forward graph; its gradient is not built. `-m trans` is built of the adjoint
            operations. `--pad_mode same` pads both sides by half of TensorFlow's padding, rounded
            down, and like `valid` counts only for undilated or one-element filters that are not
            transposed.
        CBAInfer, CBAInferfp16, CBAInferbfp16: one graph; `-F` is the fusion mode cbna 0, cna 1,
            na 2, cn 3, cba 4, ca 5, cb 6.
        bnorm, bnormfp16, bnormbfp16, bnormfp16fp32, bnormbfp16fp32: training (`--forw 1`, or
            neither direction), inference (`--forw 2`), backward (`--back 1`), or forward and
            backward, where MIOpenDriver itself would warn and skip backward. Inference always
            takes estimated statistics: hipDNN has no operation that recomputes them, as
            MIOpenDriver does without `-r 1`. Backward without saved statistics leaves epsilon to
            the engine, since hipDNN's node has none. The data types are those of MIOpen's
            batchnorm variants: statistics are float; scale and bias are float, and in the `fp32`
            bases of x's 16-bit type, where dy and dx are float.

    MIOpen raises an empty output extent to 1; here it is an error.

    Args:
        text: The command, on one line; a trailing ` # comment` is skipped.

    Returns:
        One to three graphs, never none.

    Raises:
        GraphError: The text is no such command, a flag is unknown or its value is not allowed, or
            a graph can't express it. Names the flag, its value and what is allowed.
    """
    command = read_command(text, _BASES)
    base = command.base
    if base in _CONVOLUTIONS:
        return convolution_graphs(Flags(command, CONV), base, _CONVOLUTIONS[base])
    if base in _FUSIONS:
        return fusion_graphs(command, _FUSIONS[base])
    flags = Flags(command, BNORM)
    return batchnorm_graphs(flags, base, _BATCHNORMS[base], logged=command.logged)
