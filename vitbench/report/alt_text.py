"""What each figure shows, in words: for readers who do not see it."""

from vitbench.report.cells import Cell
from vitbench.report.curves import CellCurves
from vitbench.report.wording import percent


def accuracy_text(found: tuple[Cell, ...]) -> str:
    """Lowest and highest mean at each size, of one condition's cells."""
    at: dict[int, list[tuple[float, str]]] = {}
    for cell in found:
        if cell.accuracy:
            at.setdefault(cell.train_images, []).append((cell.accuracy.mean, cell.label))
    parts = [f"at {size:,} training images mean test accuracy runs from {percent(min(means)[0])} % ({min(means)[1]}) "
             f"to {percent(max(means)[0])} % ({max(means)[1]})" for size, means in sorted(at.items())]
    text = "; ".join(parts) if parts else "no run of this condition has ended"
    return f"{text[0].upper()}{text[1:]}. The table holds every number."


def overfitting_text(cell: Cell, curves: CellCurves) -> str:
    """Onset and last mean values of one cell."""
    name = f"{cell.label}, share {cell.share}, {cell.condition}"
    if not curves.seeds:
        return f"{name}: no run has curves."
    ended = [f"{count} {outcome}" for outcome in ("diverged", "failed") if (count := cell.count(outcome))]
    parts = [f"{name}: seeds {', '.join(map(str, curves.seeds))}{' (' + ', '.join(ended) + ')' if ended else ''}"]
    onsets = [row for row in curves.onsets if row[0] is None]
    parts.append(f"lowest validation loss at step {onsets[0][1]:,} (median over seeds)" if onsets
                 else "no validation, so no onset")
    for part, words in (("train", "clean train"), ("val", "validation"), ("test", "test")):
        means = [row for row in curves.curves if row[0] is None and row[2] == part]
        if means:
            _, step, _, loss, share = max(means, key=lambda row: row[1])
            parts.append(f"{words} at step {step:,}: accuracy {percent(share)} %, loss {loss:.3g}")
    return "; ".join(parts) + "."


def overview_text(found: tuple[Cell, ...]) -> str:
    """Smallest and largest gap of one condition's cells."""
    gaps = [(gap, cell) for cell in found if (gap := cell.mean("gap")) is not None]
    if not gaps:
        return "No run of this condition has a gap."
    (least, narrow), (most, wide) = min(gaps, key=lambda g: g[0]), max(gaps, key=lambda g: g[0])
    return (f"At the end the gap between clean-train and test accuracy runs from {percent(least)} points "
            f"({narrow.label}, share {narrow.share}) to {percent(most)} points ({wide.label}, share {wide.share}). "
            "The table holds every gap.")
