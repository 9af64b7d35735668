"""No loss computes a matrix product in half precision: on some CPUs that ends the process."""

import pytest
import torch
from half_products import HALF, HalfProducts

import postmax as pm

DENSE = pm.Transition([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.3, 0.1, 0.6]])
SPARSE = pm.Transition([[0.7, 0.3, 0.0], [0.0, 0.8, 0.2], [0.3, 0.0, 0.7]])
CORRECTIONS = ("forward", "objective", "posterior", "factored")
LOSSES = {name: {"name": name, "transition": DENSE} for name in pm.losses.names() if name != "natarajan"} | {
    "natarajan": {"name": "natarajan", "transition": pm.Transition.binary(0.1, 0.2)},
    **{
        f"{correction}, {kind}": {"name": "fpml", "transition": noise, "correction": correction}
        for correction in CORRECTIONS
        for kind, noise in (("dense", DENSE), ("sparse", SPARSE))
    },
}


def test_such_a_product_is_noticed():
    layer = torch.nn.Linear(3, 2, device="meta", dtype=torch.bfloat16)  # nothing is computed there
    with HalfProducts() as products:
        layer(torch.ones(1, 3, device="meta", dtype=torch.bfloat16))
    assert products.seen == ["addmm"]


@pytest.mark.parametrize("autocast", [False, True], ids=["plain", "autocast"])
@pytest.mark.parametrize("options", LOSSES.values(), ids=LOSSES)
def test_losses(options, autocast):
    loss = pm.losses.get(**options)
    classes = options["transition"].num_classes
    for dtype in (*HALF, torch.float32):
        logits = torch.linspace(-2, 2, 6 * classes).reshape(6, classes).to(dtype).requires_grad_()
        with HalfProducts() as products:
            with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
                value = loss(logits, torch.arange(6) % classes)
                for output in (loss.posterior, loss.label_posterior, loss.predict):
                    output(logits)
            value.backward()
        assert products.seen == []
        assert logits.grad.isfinite().all()
