"""`python -m vitbench`."""

from vitbench.cli import main

main()
