"""A mistake in params.yaml is named with its key, its line, what is allowed, and a hint."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from cases import QUICK_ROLLOUT, with_studies
from ruamel.yaml import YAML

from geosd.config import ConfigError, load, resolve_study
from geosd.config.aliases import ALIASES
from geosd.config.loading import _keys_below
from geosd.config.model_sizes import ModelSize, model_size
from geosd.config.yaml_source import read_yaml_source


@pytest.fixture
def broken(root, edited):
    """Load params.yaml with one text replaced; the message, and the line that was replaced.

    The file has the studies that are named; all, where none is.
    """

    def message(old: str, new: str, studies: Sequence[str] = ("quick",)) -> tuple[str, int]:
        text = (root / "params.yaml").read_text()
        text = with_studies(text, studies) if studies else text
        with pytest.raises(ConfigError) as error:
            load(edited((old, new), studies=studies))
        assert str(error.value).splitlines()[-1].startswith("Hint: ")
        line = text[: text.index(old)].count("\n") + 1 + (len(old) - len(old.lstrip("\n")))
        return str(error.value), line

    return message


GRID = "fwdkl: &quick_rates {"
# Whatever methods study quick has: docs/extending.md adds one.
QUICK = re.compile(r"grpo, geosd.*\]\n    seeds: \[0, 1, 2\]")
SEEDS = QUICK.search((Path(__file__).parents[2] / "params.yaml").read_text())[0]
MODELS = "kind: main\n    models: [mini-qwen3]"
RATE = "    learning_rate: 1.0e-6 "
THINK = "thinking: {student: true, teacher: true, evaluation: true}"


def test_an_unknown_key_is_named_with_its_line_and_the_key_that_was_meant(broken):
    message, line = broken(RATE, "    learning_rat: 1.0e-6 ")
    assert f"params.yaml:{line}: protocol.training.learning_rat: there is no such key" in message
    assert "Did you mean learning_rate? Allowed: anchor_every, betas, chunk" in message
    assert "protocol.training.learning_rate: the key is missing. It means: Peak" in message


def test_an_unknown_key_in_an_overlay_is_a_mistake_too(broken):
    message, line = broken(
        "fwdkl: {training: {snapshots: [10",
        "fwdkl: {training: {snapshot: [10",
        ["miniature_ablation"],
    )
    place = "studies.miniature_ablation.variants.fwdkl.training.snapshot"
    assert f":{line}: {place}: there is no" in message
    assert "Did you mean snapshots?" in message


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (
            "steps: 625 ",
            "steps: 0 ",
            "protocol.training.steps: 0 is not allowed: input should be g",
        ),
        ("steps: 625 ", "steps: 62.5 ", "protocol.training.steps: 62.5 is not allowed"),
        (
            "wording: null ",
            'wording: {instruction: null, examples: null, privileged: "Read {question.x}."} ',
            "privileged has the places question.x; it needs {solution}",
        ),
        (
            "wording: null ",
            "wording: {instruction: Be brief., examples: null, privileged: null} ",
            "search has no chat model; allowed is null.",
        ),
        (
            "    wording: null ",
            '    date: "2024-02-30"\n    wording: null ',
            'protocol.data.date: "2024-02-30" is not allowed',
        ),
        (
            "    wording: null ",
            "    date: 26.7.2024\n    wording: null ",
            'protocol.data.date: "26.7.2024" is not allowed',
        ),
        (
            "wording: null ",
            "wording: null\n    date: 2024-07-26 ",
            "search has no chat template; take the line away.",
        ),
        (
            "steps: 625 ",
            'steps: "625" ',
            'steps: "625" is not allowed: input should be a valid int',
        ),
        ("steps: 625 ", "steps: true ", "protocol.training.steps: true is not allowed"),
        (RATE, "    learning_rate: -1.0 ", "learning_rate: -1.0 is not allowed"),
        (RATE, "    learning_rate: .nan ", "learning_rate: .* is not allowed"),
        ("rule: adamw   ", "rule: adam   ", 'rule: "adam" is not allowed. Did you mean adamw?'),
        ("betas: [0.9, 0.95]", "betas: [0.9]", "protocol.training.betas"),
        ("top_p: 0.95 ", "top_p: 1.5 ", "protocol.evaluation.top_p: 1.5 is not allowed"),
        ("{name: fwdkl}", "{nam: fwdkl}", "variants.fwdkl.training.objective.name: the key is mis"),
        (
            "{name: revkl}",
            "{name: revkl, x: [1]}",
            r"revkl.training.objective.x: there is no such key. Allowed: name",
        ),
        (SEEDS, SEEDS.replace("2", "1"), "studies.quick.seeds: .* 1 stands twice"),
        (SEEDS, SEEDS.replace("0, 1, 2", ""), "studies.quick.seeds"),
        (
            "fwdkl, revkl, grpo, geosd",
            "fwkl, revkl, grpo, geosd",
            "no variant. Did you mean fwdkl?",
        ),
        (MODELS, MODELS.replace("qwen3", "qwen"), "no model. Did you mean mini-qwen3?"),
        ("study: quick ", "study: quik ", "no study. Did you mean quick?"),
        ("4, 8, 16]", "4, 8, 32]", "pass_k: .* 32 is more than samples, which is 16"),
        ("coverage: null ", "coverage: 8 ", "coverage: must be samples, which is 16, or more"),
        ("      steps: 100\n", "      steps: 10\n", "20 is more than steps, which is 10, for"),
        ("    snapshots: [] ", "    snapshots: [0] ", "protocol.training.snapshots"),
        (
            "    snapshots: [] ",
            "    snapshots: [99, 101] ",
            "101 is more than steps, which is 100, for",
        ),
        (
            "table_significance, figure_frontier, figure_training, claims]",
            "table_significanc, figure_frontier, figure_training, claims]",
            "no table, figure or ledger. Did you mean table_significance?",
        ),
        (GRID, GRID.replace("fwdkl", "fwdlk"), "no variant. Did you mean fwdkl?"),
        (THINK, "thinking: true", r"thinking: true is not .* {student: ..., teacher: ..., eval"),
        (THINK, THINK.replace(", evaluation: true", ""), "thinking.evaluation: the key is missing"),
        (THINK, THINK.replace("student", "studnt"), "thinking.studnt: .* Did you mean student?"),
    ],
)
def test_a_wrong_value_is_named_with_its_line_and_what_is_allowed(broken, old, new, expected):
    message, line = broken(old, new, ["quick_selection"])
    assert re.search(expected, message), message
    # Whatever is known only of the resolved study points at the study.
    assert f"params.yaml:{line}:" in message or "studies.quick." in message


WORDS = {  # what people type in a section of a study -> the key that is meant
    "training": {
        **{"lr": "learning_rate", "batch_size": "problems", "max_tokens": "response_tokens"},
        **{"epochs": "steps? It counts otherwise: an epoch is data.train / training.problems"},
        **{"gamma": "optimiser.kfac.damping", "lambda": "objective.drift_penalty"},
        **{"kl_coef": "objective.kl_coefficient", "num_generations": "group"},
        "n_samples": "studies.short.evaluation.samples",
    },
    "evaluation": {"n_samples": "samples", "max_tokens": "response_tokens", "k": "pass_k"},
}


def test_the_words_of_other_programs_lead_to_the_keys_that_they_mean(broken):
    given = [f"{name}: {{{', '.join(f'{w}: 1' for w in words)}}}" for name, words in WORDS.items()]
    lines = "".join(f"    {line}\n" for line in [*given, "seed: 1", "lr: 1"])
    parent, start = "  short:\n    extends: quick\n    about: x\n    kind: main\n", "  quick:\n"
    message, _ = broken(start, parent + lines + start)
    for section, words in WORDS.items():
        for word, key in words.items():
            found = f"studies.short.{section}.{word}: there is no such key. Did you mean {key}"
            assert found in message, word
    assert "studies.short.seed: there is no such key. Did you mean seeds or " in message
    assert "studies.short.lr: there is no such key. Did you mean training.learning_rate?" in message
    grid = "    grid: {geosd: {objective.lambda: [1.0], lr: [1.0e-5]}}\n"
    message, _ = broken(start, parent + grid + start)
    assert "objective.lambda is no key of training. Did you mean objective.drift_pen" in message
    assert "grid.geosd.lr: lr is no key of training. Did you mean learning_rate?" in message


def test_an_axis_that_the_studys_own_objective_does_not_have_is_named(broken):
    start = "  quick:\n"
    study = "  short:\n    extends: quick\n    about: x\n    kind: main\n"
    study += "    training: {objective: {name: fwdkl}}\n"
    study += "    grid: {fwdkl: {objective.beta: [0.5]}}\n"
    message, _ = broken(start, study + start)
    place = "studies.short.grid.fwdkl.objective.beta"
    assert f"{place}: objective.beta is no key of training." in message


def test_every_other_word_leads_to_a_key_that_there_is_and_all_but_one_to_one_key():
    roots = (("protocol",), ("studies", "x"), ("models", "x"), ("resources", "x"))
    assert {*ALIASES} <= {key[-1] for root in roots for key in _keys_below(root, {})}
    words = Counter(word for words in ALIASES.values() for word in words)
    assert [word for word, keys in words.items() if keys > 1] == ["batch_size"]


def test_an_inherited_mistake_names_the_study_that_inherits_it(broken):
    start = "  quick:\n"
    parent = (
        "  first:\n    extends: quick\n    about: x\n    kind: main\n    outputs: [table_habits]\n"
    )
    child = "  second:\n    extends: first\n    about: x\n    kind: main\n"
    child += "    data: {source: word-problems}\n"
    message, _ = broken(start, parent + child + start)
    assert "studies.first.outputs[0]: table_habits shows habits of the search world;" in message
    assert "data.source must be search or search-wide. Study second inherits it." in message


def test_a_studys_variant_may_leave_out_whose_hyperparameters_it_changes(root, edited):
    start, study = "  quick:\n", "  short:\n    extends: quick\n    about: x\n    kind: main\n"
    entry = "    variants: {geosd: {training: {objective: {drift_penalty: 3.0}}}}\n"
    loaded = load(edited((start, study + entry + start)))
    trainings = [
        resolve_study(loaded, name).training("mini-qwen3", "geosd") for name in ("quick", "short")
    ]
    assert trainings[1]["objective"] == {**trainings[0]["objective"], "drift_penalty": 3.0}


def test_what_two_variants_share_by_an_anchor_is_of_each_variants_own_objective(edited):
    start, study = "  quick:\n", "  short:\n    extends: quick\n    about: x\n    kind: main\n"
    entry = "    variants:\n      jsd: {training: &half {objective: {beta: 0.25}}}\n"
    entry += "      geosd_jsd: {training: *half}\n"
    entry += "    methods: [pi_0, jsd, geosd_jsd, fwdkl, grpo, geosd]\n"
    study = resolve_study(load(edited((start, study + entry + start))), "short")
    names = [study.training("mini-qwen3", name)["objective"]["name"] for name in study.trained[:2]]
    assert names == ["jsd", "geosd"]


def test_values_are_what_yaml_1_2_takes_them_for(tmp_path):
    """As DVC reads the file: by another program, in Python alone."""
    words = "1e-6 1.0e-6 -1 +2 .5 5. 1.5e+3 .inf true False null ~ yes no on off y 1:30"
    words += " 0 12 1e text e5 . - -x <"
    file = tmp_path / "words.yaml"
    file.write_text(
        "".join(f"- {word}\n" for word in [*words.split(), '"1e-6"', "'true'", "!!str 1"])
    )
    values = [*read_yaml_source(file).values]
    assert list(map(repr, values)) == list(map(repr, YAML(typ="safe", pure=True).load(file)))
    assert values[0] == 1e-6 and values[words.split().index("off")] == "off"


def test_a_word_that_older_readers_take_for_a_switch_is_text(broken):
    message, _ = broken("teacher: live ", "teacher: off ")
    assert 'teacher: "off" is not allowed' in message


def test_a_key_that_stands_twice_is_named_with_both_lines(broken):
    message, line = broken("    top_k: 1024 ", "    top_k: 512\n    top_k: 1024 ")
    assert (
        f":{line + 1}: protocol.training.top_k: the key stands here and on line {line}" in message
    )


GEOSD = "objective: {name: geosd, divergence: hellinger, drift_penalty: 1.0}"


@pytest.mark.parametrize(
    ("old", "new", "place"),
    [
        (
            QUICK_ROLLOUT,
            QUICK_ROLLOUT.replace("32}", "32, precision: bfloat16}"),
            "rollout.precision",
        ),
        (
            QUICK_ROLLOUT,
            QUICK_ROLLOUT.replace("32}", '32, "precision": float32}'),
            "rollout.precision",
        ),
        (QUICK_ROLLOUT, QUICK_ROLLOUT.replace("{", "{'engine': vllm, "), "rollout.engine"),
        (QUICK_ROLLOUT, QUICK_ROLLOUT.replace("{", r'{"engin\u0065": vllm, '), "rollout.engine"),
        (GEOSD, GEOSD.replace("}", ", name: jsd}"), "training.objective.name"),
        (THINK, THINK.replace("{", "{student: false, "), "data.thinking.student"),
        (
            "geosd: {training: {snapshots: [10",
            "geosd: {training: {}, training: {snapshots: [10",
            "variants.geosd.training",
        ),
        (
            "- {objective.drift_penalty: [0.1, 1.0, 3.0], anchor_every: [10, 20]}",
            "- {anchor_every: [10], objective.drift_penalty: [0.1], anchor_every: [20]}",
            "grid.geosd[1].anchor_every",
        ),
        (
            "    data: {conflict: 1.0}\n",
            "    data: {conflict: 1.0, conflict: 0.0}\n",
            "data.conflict",
        ),
        (
            "revkl: *quick_rates",
            "revkl: {<<: *quick_rates, <<: *quick_rates}",
            "grid.revkl.<<",
        ),
    ],
)
def test_a_key_that_stands_twice_on_one_line_is_refused_as_on_two(root, broken, old, new, place):
    text = (root / "params.yaml").read_text()
    if text.count(old) > 1:  # of several studies the first
        old, new = (f"{text[text.index(old) - 60 : text.index(old)]}{word}" for word in (old, new))
    message, _ = broken(old, new, ())
    assert f"{place}: the key stands twice on this line; keep one of them." in message, message


def test_a_key_of_its_own_may_stand_beside_a_merged_one(root, edited):
    """It is laid over the merged one: YAML's merge, and no key twice."""
    own = "revkl: {<<: *quick_rates, learning_rate: [3.0e-6]}"
    selection = load(edited(("revkl: *quick_rates", own))).studies["quick_selection"]
    assert selection.grid["revkl"] == {"learning_rate": [3e-6]}


