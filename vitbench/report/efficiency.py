"""How many times more images attention needs for the CNN's error: one row a pair, condition and size."""

from collections.abc import Iterator

from vitbench.report import pairs
from vitbench.report.frame import Frame
from vitbench.report.pairs import Pair
from vitbench.report.render import Column, Entry, Table, plain, word
from vitbench.report.wording import NONE, percent
from vitbench.stats import sentences
from vitbench.stats.efficiency import Factor, data_efficiency
from vitbench.stats.intervals import FEW_SEEDS

COLUMNS = (
    Column("train_images", "the CNN's images", numeric=True), Column("cnn_error", "its error, %", numeric=True),
    Column("factor", "attention needs, times as many", numeric=True), Column("sign", "", shown=False),
    Column("interval", "95 %"), Column("factor_low", "", shown=False), Column("factor_high", "", shown=False),
    Column("images_needed", "images", numeric=True), Column("sentence", "", shown=False),
    Column("n", "seeds", numeric=True), Column("few_seeds", "", shown=False), Column("without_lost", "", shown=False),
    Column("notes", "notes"))
FOOTER = (
    "Attention's images are read from its mean curve, made non-increasing, by straight lines in ln n; the CNN's mean "
    "curve is made non-increasing, too. 'More than': attention does not come to that error in the measured range. 'At "
    "most': it is as good with its fewest images.",
    "The interval holds every number of images at which 0 lies in the 95 % t interval of attention's error minus the "
    "CNN's, paired by seed; it has no end where it reaches one of the measured range.")


def efficiency(frame: Frame) -> Table | None:
    """One row a matched pair, condition and size; None and no rows as `pairs.table` gives them."""
    return pairs.table(frame, "how many times more images attention needs than its CNN", COLUMNS, _rows, FOOTER)


def _rows(pair: Pair) -> Iterator[tuple[Entry, ...]]:
    curves, n = pair.curves, len(pair.curves.seeds)
    if not n:
        yield (*(Entry(None, NONE) for _ in COLUMNS[:8]), plain(pairs.MISSING), Entry(0, "0"), plain(True), plain(None),
               word("; ".join([pairs.MISSING, *curves.notes])))
        return
    found, error_N = _factors(pair), 1 - curves.accuracy_KSN[1].mean(axis=0)
    rest = pair.without_lost
    others: list[Factor | None] = [*_factors(rest)] if rest else [None] * len(found)
    for one, error, other in zip(found, error_N.tolist(), others, strict=True):
        without = _briefly(other) if other else None
        marks = [*curves.notes, *([f"without them {without}"] if without else [])]
        yield (Entry(int(one.images), f"{one.images:,.0f}"), Entry(error, percent(error)),
               Entry(one.value, sentences.times(one)), plain(one.sign), word(sentences.factor_interval(one) or None),
               plain(one.low), plain(one.high), _needed(one), plain(sentences.of_factor(one)), Entry(n, str(n)),
               plain(n < FEW_SEEDS), plain(without), word("; ".join(marks) or None))


def _factors(pair: Pair) -> tuple[Factor, ...]:
    attention_SN, cnn_SN = 1 - pair.curves.accuracy_KSN
    return data_efficiency(pair.curves.sizes_N, cnn_SN, attention_SN)


def _briefly(found: Factor) -> str:
    return f"{sentences.times(found)} {sentences.factor_interval(found)}".rstrip() + sentences.few(found.seeds)


def _needed(found: Factor) -> Entry:
    images = found.value * found.images
    return Entry(images if found.sign == "=" else None, f"{images:,.0f}" if found.sign == "=" else NONE)
