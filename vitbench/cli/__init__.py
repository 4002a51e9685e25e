"""The command line: parse, call one function, print.

Exit status: 0 done, 1 some runs failed, 2 bad input, 130 interrupted, 143 terminated.
"""

import io
import os
import signal
import sys
from pathlib import Path

import typer

import vitbench.cli.upkeep  # noqa: F401 - its commands join those of app
from vitbench.cli.app import app

__all__ = ["app", "main"]


def main() -> None:
    """Entry point. Errors that a user can mend are one message on standard error, never a traceback."""
    from vitbench.cli.errors import explained, stop

    signal.signal(signal.SIGTERM, stop)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # else it is ignored, as under nohup
        signal.signal(signal.SIGINT, stop)
    if sys.stdout is None:  # closed by the caller: `>&-`
        sys.stdout = Path(os.devnull).open("w")  # noqa: SIM115 - until the process ends
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal that has no ± still gets its table
    try:
        status = app(standalone_mode=False)
    except (KeyboardInterrupt, typer.Abort):
        status = 130
    except BrokenPipeError:
        sys.stderr.close()  # the reader went away: `vitbench ... | head`
        status = 0
    except Exception as error:
        message = explained(error)
        if message is None:
            raise
        print(message, file=sys.stderr)
        status = 2
    sys.exit(status)
