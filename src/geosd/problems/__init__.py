"""What is asked, what counts as an answer, and how it is put to a model."""
