"""Student and teacher predict the same token at every position of a response.

The reference is naive: each prefix is run through the model by itself, without padding, without a
cache, without packing, and its last logits are the prediction of the next token.
"""

import pytest
import torch

from geosd.models.tiny_models import build_tiny_model
from geosd.problems.encoding import Encoding
from geosd.problems.miniature import MiniaturePrompts, build_miniature_tokenizer
from geosd.problems.records import Problem
from geosd.problems.search.corpora import VOCABULARY
from geosd.training.packing import pack
from geosd.training.policy import policy_response_logits

SOLUTIONS = ["3 2 5 ok 5 6 ; 11 2 5 ok A: 11", "7 3 4 ; 9 5 6 ok A: 9"]
PROBLEMS = [
    Problem("a", "train", "* 6 + 3 = 5 , * 7 + 1 = 14", "11"),
    Problem("b", "train", "* 13 + 1 = 6 , * 3 + 2 = 13", "9"),
]
RESPONSES = ["11 2 5 ok A: 11", "4 4 5 ; 7 11 12 ; 9 5 6 ok 11 13 ok A: 9"]


@pytest.fixture(params=["mini-qwen3-xs", "mini-olmo3", "mini-llama"])
def model(request):
    tokenizer = build_miniature_tokenizer(VOCABULARY)
    model = build_tiny_model(
        request.param, len(tokenizer), tokenizer.pad_token_id, tokenizer.eos_token_id, seed=1
    )
    return model.double().eval()


@pytest.fixture
def prompts_and_responses():
    encoding = Encoding(build_miniature_tokenizer(VOCABULARY), MiniaturePrompts())
    student = [encoding.student(problem) for problem in PROBLEMS]
    teacher = [
        encoding.teacher(problem, solution)
        for problem, solution in zip(PROBLEMS, SOLUTIONS, strict=True)
    ]
    return encoding, student, teacher, [encoding.response(text) for text in RESPONSES]


@torch.no_grad()
def naive_logits(model, prompts, responses):
    """Next-token logits [N, V], one whole forward pass per position."""
    rows = []
    for prompt, response in zip(prompts, responses, strict=True):
        for position in range(len(response)):
            prefix = torch.tensor([[*prompt, *response[:position]]])
            rows.append(model(prefix).logits[0, -1])
    return torch.stack(rows)


def test_every_position_equals_the_naive_next_token_prediction(model, prompts_and_responses):
    encoding, student, teacher, responses = prompts_and_responses
    for prompts in (student, teacher):
        packed = pack(prompts, responses, encoding.pad_id)
        with torch.no_grad():
            seen = policy_response_logits(model, packed).logits(slice(None))
        torch.testing.assert_close(seen, naive_logits(model, prompts, responses))


def test_a_teacher_without_privilege_is_the_student_at_every_position(model, prompts_and_responses):
    encoding, student, _, responses = prompts_and_responses
    blind = [list(prompt) for prompt in student]
    with torch.no_grad():
        p = policy_response_logits(model, pack(student, responses, encoding.pad_id)).logits(
            slice(None)
        )
        q = policy_response_logits(model, pack(blind, responses, encoding.pad_id)).logits(
            slice(None)
        )
    torch.testing.assert_close(p, q)


def test_one_off_at_the_first_response_token_would_be_noticed(model, prompts_and_responses):
    encoding, student, teacher, responses = prompts_and_responses
    packed = pack(teacher, responses, encoding.pad_id)
    shifted = type(packed)(packed.ids, packed.mask, packed.row, packed.column + 1, packed.token)
    with torch.no_grad():
        seen = policy_response_logits(model, shifted).logits(slice(None))
    assert not torch.allclose(seen, naive_logits(model, teacher, responses))


def test_both_prompts_end_in_the_same_token(prompts_and_responses):
    _, student, teacher, _ = prompts_and_responses
    for student_prompt, teacher_prompt in zip(student, teacher, strict=True):
        assert student_prompt[-1] == teacher_prompt[-1]
        assert len(teacher_prompt) > len(student_prompt)
