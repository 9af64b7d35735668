"""What docs/published-forms.md says: no usual way to write a loss has a better gradient than ours, in any dtype."""

import pytest
import torch
from published_forms import DTYPES, MARGINS, USUAL, exact, ours, worst

# Below this the two are equally good: the difference of float32 logits that are 100 apart, and so the log-probability,
# has an error of 4e-6.
TIE = {torch.float32: 1e-5, torch.bfloat16: 4e-3, torch.float16: 5e-4}


@pytest.mark.parametrize("form", USUAL, ids=lambda form: f"{form.loss}: {form.written}")
def test_gradient_is_as_good_as_that_of_the_usual_form(form):
    for dtype in DTYPES:
        for m in MARGINS:
            assert worst(ours(form.loss), -m, dtype)[0] <= max(worst(form, -m, dtype)[0], TIE[dtype])


@pytest.mark.parametrize("dtype", DTYPES)
def test_gradient_of_the_focal_loss_where_the_label_is_certain(dtype):
    for m in (5.0, 10.0, 20.0, 50.0):
        assert worst(ours("focal"), m, dtype)[0] <= TIE[dtype]


def test_truth():
    # Two classes, logit 0: p = 1/2, and all derivatives are easily written down.
    assert float(exact("mae", [0.0, 0.0])) == -0.25
    assert float(exact("gce", [0.0, 0.0])) == pytest.approx(-(0.5**1.7))
    assert float(exact("aul", [0.0, 0.0])) == -25 / 4
    assert float(exact("nce", [0.0, 0.0])) == pytest.approx(-0.5 / (2 * 0.6931471805599453))