ABOUT = "about: Minutes on a laptop."


@pytest.mark.parametrize(
    "picture",
    [
        "![h](../../../secret.txt)",
        "![h](/etc/hostname)",
        "![h](/etc/logo.svg)",
        "![h](../../figures/../secret.svg)",
        "![h](../../figures/quick/scores.csv)",
        "![h](figures/quick/table.svg)",
        "![h](../../figures/quick/figure)",
        "![h](../../figures/quick/figure.SVG.txt)",
        "![h](../../figures.svg)",
        "![h](http://example.invalid/x.png)",
        "![h](file:///etc/hostname)",
        "![h](data:text/plain;base64,eA==)",
        "![h](<../../a b.txt>)",
        "![one ![h](../../../secret.txt) two](../../figures/quick/figure.svg)",
        "[![h](../../../secret.txt)](https://example.invalid)",
        "![h][r]\n\n      [r]: ../../../secret.txt",
    ],
)
def test_a_picture_in_about_is_one_of_the_projects_figures(broken, picture):
    text = f"about: |-\n      Minutes {picture} on a laptop."
    if "\n" in picture:
        text = text.replace(" on a laptop.", "")
    message, _ = broken(
        f"{ABOUT} Proves the installation; too small to judge the paper's claims.", text
    )
    assert "studies.quick.about: " in message and "below figures/" in message, message


