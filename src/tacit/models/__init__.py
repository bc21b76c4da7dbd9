"""Recommender models."""
