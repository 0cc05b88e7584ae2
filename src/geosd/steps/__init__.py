"""The programs that the workflow runs: one per rule, each parses, calls and writes."""
