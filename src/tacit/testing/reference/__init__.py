"""Slow loops written from the papers, one user and one item at a time: what the fast code must equal."""
