"""Tables for the terminal: short, aligned, nothing that is not in the full table."""

from collections import Counter
from typing import Any

from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from vitbench.live import Progress
from vitbench.report.frame import Frame, counts_of
from vitbench.report.tables import summary
from vitbench.stats import FEW_SEEDS
from vitbench.study.folder import StudyFolder

# Columns of the full table that fit a terminal of 100 characters, under shorter titles.
SHORT = {"label": "model", "share": "share", "train_images": "train", "runs": "runs",
         "test_accuracy": "test acc. % [95 %]", "gap": "gap", "time_harm": "time harm", "fit_state": "fit state",
         "seconds": "seconds"}


def print_table(console: Console, frame: Frame) -> None:
    """The study's summary in the columns that fit; `tables` prints the whole one."""
    table = summary(frame, mixed_devices=True)
    places = [i for i, column in enumerate(table.columns) if column.key in SHORT]
    grid = Grid(box=None, pad_edge=False, header_style="bold")
    for i in places:
        column = table.columns[i]
        grid.add_column(Text(SHORT[column.key]), justify="right" if column.numeric else "left", no_wrap=True)
    for row in table.rows:
        grid.add_row(*(Text(row[i].text) for i in places))
    console.print(grid)
    for line in (*table.footnotes, *table.footer):
        console.print(f"- {line}")


def print_plan(console: Console, folder: StudyFolder) -> None:
    """Shares with their images, then models with their runs."""
    counts = {run.spec.share: counts_of(run, folder.resolved) for run in folder.runs}
    grid = _grid("share", "drawn", "train", "validation", "per class")
    for share, count in counts.items():
        low, high = min(count.drawn), max(count.drawn)
        grid.add_row(share, str(sum(count.drawn)), str(sum(count.train)), str(sum(count.validation) or "none"),
                     str(low) if low == high else f"{low}-{high}")
    console.print(grid)
    _print_runs(console, folder, [])
    seeds = len(folder.study.seeds)
    if seeds < FEW_SEEDS:
        console.print(f"{seeds} seeds: every interval will be marked 'few seeds'; from {FEW_SEEDS} on none is")


def print_status(console: Console, folder: StudyFolder, live: list[Progress]) -> None:
    """Counts for each model, and what runs now."""
    _print_runs(console, folder, live)
    for run in live:
        lost = " (lost: nothing heard for a minute)" if run.lost else ""
        loss = "" if run.train_loss is None else f", train loss {run.train_loss:.3f}, test loss {run.test_loss:.3f}"
        console.print(f"running: {run.run_id}, step {run.step} of {run.steps}{loss}{lost}")


def _print_runs(console: Console, folder: StudyFolder, live: list[Progress]) -> None:
    ended = folder.store.ids()
    runs = folder.runs
    ids = {run.spec.run_id for run in runs}
    failed = folder.store.failed(ended & ids)
    working = {run.run_id for run in live if not run.lost}

    def state(run_id: str) -> str:
        return "failed" if run_id in failed else "done" if run_id in ended else \
            "running" if run_id in working else "to do"

    totals: dict[str, Counter[str]] = {}
    for run in runs:
        totals.setdefault(run.label, Counter())[state(run.spec.run_id)] += 1
    states = ("done", "running", "failed", "to do")
    grid = _grid("model", "runs", *states)
    for label, count in (*totals.items(), ("all", Counter(map(state, ids)))):
        grid.add_row(Text(label), str(count.total()), *(str(count[state]) for state in states))
    console.print(grid)
    if len(runs) > len(ids):
        console.print(f"{len(runs) - len(ids)} runs stand under a second label; they are done once")
    if earlier := folder.earlier_runs():
        console.print(earlier)


def print_cards(console: Console, cards: list[dict[str, Any]]) -> None:
    """A line for what all sizes share, then a column a size."""
    one = cards[0]
    console.print(f"{one['model']}, {one['family']}, for {one['dataset']}: {one['image_size']} x {one['image_size']} x "
                  f"{one['channels']}, {one['classes']} classes")
    columns = [_facts(card) for card in cards]
    shared = [fact for fact in columns[0] if len({column.get(fact) for column in columns}) == 1]
    for fact in shared:
        console.print(f"{fact}: {columns[0][fact]}")
    if len(cards) > 1:
        grid = _grid("size", *(str(card["size"]) for card in cards))
        for fact in columns[0]:
            if fact not in shared:
                grid.add_row(Text(fact), *(Text(column[fact]) for column in columns))
        console.print(grid)


def _facts(card: dict[str, Any]) -> dict[str, str]:
    facts = {"parameters": card["parameters"], "MACs": card["macs"], "activations": card["activations"]}
    shown = {fact: f"{count:,}" for fact, count in facts.items()}
    shown |= {f"option {key}": "by image size" if value is None else str(value)
              for key, value in card["options"].items()}
    return shown | {key.replace("_", " "): str(value) for key, value in card["card"].items()}


def _grid(*headings: str) -> Grid:
    grid = Grid(box=None, pad_edge=False, header_style="bold")
    for i, heading in enumerate(headings):
        grid.add_column(heading, justify="left" if i == 0 else "right", no_wrap=True)
    return grid
