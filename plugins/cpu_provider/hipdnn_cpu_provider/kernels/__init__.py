"""Numerics on numpy arrays of any strides; nothing in here knows of graphs or engines."""
