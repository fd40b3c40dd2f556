"""Knobs: typed, constrained, opt-in parameters that an engine advertises for a graph."""
