import math
import os
import random
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from geosd.problems.grading import answer_comparison
from geosd.problems.grading.typed_grader import (
    REMEMBERED,
    MissingMathError,
    TypedGrader,
    grade_typed_answer,
)
from geosd.problems.limited_process import LimitedProcess

ENDLESS = r"\sqrt{2}+10^{10^{10}}"


def started(pool):
    """The grader, with its process running: starting it is not part of any limit."""
    pool._process.start()
    return pool


@pytest.mark.parametrize(
    "hostile", [ENDLESS, pytest.param(r"\sqrt{2}+9^{9^{9^9}}", marks=pytest.mark.slow)]
)
def test_an_endless_formula_uses_up_its_processor_time_and_says_so(hostile):
    with started(TypedGrader(seconds=0.5)) as pool:
        worker = pool._process
        process = worker.process
        before = os.times()
        assert grade_typed_answer(hostile, r"\sqrt{2}", pool).reason == "timeout"
        spent = sum(os.times()[2:4]) - sum(before[2:4])  # of this one, with its start
        assert process.returncode == -signal.SIGPROF and spent < 10
        worker.seconds = 30
        assert pool.compare("x+1", "1+x") == "correct"  # a new process has taken its place


@pytest.mark.slow
def test_a_pause_of_the_machine_is_no_verdict():
    with started(TypedGrader(seconds=0.5)) as pool:
        paused = pool._process.process
        os.kill(paused.pid, signal.SIGSTOP)
        threading.Timer(2, os.kill, [paused.pid, signal.SIGCONT]).start()
        assert pool.compare("x+1", "1+x") == "correct"
        assert pool._process.process is paused


@pytest.mark.slow
def test_a_process_that_never_answers_is_not_waited_for_without_end():
    with started(TypedGrader(seconds=5)) as pool:
        pool._process.patience = 0.5
        os.kill(pool._process.process.pid, signal.SIGSTOP)
        assert pool.compare("x+1", "1+x") == "crash"


def test_a_verdict_does_not_depend_on_what_came_before(monkeypatch):
    def compare(self, gold, answer):
        if "10^" in answer:
            raise TimeoutError
        return "correct"

    monkeypatch.setattr(LimitedProcess, "ask", compare)
    gold = r"\frac{x+1}{2}"
    with TypedGrader() as pool:
        assert {pool.compare(gold, f"10^{{10^{n}}}") for n in range(100)} == {"timeout"}
        assert grade_typed_answer(r"\frac{1+x}{2}", gold, pool).correct


@pytest.mark.slow
def test_two_hundred_nested_answers_cost_less_than_ten_seconds():
    draw = random.Random(0)
    shapes = [(r"\frac{1}{", "}"), (r"1+\frac{1}{1+", "}"), ("(", ")"), ("2^{", "}"), ("(x+", ")")]
    shapes += [
        (r"\sqrt{2+", "}"),
        ("x^{", "}"),
        (r"\sin(", ")"),
        ("(1+", ")^2"),
        (r"\frac{x}{", "}"),
    ]
    answers = set()
    while len(answers) < 200:
        opening, closing = draw.choice(shapes)
        depth = round(math.exp(draw.uniform(math.log(11), math.log(100))))
        answers.add(opening * depth + str(draw.randint(2, 99)) + closing * depth)
    with started(TypedGrader()) as pool:
        worker = pool._process.process
        start = time.process_time()
        for answer in sorted(answers):
            assert not grade_typed_answer(answer, r"\frac{1}{3}", pool).correct
        assert time.process_time() - start < 10
        assert pool._process.process is worker  # none was ended by its limit
        assert grade_typed_answer(
            "(" * 45 + r"\frac{1}{3}" + ")" * 45, r"\frac{1}{3}", pool
        ).correct


@pytest.mark.slow
def test_a_process_that_dies_during_a_comparison_is_a_crash():
    with started(TypedGrader(seconds=20)) as pool:
        end = threading.Timer(0.3, os.kill, [pool._process.process.pid, signal.SIGSEGV])
        end.start()
        assert pool.compare(r"\sqrt{2}", ENDLESS) == "crash"
        assert pool.compare("x+1", "1+x") == "correct"


def test_a_process_that_died_before_a_comparison_is_replaced():
    with started(TypedGrader(seconds=20)) as pool:
        pool._process.process.kill()
        pool._process.process.wait()
        assert pool.compare("x+1", "1+x") == "correct"


@pytest.mark.slow
def test_many_threads_get_their_own_answers():
    pairs = [(f"x+{n}", f"{n + n % 2}+x") for n in range(40)]
    with TypedGrader(seconds=30) as pool, ThreadPoolExecutor(8) as threads:
        outcomes = list(threads.map(lambda pair: pool.compare(*pair), pairs))
    assert outcomes == ["correct", "wrong answer"] * 20


def test_without_math_verify_the_error_says_what_needs_it(monkeypatch, tmp_path):
    (tmp_path / "math_verify.py").write_text("raise ImportError")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}")
    with TypedGrader(seconds=30) as pool:
        assert grade_typed_answer("7", "7", pool).correct
        assert grade_typed_answer("East", "east", pool).correct
        with pytest.raises(
            MissingMathError, match=r"\\sqrt(.|\n)*Hint: pip install 'geosd\[math\]'"
        ):
            grade_typed_answer("x", r"\sqrt{2}", pool)


def test_a_request_is_sent_once_again_and_not_forever(monkeypatch):
    worker = TypedGrader(seconds=5)._process
    sent = []
    monkeypatch.setattr(worker, "_send", lambda request: sent.append(request) or False)
    monkeypatch.setattr(worker, "_read_line", lambda seconds: b"")
    with pytest.raises(ChildProcessError):
        worker.ask("x", "y")
    assert len(sent) == 2


def test_a_pool_forgets_outcomes_beyond_a_number(monkeypatch):
    compared = []

    def compare(self, gold, answer):
        compared.append(answer)
        return "wrong answer"

    monkeypatch.setattr(LimitedProcess, "ask", compare)
    with TypedGrader() as pool:
        for answer in range(REMEMBERED + 1):
            pool.compare("1", str(answer))
        for answer in (REMEMBERED, 1):  # kept
            assert pool.compare("1", str(answer)) == "wrong answer"
        assert len(compared) == REMEMBERED + 1
        pool.compare("1", "0")
        assert compared[-1] == "0" and len(compared) == REMEMBERED + 2


def test_no_time_for_a_formula_is_refused():
    with pytest.raises(ValueError, match="Hint"):
        TypedGrader(seconds=0)


def test_in_a_worker_sympy_reads_numbers_and_no_other_text(monkeypatch):
    from sympy import Float, Integer, sympify
    from sympy.parsing import sympy_parser

    monkeypatch.setattr(sympy_parser, "parse_expr", sympy_parser.parse_expr)  # put back afterwards
    answer_comparison.forbid_eval()
    assert (sympify("12"), sympify("0.5")) == (Integer(12), Float("0.5"))
    with pytest.raises(Exception, match="never evaluated"):
        sympify("print(1)")
    assert "sympy.parsing.sympy_parser" in sys.modules
