import os
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from geosd.problems.grading import symbolic_comparison
from geosd.problems.grading.grading_pool import (
    REMEMBERED,
    GradingPool,
    MissingMathError,
    WorkerEndedError,
)
from geosd.problems.grading.typed_grader import grade_answer


def started(pool):
    """The pool, with its processes running: starting them is not part of any limit."""
    for worker in pool._workers:
        worker._start()
    return pool


@pytest.mark.slow
@pytest.mark.parametrize("hostile", ["10^{10^{10}}", "9^{9^{9^9}}"])
def test_a_hostile_expression_ends_within_its_limit_and_says_so(hostile):
    start = time.monotonic()
    with started(GradingPool(workers=1, seconds=1)) as pool:
        start_seconds = time.monotonic() - start
        start = time.monotonic()
        verdict = grade_answer(hostile, r"\frac{1}{2}", pool)
        # Two tries, with the start of a process between them; a third would take a second more.
        assert time.monotonic() - start < 2.8 + start_seconds
        assert (verdict.correct, verdict.reason) == (False, "timeout")
        pool._workers[0].seconds = 30
        assert pool.compare("1/2", "0.5") == "correct"  # a new process has taken its place


@pytest.mark.slow
def test_a_killed_process_is_gone():
    with started(GradingPool(workers=1, seconds=0.5)) as pool:
        process = pool._workers[0].process
        assert pool.compare("1", "10^{10^{10}}") == "timeout"
        assert process.returncode == -signal.SIGKILL


@pytest.mark.slow
def test_a_pause_of_the_machine_is_no_verdict():
    with started(GradingPool(workers=1, seconds=5)) as pool:
        paused = pool._workers[0].process
        os.kill(paused.pid, signal.SIGSTOP)
        assert pool.compare("x+1", "1+x") == "correct"
        assert paused.returncode == -signal.SIGKILL


@pytest.mark.slow
def test_a_process_that_dies_during_a_comparison_is_a_crash():
    with started(GradingPool(workers=1, seconds=20)) as pool:
        end = threading.Timer(0.3, os.kill, [pool._workers[0].process.pid, signal.SIGSEGV])
        end.start()
        assert pool.compare("1", "10^{10^{10}}") == "crash"
        assert pool.compare("x+1", "1+x") == "correct"


@pytest.mark.slow
def test_a_process_that_died_before_a_comparison_is_replaced():
    with started(GradingPool(workers=1, seconds=20)) as pool:
        pool._workers[0].process.kill()
        pool._workers[0].process.wait()
        assert pool.compare("x+1", "1+x") == "correct"


@pytest.mark.slow
def test_many_threads_get_their_own_answers():
    pairs = [(f"x+{n}", f"{n + n % 2}+x") for n in range(40)]
    with GradingPool(workers=2, seconds=30) as pool, ThreadPoolExecutor(8) as threads:
        outcomes = list(threads.map(lambda pair: pool.compare(*pair), pairs))
    assert outcomes == ["correct", "wrong answer"] * 20


def test_without_math_verify_the_error_says_what_needs_it(monkeypatch, tmp_path):
    (tmp_path / "math_verify.py").write_text("raise ImportError")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}")
    with GradingPool(workers=1, seconds=30) as pool:
        assert grade_answer("7", "7", pool).correct
        assert grade_answer("East", "east", pool).correct
        with pytest.raises(
            MissingMathError, match=r"\\sqrt(.|\n)*Hint: pip install 'geosd\[math\]'"
        ):
            grade_answer("x", r"\sqrt{2}", pool)


@pytest.mark.slow
def test_an_extraction_is_ended_by_the_clock_and_says_so():
    with started(GradingPool(workers=1, seconds=30)) as pool:
        pool._workers[0].seconds = 1e-4
        with pytest.raises(WorkerEndedError) as ended:
            pool.extract("answer to " * 20_000)
        assert ended.value.reason == "timeout"
        pool._workers[0].seconds = 30
        assert pool.extract("A: 7") == "7"


def test_a_request_is_sent_once_again_and_not_forever(monkeypatch):
    worker = GradingPool(workers=1, seconds=5)._workers[0]
    sent = []
    monkeypatch.setattr(worker, "_send", lambda request: sent.append(request) or False)
    monkeypatch.setattr(worker, "_read_line", lambda seconds: b"")
    with pytest.raises(WorkerEndedError, match="crash"):
        worker.ask("compare", "1", "2")
    assert len(sent) == 2


def test_a_pool_forgets_outcomes_beyond_a_number(monkeypatch):
    compared = []

    def ask(self, task, gold, answer):
        compared.append(answer)
        return "wrong answer"

    monkeypatch.setattr(GradingPool, "_ask", ask)
    with GradingPool() as pool:
        for answer in range(REMEMBERED + 1):
            pool.compare("1", str(answer))
        for answer in (REMEMBERED, 1):  # kept
            assert pool.compare("1", str(answer)) == "wrong answer"
        assert len(compared) == REMEMBERED + 1
        pool.compare("1", "0")
        assert compared[-1] == "0" and len(compared) == REMEMBERED + 2


def test_a_pool_of_nothing_is_refused():
    with pytest.raises(ValueError, match="Hint"):
        GradingPool(workers=0)


def test_in_a_worker_sympy_reads_numbers_and_no_other_text(monkeypatch):
    from sympy import Float, Integer, sympify
    from sympy.parsing import sympy_parser

    monkeypatch.setattr(sympy_parser, "parse_expr", sympy_parser.parse_expr)  # put back afterwards
    symbolic_comparison.forbid_eval()
    assert (sympify("12"), sympify("0.5")) == (Integer(12), Float("0.5"))
    with pytest.raises(Exception, match="never evaluated"):
        sympify("print(1)")
    assert "sympy.parsing.sympy_parser" in sys.modules
