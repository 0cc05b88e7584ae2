"""A request that SLURM did not take is sent again as it was."""

import os
import subprocess

import pytest


@pytest.fixture
def submit(root, tmp_path):
    """Calls our sbatch before a stand-in that refuses some requests; its calls are in a file."""
    (tmp_path / "sleep").write_text('#!/bin/sh\necho "sleep $1" >> "$CALLS"\n')
    (tmp_path / "sbatch").write_text(
        '#!/bin/sh\necho "$@: $(cat)" >> "$CALLS"\n'
        '[ $(grep -vc sleep "$CALLS") -le $REFUSED ] && { echo "$SAID" >&2; exit 1; }\necho 42\n'
    )
    for name in ("sleep", "sbatch"):
        (tmp_path / name).chmod(0o755)
    ours, calls = root / "workflow/slurm/bin", tmp_path / "calls"

    def call(refused, said):
        path = os.pathsep.join([str(ours), str(tmp_path), os.environ["PATH"]])
        around = {"PATH": path, "CALLS": str(calls), "REFUSED": str(refused), "SAID": said}
        done = subprocess.run(
            ["sbatch", "--mem", "2000"],
            env={**os.environ, **around},
            input="a script\n",
            capture_output=True,
            text=True,
        )
        return done, calls.read_text().splitlines()

    return call


def test_a_controller_that_does_not_answer_gets_the_same_request_later(submit):
    done, calls = submit(2, "sbatch: error: Socket timed out on send/recv operation")
    assert (done.returncode, done.stdout) == (0, "42\n")
    request = "--mem 2000: a script"
    assert calls == [request, "sleep 5", request, "sleep 10", request]


def test_it_gives_up_in_the_end_and_says_why(submit):
    done, calls = submit(99, "sbatch: error: Unable to contact slurm controller")
    assert done.returncode == 1 and "Unable to contact" in done.stderr
    assert calls.count("--mem 2000: a script") == 80
    assert 43_000 < sum(int(call.split()[1]) for call in calls if call.startswith("sleep")) < 45_000


def test_a_request_that_slurm_refuses_is_not_sent_again(submit):
    done, calls = submit(99, "sbatch: error: Requested node configuration is not available")
    assert done.returncode == 1 and "node configuration" in done.stderr
    assert calls == ["--mem 2000: a script"]
