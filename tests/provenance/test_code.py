"""The code behind a step is what its module imports, finds by name and names as data; no more.

A module counts by its meaning: no docstring, comment or blank line, and no version of Python.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from geosd.objectives.objective import names as objectives
from geosd.problems.sources import names as sources_of_data
from geosd.provenance import code
from geosd.provenance.code import SOURCES, code_digest, code_meaning, code_module, code_of


@pytest.fixture
def sources(tmp_path):
    """A package whose step imports a part, which imports another and names a data file."""
    files = {
        "__init__.py": "",
        "cli/__init__.py": "",
        "cli/train.py": "import geosd.config\n\ndef main():\n    from geosd.parts import first\n",
        "cli/evaluate.py": "import geosd.models.model_card, geosd.sampling.engines\n",
        "models/__init__.py": "",
        "models/model_card.py": "",
        "sampling/__init__.py": "",
        "sampling/engines.py": "from geosd.sampling import transformers_sampler, vllm_sampler\n",
        "sampling/transformers_sampler.py": "",
        "sampling/vllm_sampler.py": "from geosd.sampling import vllm_engine, weights\n",
        "sampling/vllm_engine.py": "",
        "sampling/weights.py": "",
        "parts/__init__.py": "",
        "parts/first.py": "import geosd.parts.second\nSHAPES = 'shapes.yaml'\n",
        "parts/second.py": "import os\n",
        "parts/third.py": "",
        "parts/shapes.yaml": "",
        "parts/others.yaml": "",
        "config/__init__.py": "import geosd.parts.third\n",
        "objectives/__init__.py": "",
        "objectives/jsd.py": "from geosd.parts import third\n",
        "problems/__init__.py": "",
        "problems/sources/__init__.py": "",
        "problems/sources/dapo_math.py": "",
        "reporting/__init__.py": "",
        "reporting/table_main.py": "",
    }
    for name, text in files.items():
        path = tmp_path / "geosd" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def names(*arguments, **keywords) -> set[str]:
    paths = code_of(*arguments, **keywords)
    assert list(paths) == sorted(paths)
    return {path.removeprefix("geosd/") for path in paths if not path.endswith("__init__.py")}


def test_imports_are_followed_wherever_they_stand_and_the_configuration_is_not(sources):
    settings = {"objective": {"name": "none"}, "source": "none"}
    found = names("train", settings, sources=sources)
    assert found == {"cli/train.py", "parts/first.py", "parts/second.py", "parts/shapes.yaml"}


def test_what_settings_name_belongs_to_the_step(sources):
    common = names("train", {"objective": {"name": "no"}, "source": "no"}, sources=sources)
    own = names("train", {"objective": {"name": "jsd"}, "source": "dapo-math"}, sources=sources)
    added = {"objectives/jsd.py", "parts/third.py", "problems/sources/dapo_math.py"}
    assert own - common == added


def test_further_modules_are_followed_too(sources):
    found = names("render", modules=("geosd.reporting.table_main",), sources=sources)
    assert found == {"reporting/table_main.py"}


def test_packages_on_the_way_count(sources):
    settings = {"objective": {"name": "jsd"}, "source": "no"}
    assert "geosd/objectives/__init__.py" in code_of("train", settings, sources=sources)


def test_every_objective_and_source_is_where_its_name_says():
    for key, registered in (("objective", objectives()), ("source", sources_of_data())):
        assert registered
        for name in registered:
            import_module(code_module(key, name))


def test_of_two_engines_the_one_that_the_settings_name_belongs_to_the_step(sources):
    def sampling(engine: str) -> set[str]:
        found = names("evaluate", {"source": "no", "rollout": {"engine": engine}}, sources=sources)
        return found - {"cli/evaluate.py", "sampling/engines.py"}

    assert sampling("transformers") == {"sampling/transformers_sampler.py"}
    assert sampling("vllm") == {
        f"sampling/{name}.py" for name in ("vllm_sampler", "vllm_engine", "weights")
    }


def meant(text: str, tmp_path) -> str:
    (tmp_path / "module.py").write_text(text, encoding="utf-8")
    return code_meaning(tmp_path / "module.py")


MODULE = '''"""A module."""

RATE = 0.1
"""Of learning."""


class Loss:
    """A loss."""

    def value(self, x: float) -> str:
        """Its value."""
        return f"{x!r:>{3}} of {RATE}: {'as it is'}"  # as text
'''


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"""A module."""', '"""Another docstring."""'),
        ('"""A module."""', ""),
        ('"""Of learning."""\n', ""),
        ('    """A loss."""\n', ""),
        ('"""Its value."""', '"""Its value\n\n        Returns:\n            Text.\n        """'),
        ("  # as text", ""),
        ("\n\n\n", "\n\n# A comment.\n\n\n"),
        ("RATE = 0.1", "RATE = (\n    1e-1\n)"),
    ],
)
def test_words_and_layout_mean_nothing(old, new, tmp_path):
    assert old in MODULE
    assert meant(MODULE.replace(old, new), tmp_path) == meant(MODULE, tmp_path)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("0.1", "0.2"),
        ("RATE = 0.1", "RATE: float = 0.1"),
        ("!r", "!s"),
        (":>{3}", ""),
        ("as it is", "as it was"),
        ("x: float", "x: float = None"),
        ("x: float", "*, x: float"),
        ("return f", 'return "" or f'),
        ("class Loss", "class Loss(list)"),
        ("    def", "    @property\n    def"),
    ],
)
def test_every_other_edit_is_another_meaning(old, new, tmp_path):
    assert old in MODULE
    assert meant(MODULE.replace(old, new), tmp_path) != meant(MODULE, tmp_path)


def test_names_read_and_bound_arguments_and_texts_are_told_apart(tmp_path):
    texts = ["a = b", "b = a", "f(a, b)", "f((a, b))", "f(a, *b)", "{**a}", "{None: a}", "{a}"]
    texts += ["[a]", "'a'", "b'a'", "1", "1.0", "True", "None", "...", "'é'", "a[b:]", "a[:b]"]
    texts = [text if "=" in text else f"f({text})" for text in texts]
    assert len({meant(text, tmp_path) for text in texts}) == len(texts)


def test_a_data_file_counts_byte_by_byte(sources):
    before = code_of("train", {"objective": {"name": "jsd"}, "source": "no"}, sources=sources)
    (sources / "geosd/parts/shapes.yaml").write_text("# A comment.\n")
    after = code_of("train", {"objective": {"name": "jsd"}, "source": "no"}, sources=sources)
    assert [name for name in before if before[name] != after[name]] == ["geosd/parts/shapes.yaml"]
    assert code_digest(before) != code_digest(after)
    assert code_digest({**before, "geosd/parts/shapes.yaml": None}) is None


@pytest.mark.slow
def test_a_docstring_of_any_module_leaves_the_digest_as_it_is():
    files = [file for file in (SOURCES / "geosd").rglob("*.py")]
    assert len(files) > 200
    for file in files:
        text = file.read_text(encoding="utf-8")
        edited = re.sub(r'^( *)"""(?=\w)', r'\1"""Edited. ', text, flags=re.M)
        edited = edited.replace("\n\n", "\n# Edited.\n\n", 1)
        assert edited != text or '"""' not in text
        assert parsed(edited) == parsed(text), file


