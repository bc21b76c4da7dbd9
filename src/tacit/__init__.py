"""Tacit: recommendations learned from people whose taste nobody gets to see."""

__version__ = "0.1.0"
