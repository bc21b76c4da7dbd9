"""What was claimed and what crossed, added up."""
