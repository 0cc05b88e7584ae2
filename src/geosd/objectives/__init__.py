"""What a method is: one objective, registered by name."""