@pytest.mark.parametrize("ending", ["svg", "png"])
def test_a_figure_of_the_project_may_stand_in_about(edited, ending):
    picture = f"![points](../../figures/quick/figure_frontier.{ending})"
    params = load(edited((ABOUT, f'about: "{picture} Minutes." #')))
    assert picture in params.studies["quick"].about


@pytest.mark.parametrize("given", ["[0]", "[1000000]", "[a]"])
def test_a_list_of_wrong_elements_is_not_called_too_short(broken, given):
    message, _ = broken("    pass_k: [1, 2, 4, 8, 16] ", f"    pass_k: {given} ")
    assert "pass_k[0]: " in message
    assert "at least 1 item" not in message


def test_all_mistakes_are_reported_at_once(broken):
    message, _ = broken("steps: 625 ", "steps: -1\n    stepz: 3\n    colour: red ")
    assert "3 mistakes" in message
    assert message.index("steps: -1") < message.index("stepz") < message.index("colour")


def test_a_file_that_is_not_yaml_is_named_with_a_line(broken):
    message, line = broken("  training:\n    steps: 625", "  training\n    steps: 625")
    assert "is not YAML" in message
    assert f"line {line}" in message


def test_a_file_that_does_not_exist_is_named(tmp_path):
    with pytest.raises(ConfigError, match="does not exist"):
        load(tmp_path / "none.yaml")


