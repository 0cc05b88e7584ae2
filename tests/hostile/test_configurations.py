"""Wrong configurations: params.yaml with one thing made wrong, drawn from a seed.

Each is refused with the key that is wrong and a hint; none is taken, none is a bare traceback.
What is wrong is known from what was done to the file, not from the checks that are tested.

Values that are right alone can be wrong together: a file that combines such values is refused, or
all that its study ends in can be made of its tables.
"""

from __future__ import annotations

import copy
import os
import random
import sys
from collections import Counter
from importlib import import_module
from pathlib import Path

import pytest
import yaml
from cases import with_studies
from made_up_tables import made_up_tables
from number_ranges import ranges
from planner import plan

from geosd.cli import claims
from geosd.config import ConfigError, load, output_needs, resolve_study, settings
from geosd.reporting import saved_tables
from geosd.reporting.specs import output_kind, output_specs

SEED = 0
MORE_SEEDS = (90125, *range(1_000, 19_000, 1_000))
"""Seeds of further wrong files, two of each kind; one of them once found what seed 0 had not."""
WRONG, STUDIES_OF_WORDS = (300, 300) if "GEOSD_ALL_DRAWS" in os.environ else (96, 60)
SHELL = [
    "$(touch pwned)",
    "`touch pwned`",
    "a; touch pwned",
    "../../x",
    "a b",
    "a\nb",
    "",
    "-rf",
    "é",
]
NEVER_NUMBERS = [-1, 10**12, float("nan"), float("inf"), "many", [1], {"a": 1}, True]
SIZES = ("steps", "problems", "group", "response_tokens", "top_k", "anchor_every", "chunk")
TOP = ("protocol", "models", "resources", "variants", "studies")


def leaves(values, path=()):
    """Every number, word and switch of a tree with its path."""
    if isinstance(values, dict):
        for key, value in values.items():
            yield from leaves(value, (*path, key))
    else:
        yield path, values


def mappings(values, path=()):
    if isinstance(values, dict):
        yield path, values
        for key, value in values.items():
            yield from mappings(value, (*path, key))


def at(values, path):
    for key in path:
        values = values[key]
    return values


def put(values, path, value):
    at(values, path[:-1])[path[-1]] = value
    return path[-1]


def a_number_that_is_none(values, draw):
    """A number of the protocol or of a model's resources is out of all bounds or is none."""
    sections = {name: values[name] for name in ("protocol", "resources")}
    numbers = [p for p, v in leaves(sections) if type(v) in (int, float)]
    return put(values, draw.choice(numbers), draw.choice(NEVER_NUMBERS))


def a_number_beyond_its_range(values, draw):
    """A number of any section is just above or just below what means something."""
    path, (least, most) = draw.choice([*ranges().items()])
    beyond = [end for end in (-1, 1) if not (end > 0 and most == float("inf"))]
    direction = draw.choice(beyond)
    end = most if direction > 0 else least
    step = 1 if isinstance(end, int) else 1e-6 * max(1.0, abs(end))
    put(values, path, end + direction * step)
    return path[-1] if isinstance(path[-1], str) else path[-2]


def a_list_in_a_names_place(values, draw):
    """Something that no dictionary could have as a key stands where a name is wanted."""
    places = [
        ("variants", "geosd", "training", "objective", "name"),
        ("variants", "sft", "training", "objective", "name"),
        ("protocol", "training", "teacher"),
        ("protocol", "data", "source"),
        ("protocol", "base", "source"),
        ("models", "mini-qwen3", "base", "pretraining", "corpus"),
        ("studies", "quick", "kind"),
        ("studies", "quick", "methods", 0),
        ("studies", "quick", "models", 0),
        ("study",),
    ]
    path = draw.choice(places)
    put(values, path, draw.choice([[0.5], [None], [[1]], {"a": [1]}, {}, []]))
    return path[-1] if isinstance(path[-1], str) else path[-2]


def a_number_of_a_study(values, draw):
    key = draw.choice(SIZES)
    study = values["studies"][draw.choice(list(values["studies"]))]
    study.setdefault("training", {})[key] = draw.choice([0, 0.5, *NEVER_NUMBERS])
    return key


