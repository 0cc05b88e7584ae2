"""Prompts of chat models, through each model's own template.

A template is a program of the checkpoint. transformers runs it in jinja's sandbox, which keeps it
from files and from Python's attributes, and lets it loop and grow without end. So it is rendered in
a process of its own, which has limits on both, and is started once a program.

Prompts are part of what a result is named by, so a template must write the same words on each day
and machine. jinja and transformers offer it the clock (`strftime_now`), chance (`lipsum` and the
filter `random`) and objects that are printed with their address. The day is a setting, `data.date`;
what is left is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, NoReturn

from geosd.problems.limited_process import LimitedProcess, serve_limited_process
from geosd.problems.prompt_format import revealed_parts

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

# A sentence ends at . ! ? before white space, and at the end of a line.
_SENTENCE = re.compile(r".+?(?:[.!?](?=\s)\s*|\n+|\Z)", re.DOTALL)
_THOUGHTS = ("<think>", "</think>")
SECONDS = 10  # processor time of one prompt; published templates take a millisecond
PATIENCE = 120  # seconds by the clock, for a machine that is busy
MEGABYTES = 1024  # address space of the process; it begins with 185
LONGEST = 10_000_000  # characters of a prompt, more than any context holds
ANY_DATE = "2000-01-01"  # for checks of a template, which depend on no day
_ADDRESS = re.compile(r"\bat 0x[0-9a-f]{6,}", re.IGNORECASE)  # as Python prints an object
MEND = (
    "a template is a program of the checkpoint (chat_template.jinja, tokenizer_config.json); take"
    " that of the release, or mend it."
)
GIVE_DATE = (
    'give the day as data.date, such as date: "2024-07-26"; results of another day get folders of'
    " their own."
)
_PROCESS = LimitedProcess("geosd.problems.chat_prompts", SECONDS, PATIENCE)

PRIVILEGED = """\
{question}

Here is a reference solution to this problem:
=== Reference solution begins ===
{solution}
=== Reference solution ends ===

Read it until every step is clear. Then put it aside and solve the problem anew, with reasoning \
and words of your own.
{instruction}"""


@dataclass(eq=False)
class ChatPrompts:
    """Prompts of chat models: a question, and a solution with it, as one user turn.

    Templates drop what an assistant turn thought before `</think>`, so privileged context cannot be
    one. Markers of the tokenizer that are spelled out in a question or a solution are taken out: in
    the prompt they would be control tokens, and could end the turn.

    `instruction` follows every question; `thinking` says whether the model thinks first, where the
    template lets one choose; `examples`, questions and answers, stand before each prompt as earlier
    turns, the teacher's with each answer as reference solution too; `privileged` words the
    teacher's turn; `date` is the day that a template gets for today, as YYYY-MM-DD, and None
    refuses prompts of a template that asks. `turn_ends` and `opens_thought` are as in
    `PromptFormat`.

    Raises:
        ValueError: There is no chat template, it cannot be rendered, no token ends its answers, or
            thinking is off and it begins every answer with a thought.
    """

    tokenizer: PreTrainedTokenizerBase
    instruction: str
    thinking: bool
    examples: Sequence[tuple[str, str]] = ()
    privileged: str = PRIVILEGED
    date: str | None = None

    def __post_init__(self) -> None:
        """Check that the template can word these prompts."""
        if not self.tokenizer.chat_template:
            raise ValueError(
                "the model's tokenizer has no chat template; allowed are chat models.\nHint: a base"
                " model without one needs a data source with prompts of its own, such as 'search'."
            )
        added = {str(token): i for i, token in self.tokenizer.added_tokens_decoder.items()}
        added = {text: i for text, i in added.items() if text.strip()}
        self._markers = _any_of({*_THOUGHTS, *added})
        self.turn_ends = self._turn_ends(added)
        prompt = self._chat([], self._alone(""), self.date or ANY_DATE)
        self.opens_thought = prompt.rfind("<think>") > prompt.rfind("</think>")
        if self.opens_thought and not self.thinking:
            raise ValueError(
                "data.thinking is false for a role, but this model's template begins every answer"
                " with <think>; allowed is true.\nHint: set all of data.thinking to true for it."
            )

    def student(self, question: str) -> str:
        """The student's chat prompt: the question alone."""
        answered = [(self._alone(question), answer) for question, answer in self.examples]
        return self._chat(answered, self._alone(self._plain(question)), self.date)

    def teacher(self, question: str, solution: str) -> str:
        """The teacher's chat prompt: the question with a solution, whole or truncated."""
        answered = [(self._informed(*example), example[1]) for example in self.examples]
        last = self._informed(self._plain(question), self._plain(solution).strip())
        return self._chat(answered, last, self.date)

    def revealed_solution(self, solution: str, fraction: float) -> str:
        """The first sentences or lines of a solution, as many as `revealed_parts`; all at 1."""
        sentences = _SENTENCE.findall(solution)
        revealed = "".join(sentences[: revealed_parts(len(sentences), fraction)])
        return solution if fraction == 1 else revealed

    def _alone(self, question: str) -> str:
        return f"{question}\n{self.instruction}"

    def _informed(self, question: str, solution: str) -> str:
        return self.privileged.format(
            question=question, solution=solution, instruction=self.instruction
        )

    def _chat(self, answered: Sequence[tuple[str, str]], last: str, date: str | None) -> str:
        """A chat of answered turns and a last one that waits for its answer."""
        turns = [
            {"role": role, "content": text}
            for turn in answered
            for role, text in zip(("user", "assistant"), turn, strict=True)
        ]
        turns.append({"role": "user", "content": last})
        variables = {**self.tokenizer.special_tokens_map, "enable_thinking": self.thinking}
        owner = self.tokenizer.name_or_path or "the tokenizer"
        return render_chat(self.tokenizer.get_chat_template(), turns, variables, owner, date)

    def _turn_ends(self, added: Mapping[str, int]) -> tuple[int, ...]:
        """The first of the added tokens that the template writes behind an answer."""
        rendered = self._chat([("one", "ANSWER")], "NEXT", self.date or ANY_DATE)
        behind = rendered.partition("ANSWER")[2].partition("NEXT")[0]
        if found := _any_of(added).search(behind):
            return (added[found[0]],)
        if not behind.strip():
            return ()
        raise ValueError(
            f"the chat template of {self.tokenizer.name_or_path or 'the tokenizer'} ends an answer"
            f" with {behind.strip()[:40]!r}, which is no token of the tokenizer: no response could"
            " end but at its cap.\nHint: take the tokenizer that the template was made for, or let"
            " the template write {{ eos_token }} behind an answer."
        )

    def _plain(self, text: str) -> str:
        return self._markers.without(text)


