"""Every program of the workflow, killed before one of its operations on files and started again.

A very small study is planned by Snakemake and run, command by command, without being disturbed.
Then a seed draws a command and one of its operations: a file opened for writing, synced, renamed,
linked or removed. The command is killed before it, what it was writing is cut in half, and the
resume states that it left are damaged. Started again, it must leave the bytes of the undisturbed
run, and nothing else.
"""

from __future__ import annotations

import contextlib
import gc
import hashlib
import importlib
import json
import os
import platform
import random
import re
import runpy
import shlex
import shutil
import signal
import sys
import traceback
import zipfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest
import yaml
from cases import crate_entities, zip_crate

from geosd.cli.command import PROGRAMS, command_program
from geosd.cli.forkserver import PRELOADED
from geosd.cli.verify import main as verify
from geosd.config import load, resolve_study, settings
from geosd.config.kept_weights import weight_readers
from geosd.config.run_folders import RunFolders
from geosd.files import DamagedFileError, write_text
from geosd.problems.dataset_download import DatasetCatalogueEntry
from geosd.provenance.crate import METADATA
from geosd.provenance.manifest import manifest, write_manifest
from geosd.scores.tidy import COLUMNS

ROOT = Path(__file__).parents[2]
SEED, RESUMED = 0, 8
KILLS = 50 if "GEOSD_ALL_DRAWS" in os.environ else 0  # or one of each program alone
MODEL, DRAWN = "mini-qwen3", 9
LINKED = ("Snakefile", "workflow", "profiles", "local", "src", "envs")
SMALL = {
    "extends": "quick",
    "about": "Every rule in a few seconds.",
    "kind": "main",
    "verdicts": True,
    "methods": ["pi_0", "geosd"],
    "seeds": [0],
    "draws": 1,
    "outputs": ["table_main", "figure_alignment", "claims"],
    "grid": {"grpo": [{"steps": [2, 3]}]},  # the first is the beginning of the second
    "variants": {"geosd": {"training": {"snapshots": [2]}}},
    "data": {
        **dict.fromkeys(("train", "select_train", "select_validation", "test_id"), 4),
        "test_per_benchmark": 2,
    },
    "pool": {"rollouts": 16},
    "training": {
        **{"steps": 3, "warmup": 1, "problems": 2, "group": 2, "response_tokens": 8},
        **{"save_every": 1, "diagnose_every": 2, "final_rollouts": 2, "anchor_every": 2},
    },
    "evaluation": {"samples": 2, "pass_k": [1, 2], "response_tokens": 8},
}
TARGETS = ("all", "ship", "claims", "samples_page")
JUDGED = {"about": "Its ledger.", "kind": "family", "of": ["small"], "outputs": ["claims_all"]}
RATES = {
    **{"extends": "quick", "about": "Two rates.", "kind": "selection", "draws": 1, "seeds": [0]},
    **{"methods": ["pi_0"], "outputs": ["table_selection"], "data": {"purpose": "selection"}},
    "grid": {"geosd": {"learning_rate": [1.0e-6, 1.0e-5]}},
}
# Programs that no rule runs, but make or a person.
BY_HAND = (
    f"python -m geosd base-model --model {MODEL} --draw {DRAWN}",
    "python -m geosd render-family claims_all --family judged --tidy figures/small/claims.csv"
    " --out figures/judged",
    "python -m geosd family-page --family judged --figures figures/judged --out judged.md",
    "python -m geosd redraw --study small",
    "python -m geosd ship-family --family judged",
    "python -m geosd results-page",
    "python -m geosd capsule --study small --out small.zip",
    "python -m geosd export --study small --out exported --organization x --created 0",
    f"python -m geosd hub-model --study small --model {MODEL} --variant geosd --seed 0 --out hub",
    "python -m geosd hub-data --study small --out hub_data",
    "python -m geosd artifact --ledger figures/judged/claims_all.csv",
    "python -m geosd preview --study small --out previewed",
    "python -m geosd dvc-metrics --out metrics",
    "python -m geosd remove-weights --study rates --weights {weights} --out removed.json",
    "python -m geosd grade --in given/rows.jsonl --out graded.jsonl",
    f"python -m geosd evaluate base_models/{MODEL}/0 --protocol small --out evaluated",
    "python -m geosd accept --study rates",
)
LATE = ("dvc.repo", "fontTools.subset", "markdown_it", "typeguard")
"""What the programs import only when they need it."""
WRITES_NOTHING = {
    "conformance",
    "doctor",
    "extras",
    "plan",
    "select-rates",
    "stale",
    "summary",
    "unused",
    "verify",
}
CALLS_OTHERS = {
    *("dvc-commit", "figures", "paper", "publish", "report", "restore", "run", "samples"),
}
"""Snakemake, DVC, TeX and git, which write; transfer as render does, from a dial's studies."""
STARTER = "workflow/scripts/launch.py"
LEFTOVER = re.compile(r"\..+\.\d+\.tmp")
"""Names that a killed `atomic_write` leaves; nothing reads them."""


