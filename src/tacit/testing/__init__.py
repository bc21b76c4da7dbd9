"""Contracts and oracles for tests; nothing else imports them."""
