"""Importing and discovering, against what they can't do without; each run in a fresh process."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from .figures import Figure

_TIMED = """
import sys, time
{prepare}
start = time.perf_counter()
{action}
print(time.perf_counter() - start)
"""

_IMPORTS = {
    "import pydantic, pluggy": "import pydantic, pluggy",
    "import hipdnn_registry": "import hipdnn_registry",
    "and with Graph and EngineRegistry": "from hipdnn_registry import EngineRegistry, Graph",
}

_PREPARE = """
from importlib import metadata
sys.path.insert(0, {site!r})
from hipdnn_registry import EngineRegistry
from hipdnn_registry.hookspecs import ENTRY_POINT_GROUP
import hipdnn_cpu_provider.provider
"""
_DISCOVERIES = {
    "entry_points(group=...)": "metadata.entry_points(group=ENTRY_POINT_GROUP)",
    # What other providers do to load, such as looking for a GPU's libraries, is theirs.
    "EngineRegistry().providers()": "EngineRegistry(allow=['cpu']).providers()",
}
_OTHER_DISTRIBUTIONS = 500


def start_up_figures(repeat: int) -> list[Figure]:
    """Measure imports and first discovery.

    Args:
        repeat: Processes a measurement; the best counts, since noise only adds.
    """
    imports = _interleaved({n: ("", action) for n, action in _IMPORTS.items()}, repeat)
    base, ours, used = (imports[name] for name in _IMPORTS)
    with tempfile.TemporaryDirectory() as folder:
        _install_others(Path(folder))
        prepare = _PREPARE.format(site=folder)
        found = _interleaved({n: (prepare, action) for n, action in _DISCOVERIES.items()}, repeat)
    scan, discovery = (found[name] for name in _DISCOVERIES)
    return [
        Figure(
            "import hipdnn_registry / import pydantic, pluggy",
            ours / base,
            "x",
            1.25,
            detail=f"{ours * 1e3:.1f} / {base * 1e3:.1f} ms; "
            f"{used * 1e3:.1f} ms once Graph and EngineRegistry are used",
        ),
        Figure(
            f"first discovery, {_OTHER_DISTRIBUTIONS} other distributions / entry_points()",
            discovery / scan,
            "x",
            1.3,
            detail=f"{discovery * 1e3:.1f} / {scan * 1e3:.1f} ms",
        ),
    ]


def _interleaved(actions: dict[str, tuple[str, str]], repeat: int) -> dict[str, float]:
    best = dict.fromkeys(actions, float("inf"))
    for _ in range(repeat):
        for name, (prepare, action) in actions.items():
            code = _TIMED.format(prepare=prepare, action=action)
            done = subprocess.run(
                [sys.executable, "-c", code], check=True, capture_output=True, text=True
            )
            best[name] = min(best[name], float(done.stdout))
    return best


def _install_others(site: Path) -> None:
    """Lay out the metadata of distributions that have nothing to do with us."""
    for number in range(_OTHER_DISTRIBUTIONS):
        info = site / f"other_{number}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: other-{number}\nVersion: 1.0\n"
        )
        (info / "entry_points.txt").write_text(
            f"[console_scripts]\nother-{number} = other_{number}:main\n"
        )
