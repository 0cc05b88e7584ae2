"""The context of a model: the most tokens that a prompt and its response may have together."""


class ContextError(ValueError):
    """A prompt and its response may be longer than what a model was made to read."""


def check_context(context: int | None, prompt: int, cap: int, reader: str = "the model") -> None:
    """Refuse a prompt that leaves too little of a model's context for a response, all in tokens.

    `context` is what the model was made to read (`max_position_embeddings`); None is any number.

    Raises:
        ContextError: They are too long together.
    """
    if context is not None and prompt + cap > context:
        raise ContextError(
            f"{reader} may have to read {prompt + cap} tokens, {prompt} of a prompt and {cap} of a"
            f" response, and its context is {context}.\nHint: lower response_tokens, leave out the"
            " problems with the longest questions or solutions, or take a model of a longer"
            " context (max_position_embeddings of its config.json)."
        )
