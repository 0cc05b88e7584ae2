"""What every test may ask for: the shared data, the paper's source, and one thread."""

from __future__ import annotations

import ctypes
import gc
import hashlib
import os
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import checked_studies
import psutil
import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
MEMORY, LEAST_ROOM = Path("/dev/shm"), 8e9
M_MMAP_THRESHOLD = -3  # of glibc's malloc.h


def pytest_configure() -> None:
    """Keep the files of tests in memory where there is room: a suite makes and deletes 64,000.

    On a disk each costs a millisecond, and the CPU waits while thousands are synced or deleted.
    """
    if "PYTEST_DEBUG_TEMPROOT" not in os.environ and _has_room(MEMORY):
        os.environ["PYTEST_DEBUG_TEMPROOT"] = str(MEMORY)
    # libyaml reads and writes the same in a tenth of the time, and tests edit params.yaml often.
    yaml.SafeLoader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    yaml.SafeDumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


LONGEST = (
    "workflow/test_dvc_publish.py",
    "sampling/test_compiled_step.py",
    "cli/test_paper_models.py",
    "cli/test_ship.py",
    "workflow/test_remove_weights.py",
    "hostile/test_kills.py",
    "cli/test_quick_direction.py",
    "hostile/test_states.py",
    "hostile/test_configurations.py",
    "workflow/test_draws.py",
    "training/test_ranks.py",
    "workflow/test_report_in_browser.py",
    "workflow/test_dvc.py",
)
"""The files of tests with most CPU time, which begin first: two processes then end together."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the longest files first; xdist hands out the files of --dist loadfile in this order."""
    places = {ROOT / "tests" / name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.path, len(LONGEST)))


def pytest_collection_finish() -> None:
    """Have garbage collections pass over what was imported and collected: it stays to the end.

    statsmodels collects at each correction of p values, which took half a second each.
    """
    gc.collect()
    gc.freeze()


def _has_room(folder: Path) -> bool:
    """Whether a file system in memory has room for the files of tests, and may run programs."""
    if not os.access(folder, os.W_OK) or os.statvfs(folder).f_flag & os.ST_NOEXEC:
        return False
    return min(shutil.disk_usage(folder).free, psutil.virtual_memory().available) > LEAST_ROOM


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> None:
    """Two tests run side by side on two cores; a second thread each would slow both sevenfold."""
    os.environ["OMP_NUM_THREADS"] = "1"
    # tests/sampling/test_compiled_step.py alone compiles: half a minute an architecture.
    os.environ["GEOSD_COMPILE"] = "0"
    import torch

    torch.set_num_threads(1)
    _give_back_freed_tensors()
    # A fork has torch's pool of threads without the threads. Its first two threads to compute would
    # both replace the pool, and one of them find none ("Invalid thread pool!"): so it is done here.
    os.register_at_fork(after_in_child=lambda: torch.set_num_threads(1))


@pytest.fixture(scope="session", autouse=True)
def studies_checked_once() -> Iterator[None]:
    """Check each study of params.yaml once, however many tests load the file."""
    from geosd.config import loading

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loading, "_study", checked_studies.once(loading._study))
        yield


def _give_back_freed_tensors() -> None:
    """Have memory of four megabytes and more go back to the system when it is freed, under glibc.

    By default its allocator raises this bound to 32 MB when blocks of that size are freed. It kept
    up to two gigabytes after a test of logits over 150,000 words, between blocks still in use.
    """
    if mallopt := getattr(ctypes.CDLL(None), "mallopt", None):
        mallopt(M_MMAP_THRESHOLD, 2**22)


MODEL, DRAWS = "mini-qwen3", 2


def pin(project: Path) -> None:
    """Write base_models/SHA256SUMS of the files that lie there."""
    folder = project / "base_models"
    lines = [
        f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.relative_to(folder).as_posix()}\n"
        for file in sorted(folder.glob("*/*/*"))
    ]
    (folder / "SHA256SUMS").write_text("".join(lines))


