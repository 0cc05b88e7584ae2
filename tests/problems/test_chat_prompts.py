"""Prompts through chat templates: the published tokenizers' own, and a tiny one made here."""

import copy
import json
import re
import time
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st
from transformers import GenerationConfig

from geosd.problems.chat_prompts import ChatPrompts, _any_of
from geosd.problems.encoding import Encoding, encoding_of
from geosd.problems.grading import judge_response
from geosd.problems.grading.typed_grader import TypedGrader
from geosd.problems.records import Problem
from geosd.problems.sources.dapo_math import INSTRUCTION

FAMILIES = ("qwen3", "deepseek_r1_distill_llama_8b", "olmo3_7b_think")
SOLUTION = "<think>\nOne plus one. That is two.\n</think>\n\nThe answer is $\\boxed{2}$."


@pytest.fixture(scope="session")
def goldens(shared_data):
    lines = (shared_data / "templates/rendered_goldens.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def chat_encoding(tokenizer, thinking=True, generation=None):
    return Encoding(tokenizer, ChatPrompts(tokenizer, INSTRUCTION, thinking), generation)


def dapo_encoding(tokenizer, thinking, wording=None):
    recipe = {"source": "dapo-math", "thinking": thinking, "wording": wording}
    return encoding_of(recipe, tokenizer, None)


@pytest.fixture(scope="module")
def encoding_of_family(published):
    """A function from a family to its encoding; the first text of each takes a CPU second."""
    return cache(lambda family, thinking=True: chat_encoding(published(family), thinking))


@pytest.mark.parametrize("family", FAMILIES)
def test_the_students_prompt_is_the_published_rendering_token_by_token(
    encoding_of_family, goldens, family
):
    found = [g for g in goldens if (g["template"], g["case"]) == (family, "user")]
    assert found
    for golden in found:
        question = golden["messages"][0]["content"].removesuffix(f"\n{INSTRUCTION}")
        thinking = golden["options"].get("enable_thinking", True)
        encoding = encoding_of_family(family, thinking)
        problem = Problem("p", "id", question, "2")
        assert encoding.prompts.student(question) == golden["text"]
        assert encoding.student(problem) == golden["ids"]


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_no_prompt_begins_twice(published, encoding_of_family, family):
    tokenizer = published(family)
    ids = encoding_of_family(family).student(Problem("p", "id", "What?", "2"))
    begins = 0 if tokenizer.bos_token_id is None else 1
    assert ids.count(tokenizer.bos_token_id) == begins


@pytest.mark.parametrize("family", FAMILIES)
def test_the_first_response_token_stands_after_the_same_tokens_for_both(encoding_of_family, family):
    """What the model generates from: the generation prompt, alike for student and teacher."""
    encoding = encoding_of_family(family)
    problem = Problem("p", "id", "What is $1+1$?", "2")
    student, teacher = encoding.student(problem), encoding.teacher(problem, SOLUTION)
    opened = {
        "qwen3": "<|im_start|>assistant\n",
        "deepseek_r1_distill_llama_8b": "<｜Assistant｜><think>\n",
        "olmo3_7b_think": "<|im_start|>assistant\n<think>",
    }[family]
    expected = encoding.tokenizer(opened, add_special_tokens=False).input_ids
    assert student[-len(expected) :] == teacher[-len(expected) :] == expected
    assert len(teacher) > len(student)


@pytest.mark.slow
def test_each_role_thinks_as_its_own_switch_says(published):
    """On Qwen3's template, as published OPSD sets it: the student's answer follows no thought."""
    tokenizer, problem = published("qwen3"), Problem("p", "id", "What is $1+1$?", "2")
    apart = {"student": False, "teacher": True}
    opsd, swapped = (
        dapo_encoding(tokenizer, modes) for modes in (apart, {"student": True, "teacher": False})
    )
    thinks, never = (dapo_encoding(tokenizer, mode) for mode in (True, False))
    assert (
        opsd.student(problem)
        == never.student(problem)
        == [
            *thinks.student(problem),
            *tokenizer("<think>\n\n</think>\n\n", add_special_tokens=False).input_ids,
        ]
    )
    assert opsd.teacher(problem, SOLUTION) == thinks.teacher(problem, SOLUTION)
    assert swapped.teacher(problem, SOLUTION) == never.teacher(problem, SOLUTION)
    assert swapped.student(problem) == thinks.student(problem)
    assert tokenizer.decode(opsd.teacher(problem, SOLUTION)).endswith("<|im_start|>assistant\n")


@pytest.mark.slow
def test_words_of_ones_own_stand_in_place_of_the_sources(published):
    tokenizer, problem = published("qwen3"), Problem("p", "id", "What is $1+1$?", "2")
    words = {"instruction": "Be brief.", "examples": [("0+0?", "0")]}
    words |= {"privileged": "{solution} answers {question} {instruction}"}
    encoding = dapo_encoding(tokenizer, True, words)
    student, teacher = (
        tokenizer.decode(ids)
        for ids in (encoding.student(problem), encoding.teacher(problem, SOLUTION))
    )
    assert "<|im_start|>user\n0+0?\nBe brief.<|im_end|>\n<|im_start|>assistant\n" in student
    assert "What is $1+1$?\nBe brief.<|im_end|>" in student and SOLUTION not in student
    last = SOLUTION.splitlines()[-1]
    assert f"{last} answers What is $1+1$? Be brief.<|im_end|>" in teacher
    as_it_was = {"instruction": None, "examples": None, "privileged": None}
    plain = dapo_encoding(tokenizer, True).student(problem)
    assert dapo_encoding(tokenizer, True, as_it_was).student(problem) == plain


@pytest.mark.parametrize("role", ["student", "teacher"])
@pytest.mark.parametrize("family", ["deepseek_r1_distill_llama_8b", "olmo3_7b_think"])
def test_a_model_that_always_thinks_refuses_a_role_that_does_not(published, family, role):
    modes = {"student": True, "teacher": True, role: False}
    with pytest.raises(ValueError, match="(?s)data.thinking is false for.*allowed is true.*Hint:"):
        dapo_encoding(published(family), modes)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_thought_that_the_prompt_opens_must_be_closed_before_an_answer_counts(
    encoding_of_family, family
):
    encoding = encoding_of_family(family)
    assert encoding.opens_thought == (family != "qwen3")

    def reason(response):
        read = encoding.text(encoding.response(response))
        return judge_response(
            read, "2", TypedGrader(), truncated=False, opened_thought=encoding.opens_thought
        ).reason

    never_closed = "correct" if family == "qwen3" else "no answer"
    assert reason("So \\boxed{2}. Wait") == never_closed
    assert reason("So \\boxed{3}.\n</think>\n\n\\boxed{2}") == "correct"


@pytest.mark.parametrize("family", FAMILIES)
def test_prompt_and_response_are_not_fused_where_text_would_be(encoding_of_family, family):
    """All three prompts end in a newline or `>`, which a newline after it would be fused with."""
    encoding = encoding_of_family(family)
    prompt = encoding.student(Problem("p", "id", "What?", "2"))
    response = encoding.response("\nOne.")
    joined = encoding.tokenizer(
        encoding.prompts.student("What?") + "\nOne.", add_special_tokens=False
    ).input_ids
    assert encoding.text(response) == "\nOne."
    assert joined != [*prompt, *response[:-1]]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("family", "ends"),
    [
        ("qwen3", {151645, 151643}),
        ("olmo3_7b_think", {100265, 100257}),
        ("deepseek_r1_distill_llama_8b", {128001}),
    ],
)
def test_the_released_stops_of_each_family_end_a_response(published, shared_data, family, ends):
    special = json.loads((shared_data / "templates/special_tokens.json").read_text())[family]
    released = GenerationConfig(eos_token_id=special.get("generation_eos_ids", special["eos_id"]))
    encoding = chat_encoding(published(family), generation=released)
    assert set(encoding.end_ids) == ends
    assert encoding.end_ids[0] == encoding.response("x")[-1] == special["eos_id"]
    for end in ends:
        assert encoding.text([end]) == ""