def a_switch_or_word(values, draw):
    """A word that has a list of allowed ones, or a switch, is another word."""
    words = [
        ("data", "overlaps"),
        ("data", "purpose"),
        ("data", "thinking", "teacher"),
        ("base", "source"),
        ("training", "precision"),
        ("training", "loss_mean"),
        ("training", "teacher"),
        ("training", "recompute"),
        ("training", "optimiser", "rule"),
        ("training", "optimiser", "kfac", "storage"),
        ("training", "optimiser", "kfac", "per_token"),
        ("rollout", "engine"),
        ("rollout", "process"),
        ("rollout", "compile"),
    ]
    path = ("protocol", *draw.choice(words))
    return put(values, path, draw.choice([None, 3, "nonsense", ["live"], {"name": "x"}]))


def a_misspelt_key(values, draw):
    """A key that the schema fixes has a letter too many."""
    fixed = [
        (path, key)
        for path, mapping in mappings(values)
        if path[:1] in [("protocol",), ("resources",)] and len(path) != 1 or path == ()
        for key in mapping
    ]
    path, key = draw.choice([(p, k) for p, k in fixed if p != ("resources",)])
    mapping = at(values, path)
    mapping[f"{key}q"] = mapping.pop(key)
    return key


def a_missing_key(values, draw):
    paths = [p for p, _ in mappings(values["protocol"])]
    path = ("protocol", *draw.choice(paths))
    key = draw.choice(list(at(values, path)))
    del at(values, path)[key]
    return key


def a_name_outside_the_alphabet(values, draw):
    """The name of an entry reaches paths, regular expressions and the shell."""
    section = draw.choice(["models", "variants", "studies"])
    word = draw.choice(SHELL)
    values[section][word] = copy.deepcopy(next(iter(values[section].values())))
    return section


def a_name_of_nothing(values, draw):
    study = values["studies"][draw.choice(["quick", "miniature", "smollm2", "paper"])]
    key = draw.choice(["models", "methods", "outputs"])
    study[key] = [*study[key], draw.choice(["nothing", "train", "quick", *SHELL])]
    return key


def an_entry_twice(values, draw):
    study = values["studies"][draw.choice(["quick", "miniature", "smollm2", "paper"])]
    key = draw.choice(["models", "methods", "outputs", "seeds"])
    study[key] = [*study[key], study[key][0]]
    return key


def seeds_that_are_none(values, draw):
    wrong = [[], [-1], [0, -3], [0.5], ["0"], [None], [2**40], 3, None, [[0]]]
    values["studies"]["quick"]["seeds"] = draw.choice(wrong)
    return "seeds"


def a_grid_that_is_none(values, draw):
    wrong = [
        {"fwdkl": {}},
        {"fwdkl": []},
        {"fwdkl": [{}]},
        {"fwdkl": {"learning_rate": []}},
        {"fwdkl": {"learning_rate": [1e-6, 1e-6]}},
        {"fwdkl": [{"learning_rate": [1e-6]}, {"learning_rate": [1e-6]}]},
        {"fwdkl": {"learning_rate": [-1.0]}},
        {"fwdkl": {"learning_rate": ["`touch pwned`"]}},
        {"fwdkl": {"teacher": ["../../x"]}},
        {"fwdkl": {"teacher": ["$(touch pwned)"]}},
        {"fwdkl": {"learning rate": [1e-6]}},
        {"fwdkl": {"learning_rat": [1e-6]}},
        {"fwdkl": {"optimiser..rule": ["kfac"]}},
        {"fwdkl": {"optimiser": ["kfac"]}},
        {"fwdkl": {"steps": [1e9]}},
        {"fwdkl": {"learning_rate": 1e-6}},
        {"fwdkl": {"learning_rate": [[1e-6]]}},
        {"nothing": {"learning_rate": [1e-6]}},
        {"pi_0": {"learning_rate": [1e-6]}},
        {"geosd": {"objective.drift_penalt": [1.0]}},
        {"geosd": {"objective.name": ["geosdd"]}},
        {"geosd": {"optimiser.kfac.blocks": [65]}},
        {"geosd": {key: list(range(1, 40)) for key in ("steps", "problems", "top_k", "chunk")}},
    ]
    values["studies"]["quick_selection"]["grid"] = draw.choice(wrong)
    return "grid"


