"""Pages of docs/ that hold sections which benchmarks write anew."""

from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"


def write(title: str, made: str, page: str = "performance.md") -> None:
    """Put a section in the place of the one of this title, or at the end."""
    first, *sections = (DOCS / page).read_text().split("\n## ")
    places = [k for k, part in enumerate(sections) if part.startswith(f"{title}\n")]
    if places:
        sections[places[0]] = made
    else:
        sections.append(made)
    (DOCS / page).write_text("\n## ".join([first, *sections]))