def parsed(text: str) -> str:
    """The hash of a module's meaning."""
    return code._parsed(text.encode())[1]


def others() -> list[str]:
    """Interpreters of other versions than this one."""
    versions = [f"python3.{minor}" for minor in range(11, 16) if minor != sys.version_info.minor]
    found = [shutil.which(name) for name in versions]
    pyenv = sorted(Path.home().glob(".pyenv/versions/3.1[1-9]*/bin/python"))
    return [str(path) for path in (*filter(None, found), *pyenv)]


@pytest.mark.slow
def test_other_versions_of_python_give_the_same_digests():
    program = (
        "import sys; from geosd.provenance.code import SOURCES, code_digest, code_meaning;"
        "files = sorted((SOURCES / 'geosd').rglob('*.py'));"
        "hashes = {str(file): code_meaning(file) for file in files};"
        "print(sys.version_info[1], code_digest(hashes))"
    )
    answers = {}
    for python in (sys.executable, *others()):
        environment = {**os.environ, "PYTHONPATH": str(SOURCES)}
        ran = subprocess.run(
            [python, "-c", program], env=environment, capture_output=True, text=True
        )
        if ran.returncode == 0:  # pyenv's shims stand for versions that may not be chosen
            minor, digest_there = ran.stdout.split()
            answers[minor] = digest_there
    if len(answers) < 2:
        pytest.skip("no other Python of version 3.11 or newer. Hint: put python3.13 on the PATH.")
    assert len(set(answers.values())) == 1, answers
