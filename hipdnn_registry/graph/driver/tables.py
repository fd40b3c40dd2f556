"""The flags of MIOpenDriver's conv, CBAInfer and bnorm, with its defaults.

Letters that changed from one MIOpen release to another are all taken. Flags that say how to run,
time, verify or initialise, and nothing of what is computed, are here too: their values are checked
and have no effect on a graph.
"""

from __future__ import annotations

from .flags import FLOAT32_MAX, Flag

LAYOUTS = ("NCHW", "NHWC", "NCDHW", "NDHWC")

_NO_CAST = "hipDNN's tensors have no cast types"
_NO_VECTORS = "hipDNN's tensors have no vectorised layouts"
_NO_BLEND = "hipDNN's operations overwrite their results, unscaled"


def _extent(name: str, letter: str, default: int) -> Flag:
    return Flag(name, letter, default, low=1)


def _padding(name: str, letter: str) -> Flag:
    return Flag(name, letter, 0, low=0)


def _real(name: str, letter: str, default: float) -> Flag:
    return Flag(name, letter, default, low=-FLOAT32_MAX, high=FLOAT32_MAX)


def _switch(name: str, letter: str) -> Flag:
    return Flag(name, letter, 0, low=0, high=1)


_SHAPE = (
    Flag("spatial_dim", "_", 2, low=2, high=3),
    Flag("in_layout", "I", "", choices=LAYOUTS),
    Flag("out_layout", "O", "", choices=LAYOUTS),
    Flag("fil_layout", "f", "", choices=LAYOUTS),
    _extent("in_channels", "c", 3),
    _extent("in_h", "H", 32),
    _extent("in_w", "W", 32),
    _extent("out_channels", "k", 32),
    _extent("fil_d", "@", 3),
    _extent("fil_h", "y", 3),
    _extent("fil_w", "x", 3),
    *(_extent(f"conv_stride_{axis}", letter, 1) for axis, letter in zip("dhw", "#uv", strict=True)),
    *(_extent(f"dilation_{axis}", letter, 1) for axis, letter in zip("dhw", "^lj", strict=True)),
    *(_padding(f"pad_{axis}", letter) for axis, letter in zip("dhw", "$pq", strict=True)),
    Flag("pad_val", "r", 0, low=0, high=0, because="convolutions of hipDNN pad with zeros"),
    _extent("group_count", "g", 1),
)

_RUN = (
    Flag("iter", "i", 10, low=1),
    Flag("verify", "V", 1),
    Flag("time", "t", 0),
    Flag("wall", "w", 0),
)

_BUFFERS_AND_TUNING = (
    Flag("gpubuffer_check", "~", 0),
    Flag("tuning_policy", "&", 0),
)

CONV = (
    *_SHAPE,
    _extent("batchsize", "n", 100),
    _extent("in_d", "!", 32),
    Flag("forw", "F", 0, low=0, high=7),
    Flag("mode", "m", "conv", choices=("conv", "trans")),
    Flag("pad_mode", "z", "default", choices=("default", "same", "valid")),
    _padding("trans_output_pad_d", "%"),
    _padding("trans_output_pad_h", "Y"),
    _padding("trans_output_pad_w", "X"),
    _switch("bias", "b"),
    Flag("tensor_vect", "Z", 0, low=0, high=0, because=_NO_VECTORS),
    Flag("vector_length", "L", 1, low=1, high=1, because=_NO_VECTORS),
    Flag("in_cast_type", "U", "-1", choices=("-1",), because=_NO_CAST),
    Flag("out_cast_type", "T", "-1", choices=("-1",), because=_NO_CAST),
    Flag("wei_cast_type", "R", "-1", choices=("-1",), because=_NO_CAST),
    *_RUN,
    *_BUFFERS_AND_TUNING,
    Flag("verification_cache", "C", ""),
    Flag("search", "s", 0),
    Flag("printconv", "P", 1),
    Flag("dump_output", "o", 0),
    Flag("in_data", "d", ""),
    Flag("weights", "e", ""),
    Flag("in_bias", "a", ""),
    Flag("dout_data", "D", ""),
    Flag("solution", "S", "-1"),
    Flag("gpualloc", "G", 0),
    Flag("init_output_nan", "N", 0),
    Flag("math_type", "M", 1),
    Flag("use_hip_graph", "JQ", 0),
)
"""Flags of conv, convfp16, convbfp16."""

CBAINFER = (
    *_SHAPE,
    _extent("batchsize", "n", 32),
    _extent("in_d", "!", 1),
    Flag("fusion_mode", "FJ", 0, low=0, high=6),
    Flag("activMode", "m", 3, low=0, high=10),
    _real("alpha", "A", 1.0),
    _real("beta", "B", 0.0),
    _real("gamma", "G", 1.0),
    _switch("bnMode", "M"),
    Flag("pad_mode", "z", "conv", choices=("default", "same", "valid", "conv")),
    *_RUN,
    Flag("dot_graph", "D", ""),
)
"""Flags of CBAInfer, CBAInferfp16, CBAInferbfp16."""

_NORM = (
    _extent("batchsize", "n", 32),
    _extent("in_channels", "c", 3),
    Flag("in_d", "D", 0, low=0),
    _extent("in_h", "H", 32),
    _extent("in_w", "W", 32),
    Flag("layout", "L", "", choices=LAYOUTS),
    _switch("mode", "m"),
    _real("activ_alpha", "x", 1.0),
    _real("activ_beta", "y", 1.0),
    _real("activ_gamma", "z", 1.0),
    _switch("inverse_variance", "I"),
)

BNORM = (
    *_NORM,
    Flag("forw", "F", 0, low=0, high=2),
    _switch("back", "b"),
    _switch("save", "s"),
    _switch("run", "r"),
    Flag("activ_mode", "f", 0, low=0, high=10),
    Flag("alpha", "A", 1.0, low=1, high=1, because=_NO_BLEND),
    Flag("beta", "B", 0.0, low=0, high=0, because=_NO_BLEND),
    *_RUN,
    *_BUFFERS_AND_TUNING,
    Flag("printconv", "P", 1),
    Flag("use_hip_graph", "J", 0),
    Flag("ping_pong_buffers", "Q", 0),
)
"""Flags of bnorm, bnormfp16, bnormbfp16, bnormfp16fp32, bnormbfp16fp32."""

LOGGED_NA = (
    *_NORM,
    Flag("fusion_mode", "FJ", 0, low=2, high=2),
    Flag("activ_mode", "f", 3, low=0, high=10),
)
"""Flags that MIOpen prints behind CBAInfer for a fusion of batchnorm and activation: bnorm's."""
