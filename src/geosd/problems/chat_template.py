"""Rendering of a chat template in a process of its own: it is a program of the checkpoint.

transformers runs it in jinja's sandbox, which keeps it from files and from Python's attributes, and
lets it loop and grow without end. The process has limits on both, and is started once a program.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from functools import cache
from resource import RLIMIT_AS, RLIMIT_CORE, RLIMIT_CPU, getrlimit, setrlimit
from typing import Any

SECONDS = 10  # processor time of one prompt; published templates take a millisecond
PATIENCE = 120  # seconds by the clock, for a machine that is busy
MEGABYTES = 1024  # address space of the process; it begins with 185
LONGEST = 10_000_000  # characters of a prompt, more than any context holds
_LOCK = threading.Lock()


class ChatTemplateError(ValueError):
    """A chat template that cannot be rendered, or not within its limits."""


def render(
    template: str, turns: Sequence[Mapping[str, str]], values: Mapping[str, Any], owner: str
) -> str:
    """The text of a chat that waits for its answer.

    Args:
        template: Of the tokenizer.
        turns: Role and content of each.
        values: Further values that the template may read.
        owner: Whose template it is, for errors.

    Raises:
        ChatTemplateError: The template raises, or takes more time, memory or text than it may.
    """
    with _LOCK:
        process = _process()
        assert process.stdin is not None and process.stdout is not None
        with contextlib.suppress(BrokenPipeError):  # it has ended: there is no reply
            process.stdin.write(json.dumps([template, turns, values]).encode() + b"\n")
            process.stdin.flush()
        ended = threading.Timer(PATIENCE, process.kill)  # of one that was stopped
        ended.start()
        line = process.stdout.readline()
        ended.cancel()
        if not line.endswith(b"\n"):
            process.kill()
            process.communicate()
            _process.cache_clear()
    if not line.endswith(b"\n"):
        problem = f"took more than {SECONDS} s of processor time, or its process ended"
    else:
        reply = json.loads(line)
        if "text" in reply:
            return reply["text"]
        problem = reply["error"]
    raise ChatTemplateError(
        f"the chat template of {owner}: {problem}.\nHint: a template is a program of the checkpoint"
        " (chat_template.jinja, tokenizer_config.json); take that of the release, or mend it."
    )


@cache
def _process() -> subprocess.Popen[bytes]:
    """The process that renders, started by this file's path."""
    return subprocess.Popen(
        [sys.executable, "-P", __file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # an interrupt of this process is its own to handle
    )


def _serve() -> None:
    """Be that process: a JSON list a line in, an object a line out, until the input ends."""
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a library prints mixes with no reply
    setrlimit(RLIMIT_CORE, (0, 0))
    with contextlib.suppress(ValueError, OSError):  # not every system can limit it
        setrlimit(RLIMIT_AS, (MEGABYTES << 20, MEGABYTES << 20))
    from transformers.utils.chat_template_utils import render_jinja_template

    for line in sys.stdin.buffer:
        template, turns, values = json.loads(line)
        limit, (_, most) = int(time.process_time()) + SECONDS + 1, getrlimit(RLIMIT_CPU)
        with contextlib.suppress(ValueError):  # the system's own limit is lower
            setrlimit(RLIMIT_CPU, (limit, most))
        try:
            (text,), _ = render_jinja_template(
                [turns], chat_template=template, add_generation_prompt=True, **values
            )
            reply = {"text": text}
            if len(text) > LONGEST:
                reply = {"error": f"it writes {len(text)} characters; allowed are {LONGEST}"}
        except (Exception, MemoryError) as error:  # a template can raise whatever Python raises
            reply = {"error": f"{type(error).__name__}: {error}"[:500]}
        print(json.dumps(reply), file=replies, flush=True)


if __name__ == "__main__":
    _serve()