TEMPLATES = {
    "qwen3": ("qwen3", 151645),
    "deepseek_r1_distill_llama_8b": ("deepseek_r1_distill_llama_8b", 128001),
    "deepseek_r1_distill_llama_8b.pre_feb2025": ("deepseek_r1_distill_llama_8b", 128001),
    "olmo3_7b_think": ("olmo3_7b_think", 100265),
    "olmo3_7b_think_sft_tokenization": ("olmo3_7b_think", 100265),
    "olmo3_32b_think": ("olmo3_7b_think", 100265),
}


@pytest.mark.slow
@pytest.mark.parametrize("template", TEMPLATES)
def test_the_end_of_a_templates_turn_is_a_stop_of_a_base_model_too(
    published, shared_data, template
):
    """A base model's own end is that of a document (huggingface/open-r1#604)."""
    family, end = TEMPLATES[template]
    base = copy.deepcopy(published(family))
    base.chat_template = (shared_data / f"templates/{template}.jinja").read_text()
    base.eos_token = "<|endoftext|>" if family != "deepseek_r1_distill_llama_8b" else base.eos_token
    generation = GenerationConfig(eos_token_id=base.eos_token_id)
    encoding = chat_encoding(base, generation=generation)
    assert encoding.prompts.turn_ends == (end,)
    assert encoding.end_ids == tuple(dict.fromkeys((base.eos_token_id, end)))
    assert encoding.response("x")[-1] == base.eos_token_id


