"""The facts of a run, for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hipdnn_registry.cli.text import size_text, time_text

if TYPE_CHECKING:
    from rich.console import RenderableType


def run_view(data: dict[str, Any]) -> RenderableType:
    """Show a run; `data` is what `--json` prints."""
    from rich.console import Group
    from rich.text import Text

    from hipdnn_registry.cli.tables import facts, note, table

    parts: list[RenderableType] = [note(warning) for warning in data["warnings"]]
    parts.append(facts(_facts(data)))
    check = data["check"]
    if check is not None:
        parts += [
            Text(f"check against {check['reference_engine']}: {check['measure']}", style="dim"),
            table(
                ("output", "absolute", "relative", "tolerance", "result"),
                [
                    (
                        output["output"],
                        _error(output["absolute_error"]),
                        _error(output["relative_error"]),
                        f"{output['tolerance']:.2e}",
                        Text("PASS", "green") if output["passed"] else Text("FAIL", "bold red"),
                    )
                    for output in check["outputs"]
                ],
                right="absolute,relative,tolerance",
            ),
        ]
    return Group(*parts)


def _facts(data: dict[str, Any]) -> list[tuple[str, str]]:
    provider = f"{data['provider_name']} {data['provider_version']}"
    rows = [("engine", f"{data['engine_name']} of {provider}")]
    for knob_id, setting in data["settings"].items():
        decided = setting["detail"] or setting["source"]
        rows.append(("knobs", f"{knob_id} = {setting['value']}  ({decided})"))
    rows += [("dropped", f"{s['knob_id']} = {s['value']}") for s in data["dropped_knobs"]]
    rows += [("notes", text) for text in data["notes"]]
    best, median = time_text(data["best_seconds"]), time_text(data["median_seconds"])
    rows += [
        ("workspace", size_text(data["workspace_size"])),
        ("built in", time_text(data["build_seconds"])),
        ("time", f"best {best}, median {median} of {len(data['seconds'])}"),
        ("rate", _rate(data)),
    ]
    return rows


def _rate(data: dict[str, Any]) -> str:
    if data["flops"]:
        return f"{data['gflops_per_second']:.2f} GFLOP/s ({data['flops'] / 1e9:.4g} GFLOP)"
    return f"{data['gigabytes_per_second']:.2f} GB/s ({size_text(data['bytes_moved'])})"


def _error(value: float | None) -> str:
    return "not finite" if value is None else f"{value:.2e}"
