"""`prune`: what could go from results folders, and with --yes its going."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from rich.console import Console
from rich.table import Table as Grid

from vitbench.study.folder import StudyFolder
from vitbench.study.prune import Leftover, leftovers
from vitbench.units import byte_text


def prune(console: Console, folders: list[StudyFolder], *, logits: bool, weights: bool, really: bool,
          quiet: bool) -> None:
    """A line for each study and kind, then the total. Raises StoreError before anything goes where a driver works."""
    with ExitStack() as locks:
        for folder in folders:
            locks.enter_context(folder.store.locked())
        found = {folder.name: leftovers(folder, logits=logits, weights=weights) for folder in folders}
        items = [item for of_study, _ in found.values() for item in of_study]
        if not quiet:
            _print(console, found)
        total = f"{len(items)} items, {byte_text(sum(item.bytes for item in items))}"
        if not items:
            console.print("nothing to prune")
        elif not really:
            console.print(f"could go: {total}; --yes removes them")
        else:
            for item in items:
                item.remove()
            console.print(f"gone: {total}")


def _print(console: Console, found: dict[str, tuple[list[Leftover], list[str]]]) -> None:
    grid = Grid(box=None, pad_edge=False, header_style="bold")
    for heading in ("study", "what", "items", "size"):
        grid.add_column(heading, justify="right" if heading in ("items", "size") else "left", no_wrap=True)
    for study, (items, _) in found.items():
        for kind in dict.fromkeys(item.kind for item in items):
            sizes = [item.bytes for item in items if item.kind == kind]
            grid.add_row(study, kind, str(len(sizes)), byte_text(sum(sizes)))
    if grid.row_count:
        console.print(grid)
    for study, (_, kept) in found.items():
        for line in kept:
            console.print(f"kept: {study}: {line}")


def studies(results: Path) -> Iterator[StudyFolder]:
    """Every study under `results`. Raises BadStudy for one that cannot be read."""
    for path in sorted(results.glob("*/study.yaml")):
        yield StudyFolder.open(path.parent.name, results)
