"""How messages travel."""
