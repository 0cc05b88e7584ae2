"""Judge a response: extract its final answer, normalize it, compare it with the gold answer."""