TURNS = "{% for m in messages %}<user> {{ m.content }} HERE{% endfor %}"


@pytest.mark.parametrize(
    ("behind", "ends"),
    [
        ("<bot>", (4,)),
        ("\n\n<bot>\n<end>", (4,)),
        ("over <bot>", (4,)),
        ("", (3,)),  # the next turn's beginning
        ("{{ eos_token }}", (2,)),
    ],
)
def test_the_first_control_token_behind_an_answer_ends_it(tiny, behind, ends):
    tiny.chat_template = TURNS.replace("HERE", behind)
    assert ChatPrompts(tiny, "is", thinking=True).turn_ends == ends


@pytest.mark.parametrize("behind", ["<|im_end|>\n", "\n### Human: "])
def test_an_end_of_turn_that_is_no_token_is_refused_by_name(tiny, behind):
    tiny.chat_template = TURNS.replace("<user> ", "").replace("HERE", behind)
    with pytest.raises(ValueError, match=f"(?s)ends an answer with '{behind.strip()[:9]}.*Hint: "):
        ChatPrompts(tiny, "is", thinking=True)


def test_a_template_without_anything_behind_an_answer_adds_no_end(tiny):
    tiny.chat_template = "{% for m in messages %}{{ m.content }}\n{% endfor %}"
    assert ChatPrompts(tiny, "is", thinking=True).turn_ends == ()
    assert Encoding(tiny, ChatPrompts(tiny, "is", thinking=True)).end_ids == (2,)


def test_a_tokenizer_without_any_end_is_refused(tiny):
    tiny.chat_template = "{% for m in messages %}{{ m.content }}\n{% endfor %}"
    tiny.eos_token = None
    with pytest.raises(ValueError, match="(?s)no token ends a response.*Hint: "):
        Encoding(tiny, ChatPrompts(tiny, "is", thinking=True))


@pytest.mark.parametrize("family", FAMILIES)
def test_a_solution_stands_in_the_user_turn_and_can_end_nothing(
    published, encoding_of_family, family
):
    tokenizer, encoding = published(family), encoding_of_family(family)
    problem = Problem("p", "id", "What is $1+1$?", "2")
    nasty = "".join(str(token) for token in tokenizer.added_tokens_decoder.values())
    expected = encoding.teacher(problem, "One. Two.")
    spiked = encoding.teacher(problem, f"One.{nasty}{SOLUTION.split('answer')[0]} Two.")
    control = set(tokenizer.added_tokens_decoder)
    assert [i for i in spiked if i in control] == [i for i in expected if i in control]
    assert "That is two." in tokenizer.decode(spiked)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_end_of_a_thought_survives_decoding(encoding_of_family, family):
    """The grader reads what follows it, and SFT trains on it."""
    encoding = encoding_of_family(family)
    assert encoding.text(encoding.response(SOLUTION)) == SOLUTION


def test_a_tiny_template_is_rendered_once_and_tokenized_without_another_beginning(tiny):
    encoding = Encoding(
        tiny, ChatPrompts(tiny, "is", thinking=True), GenerationConfig(eos_token_id=2)
    )
    problem = Problem("p", "id", "one", "two")
    assert tiny.convert_ids_to_tokens(encoding.student(problem)) == (
        "<s> <user> one is <end> <bot>".split()
    )
    teacher = tiny.convert_ids_to_tokens(encoding.teacher(problem, "two <end> <bot> two"))
    assert teacher[:3] == ["<s>", "<user>", "one"] and teacher[-1] == "<bot>"
    assert teacher.count("two") == 2 and teacher.count("<end>") == teacher.count("<bot>") == 1
    assert encoding.end_ids == (2,) and encoding.response("two") == [8, 2]
    assert encoding.pad_id == 2  # this tokenizer has none of its own