def an_objective_that_is_none(values, draw):
    variant = draw.choice(["jsd", "skewkl", "tropd", "tip", "grpo", "geosd"])
    objective = values["variants"][variant]["training"]["objective"]
    key = draw.choice(list(objective))
    if draw.random() < 0.3:
        objective[f"{key}q"] = objective.pop(key)
    else:
        objective[key] = draw.choice([-1.0, float("nan"), "nonsense", None, True, [0.5]])
    return "objective"


def keys_that_clash(values, draw):
    """Values that are allowed one by one, and not together."""
    quick, protocol = values["studies"]["quick"], values["protocol"]
    path, value = draw.choice(
        [
            (("pool", "keep"), 17),
            (("pool", "rollouts"), 9),
            (("training", "warmup"), 101),
            (("training", "problems"), 1025),
            (("training", "group"), 1025),
            (("training", "snapshots"), [101]),
            (("training", "snapshots"), [5, 5]),
            (("training", "betas"), [1.0, 1.0]),
            (("training", "betas"), [0.9]),
            (("training", "top_k"), 30),
            (("training", "weight_decay"), float("inf")),
            (("training", "optimiser", "kfac", "blocks"), 65),
            (("evaluation", "pass_k"), [1, 17]),
            (("evaluation", "pass_k"), [1, 1]),
            (("evaluation", "pass_k"), [4, 1]),
            (("training", "save_every"), 101),
            (("training", "final_rollouts"), 301),
            (("training", "microbatch"), 9),
            (("data", "test_id"), 57_580),
            (("evaluation", "coverage"), 15),
            (("evaluation", "temperature"), 0.0),
            (("data", "source"), "dapo-maths"),
            (("data", "test_per_benchmark"), None),
            (("data", "train"), 10**9),
        ]
    )
    section = quick.setdefault(path[0], {})
    for key in path[1:-1]:
        section = section.setdefault(key, {})
    section[path[-1]] = value
    assert path[-1] in str(protocol)
    return {"rollouts": "keep"}.get(path[-1], path[-1])


def a_study_that_clashes(values, draw):
    studies = values["studies"]
    change = draw.randrange(8)
    if change == 0:
        studies["base"] = copy.deepcopy(studies["quick"])
        return "studies.base"
    if change == 1:
        studies["quick"] |= {"draws": draw.choice([2, 3])}
        values["models"]["mini-qwen3"]["base"] |= {"source": "pretrained", "checkpoint": None}
        return "draws"
    if change == 2:
        studies["quick"]["kind"] = draw.choice(["ladder", "selection", "other"])
        return "kind"
    if change == 3:
        by_model = draw.choice([{"mini-llama": {"steps": 3}}, {"mini-qwen": {}}, {}])
        studies["quick"]["variants"] = {"geosd": {"training_by_model": by_model}}
        return "training_by_model"
    if change == 4:
        values["models"]["mini-qwen3"]["base"]["pretraining"]["architecture"] = "mini-qwen4"
        return "architecture"
    if change == 5:
        del values["resources"]["default"]
        return "resources"
    if change == 6:
        values["resources"]["qwen3-8b"]["train"]["inference_gpus"] = draw.choice([3, 4])
        return "inference_gpus"
    studies["paper"].setdefault("training", {})["teacher"] = "fixed"
    return "teacher"


def an_entry_that_extends_wrongly(values, draw):
    section = draw.choice(["models", "variants", "studies"])
    name = draw.choice(list(values[section]))
    values[section][name]["extends"] = draw.choice(["nothing", name, 3, ["quick"], ""])
    return "extends"


def something_else_than_a_section(values, draw):
    name = draw.choice(TOP)
    values[name] = draw.choice([None, [], "text", 3, {}])
    return name


