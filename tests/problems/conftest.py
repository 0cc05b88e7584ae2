"""The tokenizers of the paper's three families, as published, and a tiny one with a template."""

import gzip
import json
from functools import cache

import pytest
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit
from transformers import PreTrainedTokenizerFast

FAMILIES = {
    "qwen3": "qwen3",
    "deepseek_r1_distill_llama_8b": "deepseek_r1_distill_llama_8b.derived",
    "olmo3_7b_think": "olmo_dolma2",
}


@pytest.fixture(scope="session")
def published(shared_data):
    """A function from a family's name to its tokenizer with the chat template it came with."""
    special = json.loads((shared_data / "templates/special_tokens.json").read_text())

    @cache  # seconds each: a family has 150,000 words
    def tokenizer(family):
        packed = shared_data / f"tokenizers/{FAMILIES[family]}.tokenizer.json.gz"
        tokens = special[family]
        return PreTrainedTokenizerFast(
            tokenizer_object=Tokenizer.from_str(gzip.decompress(packed.read_bytes()).decode()),
            bos_token=tokens["bos"],
            eos_token=tokens["eos"],
            pad_token=tokens.get("pad", tokens["eos"]),
            chat_template=(shared_data / f"templates/{family}.jinja").read_text(),
            clean_up_tokenization_spaces=False,
        )

    return tokenizer


TINY = (
    "{{ bos_token }}{% for m in messages %} <user> {{ m.content }} <end>{% endfor %}"
    "{% if add_generation_prompt %} <bot>{% if enable_thinking is defined and not enable_thinking"
    " %} <think> </think>{% endif %}{% endif %}"
)


@pytest.fixture
def tiny():
    """A word-level tokenizer that adds its own beginning, as a template also does."""
    words = ["<unk>", "<s>", "<end>", "<user>", "<bot>", "<think>", "</think>", "one", "two", "is"]
    model = Tokenizer(WordLevel({word: i for i, word in enumerate(words)}, unk_token="<unk>"))
    model.pre_tokenizer = WhitespaceSplit()
    return PreTrainedTokenizerFast(
        tokenizer_object=model,
        unk_token="<unk>",
        bos_token="<s>",
        eos_token="<end>",
        additional_special_tokens=["<user>", "<bot>"],
        chat_template=TINY,
    )
