"""What a checkpoint answers on benchmarks, and what models say at the states that they visit."""
