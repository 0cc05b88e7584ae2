"""Chat templates are programs of checkpoints: each ends within its limits, or is refused."""

import os
import time
from pathlib import Path

import pytest
from cases import limited_process

from geosd.problems import chat_prompts
from geosd.problems.chat_prompts import ChatPrompts, ChatTemplateError, render_chat

TURNS = [{"role": "user", "content": "one"}, {"role": "assistant", "content": "two \ud800 \n"}]
LOOP = "{% for i in range(100000) %}{% for j in range(100000) %}x{% endfor %}{% endfor %}"
HOSTILE = {
    "loops": (LOOP, "processor time"),
    "loops that write nothing": (LOOP.replace("x", "{% set k = i * j %}"), "processor time"),
    "a power": ("{{ 9 ** (9 ** 9) % 7 }}", "processor time"),
    "doubling": (
        "{% set n = namespace(x='x' * 1000) %}{% for i in range(99) %}{% set n.x = n.x ~ n.x %}"
        "{% endfor %}{{ n.x }}",
        "(MemoryError|processor time)",  # a machine slow at giving memory reaches this limit first
    ),
    "a long text": ("{{ 'x' * 20000000 }}", "20000000 characters"),
    "a range": ("{% for i in range(10000000000) %}x{% endfor %}", "OverflowError"),
    "recursion": ("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "RecursionError"),
    "its own error": ("{{ raise_exception('no system turn') }}", "no system turn"),
    "what is not there": ("{{ messages[7].content.x }}", "UndefinedError"),
    "no template": ("{% for %}", "TemplateSyntaxError"),
    "a way out": ("{{ messages.__class__.__mro__[1].__subclasses__() }}", "SecurityError"),
}


@pytest.fixture(scope="module", autouse=True)
def process():
    """A process with a limit of two seconds; what ends it is followed by the next one."""
    with limited_process(chat_prompts, seconds=2) as quick:
        yield quick


@pytest.mark.slow
@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_template_ends_and_names_the_checkpoint(kind):
    template, words = HOSTILE[kind]
    began = time.process_time()
    with pytest.raises(ChatTemplateError, match=f"(?s)template of base/x: .*{words}.*Hint: "):
        render_chat(template, TURNS, {}, "base/x")
    assert time.process_time() - began < 1  # of this process
    assert render_chat("{{ messages[1].content }}", TURNS, {}, "base/x") == TURNS[1]["content"]


@pytest.mark.slow
def test_each_prompt_has_the_whole_time(process):
    """The limit is a prompt's: many that take a moment each are no reason to end."""
    slow = "{% for i in range(100000) %}{% for j in range(20) %}{% endfor %}{% endfor %}done"

    def used():
        stat = Path(f"/proc/{process.process.pid}/stat").read_text()
        return sum(map(int, stat.rpartition(")")[2].split()[11:13])) / os.sysconf("SC_CLK_TCK")

    assert render_chat(slow, TURNS, {}, "x") == "done"
    before = used()
    while used() < before + process.seconds + 0.5:
        assert render_chat(slow, TURNS, {}, "x") == "done"


def test_a_process_that_was_killed_is_started_again(process):
    assert render_chat("a", TURNS, {}, "x") == "a"
    process.process.kill()
    process.process.wait()
    assert render_chat("b", TURNS, {}, "x") == "b"


def test_a_prompt_is_what_transformers_writes(tiny):
    for thinking in (True, False):
        text = ChatPrompts(tiny, "is", thinking).student("one")
        turns = [{"role": "user", "content": "one\nis"}]
        expected = tiny.apply_chat_template(
            turns, tokenize=False, add_generation_prompt=True, enable_thinking=thinking
        )
        assert text == expected


@pytest.mark.slow
def test_prompts_name_the_checkpoint_whose_template_does_not_end(tiny):
    tiny.chat_template, tiny.name_or_path = LOOP, "results/base/x"
    with pytest.raises(ValueError, match="(?s)the chat template of results/base/x: .*Hint: "):
        ChatPrompts(tiny, "is", thinking=True)
