"""Who wins, attention or a CNN, turns around with the length of training or with what it is counted in."""

from collections import defaultdict
from dataclasses import replace

from vitbench.claims import CLAIMS, ClaimMeta
from vitbench.verdicts import Blocked, Cell, CellOf, Evidence, Expected, Leg, Planted, Verdict, with_legs
from vitbench.verdicts.ranking import Compared, Comparison, agreement, compared, comparisons, legs, ranking_changes

MARGIN = 0.01
STUDY = {"models": ["attention:s", "convolution:s"], "images_per_class": [5, 20], "seeds": 10,
         "budgets": [{"steps": 300}, {"epochs": 50}]}


def _planted(cell: Cell) -> Expected:
    ahead = cell.family == ("attention" if cell.budget == "epochs:50" else "convolution")
    return Expected(0.912 if ahead else 0.888)


@CLAIMS.add("budget_changes_the_ranking", ClaimMeta(
    sentence="How long models train, and what that is counted in, changes which of two is the more accurate one.",
    source="what is argued about equal epochs, equal steps and equal arithmetic",
    null="No pair of models changes places: what leads under one budget leads, or is level, under every other.",
    planted=Planted("2.4 points behind under one budget and 2.4 ahead under another, at two sizes; 10 seeds", _planted,
                    power=0.93, study=STUDY),
    margin=MARGIN, unit="what the second budget adds to a difference of test accuracies, in the stratum's comparison"))
def judge(evidence: Evidence) -> Verdict:
    """As tuning_changes_the_ranking, between each two budgets in one regime and setting; m counts these, too.

    A comparison is unsaturated if one of its models is budget-limited under one of the two budgets; saturated if
    neither is, as far as checked, each model under one of them at least; else its saturation was not checked. Each of
    these groups is decided by itself, at the level that all share; where one holds and another fails it depends.
    """
    found = comparisons(evidence, "budget")
    if not found:
        raise Blocked("The study has no pair of models under two budgets; `budgets` in its file names them")
    each = compared(evidence, found)
    groups: defaultdict[str, list[Compared]] = defaultdict(list)
    for comparison, one in zip(found, each, strict=True):
        groups[_saturation(evidence, comparison)].append(one)
    by_group = {name: ranking_changes(of, margin=MARGIN) for name, of in sorted(groups.items())}
    verdict = ranking_changes(each, margin=MARGIN)
    holding, failing = ([name for name, of in by_group.items() if of.outcome == outcome]
                        for outcome in ("holds", "fails"))
    if holding and failing:
        verdict = replace(verdict, outcome="depends", sentence=(
            f"Holds where {' and where '.join(holding)}; fails where {' and where '.join(failing)}"))
    return with_legs(verdict, *(Leg.of(name, of) for name, of in by_group.items()), *legs(each, margin=MARGIN),
                     agreement(evidence, found))


def _saturation(evidence: Evidence, comparison: Comparison) -> str:
    share, *conditions = comparison.of
    checked = [[evidence.limited[cell] for condition in conditions
                if (cell := CellOf(label, share, condition)) in evidence.limited] for label in comparison.models]
    if any(map(any, checked)):
        return "a budget is unsaturated"
    return "both budgets are saturated" if all(checked) else "saturation was not checked"
