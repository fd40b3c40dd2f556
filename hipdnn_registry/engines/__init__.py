"""Engines: what each answers to a graph, and what to say of a name that none has."""
