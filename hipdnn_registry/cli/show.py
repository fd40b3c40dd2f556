"""`hipdnn show`: a graph drawn as a tree of nodes and their tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .output import Report, plain
from .text import layout_name, size_text

if TYPE_CHECKING:
    from rich.tree import Tree

    from hipdnn_registry import EngineRegistry, Graph, TensorAttributes
    from hipdnn_registry.graph import Node, Wiring


_ON_IMAGES = ("Convolution", "Batchnorm", "Pointwise")
"""Operations whose tensors are [N, C, spatial...], so that NCHW and the like name their layouts."""


def show_report(registry: EngineRegistry, graph: Graph) -> Report:
    """Report a graph; `--json` has it in hipDNN's own form."""
    del registry
    return Report({"document": graph.to_dict()}, lambda: _tree(graph))


def _tree(graph: Graph) -> Tree:
    from rich.text import Text
    from rich.tree import Tree

    total = sum(tensor.span_bytes for tensor in graph.io_tensors)
    tree = Tree(
        f"{_count(len(graph.nodes), 'node')}, {_count(len(graph.io_tensors), 'buffer')} of "
        f"{size_text(total)}"
    )
    for wiring in graph.structure.wirings:
        node = wiring.node
        branch = tree.add(
            Text.assemble(
                (plain(node.name) or "(unnamed)", "bold"),
                f"  {node.type.removesuffix('Attributes')}  compute {node.compute_data_type}",
            )
        )
        settings = "  ".join(f"{name} {value}" for name, value in _settings(node).items())
        if settings:
            branch.add(Text(plain(settings), style="cyan"))
        _add_tensors(branch, wiring)
    return tree


def _add_tensors(branch: Tree, wiring: Wiring) -> None:
    ends = (("in ", wiring.inputs), ("out", wiring.outputs))
    width = max(len(port) for _, ports in ends for port in ports)
    images = wiring.node.type.startswith(_ON_IMAGES)
    for direction, ports in ends:
        for port, tensor in ports.items():
            branch.add(plain(f"{direction} {port:{width}}  {_tensor(tensor, images)}"))


def _tensor(tensor: TensorAttributes, images: bool) -> str:
    dims, strides = tensor.dims or (), tensor.strides or ()
    shape = f"{tensor.data_type} [{', '.join(map(str, dims))}]"
    if tensor.is_constant:
        return f"{tensor.label}  {shape} = {tensor.value}"
    virtual = "  virtual" if tensor.virtual else ""
    return f"{tensor.label}  {shape} {layout_name(dims, strides, images=images)}{virtual}"


def _settings(node: Node) -> dict[str, Any]:
    """Return what a node is set to, wherever hipDNN's form keeps it."""
    form = node.model_dump(mode="json")
    bags = (form["inputs"], form.get("parameters"), form.get("attributes"))
    return {
        name: value
        for bag in bags
        if isinstance(bag, dict)
        for name, value in bag.items()
        if not name.endswith("_tensor_uid") and value not in (None, [])
    }


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
