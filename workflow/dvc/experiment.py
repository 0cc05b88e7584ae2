"""Run a study with some settings changed, and keep that as an experiment of DVC (`make exp`).

    python workflow/dvc/experiment.py --study quick --name short --set "training.steps=50 seeds=[0]"

The values are changed in the text of params.yaml, for as long as the run takes; then all files are
as before. `dvc exp run --set-param` would write the whole file anew, without its layout. Edits that
are made meanwhile stay (`kept_files`), and a signal puts the files back as the end does. After
kill -9 the next start does, or `experiment.py --put-back`.
"""

import argparse
import io
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

from generate import Pipeline
from kept_files import keep, put_back
from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap

from geosd.cli.cut_off_experiment import FOLDER, NAME, cut_off_experiment_lock
from geosd.cli.dvc_metrics import OWN, write_own
from geosd.cli.publish import commit_to_publish, folders_to_publish, hide_published_lock
from geosd.files import write_text
from geosd.prerequisites.folder_name import refuse_folder

PARAMS = Path("params.yaml")
NULL = "tag:yaml.org,2002:null"
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Ctrl-C, the end that is asked for, and a terminal that is closed."""
PATIENCE_S = 30.0
"""How long the study's program may end its jobs after a signal."""


def edited(text: str, study: str, changes: str) -> str:
    """The text of params.yaml with values of a study changed, or added; all else is as it was.

    `changes` are words as in `training.steps=50 seeds=[0]`. A key that is new goes first, before
    comments on what follows.

    Raises:
        SystemExit: The file has no such study, a word is no path and value, or a mapping has an
            anchor: other settings would change with it.
    """
    yaml, written = YAML(), io.StringIO()
    yaml.width, yaml.preserve_quotes = 10**6, True
    yaml.indent(mapping=2, sequence=4, offset=2)
    yaml.representer.add_representer(type(None), lambda to, _: to.represent_scalar(NULL, "null"))
    params = yaml.load(text)
    if study not in params["studies"]:
        names = ", ".join(params["studies"])
        raise SystemExit(f"No study {study!r}.\nHint: params.yaml has {names}.")
    for word in shlex.split(changes):
        path, equals, value = word.partition("=")
        *sections, key = path.split(".")
        if not (equals and key):
            raise SystemExit(f'{word!r} is no setting.\nHint: as in SET="training.steps=50".')
        values = params["studies"][study]
        for section in sections:
            if not isinstance(values.get(section), CommentedMap):
                values.insert(0, section, CommentedMap())
            values = values[section]
            if anchor := values.anchor.value:
                raise SystemExit(
                    f"{section} is shared in params.yaml, as *{anchor}.\nHint: write the values"
                    " there, in its place."
                )
        if key not in values:
            values.insert(0, key, None)
        values[key] = YAML().load(value)  # 1e-6 is a number
    yaml.dump(params, written)
    return written.getvalue()


def call(*command: str) -> None:
    """Run a program, and end with its status where it fails.

    A signal that ends this process is handed on, and the program has some time to end its jobs.
    """
    with subprocess.Popen([sys.executable, *command]) as child:
        try:
            status = child.wait()
        except SystemExit as stopped:
            child.send_signal(stopped.code - 128)
            try:
                child.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                print("Its jobs may still run.\nHint: make stop", file=sys.stderr)
                child.kill()
            raise
    if status:
        raise SystemExit(status if status > 0 else 128 - status)


def stop(number: int, _: object) -> None:
    """End this process for a signal, once; what puts the files back is not to be cut off."""
    for each in SIGNALS:
        signal.signal(each, signal.SIG_IGN)
    raise SystemExit(128 + number)


def main(study: str, name: str, changes: str) -> None:
    """Change the study, run it, keep the experiment, and leave each file as it was.

    Raises:
        SystemExit: A setting is none, another experiment runs, or a program failed, whose words
            stand above.
    """
    refuse_folder(Path.cwd())
    with cut_off_experiment_lock() as free:
        if not free:
            raise SystemExit("Another `make exp` runs in this folder.\nHint: wait for its end.")
        put_remnant_back()
        text = edited(PARAMS.read_text(encoding="utf-8"), study, changes)
        own = map(Pipeline.of, YAML(typ="safe", pure=True).load(text)["studies"])
        others = [file for each in own for file in (each.file, each.settings, each.lock)]
        others += sorted((OWN / study).rglob("*.json"))
        for each in SIGNALS:
            signal.signal(each, stop)
        try:
            keep(name, PARAMS, text, others)
            write_text(PARAMS.resolve(), text)
            run_and_save(study, name)
        finally:
            for each in SIGNALS:
                signal.signal(each, signal.SIG_IGN)
            said = put_back(PARAMS) if (FOLDER / NAME).is_file() else ""
            print(said or "params.yaml is as before.", flush=True)
    hide_published_lock()
    print(f"\nThe experiment is {name}: `dvc exp show`, `dvc exp apply {name}`.")
    print(f"`make run STUDY={study}` shows study {study} itself again.")


def run_and_save(study: str, name: str) -> None:
    """Run the study as params.yaml now has it, and save that as an experiment of DVC."""
    call("workflow/dvc/generate.py", "--study", study)
    call("-m", "geosd", "run", "--study", study)
    at = Pipeline.of(study)
    accuracies = write_own(study)
    commit_to_publish([str(at.file)], folders_to_publish(study))
    kept = (at.file, at.settings, at.lock, *accuracies)
    untracked = ["git", "ls-files", "--others", "--", *kept]
    new = subprocess.run(untracked, capture_output=True, text=True, check=True).stdout.split()
    added = [word for file in new for word in ("-I", file)]
    call("-m", "dvc", "exp", "save", "--force", "--name", name, *added, str(at.file))


def put_remnant_back() -> None:
    """Put back what an experiment changed that was killed, and say so."""
    if not FOLDER.exists():
        return
    if not (FOLDER / NAME).is_file():  # killed before it changed anything
        shutil.rmtree(FOLDER)
        return
    name = (FOLDER / NAME).read_text(encoding="utf-8").strip()
    said = put_back(PARAMS) or "params.yaml is as before it."
    print(f"Experiment {name} was killed, and left its settings in place. {said}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--study", default="quick")
    parser.add_argument("--name", help="what the experiment is called")
    parser.add_argument("--set", dest="changes", help="training.steps=50 seeds=[0]")
    parser.add_argument("--put-back", action="store_true", help="after an experiment was killed")
    options = vars(parser.parse_args())
    if options.pop("put_back"):
        with cut_off_experiment_lock() as free:
            if not free:
                raise SystemExit("An experiment runs in this folder.\nHint: wait for its end.")
            put_remnant_back()
    elif not (options["name"] and options["changes"]):
        parser.error('--name and --set are needed.\nHint: make exp NAME=x SET="training.steps=50"')
    else:
        main(**options)
