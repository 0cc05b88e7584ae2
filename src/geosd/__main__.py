"""`python -m geosd`: the command `geosd`."""

from geosd.cli.command import main

main()
