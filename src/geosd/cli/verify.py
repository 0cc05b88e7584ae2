"""Check a capsule of a study (`geosd.cli.capsule`) without models, network or GPU.

What a capsule says of itself proves nothing: whoever changes a table can change its hash, and take
it off a list. So all that follows from samples, step logs and the configuration is made again, and
each file must be one that was made again, or one that the configuration and a step's manifest ask
for. Any other file is named.
"""

import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import chdir, closing
from importlib.metadata import version
from itertools import product
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
import tyro

from geosd.cli.analyse import analysed
from geosd.cli.capsule import (
    KEPT,
    OPENS_THOUGHT,
    PARAMS,
    SNAKEFILE,
    TEXTS,
    capsule_configuration,
    is_kept,
    workflow_files,
)
from geosd.cli.run_manifests import manifests_of_runs
from geosd.cli.ship import settings_to_ship, ship_study_outputs
from geosd.config import load, resolve_study, settings
from geosd.config.run_folders import (
    RESULTS,
    RunFolders,
    RunFoldersRow,
    read_run_folders,
    run_folder_digest,
)
from geosd.config.study import Study
from geosd.files import DamagedFileError, sha256, write_json, write_text
from geosd.problems.grading import judge_response
from geosd.problems.records import read_problems
from geosd.problems.sources import get_data_source
from geosd.provenance.crate import HINT, METADATA, ROOT, unpack_crate
from geosd.provenance.manifest import MANIFEST, read_manifest
from geosd.provenance.staleness import stale_settings
from geosd.reporting import shipping
from geosd.reporting.environment_page import (
    environment_markdown,
    environment_packages,
    environment_summary,
)
from geosd.reporting.study_page import ENVIRONMENT
from geosd.scores.sample_tables import read_sample_table
from geosd.scores.score_table import ScoredRun, score_table_by_variant
from geosd.scores.tidy import read_tidy

SHOWN = 5
"""Differences that are printed of a kind."""
STUDY_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
OF_MACHINE = ("packages", "code")
"""Keys of a shipped study's manifest that say who drew it: another machine has others."""


def main(capsule: Annotated[Path, tyro.conf.Positional]) -> int:
    """Grade a capsule's samples again, and make its tables and figures again, offline.

    Returns:
        0 if all is as it was, else 1.

    Raises:
        DamagedFileError: The file is no capsule, or a file in it is not the one that was put there.
    """
    capsule = capsule.resolve()
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        entities = unpack_crate(capsule, Path())
        names = {part["@id"] for part in entities[ROOT]["hasPart"]}
        print(f"{len(names)} files have the hashes that the capsule lists.")
        try:
            sound = VerifyCheck(names, entities).is_sound()
        except Exception as error:  # whatever the files hold, it is no fault of the reader's
            said, _, hint = str(error).partition("\nHint: ")
            words = " ".join(said.split()) if hint else f"{type(error).__name__} {said}".rstrip()
            raise DamagedFileError(
                f"{capsule} is no whole capsule: what it holds cannot be made again,"
                f" {words[:300].rstrip('.')}.{HINT}"
            ) from error
    print("The capsule is sound." if sound else "The capsule differs from what is made again.")
    return 0 if sound else 1


class _Folders(RunFolders):
    """The folders of a study's results, where base models are those of its index.

    The address of a base model follows from its weights, which a capsule has not.
    """

    def __init__(self, study: Study, rows: Iterable[RunFoldersRow]) -> None:
        super().__init__(study)
        self._bases = {(row.model, row.draw): row.base for row in rows}

    def base(self, model: str, draw: int = 0) -> str:
        """Results folder of a draw of a base model; of one that no run has, no folder."""
        return self._bases.get((model, draw), f"{RESULTS}/base/{model}-none")


