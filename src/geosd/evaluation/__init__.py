"""A checkpoint's answers on benchmarks, and models' distributions at the states that they visit."""
