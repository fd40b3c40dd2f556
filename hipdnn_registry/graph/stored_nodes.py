"""Operations that this project stores but does not compute.

They state which ports they must have, and keep everything else as it came.
"""

from __future__ import annotations

from typing import Literal

from .node import Node


class MatmulNode(Node):
    """C = A B."""

    required_inputs = ("a", "b")
    required_outputs = ("c",)
    type: Literal["MatmulAttributes"] = "MatmulAttributes"


class RMSNormNode(Node):
    """Root-mean-square normalisation."""

    required_inputs = ("x", "scale")
    required_outputs = ("y",)
    type: Literal["RMSNormAttributes"] = "RMSNormAttributes"


class RMSNormBackwardNode(Node):
    """Gradients of RMSNorm."""

    required_inputs = ("dy", "x", "scale")
    required_outputs = ("dx",)
    type: Literal["RMSNormBackwardAttributes"] = "RMSNormBackwardAttributes"


class LayernormNode(Node):
    """Layer normalisation."""

    required_inputs = ("x", "scale", "bias")
    required_outputs = ("y",)
    type: Literal["LayernormAttributes"] = "LayernormAttributes"


class LayernormBackwardNode(Node):
    """Gradients of layer normalisation."""

    required_inputs = ("dy", "x", "scale")
    required_outputs = ("dx",)
    type: Literal["LayernormBackwardAttributes"] = "LayernormBackwardAttributes"


class SdpaNode(Node):
    """Scaled dot-product attention."""

    required_inputs = ("q", "k", "v")
    required_outputs = ("o",)
    type: Literal["SdpaAttributes"] = "SdpaAttributes"


class SdpaBackwardNode(Node):
    """Gradients of scaled dot-product attention."""

    required_inputs = ("q", "k", "v")
    type: Literal["SdpaBackwardAttributes"] = "SdpaBackwardAttributes"


class BlockScaleQuantizeNode(Node):
    """Quantisation with a scale for each block."""

    required_inputs = ("x",)
    type: Literal["BlockScaleQuantizeAttributes"] = "BlockScaleQuantizeAttributes"


class BlockScaleDequantizeNode(Node):
    """The inverse of block-scaled quantisation."""

    required_inputs = ("x",)
    type: Literal["BlockScaleDequantizeAttributes"] = "BlockScaleDequantizeAttributes"


class CustomOpNode(Node):
    """An operation that only its provider understands."""

    type: Literal["CustomOpAttributes"] = "CustomOpAttributes"


class ReductionNode(Node):
    """Reduction over the dimensions in which the output has extent 1."""

    type: Literal["ReductionAttributes"] = "ReductionAttributes"


class ResampleFwdNode(Node):
    """Pooling."""

    required_inputs = ("x",)
    required_outputs = ("y",)
    type: Literal["ResampleFwdAttributes"] = "ResampleFwdAttributes"


class ResampleBwdNode(Node):
    """Gradient of pooling."""

    type: Literal["ResampleBwdAttributes"] = "ResampleBwdAttributes"


class MoeGroupedMatmulNode(Node):
    """Grouped matrix products of a mixture of experts."""

    type: Literal["MoeGroupedMatmulAttributes"] = "MoeGroupedMatmulAttributes"


class MoeGroupedMatmulBwdNode(Node):
    """Gradients of the grouped matrix products."""

    type: Literal["MoeGroupedMatmulBwdAttributes"] = "MoeGroupedMatmulBwdAttributes"
