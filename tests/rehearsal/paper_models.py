"""The paper's seven models in two layers and small widths, with their published tokenizers.

Grouped queries, head widths other than d / heads, tied embeddings, sliding windows, rope scaling,
vocabulary and chat template are those of the released checkpoints.
"""

from __future__ import annotations

import gzip
import json
from functools import cache
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    PreTrainedModel,
    PreTrainedTokenizerFast,
)

QWEN = ("qwen3", "qwen3")
PUBLISHED = {
    "qwen3-1.7b": ("Qwen3-1.7B", *QWEN),
    "qwen3-4b": ("Qwen3-4B", *QWEN),
    "qwen3-8b": ("Qwen3-8B", *QWEN),
    "qwen3-14b": ("Qwen3-14B", *QWEN),
    "qwen3-32b": ("Qwen3-32B", *QWEN),
    "olmo-3-7b-think": ("Olmo-3-7B-Think", "olmo3_7b_think", "olmo_dolma2"),
    "ds-r1-llama-8b": (
        "DeepSeek-R1-Distill-Llama-8B",
        "deepseek_r1_distill_llama_8b",
        "deepseek_r1_distill_llama_8b.derived",
    ),
}
"""Model -> its files in the shared data: configuration, chat template, tokenizer."""


def published_config(shared: Path, name: str) -> dict[str, Any]:
    """The published configuration of a model, whole."""
    return json.loads((shared / f"configs/{PUBLISHED[name][0]}.config.json").read_text())


def narrow(
    published: dict[str, Any], narrower: int, fewer_heads: int, head_width: int | None
) -> dict[str, Any]:
    """A published configuration, two layers deep.

    Args:
        narrower: Divides d and d_ff.
        fewer_heads: Divides the heads of queries and of keys.
        head_width: Width of a head; None divides the published one by `fewer_heads`.
    """
    left_out = ("_note", "architectures", "torch_dtype")
    config = {key: value for key, value in published.items() if key not in left_out}
    d, heads = config["hidden_size"], config["num_attention_heads"]
    config |= {
        "hidden_size": d // narrower,
        "intermediate_size": config["intermediate_size"] // narrower,
        "num_hidden_layers": 2,
        "num_attention_heads": heads // fewer_heads,
        "num_key_value_heads": config["num_key_value_heads"] // fewer_heads,
        "head_dim": head_width or (config.get("head_dim") or d // heads) // fewer_heads,
    }
    if "layer_types" in config:  # one of each
        config |= {"layer_types": ["sliding_attention", "full_attention"], "sliding_window": 32}
    return config


@cache
def unpacked(path: Path) -> Tokenizer:
    """A published tokenizer; five of the models share one."""
    return Tokenizer.from_str(gzip.decompress(path.read_bytes()).decode())


def load_narrow(
    shared: Path, name: str, narrower: int, fewer_heads: int, head_width: int | None
) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    """A narrow model with random weights (float32, seed 0), and its published tokenizer."""
    _, family, tokenizer_name = PUBLISHED[name]
    special = json.loads((shared / "templates/special_tokens.json").read_text())[family]
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=unpacked(shared / f"tokenizers/{tokenizer_name}.tokenizer.json.gz"),
        bos_token=special["bos"],
        eos_token=special["eos"],
        pad_token=special.get("pad"),
        chat_template=(shared / f"templates/{family}.jinja").read_text(),
    )
    config = narrow(published_config(shared, name), narrower, fewer_heads, head_width)
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model(**config))
    model.generation_config.eos_token_id = special.get("generation_eos_ids", special["eos_id"])
    return model, tokenizer
