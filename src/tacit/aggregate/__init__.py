"""From deliveries to one total."""
