"""The prompts and the tokenizer of both miniature worlds, chains and search."""
