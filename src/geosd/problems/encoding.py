"""The one place where text meets the tokenizer: prompts and solutions as token ids, ids as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from geosd.problems.chat_prompts import ChatPrompts
from geosd.problems.prompt_format import PromptFormat
from geosd.problems.records import Problem
from geosd.problems.sources import get_data_source
from geosd.problems.tokenizer_process import TokenizerProcess

if TYPE_CHECKING:
    from transformers import GenerationConfig, PreTrainedTokenizerBase


def end_tokens(generation: GenerationConfig) -> list[int]:
    """The tokens that end a response by a model's generation configuration, which may name none."""
    ends = generation.eos_token_id
    if ends is None:
        return []
    return list(ends) if isinstance(ends, list | tuple) else [ends]


class Encoding:
    """Prompts and solutions as token ids, by a model's tokenizer, and ids as text.

    Prompt and response are tokenized on their own and joined as ids. In joined text, a tokenizer
    could fuse the prompt's last character with the response's first, and student and teacher would
    no longer score the same tokens. Special tokens that belong to a prompt are in its text: a chat
    template writes the beginning of sequence itself, and the tokenizer adds none.

    Responses also end where the model's `generation` settings say to stop: Qwen3 and Olmo 3 end
    turns with one token and conversations with another. ValueError where no token ends a response.

    `teacher_prompts` are those of a teacher that thinks where the student, `prompts`, does not, or
    the reverse. They end differently: of Qwen3 that does not think, after an empty thought.
    """

    def __init__(
        self,
        tokenizer: PreTrainedTokenizerBase,
        prompts: PromptFormat,
        generation: GenerationConfig | None = None,
        teacher_prompts: PromptFormat | None = None,
    ) -> None:
        self.tokenizer = tokenizer
        self._encoder = TokenizerProcess(tokenizer)
        self.prompts = prompts
        self.teacher_prompts = teacher_prompts or prompts
        stops = [] if generation is None else end_tokens(generation)
        turn_ends = getattr(prompts, "turn_ends", ())
        ends = dict.fromkeys([tokenizer.eos_token_id, *stops, *turn_ends])
        self.end_ids = tuple(end for end in ends if end is not None)
        """Tokens that end a response; the first is what a response is given to end with."""
        # Where the end of a thought is a special token, the text of a response cannot show it.
        self.opens_thought = getattr(prompts, "opens_thought", False) and "</think>" in self.text(
            self._ids("</think>")
        )
        """Whether prompts open a thought that the text of a response must close."""
        if not self.end_ids:
            raise ValueError(
                f"no token ends a response of {tokenizer.name_or_path or 'the tokenizer'}: neither"
                " tokenizer nor generation_config.json names one.\nHint: name it as eos_token in"
                " tokenizer_config.json."
            )

    @property
    def pad_id(self) -> int:
        """Token id that pads encoded rows; it is masked wherever it stands."""
        pad = self.tokenizer.pad_token_id
        return self.end_ids[0] if pad is None else pad

    def student(self, problem: Problem) -> list[int]:
        """Token ids of the student's prompt, the question alone: x."""
        return self._ids(self.prompts.student(problem.question))

    def teacher(self, problem: Problem, solution: str, privilege: float = 1.0) -> list[int]:
        """Token ids of the teacher's prompt, (x, c), with a fraction `privilege` of c."""
        revealed = self.teacher_prompts.revealed_solution(solution, privilege)
        return self._ids(self.teacher_prompts.teacher(problem.question, revealed))

    def solution_only(self, solution: str, privilege: float = 1.0) -> list[int]:
        """Token ids of the teacher's prompt with an empty question: a part of c, and no x."""
        revealed = self.teacher_prompts.revealed_solution(solution, privilege)
        return self._ids(self.teacher_prompts.teacher("", revealed))

    def response(self, solution: str) -> list[int]:
        """Token ids of a solution as a response, end of sequence included."""
        return [*self._ids(solution), self.end_ids[0]]

    def text(self, ids: Sequence[int]) -> str:
        """Token ids of a response decoded to text, without special tokens."""
        return self._encoder.text(ids)

    def _ids(self, text: str) -> list[int]:
        return self._encoder.ids(text)


def encoding_of(
    settings: Mapping[str, Any],
    tokenizer: PreTrainedTokenizerBase,
    generation: GenerationConfig | None,
) -> Encoding:
    """The encoding of a job's prompts for one model, by the job's settings.

    The settings name the data source as `source`. `thinking` says whether the model thinks before
    it answers, and is a mapping where the roles differ. `wording` has words in place of the
    source's own, see `data.wording`, and `date` the day that a chat template gets for today, see
    `data.date`; both may be missing. ValueError where a template asks for the day, and none is
    given.
    """
    source, thinking = get_data_source(settings["source"]), settings["thinking"]
    chosen = {**(settings.get("wording") or {}), "date": settings.get("date")}
    given = {name: value for name, value in chosen.items() if value is not None}
    student, teacher = (
        source.prompts(tokenizer, thinking if isinstance(thinking, bool) else thinking[role])
        for role in ("student", "teacher")
    )
    if given:
        student, teacher = (replace(prompts, **given) for prompts in (student, teacher))
    for prompts in (student, teacher):
        if isinstance(prompts, ChatPrompts):
            prompts.student("")  # what stops every prompt is said before the first
    return Encoding(tokenizer, student, generation, teacher)
