"""Benchmarks: python -m bench. Figures for people to look at; no test depends on a time."""
