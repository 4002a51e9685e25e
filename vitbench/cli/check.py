"""`check`: a user's file held to what every model or every claim promises."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from vitbench.claims import CLAIMS, judge
from vitbench.models import MODELS, ModelError, build, resolve
from vitbench.registry import PluginError, load_plugin
from vitbench.spec import ImageSpec

Finding = tuple[str, str, str | None]  # what was looked at, the promise, and how it is broken


def check_file(path: Path) -> int:
    """Prints a line for each promise; 1 if one is broken. Runs the file's code."""
    load_plugin(path)
    kinds = [held for registry, held in ((MODELS, _of_model), (CLAIMS, _of_claim)) if path.stem in registry.names()]
    if not kinds:
        raise PluginError(f"{path}: registers no model and no claim; `vitbench new model` and `vitbench new claim` "
                          "write examples")
    broken = 0
    for what, promise, fault in (finding for held in kinds for finding in held(path.stem)):
        print(f"{'ok' if fault is None else 'BROKEN':<7}{what}: {promise}" + (f"\n       {fault}" if fault else ""))
        broken += fault is not None
    return 1 if broken else 0


def _of_claim(name: str) -> Iterator[Finding]:
    from vitbench.verdicts.conformance import promises

    planted = CLAIMS.get(name).meta.planted
    for promise in promises(planted):
        assert promise.__doc__
        fault = None
        try:
            promise(partial(judge, name), planted)
        except Exception as error:  # a user's code may raise anything
            fault = _told(error)
        yield name, promise.__doc__, fault


def _of_model(name: str) -> Iterator[Finding]:
    sizes: list[str | None] = [*MODELS.get(name).meta.sizes] or [None]
    for size in sizes:
        for promise, fault in _faults(name, size):
            yield f"{name}:{size}" if size else name, promise, fault


def _faults(name: str, size: str | None) -> Iterator[tuple[str, str | None]]:
    from vitbench.training.conformance import IMAGES, PROMISES

    options, _ = resolve(name, size, {})
    taken = [image for image in IMAGES if _takes(name, options, image)]
    if not taken:
        raise PluginError(f"{name}: refuses images of 8, 28 and 32 pixels, so nothing was checked")
    for promise in PROMISES:
        assert promise.__doc__
        fault = None
        for image in taken:
            try:
                promise(lambda image, classes: build(name, size, {}, image, classes), image)
            except Exception as error:  # a user's code may raise anything
                fault = f"{image.size}x{image.size}x{image.channels}: {_told(error)}"
                break
        yield promise.__doc__, fault


def _takes(name: str, options: object, image: ImageSpec) -> bool:
    try:
        MODELS.get(name).meta.check(options, image)
    except ModelError:
        return False
    return True


def _told(error: Exception) -> str:
    own = type(error).__module__.startswith("vitbench.")
    return str(error) if own else f"{type(error).__name__}: {error}"
