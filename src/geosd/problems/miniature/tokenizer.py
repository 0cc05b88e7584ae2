"""The miniature's tokenizer: one token a number, an operator or a marker."""

from __future__ import annotations

from collections.abc import Sequence

from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit
from transformers import PreTrainedTokenizerFast

PAD, END, UNKNOWN = "<pad>", "<eos>", "<unk>"
SPECIAL = (PAD, END, UNKNOWN)
"""The first words of every vocabulary."""


def build_tokenizer(vocabulary: Sequence[str]) -> PreTrainedTokenizerFast:
    """The word-level tokenizer of the miniature, which is saved with every model of it.

    It maps words between blanks to their place in the vocabulary and back; a word that is not in it
    becomes `<unk>`, and is never dropped in silence.

    Args:
        vocabulary: All words of a world; the first three are `SPECIAL`.

    Example:
        >>> tokenizer = build_tokenizer([*SPECIAL, "7", "+", "8"])
        >>> tokenizer.decode(tokenizer("7 + 8").input_ids)
        '7 + 8'
    """
    places = {word: place for place, word in enumerate(vocabulary)}
    words = Tokenizer(WordLevel(places, unk_token=UNKNOWN))
    words.pre_tokenizer = WhitespaceSplit()
    return PreTrainedTokenizerFast(
        tokenizer_object=words,
        pad_token=PAD,
        eos_token=END,
        unk_token=UNKNOWN,
        padding_side="left",
        clean_up_tokenization_spaces=False,
    )
