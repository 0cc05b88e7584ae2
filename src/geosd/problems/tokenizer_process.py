"""Token ids by a tokenizer's own patterns, in a process with limits on time and memory.

A pattern of tokenizer.json is a program of the checkpoint too: there are some that backtrack nearly
without end, and the library that runs them panics where it gives up, with a trace of Rust. So texts
go to a process of their own, which is started once a program, where a tokenizer has patterns that
its file spells out. The others have patterns of the library alone, and are run here.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from geosd.problems.limited_process import LimitedProcess, serve_limited_process
from geosd.rust_panics import is_failure_or_rust_panic

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

SECONDS = 20  # processor time of one text; a prompt of a megabyte takes one
PATIENCE = 240  # seconds by the clock, for a machine that is busy
MEGABYTES = 8192  # address space of the process; a tokenizer of 150,000 words takes 300
_PROCESS = LimitedProcess("geosd.problems.tokenizer_process", SECONDS, PATIENCE)


class TokenizerError(ValueError):
    """A tokenizer that cannot encode a text, or not within its limits."""


class TokenizerProcess:
    """Texts as token ids by a tokenizer, without special tokens of its own, and ids as text.

    TokenizerError where the tokenizer breaks down over a text.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase) -> None:
        self.tokenizer = tokenizer

    def ids(self, text: str) -> list[int]:
        """The token ids of a text; control tokens that it spells out are such tokens."""
        try:
            if self._definition is None:
                return self.tokenizer(text, add_special_tokens=False).input_ids
            reply = self._ask(text)
            if "ids" in reply:
                return reply["ids"]
            problem = reply["error"]
        except (TimeoutError, ChildProcessError):
            problem = f"took more than {SECONDS} s of processor time, or too much memory"
        except BaseException as error:
            if not is_failure_or_rust_panic(error):
                raise
            problem = f"{type(error).__name__}: {error}"
        raise self._broken(
            f"encode a text of {len(text)} characters that begins {text[:40]!r}: {problem}"
        )

    def text(self, ids: Sequence[int]) -> str:
        """The text of token ids, without special tokens."""
        try:
            return self.tokenizer.decode(list(ids), skip_special_tokens=True)
        except BaseException as error:
            if not is_failure_or_rust_panic(error):
                raise
            raise self._broken(f"decode {len(ids)} ids: {type(error).__name__}: {error}") from error

    def _broken(self, what: str) -> TokenizerError:
        owner = self.tokenizer.name_or_path or "the model"
        return TokenizerError(
            f"the tokenizer of {owner} cannot {what}.\nHint: its patterns in tokenizer.json are of"
            " the checkpoint; take that of the release, or mend them. Where one text alone is to"
            " blame, take it out of the data."
        )

    def _ask(self, text: str) -> dict[str, Any]:
        """The process's reply, which gets the tokenizer where it does not have it yet."""
        reply = _PROCESS.ask(self._name, None, text)
        if "unknown" in reply:
            reply = _PROCESS.ask(self._name, self._definition, text)
        return reply

    @cached_property
    def _definition(self) -> str | None:
        """The tokenizer as JSON where it must run elsewhere."""
        from transformers import TokenizersBackend

        made_here = getattr(type(self.tokenizer), "_encode_plus", None)
        usual = made_here is TokenizersBackend._encode_plus
        if not usual or self.tokenizer.split_special_tokens:
            return None
        definition = self.tokenizer.backend_tokenizer.to_str()
        parts = json.loads(definition)
        own = [*_patterns(parts["normalizer"]), *_patterns(parts["pre_tokenizer"])]
        return definition if own else None

    @cached_property
    def _name(self) -> str:
        return hashlib.sha256(str(self._definition).encode()).hexdigest()


def _patterns(part: Any) -> Iterator[str]:
    """The patterns that a part of tokenizer.json spells out."""
    if isinstance(part, list):
        for each in part:
            yield from _patterns(each)
    elif isinstance(part, dict):
        if isinstance(pattern := part.get("Regex"), str):
            yield pattern
        for each in part.values():
            yield from _patterns(each)


_tokenizers: dict[str, Any] = {}
"""Of the process: the tokenizers that it has got, by their names."""


def _encode(name: str, definition: str | None, text: str) -> dict[str, Any]:
    """The ids, or the error, in the process."""
    from tokenizers import Tokenizer

    if definition is not None:
        made = Tokenizer.from_str(definition)
        made.no_truncation()
        made.no_padding()
        _tokenizers[name] = made
    if name not in _tokenizers:
        return {"unknown": True}
    try:
        return {"ids": _tokenizers[name].encode(text, add_special_tokens=False).ids}
    except BaseException as error:
        if not is_failure_or_rust_panic(error):
            raise
        return {"error": f"{type(error).__name__}: {error}"[:300]}


if __name__ == "__main__":
    serve_limited_process(_encode, MEGABYTES, "", None, "")
