"""Prompts that other trainers render, where the chat template takes the date of today."""

from types import SimpleNamespace

import pytest

from geosd.integrations.same_each_day import check_same_each_day

TURNS = [{"role": "user", "content": "1+1?"}]
# As in Llama 3.2: a date that the caller gives stands in place of today's.
LLAMA = (
    "{% if not date_string is defined %}{% set date_string = strftime_now('%d %b %Y') %}{% endif %}"
    "{{ date_string }} {{ messages[0].content }}"
)
GRANITE = (
    "{% if messages[0].role != 'system' %}{{ strftime_now('%B %d, %Y') }}{% endif %}"
    "{{ messages[0].content }}"
)
SYSTEM = [{"role": "system", "content": "Be brief."}, *TURNS]


def check(template, turns=TURNS, **variables):
    tokenizer = SimpleNamespace(
        chat_template=template,
        get_chat_template=lambda: template,
        special_tokens_map={"eos_token": "</s>"},
        name_or_path="some/model",
    )
    check_same_each_day(tokenizer, turns, variables, "chat_template_kwargs")


@pytest.mark.parametrize(
    "template", [LLAMA, GRANITE, "{{ [1, 2] | random }}{{ messages }}", "{{ lipsum() }}"]
)
def test_a_prompt_that_changes_is_refused_with_the_argument_to_set(template):
    with pytest.raises(ValueError, match="(?s)template of some/model: .*Hint: .*chat_template_kwa"):
        check(template)


def test_a_prompt_that_holds_its_own_date_is_fine():
    check(LLAMA, date_string="26 Jul 2024")
    check(GRANITE, turns=SYSTEM)
    check("{{ messages[0].content }}{{ eos_token }}")
    check(None)
    check("{# strftime_now is not called #}{{ messages[0].content }}")


def test_only_the_chat_itself_counts():
    with pytest.raises(ValueError, match="strftime_now"):
        check(GRANITE, turns=TURNS * 2)
