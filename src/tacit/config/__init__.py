"""Experiments: typed, resolved, written out."""
