"""`python -m boathouse.cli`."""

from boathouse.cli.app import main

main()
