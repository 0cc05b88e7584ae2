"""Kinds of answers of several values, and other ways to write and to state an answer.

Each kind has controls, which are wrong or were judged right before.
"""

import pytest

from geosd.problems.grading.typed_grader import TypedGrader, grade_answer, grade_response

BOXED = {
    "pairs in braces are the list of these pairs": [
        ("(2,7),(5,-1)", r"\{(2,7),(5,-1)\}", True),
        ("(2,7),(5,-1)", r"\left\{\left(5,-1\right),\ \left(2,7\right)\right\}", True),
        (r"\{(2,7),(5,-1)\}", "(5,-1), (2,7)", True),
        (r"\{(2,7),(5,-1)\}", r"(5,-1) \text{ and } (2,7)", True),
        (r"(\frac12, 3), (4, \sqrt{5})", r"\{(4,\sqrt5),(0.5,3)\}", True),
        (r"\{(1,2,3),(4,5,6)\}", "(4,5,6),(1,2,3)", True),
        ("(x,y)=(2,7),(5,-1)", "(5,-1), (2,7)", True),
        (r"\{(2,7)\}", "(2,7)", True),
        ("(2,7)", r"\{(2,7)\}", True),
        ("(2,7),(5,-1)", r"\{(7,2),(5,-1)\}", False),
        ("(2,7),(5,-1)", r"\{(2,7)\}", False),
        ("(2,7),(5,-1)", r"\{(2,7),(5,-1),(0,0)\}", False),
        ("(2,7),(5,-1)", r"\{\{2,7\},\{5,-1\}\}", False),
        ("(2,7),(5,-1)", "2,7,5,-1", False),
        (r"\{(1,2,3),(4,5,6)\}", "(4,5,6),(1,3,2)", False),
    ],
    "a tuple is no list, in either direction": [
        ("2,7", "(7,2)", False),
        ("2,7", "(2,7)", False),
        ("(2,7)", "2,7", False),
        ("(2,7)", "7,2", False),
        (r"\{2,7\}", "(2,7)", False),
        (r"\{2,7\}", "7,2", True),
        ("2,7", r"\{7,2\}", True),
        ("2,7,7", "7,2", True),
        ("(2,7)", r"x=2,\ y=7", True),
        ("x=2, y=7", "(2,7)", True),
        ("x=2, y=7", "2, 7", True),
        ("x=2, y=7", "7, 2", False),
        ("(2,7)", "[2,7]", False),
    ],
    "numbered roots have no order": [
        ("x_1=4, x_2=-3", "-3, 4", True),
        ("x_1=4, x_2=-3", "x_1=-3, x_2=4", True),
        ("x_1=4, x_2=-3", r"x=4 \text{ or } x=-3", True),
        (r"x_{1}=4,\quad x_{2}=-\frac{1}{3}", r"-\frac13, 4", True),
        (r"x_{1}=\sqrt{7},\ x_{2}=-\sqrt{7}", r"\pm\sqrt{7}", True),
        (r"x_{1}=\sqrt{7},\ x_{2}=-\sqrt{7}", r"x=\pm\sqrt{7}", True),
        ("4, -3", r"t_1=-3,\ t_2=4", True),
        (r"\lambda_1=2, \lambda_2=5, \lambda_3=9", "9, 2, 5", True),
        (r"2 \pm \sqrt{3}", r"x_1 = 2-\sqrt{3}, x_2 = 2+\sqrt{3}", True),
        ("(4,-3)", "x_1=4, x_2=-3", True),
        ("(4,-3)", "x_1=-3, x_2=4", False),
        ("x_1=4, x_2=-3", "(-3, 4)", False),
        ("x_1=4, x_2=-3", "4, 3", False),
        ("x_1=4, x_2=-3", "4", False),
        ("x_1=4, x_2=-3", "4, -3, 0", False),
        ("a_1=4, a_2=-3", "a_1=-3, a_2=4", False),
        (r"x_{1}=\sqrt{7},\ x_{2}=-\sqrt{7}", r"\sqrt{7}", False),
    ],
    "equations in rows are a list of equations": [
        ("(4,-3)", r"\begin{aligned} x &= 4 \\ y &= -3 \end{aligned}", True),
        ("(4,-3)", r"\begin{aligned} y &= -3 \\ x &= 4 \end{aligned}", True),
        ("(4,-3)", r"\begin{align*} a &= 4 \\ b &= -3 \end{align*}", True),
        ("(4,-3)", r"\left\{\begin{array}{l} x = 4 \\[4pt] y = -3 \end{array}\right.", True),
        ("(4,-3)", r"\left\{\begin{array}{rcl} x &=& 4 \\ y &=& -3 \end{array}\right.", True),
        ("(4,-3,0)", r"\begin{gathered} x=4, \\ y=-3, \\ z=0. \end{gathered}", True),
        ("(4,-3)", r"\begin{aligned} x &= 4, & y &= -3 \end{aligned}", True),
        ("(4,-3)", r"\begin{eqnarray*} x &=& 4 \\ y &=& -3 \end{eqnarray*}", True),
        (r"\begin{cases} x = 4 \\ y = -3 \end{cases}", "(4,-3)", True),
        ("5", r"\begin{aligned} x &= 2+3 \\ &= 5 \end{aligned}", True),
        ("(4,-3)", r"\begin{aligned} x &= -3 \\ y &= 4 \end{aligned}", False),
        ("(4,-3)", r"\begin{array}{l} x = 4 \\ y = 3 \end{array}", False),
        (r"\begin{pmatrix} 4 \\ -3 \end{pmatrix}",
         r"\left(\begin{array}{c} 4 \\ -3 \end{array}\right)", True),
    ],
    "the letters of options have no order": [
        (r"\text{B, D}", "D, B", True),
        (r"\text{B, D}", r"\text{B and D}", True),
        (r"\text{B, D}", r"\text{(B)}, \text{(D)}", True),
        (r"\text{A, B, D}", r"\text{(A), (B) and (D)}", True),
        ("B, D", r"\{D, B\}", True),
        (r"\text{B and D}", "B, D", True),
        (r"\text{B, D}", r"\text{D \& B}", True),
        (r"\text{B, D}", r"\textbf{(D)}, \textbf{(B)}", True),
        (r"\text{B, D}", "B", False),
        (r"\text{B, D}", "B, C", False),
        (r"\text{B, D}", "B, C, D", False),
        ("B", "B, D", False),
    ],
    "e with a whole number is a power of ten": [
        ("0.00048", "4.8e-4", True),
        ("0.00048", "4.8E-04", True),
        ("3.6e5", "360000", True),
        ("3.6e5", r"3.6 \times 10^5", True),
        ("-2.5e3", "-2500", True),
        ("300", "3e2", True),
        (r"6.02 \times 10^{23}", "6.02e23", True),
        ("0.00048", "4.8e-3", False),
        ("12", "12e3", False),
        ("6.63e-34", "6.62e-34", False),
        ("2.5e-6", "2.4e-6", False),
        ("3e", "3e", True),
        ("3e^2", "3e2", False),
        ("6e", "2e3", False),
        ("2e-3", "-3+2e", True),
        (r"1.5e3\pi", r"1500\pi", True),
    ],
    "the empty set is written in many ways": [
        (r"\emptyset", r"\varnothing", True),
        (r"\varnothing", r"\{\}", True),
        (r"\varnothing", "∅", True),
        (r"\emptyset", r"\text{no solutions}", True),
        (r"\text{no solution}", r"\text{No real solution}", True),
        (r"\text{No real solutions}", r"x \in \varnothing", True),
        (r"\text{no solution}", r"\text{There are no solutions.}", True),
        (r"\varnothing", r"\text{the empty set}", True),
        (r"\varnothing", "0", False),
        (r"\varnothing", r"\{0\}", False),
        (r"\varnothing", r"\{\emptyset\}", False),
        (r"\text{no solution}", "x=1", False),
        (r"\text{no}", r"\text{no solution}", False),
        ("0", r"\text{none}", False),
        ("0", r"\emptyset", False),
    ],
    "a congruence, and a condition behind a comma": [
        (r"n \equiv 5 \pmod 8", r"n \equiv 5 \pmod{8}", True),
        (r"n \equiv 5 \pmod{8}", r"n\equiv 5\ (\text{mod } 8)", True),
        (r"n \equiv 5 \pmod{8}", r"n \equiv 5 (\bmod 8)", True),
        (r"n \equiv 5 \pmod{8}", "n ≡ 5 (mod 8)", True),
        (r"3k\pi, k \in \mathbb{Z}", r"3\pi k,\ k\in\mathbb Z", True),
        (r"3k\pi, k \in \mathbb{Z}", r"3\pi k \ (k \in \mathbb{Z})", True),
        (r"\frac{\pi}{6}+k\pi, k\in\mathbb{Z}",
         r"x = k\pi + \frac{\pi}{6}, \text{ where } k \in \mathbf{Z}", True),
        (r"n \equiv 5 \pmod 8", r"n \equiv 4 \pmod{8}", False),
        (r"n \equiv 5 \pmod 8", r"n \equiv 5 \pmod{9}", False),
        (r"3k\pi, k \in \mathbb{Z}", r"k\pi, k\in\mathbb{Z}", False),
        (r"3k\pi, k \in \mathbb{Z}", r"3k\pi, k\in\mathbb{N}", False),
        (r"3k\pi, k \in \mathbb{Z}", r"3k\pi", False),
    ],
    "small values are compared beside their size": [
        (r"\frac{1}{1500!}", r"\frac{1}{1501!}", False),
        (r"\frac{1}{1500!}", r"\frac{1501}{1501!}", True),
        (r"\frac{1}{2400!}", r"\frac{1}{2401!}", False),
        (r"\frac{1}{2400!}", r"\frac{1}{2400!}", True),
        (r"\frac{\pi}{1500!}", r"\frac{\pi}{1501!}", False),
        (r"\frac{\sqrt{2}}{3^{4000}}", r"\frac{\sqrt{2}}{3^{4001}}", False),
        (r"\frac{\sqrt{2}}{3^{400}}", r"\frac{2}{\sqrt{2} \cdot 3^{400}}", True),
    ],
}  # fmt: skip

