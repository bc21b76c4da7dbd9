"""Real devices: what a person's own machine keeps, decides, shows and sends."""
