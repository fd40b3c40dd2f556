"""Compiles MIOpen's kernels for the host: the driver behind the stand-ins of hiprtc and comgr."""
