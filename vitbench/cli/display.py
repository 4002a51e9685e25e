"""What `run` shows: a live view on a terminal, plain lines elsewhere."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from vitbench.grid import Run
from vitbench.live import Progress
from vitbench.report.wording import NONE
from vitbench.study.drive import Summary
from vitbench.study.engines.local import Ended
from vitbench.units import duration

PLAIN_EVERY_SECONDS = 10.0


def _named(run: Run) -> str:
    return f"{run.label}, {run.spec.share}, seed {run.spec.seed}"


class PlainDisplay:
    """One line now and then, for logs and pipes."""

    def __init__(self, console: Console, runs: dict[str, Run]) -> None:
        self._console, self._runs = console, runs
        self._next = 0.0

    def note(self, line: str) -> None:
        """Print it."""
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)

    def ended(self, run: Run, ended: Ended) -> None:
        """Only what went wrong is worth a line of its own."""
        if ended.outcome != "done":
            self.note(f"{ended.outcome}: {_named(run)}: {ended.reason} (vitbench logs {ended.spec.run_id})")

    def tick(self, summary: Summary, live: list[Progress], seconds_left: float | None) -> None:
        """A line every ten seconds, and one at the end."""
        if time.monotonic() >= self._next or not (summary.left or summary.trials_left):
            self._next = time.monotonic() + PLAIN_EVERY_SECONDS
            self.note(_counts(summary, live, seconds_left))


class QuietDisplay(PlainDisplay):
    """Nothing: what `run` prints at its end names every failed run too."""

    def note(self, line: str) -> None:
        """Nothing."""

    def tick(self, summary: Summary, live: list[Progress], seconds_left: float | None) -> None:
        """Nothing."""


def _counts(summary: Summary, live: list[Progress], seconds_left: float | None) -> str:
    ended = summary.ended
    trouble = "".join(f", {count} {word}" for count, word in
                      ((len(summary.failed), "failed"), (summary.diverged, "diverged")) if count)
    rest = "" if seconds_left is None else f", about {duration(seconds_left)} left"
    if summary.trials_left:
        return f"tuning: {summary.trials} of {summary.trials + summary.trials_left} trials done{rest}"
    return f"{ended} of {ended + summary.left} runs done{trouble}, {len(live)} running{rest}"


class LiveDisplay(PlainDisplay):
    """A bar, counts, and the running runs with step and losses, redrawn in place."""

    def __init__(self, console: Console, runs: dict[str, Run]) -> None:
        super().__init__(console, runs)
        self.live = Live(console=console, auto_refresh=False, transient=True)

    def tick(self, summary: Summary, live: list[Progress], seconds_left: float | None) -> None:
        """Redraw."""
        ended = summary.ended
        total, completed = (summary.trials + summary.trials_left, summary.trials) if summary.trials_left else \
            (ended + summary.left, ended)
        view: list[RenderableType] = [ProgressBar(total=total, completed=completed, width=60),
                                      Text(_counts(summary, live, seconds_left))]
        self.live.update(Group(*view, self._running(live)), refresh=True)

    def _running(self, live: list[Progress]) -> Table:
        table = Table(box=None, pad_edge=False)
        for heading in ("running", "step", "train loss", "val loss", "test loss"):
            table.add_column(heading, justify="left" if heading == "running" else "right")
        for run in live:
            name = _named(self._runs[run.run_id]) if run.run_id in self._runs else run.run_id
            losses = [NONE if loss is None else f"{loss:.3f}" for loss in (run.train_loss, run.val_loss, run.test_loss)]
            table.add_row(Text(name + (" (lost)" if run.lost else "")), f"{run.step} of {run.steps}", *losses)
        return table


@contextmanager
def display(console: Console, runs: list[Run], quiet: bool) -> Iterator[PlainDisplay]:
    """The display that fits the output; leaving it restores the terminal."""
    by_id = {run.spec.run_id: run for run in runs}
    if quiet:
        yield QuietDisplay(console, by_id)
    elif console.is_terminal:
        shown = LiveDisplay(console, by_id)
        with shown.live:
            yield shown
    else:
        yield PlainDisplay(console, by_id)
