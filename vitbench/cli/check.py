"""`check`: a user's model file held to what every model promises."""

from collections.abc import Iterator
from pathlib import Path

from vitbench.models import MODELS, ModelError, build, resolve
from vitbench.registry import PluginError, UnknownName, load_plugin
from vitbench.spec import ImageSpec


def check_model(path: Path) -> int:
    """Prints a line for each size and promise; 1 if one is broken. Runs the file's code."""
    load_plugin(path)
    try:
        sizes: list[str | None] = [*MODELS.get(path.stem).meta.sizes] or [None]
    except UnknownName:
        raise PluginError(f"{path}: registers no model; `vitbench new model` writes an example") from None
    broken = 0
    for size in sizes:
        for promise, fault in _faults(path.stem, size):
            print(f"{'ok' if fault is None else 'BROKEN':<7}{path.stem}{f':{size}' if size else ''}: {promise}"
                  + (f"\n       {fault}" if fault else ""))
            broken += fault is not None
    return 1 if broken else 0


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
