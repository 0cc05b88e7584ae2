"""Where a study's results lie: in folders that studies share, addressed by what they follow from.

    results/data/<source>-<digest>/
    results/base/<model>-<digest>/
    results/pool/<model>-<digest>/
    results/train/<model>/<objective>-<digest>/<seed>/
    results/train/<model>/<objective>-<digest>/<seed>/stopped_<steps>/   the first steps of that run
    results/evaluate/<model>/<objective or pi_0>-<digest>/<seed>/
    results/states/<model>-<digest>/

A digest is of the settings that the step may read and of the folders that it reads: equal runs are
one folder, whichever studies have them, and a changed setting leads to another one and back. A
study's index, results/<study>/runs.csv, says which folders belong to which variant and seed.

A base model from a folder has the hashes of its files among its settings, so that one that is
trained further, and each draw of a shipped one, has folders of its own.
"""

import csv
import dataclasses
import hashlib
import itertools
import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from geosd.config.job_counts import ALIGNMENT, STATE_FIGURES
from geosd.config.rule_settings import settings
from geosd.config.study import Study
from geosd.files import DamagedFileError, atomic_write, remake_file_hint
from geosd.provenance.manifest import MANIFEST
from geosd.reporting.specs import output_specs

RESULTS = "results"
SHARED = ("data", "base", "pool", "train", "evaluate", "states")
"""Folders of results/ that belong to all studies; every other one is a study's."""
IN_ORDER = (
    "data base pool states train early_stop evaluate evaluate_pi_0 alignment runs analyse claims"
).split()
"""The rules that leave a manifest, each after those that it reads from."""
PI_0 = "pi_0"
DIGITS = 10
"""Hexadecimal digits of a digest: 40 bits, enough to tell millions of settings apart."""


def run_folder_digest(value: Any) -> str:
    """The digest in a results folder's name; the order of keys does not matter.

    Example:
        >>> run_folder_digest({"a": 1, "b": [2.0]}) == run_folder_digest({"b": [2.0], "a": 1})
        True
    """
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:DIGITS]


@dataclass(frozen=True)
class RunFoldersRow:
    """The folders of one run, which starts from a draw of its base model: a row of runs.csv."""

    model: str
    variant: str
    seed: int
    draw: int
    base: str
    train: str
    """Of the trained student; empty where nothing is trained."""
    evaluate: str
    """Of its samples."""
    pool: str = ""
    """Of its base model's verified solutions; empty where the study trains nothing."""


COLUMNS = [field.name for field in dataclasses.fields(RunFoldersRow)]


