"""What happens to an update before it leaves a device."""
