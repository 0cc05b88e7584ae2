"""A process that compares answers: one JSON list `[gold, answer]` a line in, one verdict out.

`symbolic_pool` starts it as `python -m geosd.problems.symbolic_worker SECONDS MEGABYTES`. It lives
until its input ends or its parent kills it; text that brings it down brings down nothing else.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import sys


def main(seconds: float, megabytes: int) -> None:
    """Answer requests until the input ends.

    Args:
        seconds: The parent's limit on one comparison.
        megabytes: Limit on this process's address space.
    """
    # The answers get a descriptor of their own, so that nothing a library prints mixes with them.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    with contextlib.suppress(ValueError, OSError):  # not every system can limit it
        resource.setrlimit(resource.RLIMIT_AS, (megabytes << 20, megabytes << 20))
    from geosd.problems import symbolic

    symbolic.forbid_eval()
    symbolic.compare("1", "2")  # loads sympy and the grammar, before any clock runs
    print(json.dumps("ready"), file=answers, flush=True)
    # Read bytes: a line must not depend on the locale.
    for line in sys.stdin.buffer:
        gold, answer = json.loads(line)
        # Should the parent be gone, the system's alarm ends even a computation inside C.
        signal.setitimer(signal.ITIMER_REAL, 2 * seconds + 1)
        verdict = symbolic.compare(gold, answer)
        signal.setitimer(signal.ITIMER_REAL, 0)
        print(json.dumps(verdict), file=answers, flush=True)


if __name__ == "__main__":
    main(float(sys.argv[1]), int(sys.argv[2]))
