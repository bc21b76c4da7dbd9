"""Which part of a log trains and which tests: six protocols by name, and tuning without touching the test."""

from tacit.split.split import NAMES, Split, split, validation_part

__all__ = ["NAMES", "Split", "split", "validation_part"]
