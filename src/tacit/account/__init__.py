"""Claims about privacy, and the accountants that put a number on them."""
