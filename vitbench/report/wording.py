"""Numbers and reasons as readers see them."""

from vitbench.stats.intervals import Interval

NONE = "—"
MINUS = "\N{MINUS SIGN}"


def six_digits(value: float | None) -> float | None:
    """Rounded as all derived numbers are."""
    return None if value is None else float(f"{value:.6g}")


def percent(share: float | None, *, sign: bool = False) -> str:
    """A share of images in percent with one decimal."""
    if share is None:
        return NONE
    text = f"{100 * share:{'+' if sign else ''}.1f}"
    return "0.0" if text in ("-0.0", "+0.0") else text.replace("-", MINUS)


def interval_text(interval: Interval | None) -> str:
    """'91.2 [89.0, 93.4]' in percent; a single value has no interval."""
    if interval is None:
        return "missing"
    if interval.low is None:
        return percent(interval.mean)
    return f"{percent(interval.mean)} [{percent(interval.low)}, {percent(interval.high)}]"


def signed_interval(difference: Interval | None) -> str:
    """'+1.2 [+0.4, +2.0]' in points."""
    if difference is None:
        return NONE
    mean, *ends = (percent(value, sign=True) for value in (difference.mean, difference.low, difference.high))
    return mean if difference.low is None else f"{mean} [{', '.join(ends)}]"


def short_count(count: int | None) -> str:
    """19834 as '19.8 k': three digits, for parameters and MACs."""
    if count is None:
        return NONE
    for unit, size in (("T", 10**12), ("G", 10**9), ("M", 10**6), ("k", 10**3)):
        if count >= size:
            return f"{count / size:.3g} {unit}" if count < 999.5 * size else f"{count / size:,.0f} {unit}"
    return str(count)


def shortened(reason: str | None, limit: int = 160) -> str:
    """A reason on one line of at most `limit` characters."""
    line = " ".join((reason or "no reason recorded").split()).rstrip(".")
    return line if len(line) <= limit else f"{line[:limit - 1]}…"
