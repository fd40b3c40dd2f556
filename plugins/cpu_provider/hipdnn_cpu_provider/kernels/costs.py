"""What things cost, in floating-point operations of a matrix product (about 100 a nanosecond).

Measured on two x86-64 cores with OpenBLAS. The estimates only order the algorithms of one
problem; where the order matters, time them.
"""

from __future__ import annotations

COPY = 40.0
"""Copying or adding one element in long runs."""
STRIDED_COPY = 80.0
"""Copying one element in short or strided runs."""
