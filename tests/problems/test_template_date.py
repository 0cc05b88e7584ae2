"""What a chat template takes from clock, chance or machine: fixed by a setting, or refused."""

import pytest
from cases import python

from geosd.problems.chat_prompts import ChatPrompts, ChatTemplateError, render_chat
from geosd.problems.encoding import encoding_of

TURNS = [{"role": "user", "content": "one"}]
TODAY = "{{ 'Today: ' + strftime_now('%d %b %Y') + ' ' }}"


@pytest.fixture
def dated(tiny):
    """The tiny tokenizer with a template that writes today's date first."""
    tiny.chat_template, tiny.name_or_path = TODAY + tiny.chat_template, "base/x"
    return tiny


def encoding(tokenizer, generation=None, **more):
    recipe = {"source": "dapo-math", "thinking": True, **more}
    return encoding_of(recipe, tokenizer, generation)


def test_a_template_that_asks_for_the_date_needs_the_setting(dated):
    for ask in (ChatPrompts(dated, "is", True).student, lambda _: encoding(dated)):
        with pytest.raises(
            ChatTemplateError, match="(?s)base/x: .*strftime_now.*Hint: .*data.date"
        ):
            ask("one")


def test_the_setting_is_the_day_of_every_prompt(dated):
    opened = encoding(dated, date="2024-07-26")
    for prompt in (opened.prompts.student("one"), opened.teacher_prompts.teacher("one", "two")):
        assert prompt.startswith("Today: 26 Jul 2024 ")
    assert opened.prompts.student("one").partition("2024 ")[2] == (
        opened.prompts.student("one").removeprefix("Today: 26 Jul 2024 ")
    )


def test_a_template_that_asks_for_no_date_needs_no_setting(tiny):
    plain = encoding(tiny).prompts.student("one")
    assert encoding(tiny, date="2024-07-26").prompts.student("one") == plain
    # As Llama 3.2's: a date of its own stands where no clock is offered; here one is.
    tiny.chat_template = (
        "{% if date_string is defined %}" + TODAY + "{% endif %}" + (tiny.chat_template)
    )
    assert encoding(tiny).prompts.student("one") == plain


@pytest.mark.parametrize(
    ("template", "words"),
    [
        ("{{ lipsum(n=1) }}", "at random"),
        ("{{ [1, 2, 3] | random }}", "at random"),
        ("{{ joiner() }}", "address"),
        ("{{ messages.count | string | upper }}", "address"),
        ("{{ strftime_now }}", "address"),
        ("{% set clock = strftime_now %}{{ clock('%H') }}", "strftime_now"),
        ("{% macro m() %}{{ strftime_now('%H') }}{% endmacro %}{{ m() }}", "strftime_now"),
    ],
)
def test_what_is_not_twice_alike_is_refused(template, words):
    with pytest.raises(ChatTemplateError, match=f"(?s)template of x: .*{words}.*Hint: "):
        render_chat(template, TURNS, {}, "x")


def test_an_address_that_a_question_spells_out_is_its_own():
    turns = [{"role": "user", "content": "What lies at 0x7fffdeadbeef?"}]
    assert render_chat("{{ messages[0].content }}", turns, {}, "x") == turns[0]["content"]


@pytest.mark.slow
def test_the_words_are_the_same_in_every_time_zone_and_process(monkeypatch):
    """In a process of its own each: the one that renders is started once a program."""
    template = (
        "{{ strftime_now('%Y-%m-%d %H:%M:%S|%s|%Z|%A|%j|') }}"
        "{{ (names.keys() - [1]) | join(' ') }}"  # a set, which has an order of its own
    )
    names = {f"name{i}": i for i in range(20)}
    arguments = (template, TURNS, {"names": names}, "x", "2024-07-26")
    program = (
        f"from geosd.problems.chat_prompts import render_chat\nprint(render_chat(*{arguments!r}))"
    )
    printed = set()
    for zone in ("Etc/GMT+12", "Etc/GMT-14"):
        monkeypatch.setenv("TZ", zone)
        printed.add(python("-c", program).stdout)
    (text,) = printed
    *day, order = text.strip().split("|")
    assert day == ["2024-07-26 00:00:00", "1721952000", "", "Friday", "208"]
    assert set(order.split()) == set(names)
