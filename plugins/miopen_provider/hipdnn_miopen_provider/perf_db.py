"""MIOpen's user databases: perf-db (tuned parameters) and find-db (measured solvers), line by line.

Both are text files in the folder that ``MIOPEN_USER_DB_PATH`` names (default ``~/.config/miopen``),
one pair for each architecture, number of compute units and MIOpen version; batch normalization has
a perf-db of its own, fusions have a find-db of their own. A line is
``KEY=SOLVER:VALUE;SOLVER:VALUE...``. `database_files` reads the files. Nothing here writes them:
MIOpen does, under a lock file, replacing a file as a whole.

The keys come in two styles, both seen in files that MIOpen 3.5.1 wrote:

- find-db, ``-`` between the fields: ``8-16-20-3x5-4-16-18-2-1x1-1x1-1x1-0-NCHW-FP32-F_g2``
- perf-db, ``x`` between them: ``2x8x16x20x1x3x5x1x4x2x1x1x0x1x1x0x1x1x0x0x2xNCHWxFP32xF``

`record_keys` writes them; fusions' find-db has a third style, described there.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

USER_DB_VARIABLE = "MIOPEN_USER_DB_PATH"


@dataclass(frozen=True)
class FindValue:
    """A find-db value.

    Attributes:
        milliseconds: Time of the solver's kernels.
        workspace_size: Bytes that it needs.
        algorithm: MIOpen's name of its algorithm, such as ``miopenConvolutionFwdAlgoGEMM``.
    """

    milliseconds: float
    workspace_size: int
    algorithm: str


@dataclass(frozen=True)
class ConvolutionKey:
    """A convolution's key, decoded. Spatial tuples are in the order [D,] H, W.

    In a key, "in" is what the direction reads and "out" what it is computed for: for backward data
    and backward weights ``in_channels`` and ``in_dims`` are those of dy.

    Attributes:
        batch: N.
        in_channels: Channels of "in".
        in_dims: Spatial dimensions of "in".
        filter_dims: Spatial dimensions of the filter.
        out_channels: Channels of "out".
        padding: As ``strides`` and ``dilations``, one number for each spatial dimension.
        groups: Group count.
        layout: Layout of all tensors, or ``in-filter-out`` joined by ``-`` if the key has three.
        dtype: FP32, FP16, BF16, ...
        direction: F, B or W.
    """

    batch: int
    in_channels: int
    in_dims: tuple[int, ...]
    filter_dims: tuple[int, ...]
    out_channels: int
    padding: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    groups: int
    layout: str
    dtype: str
    direction: str


@dataclass(frozen=True)
class BatchNormKey:
    """A batch normalization's key, decoded.

    Attributes:
        dims: N, C, H, W. MIOpen folds D and H of five dimensions into one number.
        saves: Whether a training call saves mean and inverse variance.
        updates_running: Whether a training call updates running statistics.
        uses_saved: Whether a backward call is given saved statistics.
        layout: Layout of x.
        direction: Trn or Bwd; inference has no records.
        dtype: FP32, FP16, BF16.
    """

    dims: tuple[int, ...]
    saves: bool
    updates_running: bool
    uses_saved: bool
    layout: str
    direction: str
    dtype: str


def user_db_folder() -> Path:
    """Where MIOpen keeps the user's databases for this process's environment."""
    override = os.environ.get(USER_DB_VARIABLE)
    return Path(override).expanduser() if override else Path.home() / ".config" / "miopen"


def parse_record(line: str) -> tuple[str, dict[str, str]]:
    """Parse one line: its key, and solver -> value.

    Raises:
        ValueError: It is not a record.
    """
    key, equals, values = line.partition("=")
    pairs = [pair.partition(":") for pair in values.split(";") if pair]
    if not equals or not key or any(not colon for _, colon, _ in pairs):
        raise ValueError(f"not KEY=SOLVER:VALUE;...: {line[:80]!r}")
    return key, {solver: value for solver, _, value in pairs}


def parse_find_value(text: str) -> FindValue:
    """Decode a find-db value.

    Raises:
        ValueError: It has another form.
    """
    try:
        milliseconds, workspace_size, algorithm = text.split(",")
        return FindValue(float(milliseconds), int(workspace_size), algorithm)
    except ValueError as error:
        raise ValueError(
            f"not a find-db value (time,workspace,algorithm): {text[:80]!r}"
        ) from error


def parse_convolution_key(key: str) -> ConvolutionKey:
    """Decodes a convolution's key of either style.

    Raises:
        ValueError: It is neither; batch normalization's keys have another form.
    """
    decoded = _decode_find_key(key) or _decode_perf_key(key)
    if decoded is None:
        raise ValueError(f"not a convolution's key: {key!r}")
    return decoded


_BATCHNORM_KEY = re.compile(
    r"2x(?P<dims>\d+(?:x\d+){3})x1x(?P<saves>[01])x(?P<running>[01])x(?P<saved>[01])"
    r"x(?P<layout>[A-Z]+)x(?P<direction>[A-Z][a-z]+)x(?P<type>[A-Z]+\d+)x\d"
)


def parse_batchnorm_key(key: str) -> BatchNormKey:
    """Decodes a key of batch normalization's perf-db.

    Raises:
        ValueError: It has another form.
    """
    match = _BATCHNORM_KEY.fullmatch(key)
    if match is None:
        raise ValueError(f"not a batch normalization's key: {key!r}")
    return BatchNormKey(
        dims=_numbers(match["dims"], "x"),
        saves=match["saves"] == "1",
        updates_running=match["running"] == "1",
        uses_saved=match["saved"] == "1",
        layout=match["layout"],
        direction=match["direction"],
        dtype=match["type"],
    )


_FIND_KEY = re.compile(
    r"(?P<c>\d+)-(?P<in>\d+(?:-\d+){1,2})-(?P<filter>\d+(?:x\d+){1,2})-(?P<k>\d+)"
    r"-(?P<out>\d+(?:-\d+){1,2})-(?P<n>\d+)"
    r"-(?P<pad>[\dx]+)-(?P<stride>[\dx]+)-(?P<dilation>[\dx]+)-\d+"  # a bias flag, always 0
    r"-(?P<layout>[A-Z]+[c\d]*(?:-[A-Z]+[c\d]*)*)-(?P<type>[A-Z]+\d+)-(?P<direction>[FBW])"
    r"(?P<suffix>(?:_\w+)*)"
)


def _decode_find_key(key: str) -> ConvolutionKey | None:
    match = _FIND_KEY.fullmatch(key)
    if match is None:
        return None
    groups = re.search(r"_g(\d+)", match["suffix"])
    return ConvolutionKey(
        batch=int(match["n"]),
        in_channels=int(match["c"]),
        in_dims=_numbers(match["in"], "-"),
        filter_dims=_numbers(match["filter"], "x"),
        out_channels=int(match["k"]),
        padding=_numbers(match["pad"], "x"),
        strides=_numbers(match["stride"], "x"),
        dilations=_numbers(match["dilation"], "x"),
        groups=int(groups[1]) if groups else 1,
        layout=match["layout"],
        dtype=match["type"],
        direction=match["direction"],
    )


_PERF_KEY = re.compile(
    r"(?P<numbers>[23](?:x\d+){20})"
    r"x(?P<layout>[A-Z]+[c\d]*)x(?P<type>[A-Z]+\d+)x(?P<direction>[FBW])"
)


def _decode_perf_key(key: str) -> ConvolutionKey | None:
    match = _PERF_KEY.fullmatch(key)
    if match is None:
        return None
    numbers = _numbers(match["numbers"], "x")
    rank, channels = numbers[0], numbers[1]

    def spatial(start: int) -> tuple[int, ...]:
        height, width, depth = numbers[start : start + 3]
        return (depth, height, width) if rank == 3 else (height, width)

    return ConvolutionKey(
        batch=numbers[9],
        in_channels=channels,
        in_dims=spatial(2),
        filter_dims=spatial(5),
        out_channels=numbers[8],
        padding=spatial(10),
        strides=spatial(13),
        dilations=spatial(16),
        groups=numbers[20],
        layout=match["layout"],
        dtype=match["type"],
        direction=match["direction"],
    )


def _numbers(text: str, separator: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(separator))
