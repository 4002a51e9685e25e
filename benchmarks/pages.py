"""docs/performance.md, whose sections each benchmark writes anew."""

from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "performance.md"


def write(title: str, made: str) -> None:
    """Put a section in the place of the one of this title, or at the end."""
    first, *sections = PAGE.read_text().split("\n## ")
    others = [part for part in sections if not part.startswith(f"{title}\n")]
    PAGE.write_text("\n## ".join([first, *others, made]))
