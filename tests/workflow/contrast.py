"""The contrast of words to what lies under them, in a browser."""

from __future__ import annotations

import re

INK = """e => {
    const ground = e => e && getComputedStyle(e).backgroundColor;
    let under = e;
    while (ground(under) === "rgba(0, 0, 0, 0)") under = under.parentElement;
    return [getComputedStyle(e).color, ground(under) || "rgb(255, 255, 255)"];
}"""
"""JavaScript: the colour of an element's words, and of what lies under them."""


def contrast(ink: str, ground: str) -> float:
    """The contrast of two opaque colours, 1 to 21, as WCAG 2.2 defines it."""

    def luminance(colour: str) -> float:
        red, green, blue = (int(n) / 255 for n in re.findall(r"\d+", colour)[:3])
        linear = [
            c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (red, green, blue)
        ]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    dark, light = sorted([luminance(ink), luminance(ground)])
    return (light + 0.05) / (dark + 0.05)
