"""Responses sampled as the trainer's arguments say, whatever the model's folder asks for."""

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn
from transformers import GenerationConfig

SPECIAL_TOKENS = ("bos_token_id", "eos_token_id", "pad_token_id", "decoder_start_token_id")


@contextmanager
def own_sampling(model: nn.Module) -> Iterator[None]:
    """Inside, nothing of a model's `generation_config` counts but its special tokens.

    transformers fills what a caller leaves open from the model's `generation_config.json`: `min_p`,
    `suppress_tokens`, `no_repeat_ngram_size` and many more. The policy that is sampled then is not
    the one that a loss differentiates. Outside, and in what is saved, the model has its own.
    """
    released = {}
    for module in model.modules():  # wrappers, as peft's, have one each
        if isinstance(module.__dict__.get("generation_config"), GenerationConfig):
            released[module] = module.generation_config
    try:
        for module, config in released.items():
            kept = {name: getattr(config, name, None) for name in SPECIAL_TOKENS}
            # top_k: transformers' own default, where nobody gives one, is 50.
            module.generation_config = GenerationConfig(**kept, do_sample=True, top_k=0)
        yield
    finally:
        for module, config in released.items():
            module.generation_config = config
