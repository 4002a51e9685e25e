"""Regimes: named augmentation levels, the words for what they do to an image, and what a dataset lets them do.

Constants are part of a regime's version: one that changes raises REGIME_VERSIONS, which renames the runs of that regime
and of no other.
"""

from collections.abc import Iterable

from vitbench.registry import nearest
from vitbench.spec import ImageSpec, Regime

REGIME_VERSIONS: dict[Regime, int] = {"none": 1, "light": 1, "strong": 1}

WORDS = {
    "shift": "moved by whole pixels, up to an eighth of the side each way; black enters",
    "flip": "mirrored left to right",
    "rotate": "turned by 15 degrees, at most twice",
    "shear": "slanted by .15 of the side, at most twice",
    "intensity": "made darker or brighter, left with fewer grey levels",
    "contrast": "contrast raised or lowered, grey levels spread or equalised",
    "sharpness": "blurred or sharpened",
    "invert": "bright pixels inverted",
    "colour": "colours made paler or stronger",
    "erase": "a rectangle hidden",
    "mixup": "blended with another image, the label in the same proportion",
    "cutmix": "a square replaced by another image's, the label in the proportion of areas",
}
"""What may be done to an image so that its label stays true (protocol rule 5), and what each word means. Append: the
order decides which operation a draw means."""

LIGHT = ("shift", "flip")  # strong does these too, and draws the same ones for the same seed and step

SHIFT = 8  # the largest is the side over this
# RandAugment (Cubuk et al. 2020): two operations an image, at half of its largest magnitude. Its translations are left
# out, for `shift` does that, and `shift` keeps its bound.
OPERATIONS_AN_IMAGE = 2
RAND_AUGMENT = {"rotate": ("rotate",), "shear": ("shear_x", "shear_y"), "intensity": ("brightness", "posterize"),
                "contrast": ("contrast", "autocontrast", "equalize"), "sharpness": ("sharpness",),
                "invert": ("solarize",), "colour": ("colour",)}
DEGREES, SHEAR, FACTOR, BITS, THRESHOLD = 15.0, 0.15, 0.45, 6, 127.5
# Random erasing (Zhong et al. 2020): share of the images, areas of the image, aspect ratios.
ERASED, ERASED_AREA, ERASED_RATIO = 0.25, (0.02, 0.33), (0.3, 1 / 0.3)
# Mixup (Zhang et al. 2018) or cutmix (Yun et al. 2019), each as often as the other: share of the images, Beta(a, a).
MIXED, MIXUP_ALPHA, CUTMIX_ALPHA = 0.5, 0.2, 1.0
LABEL_SMOOTHING = 0.1  # Szegedy et al. 2016
STOCHASTIC_DEPTH = 0.1  # of the last block; linear from the first on (Huang et al. 2016)


class UnknownWord(ValueError):
    """A word that names no augmentation; the message lists those that do."""


class ForbiddenRegime(ValueError):
    """A regime of which a dataset's labels allow nothing."""


def check_words(words: Iterable[str]) -> None:
    """Raise UnknownWord unless each names an augmentation."""
    for word in words:
        if word not in WORDS:
            raise UnknownWord(f"should hold words of {', '.join(WORDS)}; found {word!r}.{nearest(word, WORDS)}")


def words_of(regime: Regime, image: ImageSpec) -> tuple[str, ...]:
    """What a regime does to images of this kind where no label forbids it."""
    if regime == "none":
        return ()
    # Greys and RGB alone have a brightness; grey has no colour.
    impossible = {1: {"colour"}, 3: set[str]()}.get(image.channels, {*RAND_AUGMENT} - {"rotate", "shear"})
    return LIGHT if regime == "light" else tuple(word for word in WORDS if word not in impossible)


def applied(regime: Regime, keeps_labels: Iterable[str], image: ImageSpec) -> tuple[str, ...]:
    """What the regime does to a dataset's images. Raises ForbiddenRegime where that is nothing but for `none`."""
    wanted, allowed = words_of(regime, image), set(keeps_labels)
    found = tuple(word for word in wanted if word in allowed)
    if wanted and not found:
        kept = f"only under {', '.join(sorted(allowed))}" if allowed else "under no augmentation"
        others = [other for other in REGIME_VERSIONS if other == "none" or allowed.intersection(words_of(other, image))]
        raise ForbiddenRegime(f"{regime!r} is forbidden by this dataset: it would {', '.join(wanted)}, and the labels "
                              f"stay true {kept}; allowed: {', '.join(others)}")
    return found


def augmentation_text(regime: Regime, keeps_labels: Iterable[str], image: ImageSpec) -> str:
    """For the card: what is applied, and what the labels forbid. Raises ForbiddenRegime."""
    done = applied(regime, keeps_labels, image)
    forbidden = [word for word in words_of(regime, image) if word not in done]
    return ", ".join(done or ["none"]) + (f"; not {', '.join(forbidden)}" if forbidden else "")


def regularisers_of(regime: Regime, stochastic_depth: float) -> list[str]:
    """What the regime adds, for the card (protocol rule 8), and the stochastic depth that the model has."""
    if regime != "strong":
        return [f"stochastic depth {stochastic_depth:g}"] if stochastic_depth else []
    depth = f"stochastic depth {stochastic_depth:g}" if stochastic_depth else "no stochastic depth"
    return [f"label smoothing {LABEL_SMOOTHING:g}", depth]
