"""What a crossover or a data-efficiency factor says, in a sentence."""

from vitbench.stats.crossover import Crossing, SizeSet, Values
from vitbench.stats.efficiency import Factor
from vitbench.stats.intervals import FEW_SEEDS


def of_crossing(found: Crossing, left_open: SizeSet | None, sizes_N: Values, *, seeds: int) -> str:
    """'attention overtakes the CNN at about 240 images [210, 320]'; an open end in words. `left_open` is None for one
    seed, which has no interval; fewer than six seeds are marked."""
    places = bracketed(left_open)
    where = _listed([f"{n:,.0f}" for n in found.sizes])
    smallest, largest = (f"{sizes_N[i]:,.0f}" for i in (0, -1))
    everywhere = f"from {smallest} to {largest} images" if len(sizes_N) > 1 else f"at {largest} images, the only size"
    doubt = f"; seeds leave open which of them leads at {places} images" if places else ""
    return {
        "overtakes": f"attention overtakes the CNN at about {where} images {places}",
        "is_overtaken": f"attention is overtaken by the CNN at about {where} images {places}",
        "several_crossings": f"several crossings, at about {where} images {places}",
        "ahead_everywhere": f"attention is ahead everywhere, {everywhere}{doubt}",
        "no_crossover_up_to_N": f"no crossover up to {largest} images: the CNN is ahead{doubt}",
        "tied_everywhere": f"tied everywhere, {everywhere}",
    }[found.outcome].rstrip() + few(seeds)


def of_factor(found: Factor) -> str:
    """'for the error that the CNN has with 100 images attention needs 4.0 times as many [2.9, 5.5]'."""
    return (f"for the error that the CNN has with {found.images:,.0f} images attention needs "
            f"{times(found)} times as many {factor_interval(found)}").rstrip() + few(found.seeds)


def times(found: Factor) -> str:
    """'4.0', 'more than 10', or 'at most 0.50'."""
    return {"=": "", ">": "more than ", "<=": "at most "}[found.sign] + _two_digits(found.value)


def factor_interval(found: Factor) -> str:
    """'[2.9, 5.5]', '[2.9 or more]'; nothing for one seed."""
    if found.seeds < 2:
        return ""
    low, high = (None if end is None else _two_digits(end) for end in (found.low, found.high))
    if low is None or high is None:
        return "[any number]" if low == high else f"[{high} or less]" if low is None else f"[{low} or more]"
    return f"[{low}, {high}]"


def bracketed(found: SizeSet | None) -> str:
    """'[210, 320] and [900, 1,437 or more]', '[14 or fewer, 57]'; nothing for an empty set."""
    if found is None or not found.pieces:
        return ""
    ends = [[f"{n:,.0f}" for n in piece] for piece in found.pieces]
    ends[0][0] += " or fewer" * found.open_left
    ends[-1][1] += " or more" * found.open_right
    return _listed([f"[{low}, {high}]" for low, high in ends])


def _two_digits(value: float) -> str:
    """4.04 as '4.0', 41.4 as '41', 0.0414 as '0.041'."""
    return f"{value:,.0f}" if value >= 9.95 else f"{value:#.2g}"


def _listed(texts: list[str]) -> str:
    return " and ".join([*([", ".join(texts[:-1])] if texts[:-1] else []), *texts[-1:]])


def few(seeds: int) -> str:
    """' (few seeds: 3)', ' (one seed: no interval)', nothing from six on."""
    if seeds >= FEW_SEEDS:
        return ""
    return f" (few seeds: {seeds})" if seeds > 1 else " (one seed: no interval)"
