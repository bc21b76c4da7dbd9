"""``python -m tacit``."""

from tacit.cli.main import entry

entry()
