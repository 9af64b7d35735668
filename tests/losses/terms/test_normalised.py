"""Normalised losses, against the formula in 40 digits."""

import pytest
import torch
from loss_tester import value_and_gradient
from term_battery import every_check, mp, softmax, term, term_tester

import postmax as pm
from postmax.errors import InputError

FLOOR = mp.mpf(1e-7)


def focal(p):
    return -mp.sqrt(1 - p) * mp.log(p)


def share(of, p, y):
    return of(p[y]) / sum(map(of, p))


def nce(p, y):
    return share(mp.log, p, y)


def nfl(p, y):
    return share(focal, p, y)


def nnce(p, y):
    return 1 - share(lambda x: mp.log(max(x, FLOOR)) - mp.log(FLOOR), p, y)


def nnfl(p, y):
    return 1 - share(lambda x: focal(FLOOR) - focal(max(x, FLOOR)), p, y)


TESTERS = {
    "nce": term_tester("nce", nce),
    "nfl": term_tester("nfl", nfl),
    "nnce": term_tester("nnce", nnce),
    "nnfl": term_tester("nnfl", nnfl),
}


@every_check(TESTERS, compiled={"nce", "nnfl"})
def test_battery(name, check):
    getattr(TESTERS[name], check)()


@pytest.mark.parametrize("name", ["nce", "nfl"])
def test_gradient_where_one_loss_is_almost_all_of_the_sum(name):
    # The derivative of a quotient subtracts two numbers that agree to four digits here.
    logits, formula = torch.tensor([[-9999.5, 0.25, 0.75]]), {"nce": nce, "nfl": nfl}[name]
    for target in (torch.tensor([0]), torch.tensor([[1.0, 0.0, 0.0]])):
        gradient = value_and_gradient(pm.losses.get(name), logits, target)[1][0]
        for k in range(3):

            def loss(z, k=k):
                return formula(softmax([*logits[0, :k].tolist(), z, *logits[0, k + 1 :].tolist()]), 0)

            with mp.workdps(60):
                exact = mp.diff(loss, mp.mpf(logits[0, k].item()), h=mp.mpf(10) ** -20)
            assert gradient[k].item() == pytest.approx(float(exact), rel=2e-6)


@pytest.mark.parametrize("name", ["nnce", "nnfl"])
def test_below_the_floor_there_is_no_gradient(name):
    loss = pm.losses.get(name, reduction="none")
    logits = torch.tensor([[-16.0, 0.0, -10.0], [-17.0, 0.0, -10.0]])
    value, gradient = value_and_gradient(loss, logits, torch.tensor([0, 0]))
    assert value[0] < value[1] == 1
    assert gradient[0].all()
    assert not gradient[1].any()
    torch.testing.assert_close(gradient, value_and_gradient(loss, logits.double(), torch.tensor([0, 0]))[1].float())


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("nfl", {"gamma": -0.5}, r"gamma must be a number ≥ 0, got -0\.5"),
        ("nnce", {"floor": 0}, "floor must be a probability between 0 and 1, got 0"),
        ("nnfl", {"floor": 1}, "floor must be a probability between 0 and 1, got 1"),
        ("nnfl", {"gamma": None}, "gamma must be a number ≥ 0, got None"),
    ],
)
def test_wrong_options(name, options, message):
    with pytest.raises(InputError, match=message):
        term(name, **options)


@pytest.mark.parametrize("name", ["nnce", "nnfl"])
def test_a_floor_above_all_classes_is_refused(name):
    loss, logits = pm.losses.get(name, floor=0.3), torch.zeros(2, 4)
    with pytest.raises(InputError, match=r"floor must be below 1/4 for 4 classes, .* got 0\.3"):
        loss(logits, torch.tensor([0, 1]))
    assert loss(logits[:, :3], torch.tensor([0, 1])).isfinite()
