"""What the server does with a total."""
