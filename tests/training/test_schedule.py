import pytest
import torch

from vitbench.spec import Recipe
from vitbench.training.schedule import curve_points, learning_rate


def test_curve_points_are_eight_log_spaced_and_every_tenth() -> None:
    assert curve_points(300) == [1, 2, 5, 12, 26, 30, 59, 60, 90, 120, 133, 150, 180, 210, 240, 270, 300]


@pytest.mark.parametrize("steps", [1, 2, 3, 9, 10, 11, 1000, 12_345])
def test_curve_points_rise_to_the_last_step(steps: int) -> None:
    points = curve_points(steps)
    assert points == sorted(set(points))
    assert points[0] == 1
    assert points[-1] == steps


def test_cosine_warms_up_linearly_and_ends_near_zero() -> None:
    recipe = Recipe(learning_rate=1.0, warmup=0.1)
    rates = [learning_rate(recipe, step, 100) for step in range(100)]
    assert rates[:10] == pytest.approx([(k + 1) / 11 for k in range(10)])
    assert rates[10] == 1.0
    assert rates == sorted(rates[:11]) + sorted(rates[11:], reverse=True)
    assert rates[-1] < 1e-3


def test_cosine_without_warm_up_is_torchs() -> None:
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.5)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=40)
    for step in range(40):
        assert learning_rate(Recipe(learning_rate=0.5, warmup=0.0), step, 40) == pytest.approx(
            schedule.get_last_lr()[0], abs=1e-12)
        optimizer.step()
        schedule.step()


@pytest.mark.parametrize("warmup", [0.1, 0.3])
def test_one_cycle_is_torchs(warmup: float) -> None:
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.5, momentum=0.9)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.5, total_steps=50, pct_start=warmup,
                                                   cycle_momentum=False)
    recipe = Recipe(learning_rate=0.5, schedule="one_cycle", warmup=warmup)
    for step in range(50):
        assert learning_rate(recipe, step, 50) == pytest.approx(schedule.get_last_lr()[0], rel=1e-9)
        optimizer.step()
        if step < 49:
            schedule.step()


@pytest.mark.parametrize("schedule", ["cosine", "one_cycle"])
@pytest.mark.parametrize("steps", [1, 2, 3])
def test_the_shortest_schedules_have_finite_positive_rates(schedule: str, steps: int) -> None:
    for warmup in (0.0, 0.1, 0.9):
        recipe = Recipe(schedule=schedule, warmup=warmup)
        assert all(0 < learning_rate(recipe, s, steps) <= recipe.learning_rate for s in range(steps))
