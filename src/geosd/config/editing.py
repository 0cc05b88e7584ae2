"""Write single values of a YAML file anew, and leave every other character as it is."""

from __future__ import annotations

from collections.abc import Mapping

import yaml

from geosd.config.reading import ConfigError, KeyPath, dotted


def with_numbers(text: str, numbers: Mapping[KeyPath, float]) -> str:
    """The text of a YAML file with some of its numbers replaced.

    A key that leads through an alias changes the value where the anchor stands.

    Args:
        text: The file.
        numbers: Key path -> its new value.

    Returns:
        The text; where a value is the same number already, the characters stay too.

    Raises:
        ConfigError: A key is not there, or is no single value.

    Example:
        >>> with_numbers("a: {b: 1.0e-6}  # why", {("a", "b"): 3e-05})
        'a: {b: 3.0e-5}  # why'
    """
    tree = yaml.compose(text, Loader=yaml.SafeLoader)
    places = {}
    for path, number in numbers.items():
        node = _find(tree, path)
        if float(node.value) != number:
            places[node.start_mark.index, node.end_mark.index] = written(number)
    for (start, end), value in sorted(places.items(), reverse=True):
        text = text[:start] + value + text[end:]
    return text


def written(number: float) -> str:
    """A number as both versions of YAML read it: 3.0e-6, never 3e-06.

    Example:
        >>> written(3e-06), written(0.25)
        ('3.0e-6', '2.5e-1')
    """
    mantissa, exponent = f"{number:e}".split("e")
    whole, _, rest = mantissa.partition(".")
    return f"{whole}.{rest.rstrip('0') or '0'}e{int(exponent)}"


def _find(tree: yaml.Node | None, path: KeyPath) -> yaml.ScalarNode:
    node = tree
    for key in path:
        found = [value for name, value in node.value if name.value == key] if _is_map(node) else []
        if not found:
            raise ConfigError(
                f"{dotted(path)}: there is no `{key}` to be written.\n"
                "Hint: write the key once by hand, with any number; it is then kept up to date."
            )
        node = found[-1]
    if not isinstance(node, yaml.ScalarNode):
        raise ConfigError(f"{dotted(path)}: a section, not one value.\nHint: name a key inside it.")
    return node


def _is_map(node: yaml.Node | None) -> bool:
    return isinstance(node, yaml.MappingNode)
