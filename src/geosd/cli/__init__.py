"""The command `geosd` and its programs: each parses, calls and writes."""
