"""What a result was made from, and whether it is still current."""
