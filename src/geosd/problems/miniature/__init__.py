"""The prompts and the tokenizer of the miniature."""
