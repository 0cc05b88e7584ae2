"""Origins of a result, and whether it is still current."""
