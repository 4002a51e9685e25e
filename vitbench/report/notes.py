"""What stands beside the numbers: marks of a cell, footnotes, and the footer that a citation needs."""

from collections.abc import Iterable
from itertools import product

from vitbench.report.cells import Cell, content_sha256
from vitbench.report.frame import Frame
from vitbench.report.render import Column, Entry, plain
from vitbench.report.wording import NONE, interval_text, percent, shortened
from vitbench.stats.intervals import Interval

INTERVAL = "95 % t interval over seeds"
GAP_IS_ERROR, SHARED = "‡", "†"
MATCHED, MATCH = ("attention", "convolution"), 0.15  # of protocol rule 18


def devices_of(frame: Frame) -> list[str]:
    """The devices that computed the frame's runs, sorted."""
    return sorted({row.device for row in frame.rows if row.device is not None})


def identity(frame: Frame) -> tuple[str, str, str]:
    """Code versions, numerics and content hash: what a citation names (protocol rule 30)."""
    versions = sorted({row.code_version for row in frame.rows if row.code_version is not None})
    return ", ".join(versions) or "unknown", ", ".join(map(str, _numerics(frame))), content_sha256(frame)


RESTS_ON = tuple(Column(key, "", shown=False) for key in ("run_ids", "code_version", "numerics", "content_sha256"))
"""The last columns of every table: each row carries what a citation names (protocol rule 30)."""


def rests_on(found: Iterable[Cell], of: tuple[str, str, str]) -> tuple[Entry, ...]:
    """The entries of RESTS_ON of a row that is made from some cells, `of` a frame's identity."""
    return tuple(map(plain, (" ".join(row.run_id for cell in found for row in cell.rows), *of)))


def cited(frame: Frame) -> tuple[str, str]:
    """The same as the last lines of a footer."""
    versions, numerics, sha256 = identity(frame)
    return f"vitbench {versions}; numerics {numerics}.", f"Content SHA-256 {sha256}"


def _numerics(frame: Frame) -> list[int]:
    return sorted({run.spec.numerics for run in frame.runs})


def marks(cell: Cell, number: int | None, *others: str | None) -> Entry:
    """What a reader must know of a cell before using its number: `number` is its footnote's, `others` are marks that
    its runs alone do not tell."""
    found = []
    if not cell.rows:
        found.append("missing")
    elif len(cell.rows) < len(cell.runs):
        found.append(f"{len(cell.runs) - len(cell.rows)} missing")
    if cell.accuracy and cell.accuracy.few_seeds:
        found.append("few seeds" if cell.accuracy.n > 1 else "one seed")
    found += [f"{count} {outcome}" for outcome in ("diverged", "failed") if (count := cell.count(outcome))]
    found += [mark for mark in others if mark]
    text = "; ".join(found)
    return Entry(text or None, text + (f" (note {number})" if number else ""))


def numbered(notes: list[str]) -> list[int | None]:
    """1, 2, ... for the notes that are not empty."""
    numbers, last = [], 0
    for note in notes:
        last += bool(note)
        numbers.append(last if note else None)
    return numbers


def ended_badly(cell: Cell) -> str:
    """Footnote of a cell with runs that diverged or failed; empty for others."""
    bad = [row for row in cell.rows if row.outcome != "done"]
    if not bad:
        return ""
    reasons = "; ".join(f"seed {row.seed} {row.outcome}: {shortened(row.reason)}" for row in bad)
    without = cell.accuracy_of_done
    rest = f"without: {interval_text(without)} % (n = {without.n})" if without else "no run is left without them"
    return (f"{cell.label}, {cell.share}, {cell.condition}: {reasons}. "
            f"Counted as chance accuracy, {percent(bad[0].chance_accuracy)} %; {rest}.")


def excluded(frame: Frame) -> list[str]:
    """A footnote for each run that left something which is no result."""
    return [f"Run {run_id} counts as missing: {shortened(why)}." for run_id, why in sorted(frame.excluded.items())]


def caption(frame: Frame, found: tuple[Cell, ...]) -> str:
    """The study, its dataset, and the conditions that all cells share."""
    same = [f"{key} {value}" for key in ("regime", "budget", "setting")
            if len(values := {getattr(cell, key) for cell in found}) == 1 for value in values]
    dataset = ", ".join(sorted({run.spec.dataset_text for run in frame.runs}))
    return ", ".join([f"Study {frame.study}: test accuracy on {dataset}", *same])


