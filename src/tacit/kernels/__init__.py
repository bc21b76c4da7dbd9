"""Fused CPU kernels, each beside its plain twin."""
