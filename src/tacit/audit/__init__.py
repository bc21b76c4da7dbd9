"""Attacks on finished runs: each is handed what its observer saw, and the truth only to be scored."""
