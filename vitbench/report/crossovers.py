"""Where attention overtakes the CNN that it is matched with: one row a pair and condition."""

from vitbench.report import pairs
from vitbench.report.frame import Frame
from vitbench.report.pairs import Pair
from vitbench.report.render import Column, Entry, Table, plain, rounded, word
from vitbench.report.wording import NONE
from vitbench.stats import sentences
from vitbench.stats.crossover import Crossing, SizeSet, crossing, crossover_set
from vitbench.stats.intervals import FEW_SEEDS

COLUMNS = (
    Column("outcome", "outcome"), Column("sentence", "in words"), Column("n_star", "n*, images", numeric=True),
    Column("n_star_set", "set n*, images"), Column("n_star_low", "", shown=False),
    Column("n_star_high", "", shown=False), Column("open_left", "", shown=False), Column("open_right", "", shown=False),
    Column("crossings", "", shown=False), Column("sizes", "sizes", numeric=True), Column("smallest", "", shown=False),
    Column("largest", "", shown=False), Column("n", "seeds", numeric=True), Column("few_seeds", "", shown=False),
    Column("without_lost", "", shown=False), Column("notes", "notes"))
FOOTER = (
    "n*: where the mean difference in accuracy changes its sign, by straight lines in ln n. The set n* holds every "
    "size at which 0 lies in the 95 % t interval of the difference paired by seed; it is open where it reaches an end "
    "of the measured range.",
    "Outcomes are named by the signs of the mean differences, whatever their intervals; nothing is extrapolated.")


def crossovers(frame: Frame) -> Table | None:
    """One row a matched pair and condition; None and no rows as `pairs.table` gives them."""
    return pairs.table(frame, "where attention overtakes its CNN", COLUMNS, lambda pair: [_row(pair)], FOOTER)


def _row(pair: Pair) -> tuple[Entry, ...]:
    curves, n = pair.curves, len(pair.curves.seeds)
    if not n:
        return (word("missing"), word(pairs.MISSING), *(Entry(None, NONE) for _ in COLUMNS[2:12]), Entry(0, "0"),
                plain(True), plain(None), word("; ".join(curves.notes) or None))
    found, left_open = _found(pair)
    rest = pair.without_lost
    without = _sentence(rest) if rest else None
    marks = [*curves.notes, *([f"without them: {without}"] if without else [])]
    sizes = curves.sizes_N
    return (word(found.outcome), word(_sentence(pair)), _places(found), *_set(left_open),
            plain(" ".join(str(rounded(size)) for size in found.sizes) or None), Entry(len(sizes), str(len(sizes))),
            plain(sizes[0]), plain(sizes[-1]), Entry(n, str(n)), plain(n < FEW_SEEDS), plain(without),
            word("; ".join(marks) or None))


def _found(pair: Pair) -> tuple[Crossing, SizeSet | None]:
    attention_SN, cnn_SN = pair.curves.accuracy_KSN
    difference_SN, sizes = attention_SN - cnn_SN, pair.curves.sizes_N
    left_open = crossover_set(sizes, difference_SN) if len(difference_SN) > 1 else None
    return crossing(sizes, difference_SN.mean(axis=0)), left_open


def _sentence(pair: Pair) -> str:
    return sentences.of_crossing(*_found(pair), pair.curves.sizes_N, seeds=len(pair.curves.seeds))


def _places(found: Crossing) -> Entry:
    """One crossing as a number; several are in `crossings`."""
    return Entry(found.sizes[0] if len(found.sizes) == 1 else None,
                 ", ".join(f"{n:,.0f}" for n in found.sizes) or NONE)


def _set(found: SizeSet | None) -> tuple[Entry, ...]:
    """The pieces '210.4 to 320', the first and last end of all, and whether these are open."""
    if found is None or not found.pieces:
        return Entry(None, NONE if found is None else "none"), *map(plain, (None,) * 4)
    pieces = "; ".join(f"{rounded(low)} to {rounded(high)}" for low, high in found.pieces)
    return (Entry(pieces, sentences.bracketed(found)), plain(found.pieces[0][0]), plain(found.pieces[-1][1]),
            plain(found.open_left), plain(found.open_right))
