"""Buffers: what a variant pack must hold for a graph, checked before an engine sees it."""