def footer(frame: Frame, found: tuple[Cell, ...]) -> tuple[str, ...]:
    """What the numbers mean and rest on."""
    versions, numerics, sha256 = identity(frame)
    grid = frame.main
    beside = len(frame.runs) - len(grid.runs)
    ended = len(frame.rows) - len(grid.rows)
    others = f" Beside them {ended} of {beside} runs of controls and anchors." if beside else ""
    counts = sorted({len(cell.rows) for cell in found})
    lines = [
        f"n: {len(grid.rows)} of {len(grid.runs)} runs ended; runs a cell: {', '.join(map(str, counts)) or 'none'}."
        + others,
        f"Intervals: {INTERVAL}; none for one seed. Few seeds (2 to 5): for looking, nothing rests on them.",
        "They generalise to seeds: redraws from this training set, judged on the same "
        f"{frame.resolved.test_images:,} test images. Above fraction .5 they understate the variance of new data, "
        "at 1 they hold none of it.",
        "Gap: test error minus clean-train error, descriptive. Time harm: test error at the end minus at the step of "
        f"lowest validation loss; {NONE} without validation. Both, and the seconds, are means over the runs that have "
        "them.",
    ]
    lines += _regimes(frame, found) + _sizes(found)
    if any(cell.gap_is_test_error for cell in found):
        lines.append(f"{GAP_IS_ERROR} Clean-train error is 0 in every run: the gap is the test error.")
    if any(cell.shared_device for cell in found):
        lines.append(f"{SHARED} Seconds were taken with other runs beside them on the device.")
    if any(_outside(cell.accuracy) for cell in found):
        lines.append("A t interval of few or scattered seeds can reach below 0 or above 100 %; it is shown as "
                     "computed.")
    if frame.exploratory:
        lines.append(frame.exploratory)
    lines += _data(frame)
    threads = sorted({row.threads for row in frame.rows if row.threads is not None})
    lines.append(f"Devices: {', '.join(devices_of(frame)) or 'none'}; threads a run: "
                 f"{', '.join(map(str, threads)) or 'none'}. vitbench {versions}; numerics {numerics}.")
    lines.append(f"Content SHA-256 {sha256}")
    return tuple(lines)


def augmentation_of(frame: Frame, regime: str) -> str | None:
    """What a regime did, from the card of a record; None where no run of it has one."""
    cards = (record.card for record in frame.records.values() if record.spec.regime == regime)
    card = next((card for card in cards if "augmentation" in card), None)
    if card is None:
        return None
    smooths = "label smoothing" in str(card.get("regularisers"))
    return f"{card['augmentation']}" + ("; with label smoothing, and stochastic depth where a model has it" * smooths)


def _regimes(frame: Frame, found: tuple[Cell, ...]) -> list[str]:
    """A line for each regime that does something to images."""
    done = {regime: augmentation_of(frame, regime) for regime in dict.fromkeys(cell.regime for cell in found)}
    return [f"Regime {regime}: {text}." for regime, text in done.items() if text]


def _data(frame: Frame) -> list[str]:
    """How the data were parted, and what is in both parts (protocol rules 4 and 6)."""
    resolved = frame.resolved
    if resolved.split is None or resolved.duplicates is None:
        return []
    return [f"Split: {resolved.split}. Of {resolved.test_images:,} test images {resolved.duplicates.test_in_train:,} "
            f"are training images, too; of {sum(resolved.train_counts):,} training images "
            f"{resolved.duplicates.within_train:,} repeat another, byte for byte."]


def _sizes(found: tuple[Cell, ...]) -> list[str]:
    """A line for each size that attention and convolution share: how well their parameters match (rule 18)."""
    params: dict[str, dict[str, tuple[str, int]]] = {}
    for cell in found:
        count = cell.constant("params")
        if cell.size is not None and count is not None and cell.family in MATCHED:
            params.setdefault(cell.size, {})[cell.label] = (cell.family, count)
    return [_size(size, models) for size, models in params.items()
            if {family for family, _ in models.values()} == set(MATCHED)] + _matched_on_macs(found)


def _matched_on_macs(found: tuple[Cell, ...]) -> list[str]:
    """Which attention and convolution models take as many multiply-adds: a headline needs such a pair, too (18)."""
    macs = {family: {cell.label: count for cell in found if cell.family == family and (count := cell.constant("macs"))}
            for family in MATCHED}
    attention, convolution = (macs[family] for family in MATCHED)
    if not attention or not convolution:
        return []
    pairs = [f"{a} and {c}" for (a, x), (c, y) in product(attention.items(), convolution.items())
             if max(x, y) / min(x, y) - 1 <= MATCH]
    return [f"Matched on MACs within {percent(MATCH)} %, of attention and convolution: {'; '.join(pairs) or 'none'}."]


def _size(size: str, models: dict[str, tuple[str, int]]) -> str:
    sides = [[count for of, count in models.values() if of == family] for family in MATCHED]
    widest = max(max(pair) / min(pair) - 1 for pair in product(*sides))
    each = ", ".join(f"{label} {count:,}" for label, (_, count) in models.items())
    return (f"Size {size}, parameters at this study's image size: {each}; attention and convolution differ by "
            f"{percent(widest)} % at most{'' if widest <= MATCH else f', more than {percent(MATCH)} %: not matched'}.")


def _outside(interval: Interval | None) -> bool:
    return interval is not None and interval.low is not None and interval.high is not None and (
        interval.low < 0 or interval.high > 1)