@dataclass
class Command:
    """A command of the study, and what it changed in the folder when it was not disturbed."""

    words: list[str]
    operations: int = 0
    before: dict[str, bytes | None] = field(default_factory=dict)
    after: dict[str, bytes | None] = field(default_factory=dict)

    @property
    def program(self) -> str:
        """Its name, `geosd NAME`, or its module or file."""
        words = self.words[2:] if self.words[1] == "-m" else self.words[1:]
        return f"geosd {command_program(words[1], words[2:])}" if words[0] == "geosd" else words[0]


def programs() -> set[str]:
    """Every program that the rules run, and every other one that writes."""
    rules = "".join(path.read_text() for path in sorted((ROOT / "workflow/rules").glob("*.smk")))
    named = set(re.findall(r"python -m (geosd(?:\.config| [\w-]+))", rules))
    named |= set(re.findall(r'"(workflow/scripts/[^"]+)"', rules)) - {STARTER}
    known = set(PROGRAMS)
    assert known >= WRITES_NOTHING | CALLS_OTHERS
    return named | {f"geosd {name}" for name in known - WRITES_NOTHING - CALLS_OTHERS}


def contents(folder: Path) -> dict[str, bytes]:
    """Every file and link below a folder by its name; scratch/ holds no results."""
    found: dict[str, bytes] = {}
    for at, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name not in (".snakemake", "scratch")]
        for name in (*files, *folders):
            path = os.path.join(at, name)
            if os.path.islink(path):
                found[os.path.relpath(path, folder)] = os.readlink(path).encode()
            elif name in files:
                found[os.path.relpath(path, folder)] = Path(path).read_bytes()
    return found


def put(folder: Path, files: dict[str, bytes | None]) -> None:
    """Give files their contents; None: remove."""
    for name, data in files.items():
        path = folder / name
        path.unlink(missing_ok=True)
        if data is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            if "/runs/" in name:
                path.symlink_to(data.decode())
            else:
                path.write_bytes(data)


def comparable(name: str, data: bytes) -> object:
    """The contents of a file; of a manifest without time and memory."""
    if not name.endswith("manifest.json"):
        return data
    values = json.loads(data)
    return {k: v for k, v in values.items() if k not in ("wall_s", "peak_memory_bytes", "digest")}