def test_the_size_of_a_checkpoint_is_that_of_the_working_directory(tmp_path, monkeypatch):
    base = {"source": "released", "checkpoint": {"folder": "checkpoint"}}
    for hidden in (64, 128):
        (folder := tmp_path / str(hidden) / "checkpoint").mkdir(parents=True)
        config = {"hidden_size": hidden, "vocab_size": 29}
        (folder / "config.json").write_text(json.dumps(config))
        monkeypatch.chdir(folder.parent)
        assert model_size("any", base) == ModelSize(hidden, 29)


@pytest.mark.parametrize(("last", "lacking"), [("seed: 0", "corpus, steps"), (None, "documents")])
def test_a_recipe_that_is_not_whole_is_named_where_it_stands(root, broken, last, lacking):
    """A parent's recipe is taken away, so its children's are parts; or one key of all is."""
    text = (root / "params.yaml").read_text()
    old, new = "        documents: 64\n", ""
    if last:
        start = text.index("      pretraining:             # read by")
        old, new = (
            text[start : text.index(f"        {last}\n", start)],
            "      pretraining: null\n#",
        )
    message, _ = broken(old, new, ())
    text = text.replace(old, new)
    line = text[: text.index("pretraining: {architecture: mini-olmo3}")].count("\n") + 1
    place = "models.mini-olmo3.base.pretraining"
    assert f"params.yaml:{line}: {place}: base.pretraining lacks {lacking}" in message
