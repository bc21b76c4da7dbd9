"""One file per paper."""