def run(command: Command, folder: Path, log: Path, kill_before: int = 0) -> tuple[int, int]:
    """Run a command in a fork of this process; its exit status, and its operations on files."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            with log.open("w") as out:
                os.dup2(out.fileno(), 1)
                os.dup2(out.fileno(), 2)
            sys.stdout = open(1, "w", closefd=False)
            sys.stderr = open(2, "w", closefd=False)
            os.chdir(folder)
            watched = watch(folder, kill_before)
            start(command)
            os.write(writing, str(watched.operations).encode())
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
    os.close(writing)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    with open(reading, "rb") as counted:
        return status, int(counted.read() or 0)


def watch(folder: Path, kill_before: int) -> SimpleNamespace:
    """Count this process's operations on files below a folder, and end it before one of them."""
    watched, unsynced, sync = SimpleNamespace(operations=0), set(), os.fsync
    main = os.getpid()

    def operate(path: str) -> None:
        if os.getpid() != main:  # a worker of a pool
            return
        watched.operations += 1
        if watched.operations == kill_before:
            for name in {path, *unsynced}:
                if name.endswith(".tmp") or name in unsynced:
                    if os.path.isfile(name):
                        with open(name, "rb+") as half:
                            half.truncate(os.path.getsize(name) // 2)
            os.kill(main, signal.SIGKILL)

    def inside(path: object) -> str | None:
        if not isinstance(path, str | bytes | os.PathLike):
            return None
        name = os.path.abspath(os.fsdecode(path))
        return name if Path(name).is_relative_to(folder) else None

    def hear(event: str, arguments: tuple) -> None:
        if event == "open":
            path, mode, flags = arguments
            writes = flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
            if writes and (name := inside(path)):
                operate(name)
                if flags & os.O_TRUNC:
                    unsynced.add(name)
        elif event in ("os.rename", "os.link", "os.symlink"):
            if name := inside(arguments[1]):
                operate(os.path.abspath(os.fsdecode(arguments[0])))
                unsynced.discard(os.path.abspath(os.fsdecode(arguments[0])))
                unsynced.discard(name)
        elif event in ("os.remove", "os.truncate"):
            if name := inside(arguments[0]):
                operate(name)

    def fsync(descriptor: int) -> None:
        if name := inside(os.readlink(f"/proc/self/fd/{descriptor}")):
            operate(name)
            unsynced.discard(name)
        sync(descriptor)

    os.fsync = fsync
    sys.addaudithook(hear)
    return watched


def start(command: Command) -> None:
    """Run a command's program in this process, which has its modules already."""
    option, *words = command.words[1:]
    program = words.pop(0) if option == "-m" else option
    sys.argv = [program, *words]
    for name in list(sys.modules):
        if name == f"{program}.__main__" or name.startswith("geosd.cli."):
            del sys.modules[name]
    try:
        if option == "-m":
            runpy.run_module(program, run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(program, run_name="__main__")
    except SystemExit as end:
        if end.code not in (None, 0):
            raise


def params(folder: Path) -> None:
    values = yaml.safe_load((ROOT / "params.yaml").read_text())
    recipe = {"steps": 4, "documents": 2, "warmup": 1}
    values["models"][MODEL]["base"]["pretraining"] |= recipe
    values["studies"] = {
        "quick": values["studies"]["quick"],
        "small": SMALL,
        "judged": JUDGED,
        "rates": RATES,
        "fetched": SMALL | {"data": {**SMALL["data"], "source": "dapo-math", "raw": "raw"}},
    }
    (folder / "params.yaml").write_text(yaml.safe_dump(values, sort_keys=False))


def given(folder: Path) -> str:
    """Make the inputs of programs that no rule runs.

    Returns:
        A file of weights of study rates, none of whose runs is made.
    """
    rows = [
        (MODEL, variant, 0, 0, "select_validation", "ID", "avg@k", 2, 40.0)
        for variant in ("pi_0", "geosd-learning_rate_1e-06", "geosd-learning_rate_1e-05")
    ]
    (folder / "given").mkdir()
    table = pd.DataFrame(rows, columns=list(COLUMNS["scores"]))
    table.to_csv(folder / "given/scores.csv", index=False)
    with contextlib.chdir(folder):
        study = resolve_study(load(Path("params.yaml")), "rates")
        weights = next(iter(weight_readers(study)))
        made = manifest("data", [], settings("data", study), 1.0)
        made["code"]["files"]["geosd/seeds.py"] = "0" * 64  # by other code
        write_manifest(Path(RunFolders(study).data, "manifest.json"), made)
    write_text(folder / weights, "Weights that every study has read.")
    lines = [{"gold": str(n), "response": f"The answer is {n % 2}."} for n in range(4)]
    (folder / "given/rows.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return weights


def planned(folder: Path, *arguments: str) -> list[Command]:
    """The commands that Snakemake would run, in order."""
    workflow = runpy.run_path(str(ROOT / "tests/workflow/conftest.py"))["Workflow"](folder)
    printed = workflow.snakemake("--profile", "local", "-n", "-p", *arguments)
    commands = []
    for line in re.findall(r"^ *Shell command: (?!None)(.+) > ", printed, re.M):
        words = shlex.split(line)
        commands.append(Command(words[words.index("--") + 1 :] if words[0] == "exec" else words))
    return commands


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The folder of the study, each command done once; the commands; what lies there then."""
    folder = tmp_path_factory.mktemp("kills")
    for name in LINKED:
        (folder / name).symlink_to(ROOT / name)
    shutil.copytree(ROOT / "base_models" / MODEL, folder / "base_models" / MODEL)
    shutil.copy(ROOT / "base_models/SHA256SUMS", folder / "base_models")
    params(folder)
    weights = given(folder)
    commands = planned(folder, "--config", "study=small", "--", *TARGETS)
    commands += planned(folder, "--config", "study=fetched", "--", "fetch")
    commands += [Command(shlex.split(line.format(weights=weights))) for line in BY_HAND]
    reporting = [
        f"geosd.reporting.{path.stem}" for path in (ROOT / "src/geosd/reporting").glob("*.py")
    ]
    named = sorted(name.removeprefix("geosd ") for name in programs() if "geosd " in name)
    modules = ["geosd.config", *(f"geosd.cli.{PROGRAMS[name][0]}" for name in named)]
    for module in (*PRELOADED, *LATE, *sorted(reporting), *modules):  # not in each fork
        importlib.import_module(module)
    gc.freeze()  # or each fork would look through all of it
    (folder / "hub.txt").write_text("A file of the hub.")
    entries = [
        DatasetCatalogueEntry(f"{n}.txt", "owner/name", "0", "hub.txt", None) for n in range(2)
    ]
    with pytest.MonkeyPatch.context() as patch:
        of = "geosd.problems.dataset_download"
        patch.setattr(f"{of}.load_dataset_catalogue", lambda *_: entries)
        patch.setattr(f"{of}._from_hub", lambda entry, **_: folder / entry.file)
        patch.setattr("geosd.provenance.code._git", lambda *_: None)
        log, found = folder.with_suffix(".log"), contents(folder)
        for command in commands:
            status, command.operations = run(command, folder, log)
            assert status == 0, log.read_text()
            before, found = found, contents(folder)
            changed = [n for n in before.keys() | found.keys() if before.get(n) != found.get(n)]
            command.before = {name: before.get(name) for name in changed}
            command.after = {name: found.get(name) for name in changed}
        yield SimpleNamespace(folder=folder, commands=commands, contents=found, log=log)
    gc.unfreeze()


@pytest.mark.slow
def test_every_program_is_among_those_that_are_killed(finished):
    assert {command.program for command in finished.commands} == programs()
    assert all(command.operations for command in finished.commands)


def repacked(capsule, out, **changed):
    """A capsule with other contents of files, which its metadata list with their hashes."""
    with zipfile.ZipFile(capsule) as packed:
        files = {name: packed.read(name) for name in packed.namelist()}
    metadata = json.loads(files.pop(METADATA))
    for name, change in changed.items():
        files[name] = change(files[name])
        (entity,) = (each for each in metadata["@graph"] if each["@id"] == name)
        entity |= crate_entities({name: files[name]})[0]
    return zip_crate(out, files, metadata)


def is_sound(capsule):
    """Whether a capsule is found sound; one that cannot be made again is refused."""
    try:
        return verify(capsule) == 0
    except DamagedFileError:
        return False


def rewritten(capsule, out, change):
    """A capsule whose files `change` edits in place, with metadata that list what there is then."""
    with zipfile.ZipFile(capsule) as packed:
        files = {name: packed.read(name) for name in packed.namelist()}
    metadata, listed = json.loads(files.pop(METADATA)), {*files}
    change(files)
    root, *others = (each for each in metadata["@graph"] if each["@id"] not in listed)
    root, others = (others[0], [root, *others[1:]]) if root["@id"] == METADATA else (root, others)
    root["hasPart"] = [{"@id": name} for name in files]
    metadata["@graph"] = [root, *others, *crate_entities(files)]
    return zip_crate(out, files, metadata)


OUTPUTS = "figures/small/"


def shipped(files, change):
    """Edit the manifest of the shipped form."""
    manifest = json.loads(files[OUTPUTS + "shipped.json"])
    change(manifest)
    files[OUTPUTS + "shipped.json"] = (json.dumps(manifest, indent=1) + "\n").encode()


def forged(files, suffix):
    """Change a file of the outputs, and take it off their manifest's list."""
    name = next(name for name in sorted(files) if name.startswith(OUTPUTS) and suffix in name)
    files[name] += b"\nGeoSD wins.\n"
    shipped(files, lambda manifest: manifest["files"].pop(name.removeprefix(OUTPUTS), None))


def removed(files, suffix):
    name = next(name for name in sorted(files) if name.startswith(OUTPUTS) and suffix in name)
    del files[name]
    shipped(files, lambda manifest: manifest["files"].pop(name.removeprefix(OUTPUTS), None))


def index_without_a_run(files):
    name = "results/small/runs.csv"
    head, *rows = files[name].splitlines(keepends=True)
    files[name] = b"".join([head, *rows[:-1]])
    manifest = json.loads(files["results/small/runs.manifest.json"])
    manifest["outputs"]["runs.csv"] = hashlib.sha256(files[name]).hexdigest()
    del manifest["digest"]
    text = json.dumps(manifest, sort_keys=True, ensure_ascii=False)
    manifest["digest"] = hashlib.sha256(text.encode()).hexdigest()
    files["results/small/runs.manifest.json"] = json.dumps(manifest).encode()


FORGERIES = {
    "table": lambda files: forged(files, ".md"),
    "figure": lambda files: forged(files, ".svg"),
    "caption": lambda files: forged(files, ".caption.md"),
    "LaTeX": lambda files: forged(files, ".tex"),
    "configuration": lambda files: forged(files, "configuration.yaml"),
    "what made the runs": lambda files: shipped(files, lambda m: m["made"].update(commit="c" * 10)),
    "output taken out": lambda files: shipped(files, lambda m: m["outputs"].popitem()),
    "file removed": lambda files: removed(files, ".tex"),
    "a file more": lambda files: files.update({OUTPUTS + "table_new.md": b"| GeoSD | 100 |"}),
    "another study": lambda files: files.update({"figures/best/table_main.md": b"| 100 |"}),
    "a capsule inside": lambda files: files.update({"results/inner.zip": b"PK"}),
    "run left out": index_without_a_run,
}


@pytest.mark.slow
@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_forged_capsule_is_not_sound_whatever_its_lists_say(finished, tmp_path, capsys, forgery):
    capsule = rewritten(finished.folder / "small.zip", tmp_path / "forged.zip", FORGERIES[forgery])
    assert not is_sound(capsule)
    assert "The capsule is sound." not in capsys.readouterr().out


@pytest.mark.slow
def test_a_capsule_keeps_the_names_of_machines_to_itself(finished):
    with zipfile.ZipFile(finished.folder / "small.zip") as packed:
        for name in packed.namelist():
            if name.endswith(("manifest.json", "environment.md")):
                text = packed.read(name).decode()
                assert '"node"' not in text and platform.release() not in text, name


@pytest.mark.slow
def test_a_capsule_says_which_workflow_made_it_and_has_nothing_of_gits(finished):
    with zipfile.ZipFile(finished.folder / "small.zip") as packed:
        names = packed.namelist()
        entities = {each["@id"]: each for each in json.loads(packed.read(METADATA))["@graph"]}
        assert packed.read("Snakefile") == (ROOT / "Snakefile").read_bytes()
    assert not [name for name in names if Path(name).name.startswith(".")]
    (action,) = (each for each in entities.values() if each["@type"] == "CreateAction")
    assert action["instrument"] == entities["./"]["mainEntity"] == {"@id": "Snakefile"}
    made = {each["@id"] for each in action["result"]}
    assert made == {name for name in names if name.startswith(("results/", "figures/"))}


@pytest.mark.slow
def test_a_capsule_is_sound_and_what_was_changed_in_it_is_named(finished, tmp_path, capsys):
    capsule = finished.folder / "small.zip"
    assert verify(capsule) == 0, capsys.readouterr().out
    with zipfile.ZipFile(capsule) as packed:
        names = packed.namelist()
        (logged,) = (name for name in names if "/geosd-" in name and name.endswith("steps.csv"))
        samples = [name for name in names if name.endswith("samples.jsonl")]
    changes = {
        samples[0]: lambda data: data.replace(b'"correct": false', b'"correct": true', 1),
        logged: lambda data: data + data.splitlines(keepends=True)[-1],
        "figures/small/source/scores.csv": lambda data: data.replace(b"avg@k", b"pass@k", 1),
    }
    for name, change in changes.items():
        assert not is_sound(repacked(capsule, tmp_path / "changed.zip", **{name: change}))
    for name in ("../out.txt", "/tmp/out.txt", "a/../../out.txt"):
        with zipfile.ZipFile(tmp_path / "outside.zip", "w") as packed:
            entity = {"@id": name, "contentSize": "1", "sha256": hashlib.sha256(b"x").hexdigest()}
            root = {"@id": "./", "hasPart": [{"@id": name}]}
            packed.writestr(METADATA, json.dumps({"@graph": [root, entity]}))
            packed.writestr(name, "x")
        with pytest.raises(DamagedFileError, match=r"(?s)no file in the capsule's folder.*Hint"):
            verify(tmp_path / "outside.zip")
    assert not (tmp_path / "out.txt").exists()


@pytest.mark.slow
def test_a_program_killed_anywhere_ends_with_the_same_bytes(finished, capsys):
    draw, done, folder = random.Random(SEED), Counter(), finished.folder
    damages = runpy.run_path(str(Path(__file__).with_name("test_states.py")))["DAMAGES"]
    commands = sorted(finished.commands, key=lambda command: command.words)  # of a plan any order
    of_program = {command.program: [] for command in commands}
    for command in commands:
        of_program[command.program].append(command)
    drawn = [draw.choice(of_one) for of_one in of_program.values()]
    keep_state = ("train", "base-model", "evaluate-run", "pool")
    resumed = [of_program[f"geosd {name}"] for name in keep_state]
    drawn += [draw.choice(resumed[number % 4]) for number in range(RESUMED)]
    drawn += [draw.choice(commands) for _ in range(KILLS - len(drawn))]
    for command in drawn:
        put(folder, command.before)
        moment = draw.randint(1, command.operations)
        case = f"{shlex.join(command.words)}, killed before operation {moment}"
        shutil.rmtree(folder / "scratch", ignore_errors=True)
        status, _ = run(command, folder, finished.log, kill_before=moment)
        assert status == -signal.SIGKILL, case
        done["killed"] += 1
        states = [*(folder / "scratch").rglob("state*.pt"), *(folder / "scratch").rglob("0*.jsonl")]
        for state in sorted(states):
            damage = draw.choice(damages if state.suffix == ".pt" else damages[:3])
            damage(state, draw)
            done["states damaged"] += 1
        status, _ = run(command, folder, finished.log)
        assert status == 0, f"{case}\n{finished.log.read_text()}"
        found = contents(folder)
        left = [name for name in found if LEFTOVER.fullmatch(Path(name).name)]
        done["leftovers"] += len(left)
        for name in left:
            (folder / name).unlink()
            del found[name]
        done["set aside"] += len([*(folder / "scratch").rglob("*.damaged")])
        assert found.keys() == finished.contents.keys(), case
        for name, data in finished.contents.items():
            if data != found[name]:
                assert name in command.after, f"{case}: {name}"
                assert comparable(name, found[name]) == comparable(name, data), f"{case}: {name}"
        done["the same bytes"] += 1
        put(folder, command.after)
    with capsys.disabled():
        print(f"\n{len(of_program)} programs, {len(finished.commands)} commands with")
        print(f"{sum(c.operations for c in finished.commands)} operations: {dict(done)}")
        print(f"{sum(os.times()[2:4]):.0f} s of processor time in these programs")
    assert done["states damaged"]
