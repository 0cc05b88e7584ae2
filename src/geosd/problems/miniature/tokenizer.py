"""The miniature's tokenizer: one token a digit, an operator or a marker."""

from __future__ import annotations

from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit
from transformers import PreTrainedTokenizerFast

PAD, END, UNKNOWN = "<pad>", "<eos>", "<unk>"
MARKERS = ("Q:", "R:", "S:", "A:", "=", ";")
OPERATORS = ("+", "-", "*")
DIGITS = tuple("0123456789")
VOCABULARY = (PAD, END, UNKNOWN, *MARKERS, *OPERATORS, *DIGITS)


def build_tokenizer() -> PreTrainedTokenizerFast:
    """The word-level tokenizer of the miniature, which is saved with every model of it.

    It maps words between blanks to their place in `VOCABULARY` and back; a word that is not in it
    becomes `<unk>`, and is never dropped in silence.

    Example:
        >>> tokenizer = build_tokenizer()
        >>> tokenizer.decode(tokenizer("7 + 8 = 5").input_ids)
        '7 + 8 = 5'
    """
    places = {word: place for place, word in enumerate(VOCABULARY)}
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
