"""Rendering of a chat template in a process of its own: it is a program of the checkpoint.

transformers runs it in jinja's sandbox, which keeps it from files and from Python's attributes, and
lets it loop and grow without end. The process has limits on both, and is started once a program.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from geosd.problems.limited_process import LimitedProcess, serve

SECONDS = 10  # processor time of one prompt; published templates take a millisecond
PATIENCE = 120  # seconds by the clock, for a machine that is busy
MEGABYTES = 1024  # address space of the process; it begins with 185
LONGEST = 10_000_000  # characters of a prompt, more than any context holds
_PROCESS = LimitedProcess("geosd.problems.chat_template", SECONDS, PATIENCE)


class ChatTemplateError(ValueError):
    """A chat template that cannot be rendered, or not within its limits."""


def render(
    template: str, turns: Sequence[Mapping[str, str]], variables: Mapping[str, Any], owner: str
) -> str:
    """The text of a chat that waits for its answer, by the template of `owner`'s tokenizer.

    Each turn has role and content; `variables` are the template's, beside the turns.
    ChatTemplateError if it raises, or takes more time, memory or text than it may.
    """
    try:
        reply = _PROCESS.ask(template, turns, variables)
        if "text" in reply:
            return reply["text"]
        problem = reply["error"]
    except (TimeoutError, ChildProcessError):
        problem = f"took more than {SECONDS} s of processor time, or its process ended"
    raise ChatTemplateError(
        f"the chat template of {owner}: {problem}.\nHint: a template is a program of the checkpoint"
        " (chat_template.jinja, tokenizer_config.json); take that of the release, or mend it."
    )


def _render(template: str, turns: Sequence[Any], variables: Mapping[str, Any]) -> dict[str, str]:
    """The text, or the error, in the process."""
    from transformers.utils.chat_template_utils import render_jinja_template

    try:
        (text,), _ = render_jinja_template(
            [turns], chat_template=template, add_generation_prompt=True, **variables
        )
    except (Exception, MemoryError) as error:  # a template can raise whatever Python raises
        return {"error": f"{type(error).__name__}: {error}"[:500]}
    if len(text) > LONGEST:
        return {"error": f"it writes {len(text)} characters; allowed are {LONGEST}"}
    return {"text": text}


if __name__ == "__main__":
    serve(_render, MEGABYTES, "", [], {})
