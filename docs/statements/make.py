"""Runs the commands that stand on the pages of this folder: figures and quoted sentences are what they give.

    python docs/statements/make.py [PAGE ...]        # from the repository's root; needs results/mechanisms_digits

Below each command `vitbench probe ... --figure FILE` stands the figure, and below it, quoted, what the probe found.
"""

import re
import shlex
import subprocess
import sys
import textwrap
from pathlib import Path

FOLDER = Path(__file__).parent
MEASURED = re.compile(r"^    (?P<command>vitbench probe .*--figure \S+)\n\n(?P<picture>!\[[^\]]*\]\(\S+\))\n\n"
                      r"(?P<found>(?:> .*\n)+)", re.M)


def pages() -> list[Path]:
    """Those that measure something."""
    return sorted(path for path in FOLDER.glob("*.md") if MEASURED.search(path.read_text()))


def made(command: str) -> str:
    """The sentence of a probe, quoted; draws its figure."""
    told = subprocess.run(shlex.split(command), stdout=subprocess.PIPE, text=True, check=True)
    # The first line below the table.
    summary = next(line.removeprefix("- ") for line in told.stdout.splitlines() if line.startswith("- "))
    return "".join(f"> {line}\n" for line in textwrap.wrap(summary, 118, break_on_hyphens=False))


def remake(path: Path) -> None:
    """Write the page again, with what its commands give now."""
    path.write_text(MEASURED.sub(
        lambda found: f"    {found['command']}\n\n{found['picture']}\n\n{made(found['command'])}", path.read_text()))


if __name__ == "__main__":
    for page in [FOLDER / name for name in sys.argv[1:]] or pages():
        print(page.name, flush=True)
        remake(page)
