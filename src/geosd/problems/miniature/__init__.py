"""The miniature's world: chains of operations modulo 10, their prompts, tokens and documents."""
