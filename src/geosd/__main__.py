"""`python -m geosd NAME ...` is `geosd NAME ...`; see `geosd.cli.command`."""

from geosd.cli.command import main

if __name__ == "__main__":
    main()
