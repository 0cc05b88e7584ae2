"""How an answer is found in a response, read, and judged by the right answer."""
