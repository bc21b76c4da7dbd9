"""Attacks on what their observer saw, scored against the truth, with the prior's own score beside."""
