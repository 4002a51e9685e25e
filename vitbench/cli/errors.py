"""Which exceptions are messages to the user."""

import errno


class Terminated(KeyboardInterrupt):
    """SIGTERM: like Ctrl-C, what runs is stopped and what ended is kept."""


def terminate(_signal: int, _frame: object) -> None:
    """Handler of SIGTERM."""
    raise Terminated


def explained(error: Exception) -> str | None:
    """The text to show instead of a traceback, or None for a fault of ours."""
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


_PLACES = {errno.ENOSPC, errno.EACCES, errno.EROFS, errno.EPERM, errno.ENOTDIR, errno.EDQUOT, errno.ENAMETOOLONG,
           errno.EFBIG, errno.EISDIR}