def words_for_words(text, draw):
    """A text of the file that two readers of YAML, or none, understand."""
    lines = text.splitlines(keepends=True)
    studies = lines.index("studies:\n")  # cut behind this line the file may still be right
    deep = "{a: " * 30 + "1" + "}" * 30
    laughs = "[&a [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]"
    for anchor, next_anchor in zip("abcdefgh", "bcdefghi", strict=True):
        laughs += f", &{next_anchor} [" + ", ".join([f"*{anchor}"] * 10) + "]"
    old, new, key = draw.choice(
        [
            ("rollouts: 32 ", "rollouts: 017 ", "rollouts"),
            ("rollouts: 32 ", "rollouts: +017 ", "rollouts"),
            ("rollouts: 32 ", "rollouts: 0o17 ", "rollouts"),
            ("rollouts: 32 ", "rollouts: 1:30 ", "rollouts"),
            ("rollouts: 32 ", "rollouts: 2026-11-23 ", "rollouts"),
            ("rollouts: 32 ", "rollouts: 2026-99-99 ", "rollouts"),
            ("rollouts: 32 ", f"rollouts: {'9' * 5000} ", "rollouts"),
            ("rollouts: 32 ", "rollouts: 32\n    rollouts: 16 ", "rollouts"),
            ("thinking: {student: true,", "thinking: {student: true, student: false,", "student"),
            ("thinking: {student: true,", 'thinking: {student: true, "student": true,', "student"),
            ("rollouts: 32 ", "rollouts: !!binary aGk= ", "rollouts"),
            ("rollouts: 32 ", "rollouts: !!python/object/apply:os.system [ls] ", "rollouts"),
            ("rollouts: 32 ", "rollouts: !!int many ", ""),
            ("rollouts: 32 ", "rollouts: !!bool many ", ""),
            ("rollouts: 32 ", "rollouts: &r [*r] ", "rollouts"),
            ("  pool:\n    solutions: roll", "  pool: &p\n    solutions: *p # ", "solutions"),
            ("  pool:\n    solutions: ", "  pool: &p\n    <<: *p\n    solutions: ", "<<"),
            ("thinking: {student: true,", "thinking: {student: on,", "student"),
            ("precision: bfloat16        # Table hparams: bf16", "precision: no # ", "precision"),
            ("study: quick ", "study: no ", "study"),
            ("study: quick ", f"x: {laughs}]\nstudy: quick ", "x"),
            ("study: quick ", f"x: {deep}\nstudy: quick ", ""),
            ("study: quick ", f"x: {'[' * 50_000}\nstudy: quick ", ""),
            ("study: quick ", "? [a, b]\n: 1\nstudy: quick ", "?"),
            ("study: quick ", "1: 1\nstudy: quick ", "1"),
            ("study: quick ", "2026-11-23: 1\nstudy: quick ", "2026-11-23"),
            ("study: quick ", "study: quick\n---\nstudy: quick ", ""),
            ("study: quick ", "\tstudy: quick ", ""),
            ("study: quick ", 'study: "\\ud800" ', ""),
            ("study: quick ", "study: \0 ", ""),
            ("study: quick ", "study: *nothing ", ""),
            (text, "", "file"),
            (text, "just words", "file"),
            (text, "[1, 2]", "file"),
            (text, "".join(lines[: draw.randrange(20, studies)]), ""),
        ]
    )
    assert text.count(old) == 1
    return text.replace(old, new), key


MUTATIONS = (
    a_number_that_is_none,
    a_number_of_a_study,
    a_switch_or_word,
    a_misspelt_key,
    a_missing_key,
    a_name_outside_the_alphabet,
    a_name_of_nothing,
    an_entry_twice,
    seeds_that_are_none,
    a_grid_that_is_none,
    an_objective_that_is_none,
    keys_that_clash,
    a_study_that_clashes,
    an_entry_that_extends_wrongly,
    something_else_than_a_section,
    words_for_words,
    a_number_beyond_its_range,
    a_list_in_a_names_place,
)