@pytest.fixture(scope="session")
def ship() -> Callable[..., None]:
    """Let study quick of a project start from two shipped draws of its model, with four seeds.

    The draws are copies of folders of models; where none are given, files that are made up.
    """

    def shipped(project: Path, folders: Sequence[Path] = (), **changes: Any) -> None:
        shutil.rmtree(project / "base_models", ignore_errors=True)
        for draw in range(DRAWS):
            target = project / "base_models" / MODEL / str(draw)
            if folders:
                shutil.copytree(folders[draw], target)
                continue
            target.mkdir(parents=True)
            for name in ("config.json", "tokenizer.json", "model.safetensors"):
                (target / name).write_text(f"{name} of draw {draw}")
        pin(project)
        params = project / "params.yaml"
        values = yaml.safe_load(params.read_text())
        checkpoint = {"folder": f"base_models/{MODEL}"}
        values["models"][MODEL]["base"] |= {"source": "released", "checkpoint": checkpoint}
        for study in values["studies"].values():
            if "draws" in study:
                study["draws"] = min(study["draws"], DRAWS)  # no more are there
        values["studies"]["quick"] |= {"draws": DRAWS, "seeds": [0, 1, 2, 3], **changes}
        params.write_text(yaml.safe_dump(values, sort_keys=False))

    return shipped


@pytest.fixture(scope="session")
def root() -> Path:
    """The root of the repository."""
    return ROOT


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of published data sets, or the test is skipped."""
    folder = Path(os.environ.get("GEOSD_SHARED_DATA", ROOT / "../shared/data"))
    if not folder.is_dir():
        pytest.skip(
            f"no shared data at {folder}. Hint: set GEOSD_SHARED_DATA to the folder that holds the"
            " published data sets."
        )
    return folder.resolve()


SHARED = Path(os.environ.get("GEOSD_SHARED_DATA", Path(__file__).parents[2] / "shared" / "data"))


@pytest.fixture(scope="session")
def tex() -> str:
    source = SHARED.parent / "paper.tex"
    if not source.exists():
        pytest.skip(f"the paper's source is absent: {source}")
    return source.read_text(encoding="utf-8")


@pytest.fixture(scope="session")
def paper_prose(tex) -> str:
    """The paper's words without LaTeX markup, white space as single blanks."""
    text = re.sub(r"(?<!\\)%.*", "", tex)
    for pattern, replacement in (
        (r"\\S\\ref\{[^}]*\}|\\eqref\{[^}]*\}", ""),
        (r"\\method(\{\})?", "GeoSD"),
        (r"\\(emph|textbf)\{([^{}]*)\}", r"\2"),
        (r"\{?\\approx\}?", "≈"),
        (r"\\times", "×"),
        (r"\\to\b", "→"),
        (r"\\pi_0", "π0"),
        (r"\\alpha", "α"),
        (r"\\tau", "τ"),
        (r"\{=\}", "="),
        (r"---?", "–"),
        (r"\\%", "%"),
        (r"\$–\$", "–"),
        (r"\$", ""),
        (r"~|\\[!,;]", " "),
        (r"\s+", " "),
    ):
        text = re.sub(pattern, replacement, text)
    return text


@pytest.fixture(scope="session")
def table(tex):
    """Rows of a tabular, by label: cells as lists of the numbers that stand in them."""

    def read(label: str) -> list[tuple[str, list[list[float]]]]:
        after = tex.split(f"\\label{{{label}}}", 1)[1]
        body = after.split("\\end{tabular}", 1)[0].split("\\begin{tabular}", 1)[1]
        found = []
        for line in re.sub(r"\\(mid|bottom|top)rule", " ", body).split("\\\\"):
            first, *cells = line.strip().split("&")
            numbers = [
                [float(n) for n in re.findall(r"(?<![\w.])[-+]?\d+(?:\.\d+)?", strip(cell))]
                for cell in cells
            ]
            if numbers and any(numbers):
                found.append((first.strip(), numbers))
        return found

    def strip(cell: str) -> str:
        # A subscript is a second number: 61.4_{0.4}. Powers of ten are joined to their mantissa.
        cell = re.sub(r"\\times10\^\{(-?\d+)\}", r"e\1", cell)
        cell = re.sub(r"([\d.]+)e(-?\d+)", lambda m: f"{float(m[1] + 'e' + m[2]):.20f}", cell)
        return cell.replace("_{", " ").replace("\\mathbf{", " ").replace("\\underline{", " ")

    return read
