"""The miniature world's chains and documents, and the prompts and tokenizer of both worlds."""