@pytest.fixture
def project(root, tmp_path, monkeypatch):
    """A folder with all that a configuration names, and none of its own."""
    (tmp_path / "base_models").symlink_to(root / "base_models")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def mutated(text: str, number: int, seed: int = SEED) -> tuple[str, str, str]:
    """The n-th wrong file of a seed: what was done, its text, and the key that is wrong."""
    draw, mutation = random.Random(seed + number), MUTATIONS[number % len(MUTATIONS)]
    if mutation is words_for_words:
        return mutation.__name__, *mutation(text, draw)
    values = few_studies(text)
    key = mutation(values, draw)
    return mutation.__name__, dumped(values), key


def few_studies(text: str):
    """The values of params.yaml without the studies that no mutation is done to."""
    kept = ["quick", "quick_selection", "miniature", "smollm2", "paper"]
    return yaml.load(with_studies(text, kept), Loader=yaml.CSafeLoader)


def dumped(values) -> str:
    return yaml.dump(values, Dumper=yaml.CSafeDumper, sort_keys=False, allow_unicode=True)


def test_what_is_mutated_is_right_before(root, project):
    text = (root / "params.yaml").read_text()
    (project / "params.yaml").write_text(dumped(few_studies(text)))
    load(project / "params.yaml")


@pytest.mark.slow
@pytest.mark.parametrize("seed", [SEED, *MORE_SEEDS])
def test_each_wrong_configuration_is_refused_with_its_key_and_a_hint(root, project, capsys, seed):
    text, done, failed = (root / "params.yaml").read_text(), Counter(), []
    number = WRONG if seed == SEED else 2 * len(MUTATIONS)
    for n in range(number):
        name, wrong, key = mutated(text, n, seed)
        (project / "params.yaml").write_text(wrong, encoding="utf-8")
        try:
            load(project / "params.yaml")
        except ConfigError as error:
            message = str(error)
            if key not in message or not message.splitlines()[-1].startswith("Hint: "):
                failed.append(f"{n} {name}: {key!r} not in {message[:300]}")
        except Exception as error:
            failed.append(f"{n} {name} ({key}): {type(error).__name__}: {error}")
        else:
            failed.append(f"{n} {name} ({key}): accepted")
        done[name] += 1
    with capsys.disabled():
        print(f"\n{number} wrong configurations: {number - len(failed)} refused, {dict(done)}")
    assert not failed, "\n".join(failed)


@pytest.mark.parametrize("content", [b"study: \xe9\n", None], ids=["latin-1", "a folder"])
def test_what_is_no_text_file_is_refused(project, content):
    path = project / "params.yaml"
    path.mkdir() if content is None else path.write_bytes(content)
    with pytest.raises(ConfigError, match=r"(?s)params.yaml cannot be read.*\nHint: "):
        load(path)


@pytest.mark.slow
@pytest.mark.parametrize(
    "mutation", [a_misspelt_key, a_name_outside_the_alphabet, a_study_that_clashes]
)
def test_a_dry_run_of_a_wrong_configuration_fails_and_plans_nothing(root, project, mutation):
    for name in ("Snakefile", "workflow", "profiles", "local", "src"):
        (project / name).symlink_to(root / name)
    number = MUTATIONS.index(mutation)
    name, wrong, key = mutated((root / "params.yaml").read_text(), number)
    (project / "params.yaml").write_text(wrong, encoding="utf-8")
    path = str(Path(sys.executable).parent) + ":/usr/bin:/bin"
    status, printed = plan(project, ("--profile", "local", "--dry-run"), {"PATH": path})
    assert status != 0, name
    assert key in printed and "Hint: " in printed, printed
    assert "Building DAG" not in printed and not (project / "pwned").exists()


