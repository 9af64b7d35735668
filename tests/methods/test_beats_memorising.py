"""Every method does better than a network that learns wrong labels by heart.

The data are the digits with 40 % symmetric noise. With cross-entropy alone, the network has learnt 95 % of the wrong
labels after 40 epochs, and its test accuracy is then 66 %. All methods have the same training, but for a few that need
another setting to help. Steps are clipped, because some methods are sums of terms that are much larger than a loss.
The noise need not be estimated before the training: a pretended estimate tells its true share.
"""

import functools
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hard_rows import needs_images
from sklearn.datasets import load_digits
from small_runs import estimate_of

from postmax import methods
from postmax.train import make_config, with_overrides
from postmax.train.build import build
from postmax.transition import Transition

RATE = 0.4
TRAINING = {
    "data": {"name": "digits", "split": "random"},
    "noise": f"symmetric:{RATE}",
    "loss": "ce",
    "model": {"hidden": [256]},
    "optimiser": {"lr": 0.1, "clip_norm": 1.0},
    "schedule": "constant",
    "epochs": 40,
    "batch_size": 128,
    "evaluate_every": 40,
}
# What a method needs besides the common training, and why.
EXCEPTIONS = {
    # After the features are learnt, a training of all weights memorises wrong labels as ever; the last layer cannot.
    "contrastive-pretraining": ("method.probe_epochs=24",),
    # By default the dimensionality is watched from the fourteenth epoch on, when half of the wrong labels are learnt.
    "d2l": ("method.warmup_epochs=2",),
    # Published trial steps are far smaller than the steps of this training, and hardly change any prediction.
    "mlnt": ("method.trial_rate=1", "method.trials=3"),
    # Views of features differ little, so the contrastive loss is small and the gap must say more.
    "representation-regularisation": ("method.gap_weight=20",),
    # Where cross-entropy has negative weights, memorising pays: even with the true matrix it has 67 %.
    "two-stage-backward": ("loss=sl-pml",),
}
# The smallest gain over cross-entropy was 0.11 with seed 2 (sop) and 0.15 with seeds 0 and 1; most were above 0.2.
MARGIN = 0.08
SEED = 1
# Labels that say which class a row does not have are another task.
COMPARED = [name for name in methods.names() if name != "standard" and not methods.describe(name).facts.complementary]


def true_estimate(train):
    return estimate_of(Transition.symmetric(train.num_classes, RATE), train.classes, len(train), rate=RATE)


@functools.cache
def digits_as_images():
    """The digits as images of 8×8 pixels, for methods that work on images alone."""
    digits, path = load_digits(), Path(tempfile.mkdtemp()) / "digits.npz"
    np.savez(path, x=(15 * digits.images).astype(np.uint8), y=digits.target)
    return {"path": str(path)}


@functools.cache
def last_record(method, seed=SEED, *, images=False):
    """The metrics of the last epoch."""
    settings = (f"method={method}", f"seeds={seed}", *EXCEPTIONS.get(method, ()))
    training = {**TRAINING, "data": digits_as_images()} if images else TRAINING
    config = make_config(with_overrides(training, settings))
    built = build(config, estimate=true_estimate)
    for number in range(config.epochs):
        records = built.trainer.epoch(number)
        if built.trainer.is_over:
            break
    built.trainer.judge(built.evaluator, records)
    return records[0]


@pytest.mark.thorough
@pytest.mark.parametrize("images", [False, True])
def test_cross_entropy_memorises(images):
    record = last_record("standard", images=images)
    assert record["wrong_labels_learnt"] > 0.7
    assert record["test_accuracy"] < 0.75


@pytest.mark.thorough
@pytest.mark.parametrize("method", COMPARED)
def test_a_method_does_better(method):
    images = needs_images(method)
    plain = last_record("standard", images=images)["test_accuracy"]
    assert last_record(method, images=images)["test_accuracy"] > plain + MARGIN
