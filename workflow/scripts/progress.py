"""Run a command and, while it runs, repeat the last word of every log that is being written.

    progress.py LOGS COMMAND ...

Snakemake says which jobs started and ended; this says how far the long ones are.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path

EVERY_SECONDS = 15
LAST_BYTES = 4096


def last_words(logs: Path, since: float) -> list[str]:
    """The last line of each log under a folder that was written after a moment (Unix time)."""
    words = []
    for log in sorted(logs.rglob("*.log")):
        if log.stat().st_mtime > since:
            with log.open("rb") as file:
                file.seek(max(0, log.stat().st_size - LAST_BYTES))
                text = file.read().decode("utf-8", errors="replace")
            # A progress bar redraws its line with carriage returns, and moves with escape codes.
            text = re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", text).replace("\r", "\n")
            lines = [line.strip() for line in text.split("\n") if line.strip()]
            if lines:
                words.append(f"    {log.relative_to(logs).with_suffix('')}: {lines[-1]}")
    return words


def main(logs: Path, command: list[str]) -> int:
    """Run a command and repeat its logs' progress; returns its exit status, also after Ctrl-C."""
    child = subprocess.Popen(command)
    while True:
        try:
            since = time.time()
            return child.wait(timeout=EVERY_SECONDS)
        except subprocess.TimeoutExpired:
            for line in last_words(logs, since):
                print(line, flush=True)
        except KeyboardInterrupt:
            continue


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
