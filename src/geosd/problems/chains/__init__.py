"""The chains world: its questions, and the documents of its base models."""
