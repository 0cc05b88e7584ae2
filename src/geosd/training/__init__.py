"""The one loop that trains every method."""
