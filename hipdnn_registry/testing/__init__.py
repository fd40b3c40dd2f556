"""Numerics for checking: seeded inputs, and how far a result may be from the reference."""
