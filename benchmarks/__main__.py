"""Prints every figure with its target; exit code 0 whatever they are, for figures are no test."""

from __future__ import annotations

import argparse

from .conv_vs_onnxruntime import convolution_figure
from .figures import print_figures
from .hot_path import hot_path_figures
from .miopen_overhead import figures_inside_a_tree
from .start_up import start_up_figures


def main() -> None:
    """Run the benchmarks."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--quick", action="store_true", help="fewer repetitions")
    arguments = parser.parse_args()
    repeat = 3 if arguments.quick else 15
    figures = [*start_up_figures(repeat), *hot_path_figures(repeat)]
    figures.append(convolution_figure(1 if arguments.quick else 5))
    figures += figures_inside_a_tree(quick=arguments.quick)
    print_figures(figures, as_json=arguments.json)


if __name__ == "__main__":
    main()
