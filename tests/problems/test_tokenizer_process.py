"""Tokenizers whose patterns break down: one line that names them, and nothing that does not end."""

import os
import time

import pytest
from cases import limited_process
from tokenizers import Regex, Tokenizer, pre_tokenizers
from tokenizers.models import WordLevel
from transformers import PreTrainedTokenizerFast

from geosd.problems import tokenizer_process
from geosd.problems.tokenizer_process import TokenizerError, TokenizerProcess

WORDS = {"[UNK]": 0, "a": 1, "!": 2, "aa": 3, "<end>": 4}
SPLIT = r"a{1,2}|[\s\S]"
BACKTRACKS = r"(a|aa)+$|[\s\S]"


@pytest.fixture(scope="module", autouse=True)
def process():
    """A process with a limit of two seconds; what ends it is followed by the next one."""
    with limited_process(tokenizer_process, seconds=2) as quick:
        yield quick


def tokenizer(pattern=None, normalizer=None):
    made = Tokenizer(WordLevel(WORDS, unk_token="[UNK]"))
    if pattern is not None:
        made.pre_tokenizer = pre_tokenizers.Split(Regex(pattern), behavior="isolated")
    opened = PreTrainedTokenizerFast(
        tokenizer_object=made, eos_token="<end>", unk_token="[UNK]", name_or_path="base/x"
    )
    assert opened.name_or_path == "base/x"
    return opened


@pytest.mark.parametrize("text", ["", "aaa!", "a<end>!", "\u00e9 a\n"])
@pytest.mark.parametrize("pattern", [SPLIT, None])
def test_ids_are_those_of_the_tokenizer_itself(pattern, text, process):
    words = tokenizer(pattern)
    expected = words(text, add_special_tokens=False).input_ids
    process.stop()
    assert TokenizerProcess(words).ids(text) == expected
    assert (process.process is None) == (pattern is None)  # the library's own patterns run here


def test_settings_of_a_file_do_not_cut_or_fill_what_is_encoded(process):
    words = tokenizer(SPLIT)
    words.backend_tokenizer.enable_truncation(2)
    words.backend_tokenizer.enable_padding(length=1000)
    assert TokenizerProcess(words).ids("a!a!") == [1, 2, 1, 2]


def test_a_pattern_that_gives_up_is_one_line_that_names_the_tokenizer(capfd):
    words, text = TokenizerProcess(tokenizer(BACKTRACKS)), "a" * 60 + "!"
    assert words.ids("aaaa") == [0]
    for _ in range(2):
        with pytest.raises(
            TokenizerError, match="(?s)tokenizer of base/x .*61 characters.*retry-limit.*Hint: "
        ):
            words.ids(text)
    assert words.ids("!") == [2]
    assert capfd.readouterr() == ("", "")  # no trace of Rust


@pytest.mark.slow
def test_a_text_that_takes_for_ever_ends_and_the_next_one_is_encoded(process):
    # Quadratic at each place, and there below the limit at which the library gives up.
    words = TokenizerProcess(tokenizer(r"a*a*[b-z]|[\s\S]"))
    began = time.process_time()
    with pytest.raises(TokenizerError, match="(?s)base/x .*processor time.*Hint: "):
        words.ids("a" * 4000)
    assert time.process_time() - began < 1  # of this process
    assert words.ids("!") == [2]


class PanicException(BaseException):
    """As extensions in Rust raise it: no Exception."""


def test_a_panic_here_is_named_too(monkeypatch):
    words = tokenizer()

    def panics(*_, **__):
        raise PanicException("index out of bounds")

    for method, use in (("__call__", TokenizerProcess.ids), ("decode", TokenizerProcess.text)):
        monkeypatch.setattr(type(words), method, panics)
        with pytest.raises(TokenizerError, match="(?s)base/x .*PanicException: index.*Hint: "):
            use(TokenizerProcess(words), "a")


def test_a_program_that_was_forked_asks_a_process_of_its_own(process):
    """Two that write to one process would get each other's replies."""
    words = TokenizerProcess(tokenizer(SPLIT))
    words.ids("a")
    started = process.process.pid
    child = os.fork()
    if child == 0:
        right = words.ids("a!") == [1, 2] and process.process.pid != started
        process.stop()
        os._exit(0 if right else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert process.process.pid == started and words.ids("!") == [2]
