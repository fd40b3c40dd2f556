"""Discovery: from entry points to a catalog of engines, each held to its contract."""
