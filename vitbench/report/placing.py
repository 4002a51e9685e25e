"""Where things stand in a figure: ranges of axes, and labels that do not cover each other."""

from collections.abc import Sequence
from math import ceil, floor


def axis_range(means: Sequence[float], lows: Sequence[float | None], highs: Sequence[float | None],
               step: float = 0.05) -> tuple[float, float]:
    """Limits for shares of images, on multiples of `step` within 0 and 1, that hold every mean.

    Interval ends widen them by at most the spread of the means: one wild interval must not flatten every line.
    """
    if not means:
        return 0.0, 1.0
    least, most = min(means), max(means)
    room = max(0.1, most - least)
    low = max(0.0, least - room, min([least, *(v for v in lows if v is not None)]))
    high = min(1.0, most + room, max([most, *(v for v in highs if v is not None)]))
    low, high = floor(low / step + 1e-9) * step, ceil(high / step - 1e-9) * step
    if high - low < step / 2:
        low, high = (low - step, high) if low >= step else (low, high + step)
    return round(low, 6), round(high, 6)


def spread(places: Sequence[float], gap: float, height: float) -> list[float]:
    """Places moved as little as needed to lie `gap` apart, in their order and within 0 and `height` where they fit."""
    order = sorted(range(len(places)), key=lambda i: (places[i], i))
    groups: list[tuple[float, list[int]]] = []  # centre, members: neighbours that touch share a centre
    for i in order:
        centre, members = places[i], [i]
        while groups and groups[-1][0] + gap * len(groups[-1][1]) / 2 > centre - gap * len(members) / 2:
            _, before = groups.pop()
            members = before + members
            wanted = [places[m] - gap * (k - (len(members) - 1) / 2) for k, m in enumerate(members)]
            centre = sum(wanted) / len(wanted)
            # Kept inside at once, so that a group pushed off an edge meets its neighbour.
            half = gap * (len(members) - 1) / 2
            centre = max(half, min(height - half, centre))
        groups.append((centre, members))
    placed = [0.0] * len(places)
    for centre, members in groups:
        for k, m in enumerate(members):
            placed[m] = centre + gap * (k - (len(members) - 1) / 2)
    return placed