class _Markers:
    """Some texts, of which the longest is found where several begin."""

    def __init__(self, texts: Iterable[str]) -> None:
        self.texts = tuple(sorted(sorted(texts), key=len, reverse=True))
        self.pattern = re.compile("|".join(map(re.escape, self.texts)) or r"(?!)")

    def search(self, text: str) -> re.Match[str] | None:
        """The first of them in a text."""
        return self.pattern.search(text)

    def without(self, text: str) -> str:
        """A text with all of them taken out, and those that taking one out makes.

        The time is linear, however they are nested: what made another is found at the end of what
        is kept so far, and nothing is read twice.
        """
        text = self.pattern.sub("", text)
        if self.search(text) is None:
            return text
        longest = len(self.texts[0])
        ends = frozenset(marker[-1] for marker in self.texts)
        kept: list[str] = []
        for character in text:
            kept.append(character)
            if character not in ends:
                continue
            tail = "".join(kept[-longest:])
            if tail.endswith(self.texts):
                found = next(marker for marker in self.texts if tail.endswith(marker))
                del kept[-len(found) :]
        return "".join(kept)


def _any_of(markers: Iterable[str]) -> _Markers:
    """Any of some texts, the longest first; of none, nothing."""
    return _Markers(markers)


class ChatTemplateError(ValueError):
    """A chat template that cannot be rendered, or not within its limits, or not twice alike."""


class _MachineError(Exception):
    """A template's use of clock or chance, and a hint."""


def render_chat(
    template: str,
    turns: Sequence[Mapping[str, str]],
    variables: Mapping[str, Any],
    owner: str,
    date: str | None = None,
) -> str:
    """The text of a chat that waits for its answer, by the template of `owner`'s tokenizer.

    Each turn has role and content; `variables` are the template's, besides the turns; `date` is the
    day that it gets for today. ChatTemplateError if it raises, takes more time, memory or text than
    it may, or takes something from the clock, from chance or from the machine's memory.
    """
    hint = MEND
    try:
        reply = _PROCESS.ask(template, turns, variables, date)
        if "text" in reply:
            return reply["text"]
        problem, hint = reply["error"], reply["hint"]
    except (TimeoutError, ChildProcessError):
        problem = f"took more than {SECONDS} s of processor time, or its process ended"
    raise ChatTemplateError(f"the chat template of {owner}: {problem}.\nHint: {hint}")


def _render(
    template: str, turns: Sequence[Any], variables: Mapping[str, Any], date: str | None
) -> dict[str, str]:
    """The text, or the error and a hint, in the process.

    The compiled template is rendered here, as transformers' `render_jinja_template` does: since
    5.24 that turns each function among the variables into text, and the clock would come back.
    """
    from jinja2.filters import FILTERS
    from transformers.utils.chat_template_utils import _compile_jinja_template

    def strftime_now(form: str) -> str:
        if date is None:
            raise _MachineError("it takes the date of today (strftime_now)", GIVE_DATE)
        return datetime.fromisoformat(date).strftime(form)

    FILTERS["random"] = _by_chance
    fixed = {"strftime_now": strftime_now, "lipsum": _by_chance}
    try:
        text = _compile_jinja_template(template).render(
            messages=turns,
            tools=None,
            documents=None,
            add_generation_prompt=True,
            **fixed,
            **variables,
        )
    except _MachineError as error:
        problem, hint = error.args
        return {"error": problem, "hint": hint}
    except (Exception, MemoryError) as error:  # a template can raise whatever Python raises
        return {"error": f"{type(error).__name__}: {error}"[:500], "hint": MEND}
    if len(text) > LONGEST:
        return {"error": f"it writes {len(text)} characters; allowed are {LONGEST}", "hint": MEND}
    given = [template, *(turn["content"] for turn in turns), *map(str, variables.values())]
    if _ADDRESS.search(text) and not any(map(_ADDRESS.search, given)):
        return {"error": "it writes an address of the machine's memory", "hint": MEND}
    return {"text": text}


def _by_chance(*_: Any, **__: Any) -> NoReturn:
    """In place of what draws at random."""
    raise _MachineError("it draws at random (lipsum, or the filter random)", MEND)


if __name__ == "__main__":
    serve_limited_process(_render, MEGABYTES, "", [], {}, None)