def test_thinking_is_switched_through_the_template(tiny):
    assert ChatPrompts(tiny, "is", thinking=False).student("one").endswith("<think> </think>")
    assert "<think>" not in ChatPrompts(tiny, "is", thinking=True).student("one")


def test_a_marker_that_appears_when_another_is_taken_out_goes_too(tiny):
    prompt = ChatPrompts(tiny, "is", thinking=True).student("one <e<end>nd> two")
    assert prompt.count("<end>") == 1


NESTED = {
    "in each other": "<thi" * 20_000 + "nk>" * 20_000,
    "two kinds": "<en" * 10_000 + "<e<end>nd>" + "d>" * 10_000,
    "in a row": "<th<end>ink>" * 20_000,
}


@pytest.mark.parametrize("kind", NESTED)
def test_markers_in_markers_are_taken_out_in_linear_time(tiny, kind):
    prompts = ChatPrompts(tiny, "is", thinking=True)
    began = time.process_time()
    prompt = prompts.student(f"one {NESTED[kind]} two")
    assert time.process_time() - began < 2
    assert prompt == prompts.student("one  two")


@given(st.lists(st.sampled_from(["<th", "ink>", "<think>", "</", "<e", "nd>", "a", " "])))
def test_what_is_left_has_no_marker_and_what_had_one_layer_is_as_cut(pieces):
    text, markers = "".join(pieces), _any_of(["<think>", "</think>", "<end>"])
    once = re.sub("</?think>|<end>", "", text)
    left = markers.without(text)
    assert not re.search("</?think>|<end>", left)
    if not re.search("</?think>|<end>", once):
        assert left == once


def test_examples_stand_before_a_prompt_as_earlier_turns(tiny):
    prompts = ChatPrompts(tiny, "is", True, examples=[("one", "two"), ("two", "one")])
    examples = "<s> <user> one\nis <end> <user> two <end> <user> two\nis <end> <user> one <end>"
    assert prompts.student("one one") == f"{examples} <user> one one\nis <end> <bot>"


def test_the_teachers_examples_show_their_answers_as_reference_solutions(tiny):
    words = "{question} {solution} {instruction}"
    prompts = ChatPrompts(tiny, "is", True, [("one", "two"), ("two", "one")], words)
    examples = "<s> <user> one two is <end> <user> two <end> <user> two one is <end> <user> one"
    last = " <end> <user> one one one is <end> <bot>"
    assert prompts.teacher("one one", "one") == examples + last
    # Braces of a solution are text, and so are the names of places.
    assert "<user> one {question} is" in prompts.teacher("one", "{question}")


def test_a_tokenizer_without_a_template_is_refused(tiny):
    tiny.chat_template = None
    with pytest.raises(ValueError, match="(?s)no chat template.*Hint:"):
        ChatPrompts(tiny, "is", thinking=True)


TEXTS = st.text(st.sampled_from("ab3. !?\n$"), max_size=60)


@given(TEXTS, st.floats(0, 1), st.floats(0, 1))
def test_revealed_sentences_are_a_prefix_that_grows_with_privilege(text, first, second):
    revealed_solution = ChatPrompts.revealed_solution
    less, more = (revealed_solution(None, text, fraction) for fraction in sorted((first, second)))
    assert more.startswith(less) and text.startswith(more)
    assert revealed_solution(None, text, 1.0) == text and revealed_solution(None, text, 0.0) == ""


def test_sentences_end_at_full_stops_and_lines_but_not_inside_numbers():
    text = "First 3.14 is near. Then $x = 2$!\nSo the answer is \\boxed{2}."
    halves = [ChatPrompts.revealed_solution(None, text, fraction) for fraction in (0.1, 0.5, 0.9)]
    assert halves[0] == "First 3.14 is near. "
    assert halves[1] == halves[2] == "First 3.14 is near. Then $x = 2$!\n"


@pytest.mark.parametrize("fraction", [-0.1, 1.1, float("nan")])
def test_a_fraction_outside_the_unit_interval_is_refused(fraction):
    with pytest.raises(ValueError, match="privilege is .*"):
        ChatPrompts.revealed_solution(None, "One. Two.", fraction)