class RunFolders:
    """The folders of a study's results, from the root of the project; none depends on its name."""

    def __init__(self, study: Study) -> None:
        self.study = study

    @cached_property
    def data(self) -> str:
        """Results folder of a study's problems."""
        drawn = settings("data", self.study)
        return f"{RESULTS}/data/{drawn['source']}-{run_folder_digest(drawn)}"

    @property
    def train_problems(self) -> str:
        """File of the training problems, in the results folder of the data."""
        return f"{self.data}/{'select_train' if self._purpose == 'selection' else 'train'}.jsonl"

    @property
    def test_problems(self) -> str:
        """File of the test problems, in the results folder of the data."""
        return f"{self.data}/{'test' if self._purpose == 'study' else 'select_validation'}.jsonl"

    @cached_property
    def _purpose(self) -> str:
        return self.study.section("data")["purpose"]

    @cache  # noqa: B019 (a process has a handful of studies)
    def base(self, model: str, draw: int = 0) -> str:
        """Results folder of a draw of a base model."""
        return self._folder("base", model, draw)

    def _folder(self, rule: str, model: str, draw: int, *sources: str) -> str:
        """The folder that a rule's settings and the folders and files that it reads lead to."""
        content = [settings(rule, self.study, model, draw=draw), sources]
        return f"{RESULTS}/{rule}/{model}-{run_folder_digest(content)}"

    @cache  # noqa: B019
    def pool(self, model: str, draw: int = 0) -> str:
        """Results folder of the solution pool of a draw of a base model."""
        return self._folder("pool", model, draw, self.base(model, draw), self.train_problems)

    @cache  # noqa: B019
    def states(self, model: str, draw: int = 0) -> str:
        """Results folder of the states that a draw of a base model visits."""
        sources = (self.base(model, draw), self.pool(model, draw), self.train_problems)
        return self._folder("states", model, draw, *sources)

    @cache  # noqa: B019
    def recipe(self, model: str, variant: str, draw: int = 0) -> str:
        """The part `<objective>-<digest>` of a run's folder: how a variant is trained."""
        training = settings("train", self.study, model, variant)
        sources = [self.base(model, draw), self.pool(model, draw), self.train_problems]
        return f"{training['objective']['name']}-{run_folder_digest([training, sources])}"

    def train(self, model: str, variant: str, seed: int) -> str:
        """Results folder of a trained student; an early stop's lies inside its longer run's."""
        return self._student(model, variant, self.study.draw(seed)).format(seed=seed)

    def _student(self, model: str, variant: str, draw: int) -> str:
        """Results folder of the students of a variant, with `{seed}` in the place of the seed."""
        longest = self.study.early_stops.get(variant, variant)
        folder = f"{RESULTS}/train/{model}/{self.recipe(model, longest, draw)}/{{seed}}"
        if longest == variant:
            return folder
        return f"{folder}/stopped_{self.study.training(model, variant)['steps']}"

    @cache  # noqa: B019
    def sampling(self, model: str, variant: str, draw: int = 0) -> str:
        """The part `<objective or pi_0>-<digest>` of a samples folder: what is sampled, and how."""
        sampled = settings("evaluate", self.study, model)
        if variant in self.study.trained:
            name = self.recipe(model, variant, draw).rpartition("-")[0]
            checkpoint = self._student(model, variant, draw)
        else:
            name, checkpoint = PI_0, self.base(model, draw)
        return f"{name}-{run_folder_digest([sampled, checkpoint, self.test_problems])}"

    def evaluate(self, model: str, variant: str, seed: int) -> str:
        """Results folder of a checkpoint's samples."""
        recipe = self.sampling(model, variant, self.study.draw(seed))
        return f"{RESULTS}/evaluate/{model}/{recipe}/{seed}"

    def of_job(
        self, rule: str, model: str | None, variant: str | None, seed: int | None, draw: int
    ) -> str:
        """The shared results folder that a job of a rule writes, by today's settings and files."""
        match rule:
            case "data":
                return self.data
            case "train" | "early_stop":
                return self.train(model, variant, seed)
            case "evaluate":
                return self.evaluate(model, variant, seed)
            case "base" | "pool":
                return getattr(self, rule)(model, draw)
        raise ValueError(f"The jobs of rule {rule} write into no shared folder.")

    def rows(self) -> list[RunFoldersRow]:
        """Every run of the study with its folders: the rows of its index."""
        study, trained = self.study, set(self.study.trained)
        rows = []
        for run in itertools.product(study.models, study.methods, study.seeds):
            model, variant, seed = run
            draw = study.draw(seed)
            row = RunFoldersRow(
                model=model,
                variant=variant,
                seed=seed,
                draw=draw,
                base=self.base(model, draw),
                train=self.train(*run) if variant in trained else "",
                evaluate=self.evaluate(*run),
                pool=self.pool(model, draw) if trained else "",
            )
            rows.append(row)
        return rows

    def tidy_files(self) -> dict[str, list[str]]:
        """The tidy files, of which tables and figures are made, by their tables' names."""
        analysis = f"{RESULTS}/{self.study.name}/analyse"
        tables = ("scores", "shares", "drift", "consensus", "habits")
        tables += ("training_curves", "drift_over_steps")
        files = {name: [f"{analysis}/{name}.csv"] for name in tables}
        files["states"] = [f"{self.states(model)}/states.csv" for model in self.study.models]
        alignments = self.alignments().values()
        files["alignment"] = [f"{folder}/alignment.csv" for folder in alignments]
        return files

    def tidy_shown(self) -> list[str]:
        """The tidy files that tables, figures and claims of the study are made of."""
        reads = {name: spec.reads for name, spec in output_specs().items()}
        reads["claims"] = ("scores", "drift", "consensus")  # and what the study's figures read
        shown: dict[str, None] = {}  # a set in order
        for name in self.study.outputs:
            shown |= dict.fromkeys(reads.get(name, ()))
        return list(shown)

    def alignments(self) -> dict[tuple[str, str, int], str]:
        """Model, variant and seed of each run whose alignment the study shows -> its folder."""
        study = self.study
        variants = settings(ALIGNMENT, study)["methods"] if ALIGNMENT in study.outputs else ()
        runs = itertools.product(study.models, variants, study.seeds)
        root = f"{RESULTS}/{study.name}/alignment"
        return {run: "/".join([root, *map(str, run)]) for run in runs}

    def claims_read(self) -> list[str]:
        """The tidy files that claims are judged by: also what the study's figures read."""
        shown = set(self.study.outputs)
        more = {
            "drift_over_steps": "figure_mechanism" in shown,
            "states": STATE_FIGURES & shown,
            "alignment": ALIGNMENT in shown,
        }
        return ["scores", "drift", "consensus", *(name for name, read in more.items() if read)]

    def jobs(self) -> dict[str, tuple[Any, ...]]:
        """Each shared results folder of the study -> rule, model, variant and draw of its job.

        As far as there are any: what `settings` takes.
        """
        study = self.study
        jobs: dict[str, tuple[Any, ...]] = {self.data: ("data",)}
        for model, draw in itertools.product(study.models, sorted({0, *study.base_draws})):
            jobs[self.base(model, draw)] = ("base", model, None, draw)
            jobs[self.pool(model, draw)] = ("pool", model)
            jobs[self.states(model, draw)] = ("states", model)
        for row in self.rows():
            if row.train:
                rule = "early_stop" if row.variant in study.early_stops else "train"
                jobs[row.train] = (rule, row.model, row.variant)
            rule = "evaluate" if row.train else "evaluate_pi_0"
            jobs[row.evaluate] = (rule, row.model, row.variant)
        return jobs

    def results(self, figures: str = "figures") -> dict[str, tuple[Any, ...]]:
        """Each result of the study with a manifest -> rule, model, variant and draw of its job.

        A result is a folder, or a manifest that shares one with others.
        """
        jobs = self.jobs()
        for (model, variant, _), folder in self.alignments().items():
            jobs[folder] = ("alignment", model, variant)
        own = f"{RESULTS}/{self.study.name}"
        jobs[f"{own}/runs.{MANIFEST}"] = ("runs",)
        jobs[f"{own}/analyse"] = ("analyse",)
        jobs[f"{figures}/{self.study.name}/claims.{MANIFEST}"] = ("claims",)
        return jobs

    def manifests(self) -> list[Path]:
        """The manifests of the study's results, each after those of the results that it reads."""
        place = {rule: number for number, rule in enumerate(IN_ORDER)}
        results = sorted(self.results().items(), key=lambda item: place[item[1][0]])
        return [
            Path(result) if result.endswith(MANIFEST) else Path(result, MANIFEST)
            for result, _ in results
        ]

    def shared(self) -> list[str]:
        """The shared results folders that the study uses."""
        return list(dict.fromkeys(folder.partition("/stopped_")[0] for folder in self.jobs()))


Snapshots = dict[tuple[str, str, int], tuple[int, ...]]


def write_run_folders(path: Path, rows: Iterable[RunFoldersRow]) -> None:
    """Write a study's index of run folders, runs.csv, whole or not at all."""
    with atomic_write(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(map(dataclasses.astuple, rows))


def read_run_folders(path: Path) -> list[RunFoldersRow]:
    """Read a study's index, runs.csv; DamagedFileError if it is none.

    Whether it is whole, its manifest says (`geosd.provenance.proof.prove`).
    """
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        for row in rows:
            row["seed"], row["draw"] = int(row["seed"]), int(row["draw"])
        return [RunFoldersRow(**row) for row in rows]
    except (ValueError, LookupError, TypeError, csv.Error) as error:
        raise DamagedFileError(
            f"{path}: not the index of a study, whose columns are {', '.join(COLUMNS)}:"
            f" {error!r}.\n{remake_file_hint(path)}"
        ) from error


def run_of(file: str) -> tuple[str, ...]:
    """The parts of the folder results/train/<model>/<recipe>/<seed> that a file lies in."""
    return Path(file).parts[:5]
