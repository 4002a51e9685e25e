"""Seconds and bytes as people read them."""


def duration(seconds: float) -> str:
    """'1 h 05 min', '2 min 10 s', '12 s'."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"


def byte_text(count: int) -> str:
    """'1.2 MB', in powers of 1,000."""
    amount, unit = float(count), "bytes"
    for larger in ("kB", "MB", "GB"):
        if amount < 999.95:
            break
        amount, unit = amount / 1000, larger
    return f"{count} bytes" if unit == "bytes" else f"{amount:.1f} {unit}"
