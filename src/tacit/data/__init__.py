"""Data sets: read from the publisher's own files or made up, always as one shape."""

from tacit.data.describe import describe
from tacit.data.get import get
from tacit.data.ids import Ids
from tacit.data.interactions import Dataset, Features, Interactions, Scale, by_user, ordered
from tacit.data.load import Known, known, load

__all__ = [
    "Dataset",
    "Features",
    "Ids",
    "Interactions",
    "Known",
    "Scale",
    "by_user",
    "describe",
    "get",
    "known",
    "load",
    "ordered",
]