def words_together(values, draw, need=""):
    """A study whose lists and grid are right word by word; values keeps this study alone.

    With `need`, its one output has this need.
    """
    name = draw.choice([*STUDIES])
    chain, study = [name], values["studies"][name]
    while parent := values["studies"][chain[-1]].get("extends"):
        chain.append(parent)
    values["studies"] = {key: values["studies"][key] for key in chain}
    values["study"] = name
    models = [m for m in values["models"] if m.startswith("mini-")]
    lists = {
        "outputs": ([*output_specs(), "claims"], 2),
        "methods": ([*values["variants"]], 4),
        "models": (models, 5),
    }
    for key, (words, most) in lists.items():
        if draw.random() < 0.6 or key == "outputs":
            study[key] = draw.sample(words, draw.randint(1, most))
    needing = [name for name, spec in output_specs().items() if need in spec.needs]
    study["outputs"] = needing[:1] or study["outputs"]
    study["seeds"] = draw.choice([[0], [0, 1], [3, 1, 2]])
    study["draws"] = 1
    if draw.random() < 0.6:
        trained = [variant for variant in values["variants"] if variant != "pi_0"]
        study["grid"] = {
            variant: {
                key: draw.sample(GRID_WORDS[key], draw.randint(1, 3))
                for key in draw.sample([*GRID_WORDS], draw.randint(1, 2))
            }
            for variant in draw.sample(trained, draw.randint(0, 2))
        }
    if draw.random() < 0.3:
        study["kind"], purpose = draw.choice([("main", "study"), ("selection", "selection")])
        study["data"] = {"purpose": purpose}
    return name


STUDIES = ("quick", "quick_selection", "miniature_rates", "miniature_selection")
STUDIES += ("miniature_ablation", "miniature_readings", "miniature_teacher", "miniature_ladder")
STUDIES += ("miniature_privilege", "miniature_stepsize")
GRID_WORDS = {
    "learning_rate": [1e-6, 3e-6, 1e-5, 3e-5],
    "privilege": [0.25, 0.5, 1.0],
    "steps": [25, 50, 100],
    "teacher": ["live", "fixed", "average"],
}


def made(name, study, tidy, folder):
    """Make one output of a study from its tables, in memory where that is all the work."""
    if name == "claims":
        files = {key: folder / f"{key}.csv" for key in ("scores", "drift", "consensus")}
        for key, file in files.items():
            tidy[key].to_csv(file, index=False)
        claims.main(study.name, tuple(files.values()), folder / "claims", Path("params.yaml"))
        return
    module = import_module(f"geosd.reporting.{name}")
    made = getattr(module, output_kind(name).function)(
        **{key: tidy[key] for key in output_specs()[name].reads}, **settings(name, study)
    )
    if output_kind(name).label == "Table":
        saved_tables.save(made, folder)
    else:
        made.draw_without_rendering()


def what_becomes_of_words(text, project, number, need=""):
    """Draw files of `words_together`; of each whether it was refused or made, and what failed."""
    read = yaml.load(text, Loader=yaml.CSafeLoader)
    for n in range(number):
        values = copy.deepcopy(read)
        name = words_together(values, random.Random(SEED + n), need)
        (project / "params.yaml").write_text(dumped(values), encoding="utf-8")
        try:
            study = resolve_study(load("params.yaml"), name)
        except ConfigError as error:
            hint = str(error).splitlines()[-1].startswith("Hint: ")
            yield "refused", "" if hint else f"{n} {name}: no hint in {error}"
            continue
        tidy = made_up_tables(study)
        for output in study.outputs:
            try:
                made(output, study, tidy, project)
                yield "made", ""
            except Exception as error:
                yield "failed", f"{n} {name} {output}: {type(error).__name__}: {error}"


@pytest.mark.slow
def test_words_that_do_not_go_together_are_refused_or_the_study_is_made(root, project, capsys):
    text = (root / "params.yaml").read_text()
    found = [*what_becomes_of_words(text, project, STUDIES_OF_WORDS)]
    done, failed = Counter(what for what, _ in found), [wrong for _, wrong in found if wrong]
    with capsys.disabled():
        print(f"\n{STUDIES_OF_WORDS} studies of right words: {dict(done)}, {len(failed)} wrong")
    assert not failed, "\n".join(failed)
    assert min(done["refused"], done["made"]) > STUDIES_OF_WORDS / 10


@pytest.mark.slow
@pytest.mark.parametrize("need", ["sweep", "live"])
def test_without_a_check_some_words_are_made_too_late(root, project, monkeypatch, need):
    monkeypatch.setitem(output_needs.NEEDS, need, output_needs.Need(lambda *_: "", ""))
    found = what_becomes_of_words((root / "params.yaml").read_text(), project, 120, need)
    assert any(wrong for _, wrong in found), need