WRITTEN = {
    "a word that multiplies belongs to the box": [
        ("9", r"There are $\boxed{9}$ million.", False),
        ("9", r"There are \boxed{9} million.", False),
        ("9", r"There are **\boxed{9}** thousand.", False),
        ("9", r"There are \(\boxed{9}\) billion.", False),
        ("9", r"There are $\boxed{9}\text{ trillion}$.", False),
        ("9", r"There are $\boxed{9}$ and a half.", False),
        ("9", r"There are $\boxed{9}$~Million.", False),
        ("9", "There are $\\boxed{9}$\nHundred percent sure.", True),
        ("9 million", r"There are $\boxed{9}$ million.", True),
        (r"9\text{ million}", r"There are $\boxed{9}$ million.", True),
        ("9", r"There are $\boxed{9}$ people in millions of homes.", True),
        ("9", "There are $\\boxed{9}$.\n\nA million thanks!", True),
    ],
    "what the last whole pair of tags holds is the answer": [
        ("56", "<think>Seven times eight.</think><answer>56</answer>", True),
        ("56", "<think>So.</think>\n<answer>\n $56$ \n</answer>", True),
        (r"\frac{5}{9}", r"<think>So.</think> <answer>\frac59</answer>", True),
        ("56", r"<think>So.</think><answer>\boxed{56}</answer>", True),
        ("56", "<answer>The answer is 56.</answer>", True),
        ("56", "<answer>55</answer> No. <answer>56</answer>", True),
        ("56", "<answer>56</answer> I am sure.", True),
        ("56", r"My answer goes into `<answer>` and `</answer>`: \boxed{56}", True),
        ("55", "<answer>55</answer> No. <answer>56</answer>", False),
        ("56", "<think>Perhaps <answer>56</answer>?</think> It is 57.", False),
        ("56", "<answer>57</answer>", False),
        ("56", "<answer>56", False),
        ("3", "<answer>x = 3\ny = 4</answer>", False),
    ],
    "a sentence behind the label ends with the value": [
        ("28", "Cases.\nFinal Answer: The least $k$ is 28. I hope it is correct.", True),
        ("28", "Cases.\nFinal Answer: The least $k$ is $28$.", True),
        ("28", "Cases.\nAnswer: The number of ways equals 28.", True),
        (r"\frac{3}{4}", "Cases.\nAnswer: $p$ is $\\frac{3}{4}$.", True),
        ("28", "The answer is therefore 28.", True),
        ("28", "The answer is thus $28$.", True),
        ("28", "So the answer should be $28$.", True),
        ("28", "The answer must be 28.", True),
        ("28", "The answer, therefore, is 28.", True),
        ("28", "Cases.\nAnswer $28$", True),
        ("28", "Cases.\nAnswer \\[ 28 \\]", True),
        ("28", "Cases.\nAnswer: Thus, 28.", True),
        ("28", "Answer:\n\\begin{align*} x &= 28 \\end{align*}", True),
        ("28", "Cases.\n**Answer** $28$", True),
        ("28", "Cases.\n**Answer:** The sum of the digits is **28**.", True),
        ("28", "Cases.\nAnswer: $k$ is not 28.", False),
        ("28", "Cases.\nAnswer: $k$ cannot be 28.", False),
        ("28", "The answer is not 28.", False),
        ("28", "The answer is therefore not 28.", False),
        ("6", "Cases.\nAnswer: the 6th term is 11.", False),
        ("11", "Cases.\nAnswer: the 6th term is 11.", True),
        ("4", "Answer: $x$ is 3 and $y$ is 4.", False),
        ("4", "Answer: if $x = 3$, $y$ is 4.", False),
        ("15", "A: There are 15 trees. Then 6 more are planted.", False),
        ("15", "Answer: There are 15 trees.\nThen 6 more are planted.\nSo 21.", False),
        ("7", "The answer should be a multiple of 7.", False),
        ("28", "Answer: at least 28.", False),
    ],
}


@pytest.fixture(scope="module")
def pool():
    with TypedGrader(seconds=30) as pool:
        yield pool


@pytest.mark.parametrize(
    ("gold", "response", "right"),
    [
        pytest.param(gold, rf"It is $\boxed{{{answer}}}$.", right, id=f"{kind}: {answer}, {gold}")
        for kind, cases in BOXED.items()
        for gold, answer, right in cases
    ]
    + [
        pytest.param(gold, response, right, id=f"{kind}: {response}, {gold}")
        for kind, cases in WRITTEN.items()
        for gold, response, right in cases
    ],
)  # fmt: skip
def test_a_kind_of_answers(pool, gold, response, right):
    assert grade_response(response, gold, pool).correct == right


def test_lists_of_numbers_start_no_process():
    class Untouchable:
        def compare(self, gold, answer):
            raise AssertionError(f"compares {gold} with {answer}")

    for answer, right in (("7, 2", True), (r"\{2, 7\}", True), ("2, 8", False), ("(2, 7)", False)):
        assert grade_answer(answer, "2,7", Untouchable()).correct == right
