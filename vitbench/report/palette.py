"""The one visual language: hue and first shape for family, dash and width for size, three styles for three parts.

Hues are Okabe and Ito's, which colour-blind readers tell apart; every difference also shows in shape or dash, so that
a grey print loses nothing. All have at least 3 : 1 against white and against the page's dark ground.
"""

from dataclasses import dataclass

from vitbench.report.cells import Cell

INK = "#1b1b1b"  # the page's style sheet turns it light on a dark ground
QUIET = "#6f7378"
FONT = "Liberation Sans, Arial, Helvetica, sans-serif"

# A second and third model of one family and size differ in shade and shape.
HUES = {"attention": ("#0072b2", "#3f97cf", "#4f7fd1"), "convolution": ("#d55e00", "#b54a00", "#e07a2c"),
        "hybrid": ("#009e73", "#00805d", "#23a883"), "control": ("#7a7a7a", "#919191", "#636870")}
SHAPES = {"attention": ("circle", "triangle-right", "wedge"), "convolution": ("square", "triangle-down", "arrow"),
          "hybrid": ("triangle-up", "triangle-left", "wedge"), "control": ("diamond", "cross", "triangle-left")}
DASHES: dict[str | None, list[float]] = {"xs": [1.5, 2.5], "s": [5, 3], "m": [10, 3], "l": [10, 3, 2, 3], "xl": [1, 0],
                                         None: [1, 0]}
WIDTHS: dict[str | None, float] = {"xs": 1.4, "s": 1.7, "m": 2.0, "l": 2.3, "xl": 2.7, None: 1.4}


@dataclass(frozen=True)
class ModelStyle:
    """How one model looks in every figure."""

    label: str
    colour: str
    shape: str
    dash: list[float]
    width: float


@dataclass(frozen=True)
class PartStyle:
    """How clean train, validation or test looks in every figure."""

    part: str
    title: str
    colour: str
    dash: list[float]


PARTS = (PartStyle("train", "clean train", "#a8408a", [2, 2.5]), PartStyle("val", "validation", "#b07a00", [7, 3]),
         PartStyle("test", "test", INK, [1, 0]))


def model_styles(found: tuple[Cell, ...]) -> tuple[ModelStyle, ...]:
    """A style for each label, in grid order."""
    models = {cell.label: (cell.family, cell.size) for cell in found}
    taken: dict[tuple[str, str | None], int] = {}
    styles = []
    for label, (family, size) in models.items():
        again = taken.get((family, size), 0)
        taken[family, size] = again + 1
        hues, shapes = HUES.get(family, HUES["control"]), SHAPES.get(family, SHAPES["control"])
        styles.append(ModelStyle(label, hues[again % len(hues)], shapes[again % len(shapes)],
                                 DASHES.get(size, [1, 0]), WIDTHS.get(size, 1.4)))
    return tuple(styles)
