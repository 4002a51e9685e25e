"""What ends a command early: signals, and exceptions that are messages to the user."""

import errno
import signal


class Terminated(SystemExit):
    """SIGTERM: like Ctrl-C, what runs is stopped, what ended is kept. No interrupt, which click would replace."""


def stop(number: int, _frame: object) -> None:
    """Handler of SIGINT and SIGTERM. The second one would break into the stopping itself, so only the first counts."""
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, signal.SIG_IGN)
    raise Terminated(143) if number == signal.SIGTERM else KeyboardInterrupt


def explained(error: Exception) -> str | None:
    """The text to show instead of a traceback, or None for a fault of ours."""
    text = _text(error)
    return None if text is None else harmless(text)


def harmless(text: str) -> str:
    """`text` with the characters written out that a terminal would obey."""
    return "".join(c if c.isprintable() or c == "\n" else repr(c)[1:-1] for c in text)


def _text(error: Exception) -> str | None:
    if hasattr(error, "format_message"):  # a usage error of click, or of the copy of click inside typer
        context = getattr(error, "ctx", None)
        hint = f"\nTry '{context.command_path} --help'." if context else ""
        return f"error: {error.format_message()}{hint}"
    if isinstance(error, OSError) and error.errno in _PLACES:
        return f"error: {error.filename or 'output'}: {error.strerror}"
    # Every error of ours that a user can mend is a ValueError with a whole sentence; others are faults.
    if isinstance(error, ValueError) and type(error).__module__.startswith("vitbench."):
        return "\n".join(f"error: {line}" for line in str(error).splitlines())
    return None


_PLACES = {errno.ENOENT, errno.ENOSPC, errno.EACCES, errno.EROFS, errno.EPERM, errno.ENOTDIR, errno.EDQUOT,
           errno.ENAMETOOLONG, errno.EFBIG, errno.EISDIR}
