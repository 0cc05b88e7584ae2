"""Prompts of other trainers, which render them themselves: refused where they change by day."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from geosd.problems.chat_prompts import ChatTemplateError, render_chat

# What jinja and transformers offer a template of clock and chance.
_CHANGES = re.compile(r"strftime_now|lipsum|random")


def check_same_each_day(
    tokenizer: Any, turns: Sequence[Mapping[str, Any]], variables: Mapping[str, Any], setting: str
) -> None:
    """Refuse a chat whose prompt depends on the day or on chance.

    A training that is resumed tomorrow would read other prompts. `variables` are those that the
    trainer gives the template, by its argument `setting`.

    Raises:
        ValueError: The tokenizer's template takes the date of today for these turns, or draws at
            random.
    """
    if not getattr(tokenizer, "chat_template", None):
        return
    template = tokenizer.get_chat_template()
    if not _CHANGES.search(template):
        return
    owner = getattr(tokenizer, "name_or_path", "") or "the tokenizer"
    special_tokens = getattr(tokenizer, "special_tokens_map", {})  # a processor has none
    try:
        render_chat(template, turns, {**special_tokens, **variables}, owner)
    except ChatTemplateError as error:
        problem = str(error).partition("\nHint:")[0]
        raise ValueError(
            f"{problem}\nHint: a prompt must be the same on each day. Give the template its date by"
            f' {setting}, such as {{"date_string": "26 Jul 2024"}} for Llama 3.2, or write the date'
            " into the template."
        ) from None
