"""Drives rounds: the simulation, run folders, resuming."""
