"""Tables for the terminal: short, aligned, nothing that is not in the full table."""

from typing import Any

from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from vitbench.live import Progress
from vitbench.report.catalogue import beside
from vitbench.report.frame import Frame
from vitbench.report.render import Table
from vitbench.report.tables import summary
from vitbench.study.folder import StudyFolder
from vitbench.study.progress import STATES, counts, trials

# Columns of the full table that fit a terminal of 100 characters, under shorter titles.
SHORT = {"label": "model", "share": "share", "train_images": "train", "runs": "runs",
         "test_accuracy": "test acc. % [95 %]", "gap": "gap", "time_harm": "time harm", "fit_state": "fit state",
         "seconds": "seconds"}
# The same of the table of tuning, and what of it stands in the full one alone.
TUNING = {"quartiles": "quartiles, %", "default_accuracy": "default %", "tuned_accuracy": "tuned % [95 %]",
          "difference": "difference [95 %]"}
FULL_ALONE = ("trials", "validation", "edge", "val_accuracy", "best_of_1", "best_of_5", "best_of_all")


def print_table(console: Console, frame: Frame) -> None:
    """The study's summary in the columns that fit, then what it has beside it; `tables` prints the whole ones."""
    table = summary(frame, mixed_devices=True)
    _print(console, table, {column.key: SHORT.get(column.key, column.title) for column in table.columns
                            if column.key in SHORT or (column.shown and column.key in ("regime", "budget", "setting"))})
    for other in beside(frame):
        console.print(f"\n{other.caption}")
        short = TUNING if any(column.key == "quartiles" for column in other.columns) else {}
        _print(console, other, {column.key: short.get(column.key, column.title) for column in other.columns
                                if column.shown and not (short and column.key in FULL_ALONE)})


def _print(console: Console, table: Table, titles: dict[str, str]) -> None:
    places = [i for i, column in enumerate(table.columns) if column.key in titles]
    grid = Grid(box=None, pad_edge=False, header_style="bold")
    for i in places:
        column = table.columns[i]
        grid.add_column(Text(titles[column.key]), justify="right" if column.numeric else "left",
                        overflow="fold", no_wrap=len(titles) > len(SHORT) // 2 and column.key in SHORT)
    for row in table.rows:
        grid.add_row(*(Text(row[i].text) for i in places))
    console.print(grid)
    for line in (*table.footnotes, *table.footer):
        console.print(f"- {line}")


def print_status(console: Console, folder: StudyFolder, live: list[Progress]) -> None:
    """Counts for each model, and what runs now."""
    _print_runs(console, folder, live)
    for run in live:
        lost = " (lost: nothing heard for a minute)" if run.lost else ""
        loss = "" if run.train_loss is None else f", train loss {run.train_loss:.3f}, test loss {run.test_loss:.3f}"
        console.print(f"running: {run.run_id}, step {run.step} of {run.steps}{loss}{lost}")


def _print_runs(console: Console, folder: StudyFolder, live: list[Progress]) -> None:
    labels, total = counts(folder, live)
    grid = grid_of("model", "runs", *STATES)
    for label, count in (*labels.items(), ("all", total)):
        grid.add_row(Text(label), str(count.total()), *(str(count[state]) for state in STATES))
    console.print(grid)
    if folder.searches:
        tried = trials(folder)
        console.print(f"tuning: {tried['done']:,} of {sum(tried.values()):,} trials done in "
                      f"{len(folder.searches)} searches; the runs of a cell follow its search")
    for remark in folder.remarks():
        console.print(remark)


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
        grid = grid_of("size", *(str(card["size"]) for card in cards))
        for fact in columns[0]:
            if fact not in shared:
                grid.add_row(Text(fact), *(Text(column[fact]) for column in columns))
        console.print(grid)


def _facts(card: dict[str, Any]) -> dict[str, str]:
    facts = {"parameters": card["parameters"], "MACs": card["macs"], "activations": card["activations"]}
    shown = {fact: f"{count:,}" for fact, count in facts.items()}
    shown |= {f"option {key}": "not set" if value is None else str(value)
              for key, value in card["options"].items()}
    return shown | {key.replace("_", " "): f"{value:,}" if type(value) is int else str(value)
                    for key, value in card["card"].items()}


def grid_of(*headings: str) -> Grid:
    """An empty table whose first column is words, the others numbers."""
    grid = Grid(box=None, pad_edge=False, header_style="bold")
    for i, heading in enumerate(headings):
        grid.add_column(heading, justify="left" if i == 0 else "right", no_wrap=True)
    return grid
