"""One token of every row after the other: key-value caches, sessions of a batch, compiled steps."""
