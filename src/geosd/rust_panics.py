"""Panics of libraries written in Rust, which Python sees as exceptions that are no Exception."""


def is_panic(error: BaseException) -> bool:
    """Whether an exception is a panic of an extension in Rust, such as tokenizers.

    Each extension has a class of its own, which it does not export: a direct child of
    BaseException, so that `except Exception` lets it through.
    """
    return type(error).__name__ == "PanicException" and not isinstance(error, Exception)