class VerifyCheck:
    """The check of an unpacked capsule in this folder, part by part.

    Attributes:
        names: The files of the capsule, which lie here.
        known: Those that were made again, or that the configuration or a manifest asks for.
    """

    def __init__(self, names: set[str], entities: Mapping[str, Mapping[str, Any]]) -> None:
        """Read the configuration, and the index of the study's runs."""
        name = str(entities[ROOT]["identifier"])
        if not STUDY_NAME.fullmatch(name):
            raise ValueError(f"{ascii(name[:60])} is no name of a study")
        self.names = names
        self.described = entities[ROOT].get("description")
        self.study = resolve_study(load(Path(PARAMS)), name)
        self.known = {METADATA, PARAMS, *TEXTS}
        if SNAKEFILE in names:  # one of an earlier version has no workflow
            self.known |= workflow_files(Path()).keys()
        self.opened = {
            name.removeprefix("#"): entity["value"]
            for name, entity in entities.items()
            if entity.get("name") == OPENS_THOUGHT
        }
        self.own = Path(RESULTS, name)
        self.analysis = self.own / "analyse"
        self.figures = Path("figures", name)
        self.index = self.own / "runs.csv"
        self.rows = read_run_folders(self.index)
        self.folders = _Folders(self.study, self.rows)

    def is_sound(self) -> bool:
        """Whether each part of the capsule is as it is made again; says what is not."""
        sound = _report("runs are not those of the configuration", self._other_runs())
        sound &= _report("files are not those that their steps wrote", self._unproven())
        sound &= _report("samples have another verdict", self._regraded())
        sound &= _report("tidy tables are others", self._other_tidy_tables())
        sound &= _report("files of outputs are others", self._other_outputs())
        unknown = sorted(self.names - self.known)
        return sound & _report("files are none that the study makes", unknown)

    def _other_runs(self) -> Iterator[str]:
        """Rows of the index, and settings of runs, that do not follow from the configuration."""
        expected = self.folders.rows()
        wanted = set(product(self.study.models, self.study.methods, self.study.seeds))
        found = Counter((row.model, row.variant, row.seed) for row in self.rows)
        for run in sorted(wanted ^ set(found), key=str):
            yield f"{self.index}: {run} is {'missing' if run in wanted else 'no run of the study'}"
        for row in sorted(set(self.rows) - set(expected), key=str):
            run = f"{row.model}, {row.variant}, seed {row.seed}"
            yield f"{self.index}: {run} follows from other settings than {PARAMS} has"
        if len(self.rows) > len(found):
            yield f"{self.index}: a run stands in it twice"
        for base in dict.fromkeys(row.base for row in self.rows):
            made = read_manifest(Path(base))["settings"]
            if run_folder_digest([made, []]) != base.rpartition("-")[2]:
                yield f"{base} is not the address of the settings in its manifest"
        yield from self._other_settings()

    def _other_settings(self) -> Iterator[str]:
        """Settings in the manifests of steps that do not follow from the configuration."""
        jobs: dict[str, tuple[Any, ...]] = self.folders.jobs()
        for (model, variant, _), folder in self.folders.alignments().items():
            jobs[folder] = ("alignment", model, variant)
        jobs |= {self.own.as_posix(): ("runs",), f"{self.own}/analyse": ("analyse",)}
        for folder, (rule, *of_rule) in jobs.items():
            name = f"runs.{MANIFEST}" if rule == "runs" else MANIFEST
            if rule != "base" and f"{folder}/{name}" in self.names:
                made = read_manifest(Path(folder), name)["settings"]
                for words in stale_settings(made, settings(rule, self.study, *of_rule)):
                    yield f"{folder}/{name}: {words}"

    def _unproven(self) -> Iterator[str]:
        """Files of the study that have not the hash in a manifest; remembers those in one."""
        manifests = [(folder, MANIFEST) for folder in self._folders_of_steps()]
        for folder, name in [*manifests, (self.own, f"runs.{MANIFEST}")]:
            made = read_manifest(folder, name)
            self.known.add((folder / name).as_posix())
            outputs = {}
            for output, hashed in made["outputs"].items():
                file = folder / output
                outputs[file.as_posix()] = hashed
                # The files of the analysis are known where they were made again.
                if file.parent == folder != self.analysis and file.suffix in KEPT:
                    self.known.add(file.as_posix())
            for file, hashed in {**made["inputs"], **outputs}.items():
                if file in self.names and sha256(file) != hashed:
                    yield f"{file} has not the hash that {folder / name} lists"

    def _folders_of_steps(self) -> list[Path]:
        """The folders of the study's results that have a manifest of their own."""
        folders = {Path(self.folders.data), self.analysis}
        for row in self.rows:
            of_run = (row.base, row.pool, row.train, row.evaluate)
            folders |= {Path(folder) for folder in of_run if folder}
        files = self.folders.tidy_files()
        for name in self.folders.tidy_shown():
            folders |= {Path(file).parent for file in files[name]}
        return sorted(folders)

    def _regraded(self) -> Iterator[str]:
        """The samples that have another verdict than was recorded."""
        counts: Counter[bool] = Counter()
        for row in self.rows:
            folder = Path(row.evaluate)
            made = read_manifest(folder)
            answers = {}
            for file in made["inputs"]:
                if file.endswith(".jsonl"):
                    for problem in read_problems(Path(file)):
                        answers[problem.benchmark, problem.id] = problem.answer
            run = ScoredRun(row.model, row.variant, row.seed, row.draw)
            with closing(get_data_source(made["settings"]["source"]).grader()) as grade:
                for sample in read_sample_table(run, folder / "samples.jsonl"):
                    verdict = judge_response(
                        sample.text,
                        answers[sample.benchmark, sample.problem_id],
                        grade,
                        truncated=sample.finish == "length",
                        opened_thought=self.opened[row.model],
                    )
                    same = (verdict.correct, verdict.answer) == (sample.correct, sample.answer)
                    counts[same] += 1
                    if not same:
                        where = f"{folder}: {sample.benchmark}, {sample.problem_id}"
                        words = f"{verdict.reason}, recorded {sample.reason}"
                        yield f"{where}, {sample.sample}: {words}"
        print(f"{counts.total():,} samples were graded again.")

    def _other_tidy_tables(self) -> Iterator[str]:
        """The tidy tables, of the analysis and as shipped, that samples and logs do not give."""
        runs = {ScoredRun(row.model, row.variant, row.seed, row.draw): row for row in self.rows}
        tables, _ = analysed(runs, settings("analyse", self.study))
        made = {name: _as_read(name, table) for name, table in tables.items()}
        for name, table in made.items():
            file = self.analysis / f"{name}.csv"
            self.known.add(file.as_posix())
            if not read_tidy(name, file).equals(table):
                yield file.as_posix()
        metrics = self.analysis / "metrics.json"
        again = Path("again.metrics.json")
        self.known.add(metrics.as_posix())
        write_json(again, score_table_by_variant(tables["scores"]))
        if metrics.read_bytes() != again.read_bytes():
            yield metrics.as_posix()
        listed = {}
        for name in set(self.folders.tidy_shown()) - set(made):
            files = [Path(file) for file in self.folders.tidy_files()[name]]
            listed[name] = read_tidy(name, files)
        kept = shipping.shipped_source_tables(self.figures)
        for name in sorted(self.folders.tidy_shown()):
            if name not in kept:
                yield f"{self.figures}/{shipping.SOURCE}/{name}.csv is missing"
        for name, file in kept.items():
            expected = made.get(name, listed.get(name))
            if expected is None or name not in self.folders.tidy_shown():
                continue  # it is named as a file that the study does not make
            self.known.add(file.as_posix())
            if not read_tidy(name, file).equals(expected):
                yield file.as_posix()
        others = ", ".join(sorted(listed)) or "none"
        print(f"{len(made)} tidy tables were made again; taken as their steps list them: {others}.")

    def _other_outputs(self) -> Iterator[str]:
        """The files of tables, figures, verdicts and pages that are not the same when made anew."""
        again = Path("again", self.study.name)
        (again / shipping.SOURCE).mkdir(parents=True)
        for file in sorted((self.figures / shipping.SOURCE).iterdir()):
            if file.as_posix() in self.known:
                shutil.copy(file, again / shipping.SOURCE)
        runs = manifests_of_runs(self.rows)
        outputs = settings_to_ship(self.study)
        about = self.study.overlay.about
        ship_study_outputs(self.study.name, about, outputs, again, environment_summary(runs))
        if self.described != about:
            yield f"{METADATA}: the study's description"
        capsule_configuration(self.study, again)
        page = (self.figures / ENVIRONMENT).read_text(encoding="utf-8")
        installed = environment_packages(page)
        write_text(again / ENVIRONMENT, environment_markdown(runs, installed, self.study.name))
        for path in sorted(again.rglob("*")):
            name = path.relative_to(again)
            if not path.is_file() or name.parts[0] == shipping.SOURCE:
                continue
            file = self.figures / name
            if file.as_posix() not in self.names:
                if is_kept(path):
                    yield f"{file} is missing"
                continue
            self.known.add(file.as_posix())
            if name.as_posix() == shipping.MANIFEST:
                yield from self._other_manifest(again)
            elif file.read_bytes() != path.read_bytes():
                yield file.as_posix()

    def _other_manifest(self, again: Path) -> Iterator[str]:
        """Differences from the manifest of the shipped form, but for the versions that drew it."""
        kept, made = (shipping.read_shipped(each) for each in (self.figures, again))
        if kept.model_dump(exclude={*OF_MACHINE}) != made.model_dump(exclude={*OF_MACHINE}):
            yield (self.figures / shipping.MANIFEST).as_posix()
        now = {name: version(name) for name in kept.packages}
        if now != kept.packages:
            print(f"They were made with {kept.packages}, and are compared with {now}.")


def _as_read(name: str, table: pd.DataFrame) -> pd.DataFrame:
    """A table as it is read from its file."""
    file = Path(f"again.{name}.csv")
    file.write_text(table.to_csv(index=False), encoding="utf-8")
    return read_tidy(name, file)


def _report(what: str, found: Iterable[str]) -> bool:
    """Print the first differences of a kind and how many there are; whether there are none."""
    listed = [each if each.isprintable() else ascii(each) for each in found]
    print(f"{len(listed)} {what}.", *listed[:SHOWN], sep="\n  ")
    return not listed
