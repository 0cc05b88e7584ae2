"""What samples of a checkpoint score, and what models say at the states that they visit."""
