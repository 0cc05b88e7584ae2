"""The page of responses in a real browser: what a model wrote is shown, and never run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from contrast import INK, contrast
from playwright.sync_api import Page

from geosd.reporting.samples_page import samples_html
from geosd.scores.scored_responses import ScoredResponse

pytestmark = pytest.mark.slow

EVIL = (
    "</script><script>document.title = 'run'</script><img src=x onerror=\"document.title='run'\">"
)
TOKENS = ("3", " +", " 4", "\n", EVIL, "")
STUDENT = (0.95, 0.6, 0.2, 0.05, 0.001, 0.99)
TEACHER = (0.05, 0.95, 0.2, 0.6, 0.95, 0.0)


def rows() -> list[ScoredResponse]:
    """Two problems, three methods, of which one has answered the first problem alone."""
    return [
        ScoredResponse(
            model="mini-qwen3",
            variant=variant,
            seed=0,
            problem_id=f"train-{problem}",
            question=f"{EVIL} question {problem}",
            answer="7",
            solution=EVIL,
            correct=variant == "geosd",
            finish="length" if variant == "fwdkl" else "stop",
            length=len(TOKENS),
            tokens=TOKENS,
            student=STUDENT,
            teacher=TEACHER,
        )
        for problem in (1, 2)
        for variant in ("pi_0", "fwdkl", "geosd")
        if problem == 1 or variant != "pi_0"
    ]


@pytest.fixture(params=[(1400, "light"), (1400, "dark"), (400, "light"), (400, "dark")])
def samples(request, browser, tmp_path) -> Iterator[Page]:
    """The page; the browser must write no message, and send no request but for the page."""
    width, scheme = request.param
    path = tmp_path / "samples.html"
    path.write_text(samples_html("quick", rows()), encoding="utf-8")
    messages: list[str] = []
    page = browser.new_page(
        viewport={"width": width, "height": 900}, color_scheme=scheme, offline=True
    )
    page.on("console", lambda message: messages.append(message.text))
    page.on("pageerror", lambda error: messages.append(str(error)))
    page.on("request", lambda request: messages.append(request.url))
    page.goto(path.as_uri())
    yield page
    assert messages == [path.as_uri()]
    page.close()


def test_a_response_with_a_script_is_shown_as_it_stands_and_is_not_run(samples):
    assert samples.title() == "Responses of study quick"
    assert samples.locator("script").count() == 2 and samples.locator("img").count() == 0
    assert EVIL in samples.locator("#response-right").inner_text()
    assert samples.locator("#question").inner_text() == f"{EVIL} question 1"


def test_the_reader_chooses_methods_and_problems(samples):
    names = samples.locator("h2").all_inner_texts()
    assert names == ["FwdKL", "GeoSD"]
    samples.locator("#left").select_option("pi_0")
    assert samples.locator("#name-left").inner_text() == "\u03c0\u2080"
    samples.locator("#problem").select_option("1")
    assert samples.locator("#facts-left").inner_text() == "no response to this problem"
    assert samples.locator("#facts-right").inner_text() == "right, 6 tokens"
    samples.locator("#left").select_option("fwdkl")
    assert samples.locator("#facts-left").inner_text() == "wrong, 6 tokens, ended by the cap"


def test_problems_and_tokens_are_walked_by_keys(samples):
    samples.keyboard.press("n")
    assert samples.locator("#question").inner_text().endswith("question 2")
    samples.keyboard.press("n")
    assert samples.locator("#question").inner_text().endswith("question 1"), "around"
    samples.keyboard.press("p")
    assert samples.locator("#question").inner_text().endswith("question 2")
    samples.locator("#response-left").focus()
    for _ in range(3):
        samples.keyboard.press("ArrowRight")
    reading = samples.locator("#reading-left")
    assert reading.inner_text() == 'token 3, " 4": student 0.200, teacher 0.200'
    samples.keyboard.press("End")
    assert "end of the response" in reading.inner_text()
    samples.keyboard.press("ArrowLeft")
    assert "student 0.001, teacher 0.950" in reading.inner_text()
    reached = set()
    for _ in range(12):
        samples.keyboard.press("Tab")
        reached.add(samples.evaluate("document.activeElement.id"))
    assert {"left", "right", "problem", "previous", "next", "colours"} <= reached


def test_colours_follow_both_probabilities_and_each_token_says_them(samples):
    tokens = samples.locator("#response-left span")
    kinds = [kind.split() for kind in tokens.evaluate_all("all => all.map(e => e.className)")]
    assert [kind[1] for kind in kinds] == ["p0", "p1", "p2", "p3", "p4", "p0"]
    assert [kind[3] for kind in kinds] == ["q3", "q0", "q2", "q1", "q0", "q4"]
    assert tokens.nth(0).get_attribute("title") == 'token 1, "3": student 0.950, teacher 0.050'
    assert samples.locator("#legend i").count() == 5
    samples.locator("#colours").select_option("ratio")
    kinds = tokens.evaluate_all("all => all.map(e => e.className)")
    ratios = [kind.split()[1] for kind in kinds]
    assert ratios == ["s2", "t0", "t0", "t2", "t2", "s2"]


def test_the_page_fits_its_width_and_its_words_stand_out(samples):
    width = samples.viewport_size["width"]
    for colours in ("both", "ratio"):
        samples.locator("#colours").select_option(colours)
        assert samples.evaluate("document.documentElement.scrollWidth") <= width
        words = samples.locator(
            "h1, h2, p, label, pre, select, button, .response span, .legend span"
        )
        inks = words.evaluate_all(f"all => all.map({INK})")
        assert min(contrast(*pair) for pair in {*map(tuple, inks)}) > 4.5
    left, right = (
        samples.locator(f"#response-{side}").bounding_box() for side in ("left", "right")
    )
    if width == 1400:
        assert left["y"] == right["y"] and right["x"] + right["width"] > 1200, "side by side"
    else:
        assert left["y"] < right["y"] and left["x"] == right["x"], "one below the other"
