"""Models of random weights and prompts of random letters, the same for every engine.

A token is a letter: a prompt of a number of letters has a known number of tokens. Imports torch,
transformers and tokenizers alone, so that TRL trains the same files.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path

import torch
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import (
    GenerationConfig,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    Qwen3Config,
    Qwen3ForCausalLM,
)

SPECIAL = ("<pad>", "<bos>", "<eos>", "<unk>", "<|im_start|>", "<|im_end|>")
LETTERS = ("\n", *(chr(code) for code in range(32, 127)))
PAD, EOS = SPECIAL.index("<pad>"), SPECIAL.index("<eos>")
PLAIN = len(SPECIAL) + 40  # the id of an ordinary letter
TEMPLATE = (
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>'"
    " + '\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
TEMPLATE_TOKENS = 19  # of a single user's turn and the beginning of the answer


@dataclass(frozen=True)
class Shape:
    """The dimensions of a model of Qwen3's architecture with tied embeddings."""

    hidden: int
    layers: int
    vocabulary: int = 128
    head: int = 32

    @property
    def heads(self) -> int:
        """Query heads."""
        return self.hidden // self.head

    @property
    def kv_heads(self) -> int:
        """Key and value heads."""
        return max(1, self.heads // 2)

    @property
    def ffn(self) -> int:
        """Width of the feed-forward layer."""
        return 3 * self.hidden

    @property
    def projections(self) -> int:
        """Parameters of the seven projections of all layers."""
        queries, keys = self.heads * self.head, self.kv_heads * self.head
        return self.layers * self.hidden * (2 * queries + 2 * keys + 3 * self.ffn)

    @property
    def parameters(self) -> int:
        """Projections and embedding; norms are left out."""
        return self.projections + self.hidden * self.vocabulary


SHAPES = {
    "0.8M": Shape(hidden=128, layers=4),
    "4.8M": Shape(hidden=256, layers=6),
    "tiny": Shape(hidden=32, layers=1, head=16),
}


def tokenizer(vocabulary: int = 128) -> PreTrainedTokenizerFast:
    """One token a letter, filled up to a vocabulary with tokens that no text has."""
    ids = {token: number for number, token in enumerate((*SPECIAL, *LETTERS))}
    while len(ids) < vocabulary:
        ids[f"<x{len(ids)}>"] = len(ids)
    letters = Tokenizer(models.WordLevel(ids, unk_token="<unk>"))
    letters.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), behavior="isolated")
    letters.decoder = decoders.Fuse()
    made = PreTrainedTokenizerFast(
        tokenizer_object=letters,
        pad_token="<pad>",
        bos_token="<bos>",
        eos_token="<eos>",
        unk_token="<unk>",
        additional_special_tokens=["<|im_start|>", "<|im_end|>"],
        padding_side="left",
        model_max_length=4096,
        clean_up_tokenization_spaces=False,
    )
    made.chat_template = TEMPLATE
    return made


def model(shape: Shape) -> PreTrainedModel:
    """A model of random weights, in fp32, the same on every call."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return Qwen3ForCausalLM(
            Qwen3Config(
                vocab_size=shape.vocabulary,
                hidden_size=shape.hidden,
                num_hidden_layers=shape.layers,
                num_attention_heads=shape.heads,
                num_key_value_heads=shape.kv_heads,
                head_dim=shape.head,
                intermediate_size=shape.ffn,
                max_position_embeddings=4096,
                tie_word_embeddings=True,
                pad_token_id=PAD,
                bos_token_id=SPECIAL.index("<bos>"),
                eos_token_id=EOS,
                initializer_range=0.05,
                dtype="float32",
            )
        ).eval()


def save(shape: Shape, folder: Path) -> Path:
    """Model and tokenizer in a folder that any engine opens."""
    model(shape).save_pretrained(folder)
    tokenizer(shape.vocabulary).save_pretrained(folder)
    return folder


def texts(count: int, tokens: int, seed: int = 0) -> list[str]:
    """Random letters: what a user asks, so that the templated prompt has so many tokens."""
    draw = random.Random(seed)
    length = max(1, tokens - TEMPLATE_TOKENS)
    return ["".join(chr(draw.randrange(33, 127)) for _ in range(length)) for _ in range(count)]


def prompt_ids(count: int, tokens: int, vocabulary: int = 128, seed: int = 0) -> list[list[int]]:
    """Random prompts of exactly so many tokens."""
    draw = random.Random(seed)
    low, high = len(SPECIAL), min(vocabulary, len(SPECIAL) + len(LETTERS))
    return [[draw.randrange(low, high) for _ in range(tokens)] for _ in range(count)]


def responses_of_length(new: int, vocabulary: int) -> GenerationConfig:
    """generate()'s settings for responses of exactly so many tokens, at temperature 1."""
    return GenerationConfig(
        do_sample=True,
        temperature=1.0,
        top_k=0,
        top_p=1.0,
        max_new_tokens=new,
        eos_token_id=vocabulary,  # no token ends a response
        pad_token_id=PAD,
    )
