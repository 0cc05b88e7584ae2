"""Panics of libraries written in Rust, which Python sees as exceptions that are no Exception."""


def is_failure_or_rust_panic(error: BaseException) -> bool:
    """Whether an exception says that work failed, and not that the program is to end.

    That is every Exception, and a panic of an extension in Rust, such as tokenizers. Each extension
    has a class of its own for it, which it does not export: a direct child of BaseException, so
    that `except Exception` lets it through.
    """
    return isinstance(error, Exception) or type(error).__name__ == "PanicException"
