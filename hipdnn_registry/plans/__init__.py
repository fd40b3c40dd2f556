"""Execution plans: one engine with its settings, built once and shared."""
