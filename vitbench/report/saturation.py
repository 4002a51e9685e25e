"""The saturation check: cells whose accuracy still changes when the schedule is made longer (protocol rule 9)."""

from vitbench.report.cells import Cell, CellKey, cells, control_cells, paired
from vitbench.report.frame import Frame
from vitbench.report.wording import percent
from vitbench.spec import canonical_json
from vitbench.stats.intervals import t_interval


def budget_limited(frame: Frame) -> dict[CellKey, str]:
    """For each cell of the grid that changes by more than the study's margin: 'budget-limited: x2 +1.8'."""
    found: dict[CellKey, list[str]] = {}
    for factor, cell, longer in _lengthened(frame):
        differences = paired(longer, cell)
        if differences and abs(mean := t_interval(differences).mean) > frame.margin:
            found.setdefault(cell.key, []).append(f"x{factor} {percent(mean, sign=True)}")
    return {key: f"budget-limited: {', '.join(changes)}" for key, changes in found.items()}


def saturation(frame: Frame) -> dict[CellKey, bool]:
    """For each cell of the grid that the check looked at: whether it still changes by more than the margin."""
    limited = budget_limited(frame)
    return {cell.key: cell.key in limited for _, cell, longer in _lengthened(frame) if paired(longer, cell)}


def footer(frame: Frame) -> list[str]:
    """What was checked, for below the table; nothing where no control lengthens a budget."""
    factors = sorted({factor for factor, _, _ in _lengthened(frame)})
    return [f"Budget-limited: mean accuracy changes by more than {percent(frame.margin)} points where the schedule is "
            f"made longer, here {', '.join(f'x{factor}' for factor in factors)}, in the cells that a control repeats "
            "or that have a longer budget beside them. Other cells were not checked."] if factors else []


def _lengthened(frame: Frame) -> list[tuple[int, Cell, Cell]]:
    """A factor, a cell of the grid, and its longer form among the controls or in the grid itself."""
    longer: dict[str, list[Cell]] = {}
    for cell in (*cells(frame), *control_cells(frame)):
        longer.setdefault(_but_for_the_amount(cell), []).append(cell)
    pairs = [(cell, other) for cell in cells(frame) for other in longer.get(_but_for_the_amount(cell), ())]
    return [(_amount(other) // _amount(cell), cell, other) for cell, other in pairs
            if _amount(other) > _amount(cell) and _amount(other) % _amount(cell) == 0]


def _but_for_the_amount(cell: Cell) -> str:
    # Nor for the seed: a control may repeat some of the seeds only.
    spec = cell.runs[0].spec
    return canonical_json([cell.label, cell.setting, spec.budget.unit, spec.model_dump(exclude={"budget", "seed"})])


def _amount(cell: Cell) -> int:
    return cell.runs[0].spec.budget.amount
