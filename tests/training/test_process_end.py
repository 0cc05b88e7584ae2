"""The end of one of several processes: nothing is torn down that could still abort it.

Run as a program, this file is what each process does.
"""

import atexit
import os
import signal
import subprocess
import sys

import pytest

from geosd.training.process_groups import init_process_groups
from geosd.training.processes import end_training_process

pytestmark = pytest.mark.slow


class AbortsInTeardown:
    """Aborts when the interpreter takes its module apart."""

    def __del__(self):
        """Abort."""
        os.abort()


def main(status):
    """Come together and end; what is registered for the end says so."""
    with init_process_groups() as (ranks, _):
        ranks.barrier()
    globals()["kept"] = AbortsInTeardown()
    atexit.register(print, "closed what was open")
    end_training_process(status)


def test_several_processes_end_without_the_interpreters_teardown():
    from cases import places  # which the program itself, started elsewhere, would not find

    statuses = 0, 75  # a place each
    started = [
        subprocess.Popen(
            [sys.executable, __file__, str(status)],
            env={**os.environ, **place},
            stdout=subprocess.PIPE,
            text=True,
        )
        for status, place in zip(statuses, places(2), strict=True)
    ]
    for process, status in zip(started, statuses, strict=True):
        printed, _ = process.communicate(timeout=240)
        assert printed == "closed what was open\n"
        assert process.returncode == status


def test_a_process_alone_is_torn_down():
    alone = {name: value for name, value in os.environ.items() if name != "RANK"}
    ran = subprocess.run([sys.executable, __file__, "0"], env=alone, capture_output=True, text=True)
    assert ran.stdout.splitlines() == ["closed what was open"]
    assert ran.returncode == -signal.SIGABRT


if __name__ == "__main__":
    main(int(sys.argv[1]))
